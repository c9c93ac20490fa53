"""The window of a session as text: its sections as a bar and lines, and what compaction took out or brought back.

A cell of the bar is the letter of its section, on a colour where a terminal shows colours. Every section with a token
has a cell. Nothing is wider than the terminal, down to 20 columns.

Invariant: a chat and the command line print it in the same words.
"""

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from ricordo.cli.chat_input import SlashCommand
from ricordo.cli.render import escape, is_colourful, pluralize
from ricordo.errors import CompactionNotFound, InvalidInput, MessageNotFound, SessionNotFound

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.agent.compaction_journal import Compaction
    from ricordo.agent.session import CompactionResult
    from ricordo.agent.tools.expand import ExpandedMessages
    from ricordo.context.usage import ContextReport
    from ricordo.messages import Message
    from ricordo.runtime import Settings

__all__ = [
    "WINDOW_COMMANDS",
    "edit_message",
    "format_bar",
    "format_compaction_result",
    "format_compactions",
    "format_expanded",
    "format_undo",
    "format_usage",
    "format_usage_change",
    "remove_message",
    "run_window_command",
    "unused_focus_note",
]


_DEFAULT_CELLS, _MIN_CELLS, _MAX_CELLS = 60, 10, 100
_WIDE_ROW_COLUMNS, _WIDE_CHANGE_COLUMNS = 56, 40
_SECTIONS = {
    "system": ("s", "system", "blue"),
    "memory": ("m", "memory", "green"),
    "tools": ("t", "tools", "cyan"),
    "user": ("u", "user", "yellow"),
    "assistant": ("a", "assistant", "magenta"),
    "results": ("r", "tool results", "red"),
    "summary": ("S", "summary", "bright_green"),
    "injected": ("i", "injected", "bright_blue"),
    "reminder": ("R", "reminder", "bright_yellow"),
    "reserve": ("-", "reserve", "bright_black"),
    "free": (".", "free", None),
}
_DARK_COLOURS = frozenset({"blue", "magenta", "red", "bright_black"})
_ROOM_SECTIONS = frozenset({"reserve", "free"})
_CONVERSATION_SECTIONS = ("user", "assistant", "results", "summary", "injected")


def format_usage(report: "ContextReport", *, is_new: bool = False) -> list[str]:
    """Return the picture of a report, line by line; the session of one that `is_new` has no id yet."""
    session = "a new session" if is_new else f"session {escape(report.session)}"
    return [f"{session}, model {escape(report.model)}", f"  {format_bar(report, indent=2)}", *_format_rows(report)]


def format_usage_change(before: "ContextReport", after: "ContextReport") -> list[str]:
    """Return the picture of a window that got smaller: the bars, and each section before and after."""
    sizes = dict(after.sections)
    rows = [(name, tokens, sizes[name]) for name, tokens in before.sections]
    rows.append(("together", before.tokens, after.tokens))
    start = "" if 0 < _columns() < _WIDE_CHANGE_COLUMNS else "  "
    return [
        f"session {escape(before.session)}, model {escape(before.model)}",
        f"{start}before {format_bar(before, indent=len(start) + 7)}",
        f"{start}after  {format_bar(after, total=before.tokens, indent=len(start) + 7)}",
        _format_change_row("", "before", "after"),
        *(
            _format_change_row(name, f"{old:,}", f"{new:,}")
            for name, old, new in rows
            if before.limit or name not in _ROOM_SECTIONS
        ),
        f"{before.tokens:,} tokens in {pluralize(before.messages, 'message')} before, "
        f"{after.tokens:,} in {after.messages:,} after",
    ]


