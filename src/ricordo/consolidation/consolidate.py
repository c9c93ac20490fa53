"""Consolidate: orient, gather what is new, decide, and write one change set, in four phases that are reported.

Everything is decided on what was read; if any of it changed before the change set is written, the run begins anew with
the advice that it has. The cursor moves after the change set: who dies in between reads the same entries again and
finds them curated. No lock is held but while the change set is written, so nobody waits for a model, or for a run that
itself waits until a turn is over.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.consolidation.asking import Adviser, rules_alone
from ricordo.consolidation.check import faults
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.cursor import Cursor, line_digests, save_cursor
from ricordo.consolidation.dream import Dreams, closed_gate, load_dreams, save_dreams, session_marks
from ricordo.consolidation.gather import ACT, Gathered, Gatherer
from ricordo.consolidation.lease import lease
from ricordo.consolidation.outcome import Consolidated, counts_of, difference
from ricordo.consolidation.plan import due, propose
from ricordo.consolidation.types import Advice, Proposal
from ricordo.consolidation.waiting import Waiting, basis_of, drop_waiting, keep_waiting, load_waiting
from ricordo.courtesy import AtOnce, Courtesy, giving_way
from ricordo.errors import StorageBusy, VersionConflict
from ricordo.events import Emitter
from ricordo.files import ABSENT, FileStore, version_of
from ricordo.guard.redact import Redactor
from ricordo.scopes import Scope
from ricordo.tasks import Progress, Report
from ricordo.workspace.changes import CURATION_LOCK, ChangeSets, Edit
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import LEDGERS, TOPICS, WORKSPACE, is_ledger, ledger_date
from ricordo.workspace.tombstones import read_tombstones

__all__ = [
    "ACT",
    "BUSY",
    "NOTHING_NEW",
    "NOTHING_WAITS",
    "REJECTED",
    "STALE",
    "TOO_SOON",
    "WAITS",
    "WHO",
    "Consolidated",
    "Consolidator",
]

WHO = "consolidation"
NOTHING_NEW = "nothing new"
TOO_SOON = "too soon after the last run"
BUSY = "another consolidation runs"

REJECTED = "rejected"
WAITS = "a proposal waits for approval"
NOTHING_WAITS = "no proposal waits"
STALE = "memory changed since the proposal was made"

_SUPERSEDED = b"[state:: superseded]"
_TRIES = 8
_STEPS = 4


@dataclass(kw_only=True)
class _Run:
    """One run: how it was asked for, and what it has got so far."""

    force: bool
    report: Report
    courtesy: Courtesy
    again: bool = False
    deep: bool = False
    asks: bool = False
    hold: bool = False
    who: str = WHO
    dreams: Dreams = field(default_factory=Dreams)
    advice: Advice | None = None


class Consolidator:
    """Makes curated memory of the ledgers of one workspace."""

    def __init__(
        self,
        *,
        files: FileStore,
        changes: ChangeSets,
        redactor: Redactor,
        clock: Clock,
        key: bytes,
        config: ConsolidationConfig | None = None,
        adviser: Adviser | None = None,
        courtesy: Callable[[], Courtesy] = AtOnce,
        used: Callable[[], Awaitable[Mapping[str, int]]] | None = None,
        emitter: Emitter | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Work on `files`; `key` is the root's, by which what was forgotten is recognised.

        `adviser` asks a model, None leaves everything to the rules. `courtesy` gives each run its own, by which it
        rests before each step, and within them gives way to what is more urgent. `used` tells by id how much memories
        were of use.
        """
        self._files = files
        self._changes = changes
        self._clock = clock
        self._config = config or ConsolidationConfig()
        self._adviser = adviser
        self._courtesy = courtesy
        self._emitter = emitter or Emitter(clock)
        self._scope = scope
        self._used = used or _unused
        self._gatherer = Gatherer(files=files, changes=changes, redactor=redactor, key=key, config=self._config)

    async def consolidate(
        self,
        *,
        force: bool = False,
        again: bool = False,
        deep: bool = False,
        asks: bool = True,
        hold: bool = False,
        who: str = WHO,
        report: Report | None = None,
    ) -> Consolidated:
        """Curate what the ledgers hold since the last run, and with `deep` all that is curated anew.

        Skipped when there is nothing new, when the last run is less than `min_gap` ago, unless `force`, and while
        another process does it. With `again` all ledgers are read anew, also what a person took back by undo. Without
        `asks` no model has a say. With `hold` nothing is written: the proposal waits for `approve`. History says that
        `who` asked for it. `report` is told of each of the four steps; a cancellation before the last one leaves
        memory as it was.

        Raises: StorageError if curated memory can't be read or written; then neither it nor the cursor changes.
        """
        asks = asks and self._adviser is not None
        forced = force or again or deep
        run = _Run(
            force=forced, again=again, deep=deep, asks=asks, hold=hold, who=who, report=report or _untold,
            courtesy=self._courtesy(),
        )  # fmt: skip
        return await self._alone(run)

    async def approve(self, *, who: str = WHO, report: Report | None = None) -> Consolidated:
        """Carry out the proposal that waits; skipped when none does, and when memory changed since it was made.

        Raises as `consolidate`.
        """
        waiting = await load_waiting(self._files)
        if waiting is None:
            return Consolidated(skipped=NOTHING_WAITS)
        gathered = await self._gatherer.gather(deep=waiting.deep)
        if basis_of(gathered.versions, deep=waiting.deep) != waiting.basis:
            return Consolidated(skipped=STALE, deep=waiting.deep)
        run = _Run(force=True, deep=waiting.deep, who=who, report=report or _untold, courtesy=self._courtesy())
        run.advice = waiting.advice
        return await self._alone(run)

    async def _alone(self, run: _Run) -> Consolidated:
        deep = run.deep
        try:
            if not (deep or run.asks):
                return await self._run(run)
            async with lease(self._files, self._clock) as is_ours:
                return await self._run(run) if is_ours else Consolidated(skipped=BUSY, deep=deep)
        except StorageBusy:
            return Consolidated(skipped=BUSY, deep=deep)

    async def preview(self, *, again: bool = False, deep: bool = False, asks: bool = True) -> Proposal:
        """Return what a forced run would write now; nothing is written. Raises as `consolidate`."""
        courtesy = self._courtesy()
        with giving_way(courtesy):
            gathered = await self._gatherer.gather(again=again, deep=deep)
            gathered = replace(gathered, material=replace(gathered.material, used=await self._used()))
            advice = await self._adviser(gathered.material, courtesy.rest) if self._adviser and asks else None
            if advice and advice.flaw:
                return Proposal(rejected=advice.flaw)
            proposal = await run_sync(propose, gathered.material, self._config, advice, abandon_on_cancel=True)
        return replace(proposal, note=advice.note if advice else "")

    async def why_no_dream(self, *, quiet: float, without: Collection[str] = ()) -> str:
        """Return why it is no time for a dream that nobody asked for; empty when it is.

        `quiet` are the seconds since anybody said anything, `without` names the sessions that are at work.
        """
        last, now = await load_dreams(self._files), self._clock.now()
        marks = await session_marks(self._files, without=without)
        changed = len(marks - last.sessions)
        return closed_gate(last, now=now, changed=changed, quiet=quiet, config=self._config)

    async def _run(self, run: _Run) -> Consolidated:
        await self._oriented(run)
        for left in reversed(range(_TRIES)):
            gathered = await self._gathered(run)
            done, overtaken = await self._pass(run, gathered, last=not left)
            if done is not None:
                break
            if not left:
                raise VersionConflict("Memory changed while it was consolidated, again and again.")
        if overtaken:
            # what was saved or forgotten while this was written is looked at once more, whatever comes of it
            later = _Run(force=True, who=run.who, report=run.report, courtesy=run.courtesy)
            with suppress(VersionConflict):
                await self._pass(later, await self._gatherer.gather(), told=False)
        assert done is not None
        return done

    async def _oriented(self, run: _Run) -> None:
        """Look at what is there, before anything is read."""
        await run.courtesy.rest()
        with self._emitter.stage("orient", self._scope) as progress:
            if run.deep or run.asks:
                run.dreams = await load_dreams(self._files)
            paths = [info.path for info in await self._files.list(LEDGERS)]
            topics = sum(path.startswith(f"{TOPICS}/") for path in paths)
            progress.counts.update(ledgers=sum(map(is_ledger, paths)), topics=topics)
            progress.reason = "dream" if run.deep else None

    async def _gathered(self, run: _Run) -> Gathered:
        await run.courtesy.rest()
        run.report(_step(0, "gathering what is new"))
        with self._emitter.stage("gather", self._scope) as progress:
            with giving_way(run.courtesy):
                gathered = await self._gatherer.gather(again=run.again, deep=run.deep)
            if gathered.read or run.deep:
                material = replace(gathered.material, used=await self._used())
                gathered = replace(gathered, material=material)
            progress.counts.update(entries=gathered.read, waiting=gathered.waiting)
        return gathered

    async def _pass(
        self, run: _Run, gathered: Gathered, *, told: bool = True, last: bool = False
    ) -> tuple[Consolidated | None, bool]:
        """Decide, check and write once, and tell whether somebody wrote meanwhile; None if that was before it wrote.

        The `last` one minds no ledger that only grew: what was added is read by the next run.
        """
        emitter = self._emitter if told else Emitter(self._clock)
        await run.courtesy.rest()
        with emitter.stage("consolidate", self._scope) as progress:
            with giving_way(run.courtesy):
                proposal, skipped = await self._proposed(run, gathered)
            done = _done(run, gathered, proposal, skipped)
            progress.counts.update(counts_of(done))
            progress.reason = done.note or None
            progress.failed = skipped if skipped.startswith(REJECTED) else None
            progress.skipped = skipped if skipped and progress.failed is None else None
        if skipped:
            return done, False
        await run.courtesy.rest()
        with emitter.stage("prune", self._scope) as progress:
            run.report(_step(2, "checking the proposal"))
            with giving_way(run.courtesy):
                wrong = await run_sync(faults, gathered.material, proposal, self._config, abandon_on_cancel=True)
            if wrong:
                progress.failed = f"{REJECTED}: {wrong[0]}"
                return Consolidated(
                    read=gathered.read, skipped=progress.failed, note=done.note, cost=done.cost, deep=run.deep
                ), False
            if run.hold:
                progress.skipped = WAITS
                basis = basis_of(gathered.versions, deep=run.deep)
                await keep_waiting(self._files, Waiting(basis=basis, advice=run.advice, deep=run.deep))
                return replace(done, skipped=WAITS), False
            run.report(_step(3, f"writing {len(proposal.documents)} files"))
            try:
                async with self._files.lock(CURATION_LOCK):
                    await self._check_unchanged(gathered, growing=last)
                    done = replace(done, change_id=await self._write(run, gathered, proposal))
            except VersionConflict:
                progress.skipped = "memory changed meanwhile"
                return None, False
            progress.reason = f"as many as its {done.cap} allow stand in MEMORY.md" if done.cap else None
            progress.counts.update(await run_sync(difference, gathered.material.documents, proposal.documents))
        return done, await self._changed_since(gathered, proposal.documents)

    async def _proposed(self, run: _Run, gathered: Gathered) -> tuple[Proposal, str]:
        """Return what is to be written, and why nothing is."""
        if not run.force and gathered.read and not self._due(gathered):
            return Proposal(), TOO_SOON
        waiting = await load_waiting(self._files) if run.hold else None
        if waiting and waiting.basis == basis_of(gathered.versions, deep=run.deep or waiting.deep):
            return Proposal(), WAITS
        run.report(_step(1, f"placing {gathered.read} new entries"))
        if run.asks and run.advice is None:
            run.advice = await self._advice(run, gathered)
        if run.advice and run.advice.flaw:
            await save_dreams(self._files, replace(run.dreams, refused=run.dreams.refused + 1))
            return Proposal(), f"{REJECTED}: {run.advice.flaw}"
        proposal = await run_sync(propose, gathered.material, self._config, run.advice, abandon_on_cancel=True)
        if not proposal.documents and not gathered.read and not run.deep:
            return proposal, NOTHING_NEW
        return proposal, ""

    async def _advice(self, run: _Run, gathered: Gathered) -> Advice | None:
        if self._adviser is None:
            return None
        if run.dreams.refused >= self._config.attempts:
            return Advice(note=rules_alone(f"the model's answers were of no use {run.dreams.refused} times"))
        return await self._adviser(gathered.material, run.courtesy.rest)

    def _due(self, gathered: Gathered) -> bool:
        return due(self._clock.now(), gathered.cursor.at, gathered.read + gathered.waiting, self._config)

    async def _write(self, run: _Run, gathered: Gathered, proposal: Proposal) -> str:
        """Write the documents as one change set, then the cursor, and return the id of the former, empty without any.

        Raises: VersionConflict if a document changed.
        """
        change_id = ""
        if proposal.documents:
            edits = [
                Edit(path=path, expected=gathered.versions.get(path, ABSENT), data=data)
                for path, data in sorted(proposal.documents.items())
            ]
            why = f"{len(proposal.kept)} curated, {len(proposal.merged)} merged, {len(proposal.superseded)} superseded"
            why += f", {len(proposal.retired)} retired" if proposal.retired else ""
            change_id = (await self._changes.apply(edits, act=ACT, who=run.who, why=why)).id
        await drop_waiting(self._files)
        moved = await run_sync(_moved, gathered, proposal.documents)
        await save_cursor(self._files, replace(moved, at=self._clock.now()))
        if run.deep:
            marks = await session_marks(self._files)
            dreams = Dreams(at=self._clock.now(), sessions=marks, version=run.dreams.version)
            await save_dreams(self._files, dreams)
        elif run.dreams.refused and not (run.advice and run.advice.note):
            await save_dreams(self._files, replace(run.dreams, refused=0))
        return change_id

    async def _check_unchanged(self, gathered: Gathered, *, growing: bool) -> None:
        if await self._changed_since(gathered, {}, growing=growing):
            raise VersionConflict("Memory changed while it was consolidated.")

    async def _changed_since(
        self, gathered: Gathered, written: Mapping[str, bytes | None], *, growing: bool = False
    ) -> bool:
        """Tell if others wrote to a ledger, save to one that is `growing`, or forgot since; `written` is our own."""
        found = {info.path: info.size for info in await self._files.list(LEDGERS) if ledger_date(info.path)}
        known = {path: len(written.get(path) or data) for path, data in gathered.material.ledgers.items()}
        sizes = [(known.get(path, 0), size) for path, size in found.items() if path not in gathered.unreadable]
        if any(now < before if growing else now != before for before, now in sizes):
            return True
        return (await read_tombstones(self._files)).version != gathered.stones


