"""Flush: what a session taught since the last look goes to the ledger, once.

A cursor per session says how far it was extracted. Before a block goes to the ledger the cursor keeps the block
itself, so whoever finds it there after a crash writes what is missing of it, and nothing is lost or added twice.
Extraction holds no lock: who finds that somebody else moved the cursor meanwhile begins anew.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from zlib import crc32

from anyio.to_thread import run_sync

from ricordo.clock import Clock, Ids, milliseconds
from ricordo.errors import VersionConflict
from ricordo.files import FileStore
from ricordo.flush.backlog import log_after
from ricordo.flush.cursor import Cursor, load_cursor, save_cursor
from ricordo.flush.extract import extract
from ricordo.flush.recovery import ever_extracted, settled_cursor
from ricordo.flush.saved import saved_words
from ricordo.flush.types import Finding
from ricordo.guard.redact import Redactor
from ricordo.language import words
from ricordo.messages import Message
from ricordo.scopes import Scope
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.layout import cursor_path, transcript_path
from ricordo.workspace.ledger import Block, append_block, render_block
from ricordo.workspace.redaction import redacted_entry
from ricordo.workspace.tombstones import content_digest, read_tombstones

__all__ = ["CORRECTION", "Flushed", "Flusher"]

CORRECTION = "correction"
"""The tag of an entry that takes the place of something said before."""

_CONTEXT = 6
_LOCKS = 16


@dataclass(frozen=True, kw_only=True)
class Flushed:
    """What a flush did: the block it wrote (None when nothing was learned) and how many messages it read."""

    block: Block | None = None
    messages: int = 0


@dataclass(frozen=True, kw_only=True)
class Flusher:
    """Extracts the new messages of sessions into the ledger; `key` recognises what was forgotten."""

    files: FileStore
    redactor: Redactor
    key: bytes
    clock: Clock
    ids: Ids
    extract: Callable[[Sequence[Message]], Sequence[Finding]] = extract

    async def flush(self, agent: str, session: str, *, scope: Scope | None = None) -> Flushed:
        """Extract what the session's transcript holds after its cursor, durably, and move the cursor.

        `scope` is stamped on the entries. A second flush without new messages does nothing.
        """
        path = cursor_path(agent, session)
        while True:
            cursor = await self._settled(path, session)
            logged = await log_after(self.files, transcript_path(agent, session), cursor)
            position = cursor.position(message.id for message in logged.messages)
            new = logged.messages[position:]
            if not new:
                return Flushed()
            context = logged.messages[max(0, position - _CONTEXT) : position]
            entries = await self._entries(session, context, new, scope)
            if cursor.rebuilt:
                entries = await self._unknown(session, entries)
            start = max(0, len(logged.messages) - _CONTEXT)
            moved = cursor.moved(
                [message.id for message in new], place=logged.offsets[start], anchor=logged.messages[start].id
            )
            with suppress(VersionConflict):
                return Flushed(block=await self._write(moved, entries), messages=len(new))

    @asynccontextmanager
    async def _lock(self, path: str) -> AsyncIterator[None]:
        async with self.files.lock(f"flush-{crc32(path.encode()) % _LOCKS:x}"):
            yield

    async def _settled(self, path: str, session: str) -> Cursor:
        cursor = await load_cursor(self.files, path)
        if not cursor.damaged and not cursor.next:
            return cursor
        async with self._lock(path):
            return await settled_cursor(self.files, path, session)

    async def _entries(
        self, session: str, context: Sequence[Message], new: Sequence[Message], scope: Scope | None
    ) -> list[Entry]:
        fresh = {message.id for message in new}
        # nothing is written yet, so who is cancelled need not wait for the end of it
        findings = await run_sync(self.extract, [*context, *new], abandon_on_cancel=True)
        forgotten = (await read_tombstones(self.files)).digests
        saved = saved_words([*context, *new])
        now = self.clock.now()
        return [
            Entry(
                content=finding.content,
                kind=finding.kind,
                tags=(*finding.tags, *([CORRECTION] if finding.corrects else [])),
                id=self.ids.new(),
                time=now,
                since=milliseconds(finding.since) if finding.since else None,
                scope=scope,
                by="flush",
                source=Source(session=session, messages=finding.message_ids, quote=_other_words(finding)),
                confidence=finding.confidence,
            )
            for finding in findings
            if not fresh.isdisjoint(finding.message_ids)
            and words(finding.content) not in saved
            and (not forgotten or content_digest(finding.content, self.key) not in forgotten)
        ]

    async def _unknown(self, session: str, entries: list[Entry]) -> list[Entry]:
        """Leave out what was extracted from the same messages before."""
        known = {(entry.source.messages, entry.content) for entry in await ever_extracted(self.files, session)}
        return [
            entry
            for entry in entries
            if (entry.source.messages, redacted_entry(entry, self.redactor).content) not in known
        ]

    async def _write(self, cursor: Cursor, entries: list[Entry]) -> Block | None:
        """Append the entries and move the cursor. Raises `VersionConflict` before when somebody else moved it."""
        async with self._lock(cursor.at):
            if (await load_cursor(self.files, cursor.at)).version != cursor.version:
                raise VersionConflict(f"{cursor.at} changed since it was read.")
            if not entries:
                await save_cursor(self.files, cursor.settled())
                return None
            rendered = await render_block(self.files, self.clock.today(), entries, self.redactor)
            ledger = await self.files.info(rendered.path)
            intent = replace(
                cursor,
                path=rendered.path,
                block=rendered.data.decode("utf-8", "surrogatepass"),
                offset=ledger.size if ledger else 0,
            )
            intent = await save_cursor(self.files, intent)
            block = await append_block(self.files, rendered)
            await save_cursor(self.files, intent.settled())
            return block


def _other_words(finding: Finding) -> str | None:
    """Return what was said, unless the content says it in the same words: a line need not say it twice."""
    return None if finding.quote == finding.content else finding.quote
