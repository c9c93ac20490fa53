"""The system prompt: its parts in order, the guidance about memory, AGENTS.md and the rules of a project.

Parts that change least come first, so two sessions with the same memory share all but the last line. A file that is
missing is silent; one that is too long or can't be read says so. AGENTS.md may only link to another Markdown file.

Invariant: all between the base prompt and the last line is within one token budget. Texts are cut between lines, and
what is left out is named with its file.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path, PurePosixPath

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageError
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.lazy import lazy_compile
from ricordo.messages.tokens import Tokens, estimate_text
from ricordo.storage import FileStore
from ricordo.workspace.layout import PROJECT_PREFIX, WORKSPACE

__all__ = [
    "AGENTS_FILE",
    "MEMORY_FILES",
    "RULES_FOLDER",
    "WORKSPACE_BUDGET",
    "InstructionText",
    "build_system_prompt",
    "drop_missing_tools",
    "memory_guidance",
    "memory_notice",
    "read_agents_file",
    "read_rules",
    "remaining_tokens",
    "render_footer",
    "render_instructions",
]


WORKSPACE_BUDGET = Tokens(8_000)
"""Tokens of what a workspace puts into the prompt when none are named: AGENTS.md, rules, guidance and preamble."""
MEMORY_FILES = "MEMORY.md and memory/"
"""Where the memory of a root stands, in its workspace."""
_SEPARATOR_TOKENS = 2
"""Tokens of the empty line between two parts."""
_INSTRUCTIONS_NOTE = "Written by people for this project: follow it."
_INSTRUCTIONS_FENCE = "instructions"
_MAX_OMITTED_NAMES = 5
_MAX_NAME_CHARS = 80
_MEMORY_INTRO = "There is a memory store that lasts beyond this session."
_SESSIONS_INTRO = "Earlier sessions are kept, word for word."
_SAVE_TOOLS = {
    "remember": "`remember` keeps what will matter in later sessions: decisions, preferences, conventions, lessons.",
}
_SEARCH_TOOLS = {
    "recall": "`recall` finds what is remembered: use it before you say that something is not known.",
    "memory_search": "`memory_search` finds lines of memory by words, with their file and line.",
    "memory_get": "`memory_get` shows lines of a memory file.",
}
_OPT_IN_TOOLS = {
    "forget": "`forget` takes out a memory that the user wants gone or that has proved wrong; a person is asked.",
    "memory": "`memory` keeps notes of your own in files below `/memories`: view them before work they may be about.",
}
_SESSION_FILES_HINT = "The session files that `recall` names lie below `{}`: `read_file` opens them."
_TOOL_CLAUSE = lazy_compile(r"[;:] `(?P<tool>recall|memory_get)` (?:finds|opens) (?:more|them|it)\b")
_SESSION_TOOLS = {
    "session_search": "`session_search` finds what was said in earlier sessions.",
    "session_list": "`session_list` names the earlier sessions.",
    "session_history": "`session_history` shows what was said in one of them.",
    "expand": "`expand` opens what was condensed or cleared, word for word, by the handle that stands in its place.",
}


@dataclass(frozen=True, kw_only=True)
class InstructionText:
    """What a person wrote for the agent, and the file that it stands in."""

    source: str
    text: str


def build_system_prompt(
    *, base: str = "", written: str = "", guidance: str = "", preamble: str = "", end: str = ""
) -> str:
    """Return the prompt of these parts, in this order, an empty line between them; empty for none.

    `written` is what `render_instructions` made, `end` what `render_footer` did.
    """
    parts = (base.strip("\n"), written, guidance, preamble, end)
    return "\n\n".join(part for part in parts if part.strip())


def remaining_tokens(budget: int, *parts: str) -> int:
    """Return the tokens of `budget` that these parts leave to one more; at least 0."""
    return max(0, budget - sum(estimate_text(part) + _SEPARATOR_TOKENS for part in parts if part))


def render_instructions(human: Sequence[InstructionText], room: int | None = None) -> str:
    """Return what people wrote in its frame, within `room` tokens; without one nothing is cut. Empty for nothing.

    `human` is AGENTS.md first, then the rules; the first ones are served first. A text that does not fit is cut after
    its last line that does, one of which no line fits is only named.
    """
    texts = [FencedItem(text=each.text.strip("\n"), source=each.source, trust=Trust.USER) for each in human]
    found = [each for each in texts if each.text.strip()]
    if room is None or _fits_in(found, room):
        return _frame_items(found)
    kept: list[FencedItem] = []
    missing: list[FencedItem] = []
    for at, item in enumerate(found):
        rest = [*missing, *found[at + 1 :]]
        shown = item if _fits_in([*kept, item, *_omission_notice(rest)], room) else _cut_item(item, kept, rest, room)
        if shown:
            kept.append(shown)
        else:
            missing.append(item)
    while kept and not _fits_in([*kept, *_omission_notice(missing)], room):
        missing.insert(0, kept.pop())
    return (
        _frame_items([*kept, *_omission_notice(missing)]) if _fits_in([*kept, *_omission_notice(missing)], room) else ""
    )


def memory_guidance(tools: Collection[str], *, sessions: str = "") -> str:
    """Return what the model is told about memory, naming only the tools that are among `tools`; empty for none.

    `sessions` is the folder, as file tools know it, below which the session files lie that `recall` names.
    """
    memory = [f"- {line}" for name, line in {**_SAVE_TOOLS, **_SEARCH_TOOLS, **_OPT_IN_TOOLS}.items() if name in tools]
    if sessions and {"recall", "read_file"} <= {*tools}:
        memory.append(f"- {_SESSION_FILES_HINT.format(sessions)}")
    past = [f"- {line}" for name, line in _SESSION_TOOLS.items() if name in tools]
    head = (
        [_MEMORY_INTRO, *memory]
        if memory
        else [_SESSIONS_INTRO]
        if {"session_search", "session_list"} & {*tools}
        else []
    )
    return "\n".join([*head, *past])


def drop_missing_tools(text: str, tools: Collection[str]) -> str:
    """Return what memory puts into a prompt without the clauses that name a tool which is not among `tools`."""
    return _TOOL_CLAUSE.sub(lambda found: found[0] if found["tool"] in tools else "", text)


def memory_notice(tools: Collection[str], *, where: str = MEMORY_FILES) -> str:
    """Return what stands in the place of a preamble for which no room is left; it names only tools that there are.

    `where` names what holds it.
    """
    opener = next((f": `{name}` finds it" for name in ("recall", "memory_search") if name in tools), "")
    return f"[More is remembered than there is room for here{opener}. It stands in {where}.]"


def render_footer(session: str, day: date) -> str:
    """Return the last line of the prompt: what differs from session to session."""
    return f"The date was {day.isoformat()} when this was written; the session is `{session}`."


def _frame_items(items: Sequence[FencedItem]) -> str:
    return render_fence(items, name=_INSTRUCTIONS_FENCE, note=_INSTRUCTIONS_NOTE)


def _fits_in(items: Sequence[FencedItem], room: int) -> bool:
    return estimate_text(_frame_items(items)) <= room


def _cut_item(
    item: FencedItem, before: Sequence[FencedItem], rest: Sequence[FencedItem], room: int
) -> FencedItem | None:
    """Return as many of the first lines of `item` as fit, with a notice; None when not one does."""
    lines = item.text.split("\n")
    fitting, too_many = 0, len(lines)
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if _fits_in([*before, _take_lines(item, lines[:middle]), *_omission_notice(rest)], room):
            fitting = middle
        else:
            too_many = middle
    return _take_lines(item, lines[:fitting]) if fitting else None


def _take_lines(item: FencedItem, lines: Sequence[str]) -> FencedItem:
    return replace(item, text="\n".join([*lines, f"[Cut here: the rest stands in {item.source}.]"]))


def _omission_notice(items: Sequence[FencedItem]) -> list[FencedItem]:
    """Return the notice about files that are not shown."""
    if not items:
        return []
    more = f" and {len(items) - _MAX_OMITTED_NAMES} more" if len(items) > _MAX_OMITTED_NAMES else ""
    names = ", ".join(item.source[:_MAX_NAME_CHARS] for item in items[:_MAX_OMITTED_NAMES])
    text = f"[Left out, there is no room for them here: {names}{more}. Read them before you act on their subject.]"
    return [FencedItem(text=text, source="the prompt", trust=Trust.AGENT)]


AGENTS_FILE = "AGENTS.md"
RULES_FOLDER = f"{WORKSPACE}/rules"
_MAX_FILE_BYTES = 32_000
"""Bytes of one file that are shown."""
_MAX_RULES_BYTES = 128_000
"""Bytes of all rules together that are shown."""


async def read_agents_file(folder: Path, *, longest: int = _MAX_FILE_BYTES) -> InstructionText | None:
    """Return AGENTS.md of `folder`, at most `longest` bytes of it; None when there is none, or nothing in it."""
    return await run_sync(_read_agents, folder / AGENTS_FILE, longest)


async def read_rules(
    *places: FileStore, longest: int = _MAX_FILE_BYTES, total: int = _MAX_RULES_BYTES
) -> tuple[InstructionText, ...]:
    """Return the Markdown files in `workspace/rules`, sorted by name, at most `longest` bytes of each.

    Of several places the first is what a project shares; its rules come first and are named after it. Those after the
    first `total` bytes are only named. Files in folders below are no rules.
    """
    texts: list[InstructionText] = []
    left = total
    for number, files in enumerate(places):
        prefix = f"{PROJECT_PREFIX}/" if len(places) > 1 and number == 0 else ""
        try:
            found = [each for each in await files.list(RULES_FOLDER) if _is_rule(each.path)]
        except StorageError as error:
            texts.append(InstructionText(source=f"{prefix}rules", text=f"[The rules can't be read: {error}]"))
            continue
        for each in found:
            room = min(longest, left)
            text = await _read_rule(files, each.path, room) if room > 0 else "[Left out: there are too many rules.]"
            if text.strip():
                texts.append(InstructionText(source=prefix + each.path.removeprefix(f"{WORKSPACE}/"), text=text))
            left -= min(each.size, room)
    return tuple(texts)


def _is_rule(path: str) -> bool:
    found = PurePosixPath(path)
    return str(found.parent) == RULES_FOLDER and found.suffix.lower() == ".md" and not found.name.startswith(".")


async def _read_rule(files: FileStore, path: str, longest: int) -> str:
    try:
        return _decode_lines(await files.read_from(path, 0, longest + 1), longest)
    except FileMissing:
        return ""
    except StorageError as error:
        return f"[This file can't be read: {error}]"


def _read_agents(path: Path, longest: int) -> InstructionText | None:
    try:
        # opening a pipe would wait for its other end
        if not path.is_file():
            return None
        if path.resolve().suffix.lower() != ".md":
            return InstructionText(
                source=AGENTS_FILE, text="[This file is a link to something else than Markdown: it is not shown.]"
            )
        with path.open("rb") as file:
            text = _decode_lines(file.read(longest + 1), longest)
    except FileNotFoundError:
        return None
    except OSError as error:
        text = f"[This file can't be read: {error.strerror}]"
    return InstructionText(source=AGENTS_FILE, text=text) if text.strip() else None


def _decode_lines(data: bytes, longest: int) -> str:
    """Return the text of a file, cut at the end of a line when there are more than `longest` bytes."""
    kept = data[:longest]
    if len(data) > longest:
        kept = kept[: kept.rfind(b"\n") + 1]
    text = kept.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    notice = f"[Cut here: only whole lines of the first {longest:,} bytes are shown.]"
    return text if len(data) <= longest else f"{text.rstrip()}\n{notice}".lstrip("\n")
