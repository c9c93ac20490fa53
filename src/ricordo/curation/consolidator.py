"""Consolidation: survey, gather, decide and write one change set, in four reported phases; and its background job.

If the input changes before the change set is written, the run starts again and reuses its advice. The cursor is saved
after the change set, so after a crash the same entries are read again and found curated. Only writing holds a lock, so
no other writer waits for a model.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from anyio.to_thread import run_sync

from ricordo.clock import Clock, IdSource
from ricordo.concurrency import NoYield, YieldPolicy, use_yield_policy
from ricordo.curation.adviser import Adviser, rules_only_note
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.gather import CONSOLIDATE_ACT, GatheredInput, Gatherer
from ricordo.curation.proposal import find_faults, is_due, propose
from ricordo.curation.run_state import (
    ConsolidationCursor,
    DreamState,
    PendingProposal,
    compute_basis,
    delete_pending_proposal,
    find_reason_to_wait,
    hold_lease,
    line_digests,
    load_dream_state,
    load_pending_proposal,
    save_cursor,
    save_dream_state,
    save_pending_proposal,
    session_fingerprints,
)
from ricordo.curation.types import Advice, ConsolidationResult, Proposal, count_changed_lines, event_counts
from ricordo.errors import StorageBusy, TaskCancelled, VersionConflict
from ricordo.events import Emitter
from ricordo.guard.redact import Redactor
from ricordo.jobs.tasks import ReportProgress, Task, TaskProgress, TaskStore
from ricordo.jobs.tasks.runner import track_task
from ricordo.jobs.turn_activity import TurnActivity
from ricordo.scope import Scope
from ricordo.storage import ABSENT, FileStore, compute_version
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.history.change_sets import CURATION_LOCK, ChangeSets, Edit
from ricordo.workspace.history.tombstones import read_tombstones
from ricordo.workspace.layout import LEDGERS, TOPICS, WORKSPACE, is_ledger, ledger_date

__all__ = [
    "BUSY",
    "CONSOLIDATE_ACT",
    "CONSOLIDATION_AUTHOR",
    "NOTHING_NEW",
    "NO_PROPOSAL",
    "PROPOSAL_OUTDATED",
    "PROPOSAL_PENDING",
    "REJECTED",
    "TASK_STOPPED",
    "TOO_SOON",
    "ConsolidationJob",
    "ConsolidationResult",
    "Consolidator",
]


CONSOLIDATION_AUTHOR = "consolidation"
NOTHING_NEW = "nothing new"
TOO_SOON = "too soon after the last run"
BUSY = "another consolidation runs"
REJECTED = "rejected"
PROPOSAL_PENDING = "a proposal waits for approval"
NO_PROPOSAL = "no proposal waits"
PROPOSAL_OUTDATED = "memory changed since the proposal was made"
_SUPERSEDED_MARKER = b"[state:: superseded]"
_MAX_TRIES = 8
_STEP_COUNT = 4


@dataclass(kw_only=True)
class _Run:
    """The options of one run and its state so far."""

    force: bool
    report: ReportProgress
    yield_policy: YieldPolicy
    again: bool = False
    deep: bool = False
    asks: bool = False
    hold: bool = False
    who: str = CONSOLIDATION_AUTHOR
    dreams: DreamState = field(default_factory=DreamState)
    advice: Advice | None = None


class Consolidator:
    """Builds curated memory from the ledgers of one workspace."""

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
        yield_policy: Callable[[], YieldPolicy] = NoYield,
        used: Callable[[], Awaitable[Mapping[str, int]]] | None = None,
        emitter: Emitter | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Work on `files`; `key` is the key of the root, which recognises forgotten entries.

        `adviser` asks a model; with None the rules decide alone. `yield_policy` returns a policy for each run: the run
        pauses before each step, and yields to more urgent work within them. `used` returns the use of memories by id.
        """
        self._files = files
        self._changes = changes
        self._clock = clock
        self._config = config or ConsolidationConfig()
        self._adviser = adviser
        self._make_yield_policy = yield_policy
        self._emitter = emitter or Emitter(clock)
        self._scope = scope
        self._read_use_counts = used or _no_use_counts
        self._gatherer = Gatherer(files=files, changes=changes, redactor=redactor, key=key, config=self._config)

    async def consolidate(
        self,
        *,
        force: bool = False,
        again: bool = False,
        deep: bool = False,
        asks: bool = True,
        hold: bool = False,
        who: str = CONSOLIDATION_AUTHOR,
        report: ReportProgress | None = None,
    ) -> ConsolidationResult:
        """Curate the entries that were added since the last run; with `deep` also decide again about all curated ones.

        The run is skipped when there is nothing new, when the last run is less than `min_gap` ago (unless `force`), and
        while another process consolidates. With `again` all ledgers are read again, including what a person undid.
        Without `asks` no model is used. With `hold` nothing is written: the proposal waits for `approve`. History names
        `who` as the author. `report` is called before each of the four steps; a cancellation before the last one leaves
        memory unchanged.

        Raises: StorageError if curated memory can't be read or written; then neither it nor the cursor changes.
        """
        asks = asks and self._adviser is not None
        forced = force or again or deep
        run = _Run(
            force=forced, again=again, deep=deep, asks=asks, hold=hold, who=who, report=report or _ignore_progress,
            yield_policy=self._make_yield_policy(),
        )  # fmt: skip
        return await self._run_exclusively(run)

    async def approve(
        self, *, who: str = CONSOLIDATION_AUTHOR, report: ReportProgress | None = None
    ) -> ConsolidationResult:
        """Write the pending proposal; skipped when there is none, or when memory changed since it was made.

        Raises the same errors as `consolidate`.
        """
        waiting = await load_pending_proposal(self._files)
        if waiting is None:
            return ConsolidationResult(skipped=NO_PROPOSAL)
        gathered = await self._gatherer.gather(deep=waiting.deep)
        if compute_basis(gathered.versions, deep=waiting.deep) != waiting.basis:
            return ConsolidationResult(skipped=PROPOSAL_OUTDATED, deep=waiting.deep)
        run = _Run(
            force=True,
            deep=waiting.deep,
            who=who,
            report=report or _ignore_progress,
            yield_policy=self._make_yield_policy(),
        )
        run.advice = waiting.advice
        return await self._run_exclusively(run)

    async def _run_exclusively(self, run: _Run) -> ConsolidationResult:
        deep = run.deep
        try:
            if not (deep or run.asks):
                return await self._run(run)
            async with hold_lease(self._files, self._clock) as is_ours:
                return await self._run(run) if is_ours else ConsolidationResult(skipped=BUSY, deep=deep)
        except StorageBusy:
            return ConsolidationResult(skipped=BUSY, deep=deep)

    async def preview(self, *, again: bool = False, deep: bool = False, asks: bool = True) -> Proposal:
        """Return what a forced run would write, without writing it. Raises the same errors as `consolidate`."""
        policy = self._make_yield_policy()
        with use_yield_policy(policy):
            gathered = await self._gatherer.gather(again=again, deep=deep)
            gathered = replace(gathered, material=replace(gathered.material, used=await self._read_use_counts()))
            advice = await self._adviser(gathered.material, policy.pause) if self._adviser and asks else None
            if advice and advice.flaw:
                return Proposal(rejected=advice.flaw)
            proposal = await run_sync(propose, gathered.material, self._config, advice, abandon_on_cancel=True)
        return replace(proposal, note=advice.note if advice else "")

    async def find_reason_against_dream(self, *, quiet: float, without: Collection[str] = ()) -> str:
        """Return why a dream that no user requested should not start now; empty when it may.

        `quiet` is the number of seconds since the last turn, `without` names the active sessions.
        """
        last, now = await load_dream_state(self._files), self._clock.now()
        marks = await session_fingerprints(self._files, without=without)
        changed = len(marks - last.sessions)
        return find_reason_to_wait(last, now=now, changed=changed, quiet=quiet, config=self._config)

    async def _run(self, run: _Run) -> ConsolidationResult:
        await self._survey(run)
        for left in reversed(range(_MAX_TRIES)):
            gathered = await self._gather(run)
            done, overtaken = await self._try_once(run, gathered, last=not left)
            if done is not None:
                break
            if not left:
                raise VersionConflict("Memory changed while it was consolidated, again and again.")
        if overtaken:
            # others wrote during the write: try once more, whatever the outcome
            later = _Run(force=True, who=run.who, report=run.report, yield_policy=run.yield_policy)
            with suppress(VersionConflict):
                await self._try_once(later, await self._gatherer.gather(), told=False)
        assert done is not None
        return done

    async def _survey(self, run: _Run) -> None:
        """Load the dream state and count the ledgers and topics."""
        await run.yield_policy.pause()
        with self._emitter.stage("orient", self._scope) as progress:
            if run.deep or run.asks:
                run.dreams = await load_dream_state(self._files)
            paths = [info.path for info in await self._files.list(LEDGERS)]
            topics = sum(path.startswith(f"{TOPICS}/") for path in paths)
            progress.counts.update(ledgers=sum(map(is_ledger, paths)), topics=topics)
            progress.reason = "dream" if run.deep else None

    async def _gather(self, run: _Run) -> GatheredInput:
        await run.yield_policy.pause()
        run.report(_step_progress(0, "gathering what is new"))
        with self._emitter.stage("gather", self._scope) as progress:
            with use_yield_policy(run.yield_policy):
                gathered = await self._gatherer.gather(again=run.again, deep=run.deep)
            if gathered.read or run.deep:
                material = replace(gathered.material, used=await self._read_use_counts())
                gathered = replace(gathered, material=material)
            progress.counts.update(entries=gathered.read, waiting=gathered.waiting)
        return gathered

    async def _try_once(
        self, run: _Run, gathered: GatheredInput, *, told: bool = True, last: bool = False
    ) -> tuple[ConsolidationResult | None, bool]:
        """Decide, check and write once. Return the result, None if others wrote first, and whether others wrote since.

        With `last`, a ledger that only grew is no conflict: the next run reads what was added.
        """
        emitter = self._emitter if told else Emitter(self._clock)
        await run.yield_policy.pause()
        with emitter.stage("consolidate", self._scope) as progress:
            with use_yield_policy(run.yield_policy):
                proposal, skipped = await self._propose(run, gathered)
            done = _build_result(run, gathered, proposal, skipped)
            progress.counts.update(event_counts(done))
            progress.reason = done.note or None
            progress.failed = skipped if skipped.startswith(REJECTED) else None
            progress.skipped = skipped if skipped and progress.failed is None else None
        if skipped:
            return done, False
        await run.yield_policy.pause()
        with emitter.stage("prune", self._scope) as progress:
            run.report(_step_progress(2, "checking the proposal"))
            with use_yield_policy(run.yield_policy):
                wrong = await run_sync(find_faults, gathered.material, proposal, self._config, abandon_on_cancel=True)
            if wrong:
                progress.failed = f"{REJECTED}: {wrong[0]}"
                return ConsolidationResult(
                    read=gathered.read, skipped=progress.failed, note=done.note, cost=done.cost, deep=run.deep
                ), False
            if run.hold:
                progress.skipped = PROPOSAL_PENDING
                basis = compute_basis(gathered.versions, deep=run.deep)
                await save_pending_proposal(self._files, PendingProposal(basis=basis, advice=run.advice, deep=run.deep))
                return replace(done, skipped=PROPOSAL_PENDING), False
            run.report(_step_progress(3, f"writing {len(proposal.documents)} files"))
            try:
                async with self._files.lock(CURATION_LOCK):
                    await self._check_unchanged(gathered, growing=last)
                    done = replace(done, change_id=await self._write(run, gathered, proposal))
            except VersionConflict:
                progress.skipped = "memory changed meanwhile"
                return None, False
            progress.reason = f"as many as its {done.cap} allow stand in MEMORY.md" if done.cap else None
            progress.counts.update(await run_sync(count_changed_lines, gathered.material.documents, proposal.documents))
        return done, await self._has_changed_since(gathered, proposal.documents)

    async def _propose(self, run: _Run, gathered: GatheredInput) -> tuple[Proposal, str]:
        """Return the proposal, and why it is not to be written."""
        if not run.force and gathered.read and not self._is_due(gathered):
            return Proposal(), TOO_SOON
        waiting = await load_pending_proposal(self._files) if run.hold else None
        if waiting and waiting.basis == compute_basis(gathered.versions, deep=run.deep or waiting.deep):
            return Proposal(), PROPOSAL_PENDING
        run.report(_step_progress(1, f"placing {gathered.read} new entries"))
        if run.asks and run.advice is None:
            run.advice = await self._ask_adviser(run, gathered)
        if run.advice and run.advice.flaw:
            await save_dream_state(self._files, replace(run.dreams, refused=run.dreams.refused + 1))
            return Proposal(), f"{REJECTED}: {run.advice.flaw}"
        proposal = await run_sync(propose, gathered.material, self._config, run.advice, abandon_on_cancel=True)
        if not proposal.documents and not gathered.read and not run.deep:
            return proposal, NOTHING_NEW
        return proposal, ""

    async def _ask_adviser(self, run: _Run, gathered: GatheredInput) -> Advice | None:
        if self._adviser is None:
            return None
        if run.dreams.refused >= self._config.attempts:
            return Advice(note=rules_only_note(f"the model's answers were of no use {run.dreams.refused} times"))
        return await self._adviser(gathered.material, run.yield_policy.pause)

    def _is_due(self, gathered: GatheredInput) -> bool:
        return is_due(self._clock.now(), gathered.cursor.at, gathered.read + gathered.waiting, self._config)

    async def _write(self, run: _Run, gathered: GatheredInput, proposal: Proposal) -> str:
        """Write the documents as one change set, then the cursor. Return the change set's id, empty without documents.

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
            change_id = (await self._changes.apply(edits, act=CONSOLIDATE_ACT, who=run.who, why=why)).id
        await delete_pending_proposal(self._files)
        moved = await run_sync(_advance_cursor, gathered, proposal.documents)
        await save_cursor(self._files, replace(moved, at=self._clock.now()))
        if run.deep:
            marks = await session_fingerprints(self._files)
            dreams = DreamState(at=self._clock.now(), sessions=marks, version=run.dreams.version)
            await save_dream_state(self._files, dreams)
        elif run.dreams.refused and not (run.advice and run.advice.note):
            await save_dream_state(self._files, replace(run.dreams, refused=0))
        return change_id

    async def _check_unchanged(self, gathered: GatheredInput, *, growing: bool) -> None:
        if await self._has_changed_since(gathered, {}, growing=growing):
            raise VersionConflict("Memory changed while it was consolidated.")

    async def _has_changed_since(
        self, gathered: GatheredInput, written: Mapping[str, bytes | None], *, growing: bool = False
    ) -> bool:
        """Tell whether others changed a ledger (with `growing`, growth is ignored) or forgot; `written` is our own."""
        found = {info.path: info.size for info in await self._files.list(LEDGERS) if ledger_date(info.path)}
        known = {path: len(written.get(path) or data) for path, data in gathered.material.ledgers.items()}
        sizes = [(known.get(path, 0), size) for path, size in found.items() if path not in gathered.unreadable]
        if any(now < before if growing else now != before for before, now in sizes):
            return True
        return (await read_tombstones(self._files)).version != gathered.stones


def _step_progress(done: int, text: str) -> TaskProgress:
    return TaskProgress(done=done, total=_STEP_COUNT, text=text)


def _ignore_progress(progress: TaskProgress) -> None:
    """Do nothing."""


async def _no_use_counts() -> Mapping[str, int]:
    """Return no use counts."""
    return {}


def _build_result(run: _Run, gathered: GatheredInput, proposal: Proposal, skipped: str) -> ConsolidationResult:
    """Return the result of a run once the proposal is written."""
    advice = run.advice or Advice()
    told = ConsolidationResult(
        skipped=skipped, refused=proposal.refused, note=advice.note, cost=advice.cost, deep=run.deep, cap=proposal.cap
    )
    if skipped in {NOTHING_NEW, PROPOSAL_PENDING}:
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


def _advance_cursor(gathered: GatheredInput, written: Mapping[str, bytes | None]) -> ConsolidationCursor:
    """Return the cursor with the ledgers as this run wrote them."""
    ledgers = dict(gathered.next.ledgers)
    for path, data in written.items():
        if data is None or path not in ledgers:
            continue
        bullets = [data[found.offset : found.offset + found.length] for found in parse_entries(data, path)]
        lines = ledgers[path].lines | line_digests(bullet for bullet in bullets if _SUPERSEDED_MARKER in bullet)
        whole = ledgers[path].offset == len(gathered.material.ledgers[path])
        read = replace(ledgers[path], offset=len(data), digest=compute_version(data), lines=lines)
        ledgers[path] = read if whole else replace(ledgers[path], lines=lines)
    return replace(gathered.next, ledgers=ledgers)


TASK_STOPPED = "it was stopped"
_TASK_TITLE = "consolidating what was learned"


@dataclass(kw_only=True)
class ConsolidationJob:
    """Runs consolidations of one workspace, each as a task of type `dream` in `tasks`.

    `refresh` updates the index of the workspace, `turns` tells when turns run. With `holds_proposals`, the proposal of
    a run that no user requested waits for approval. `author` is the author of a job in the history.
    """

    consolidator: Consolidator
    refresh: Callable[[], Awaitable[object]]
    tasks: TaskStore
    clock: Clock
    ids: IdSource
    emitter: Emitter
    scope: Scope
    turns: TurnActivity = field(default_factory=TurnActivity)
    holds_proposals: bool = False
    author: str = CONSOLIDATION_AUTHOR
    _uses_rules_only: bool = field(default=False, init=False)

    def use_rules_only(self) -> None:
        """Use no model and start no dream from now on: the rules decide, without waiting."""
        self._uses_rules_only = True

    async def __call__(self) -> Mapping[str, int]:
        """Consolidate now, because the scheduler decided that it is time, and return the counts.

        Runs as a dream if a dream is due.
        """
        # a job does not begin while a turn runs
        await self.turns.yield_policy().pause()
        quiet, sessions = self.turns.quiet_seconds, self.turns.sessions
        deep = not self._uses_rules_only and not await self.consolidator.find_reason_against_dream(
            quiet=quiet, without=sessions
        )
        return _job_counts(await self.run(force=True, deep=deep, hold=self.holds_proposals, who=self.author))

    async def run(
        self, *, force: bool, deep: bool = False, hold: bool = False, who: str = CONSOLIDATION_AUTHOR
    ) -> ConsolidationResult:
        """Consolidate, with `force` however recent the last run is; skipped when its task was stopped.

        With `deep` all curated memory is read again, with `hold` the proposal waits for approval. History names `who`
        as the author.

        Raises the same errors as `Consolidator.consolidate`, and `StorageError` when the task can't be recorded.
        """
        done = ConsolidationResult(skipped=TASK_STOPPED)

        async def work(report: ReportProgress) -> str:
            nonlocal done
            done = await self._consolidate(report, force=force, deep=deep, hold=hold, who=who)
            return done.skipped or f"{done.kept} kept, {done.merged} merged, {done.superseded} superseded"

        now = self.clock.now()
        task = Task(id=self.ids.new(), type="dream", title=_TASK_TITLE, created=now, seen=now)
        try:
            await track_task(self.tasks, task, work, clock=self.clock, emitter=self.emitter, scope=self.scope)
        except TaskCancelled:
            # a person stopped the task, so the scheduler must not retry it
            return done
        return done

    async def approve(self, *, who: str = CONSOLIDATION_AUTHOR) -> ConsolidationResult:
        """Write the pending proposal, which `who` approves. Raises the same errors as `Consolidator.approve`."""
        done = await self.consolidator.approve(who=who)
        if done.change_id:
            await self.refresh()
        return done

    async def _consolidate(
        self, report: ReportProgress, *, force: bool, deep: bool, hold: bool, who: str
    ) -> ConsolidationResult:
        asks = not self._uses_rules_only
        done = await self.consolidator.consolidate(force=force, deep=deep, asks=asks, hold=hold, who=who, report=report)
        if done.change_id:
            await self.refresh()
        return done


def _job_counts(done: ConsolidationResult) -> dict[str, int]:
    return {
        "entries": done.read,
        "kept": done.kept,
        "merged": done.merged,
        "superseded": done.superseded,
        "left": done.left,
        "retired": done.retired,
    }