def format_bar(report: "ContextReport", *, total: int = 0, indent: int = 0) -> str:
    """Return the bar: it stands for the model's window where that is known, else for `total` tokens or the request.

    On a terminal it ends where the line does, `indent` columns stand before it; elsewhere it has 60 cells.
    """
    missing = 0 if report.limit else max(0, total - report.tokens)
    width = _columns()
    count = min(max(width - indent - len("[]"), _MIN_CELLS), _MAX_CELLS) if width else _DEFAULT_CELLS
    *cells, rest = _allocate_cells([*(tokens for _, tokens in report.sections), missing], count)
    runs = (_section_cells(name, number) for (name, _), number in zip(report.sections, cells, strict=True) if number)
    return f"[{''.join(runs)}{' ' * rest}]"


def _format_rows(report: "ContextReport") -> list[str]:
    total = report.limit or report.tokens
    rows = []
    for name, tokens in report.sections:
        if name == _CONVERSATION_SECTIONS[0]:
            rows.append(
                _format_row("", "messages", report.conversation, total, f"in {pluralize(report.messages, 'message')}")
            )
        inner = "  " if name in _CONVERSATION_SECTIONS else ""
        if report.limit or name not in _ROOM_SECTIONS:
            rows.append(_format_row(name, f"{inner}{_SECTIONS[name][1]}", tokens, total))
    limit = f"of {report.limit:,}" if report.limit else "of a window that is not known"
    excess = f", {report.excess_tokens:,} too many" if report.excess_tokens else ""
    return [*rows, _format_row("", "together", report.tokens, total, limit + excess)]


def _format_row(name: str, label: str, tokens: int, total: int, suffix: str = "") -> str:
    width = _columns()
    if 0 < width < _WIDE_ROW_COLUMNS:
        number = f"{tokens:,}"
        return f"{_section_letter(name)} {_fit_label(label, width - len(number) - 3)} {number}"
    share = f"{100 * tokens / total:5.1f} %" if total else ""
    return f"  {_section_letter(name)} {label:<14} {tokens:>9,} tokens  {share}  {suffix}".rstrip()


def _format_change_row(name: str, before: str, after: str) -> str:
    label = _SECTIONS[name][1] if name in _SECTIONS else name
    width = _columns()
    if 0 < width < _WIDE_CHANGE_COLUMNS:
        return f"{_section_letter(name)} {_fit_label(label, max(width - 18, 1))}{before:>8}{after:>8}"
    return f"  {_section_letter(name)} {label:<14}{before:>10}{after:>10}"


def _fit_label(label: str, max_chars: int) -> str:
    """Return a label in exactly `max_chars` columns."""
    return f"{label[: max(max_chars, 0)]:<{max(max_chars, 0)}}"


def _section_letter(name: str) -> str:
    return _section_cells(name, 1) if name in _SECTIONS else " "


def _section_cells(name: str, count: int) -> str:
    """Return the cells of a section, which stand beside each other."""
    letter, _, colour = _SECTIONS[name]
    if colour is None or not is_colourful():
        return letter * count
    return typer.style(letter * count, fg="bright_white" if colour in _DARK_COLOURS else "black", bg=colour)


def _allocate_cells(sizes: list[int], count: int) -> list[int]:
    """Return the cells of each size, `count` together where there are as many; one that is not 0 has at least one."""
    total = sum(sizes)
    if not total:
        return [0] * len(sizes)
    cells = [max(1, round(count * size / total)) if size else 0 for size in sizes]
    while (remaining := count - sum(cells)) and (remaining > 0 or max(cells) > 1):
        cells[cells.index(max(cells))] += remaining if remaining > 0 else -1
    return cells


