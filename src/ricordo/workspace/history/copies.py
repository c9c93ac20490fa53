"""Copies of forgotten entries in the records of a root: transcripts, states, journals and evicted results.

Each statement that repeats an entry gets a tombstone with its digest, and readers mask it. In evicted results it is
replaced.

Invariant: a record that can't be read is not changed, and the other records are still searched.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, StorageError
from ricordo.lazy import dataclass
from ricordo.messages import Message, decode_message
from ricordo.messages.json_text import loads
from ricordo.messages.types import JsonValue
from ricordo.storage import FileInfo, FileStore
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.change_sets import Edit
from ricordo.workspace.history.repetition import ContentIndex, contains_literally, mask_repetitions
from ricordo.workspace.history.tombstones import Tombstone, collect_texts, content_digest, find_repetitions
from ricordo.workspace.layout import LARGE_RESULTS, WORKSPACE, parse_record_path
from ricordo.workspace.ledger import read_all_entries

__all__ = ["RecordCopies", "find_copies"]


_AGENTS_FOLDER = f"{WORKSPACE}/agents"
_MAX_READ_BYTES = 8_000_000


@dataclass(frozen=True, kw_only=True)
class RecordCopies:
    """The copies found: `tombstones` for statements in records, `edits` of evicted results, and `texts` of statements.

    `near` are the messages of the exchanges that contain them, as (session, id).
    """

    tombstones: tuple[Tombstone, ...] = ()
    edits: tuple[Edit, ...] = ()
    texts: tuple[str, ...] = ()
    near: frozenset[tuple[str, str]] = field(default=frozenset())


async def find_copies(files: FileStore, entries: Sequence[Entry], *, key: bytes) -> RecordCopies:
    """Return the copies of `entries` in the transcripts, states, compactions and evicted results of a root."""
    search = _CopySearch(entries)
    copies: dict[tuple[str, str, str], None] = {}
    exchange_messages: set[tuple[str, str]] = set()
    for info in await files.list(_AGENTS_FOLDER):
        data = await _read_or_none(files, info)
        if data is None:
            continue
        record = parse_record_path(info.path)
        if record is None or record.is_set_aside or record.kind == "tasks":
            continue
        if record.kind == "transcript":
            statements, exchange = await run_sync(search.search_transcript, data, record.session)
            exchange_messages |= {(record.session, name) for name in exchange}
        else:
            statements = await run_sync(search.search_record, data)
            statements = [(record.session, "", text) for _, _, text in statements]
        copies |= dict.fromkeys(statements)
    edits = []
    for info in await files.list(LARGE_RESULTS):
        data = await _read_or_none(files, info)
        rest = await run_sync(search.mask, data) if data else data
        if data and rest and rest != data:
            stored = await files.read(info.path)
            edits.append(Edit(path=info.path, expected_hash=stored.version, data=search.mask(stored.data)))
    copies = await _drop_claimed(files, copies, entries, key)
    name = entries[0].id
    tombstones = [
        Tombstone(id=name, digest=content_digest(text, key) if text else "", session=session, message=message)
        for session, message, text in copies
    ]
    return RecordCopies(
        tombstones=tuple(dict.fromkeys(tombstones)),
        edits=tuple(edits),
        texts=tuple(dict.fromkeys(text for _, _, text in copies if text)),
        near=frozenset(exchange_messages),
    )


async def _drop_claimed(
    files: FileStore,
    copies: dict[tuple[str, str, str], None],
    entries: Sequence[Entry],
    key: bytes,
) -> dict[tuple[str, str, str], None]:
    """Return the copies without statements that are only similar and belong to another entry."""
    contents = ContentIndex(entry.content for entry in entries)
    similar = {row for row in copies if row[2] and not contains_literally(row[2], contents.candidates(row[2]))}
    if not similar:
        return copies
    entry_ids = {entry.id for entry in entries}
    others = [one.entry for one in await read_all_entries(files) if one.entry.id not in entry_ids]
    digests = {
        content_digest(text, key) for each in others for text in (each.content, each.source.quote or each.content)
    }
    return {row: None for row in copies if row not in similar or content_digest(row[2], key) not in digests}


async def _read_or_none(files: FileStore, info: FileInfo) -> bytes | None:
    try:
        return (await files.read(info.path)).data
    except (FileMissing, StorageError):
        return None


class _CopySearch:
    """Searches records for the content of entries, and compares a text only with contents that it may repeat."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        quotes = [each.source.quote for each in entries if each.source.quote]
        self._index = ContentIndex([*(each.content for each in entries), *quotes])
        self._by_source: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for each in entries:
            for name in each.source.messages:
                self._by_source[each.source.session or "", name] |= dict.fromkeys(
                    filter(None, (each.content, each.source.quote))
                )

    def search_transcript(self, data: bytes, session: str) -> tuple[list[tuple[str, str, str]], set[str]]:
        """Return the statements found, as (session, message, statement), and the messages of the same exchanges."""
        sources = {name: contents for (place, name), contents in self._by_source.items() if place == session}
        names = [name.encode() for name in sources]
        lines = data.split(b"\n")
        if not any(self._may_contain(line) or any(name in line for name in names) for line in lines):
            return [], set()
        statements: list[tuple[str, str, str]] = []
        exchange_ids: set[str] = set()
        for exchange in _group_exchanges(_decode_messages(lines)):
            repeated: dict[str, None] = {}
            for message in exchange:
                repeated |= dict.fromkeys(self._find_repeated(message)) | sources.get(message.id, {})
            if not repeated:
                continue
            exchange_ids |= {message.id for message in exchange}
            for message in exchange:
                repetitions = find_repetitions(collect_texts(message), [*repeated], fuzzy=True)
                statements += [(session, message.id, text) for text in repetitions]
                if not repetitions and message.id in sources:
                    statements.append((session, message.id, ""))
        return statements, exchange_ids

    def search_record(self, data: bytes) -> list[tuple[str, str, str]]:
        """Return the statements found in a state or a journal, such as those of summaries."""
        statements: list[tuple[str, str, str]] = []
        for line in data.split(b"\n"):
            if candidates := self._index.candidates(line.decode("utf-8", "replace")):
                try:
                    texts = list(_iter_texts(loads(line)))
                except InvalidMessage:
                    continue
                statements += [("", "", text) for text in find_repetitions(texts, candidates)]
        return statements

    def mask(self, data: bytes) -> bytes:
        """Return an evicted result with the statements masked; binary results are returned unchanged."""
        if len(data) > _MAX_READ_BYTES:
            return data
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data
        candidates = self._index.candidates(text)
        return mask_repetitions(text, candidates).encode() if candidates else data

    def _find_repeated(self, message: Message) -> list[str]:
        """Return the contents that a message repeats."""
        texts = collect_texts(message)
        return [each for each in self._index.candidates("\n".join(texts)) if find_repetitions(texts, [each])]

    def _may_contain(self, data: bytes) -> bool:
        return bool(self._index.candidates(data.decode("utf-8", "replace")))


def _decode_messages(lines: Sequence[bytes]) -> Iterator[Message]:
    for line in lines:
        if line.startswith(b"{"):
            try:
                yield decode_message(line)
            except InvalidMessage:
                continue


def _group_exchanges(messages: Iterator[Message]) -> Iterator[list[Message]]:
    """Group messages into exchanges, each from one user message up to the next."""
    exchange: list[Message] = []
    for message in messages:
        if message.role == "user" and exchange:
            yield exchange
            exchange = []
        exchange.append(message)
    if exchange:
        yield exchange


def _iter_texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _iter_texts(each)
        case dict():
            for each in value.values():
                yield from _iter_texts(each)
        case _:
            return
