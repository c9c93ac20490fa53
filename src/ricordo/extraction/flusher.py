"""Flusher: writes the findings of a session since its cursor to the ledger, exactly once.

Before a block is appended the cursor stores the block itself, so its missing part is written after a crash. No lock is
held during extraction: if another process moved the cursor, the flush starts again. Findings from a summary request are
recorded in the same way, so no message is extracted twice.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import field, replace
from datetime import date
from zlib import crc32

from ricordo.clock import Clock, IdSource, truncate_to_milliseconds
from ricordo.concurrency import run_in_thread
from ricordo.errors import VersionConflict
from ricordo.events import count_refusals
from ricordo.extraction.contract import Finding, SectionFactory
from ricordo.extraction.cursor import (
    ExtractionCursor,
    load_cursor,
    load_extracted_entries,
    read_log_from_cursor,
    recover_cursor,
    save_cursor,
)
from ricordo.extraction.extractors import (
    ExtractionResult,
    Extractor,
    MessageDelta,
    RuleExtractor,
    RuleFunction,
    accept_sections,
)
from ricordo.extraction.known_memory import RecalledTexts, ToolOutput, collect_saved_words, load_known_words
from ricordo.extraction.rules import extract
from ricordo.guard.redact import Redactor
from ricordo.language import find_validity, split_words
from ricordo.language.acts import SignalDetector, default_detector
from ricordo.lazy import dataclass
from ricordo.messages import Message, get_mark
from ricordo.messages.types import get_origin
from ricordo.scope import Scope
from ricordo.storage import FileStore
from ricordo.workspace.entry import EXTERNAL_TRUST_FIELD, UNTIL_FIELD, Entry, Source, with_validity
from ricordo.workspace.history.change_sets import CURATION_LOCK
from ricordo.workspace.history.tombstones import content_digest, read_tombstones
from ricordo.workspace.layout import cursor_path, transcript_path
from ricordo.workspace.ledger import LedgerBlock, append_block, render_block
from ricordo.workspace.redaction import all_redacted_beside, screen_entry
from ricordo.workspace.transcript import TranscriptContents, read_transcript

__all__ = ["CORRECTION_TAG", "FlushResult", "Flusher"]


CORRECTION_TAG = "correction"
"""The tag of an entry that replaces an earlier statement."""
_CONTEXT_MESSAGES = 6
_LOCK_COUNT = 16


@dataclass(frozen=True, kw_only=True)
class FlushResult:
    """The result of a flush: the blocks it wrote, the last day's last, and the number of messages it read.

    `has_more` says that it read only a part of the new messages, `requests` counts the requests to a model, `refused`
    says why notes of a model were refused, a word for each, and `notes` report problems. `entries` are all entries
    written, including those of earlier parts.
    """

    blocks: tuple[LedgerBlock, ...] = ()
    messages: int = 0
    has_more: bool = False
    requests: int = 0
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    earlier_entries: tuple[Entry, ...] = ()

    @property
    def block(self) -> LedgerBlock | None:
        """The last block; None for no findings."""
        return self.blocks[-1] if self.blocks else None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries written, in order."""
        return (*self.earlier_entries, *(entry for block in self.blocks for entry in block.entries))

    @property
    def counts(self) -> dict[str, int]:
        """The number of messages read, of entries written and, if a model was called, of requests and refused notes."""
        request_counts = {"requests": self.requests} if self.requests else {}
        return {
            "messages": self.messages, "entries": len(self.entries), **request_counts, **count_refusals(self.refused)
        }  # fmt: skip

    def combine(self, later: "FlushResult") -> "FlushResult":
        """Return the sum of both parts, with `later` last; `blocks` are those of the last part that wrote some."""
        return replace(
            later,
            blocks=later.blocks or self.blocks,
            messages=self.messages + later.messages,
            requests=self.requests + later.requests,
            refused=(*self.refused, *later.refused),
            notes=(*self.notes, *later.notes),
            earlier_entries=self.entries if later.blocks else self.earlier_entries,
        )


