"""Edits that follow from a forget, an undo or a mark, in the same change set.

The list of topics in MEMORY.md is updated, memories without room in MEMORY.md move to topics, and text about removed
entries is removed from session files and profiles. What has faded moves to the archive, the topic
`memory/topics/faded.md`, and what counts again returns to the section of its kind.

Invariants: no text is shortened, and lines that a person wrote or pinned stay in place. An unreadable file is not
changed.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from anyio.to_thread import run_sync

from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.memory_document import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.curation.placement import SECTIONS, is_empty_topic, is_movable, place_entries, update_topic_list
from ricordo.curation.profile.updates import (
    remove_partial_statement,
    remove_statement,
    render_edited_profile,
)
from ricordo.curation.topics import FADED_HEAD, FADED_TOPIC, FURTHER_TOPICS
from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.language import content_words, split_words
from ricordo.messages.json_text import decode_json
from ricordo.storage import ABSENT, FileStore, StoredFile
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.history.change_sets import Edit
from ricordo.workspace.history.repetition import ContentIndex, mask_session, repeats_any, repeats_partly
from ricordo.workspace.layout import MEMORY_PATH, SESSIONS, TOPICS, WORKSPACE, is_profile
from ricordo.workspace.profile import Fact, parse_profile
from ricordo.workspace.session_files import parse_session, update_session

__all__ = [
    "add_return_edits",
    "add_room_edits",
    "add_topic_list_edits",
    "archived_ids",
    "build_profile_edits",
    "build_session_edits",
    "move_faded",
    "plan_archive_edits",
    "read_or_empty",
]


async def add_topic_list_edits(
    files: FileStore, edits: Sequence[Edit], config: ConsolidationConfig | None = None
) -> list[Edit]:
    """Return the edits, with one of MEMORY.md if its list of topics is outdated after them.

    `config` bounds the number of listed topics; a further topic lists the others. If a topic can't be read, nothing is
    added.
    """
    edited = {edit.path: edit for edit in edits}
    try:
        memory_edit = edited.get(MEMORY_PATH) or await _unchanged_edit(files, MEMORY_PATH)
        versions, topics = await _read_topics_after(files, edited)
    except (FileMissing, StorageError):
        return [*edits]
    if memory_edit.data is None:
        return [*edits]
    updated = await run_sync(update_topic_list, memory_edit.data, topics, config or ConsolidationConfig())
    further_edit = Edit(
        path=FURTHER_TOPICS, expected_hash=versions.get(FURTHER_TOPICS, ABSENT), data=updated.get(FURTHER_TOPICS)
    )
    changed = [further_edit] if further_edit.data != topics.get(FURTHER_TOPICS) else []
    if updated[MEMORY_PATH] != memory_edit.data:
        changed.append(Edit(path=MEMORY_PATH, expected_hash=memory_edit.expected_hash, data=updated[MEMORY_PATH]))
    paths = {edit.path for edit in changed}
    return [*(edit for edit in edits if edit.path not in paths), *changed]


async def _read_topics_after(files: FileStore, edited: dict[str, Edit]) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the topics after the edits, and the versions on which they are based, by path."""
    paths = {info.path for info in await files.list(TOPICS)} | edited.keys()
    topics, versions = {}, {}
    for path in sorted(paths):
        if path.startswith(f"{TOPICS}/") and path.endswith(".md"):
            edit = edited.get(path) or await _unchanged_edit(files, path)
            versions[path] = edit.expected_hash
            if edit.data is not None:
                topics[path] = edit.data
    return versions, topics


async def _unchanged_edit(files: FileStore, path: str) -> Edit:
    stored = await files.read(path)
    return Edit(path=path, expected_hash=stored.version, data=stored.data)


_SHORTEN_ADVICE = (
    "Shorten what you wrote in it, or put some of it into a topic such as memory/topics/NAME.md, and try again."
)


