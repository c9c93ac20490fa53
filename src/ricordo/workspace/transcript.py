"""Transcript: the lossless log of a session, one message a line, append-only.

A message is durable when `append` returns. A message whose id is in the log is not written again, so a replay adds
nothing; several processes may append to one log, and each sees the union. An append reads only what others added since
the last read, so its cost does not grow with the log. A line that can't be read, such as one torn by a crash, is
reported and hides no other line.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from zlib import crc32

from ricordo.concurrency import run_in_thread
from ricordo.errors import FileMissing, InvalidMessage
from ricordo.guard.redact import Redactor
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.codec import decode_message, encode_message, find_overlap, fingerprint, with_ids, with_parents
from ricordo.storage import FileStore
from ricordo.workspace.redaction import redact_message

__all__ = ["AppendResult", "BrokenLine", "Transcript", "TranscriptContents", "read_transcript", "read_transcript_from"]

_LOCK_COUNT = 16


@dataclass(frozen=True, kw_only=True)
class BrokenLine:
    """A line (1-based) of a log without a valid message, and the reason."""

    line: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class TranscriptContents:
    """The content of a log: its messages in order, the 1-based line and byte offset of each, and the broken lines.

    Lines are counted from where reading began, offsets from the start of the log.
    """

    messages: tuple[Message, ...] = ()
    lines: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    broken: tuple[BrokenLine, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AppendResult:
    """The result of an append: `messages` as stored; `added` are the ids of the new ones."""

    messages: tuple[Message, ...] = ()
    added: tuple[str, ...] = field(default=())


class Transcript:
    """The log of one session; reuse it for cheap appends."""

    def __init__(self, files: FileStore, path: str, *, session: str, redactor: Redactor) -> None:
        """Use the log at `path`; nothing is read or written yet."""
        self._files = files
        self._path = path
        self._session = session
        self._redactor = redactor
        self._ids: dict[str, str] = {}
        """The fingerprints of the messages in the log by id, in order."""
        self._fingerprint_counts: Counter[str] = Counter()
        self._last: str | None = None
        self._end = 0
        self._without_fingerprint: list[Message] = []
        """Messages that were read, up to `_end`, and not processed yet: a session may never append."""

    async def append(
        self, messages: Iterable[Message], *, known: Mapping[str, int] | None = None, again: bool = False
    ) -> AppendResult:
        """Append the messages that the log lacks, durably, and return all of them as stored.

        Secrets are replaced, and missing ids and parents assigned. `known` counts, by fingerprint, the messages before
        these in their conversation; None if they follow the messages in the log. With `again` they may begin with
        messages that the log already has, as determined by `find_overlap`. Raises: StorageFull, StorageReadOnly,
        StorageBusy; then none of them is written.
        """
        clean = await run_in_thread(_redact_all, list(messages), self._redactor)
        async with self._files.lock(f"transcript-{crc32(self._path.encode()) % _LOCK_COUNT:x}"):
            await self._add_messages(self._without_fingerprint)
            await self._catch_up()
            identified, new, data = await run_in_thread(self._prepare_messages, clean, known, again)
            if new:
                appended = await self._files.append(self._path, data)
                if appended.offset == self._end:
                    await self._add_lines(data)
                else:
                    await self._catch_up()
        return AppendResult(messages=tuple(identified), added=tuple(message.id for message in new))

    async def select_unknown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages whose ids are not in the log; all of them if one has no id.

        It is cheaper than an append that adds nothing, as nothing is redacted. Raises: StorageBusy.
        """
        if not all(message.id for message in messages):
            return messages
        async with self._files.lock(f"transcript-{crc32(self._path.encode()) % _LOCK_COUNT:x}"):
            await self._add_messages(self._without_fingerprint)
            await self._catch_up()
        return [message for message in messages if message.id not in self._ids]

    async def read(self) -> TranscriptContents:
        """Return everything in the log; empty if there is no log. The next append reads only what is added later."""
        try:
            stored = await self._files.read(self._path)
        except FileMissing:
            return TranscriptContents()
        contents = await run_in_thread(_parse_log, stored.data, 0)
        self._reset()
        end = stored.data.rfind(b"\n") + 1
        complete = zip(contents.messages, contents.offsets, strict=True)
        self._without_fingerprint, self._end = [each for each, start in complete if start < end], end
        return contents

    def _prepare_messages(
        self,
        clean: list[Message],
        known: Mapping[str, int] | None,
        again: bool,  # noqa: FBT001 - a step of `append`
    ) -> tuple[list[Message], list[Message], bytes]:
        """Return the messages with their ids, those that the log lacks, and the lines of the latter."""
        recorded = self._match_recorded(clean) if again else []
        rest = clean[len(recorded) :]
        identified = [
            *recorded,
            *with_ids(rest, session=self._session, counts=self._fingerprint_counts if known is None else known),
        ]
        new = self._select_new(identified)
        return identified, new, b"".join(map(encode_message, with_parents(new, after=self._last)))

    def _match_recorded(self, messages: Sequence[Message]) -> list[Message]:
        """Return the leading messages that the log already has, with their ids in the log."""
        fingerprints = [fingerprint(message) if not message.id else self._ids.get(message.id) for message in messages]
        recorded_ids = [*self._ids]
        overlap = find_overlap([*self._ids.values()], fingerprints)
        return [replace(message, id=recorded_ids[index]) for message, index in zip(messages, overlap, strict=False)]

    def _select_new(self, messages: Iterable[Message]) -> list[Message]:
        new: dict[str, Message] = {}
        for message in messages:
            if message.id not in self._ids:
                new.setdefault(message.id, message)
        return list(new.values())

    async def _catch_up(self) -> None:
        """Read the complete lines appended since the last read; all lines if the log was cut or removed."""
        try:
            data = await self._files.read_from(self._path, max(0, self._end - 1))
            if self._end and not data.startswith(b"\n"):
                self._reset()
                data = await self._files.read_from(self._path, 0)
        except FileMissing:
            self._reset()
            return
        data = data[1:] if self._end else data
        complete = data[: data.rfind(b"\n") + 1]
        # a complete last line may lack its line end; the next read then starts over
        complete = data if _decode_lines(data[len(complete) :])[0] else complete
        if complete:
            await self._add_lines(complete)

    async def _add_lines(self, data: bytes) -> None:
        """Process the next lines of the log."""
        self._end += len(data)
        await self._add_messages(list((await run_in_thread(_decode_lines, data))[0].values()))

    async def _add_messages(self, messages: list[Message]) -> None:
        self._without_fingerprint = []
        for name, message_fingerprint in await run_in_thread(_fingerprint_messages, messages) if messages else ():
            self._ids[name] = message_fingerprint
            self._fingerprint_counts[message_fingerprint] += 1
            self._last = name

    def _reset(self) -> None:
        self._ids.clear()
        self._fingerprint_counts.clear()
        self._without_fingerprint = []
        self._last, self._end = None, 0


