"""Copies: find where the records of a root repeat what is forgotten.

Transcripts, states and journals of compactions are not changed. Each statement in them that repeats it gets a
tombstone with its digest, and readers hide statements with these digests, see `ricordo.workspace.forgotten`. In evicted
results the statements are replaced.

Invariant: a record that can't be read is not changed, and the others are searched all the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, StorageError
from ricordo.files import FileInfo, FileStore
from ricordo.language import content_words
from ricordo.messages import Message, decode
from ricordo.messages.jsontext import loads
from ricordo.messages.types import JsonValue
from ricordo.workspace.changes import Edit
from ricordo.workspace.entry import Entry
from ricordo.workspace.forgotten import copies, texts_of
from ricordo.workspace.layout import LARGE_RESULTS, WORKSPACE, record_of
from ricordo.workspace.ledger import read_memory
from ricordo.workspace.striking import says_literally, struck
from ricordo.workspace.tombstones import Tombstone, content_digest

__all__ = ["Copies", "copies_of"]

_AGENTS = f"{WORKSPACE}/agents"
_ROOT = 4
_MOST_READ = 8_000_000


@dataclass(frozen=True, kw_only=True)
class Copies:
    """What was found: `stones` for the statements in records, `edits` of evicted results, and `texts`, the statements.

    `near` are the messages of the exchanges in which they occur, as (session, id).
    """

    stones: tuple[Tombstone, ...] = ()
    edits: tuple[Edit, ...] = ()
    texts: tuple[str, ...] = ()
    near: frozenset[tuple[str, str]] = field(default=frozenset())


async def copies_of(files: FileStore, entries: Sequence[Entry], *, key: bytes) -> Copies:
    """Return where transcripts, states, compactions and evicted results of a root repeat what `entries` say."""
    search = _Search(entries)
    found: dict[tuple[str, str, str], None] = {}
    near: set[tuple[str, str]] = set()
    for info in await files.list(_AGENTS):
        data = await _data(files, info)
        if data is None:
            continue
        record = record_of(info.path)
        if record is None or record.aside or record.kind == "tasks":
            continue
        if record.kind == "transcript":
            said, exchange = await run_sync(search.in_transcript, data, record.session)
            near |= {(record.session, name) for name in exchange}
        else:
            said = await run_sync(search.in_record, data)
            said = [(record.session, "", text) for _, _, text in said]
        found |= dict.fromkeys(said)
    edits = []
    for info in await files.list(LARGE_RESULTS):
        data = await _data(files, info)
        rest = await run_sync(search.struck, data) if data else data
        if data and rest and rest != data:
            stored = await files.read(info.path)
            edits.append(Edit(path=info.path, expected=stored.version, data=search.struck(stored.data)))
    found = await _unclaimed(files, found, entries, key)
    name = entries[0].id
    stones = [
        Tombstone(id=name, digest=content_digest(text, key) if text else "", session=session, message=message)
        for session, message, text in found
    ]
    return Copies(
        stones=tuple(dict.fromkeys(stones)),
        edits=tuple(edits),
        texts=tuple(dict.fromkeys(text for _, _, text in found if text)),
        near=frozenset(near),
    )


async def _unclaimed(
    files: FileStore, found: dict[tuple[str, str, str], None], entries: Sequence[Entry], key: bytes
) -> dict[tuple[str, str, str], None]:
    """Return what was found, without statements that only sound alike and belong to another memory."""
    contents = [entry.content for entry in entries]
    guesses = {row for row in found if row[2] and not says_literally(row[2], contents)}
    if not guesses:
        return found
    gone = {entry.id for entry in entries}
    others = [one.entry for one in await read_memory(files) if one.entry.id not in gone]
    said = {content_digest(text, key) for each in others for text in (each.content, each.source.quote or each.content)}
    return {row: None for row in found if row not in guesses or content_digest(row[2], key) not in said}


async def _data(files: FileStore, info: FileInfo) -> bytes | None:
    try:
        return (await files.read(info.path)).data
    except (FileMissing, StorageError):
        return None


class _Search:
    """Searches records for what these entries say, and parses only records that may contain it."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._contents = [*dict.fromkeys(each.content for each in entries)]
        self._contents += [quote for each in entries if (quote := each.source.quote) and quote not in self._contents]
        self._sources = {(each.source.session or "", name) for each in entries for name in each.source.messages}
        self._roots = [[word[:_ROOT] for word in dict.fromkeys(content_words(each))] for each in self._contents]

    def in_transcript(self, data: bytes, session: str) -> tuple[list[tuple[str, str, str]], set[str]]:
        """Return the statements found, as (session, message, statement), and the messages of the same exchanges."""
        sources = {name for place, name in self._sources if place == session}
        lines = data.split(b"\n")
        if not any(self._may_say(line) or any(name.encode() in line for name in sources) for line in lines):
            return [], set()
        exchanges = list(_exchanges(_messages(lines)))
        found: list[tuple[str, str, str]] = []
        near: set[str] = set()
        for exchange in exchanges:
            direct = [
                message for message in exchange if message.id in sources or copies(texts_of(message), self._contents)
            ]
            if not direct:
                continue
            near |= {message.id for message in exchange}
            for message in exchange:
                said = copies(texts_of(message), self._contents, near=True)
                found += [(session, message.id, text) for text in said]
                if not said and message.id in sources:
                    found.append((session, message.id, ""))
        return found, near

    def in_record(self, data: bytes) -> list[tuple[str, str, str]]:
        """Return the statements found in a state or a journal, such as those of summaries."""
        found: list[tuple[str, str, str]] = []
        for line in data.split(b"\n"):
            if self._may_say(line):
                try:
                    texts = list(_texts(loads(line)))
                except InvalidMessage:
                    continue
                found += [("", "", text) for text in copies(texts, self._contents)]
        return found

    def struck(self, data: bytes) -> bytes:
        """Return an evicted result without the statements; one that is not text is returned as it is."""
        try:
            text = data.decode() if len(data) <= _MOST_READ and self._may_say(data) else ""
        except UnicodeDecodeError:
            return data
        return struck(text, self._contents).encode() if text else data

    def _may_say(self, data: bytes) -> bool:
        text = data.decode("utf-8", "replace").casefold()
        return any(2 * sum(root in text for root in roots) >= len(roots) for roots in self._roots)


def _messages(lines: Sequence[bytes]) -> Iterator[Message]:
    for line in lines:
        if line.startswith(b"{"):
            try:
                yield decode(line)
            except InvalidMessage:
                continue


def _exchanges(messages: Iterator[Message]) -> Iterator[list[Message]]:
    """Yield the messages from each message of a user up to the next one."""
    exchange: list[Message] = []
    for message in messages:
        if message.role == "user" and exchange:
            yield exchange
            exchange = []
        exchange.append(message)
    if exchange:
        yield exchange


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            for each in value.values():
                yield from _texts(each)
        case _:
            return
