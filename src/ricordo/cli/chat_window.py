"""The window of a session, told in lines: what fills it, making it smaller, what that took away, and bringing it back.

Invariant: a chat and the command line say it in the same words.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ricordo.cli.chat_commands import Slash
from ricordo.cli.picture import change_lines, usage_lines
from ricordo.cli.render import counted, shown
from ricordo.errors import CompactionNotFound, InvalidInput, MessageNotFound, SessionNotFound

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.harness.journal import Compaction
    from ricordo.messages import Message
    from ricordo.runtime import Settings
    from ricordo.runtime.session import Compacted
    from ricordo.runtime.usage import ContextReport
    from ricordo.tools.expand import Opened

__all__ = [
    "WINDOW_COMMANDS",
    "compacted_lines",
    "edit_message",
    "expanded_lines",
    "listed_lines",
    "obeyed",
    "remove_message",
    "undone_lines",
    "unheeded",
]

WINDOW_COMMANDS = frozenset({"clear", "compact", "context", "edit", "expand", "pin", "remove", "unpin"})
"""The commands of a chat that `obeyed` carries out."""

_SHOWN = 80
_ASKED = "asked, but "
_MESSAGE = "m:"
_NO_FOCUS = "The focus was not heeded: rules write the summary, and rules have no focus; name a model."


async def obeyed(agent: "HarnessAgent", slash: Slash, settings: "Settings") -> list[str]:
    """Carry out one of `WINDOW_COMMANDS` and return what is said of it. Raises `RicordoError`."""
    words = _words(slash.rest)
    match slash.name:
        case "compact":
            return await _compact(agent, words, settings)
        case "expand":
            if len(words) != 1:
                raise InvalidInput("/expand needs a handle, and takes one: /compact --list shows them.")
            with _named_in_chat(words[0]):
                return expanded_lines(await agent.compactions.expand(words[0]))
        case "remove" | "edit":
            return await _reword(agent, slash)
        case "pin" | "unpin":
            if len(words) > 1:
                raise InvalidInput(f"/{slash.name} takes one message: its line in /session show, or its id.")
            return await _pin(agent, "".join(words), on=slash.name == "pin")
    if words:
        raise InvalidInput(f"/{slash.name} stands alone; not with {shown(words[0])}.")
    if slash.name == "context":
        return await _context(agent)
    await agent.clear()
    return [f"The window is empty. What was said is kept: /session show {shown(agent.session)}"]


def unheeded(focus: str, model: str, settings: "Settings") -> str:
    """Say that nobody dwells on `focus`, as rules write the summary; empty where `model`, or another one, writes it."""
    from ricordo.harness.offline import OFFLINE

    named = settings.compaction.model if settings.compaction else None
    by_rules = (model if named is None else named) == OFFLINE
    return _NO_FOCUS if focus and by_rules else ""


def compacted_lines(
    done: "Compacted", *, dry_run: bool, note: str = "", prefix: str = "/", suffix: str = ""
) -> list[str]:
    """Tell a window's size by section before and after, what each reduction did, or why none did anything.

    `note` is said too. Commands are named with `prefix` before and `suffix` behind them.
    """
    said = [
        f"  {each.act}: {each.reason or each.status}{f' ({each.note})' if each.note else ''}"
        for each in done
        if each.status == "failed" or each.note
    ]
    handles = [each.handle for each in done if each.handle and each.status == "done"]
    if why := _idle(done):
        said.append(f"  Nothing {'would be' if dry_run else 'was'} made smaller: {why}.")
    if note:
        said.append(f"  {note}")
    if dry_run:
        handles, said = [], [*said, "  This was a dry run: the window is as it was."]
    return [
        *change_lines(done.before, done.after),
        *map(shown, said),
        *(
            f"  `{prefix}expand {each}{suffix}` opens what went, `{prefix}compact --undo{suffix}` brings it back."
            for each in handles
        ),
    ]


def listed_lines(found: Sequence["Compaction"]) -> list[str]:
    """Tell the compactions on record, newest first."""
    if not found:
        return ["No compaction is on record."]
    return [
        f"{each.handle}  {each.at.astimezone():%Y-%m-%d %H:%M}  {each.act}: {counted(each.messages, 'message')}, "
        f"{each.tokens_before:,} tokens before, {each.tokens_after:,} after ({shown(each.reason)})"
        f"{'  (undone)' if each.undone else ''}"
        for each in found
    ]


def undone_lines(made: "Compaction", before: "ContextReport", after: "ContextReport") -> list[str]:
    """Tell that the window is as it was before a compaction, and by how much it grew."""
    back = after.messages - before.messages
    grew = f"{counted(back, 'message')} more {'is' if back == 1 else 'are'} in the window again"
    return [
        f"Took back {made.handle}: {grew if back > 0 else 'the window is as it was before it'}.",
        *_missing(made.missing),
        f"{before.tokens:,} tokens in {counted(before.messages, 'message')} before, "
        f"{after.tokens:,} in {after.messages:,} after",
    ]


def expanded_lines(messages: "Opened") -> list[str]:
    """Tell what a handle opens, every message whole, and how many are not there any more."""
    from ricordo.tools.expand import as_record

    told = shown(as_record(messages)).splitlines() or ["Nothing of it is kept."]
    return [*told, *_missing(messages.missing)]


def _missing(count: int) -> list[str]:
    return [f"{counted(count, 'message')} of it can't be found any more."] if count else []


async def _context(agent: "HarnessAgent") -> list[str]:
    """Tell what fills the window, and what waits in the inbox."""
    report = await agent.get_context_usage()
    waiting = await agent.settle(seconds=0)
    return [*usage_lines(report), f"    inbox          {waiting:>9,} {'job waits' if waiting == 1 else 'jobs wait'}"]


async def _compact(agent: "HarnessAgent", words: Sequence[str], settings: "Settings") -> list[str]:
    """Make the window smaller, or tell of it what the options ask for; other words are what to dwell on."""
    options = {word for word in words if word.startswith("--")}
    others = [word for word in words if not word.startswith("--")]
    if unknown := options - {"--dry-run", "--list", "--undo"}:
        raise InvalidInput(f"/compact takes --dry-run, --list, --undo, or what to dwell on; not {sorted(unknown)[0]}.")
    if len(options) > 1:
        raise InvalidInput("/compact takes one of --dry-run, --list and --undo.")
    if "--list" in options and others:
        raise InvalidInput(f"/compact --list stands alone; not with {shown(others[0])}.")
    if "--list" in options:
        return listed_lines(await agent.compactions.all())
    if "--undo" in options:
        return await _undo(agent, others)
    focus, dry_run = " ".join(others), "--dry-run" in options
    done = await agent.compact(focus=focus, dry_run=dry_run)
    return compacted_lines(done, dry_run=dry_run, note=unheeded(focus, done.before.model, settings))


async def _undo(agent: "HarnessAgent", handles: Sequence[str]) -> list[str]:
    if len(handles) > 1:
        raise InvalidInput("/compact --undo takes one handle: /compact --list shows them.")
    before = await agent.get_context_usage()
    with _named_in_chat("".join(handles)):
        made = await agent.compactions.undo("".join(handles) or None)
    return undone_lines(made, before, await agent.get_context_usage())


def _idle(done: "Compacted") -> str:
    """Say why nothing was done; empty where something was, or where a failure is told."""
    if any(each.status in {"done", "failed"} for each in done):
        return ""
    reasons = {each.act: each.reason for each in done if each.reason}
    why = reasons.get("compact") or next(iter(reasons.values()), "no reduction has anything to do")
    return why.removeprefix(_ASKED)


@contextmanager
def _named_in_chat(handle: str) -> Iterator[None]:
    """Let an error name the command of the chat that shows the handles."""
    try:
        yield
    except CompactionNotFound as error:
        if not handle:
            raise
        raise CompactionNotFound(
            f"No compaction on record has the handle {shown(handle)}: /compact --list shows them."
        ) from error


async def remove_message(
    agent: "HarnessAgent", given: str, *, prefix: str = "/", suffix: str = ""
) -> "tuple[Compaction, list[str]]":
    """Take a message out of the window; return what brings it back, and what is said of it. Raises `RicordoError`."""
    before = {message.id: message for message in agent.window}
    named = await _named(agent, given, prefix)
    with _with_hint(agent, prefix):
        made = await agent.compactions.remove(named)
    others = f" and {counted(made.messages - 1, 'message')} that it belongs to" if made.messages > 1 else ""
    told = f'"{_start(before[named])}"{others} {"were" if others else "was"} taken out of the window.'
    return made, [told, _back(made.handle, prefix, suffix)]


async def edit_message(
    agent: "HarnessAgent", given: str, text: str, *, prefix: str = "/", suffix: str = ""
) -> "tuple[Compaction, list[str]]":
    """Let a message of the window say `text`; return what takes that back, and what is said of it.

    Raises: RicordoError.
    """
    known = {message.id for message in agent.window}
    named = await _named(agent, given, prefix)
    with _with_hint(agent, prefix):
        made = await agent.compactions.edit(named, text)
    new = next((message for message in agent.window if message.id not in known), None)
    told = f'The message says "{_start(new)}" now, as {_MESSAGE}{new.id}.' if new else "The message says that already."
    return made, [told, _back(made.handle, prefix, suffix)]


async def _reword(agent: "HarnessAgent", slash: Slash) -> list[str]:
    named, _, text = slash.rest.partition(" ")
    if slash.name == "edit":
        if not text.strip():
            raise InvalidInput("/edit takes a message and its new words: /edit 3 We deploy from main.")
        return (await edit_message(agent, named, text.strip()))[1]
    if text or not named:
        raise InvalidInput("/remove takes one message: its line in /session show, or its id.")
    return (await remove_message(agent, named))[1]


def _back(handle: str, prefix: str, suffix: str) -> str:
    return f"The transcript keeps what was said; `{prefix}compact --undo {handle}{suffix}` brings it back."


async def _pin(agent: "HarnessAgent", given: str, *, on: bool) -> list[str]:
    from ricordo.messages import mark_of

    said = [message.id for message in agent.window if message.role == "user" and mark_of(message) is None]
    if not given and not said:
        raise MessageNotFound("Nothing that you said is in the window.")
    named = await _named(agent, given or said[-1])
    with _with_hint(agent):
        marked = await (agent.compactions.pin(named) if on else agent.compactions.unpin(named))
    stays = "stays in the window through every compaction" if on else "goes with a compaction again"
    return [f'"{_start(marked)}" {stays}.']


async def _named(agent: "HarnessAgent", given: str, prefix: str = "/") -> str:
    """Return the id of a message that is given by it, with `m:` or without, or by its line in the transcript.

    Raises: MessageNotFound.
    """
    named = given.removeprefix(_MESSAGE)
    if named.isdecimal() and all(message.id != named for message in agent.window):
        return await _at_line(agent, int(named), prefix)
    return named


@contextmanager
def _with_hint(agent: "HarnessAgent", prefix: str = "/") -> Iterator[None]:
    """Let the error for a message that is not in the window say where its line stands."""
    try:
        yield
    except MessageNotFound as error:
        raise MessageNotFound(f"{error} {_where(agent, prefix)}") from error


def _start(message: "Message") -> str:
    words = " ".join((message.text or "".join(result.text for result in message.tool_results)).split())
    return shown(f"{words[:_SHOWN]}{'…' if len(words) > _SHOWN else ''}")


async def _at_line(agent: "HarnessAgent", line: int, prefix: str) -> str:
    """Return the id of the message on a line of the transcript. Raises `MessageNotFound`."""
    with suppress(SessionNotFound):
        kept = await agent.memory.session(agent.session) if agent.memory else None
        for message, number in zip(kept.messages, kept.lines, strict=True) if kept else ():
            if number == line:
                return message.id
    raise MessageNotFound(f"No message stands on line {line}. {_where(agent, prefix)}")


def _where(agent: "HarnessAgent", prefix: str) -> str:
    return f"`{prefix}session show {shown(agent.session)}` shows the line of each message."


def _words(text: str) -> list[str]:
    with suppress(ValueError):
        return shlex.split(text)
    return text.split()