async def read_transcript(files: FileStore, path: str) -> TranscriptContents:
    """Return everything in the log at `path`; a missing log is empty.

    A message whose parent is on a broken line is linked to the message before it, so the chain has no gap.
    """
    try:
        stored = await files.read(path)
    except FileMissing:
        return TranscriptContents()
    return await run_in_thread(_parse_log, stored.data, 0)


async def read_transcript_from(
    files: FileStore, path: str, *, offset: int, message_id: str
) -> TranscriptContents | None:
    """Return the log from byte `offset` on; None if the message `message_id` does not start there."""
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
    by_line, broken, starts = _decode_lines(data)
    messages = list(by_line.values())
    if broken:
        messages = _relink_parents(messages)
    return TranscriptContents(
        messages=tuple(messages),
        lines=tuple(by_line),
        offsets=tuple(offset + start for start in starts),
        broken=tuple(broken),
    )


def _redact_all(messages: Iterable[Message], redactor: Redactor) -> list[Message]:
    return [redact_message(message, redactor) for message in messages]


def _fingerprint_messages(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """Return the id and the fingerprint of each message."""
    return [(message.id, fingerprint(message)) for message in messages]


def _decode_lines(data: bytes) -> tuple[dict[int, Message], list[BrokenLine], list[int]]:
    """Return the messages by line, the broken lines, and the start offsets of the messages."""
    by_line: dict[int, Message] = {}
    broken, starts = [], []
    start = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            if line.strip():
                by_line[number] = decode_message(line)
                starts.append(start)
        except InvalidMessage as error:
            broken.append(BrokenLine(line=number, reason=str(error)))
        start += len(line) + 1
    return by_line, broken, starts


def _relink_parents(messages: list[Message]) -> list[Message]:
    ids = {message.id for message in messages}
    chained: list[Message] = []
    for message in messages:
        is_orphan = message.parent is not None and message.parent not in ids
        before = chained[-1].id if chained else None
        chained.append(replace(message, parent=before) if is_orphan else message)
    return chained
