"""Consolidation: survey, gather, decide and write one change set, in four reported phases; and its background job.

If the input changes before the change set is written, the run starts again and reuses its advice. The cursor is saved
after the change set, so after a crash the same entries are read again and found curated. Only writing holds a lock, so
no other writer waits for a model.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import field, replace

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
from ricordo.events import Emitter, count_refusals
from ricordo.guard.redact import Redactor
from ricordo.jobs.tasks import ReportProgress, Task, TaskProgress, TaskStore
from ricordo.jobs.tasks.runner import track_task
from ricordo.jobs.turn_activity import TurnActivity
from ricordo.lazy import dataclass
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
    uses_adviser: bool = False
    hold: bool = False
    actor: str = CONSOLIDATION_AUTHOR
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
        read_use_counts: Callable[[], Awaitable[Mapping[str, int]]] | None = None,
        emitter: Emitter | None = None,
        scope: Scope | None = None,
        uses_profile: bool = True,
    ) -> None:
        """Work on `files`; `key` is the key of the root, which recognises forgotten entries.

        `uses_profile` says that prompts show the profile, so that curated memory does not repeat it.

        `adviser` asks a model; with None the rules decide alone. `yield_policy` returns a policy for each run: the run
        pauses before each step, and yields to more urgent work within them. `read_use_counts` returns the use of
        memories by id.
        """
        self._files = files
        self._changes = changes
        self._clock = clock
        self._config = config or ConsolidationConfig()
        self._adviser = adviser
        self._make_yield_policy = yield_policy
        self._emitter = emitter or Emitter(clock)
        self._scope = scope
        self._read_use_counts = read_use_counts or _no_use_counts
        self._gatherer = Gatherer(
            files=files,
            changes=changes,
            redactor=redactor,
            key=key,
            config=self._config,
            clock=clock,
            uses_profile=uses_profile,
        )

    async def consolidate(
        self,
        *,
        force: bool = False,
        again: bool = False,
        deep: bool = False,
        use_model: bool = True,
        hold: bool = False,
        who: str = CONSOLIDATION_AUTHOR,
        report: ReportProgress | None = None,
    ) -> ConsolidationResult:
        """Curate the entries that were added since the last run; with `deep` also decide again about all curated ones.

        The run is skipped when there is nothing new, when the last run is less than `min_gap` ago (unless `force`), and
        while another process consolidates. With `again` all ledgers are read again, including what a person undid.
        Without `use_model` no model is used. With `hold` nothing is written: the proposal waits for `approve`. History
        names `who` as the author. `report` is called before each of the four steps; a cancellation before the last one
        leaves memory unchanged.

        Raises: StorageError if curated memory can't be read or written; then neither it nor the cursor changes.
        """
        use_model = use_model and self._adviser is not None
        forced = force or again or deep
        run = _Run(
            force=forced, again=again, deep=deep, uses_adviser=use_model, hold=hold, actor=who,
            report=report or _ignore_progress, yield_policy=self._make_yield_policy(),
        )  # fmt: skip
        return await self._run_exclusively(run)

    async def approve(
        self, *, who: str = CONSOLIDATION_AUTHOR, report: ReportProgress | None = None
    ) -> ConsolidationResult:
        """Write the pending proposal; skipped when there is none, or when memory changed since it was made.

        Raises the same errors as `consolidate`.
        """
        pending = await load_pending_proposal(self._files)
        if pending is None:
            return ConsolidationResult(skipped=NO_PROPOSAL)
        inputs = await self._gatherer.gather(deep=pending.deep)
        if compute_basis(inputs.versions, deep=pending.deep) != pending.basis:
            return ConsolidationResult(skipped=PROPOSAL_OUTDATED, deep=pending.deep)
        run = _Run(
            force=True,
            deep=pending.deep,
            actor=who,
            report=report or _ignore_progress,
            yield_policy=self._make_yield_policy(),
        )
        run.advice = pending.advice
        return await self._run_exclusively(run)

    async def _run_exclusively(self, run: _Run) -> ConsolidationResult:
        deep = run.deep
        try:
            if not (deep or run.uses_adviser):
                return await self._run(run)
            async with hold_lease(self._files, self._clock) as is_ours:
                return await self._run(run) if is_ours else ConsolidationResult(skipped=BUSY, deep=deep)
        except StorageBusy:
            return ConsolidationResult(skipped=BUSY, deep=deep)

    async def preview(
        self, *, again: bool = False, deep: bool = False, use_model: bool = True, advice: Advice | None = None
    ) -> Proposal:
        """Return what a forced run would write, with this `advice`. Raises the same errors as `consolidate`."""
        policy = self._make_yield_policy()
        with use_yield_policy(policy):
            inputs = await self._gatherer.gather(again=again, deep=deep)
            inputs = replace(inputs, material=replace(inputs.material, used=await self._read_use_counts()))
            if self._adviser and use_model:
                advice = await self._adviser(inputs.material, policy.pause)
            if advice and advice.flaw:
                return Proposal(rejected=advice.flaw)
            proposal = await run_sync(propose, inputs.material, self._config, advice, abandon_on_cancel=True)
        return replace(proposal, note=advice.note if advice else "")

    async def find_reason_against_dream(self, *, quiet_seconds: float, active_sessions: Collection[str] = ()) -> str:
        """Return why a dream that no user requested should not start now; empty when it may.

        `quiet_seconds` is the number of seconds since the last turn, `active_sessions` names the active sessions.
        """
        last_dream, now = await load_dream_state(self._files), self._clock.now()
        fingerprints = await session_fingerprints(self._files, excluded=active_sessions)
        changed = len(fingerprints - last_dream.sessions)
        return find_reason_to_wait(
            last_dream, now=now, changed=changed, quiet_seconds=quiet_seconds, config=self._config
        )

    async def _run(self, run: _Run) -> ConsolidationResult:
        await self._survey(run)
        for tries_left in reversed(range(_MAX_TRIES)):
            inputs = await self._gather(run)
            result, overtaken = await self._try_once(run, inputs, is_last=not tries_left)
            if result is not None:
                break
            if not tries_left:
                raise VersionConflict("Memory changed while it was consolidated, again and again.")
        if overtaken:
            # others wrote during the write: try once more, whatever the outcome
            second_run = _Run(force=True, actor=run.actor, report=run.report, yield_policy=run.yield_policy)
            with suppress(VersionConflict):
                await self._try_once(second_run, await self._gatherer.gather(), emit_events=False)
        assert result is not None
        return result

    async def _survey(self, run: _Run) -> None:
        """Load the dream state and count the ledgers and topics."""
        await run.yield_policy.pause()
        with self._emitter.stage("orient", self._scope) as progress:
            if run.deep or run.uses_adviser:
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
                inputs = await self._gatherer.gather(again=run.again, deep=run.deep)
            if inputs.read or run.deep:
                material = replace(inputs.material, used=await self._read_use_counts())
                inputs = replace(inputs, material=material)
            progress.counts.update(entries=inputs.read, waiting=inputs.waiting)
        return inputs

    async def _try_once(
        self, run: _Run, inputs: GatheredInput, *, emit_events: bool = True, is_last: bool = False
    ) -> tuple[ConsolidationResult | None, bool]:
        """Decide, check and write once. Return the result, None if others wrote first, and whether others wrote since.

        With `is_last`, a ledger that only grew is no conflict: the next run reads what was added.
        """
        emitter = self._emitter if emit_events else Emitter(self._clock)
        await run.yield_policy.pause()
        with emitter.stage("consolidate", self._scope) as progress:
            with use_yield_policy(run.yield_policy):
                proposal, skipped = await self._propose(run, inputs)
            result = _build_result(run, inputs, proposal, skipped)
            progress.counts.update(event_counts(result))
            progress.reason = result.note or None
            progress.failed = skipped if skipped.startswith(REJECTED) else None
            progress.skipped = skipped if skipped and progress.failed is None else None
        if skipped:
            return result, False
        await run.yield_policy.pause()
        with emitter.stage("prune", self._scope) as progress:
            run.report(_step_progress(2, "checking the proposal"))
            with use_yield_policy(run.yield_policy):
                faults = await run_sync(find_faults, inputs.material, proposal, self._config, abandon_on_cancel=True)
            if faults:
                progress.failed = f"{REJECTED}: {faults[0]}"
                return ConsolidationResult(
                    read=inputs.read, skipped=progress.failed, note=result.note, cost=result.cost, deep=run.deep
                ), False
            if run.hold:
                progress.skipped = PROPOSAL_PENDING
                basis = compute_basis(inputs.versions, deep=run.deep)
                await save_pending_proposal(self._files, PendingProposal(basis=basis, advice=run.advice, deep=run.deep))
                return replace(result, skipped=PROPOSAL_PENDING), False
            run.report(_step_progress(3, f"writing {len(proposal.documents)} files"))
            try:
                async with self._files.lock(CURATION_LOCK):
                    await self._check_unchanged(inputs, growing=is_last)
                    result = replace(result, change_id=await self._write(run, inputs, proposal))
            except VersionConflict:
                progress.skipped = "memory changed meanwhile"
                return None, False
            progress.reason = f"as many as its {result.cap} allow stand in MEMORY.md" if result.cap else None
            progress.counts.update(await run_sync(count_changed_lines, inputs.material.documents, proposal.documents))
        return result, await self._has_changed_since(inputs, proposal.documents)

    async def _propose(self, run: _Run, inputs: GatheredInput) -> tuple[Proposal, str]:
        """Return the proposal, and why it is not to be written."""
        if not run.force and inputs.read and not self._is_due(inputs):
            return Proposal(), TOO_SOON
        pending = await load_pending_proposal(self._files) if run.hold else None
        if pending and pending.basis == compute_basis(inputs.versions, deep=run.deep or pending.deep):
            return Proposal(), PROPOSAL_PENDING
        run.report(_step_progress(1, f"placing {inputs.read} new entries"))
        if run.uses_adviser and run.advice is None:
            run.advice = await self._ask_adviser(run, inputs)
        if run.advice and run.advice.flaw:
            await save_dream_state(self._files, replace(run.dreams, refused=run.dreams.refused + 1))
            return Proposal(), f"{REJECTED}: {run.advice.flaw}"
        proposal = await run_sync(propose, inputs.material, self._config, run.advice, abandon_on_cancel=True)
        if not (proposal.documents or proposal.profiles or inputs.read or run.deep):
            return proposal, NOTHING_NEW
        return proposal, ""

    async def _ask_adviser(self, run: _Run, inputs: GatheredInput) -> Advice | None:
        if self._adviser is None:
            return None
        if run.dreams.refused >= self._config.attempts:
            return Advice(note=rules_only_note(f"the model's answers were of no use {run.dreams.refused} times"))
        return await self._adviser(inputs.material, run.yield_policy.pause)

    def _is_due(self, inputs: GatheredInput) -> bool:
        return is_due(self._clock.now(), inputs.cursor.at, inputs.read + inputs.waiting, self._config)

    async def _write(self, run: _Run, inputs: GatheredInput, proposal: Proposal) -> str:
        """Write the documents as one change set, then the cursor. Return the change set's id, empty without documents.

        Raises: VersionConflict if a document changed.
        """
        change_id = ""
        written = {**proposal.documents, **proposal.profiles}
        if written:
            edits = [
                Edit(path=path, expected_hash=inputs.versions.get(path, ABSENT), data=data)
                for path, data in sorted(written.items())
            ]
            reason = (
                f"{len(proposal.kept)} curated, {len(proposal.merged)} merged, {len(proposal.superseded)} superseded"
            )
            reason += f", {len(proposal.retired)} retired" if proposal.retired else ""
            change_id = (await self._changes.apply(edits, act=CONSOLIDATE_ACT, who=run.actor, why=reason)).id
        await delete_pending_proposal(self._files)
        cursor = await run_sync(_advance_cursor, inputs, proposal.documents)
        cursor = replace(cursor, stated=frozenset(proposal.in_profile), uncurated=frozenset(proposal.uncurated))
        await save_cursor(self._files, replace(cursor, at=self._clock.now()))
        if run.deep:
            fingerprints = await session_fingerprints(self._files)
            dreams = DreamState(at=self._clock.now(), sessions=fingerprints, version=run.dreams.version)
            await save_dream_state(self._files, dreams)
        elif run.dreams.refused and not (run.advice and run.advice.note):
            await save_dream_state(self._files, replace(run.dreams, refused=0))
        return change_id

    async def _check_unchanged(self, inputs: GatheredInput, *, growing: bool) -> None:
        if await self._has_changed_since(inputs, {}, growing=growing):
            raise VersionConflict("Memory changed while it was consolidated.")

    async def _has_changed_since(
        self, inputs: GatheredInput, written: Mapping[str, bytes | None], *, growing: bool = False
    ) -> bool:
        """Tell whether others changed a ledger (with `growing`, growth is ignored) or forgot; `written` is our own."""
        current_sizes = {info.path: info.size for info in await self._files.list(LEDGERS) if ledger_date(info.path)}
        expected_sizes = {path: len(written.get(path) or data) for path, data in inputs.material.ledgers.items()}
        sizes = [
            (expected_sizes.get(path, 0), size) for path, size in current_sizes.items() if path not in inputs.unreadable
        ]
        if any(now < before if growing else now != before for before, now in sizes):
            return True
        return (await read_tombstones(self._files)).version != inputs.tombstones


def _step_progress(step: int, text: str) -> TaskProgress:
    return TaskProgress(done=step, total=_STEP_COUNT, text=text)


def _ignore_progress(progress: TaskProgress) -> None:
    """Do nothing."""


async def _no_use_counts() -> Mapping[str, int]:
    """Return no use counts."""
    return {}


def _build_result(run: _Run, inputs: GatheredInput, proposal: Proposal, skipped: str) -> ConsolidationResult:
    """Return the result of a run once the proposal is written."""
    advice = run.advice or Advice()
    result = ConsolidationResult(
        skipped=skipped, refused=proposal.refused, note=advice.note, cost=advice.cost, deep=run.deep, cap=proposal.cap
    )
    if skipped in {NOTHING_NEW, PROPOSAL_PENDING}:
        return result
    if skipped == TOO_SOON:
        return replace(result, waiting=inputs.read + inputs.waiting)
    return replace(
        result,
        read=inputs.read,
        kept=len(proposal.kept),
        merged=len(proposal.merged),
        superseded=len(proposal.superseded),
        retired=len(proposal.retired),
        left=len(proposal.left),
        undecided=len(proposal.undecided),
        waiting=inputs.waiting,
        files=tuple(path.removeprefix(f"{WORKSPACE}/") for path in sorted(proposal.documents)),
    )


def _advance_cursor(inputs: GatheredInput, written: Mapping[str, bytes | None]) -> ConsolidationCursor:
    """Return the cursor with the ledgers as this run wrote them."""
    ledgers = dict(inputs.next.ledgers)
    for path, data in written.items():
        if data is None or path not in ledgers:
            continue
        bullets = [data[located.offset : located.offset + located.length] for located in parse_entries(data, path)]
        lines = ledgers[path].lines | line_digests(bullet for bullet in bullets if _SUPERSEDED_MARKER in bullet)
        is_fully_read = ledgers[path].offset == len(inputs.material.ledgers[path])
        position = replace(ledgers[path], offset=len(data), digest=compute_version(data), lines=lines)
        ledgers[path] = position if is_fully_read else replace(ledgers[path], lines=lines)
    return replace(inputs.next, ledgers=ledgers)


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
        quiet_seconds, sessions = self.turns.quiet_seconds, self.turns.sessions
        deep = not self._uses_rules_only and not await self.consolidator.find_reason_against_dream(
            quiet_seconds=quiet_seconds, active_sessions=sessions
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
        task = Task(id=self.ids.new(), type="dream", title=_TASK_TITLE, created_at=now, last_seen_at=now)
        try:
            await track_task(self.tasks, task, work, clock=self.clock, emitter=self.emitter, scope=self.scope)
        except TaskCancelled:
            # a person stopped the task, so the scheduler must not retry it
            return done
        return done

    async def approve(self, *, who: str = CONSOLIDATION_AUTHOR) -> ConsolidationResult:
        """Write the pending proposal, which `who` approves. Raises the same errors as `Consolidator.approve`."""
        result = await self.consolidator.approve(who=who)
        if result.change_id:
            await self.refresh()
        return result

    async def _consolidate(
        self, report: ReportProgress, *, force: bool, deep: bool, hold: bool, who: str
    ) -> ConsolidationResult:
        use_model = not self._uses_rules_only
        result = await self.consolidator.consolidate(
            force=force, deep=deep, use_model=use_model, hold=hold, who=who, report=report
        )
        if result.change_id:
            await self.refresh()
        return result


def _job_counts(result: ConsolidationResult) -> dict[str, int]:
    return {
        "entries": result.read,
        "kept": result.kept,
        "merged": result.merged,
        "superseded": result.superseded,
        "left": result.left,
        "retired": result.retired,
        **count_refusals(result.refused),
    }