def _columns() -> int:
    """Return the number of columns of the terminal; 0 without a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


WINDOW_COMMANDS = frozenset({"clear", "compact", "context", "edit", "expand", "pin", "remove", "unpin"})
"""The commands of a chat that `run_window_command` carries out."""
_MAX_START_CHARS = 80
_ASKED_PREFIX = "asked, but "
_MESSAGE_PREFIX = "m:"
_UNUSED_FOCUS_NOTE = "The focus was not heeded: rules write the summary, and rules have no focus; name a model."


async def run_window_command(agent: "HarnessAgent", slash: SlashCommand, settings: "Settings") -> list[str]:
    """Run one of `WINDOW_COMMANDS` and return its output. Raises `RicordoError`."""
    words = _split_words(slash.arguments)
    match slash.name:
        case "compact":
            return await _compact_command(agent, words, settings)
        case "expand":
            if len(words) != 1:
                raise InvalidInput("/expand needs a handle, and takes one: /compact --list shows them.")
            with _chat_handle_hint(words[0]):
                return format_expanded(await agent.compactions.expand(words[0]))
        case "remove" | "edit":
            return await _change_message(agent, slash)
        case "pin" | "unpin":
            if len(words) > 1:
                raise InvalidInput(f"/{slash.name} takes one message: its line in /session show, or its id.")
            return await _pin_command(agent, "".join(words), on=slash.name == "pin")
    if words:
        raise InvalidInput(f"/{slash.name} stands alone; not with {escape(words[0])}.")
    if slash.name == "context":
        return await _context_command(agent)
    await agent.clear()
    return [f"The window is empty. What was said is kept: /session show {escape(agent.session)}"]


def unused_focus_note(focus: str, model: str, settings: "Settings") -> str:
    """Say that nobody dwells on `focus`, as rules write the summary; empty where `model`, or another one, writes it."""
    from ricordo.models.config import OFFLINE

    compaction = settings.reductions.get("compaction")
    model_name = compaction.model if compaction else None
    by_rules = (model if model_name is None else model_name) == OFFLINE
    return _UNUSED_FOCUS_NOTE if focus and by_rules else ""


def format_compaction_result(
    result: "CompactionResult", *, dry_run: bool, note: str = "", prefix: str = "/", suffix: str = ""
) -> list[str]:
    """Tell a window's size by section before and after, what each reduction did, or why none did anything.

    `note` is said too. Commands are named with `prefix` before and `suffix` behind them.
    """
    lines = [
        f"  {each.action}: {each.reason or each.status}{f' ({each.note})' if each.note else ''}"
        for each in result
        if each.status == "failed" or each.note
    ]
    handles = [each.handle for each in result if each.handle and each.status == "done"]
    if reason := _idle_reason(result):
        lines.append(f"  Nothing {'would be' if dry_run else 'was'} made smaller: {reason}.")
    if note:
        lines.append(f"  {note}")
    if dry_run:
        handles, lines = [], [*lines, "  This was a dry run: the window is as it was."]
    return [
        *format_usage_change(result.before, result.after),
        *map(escape, lines),
        *(
            f"  `{prefix}expand {each}{suffix}` opens what went, `{prefix}compact --undo{suffix}` brings it back."
            for each in handles
        ),
    ]


def format_compactions(compactions: Sequence["Compaction"]) -> list[str]:
    """Tell the compactions on record, newest first."""
    if not compactions:
        return ["No compaction is on record."]
    return [
        f"{each.handle}  {each.at.astimezone():%Y-%m-%d %H:%M}  {each.action}: {pluralize(each.messages, 'message')}, "
        f"{each.tokens_before:,} tokens before, {each.tokens_after:,} after ({escape(each.reason)})"
        f"{'  (undone)' if each.is_undone else ''}"
        for each in compactions
    ]


def format_undo(compaction: "Compaction", before: "ContextReport", after: "ContextReport") -> list[str]:
    """Tell that the window is as it was before a compaction, and by how much it grew."""
    restored = after.messages - before.messages
    restored_text = f"{pluralize(restored, 'message')} more {'is' if restored == 1 else 'are'} in the window again"
    return [
        f"Took back {compaction.handle}: {restored_text if restored > 0 else 'the window is as it was before it'}.",
        *_format_missing(compaction.missing),
        f"{before.tokens:,} tokens in {pluralize(before.messages, 'message')} before, "
        f"{after.tokens:,} in {after.messages:,} after",
    ]


def format_expanded(messages: "ExpandedMessages") -> list[str]:
    """Tell what a handle opens, every message whole, and how many are not there any more."""
    from ricordo.agent.tools.expand import render_record

    lines = escape(render_record(messages)).splitlines() or ["Nothing of it is kept."]
    return [*lines, *_format_missing(messages.missing)]


def _format_missing(count: int) -> list[str]:
    return [f"{pluralize(count, 'message')} of it can't be found any more."] if count else []


async def _context_command(agent: "HarnessAgent") -> list[str]:
    """Tell what fills the window, and what waits in the inbox."""
    report = await agent.get_context_usage()
    waiting = await agent.drain(seconds=0)
    return [*format_usage(report), f"    inbox          {waiting:>9,} {'job waits' if waiting == 1 else 'jobs wait'}"]


async def _compact_command(agent: "HarnessAgent", words: Sequence[str], settings: "Settings") -> list[str]:
    """Make the window smaller, or tell of it what the options ask for; other words are what to dwell on."""
    options = {word for word in words if word.startswith("--")}
    arguments = [word for word in words if not word.startswith("--")]
    if unknown := options - {"--dry-run", "--list", "--undo"}:
        raise InvalidInput(f"/compact takes --dry-run, --list, --undo, or what to dwell on; not {sorted(unknown)[0]}.")
    if len(options) > 1:
        raise InvalidInput("/compact takes one of --dry-run, --list and --undo.")
    if "--list" in options and arguments:
        raise InvalidInput(f"/compact --list stands alone; not with {escape(arguments[0])}.")
    if "--list" in options:
        return format_compactions(await agent.compactions.all())
    if "--undo" in options:
        return await _undo_command(agent, arguments)
    focus, dry_run = " ".join(arguments), "--dry-run" in options
    result = await agent.compact(focus=focus, dry_run=dry_run)
    return format_compaction_result(
        result, dry_run=dry_run, note=unused_focus_note(focus, result.before.model, settings)
    )


async def _undo_command(agent: "HarnessAgent", handles: Sequence[str]) -> list[str]:
    if len(handles) > 1:
        raise InvalidInput("/compact --undo takes one handle: /compact --list shows them.")
    before = await agent.get_context_usage()
    with _chat_handle_hint("".join(handles)):
        compaction = await agent.compactions.undo("".join(handles) or None)
    return format_undo(compaction, before, await agent.get_context_usage())


def _idle_reason(result: "CompactionResult") -> str:
    """Return why nothing was done; empty if something was done or failed."""
    if any(each.status in {"done", "failed"} for each in result):
        return ""
    reasons = {each.action: each.reason for each in result if each.reason}
    reason = reasons.get("compact") or next(iter(reasons.values()), "no reduction has anything to do")
    return reason.removeprefix(_ASKED_PREFIX)


@contextmanager
def _chat_handle_hint(handle: str) -> Iterator[None]:
    """Let an error name the command of the chat that shows the handles."""
    try:
        yield
    except CompactionNotFound as error:
        if not handle:
            raise
        raise CompactionNotFound(
            f"No compaction on record has the handle {escape(handle)}: /compact --list shows them."
        ) from error


async def remove_message(
    agent: "HarnessAgent", message_ref: str, *, prefix: str = "/", suffix: str = ""
) -> "tuple[Compaction, list[str]]":
    """Remove a message from the window; return the handle that restores it, and the output. Raises `RicordoError`."""
    before = {message.id: message for message in agent.window}
    message_id = await _resolve_message_id(agent, message_ref, prefix)
    with _add_line_hint(agent, prefix):
        compaction = await agent.compactions.remove(message_id)
    others = (
        f" and {pluralize(compaction.messages - 1, 'message')} that it belongs to" if compaction.messages > 1 else ""
    )
    description = (
        f'"{_message_start(before[message_id])}"{others} {"were" if others else "was"} taken out of the window.'
    )
    return compaction, [description, _undo_hint(compaction.handle, prefix, suffix)]


async def edit_message(
    agent: "HarnessAgent", message_ref: str, text: str, *, prefix: str = "/", suffix: str = ""
) -> "tuple[Compaction, list[str]]":
    """Replace the text of a message of the window; return the handle that restores it, and the output.

    Raises: RicordoError.
    """
    known_ids = {message.id for message in agent.window}
    message_id = await _resolve_message_id(agent, message_ref, prefix)
    with _add_line_hint(agent, prefix):
        compaction = await agent.compactions.edit(message_id, text)
    new = next((message for message in agent.window if message.id not in known_ids), None)
    description = (
        f'The message says "{_message_start(new)}" now, as {_MESSAGE_PREFIX}{new.id}.'
        if new
        else "The message says that already."
    )
    return compaction, [description, _undo_hint(compaction.handle, prefix, suffix)]


async def _change_message(agent: "HarnessAgent", slash: SlashCommand) -> list[str]:
    message_ref, _, text = slash.arguments.partition(" ")
    if slash.name == "edit":
        if not text.strip():
            raise InvalidInput("/edit takes a message and its new words: /edit 3 We deploy from main.")
        return (await edit_message(agent, message_ref, text.strip()))[1]
    if text or not message_ref:
        raise InvalidInput("/remove takes one message: its line in /session show, or its id.")
    return (await remove_message(agent, message_ref))[1]


def _undo_hint(handle: str, prefix: str, suffix: str) -> str:
    return f"The transcript keeps what was said; `{prefix}compact --undo {handle}{suffix}` brings it back."


async def _pin_command(agent: "HarnessAgent", message_ref: str, *, on: bool) -> list[str]:
    from ricordo.messages import get_mark

    user_message_ids = [message.id for message in agent.window if message.role == "user" and get_mark(message) is None]
    if not message_ref and not user_message_ids:
        raise MessageNotFound("Nothing that you said is in the window.")
    message_id = await _resolve_message_id(agent, message_ref or user_message_ids[-1])
    with _add_line_hint(agent):
        marked = await (agent.compactions.pin(message_id) if on else agent.compactions.unpin(message_id))
    effect = "stays in the window through every compaction" if on else "goes with a compaction again"
    return [f'"{_message_start(marked)}" {effect}.']


async def _resolve_message_id(agent: "HarnessAgent", message_ref: str, prefix: str = "/") -> str:
    """Return the id of a message that is given by it, with `m:` or without, or by its line in the transcript.

    Raises: MessageNotFound.
    """
    message_id = message_ref.removeprefix(_MESSAGE_PREFIX)
    if message_id.isdecimal() and all(message.id != message_id for message in agent.window):
        return await _message_at_line(agent, int(message_id), prefix)
    return message_id


@contextmanager
def _add_line_hint(agent: "HarnessAgent", prefix: str = "/") -> Iterator[None]:
    """Let the error for a message that is not in the window say where its line stands."""
    try:
        yield
    except MessageNotFound as error:
        raise MessageNotFound(f"{error} {_line_hint(agent, prefix)}") from error


def _message_start(message: "Message") -> str:
    words = " ".join((message.text or "".join(result.text for result in message.tool_results)).split())
    return escape(f"{words[:_MAX_START_CHARS]}{'…' if len(words) > _MAX_START_CHARS else ''}")


async def _message_at_line(agent: "HarnessAgent", line: int, prefix: str) -> str:
    """Return the id of the message on a line of the transcript. Raises `MessageNotFound`."""
    with suppress(SessionNotFound):
        recorded = await agent.memory.session(agent.session) if agent.memory else None
        for message, number in zip(recorded.messages, recorded.lines, strict=True) if recorded else ():
            if number == line:
                return message.id
    raise MessageNotFound(f"No message stands on line {line}. {_line_hint(agent, prefix)}")


def _line_hint(agent: "HarnessAgent", prefix: str) -> str:
    return f"`{prefix}session show {escape(agent.session)}` shows the line of each message."


def _split_words(text: str) -> list[str]:
    with suppress(ValueError):
        return shlex.split(text)
    return text.split()
