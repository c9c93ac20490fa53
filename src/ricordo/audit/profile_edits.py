"""Profile edits: remove from profiles what they say of entries that are forgotten or undone.

Invariant: profiles that can't be read, and fields of other versions, are not changed.
"""

from collections.abc import Collection, Sequence
from functools import partial

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.language import content_words, split_words
from ricordo.messages.jsontext import decode_json
from ricordo.messages.types import JsonValue
from ricordo.profile.forgetting import remove_statement, remove_partial_statement
from ricordo.workspace.changes import Edit
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import WORKSPACE, is_profile
from ricordo.workspace.profile import HISTORY_SUMMARIES, USER_SUMMARIES, Fact, Profile
from ricordo.workspace.profile_codec import parse_profile, dump_profile_json
from ricordo.workspace.striking import repeats_any, repeats_partly

__all__ = ["build_profile_edits"]

_NEAR_OVERLAP = 0.5
_MAX_LENGTH_RATIO = 2

_SUMMARY_LEVELS = {"user": USER_SUMMARIES, "history": HISTORY_SUMMARIES}


async def build_profile_edits(
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
            data = await run_sync(partial(_remove_facts, stored.data, info.path, entries, by_hand=by_hand, near=near))
        except (DocumentInvalid, FileMissing, StorageError):
            continue
        if data != stored.data:
            edits.append(Edit(path=info.path, expected=stored.version, data=data))
    return edits


def _remove_facts(
    data: bytes, path: str, entries: Sequence[Entry], *, by_hand: bool, near: Collection[tuple[str, str]]
) -> bytes:
    profile = parse_profile(data, path).profile
    gone = {
        fact.id
        for fact in profile.facts
        if (by_hand or not fact.is_protected)
        and any(_states_same(fact, entry) or (by_hand and _states_similar(fact, entry, near)) for entry in entries)
    }
    rest = profile
    for content in [entry.content for entry in entries] + [fact.content for fact in profile.facts if fact.id in gone]:
        rest = remove_statement(rest, content)
        rest = remove_partial_statement(rest, content) if by_hand else rest
    if not gone and rest == profile:
        return data
    return _render_document(decode_json(data), gone, rest)


def _states_same(fact: Fact, entry: Entry) -> bool:
    if split_words(fact.content) == split_words(entry.content):
        return True
    source, quote = fact.source, entry.source.quote or entry.content
    same = source.thread == entry.source.session and source.messages[:1] == entry.source.messages[:1]
    return same and bool(source.messages) and split_words(source.quote) == split_words(quote)


def _states_similar(fact: Fact, entry: Entry, near: Collection[tuple[str, str]]) -> bool:
    if any((fact.source.thread, name) in near for name in fact.source.messages):
        return repeats_partly(fact.content, [entry.content], least=_NEAR_OVERLAP) or repeats_any(
            fact.content, [entry.content]
        )
    brief = len(content_words(fact.content)) <= _MAX_LENGTH_RATIO * len(content_words(entry.content))
    return brief and repeats_any(fact.content, [entry.content])


def _render_document(document: dict[str, JsonValue], gone: set[str], rest: Profile) -> bytes:
    """Return the document without the facts `gone`, and with the summaries of `rest`."""
    facts = document.get("facts")
    if isinstance(facts, list):
        document["facts"] = [each for each in facts if not (isinstance(each, dict) and each.get("id") in gone)]
    for level, names in _SUMMARY_LEVELS.items():
        sections = document.get(level)
        for name in names if isinstance(sections, dict) else ():
            section = sections.get(name) if isinstance(sections, dict) else None
            if isinstance(section, dict):
                section["summary"] = rest.summaries[name].summary
    document["revision"] = rest.revision + 1
    return dump_profile_json(document)