async def add_room_edits(
    files: FileStore, edits: Sequence[Edit], config: ConsolidationConfig, *, best_effort: bool = False
) -> list[Edit]:
    """Return the edits, with edits that move memories to topics if MEMORY.md would exceed its bounds.

    If that makes too little room, an error is raised; with `best_effort` as many are moved as possible.

    Raises: IndexTooLarge.
    """
    edited = {edit.path: edit for edit in edits}
    edit = edited.get(MEMORY_PATH)
    if edit is None or edit.data is None:
        return [*edits]
    stored_memory = await _read_if_exists(files, MEMORY_PATH)
    before = stored_memory.data if stored_memory else b""
    if config.bounds.find_growth(before, edit.data) is None:
        return [*edits]
    stored = {info.path: await files.read(info.path) for info in await files.list(TOPICS) if _is_topic(info.path)}
    topics = {path: one.data for path, one in stored.items()}
    for path, one in edited.items():
        if _is_topic(path):
            topics[path] = one.data or b""
            if one.data is None:
                del topics[path]
    moved = await run_sync(_move_to_topics, edit.data, topics, config)
    if not best_effort:
        config.bounds.check(before, moved[MEMORY_PATH], advice=_SHORTEN_ADVICE)
    for path, data in moved.items():
        if data != (edited[path].data if path in edited else topics.get(path)):
            expected = edited[path].expected_hash if path in edited else _version_or_absent(stored.get(path))
            edited[path] = Edit(path=path, expected_hash=expected, data=data)
    return [*edited.values()]


def _move_to_topics(memory: bytes, topics: Mapping[str, bytes], config: ConsolidationConfig) -> dict[str, bytes]:
    """Return MEMORY.md within its bounds as far as possible, and the topics with the moved entries."""
    document = parse_memory_document(memory, MEMORY_PATH)
    movable_entries = [part.entry for part in document.parts if part.entry and is_movable(part)]
    # a line that was in MEMORY.md before may stay, however long
    longest = max((len(entry.content) for entry in movable_entries), default=0)
    wide_config = replace(config, index_characters=max(config.index_characters, longest))
    documents = {path: parse_memory_document(data, path) for path, data in topics.items()}
    placement = place_entries(document, documents, (), (), wide_config, originals=topics)
    return {path: one.data for path, one in placement.documents.items()}


def _is_topic(path: str) -> bool:
    return path.startswith(f"{TOPICS}/") and path.endswith(".md")


def _version_or_absent(stored: StoredFile | None) -> str:
    return stored.version if stored else ABSENT


async def _read_if_exists(files: FileStore, path: str) -> StoredFile | None:
    try:
        return await files.read(path)
    except FileMissing:
        return None


async def build_session_edits(
    files: FileStore, contents: Sequence[str], ids: Collection[str], *, sessions: Collection[str] = ()
) -> list[Edit]:
    """Return the edits that remove the entries with these `ids`, and text that repeats `contents`, from session files.

    In the files of `sessions`, where the entries were said, paraphrases are removed too. An unreadable file is not
    changed.
    """
    statements, edits = ContentIndex(contents), []
    for info in await files.list(SESSIONS):
        name = info.path.removeprefix(f"{SESSIONS}/")
        if not name.endswith(".md") or "/" in name or name.startswith("."):
            continue
        try:
            stored = await files.read(info.path)
        except (FileMissing, StorageError):
            continue
        data = await run_sync(
            _remove_mentions, stored.data, info.path.removeprefix(f"{WORKSPACE}/"), statements, ids, sessions
        )
        if data != stored.data:
            edits.append(Edit(path=info.path, expected_hash=stored.version, data=data))
    return edits


def _remove_mentions(
    data: bytes, path: str, statements: ContentIndex, ids: Collection[str], sessions: Collection[str]
) -> bytes:
    file = parse_session(data, path)
    contents = statements.candidates(data.decode("utf-8", "replace"))
    masked = mask_session(file, contents, ids, fuzzy=file.session in sessions) if file else None
    return data if masked is None or masked == file else update_session(data, path, masked)


