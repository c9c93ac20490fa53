"""Transcript: the lossless log of a session, one message a line, appended and never rewritten.

A message is durable when `append` returns. A message whose id is in the log is not written again, so a replay adds
nothing; several processes may append to one log, each sees the union. An append reads only what others added since
the last look, so its cost does not grow with the log. A line that can't be read, such as one torn by a crash, is
reported and hides no other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

from ricordo.concurrency import run_in_thread
from ricordo.errors import FileMissing, InvalidMessage
from ricordo.guard.redact import Redactor
from ricordo.messages import Message
from ricordo.messages.codec import decode_message, encode_message
from ricordo.messages.identity import find_overlap, fingerprint, with_ids, with_parents
from ricordo.storage import FileStore
from ricordo.workspace.redaction import redact_message

__all__ = ["AppendResult", "BrokenLine", "Transcript", "TranscriptContents", "read_transcript", "read_transcript_from"]

_LOCK_COUNT = 16


@dataclass(frozen=True, kw_only=True)
class BrokenLine:
    """A line (1-based) of a log that holds no message, and why."""

    line: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class TranscriptContents:
    """What a log holds: its messages in order, the 1-based line and the byte offset of each, and the broken lines.

    Lines are counted from where reading began, offsets from the start of the log.
    """

    messages: tuple[Message, ...] = ()
    lines: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    broken: tuple[BrokenLine, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AppendResult:
    """What an append did: `messages` as they are stored, of which those in `added` were new."""

    messages: tuple[Message, ...] = ()
    added: tuple[str, ...] = field(default=())


class Transcript:
    """One session's log; keep it open to append cheaply."""

    def __init__(self, files: FileStore, path: str, *, session: str, redactor: Redactor) -> None:
        """Use the log at `path`; nothing is read or written yet."""
        self._files = files
        self._path = path
        self._session = session
        self._redactor = redactor
        self._ids: dict[str, str] = {}
        """The messages of the log in their order: their fingerprints by id."""
        self._fingerprint_counts: Counter[str] = Counter()
        self._last: str | None = None
        self._end = 0

    async def append(
        self, messages: Iterable[Message], *, known: Mapping[str, int] | None = None, again: bool = False
    ) -> AppendResult:
        """Write the messages that the log does not hold, durably, and return all of them as stored.

        Secrets are replaced, missing ids and parents given. `known` counts, by fingerprint, what came before these
        messages in the conversation they are taken from; None when they follow what the log holds. With `again` they
        may begin with messages that the log holds already, as `find_overlap` tells. Raises: StorageFull,
        StorageReadOnly, StorageBusy; then none of them is written.
        """
        clean = await run_in_thread(_redact_all, list(messages), self._redactor)
        async with self._files.lock(f"transcript-{crc32(self._path.encode()) % _LOCK_COUNT:x}"):
            await self._catch_up()
            named, new, data = await run_in_thread(self._prepare_messages, clean, known, again)
            if new:
                appended = await self._files.append(self._path, data)
                if appended.offset == self._end:
                    await self._add_lines(data)
                else:
                    await self._catch_up()
        return AppendResult(messages=tuple(named), added=tuple(message.id for message in new))

    async def read(self) -> TranscriptContents:
        """Return everything in the log; empty when there is none."""
        return await read_transcript(self._files, self._path)

    def _prepare_messages(
        self,
        clean: list[Message],
        known: Mapping[str, int] | None,
        again: bool,  # noqa: FBT001 - a step of `append`
    ) -> tuple[list[Message], list[Message], bytes]:
        """Return the messages with their ids, those that the log does not hold, and the lines of these."""
        held = self._match_recorded(clean) if again else []
        rest = clean[len(held) :]
        named = [
            *held,
            *with_ids(rest, session=self._session, known=self._fingerprint_counts if known is None else known),
        ]
        new = self._select_new(named)
        return named, new, b"".join(map(encode_message, with_parents(new, after=self._last)))

    def _match_recorded(self, messages: Sequence[Message]) -> list[Message]:
        """Return those of the first messages that the log holds already, with the ids that they have there."""
        given = [fingerprint(message) if not message.id else self._ids.get(message.id) for message in messages]
        held = [*self._ids]
        found = find_overlap([*self._ids.values()], given)
        return [replace(message, id=held[at]) for message, at in zip(messages, found, strict=False)]

    def _select_new(self, messages: Iterable[Message]) -> list[Message]:
        new: dict[str, Message] = {}
        for message in messages:
            if message.id not in self._ids:
                new.setdefault(message.id, message)
        return list(new.values())

    async def _catch_up(self) -> None:
        """Take in the whole lines that were appended since the last look; all lines when the log was cut or removed."""
        try:
            data = await self._files.read_from(self._path, max(0, self._end - 1))
            if self._end and not data.startswith(b"\n"):
                self._reset()
                data = await self._files.read_from(self._path, 0)
        except FileMissing:
            self._reset()
            return
        data = data[1:] if self._end else data
        whole = data[: data.rfind(b"\n") + 1]
        # a last line may lack nothing but its end; taking it in makes the next look begin anew
        whole = data if _decode_lines(data[len(whole) :])[0] else whole
        if whole:
            await self._add_lines(whole)

    async def _add_lines(self, whole: bytes) -> None:
        """Take in the lines that stand next in the log."""
        for name, said in await run_in_thread(_fingerprint_lines, whole):
            self._ids[name] = said
            self._fingerprint_counts[said] += 1
            self._last = name
        self._end += len(whole)

    def _reset(self) -> None:
        self._ids.clear()
        self._fingerprint_counts.clear()
        self._last, self._end = None, 0


