"""Profile edits: remove from profiles what they say of entries that are forgotten or undone.

Invariant: profiles that can't be read, and fields of other versions, are not changed.
"""

from collections.abc import Collection, Sequence
from functools import partial

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.language import content_words, words
from ricordo.messages.jsontext import decoded
from ricordo.messages.types import JsonValue
from ricordo.profile.forgetting import without_saying, without_saying_part
from ricordo.workspace.changes import Edit
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import WORKSPACE, is_profile
from ricordo.workspace.profile import HISTORY_LEVEL, USER_LEVEL, Fact, Profile
from ricordo.workspace.profile_codec import parse_profile, written_json
from ricordo.workspace.striking import says_any, says_part

__all__ = ["profile_edits"]

_HALF = 0.5
_TWICE = 2

_LEVELS = {"user": USER_LEVEL, "history": HISTORY_LEVEL}


async def profile_edits(
    files: FileStore, entries: Sequence[Entry], *, by_hand: bool, near: Collection[tuple[str, str]] = ()
) -> list[Edit]:
    """Return the edits that remove what `entries` say from the profiles of a root.

    A fact is removed if it has the same words, or was learned from the same words of the same message. With `by_hand`
    facts that a person gave are removed too, and facts and summaries that say the same in other words. A fact that was
    learned from one of the messages `near`, as (session, id), then needs half of the words only. A profile that can't
    be read is not changed.
    """
    edits = []
    for info in await files.list(WORKSPACE):
        if not is_profile(info.path):
            continue
        try:
            stored = await files.read(info.path)
            data = await run_sync(partial(_removed, stored.data, info.path, entries, by_hand=by_hand, near=near))
        except (DocumentInvalid, FileMissing, StorageError):
            continue
        if data != stored.data:
            edits.append(Edit(path=info.path, expected=stored.version, data=data))
    return edits


def _removed(
    data: bytes, path: str, entries: Sequence[Entry], *, by_hand: bool, near: Collection[tuple[str, str]]
) -> bytes:
    profile = parse_profile(data, path).profile
    gone = {
        fact.id
        for fact in profile.facts
        if (by_hand or not fact.is_kept)
        and any(_says(fact, entry) or (by_hand and _says_otherwise(fact, entry, near)) for entry in entries)
    }
    rest = profile
    for content in [entry.content for entry in entries] + [fact.content for fact in profile.facts if fact.id in gone]:
        rest = without_saying(rest, content)
        rest = without_saying_part(rest, content) if by_hand else rest
    if not gone and rest == profile:
        return data
    return _written(decoded(data), gone, rest)


def _says(fact: Fact, entry: Entry) -> bool:
    if words(fact.content) == words(entry.content):
        return True
    source, quote = fact.source, entry.source.quote or entry.content
    same = source.thread == entry.source.session and source.messages[:1] == entry.source.messages[:1]
    return same and bool(source.messages) and words(source.quote) == words(quote)


def _says_otherwise(fact: Fact, entry: Entry, near: Collection[tuple[str, str]]) -> bool:
    if any((fact.source.thread, name) in near for name in fact.source.messages):
        return says_part(fact.content, [entry.content], least=_HALF) or says_any(fact.content, [entry.content])
    brief = len(content_words(fact.content)) <= _TWICE * len(content_words(entry.content))
    return brief and says_any(fact.content, [entry.content])


def _written(document: dict[str, JsonValue], gone: set[str], rest: Profile) -> bytes:
    """Return the document without the facts `gone`, and with the summaries of `rest`."""
    facts = document.get("facts")
    if isinstance(facts, list):
        document["facts"] = [each for each in facts if not (isinstance(each, dict) and each.get("id") in gone)]
    for level, names in _LEVELS.items():
        sections = document.get(level)
        for name in names if isinstance(sections, dict) else ():
            section = sections.get(name) if isinstance(sections, dict) else None
            if isinstance(section, dict):
                section["summary"] = rest.summaries[name].summary
    document["revision"] = rest.revision + 1
    return written_json(document)