_NEAR_OVERLAP = 0.5
_MAX_LENGTH_RATIO = 2


async def build_profile_edits(
    files: FileStore, entries: Sequence[Entry], *, by_hand: bool, message_ids: Collection[tuple[str, str]] = ()
) -> list[Edit]:
    """Return the edits that remove the content of `entries` from the profiles of a root.

    A fact is removed if it has the same words, or was learned from the same words of the same message. With `by_hand`
    facts that a person added are removed too, and paraphrases in facts and summaries. A fact that was learned from one
    of the messages `message_ids`, as (session, id), then needs only half of the words. An unreadable profile is not
    changed.
    """
    sources, edits = _EntryIndex(entries), []
    for info in await files.list(WORKSPACE):
        if not is_profile(info.path):
            continue
        try:
            stored = await files.read(info.path)
            data = await run_sync(
                partial(_remove_facts, stored.data, info.path, sources, by_hand=by_hand, message_ids=message_ids)
            )
        except (DocumentInvalid, FileMissing, StorageError):
            continue
        if data != stored.data:
            edits.append(Edit(path=info.path, expected_hash=stored.version, data=data))
    return edits


class _EntryIndex:
    """Finds which of many entries a fact may state."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.contents = [entry.content for entry in entries]
        self._by_text: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            for text in dict.fromkeys((entry.content, entry.source.quote or entry.content)):
                self._by_text[text].append(entry)
        self._statements = ContentIndex(self._by_text)

    def candidates(self, fact: Fact) -> list[Entry]:
        """Return the entries that the fact may state; one may be returned twice."""
        texts = self._statements.candidates(f"{fact.content}\n{fact.source.quote}")
        return [entry for text in texts for entry in self._by_text[text]]


def _remove_facts(
    data: bytes, path: str, sources: _EntryIndex, *, by_hand: bool, message_ids: Collection[tuple[str, str]]
) -> bytes:
    profile = parse_profile(data, path).profile
    removed_ids = {
        fact.id
        for fact in profile.facts
        if (by_hand or not fact.is_protected)
        and any(
            _states_same(fact, entry) or (by_hand and _states_similar(fact, entry, message_ids))
            for entry in sources.candidates(fact)
        )
    }
    rest = profile
    removed = ContentIndex([*sources.contents, *(fact.content for fact in profile.facts if fact.id in removed_ids)])
    for content in removed.candidates("\n".join(each.summary for each in profile.summaries.values())):
        rest = remove_statement(rest, content)
        rest = remove_partial_statement(rest, content) if by_hand else rest
    if not removed_ids and rest == profile:
        return data
    return render_edited_profile(decode_json(data), removed_ids, rest)


def _states_same(fact: Fact, entry: Entry) -> bool:
    if split_words(fact.content) == split_words(entry.content):
        return True
    source, quote = fact.source, entry.source.quote or entry.content
    is_same_source = source.thread == entry.source.session and source.messages[:1] == entry.source.messages[:1]
    return is_same_source and bool(source.messages) and split_words(source.quote) == split_words(quote)


def _states_similar(fact: Fact, entry: Entry, message_ids: Collection[tuple[str, str]]) -> bool:
    if any((fact.source.thread, name) in message_ids for name in fact.source.messages):
        return repeats_partly(fact.content, [entry.content], min_overlap=_NEAR_OVERLAP) or repeats_any(
            fact.content, [entry.content]
        )
    is_brief = len(content_words(fact.content)) <= _MAX_LENGTH_RATIO * len(content_words(entry.content))
    return is_brief and repeats_any(fact.content, [entry.content])


_OTHER_SECTION = "Notes"
_SECTION_ORDER = ("Topics", *SECTIONS.values(), _OTHER_SECTION)


def move_faded(memory: bytes, archive: bytes, faded: Collection[str]) -> tuple[bytes, bytes | None]:
    """Return MEMORY.md and the archive with the entries `faded` in the archive; None for an archive without entries.

    Entries of the archive that are not among them return to the sections of their kinds. An empty `archive` stands for
    none.
    """
    document = parse_memory_document(memory, MEMORY_PATH)
    topic = parse_memory_document(archive or FADED_HEAD, FADED_TOPIC)
    leaving = [part for part in document.parts if part.entry and part.entry.id in faded and _may_leave(part)]
    returning = [part for part in topic.parts if part.entry and part.entry.id not in faded and _may_return(part)]
    document = document.without({part.entry.id for part in leaving if part.entry})
    for title in {part.section for part in leaving}:
        document = document.without_section(title)
    topic = _append(topic.without({part.entry.id for part in returning if part.entry}), leaving)
    for part in returning:
        title = SECTIONS.get(part.entry.kind, _OTHER_SECTION) if part.entry else _OTHER_SECTION
        document = _append(document.with_section(title, _SECTION_ORDER), [part], title)
    return document.data, None if is_empty_topic(topic) else topic.data


def _may_leave(part: DocumentPart) -> bool:
    return is_movable(part) and part.entry is not None and part.entry.state == "active"


def _may_return(part: DocumentPart) -> bool:
    """Tell whether the archive made this bullet, and it still holds; what a person wrote under a heading stays."""
    return part.is_named and part.entry is not None and part.entry.state == "active" and not part.section


def _append(document: MemoryDocument, parts: Sequence[DocumentPart], section: str = "") -> MemoryDocument:
    ends = [replace(part, section=section, data=part.data.rstrip(b"\n") + b"\n") for part in parts]
    return document.insert_all(ends, lambda *_: False)


async def add_return_edits(
    files: FileStore, edits: Sequence[Edit], entry_id: str, config: ConsolidationConfig
) -> list[Edit]:
    """Return the edits of a mark, with those that return the marked entry from the archive to MEMORY.md."""
    edited = {edit.path: edit for edit in edits}
    archive, memory = edited.get(FADED_TOPIC), edited.get(MEMORY_PATH)
    if archive is None or archive.data is None:
        return [*edits]
    current = (memory.data or b"", memory.expected_hash) if memory else await read_or_empty(files, MEMORY_PATH)
    kept = archived_ids(archive.data) - {entry_id}
    moves = await plan_archive_edits(files, current, (archive.data, archive.expected_hash), kept, config)
    paths = {move.path for move in moves}
    return [*(edit for edit in edits if edit.path not in paths), *moves]


async def plan_archive_edits(
    files: FileStore,
    memory: tuple[bytes, str],
    archive: tuple[bytes, str],
    faded: Collection[str],
    config: ConsolidationConfig,
) -> list[Edit]:
    """Return the edits that move the entries `faded` to the archive and the others back; none if nothing moves.

    `memory` and `archive` are the bytes and the versions of the two documents.
    """
    data, topic = await run_sync(move_faded, memory[0], archive[0], faded)
    if data == memory[0]:
        return []
    edits = [
        Edit(path=MEMORY_PATH, expected_hash=memory[1], data=data),
        Edit(path=FADED_TOPIC, expected_hash=archive[1], data=topic),
    ]
    listed = await add_topic_list_edits(files, edits, config)
    return await add_room_edits(files, listed, config, best_effort=True)


async def read_or_empty(files: FileStore, path: str) -> tuple[bytes, str]:
    """Return the bytes and the version of a document; empty and ABSENT if there is none."""
    with suppress(FileMissing):
        stored = await files.read(path)
        return stored.data, stored.version
    return b"", ABSENT


def archived_ids(document: bytes) -> frozenset[str]:
    """Return the ids of the entries in the archive."""
    return frozenset(located.entry.id for located in parse_entries(document, FADED_TOPIC))
