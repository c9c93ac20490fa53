"""Remaining copies: find what still contains the words of an entry after it was forgotten.

Forgetting removes an entry and its copies. A longer entry that contains the same words, and a plan or a todo in nearly
the same words, stay, because only a person can judge them. Nothing is changed here.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.guard import Redactor
from ricordo.language import content_words, split_sentences
from ricordo.lazy import dataclass, lazy_compile
from ricordo.storage import FileStore
from ricordo.workspace.agent_state import salvage_state
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.repetition import nearly_says, repeats_any, sentences_like
from ricordo.workspace.layout import (
    AGENT_NOTES,
    LEDGERS,
    MEMORY_PATH,
    WORKSPACE,
    is_memory,
    is_profile,
    parse_record_path,
)
from ricordo.workspace.ledger import read_entries
from ricordo.workspace.profile import parse_profile

__all__ = ["Remaining", "remaining_entries", "remaining_in"]

_ROOT = 4
_FEWEST = 3
_LONG_FILE = b"[long::"
_NOTES = lazy_compile(rf"{WORKSPACE}/(?:plans|rules|{AGENT_NOTES})/.+\.(?:md|txt)")
_LARGEST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """Something that still contains the words of a forgotten entry, with its secrets replaced by marks.

    `id` is the id of an entry or of a profile fact, the path of a file below the root, or the session of a todo; `text`
    is the whole entry, fact or todo, or the sentence of the file.
    """

    kind: Literal["memory", "fact", "file", "todo"]
    id: str
    text: str


def remaining_entries(entries: Iterable[Entry], forgotten: Entry) -> list[Remaining]:
    """Return which of `entries` repeat the forgotten entry, or one of its sentences, each id once."""
    contents = _statements(forgotten.content)
    matches = {
        each.id: each.content for each in entries if each.id != forgotten.id and repeats_any(each.content, contents)
    }
    return [Remaining(kind="memory", id=name, text=text) for name, text in matches.items()]


async def remaining_in(files: FileStore, forgotten: Entry, redactor: Redactor) -> list[Remaining]:
    """Return what in a root still repeats the forgotten entry: entries, then facts, files and todos.

    Files that can't be read are left out.
    """
    contents = _statements(forgotten.content)
    results = await run_sync(remaining_entries, await _entries(files, contents), forgotten)
    for info in await files.list(WORKSPACE):
        is_note = bool(_NOTES.fullmatch(info.path)) and info.size <= _LARGEST
        record = parse_record_path(info.path)
        is_state = record is not None and record.kind == "state" and not record.is_set_aside
        if is_note or is_state or is_profile(info.path):
            with suppress(FileMissing, StorageError, DocumentInvalid):
                data = (await files.read(info.path)).data
                results += await run_sync(_said, data, info.path, contents)
    return await run_sync(_guarded, dict.fromkeys(results), redactor)


def _guarded(results: Iterable[Remaining], redactor: Redactor) -> list[Remaining]:
    return [replace(each, text=redactor.clean(each.text)) for each in results]


def _statements(content: str) -> list[str]:
    """Return the content and, if it has several sentences, those with enough words to be recognised."""
    sentences = [content[each.start : each.end] for each in split_sentences(content)]
    recognizable = [each for each in sentences if len(set(content_words(each))) >= _FEWEST]
    return [content, *(recognizable if len(sentences) > 1 else ())]


async def _entries(files: FileStore, contents: Sequence[str]) -> list[Entry]:
    """Return the active entries that may repeat one of `contents`; others are not parsed."""
    stem_lists = [[word[:_ROOT].encode() for word in dict.fromkeys(content_words(each))] for each in contents]

    def may_say(bullet: bytes) -> bool:
        lowered = bullet.lower() if bullet.isascii() else bullet.decode("utf-8", "replace").casefold().encode()
        return _LONG_FILE in bullet or any(
            2 * sum(stem in lowered for stem in stems) >= len(stems) for stems in stem_lists
        )

    entries: list[Entry] = []
    for path in [MEMORY_PATH, *(info.path for info in await files.list(LEDGERS) if is_memory(info.path))]:
        if not path.startswith(f"{LEDGERS}/long/"):
            with suppress(FileMissing, StorageError):
                entries += [each.entry for each in await read_entries(files, path, only=may_say)]
    return [each for each in entries if each.state == "active"]


def _said(data: bytes, path: str, contents: Sequence[str]) -> list[Remaining]:
    if is_profile(path):
        facts = parse_profile(data, path).profile.facts
        repeated_facts = [each for each in facts if repeats_any(each.content, contents)]
        return [Remaining(kind="fact", id=each.id, text=each.content) for each in repeated_facts]
    record = parse_record_path(path)
    if record is not None:
        todos = salvage_state(data, agent=record.folder, session=record.session).work_state.todos
        repeated_todos = [each.content for each in todos if any(nearly_says(each.content, one) for one in contents)]
        return [Remaining(kind="todo", id=record.session, text=each) for each in repeated_todos]
    text = data.decode("utf-8", "replace")
    return [Remaining(kind="file", id=path, text=each) for one in contents for each in sentences_like(text, one)]