async def read_transcript(files: FileStore, path: str) -> TranscriptContents:
    """Return everything in the log at `path`; a missing log is an empty one.

    A message whose parent stood on a broken line follows the message before it, so the chain has no hole.
    """
    try:
        stored = await files.read(path)
    except FileMissing:
        return TranscriptContents()
    return await run_in_thread(_parse_log, stored.data, 0)


async def read_transcript_from(
    files: FileStore, path: str, *, offset: int, message_id: str
) -> TranscriptContents | None:
    """Return what the log holds from byte `offset` on; None when the message `message_id` does not stand there."""
    try:
        data = await files.read_from(path, max(0, offset - 1))
    except FileMissing:
        return None
    if offset and not data.startswith(b"\n"):
        return None
    logged = await run_in_thread(_parse_log, data[1:] if offset else data, offset)
    first = (logged.messages[0].id, logged.offsets[0]) if logged.messages else None
    return logged if first == (message_id, offset) else None


def _parse_log(data: bytes, offset: int) -> TranscriptContents:
    found, broken, starts = _decode_lines(data)
    messages = list(found.values())
    if broken:
        messages = _relink_parents(messages)
    return TranscriptContents(
        messages=tuple(messages),
        lines=tuple(found),
        offsets=tuple(offset + start for start in starts),
        broken=tuple(broken),
    )


def _redact_all(messages: Iterable[Message], redactor: Redactor) -> list[Message]:
    return [redact_message(message, redactor) for message in messages]


def _fingerprint_lines(whole: bytes) -> list[tuple[str, str]]:
    """Return the id and the fingerprint of each message of these lines."""
    return [(message.id, fingerprint(message)) for message in _decode_lines(whole)[0].values()]


def _decode_lines(data: bytes) -> tuple[dict[int, Message], list[BrokenLine], list[int]]:
    """Return the messages by line, the lines that hold none, and where the former begin."""
    found: dict[int, Message] = {}
    broken, starts = [], []
    start = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            if line.strip():
                found[number] = decode_message(line)
                starts.append(start)
        except InvalidMessage as error:
            broken.append(BrokenLine(line=number, reason=str(error)))
        start += len(line) + 1
    return found, broken, starts


def _relink_parents(messages: list[Message]) -> list[Message]:
    ids = {message.id for message in messages}
    chained: list[Message] = []
    for message in messages:
        lost = message.parent is not None and message.parent not in ids
        before = chained[-1].id if chained else None
        chained.append(replace(message, parent=before) if lost else message)
    return chained
