"""Flush: what a session taught since the last look goes to the ledger, once.

A cursor per session says how far it was extracted. Before a block goes to the ledger the cursor keeps the block
itself, so whoever finds it there after a crash writes what is missing of it, and nothing is lost or added twice.
Extraction holds no lock: who finds that somebody else moved the cursor meanwhile begins anew. A model reads a long
delta in parts, each of which is written and settled before the next one is asked for.

What somebody else learned from messages goes the same way, so no message is extracted by both.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from zlib import crc32

from ricordo.clock import Clock, Ids, milliseconds
from ricordo.errors import VersionConflict
from ricordo.files import FileStore
from ricordo.flush.backlog import log_after
from ricordo.flush.cursor import Cursor, load_cursor, save_cursor
from ricordo.flush.extract import extract
from ricordo.flush.extraction import Delta, Extracted, Extraction, Rules, RulesExtraction, accepted
from ricordo.flush.outside import repeats_a_tool
from ricordo.flush.recovery import ever_extracted, settled_cursor
from ricordo.flush.reference import known_words
from ricordo.flush.repeats import Recalled
from ricordo.flush.saved import saved_words
from ricordo.flush.section import SectionMaker
from ricordo.flush.types import Finding
from ricordo.guard.redact import Redactor
from ricordo.language import words
from ricordo.language.signals import SignalDetector, bundled
from ricordo.messages import Message, mark_of
from ricordo.scopes import Scope
from ricordo.uncut import uncut_in_thread
from ricordo.workspace.changes import CURATION_LOCK
from ricordo.workspace.entry import FROM_OUTSIDE, Entry, Source
from ricordo.workspace.layout import cursor_path, transcript_path
from ricordo.workspace.ledger import Block, append_block, render_block
from ricordo.workspace.redaction import all_redacted_beside
from ricordo.workspace.tombstones import content_digest, read_tombstones
from ricordo.workspace.transcript import Logged, read_log

__all__ = ["CORRECTION", "Flushed", "Flusher"]

CORRECTION = "correction"
"""The tag of an entry that takes the place of something said before."""

_CONTEXT = 6
_LOCKS = 16


@dataclass(frozen=True, kw_only=True)
class Flushed:
    """What a flush did: the block it wrote (None when nothing was learned) and how many messages it read.

    `more` says that it read only a part of what is new, `requests` how often a model was asked, and `notes` what went
    otherwise than it should. `entries` are all that were written, those of earlier parts included.
    """

    block: Block | None = None
    messages: int = 0
    more: bool = False
    requests: int = 0
    notes: tuple[str, ...] = ()
    before: tuple[Entry, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was written, in its order."""
        return (*self.before, *(self.block.entries if self.block else ()))

    @property
    def counts(self) -> dict[str, int]:
        """How many messages were read, how many entries written, and how often a model was asked, if it was."""
        asked = {"requests": self.requests} if self.requests else {}
        return {"messages": self.messages, "entries": len(self.entries), **asked}

    def then(self, later: "Flushed") -> "Flushed":
        """Return what both parts did, the later one last; `block` is the last that was written."""
        return replace(
            later,
            block=later.block or self.block,
            messages=self.messages + later.messages,
            requests=self.requests + later.requests,
            notes=(*self.notes, *later.notes),
            before=self.entries if later.block else self.before,
        )


@dataclass(frozen=True, kw_only=True)
class _Ahead:
    """What a log holds around its cursor, which stands before the message number `position`."""

    cursor: Cursor
    logged: Logged
    position: int

    @property
    def messages(self) -> Sequence[Message]:
        return self.logged.messages[self.position :]

    @property
    def context(self) -> Sequence[Message]:
        return self.logged.messages[max(0, self.position - _CONTEXT) : self.position]

    def through(self, ids: Collection[str]) -> Sequence[Message]:
        """Return the messages after the cursor up to the last of `ids`; empty when none of them stands there."""
        found = max((number for number, each in enumerate(self.messages, start=1) if each.id in ids), default=0)
        return self.messages[:found]

    def passed(self, messages: Sequence[Message]) -> Cursor:
        """Return the cursor on its way past `messages`, which are the first ones after it."""
        start = max(0, self.position + len(messages) - _CONTEXT)
        return self.cursor.moved(
            [message.id for message in messages],
            place=self.logged.offsets[start],
            anchor=self.logged.messages[start].id,
        )


