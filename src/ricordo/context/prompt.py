"""The system prompt: its sections in order, the memory guidance, AGENTS.md and the rules of a project.

Sections that change least come first. The stable ones are the same for two sessions with the same memory; the volatile
ones follow them. What changes during a session is sent after the window, behind the cache breakpoint. A missing file is
skipped silently; a file that is too long or unreadable produces a notice. AGENTS.md may only link to another Markdown
file.

Invariant: everything between the base prompt and the last line fits one token budget. Texts are cut between lines, and
omitted content is named with its file.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field, replace
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Literal

from anyio.to_thread import run_sync

from ricordo.context.preamble import MemorySnapshot
from ricordo.errors import FileMissing, StorageError
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.tokens import estimate_text
from ricordo.storage import FileStore
from ricordo.workspace.layout import PROJECT_PREFIX, WORKSPACE

__all__ = [
    "AGENTS_FILE",
    "MEMORY_FILES",
    "RULES_FOLDER",
    "InstructionText",
    "Prompt",
    "PromptSection",
    "compose_prompt",
    "drop_missing_tools",
    "memory_guidance",
    "memory_notice",
    "read_agents_file",
    "read_rules",
    "remaining_tokens",
    "render_footer",
    "render_instructions",
]


MEMORY_FILES = "MEMORY.md and memory/"
"""The memory files of a root, in its workspace."""
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
    """A text that a person wrote for the agent, and its source file."""

    source: str
    text: str


@dataclass(frozen=True, kw_only=True)
class PromptSection:
    """One section of a system prompt. A section that differs between sessions with the same memory is not stable."""

    name: Literal["base", "instructions", "guidance", "memory", "session"]
    text: str
    is_stable: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompt:
    """A system prompt as built once: its text, its sections in order, and the memory at that time.

    `volatile_end` is the end of the text that differs between sessions with the same memory; empty if nothing does.
    Two prompts are never equal: a prompt that was built again is another one, even with the same text.
    """

    text: str = ""
    volatile_end: str = ""
    sections: tuple[PromptSection, ...] = ()
    snapshot: MemorySnapshot = field(default_factory=MemorySnapshot)

    @property
    def memory(self) -> str:
        """The text of memory in the prompt; empty if it shows none."""
        return next((section.text for section in self.sections if section.name == "memory"), "")


def compose_prompt(sections: Iterable[PromptSection], snapshot: MemorySnapshot | None = None) -> Prompt:
    """Return the prompt of the sections that have a text, separated by an empty line, stable ones first."""
    non_empty = [each for each in sections if each.text.strip()]
    sorted_sections = tuple(sorted(non_empty, key=lambda each: not each.is_stable))
    text = "\n\n".join(each.text for each in sorted_sections)
    end = "\n\n".join(each.text for each in sorted_sections if not each.is_stable)
    return Prompt(text=text, volatile_end=end, sections=sorted_sections, snapshot=snapshot or MemorySnapshot())


def remaining_tokens(budget: int, *parts: str) -> int:
    """Return the tokens of `budget` that these parts leave for another one; at least 0."""
    return max(0, budget - sum(estimate_text(part) + _SEPARATOR_TOKENS for part in parts if part))


def render_instructions(instructions: Sequence[InstructionText], max_tokens: int | None = None) -> str:
    """Return the fenced texts of people, within `max_tokens` tokens; None for `max_tokens` cuts nothing. Empty for no
    texts.

    `instructions` is AGENTS.md first, then the rules; earlier texts take precedence. A text that does not fit is cut
    after its last line that fits. A text of which no line fits is only named.
    """
    texts = [FencedItem(text=each.text.strip("\n"), source=each.source, trust=Trust.USER) for each in instructions]
    items = [each for each in texts if each.text.strip()]
    if max_tokens is None or _fits_in(items, max_tokens):
        return _frame_items(items)
    included: list[FencedItem] = []
    missing: list[FencedItem] = []
    for index, item in enumerate(items):
        remaining = [*missing, *items[index + 1 :]]
        fitted = (
            item
            if _fits_in([*included, item, *_omission_notice(remaining)], max_tokens)
            else _cut_item(item, included, remaining, max_tokens)
        )
        if fitted:
            included.append(fitted)
        else:
            missing.append(item)
    while included and not _fits_in([*included, *_omission_notice(missing)], max_tokens):
        missing.insert(0, included.pop())
    return (
        _frame_items([*included, *_omission_notice(missing)])
        if _fits_in([*included, *_omission_notice(missing)], max_tokens)
        else ""
    )


def memory_guidance(tools: Collection[str], *, sessions: str = "") -> str:
    """Return the guidance about memory, which names only tools in `tools`; empty if there are none.

    `sessions` is the folder of the session files that `recall` names, as file tools see it.
    """
    memory_lines = [
        f"- {line}" for name, line in {**_SAVE_TOOLS, **_SEARCH_TOOLS, **_OPT_IN_TOOLS}.items() if name in tools
    ]
    if sessions and {"recall", "read_file"} <= {*tools}:
        memory_lines.append(f"- {_SESSION_FILES_HINT.format(sessions)}")
    session_lines = [f"- {line}" for name, line in _SESSION_TOOLS.items() if name in tools]
    head = (
        [_MEMORY_INTRO, *memory_lines]
        if memory_lines
        else [_SESSIONS_INTRO]
        if {"session_search", "session_list"} & {*tools}
        else []
    )
    return "\n".join([*head, *session_lines])


def drop_missing_tools(text: str, tools: Collection[str]) -> str:
    """Return the memory text for a prompt without the clauses that name a tool missing from `tools`."""
    return _TOOL_CLAUSE.sub(lambda match: match[0] if match["tool"] in tools else "", text)


def memory_notice(tools: Collection[str], *, location: str = MEMORY_FILES) -> str:
    """Return the notice that replaces a preamble without room; it names only tools in `tools`.

    `location` names the files that hold the memory.
    """
    pointer = next((f": `{name}` finds it" for name in ("recall", "memory_search") if name in tools), "")
    return f"[More is remembered than there is room for here{pointer}. It stands in {location}.]"


def render_footer(session: str, day: date) -> str:
    """Return the last line of the prompt, which differs between sessions."""
    return f"The date was {day.isoformat()} when this was written; the session is `{session}`."


def _frame_items(items: Sequence[FencedItem]) -> str:
    return render_fence(items, name=_INSTRUCTIONS_FENCE, note=_INSTRUCTIONS_NOTE)


def _fits_in(items: Sequence[FencedItem], max_tokens: int) -> bool:
    return estimate_text(_frame_items(items)) <= max_tokens


def _cut_item(
    item: FencedItem, preceding: Sequence[FencedItem], remaining: Sequence[FencedItem], max_tokens: int
) -> FencedItem | None:
    """Return the first lines of `item` that fit, with a notice; None if no line fits."""
    lines = item.text.split("\n")
    fitting, too_many = 0, len(lines)
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if _fits_in([*preceding, _take_lines(item, lines[:middle]), *_omission_notice(remaining)], max_tokens):
            fitting = middle
        else:
            too_many = middle
    return _take_lines(item, lines[:fitting]) if fitting else None


def _take_lines(item: FencedItem, lines: Sequence[str]) -> FencedItem:
    return replace(item, text="\n".join([*lines, f"[Cut here: the rest stands in {item.source}.]"]))


def _omission_notice(items: Sequence[FencedItem]) -> list[FencedItem]:
    """Return the notice about omitted files."""
    if not items:
        return []
    more = f" and {len(items) - _MAX_OMITTED_NAMES} more" if len(items) > _MAX_OMITTED_NAMES else ""
    names = ", ".join(item.source[:_MAX_NAME_CHARS] for item in items[:_MAX_OMITTED_NAMES])
    text = f"[Left out, there is no room for them here: {names}{more}. Read them before you act on their subject.]"
    return [FencedItem(text=text, source="the prompt", trust=Trust.AGENT)]


AGENTS_FILE = "AGENTS.md"
RULES_FOLDER = f"{WORKSPACE}/rules"
_MAX_FILE_BYTES = 32_000
"""Maximum bytes of one file in the prompt."""
_MAX_RULES_BYTES = 128_000
"""Maximum bytes of all rules together in the prompt."""


async def read_agents_file(folder: Path, *, max_bytes: int = _MAX_FILE_BYTES) -> InstructionText | None:
    """Return at most `max_bytes` bytes of AGENTS.md in `folder`; None if it is missing or empty."""
    return await run_sync(_read_agents, folder / AGENTS_FILE, max_bytes)


async def read_rules(
    *stores: FileStore, max_bytes: int = _MAX_FILE_BYTES, max_total_bytes: int = _MAX_RULES_BYTES
) -> tuple[InstructionText, ...]:
    """Return the Markdown files in `workspace/rules`, sorted by name, at most `max_bytes` bytes of each.

    The first of several places is the shared project root; its rules come first, with its prefix in their names. Rules
    after the first `max_total_bytes` bytes are only named. Files in subfolders are not rules.
    """
    texts: list[InstructionText] = []
    remaining_bytes = max_total_bytes
    for number, files in enumerate(stores):
        prefix = f"{PROJECT_PREFIX}/" if len(stores) > 1 and number == 0 else ""
        try:
            rules = [each for each in await files.list(RULES_FOLDER) if _is_rule(each.path)]
        except StorageError as error:
            texts.append(InstructionText(source=f"{prefix}rules", text=f"[The rules can't be read: {error}]"))
            continue
        for each in rules:
            allowed_bytes = min(max_bytes, remaining_bytes)
            text = (
                await _read_rule(files, each.path, allowed_bytes)
                if allowed_bytes > 0
                else "[Left out: there are too many rules.]"
            )
            if text.strip():
                texts.append(InstructionText(source=prefix + each.path.removeprefix(f"{WORKSPACE}/"), text=text))
            remaining_bytes -= min(each.size, allowed_bytes)
    return tuple(texts)


def _is_rule(path: str) -> bool:
    rule_path = PurePosixPath(path)
    return (
        str(rule_path.parent) == RULES_FOLDER
        and rule_path.suffix.lower() == ".md"
        and not rule_path.name.startswith(".")
    )


async def _read_rule(files: FileStore, path: str, max_bytes: int) -> str:
    try:
        return _decode_lines(await files.read_from(path, 0, max_bytes + 1), max_bytes)
    except FileMissing:
        return ""
    except StorageError as error:
        return f"[This file can't be read: {error}]"


def _read_agents(path: Path, max_bytes: int) -> InstructionText | None:
    try:
        # Opening a pipe would block until its other end is opened.
        if not path.is_file():
            return None
        if path.resolve().suffix.lower() != ".md":
            return InstructionText(
                source=AGENTS_FILE, text="[This file is a link to something else than Markdown: it is not shown.]"
            )
        with path.open("rb") as file:
            text = _decode_lines(file.read(max_bytes + 1), max_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        text = f"[This file can't be read: {error.strerror}]"
    return InstructionText(source=AGENTS_FILE, text=text) if text.strip() else None


def _decode_lines(data: bytes, max_bytes: int) -> str:
    """Return the text of a file, cut at the end of a line if it has more than `max_bytes` bytes."""
    content = data[:max_bytes]
    if len(data) > max_bytes:
        content = content[: content.rfind(b"\n") + 1]
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    notice = f"[Cut here: only whole lines of the first {max_bytes:,} bytes are shown.]"
    return text if len(data) <= max_bytes else f"{text.rstrip()}\n{notice}".lstrip("\n")