@dataclass(frozen=True, kw_only=True)
class _PendingLog:
    """The part of a log around its cursor, which is before the message number `position`."""

    cursor: ExtractionCursor
    logged: TranscriptContents
    position: int

    @property
    def messages(self) -> Sequence[Message]:
        return self.logged.messages[self.position :]

    @property
    def context(self) -> Sequence[Message]:
        return self.logged.messages[max(0, self.position - _CONTEXT_MESSAGES) : self.position]

    def messages_through(self, ids: Collection[str]) -> Sequence[Message]:
        """Return the messages after the cursor up to the last of `ids`; empty if none of them is there."""
        count = max((number for number, each in enumerate(self.messages, start=1) if each.id in ids), default=0)
        return self.messages[:count]

    def advance_cursor(self, messages: Sequence[Message]) -> ExtractionCursor:
        """Return the cursor that is about to move past `messages`, the first ones after it."""
        start = max(0, self.position + len(messages) - _CONTEXT_MESSAGES)
        return self.cursor.advance(
            [message.id for message in messages],
            place=self.logged.offsets[start],
            anchor=self.logged.messages[start].id,
        )


@dataclass(frozen=True, kw_only=True)
class Flusher:
    """Extracts the new messages of sessions into the ledger.

    `key` identifies forgotten entries, `detector` detects signals, and `find_nearest` returns the entries nearest to a
    text.
    """

    files: FileStore
    redactor: Redactor
    key: bytes
    clock: Clock
    ids: IdSource
    extract: RuleFunction = extract
    model: Extractor | None = None
    sections: Sequence[SectionFactory] = ()
    detector: SignalDetector = field(default_factory=default_detector)
    find_nearest: Callable[[str], Awaitable[Sequence[str]]] | None = None

    async def flush(
        self,
        agent: str,
        session: str,
        *,
        scope: Scope | None = None,
        by_rules: bool = False,
        signals: frozenset[str] = frozenset(),
        trace: str = "",
    ) -> FlushResult:
        """Extract the messages of the session's transcript after its cursor, durably, and move the cursor.

        The model is used if there is one, unless `by_rules`; then only the first part may be extracted, as `has_more`
        says. `scope` is stored on the entries, `signals` and `trace` are passed to sections. A second flush without new
        messages does nothing. Raises: ModelRateLimited, ModelTimeout, ModelUnavailable; then nothing is written.
        """
        while True:
            pending_log = await self._read_pending(agent, session)
            if not pending_log.messages:
                return FlushResult()
            delta = MessageDelta(
                agent, session, scope, pending_log.context, pending_log.messages, signals, trace, self.detector
            )
            # With a rebuilt cursor, only findings of the rules can be compared with earlier findings.
            extractor = None if by_rules or pending_log.cursor.rebuilt else self.model
            extracted = await (extractor or self._rule_extractor)(delta)
            with suppress(VersionConflict):
                return await self._write_result(pending_log, delta, extracted)

    async def _write_result(
        self, pending_log: "_PendingLog", delta: MessageDelta, extracted: ExtractionResult
    ) -> FlushResult:
        """Write the extracted findings. Raises `VersionConflict` if another process moved the cursor first."""
        new = delta.new[: extracted.covers]
        entries = await self._build_entries(delta, extracted)
        if pending_log.cursor.rebuilt:
            entries = await self._drop_extracted(delta.session, entries)
        errors = await accept_sections(extracted, delta)
        return FlushResult(
            blocks=await self._write(pending_log.advance_cursor(new), entries, new),
            messages=len(new),
            has_more=len(new) < len(pending_log.messages),
            requests=extracted.requests,
            refused=extracted.refused,
            notes=tuple(filter(None, [extracted.note, *errors])),
        )

    async def extract_again(
        self, agent: str, session: str, ids: Collection[str], *, scope: Scope | None = None
    ) -> FlushResult:
        """Extract these messages of a session again by rules, durably, without moving the cursor.

        `scope` is stored on the entries.
        """
        messages = (await read_transcript(self.files, transcript_path(agent, session))).messages
        indices = [number for number, message in enumerate(messages) if message.id in ids]
        result = FlushResult()
        while indices:
            cursor = await self._recover_cursor(cursor_path(agent, session), session)
            context = messages[max(0, indices[0] - _CONTEXT_MESSAGES) : indices[0]]
            delta = MessageDelta(agent, session, scope, context, [messages[number] for number in indices])
            extracted = await self._rule_extractor(delta)
            entries = await self._build_entries(delta, extracted)
            with suppress(VersionConflict):
                blocks = await self._write(replace(cursor, next=cursor.done), entries, delta.new)
                part = FlushResult(blocks=blocks, messages=extracted.covers, requests=extracted.requests)
                result, indices = result.combine(part), indices[extracted.covers :]
        return result

    async def _build_entries(self, delta: MessageDelta, extracted: ExtractionResult) -> list[Entry]:
        """Return the entries of the findings that quote the messages and that memory does not hold already."""
        texts = {message.id: _searchable_text(message) for message in (*delta.context, *delta.new)}
        quoted = [each for each in extracted.findings if each.quote in texts.get(each.message_ids[0], "")]
        recalled = await run_in_thread(lambda: delta.processed_messages.recalled)
        findings = await self._drop_repeats(quoted, (*delta.context, *delta.new), recalled)
        new = delta.new[: extracted.covers]
        return await run_in_thread(self._to_entries, delta.session, findings, delta.context, new, delta.scope)

    @property
    def _rule_extractor(self) -> RuleExtractor:
        return RuleExtractor(rules=self.extract, sections=self.sections)

    async def _drop_repeats(
        self, findings: Sequence[Finding], messages: Sequence[Message], recalled: Sequence[str] = ()
    ) -> list[Finding]:
        """Drop findings that only repeat an entry or recalled text."""
        if not findings:
            return []
        known_words, recalled_texts = await load_known_words(self.files, self.clock.today()), RecalledTexts(recalled)
        user_message_ids = {message.id for message in messages if message.role == "user"}

        def is_new(each: Finding) -> bool:
            is_known = not known_words.isdisjoint({split_words(each.content), split_words(each.quote)})
            return not (is_known or recalled_texts.covers(each.content) or recalled_texts.covers(each.quote))

        new_findings = await run_in_thread(lambda: [each for each in findings if is_new(each)])
        return [
            each
            for each in new_findings
            if not (user_message_ids.isdisjoint(each.message_ids) and await self._is_echo(each))
        ]

    async def _is_echo(self, finding: Finding) -> bool:
        """Return whether an agent's statement repeats an entry, which the prompt may have shown without a record."""
        return self.find_nearest is not None and RecalledTexts(await self.find_nearest(finding.content)).covers(
            finding.content
        )

    async def has_new(self, agent: str, session: str) -> bool:
        """Return whether the session's transcript holds messages that were not extracted yet."""
        return bool((await self._read_pending(agent, session)).messages)

    async def is_conversation(self, agent: str, session: str) -> bool:
        """Return whether both sides say something in the messages that were not extracted yet or those before them."""
        log = await self._read_pending(agent, session)
        delta = MessageDelta(agent, session, None, log.context, log.messages, detector=self.detector)
        return bool(log.messages) and await run_in_thread(lambda: delta.processed_messages.has_both_sides)

    async def filter_pending(self, agent: str, session: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Return those of the messages `ids` that were not extracted yet, in transcript order."""
        pending_log, wanted_ids = await self._read_pending(agent, session), frozenset(ids)
        return tuple(message.id for message in pending_log.messages if message.id in wanted_ids)

    async def skip_pending(self, agent: str, session: str) -> None:
        """Move the cursor past all messages of a session, durably; an extraction that runs writes nothing of them."""
        while (pending_log := await self._read_pending(agent, session)).messages:
            with suppress(VersionConflict):
                await self._write(pending_log.advance_cursor(pending_log.messages), [], pending_log.messages)

    async def record_findings(
        self,
        agent: str,
        session: str,
        findings: Sequence[Finding],
        *,
        pending: Collection[str],
        scope: Scope | None = None,
        signals: frozenset[str] = frozenset(),
        trace: str = "",
    ) -> FlushResult:
        """Write findings from another request about the messages `pending`, durably, and move the cursor past them.

        Messages between them in the transcript, such as a pinned message, are extracted here. Findings based only on
        messages before the cursor are dropped, so a second call does nothing. With a rebuilt cursor, only findings
        extracted here can be compared with memory: then `findings` are not used. `scope`, `signals` and `trace` are
        those of `flush`.

        Raises: InvalidEntry if one of them cannot be stored; then nothing is written.
        """
        pending_ids = frozenset(pending)
        pending_findings = [finding for finding in findings if not pending_ids.isdisjoint(finding.message_ids)]
        while True:
            pending_log = await self._read_pending(agent, session)
            if pending_log.cursor.rebuilt:
                return await self.flush(agent, session, scope=scope, signals=signals, trace=trace)
            new = pending_log.messages_through(pending_ids)
            if not new:
                return FlushResult()
            extra_ids = {each.id for each in new if each.id not in pending_ids and get_mark(each) in {None, "cut"}}
            delta = MessageDelta(agent, session, scope, pending_log.context, new, signals, trace, self.detector)
            extra_findings = (await self._rule_extractor(delta)).findings if extra_ids else ()
            all_findings = [
                *pending_findings,
                *(each for each in extra_findings if not extra_ids.isdisjoint(each.message_ids[:1])),
            ]
            sections = await self._rule_extractor.build_sections(delta, len(new))
            new_findings = await self._drop_repeats(all_findings, new)
            entries = await run_in_thread(self._to_entries, session, new_findings, pending_log.context, new, scope)
            validated = [entry.validate() for entry in entries]
            errors = await accept_sections(
                ExtractionResult(findings=all_findings, covers=len(new), sections=sections), delta
            )
            with suppress(VersionConflict):
                blocks = await self._write(pending_log.advance_cursor(new), validated, new)
                return FlushResult(blocks=blocks, messages=len(new), notes=tuple(errors))

    async def _read_pending(self, agent: str, session: str) -> _PendingLog:
        cursor = await self._recover_cursor(cursor_path(agent, session), session)
        logged = await read_log_from_cursor(self.files, transcript_path(agent, session), cursor)
        return _PendingLog(
            cursor=cursor, logged=logged, position=cursor.position(message.id for message in logged.messages)
        )

    @asynccontextmanager
    async def _lock(self, path: str) -> AsyncIterator[None]:
        async with self.files.lock(f"flush-{crc32(path.encode()) % _LOCK_COUNT:x}"):
            yield

    async def _recover_cursor(self, path: str, session: str) -> ExtractionCursor:
        cursor = await load_cursor(self.files, path)
        if not cursor.damaged and not cursor.next:
            return cursor
        async with self._lock(path):
            return await recover_cursor(self.files, path, session, key=self.key)

    def _to_entries(
        self,
        session: str,
        findings: Sequence[Finding],
        context: Sequence[Message],
        new: Sequence[Message],
        scope: Scope | None,
    ) -> list[Entry]:
        """Return the entries of `findings` about `new`, without those that the conversation saved itself."""
        new_ids = {message.id for message in new}
        saved_words = collect_saved_words([*context, *new])
        origins = {message.id: origin for message in new if (origin := get_origin(message))}
        tools = ToolOutput([*context, *new])
        now = self.clock.now()
        entries = [
            Entry(
                content=finding.content,
                kind=finding.kind,
                tags=(*finding.tags, *([CORRECTION_TAG] if finding.corrects else [])),
                id=self.ids.new(),
                time=now,
                since=truncate_to_milliseconds(finding.since) if finding.since else None,
                extra=(
                    *([(UNTIL_FIELD, finding.until.isoformat())] if finding.until else []),
                    *([EXTERNAL_TRUST_FIELD] if tools.is_repeated(finding.message_ids[0], finding.quote) else []),
                ),
                scope=scope,
                by="flush",
                source=Source(
                    session=session,
                    messages=finding.message_ids,
                    quote=_distinct_quote(finding),
                    origin=next((origins[name] for name in finding.message_ids if name in origins), None),
                ),
                confidence=finding.confidence,
            )
            for finding in findings
            if not new_ids.isdisjoint(finding.message_ids) and split_words(finding.content) not in saved_words
        ]
        validities = [find_validity(entry.content, entry.said_at or now) for entry in entries]
        return [
            screen_entry(with_validity(entry, start=validity.start, end=validity.end))
            for entry, validity in zip(entries, validities, strict=True)
        ]

    async def _drop_forgotten(self, entries: list[Entry]) -> list[Entry]:
        forgotten_digests = (await read_tombstones(self.files)).digests
        return [entry for entry in entries if content_digest(entry.content, self.key) not in forgotten_digests]

    async def _drop_extracted(self, session: str, entries: list[Entry]) -> list[Entry]:
        """Drop entries that were extracted from the same messages before."""
        extracted = {
            (entry.source.messages, entry.content) for entry in await load_extracted_entries(self.files, session)
        }
        stored = await all_redacted_beside(entries, self.redactor)
        pairs = zip(entries, stored, strict=True)
        return [entry for entry, clean in pairs if (entry.source.messages, clean.content) not in extracted]

    async def _write(
        self, cursor: ExtractionCursor, entries: list[Entry], messages: Sequence[Message]
    ) -> tuple[LedgerBlock, ...]:
        """Append the entries that were not forgotten to the ledgers of the days of their messages; move the cursor.

        The cursor holds all of them until the last one is written: after a crash, what is missing goes to the ledger of
        the last day. Raises `VersionConflict` before writing if another process moved it.
        """
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._lock(cursor.file_path))
            if (await load_cursor(self.files, cursor.file_path)).version != cursor.version:
                raise VersionConflict(f"{cursor.file_path} changed since it was read.")
            if entries:
                # Hold the lock, so that nothing is forgotten until the entries are written.
                await stack.enter_async_context(self.files.lock(CURATION_LOCK))
                entries = await self._drop_forgotten(entries)
            if not entries:
                await save_cursor(self.files, cursor.complete())
                return ()
            days: defaultdict[date, list[Entry]] = defaultdict(list)
            message_days = {message.id: _ledger_day(message, self.clock) for message in messages}
            for entry in entries:
                own_days = (message_days[name] for name in entry.source.messages if name in message_days)
                days[max(own_days, default=self.clock.today())].append(entry)
            rendered = [await render_block(self.files, day, days[day], self.redactor) for day in sorted(days)]
            ledger = await self.files.info(rendered[-1].path)
            intent = replace(
                cursor,
                path=rendered[-1].path,
                block=b"".join(block.data for block in rendered).decode("utf-8", "surrogatepass"),
                offset=ledger.size if ledger else 0,
            )
            intent = await save_cursor(self.files, intent)
            blocks = [await append_block(self.files, block) for block in rendered]
            await save_cursor(self.files, intent.complete())
            return tuple(blocks)


def _ledger_day(message: Message, clock: Clock) -> date:
    """Return the day in whose ledger what a message says belongs: that of the message, and never a later one.

    What was said on the clock's present day belongs to `clock.today()`, in whatever zone that is.
    """
    today, present = clock.today(), clock.now().astimezone().date()
    day = message.time.astimezone().date() if message.time else today
    return today if day == present else min(day, today)


def _searchable_text(message: Message) -> str:
    """Return the whole text of a message, including its tool calls and results."""
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
    return "\n".join([message.text, *calls, *(result.text for result in message.tool_results)])


def _distinct_quote(finding: Finding) -> str | None:
    """Return the quote, unless it equals the content: a line need not contain it twice."""
    return None if finding.quote == finding.content else finding.quote