@dataclass(frozen=True, kw_only=True)
class Flusher:
    """Extracts the new messages of sessions into the ledger.

    `key` recognises what was forgotten, `detector` recognises signals, `remembered` gives the memories that are nearest
    to a text.
    """

    files: FileStore
    redactor: Redactor
    key: bytes
    clock: Clock
    ids: Ids
    extract: Rules = extract
    model: Extraction | None = None
    sections: Sequence[SectionMaker] = ()
    detector: SignalDetector = field(default_factory=bundled)
    remembered: Callable[[str], Awaitable[Sequence[str]]] | None = None

    async def flush(
        self,
        agent: str,
        session: str,
        *,
        scope: Scope | None = None,
        by_rules: bool = False,
        signals: frozenset[str] = frozenset(),
        trace: str = "",
    ) -> Flushed:
        """Extract what the session's transcript holds after its cursor, durably, and move the cursor.

        The model is asked where there is one, unless `by_rules`; then only the first part may be done, which is told.
        `scope` is stamped on the entries, `signals` and `trace` are told to sections. A second flush without new
        messages does nothing. Raises: ModelRateLimited, ModelTimeout, ModelUnavailable; then nothing is written.
        """
        while True:
            ahead = await self._ahead(agent, session)
            if not ahead.messages:
                return Flushed()
            delta = Delta(agent, session, scope, ahead.context, ahead.messages, signals, trace, self.detector)
            # of a cursor that was made anew only what the rules find can be told from what was found before
            asked = None if by_rules or ahead.cursor.rebuilt else self.model
            extracted = await (asked or self._rules)(delta)
            with suppress(VersionConflict):
                return await self._kept(ahead, delta, extracted)

    async def _kept(self, ahead: "_Ahead", delta: Delta, extracted: Extracted) -> Flushed:
        """Write what was extracted. Raises `VersionConflict` when somebody else was faster."""
        new = delta.new[: extracted.covers]
        entries = await self._drawn(delta, extracted)
        if ahead.cursor.rebuilt:
            entries = await self._unknown(delta.session, entries)
        wrong = await accepted(extracted, delta)
        return Flushed(
            block=await self._write(ahead.passed(new), entries),
            messages=len(new),
            more=len(new) < len(ahead.messages),
            requests=extracted.requests,
            notes=tuple(filter(None, [extracted.note, *wrong])),
        )

    async def again(self, agent: str, session: str, ids: Collection[str], *, scope: Scope | None = None) -> Flushed:
        """Extract these messages of a session once more by rules, durably, and leave the cursor where it is.

        `scope` is stamped on the entries.
        """
        messages = (await read_log(self.files, transcript_path(agent, session))).messages
        places = [number for number, message in enumerate(messages) if message.id in ids]
        done = Flushed()
        while places:
            cursor = await self._settled(cursor_path(agent, session), session)
            context = messages[max(0, places[0] - _CONTEXT) : places[0]]
            delta = Delta(agent, session, scope, context, [messages[number] for number in places])
            extracted = await self._rules(delta)
            entries = await self._drawn(delta, extracted)
            with suppress(VersionConflict):
                block = await self._write(replace(cursor, next=cursor.done), entries)
                part = Flushed(block=block, messages=extracted.covers, requests=extracted.requests)
                done, places = done.then(part), places[extracted.covers :]
        return done

    async def _drawn(self, delta: Delta, extracted: Extracted) -> list[Entry]:
        """Return the entries of what was extracted: what quotes the messages, and says nothing that is known."""
        texts = {message.id: _worded(message) for message in (*delta.context, *delta.new)}
        quoted = [each for each in extracted.findings if each.quote in texts.get(each.message_ids[0], "")]
        recalled = await uncut_in_thread(lambda: delta.read.recalled)
        findings = await self._unrepeated(quoted, (*delta.context, *delta.new), recalled)
        new = delta.new[: extracted.covers]
        return await uncut_in_thread(self._entries, delta.session, findings, delta.context, new, delta.scope)

    @property
    def _rules(self) -> RulesExtraction:
        return RulesExtraction(rules=self.extract, sections=self.sections)

    async def _unrepeated(
        self, findings: Sequence[Finding], messages: Sequence[Message], recalled: Sequence[str] = ()
    ) -> list[Finding]:
        """Leave out what only says again what memory holds, or said itself."""
        if not findings:
            return []
        known, said = await known_words(self.files, self.clock.today()), Recalled(recalled)
        people = {message.id for message in messages if message.role == "user"}

        def is_new(each: Finding) -> bool:
            is_known = not known.isdisjoint({words(each.content), words(each.quote)})
            return not (is_known or said.holds(each.content) or said.holds(each.quote))

        fresh = await uncut_in_thread(lambda: [each for each in findings if is_new(each)])
        return [each for each in fresh if not (people.isdisjoint(each.message_ids) and await self._is_echo(each))]

    async def _is_echo(self, finding: Finding) -> bool:
        """Tell whether memory holds what only the agent says: the prompt may have shown it, and keeps no record."""
        return self.remembered is not None and Recalled(await self.remembered(finding.content)).holds(finding.content)

    async def has_new(self, agent: str, session: str) -> bool:
        """Tell whether the session's transcript holds messages that were not extracted yet."""
        return bool((await self._ahead(agent, session)).messages)

    async def pending(self, agent: str, session: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Return those of the messages `ids` that were not extracted yet, in the order of the session's transcript."""
        ahead, wanted = await self._ahead(agent, session), frozenset(ids)
        return tuple(message.id for message in ahead.messages if message.id in wanted)

    async def learned(
        self,
        agent: str,
        session: str,
        findings: Sequence[Finding],
        *,
        pending: Collection[str],
        scope: Scope | None = None,
        signals: frozenset[str] = frozenset(),
        trace: str = "",
    ) -> Flushed:
        """Write what somebody learned from the messages `pending`, durably, and move the cursor past them.

        What stands between them in the transcript, such as a message that is pinned, is extracted here. Findings that
        rest only on messages before the cursor are left out, so a second call does nothing. Where a damaged cursor was
        made anew only what is extracted here can be told from what memory holds: then `findings` are not used.
        `scope`, `signals` and `trace` are those of `flush`. Raises:
        InvalidEntry when one of them can't be kept; then nothing is written.
        """
        asked = frozenset(pending)
        given = [finding for finding in findings if not asked.isdisjoint(finding.message_ids)]
        while True:
            ahead = await self._ahead(agent, session)
            if ahead.cursor.rebuilt:
                return await self.flush(agent, session, scope=scope, signals=signals, trace=trace)
            new = ahead.through(asked)
            if not new:
                return Flushed()
            between = {each.id for each in new if each.id not in asked and mark_of(each) in {None, "cut"}}
            delta = Delta(agent, session, scope, ahead.context, new, signals, trace, self.detector)
            rest = (await self._rules(delta)).findings if between else ()
            found = [*given, *(each for each in rest if not between.isdisjoint(each.message_ids[:1]))]
            sections = await self._rules.sectioned(delta, len(new))
            fresh = await self._unrepeated(found, new)
            entries = await uncut_in_thread(self._entries, session, fresh, ahead.context, new, scope)
            checked = [entry.checked() for entry in entries]
            wrong = await accepted(Extracted(findings=found, covers=len(new), sections=sections), delta)
            with suppress(VersionConflict):
                block = await self._write(ahead.passed(new), checked)
                return Flushed(block=block, messages=len(new), notes=tuple(wrong))

    async def _ahead(self, agent: str, session: str) -> _Ahead:
        cursor = await self._settled(cursor_path(agent, session), session)
        logged = await log_after(self.files, transcript_path(agent, session), cursor)
        return _Ahead(cursor=cursor, logged=logged, position=cursor.position(message.id for message in logged.messages))

    @asynccontextmanager
    async def _lock(self, path: str) -> AsyncIterator[None]:
        async with self.files.lock(f"flush-{crc32(path.encode()) % _LOCKS:x}"):
            yield

    async def _settled(self, path: str, session: str) -> Cursor:
        cursor = await load_cursor(self.files, path)
        if not cursor.damaged and not cursor.next:
            return cursor
        async with self._lock(path):
            return await settled_cursor(self.files, path, session, key=self.key)

    def _entries(
        self,
        session: str,
        findings: Sequence[Finding],
        context: Sequence[Message],
        new: Sequence[Message],
        scope: Scope | None,
    ) -> list[Entry]:
        """Return what `findings` say of `new`, but for what was saved while it was said."""
        fresh = {message.id for message in new}
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
                extra=(
                    *([("until", finding.until.isoformat())] if finding.until else []),
                    *([FROM_OUTSIDE] if repeats_a_tool(finding, [*context, *new]) else []),
                ),
                scope=scope,
                by="flush",
                source=Source(session=session, messages=finding.message_ids, quote=_other_words(finding)),
                confidence=finding.confidence,
            )
            for finding in findings
            if not fresh.isdisjoint(finding.message_ids) and words(finding.content) not in saved
        ]

    async def _unforgotten(self, entries: list[Entry]) -> list[Entry]:
        forgotten = (await read_tombstones(self.files)).digests
        return [entry for entry in entries if content_digest(entry.content, self.key) not in forgotten]

    async def _unknown(self, session: str, entries: list[Entry]) -> list[Entry]:
        """Leave out what was extracted from the same messages before."""
        known = {(entry.source.messages, entry.content) for entry in await ever_extracted(self.files, session)}
        stored = await all_redacted_beside(entries, self.redactor)
        pairs = zip(entries, stored, strict=True)
        return [entry for entry, clean in pairs if (entry.source.messages, clean.content) not in known]

    async def _write(self, cursor: Cursor, entries: list[Entry]) -> Block | None:
        """Append the entries that were not forgotten and move the cursor.

        Raises `VersionConflict` before when somebody else moved it.
        """
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._lock(cursor.at))
            if (await load_cursor(self.files, cursor.at)).version != cursor.version:
                raise VersionConflict(f"{cursor.at} changed since it was read.")
            if entries:
                # nothing is forgotten from here on until it is written
                await stack.enter_async_context(self.files.lock(CURATION_LOCK))
                entries = await self._unforgotten(entries)
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


def _worded(message: Message) -> str:
    """Return all that a message says, the calls and the results of tools in it included."""
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
    return "\n".join([message.text, *calls, *(result.text for result in message.tool_results)])


def _other_words(finding: Finding) -> str | None:
    """Return what was said, unless the content says it in the same words: a line need not say it twice."""
    return None if finding.quote == finding.content else finding.quote