def _step(done: int, text: str) -> Progress:
    return Progress(done=done, total=_STEPS, text=text)


def _untold(progress: Progress) -> None:
    """Tell nobody."""


async def _unused() -> Mapping[str, int]:
    """Know of no use of anything."""
    return {}


def _done(run: _Run, gathered: Gathered, proposal: Proposal, skipped: str) -> Consolidated:
    """Return what a run comes to once the proposal is written."""
    advice = run.advice or Advice()
    told = Consolidated(
        skipped=skipped, refused=proposal.refused, note=advice.note, cost=advice.cost, deep=run.deep, cap=proposal.cap
    )
    if skipped in {NOTHING_NEW, WAITS}:
        return told
    if skipped == TOO_SOON:
        return replace(told, waiting=gathered.read + gathered.waiting)
    return replace(
        told,
        read=gathered.read,
        kept=len(proposal.kept),
        merged=len(proposal.merged),
        superseded=len(proposal.superseded),
        retired=len(proposal.retired),
        left=len(proposal.left),
        undecided=len(proposal.undecided),
        waiting=gathered.waiting,
        files=tuple(path.removeprefix(f"{WORKSPACE}/") for path in sorted(proposal.documents)),
    )


def _moved(gathered: Gathered, written: Mapping[str, bytes | None]) -> Cursor:
    """Return the cursor with the ledgers as the run itself has left them."""
    ledgers = dict(gathered.next.ledgers)
    for path, data in written.items():
        if data is None or path not in ledgers:
            continue
        bullets = [data[found.offset : found.offset + found.length] for found in parse_entries(data, path)]
        lines = ledgers[path].lines | line_digests(bullet for bullet in bullets if _SUPERSEDED in bullet)
        whole = ledgers[path].offset == len(gathered.material.ledgers[path])
        read = replace(ledgers[path], offset=len(data), digest=version_of(data), lines=lines)
        ledgers[path] = read if whole else replace(ledgers[path], lines=lines)
    return replace(gathered.next, ledgers=ledgers)
