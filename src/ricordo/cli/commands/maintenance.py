"""`maintain`, `consolidate` and `spending`: the work of the background, done now, and what its models cost."""

import difflib
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.commands.hosts import drain_hooks, prepare_next_session
from ricordo.cli.commands.status import format_doubts
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, SharedOption, UserOption
from ricordo.cli.render import bold, dim, escape, format_age, pluralize, print_json, print_line
from ricordo.cli.target import (
    Target,
    find_target,
    load_scope,
    print_setting_errors,
    require_target,
    run_async,
    with_memory,
)
from ricordo.errors import ExtraMissing, FileMissing, InvalidInput, ModelError
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from ricordo.curation.consolidator import ConsolidationResult
    from ricordo.curation.retention import PlannedPruning
    from ricordo.curation.types import Proposal
    from ricordo.extraction.cursor import OverdueWork
    from ricordo.hooks.drainer import DrainReport
    from ricordo.jobs import Job, JobRecord
    from ricordo.messages.types import JsonValue
    from ricordo.models.config import SpendingConfig
    from ricordo.models.spending import RequestRecord, SpendingTotal
    from ricordo.runtime.workspace import Dependencies, Workspace
    from ricordo.storage import FileStore

__all__ = ["consolidate", "maintain", "spending"]


_FATE_TEXTS = {
    "announce": "goes to the trash soon, which is announced now",
    "archive": "goes to the archive",
    "delete": "is deleted from the trash",
    "forget": "is forgotten",
    "return": "returns to MEMORY.md",
    "trash": "goes to the trash",
}


@dataclass(frozen=True, kw_only=True)
class _WorkResult:
    """What was done of it: the jobs that ended meanwhile, and how many are left."""

    ended: "Sequence[JobRecord]"
    left: int

    def count(self, state: str) -> int:
        return sum(record.state == state for record in self.ended)


def maintain(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what waits and change nothing.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what failed too often.")] = False,
    seconds: Annotated[float, typer.Option("--seconds", min=0.0, help="Work for at most so long.")] = 300.0,
    shared: SharedOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do now what the background does: learn from sessions, expire, consolidate, prune, reindex.

    What coding agents handed over is taken in first. Sessions that hold more than was learned are found in the files
    too. It is done for what is yours in the project and for what the project shares, with --shared for the latter
    alone. The exit code is 1 if something is left.
    """
    handed_over = None if dry_run else drain_hooks(find_target(root, user, project, shared=shared), seconds=seconds)
    target = require_target(root, user, project, shared=shared)
    print_setting_errors(target)
    overdue, expiring, work_result = run_async(
        lambda: _maintain_root(target, dry_run=dry_run, retry=retry, seconds=seconds)
    )
    if not dry_run:
        prepare_next_session(target)
    is_unfinished = bool(
        (handed_over and handed_over.left)
        or (work_result and (work_result.left or work_result.count("failed") or (overdue.failed and not retry)))
    )
    doubts = {} if dry_run else _count_doubts(target)
    if as_json:
        document = _maintenance_document(overdue, expiring, work_result)
        print_json({**document, "hooks": _hooks_document(handed_over), "doubts": {**doubts}})
    else:
        if handed_over:
            _print_handed_over(handed_over)
        _print_overdue(overdue, expiring)
        if work_result:
            _print_work(work_result)
        _print_doubts(doubts)
    if is_unfinished:
        raise typer.Exit(1)


def _print_handed_over(report: "DrainReport") -> None:
    if report.is_elsewhere:
        print_line("Another process takes in what coding agents handed over.")
        return
    trouble = f"; {', '.join(report.troubles)}" if report.troubles else ""
    left = f", {pluralize(report.left, 'part')} left{trouble}" if report.left else ""
    messages, entries = pluralize(report.messages, "message"), pluralize(report.entries, "entry")
    print_line(f"Took in {messages} from coding agents, and learned {entries} of them{left}.")


def _hooks_document(report: "DrainReport | None") -> "JsonValue":
    if report is None:
        return None
    return {
        "messages": report.messages,
        "entries": report.entries,
        "left": report.left,
        "troubles": [*report.troubles],
    }


async def _maintain_root(
    target: Target, *, dry_run: bool, retry: bool, seconds: float
) -> "tuple[OverdueWork, Sequence[PlannedPruning], _WorkResult | None]":
    """Maintain each place of the root that is the user's or shared, and return what all of them had to do together."""
    from ricordo.extraction.cursor import OverdueWork

    shares = target.user_folder != target.root
    targets = [target, replace(target, is_shared=True)] if shares else [target]
    results = [await _maintain_place(each, dry_run=dry_run, retry=retry, seconds=seconds) for each in targets]
    overdue = OverdueWork(
        waiting=[record for each, _, _ in results for record in each.waiting],
        failed=[record for each, _, _ in results for record in each.failed],
        behind=[job for each, _, _ in results for job in each.behind],
    )
    work_results = [each for _, _, each in results if each]
    ended_jobs = [record for each in work_results for record in each.ended]
    total_work = _WorkResult(ended=ended_jobs, left=sum(each.left for each in work_results)) if work_results else None
    return overdue, [pruning for _, expiring, _ in results for pruning in expiring], total_work


async def _maintain_place(
    target: Target, *, dry_run: bool, retry: bool, seconds: float
) -> "tuple[OverdueWork, Sequence[PlannedPruning], _WorkResult | None]":
    from ricordo.extraction.cursor import find_overdue_work, resume_overdue_work
    from ricordo.extraction.worker import MAINTAIN_KIND
    from ricordo.jobs import Job
    from ricordo.runtime.workspace import Dependencies, open_for_inspection, open_workspace
    from ricordo.workspace.history.log import PERSON

    if dry_run:
        async with open_for_inspection(
            target.user_folder, Dependencies.create(settings=target.settings, actor=target.user)
        ) as (
            inbox,
            files,
        ):
            return await find_overdue_work(inbox, files), await _list_expiring(target, files), None
    scope, parts = await load_scope(target), Dependencies.create(settings=target.settings, actor=target.user)
    async with open_workspace(target.root, scope, parts) as workspace:
        if workspace.curation:
            workspace.curation.author = PERSON
        started_at = workspace.memory_root.clock.now()
        overdue = await find_overdue_work(workspace.inbox, workspace.memory_root.files)
        expiring = await _list_expiring(target, workspace.memory_root.files)
        await workspace.inbox.put(Job(kind=MAINTAIN_KIND, key=MAINTAIN_KIND))
        await resume_overdue_work(workspace.inbox, overdue, retry=retry)
        remaining = await workspace.worker.drain_all(seconds=seconds)
        ended_jobs = await workspace.inbox.jobs(states={"done", "failed"}, limit=1_000)
        ended_jobs = [each for each in ended_jobs if each.changed_at >= started_at]
        return overdue, expiring, _WorkResult(ended=ended_jobs, left=remaining)


async def _list_expiring(target: Target, files: "FileStore") -> "list[PlannedPruning]":
    """Return what is past its time, and what the next cycle does with it."""
    from ricordo.clock import SystemClock
    from ricordo.curation import retention
    from ricordo.workspace.history.usage import UsageLog

    config, clock = target.settings.maintenance, SystemClock()
    usage = await UsageLog(files, clock).read_all()
    days = config.daily_file_retention_days
    rule = f"daily_file_retention_days = {days}"
    ledgers = await retention.find_expired_ledgers(files, today=clock.today(), days=days)
    scope, retained = await load_scope(target), target.settings.retention
    expiring = await retention.plan_retention(files, retained.parsed_rules, now=clock.now(), scope=scope)
    return [
        *(retention.PlannedPruning(path=path, action="archive", rule=rule) for path in ledgers),
        *await retention.plan_pruning(files, now=clock.now(), config=config, holds=retained.find_holds(scope)),
        *await retention.list_faded(
            files, usage=usage, decay=target.settings.decay, now=clock.now(), config=target.settings.consolidation
        ),
        *(
            retention.PlannedPruning(path=f"memory {each.entry.id}", action="forget", rule=each.rule.text)
            for each in expiring.memories
        ),
        *(
            retention.PlannedPruning(path=f"transcript {each.session}", action="trash", rule=each.rule.text)
            for each in expiring.sessions
        ),
    ]


def _print_overdue(overdue: "OverdueWork", expiring: "Sequence[PlannedPruning]") -> None:
    if not (overdue.waiting or overdue.failed or overdue.behind):
        print_line("Nothing waits in the inbox, and every session was learned from to its end.")
    for pruning in expiring:
        print_line(f"{bold(escape(pruning.path))}  {_FATE_TEXTS[pruning.action]}  {dim(pruning.rule)}")
    for record in reversed(overdue.waiting):
        print_line(
            f"{bold(_format_job(record.job))}  {_format_job_state(record)}  "
            f"{dim(f'asked for {format_age(record.created_at)} ago')}"
        )
    for job in overdue.behind:
        print_line(f"{bold(_format_job(job))}  holds more than was learned from it")
    for record in overdue.failed:
        error = (record.outcome.error if record.outcome else None) or "no error is known"
        print_line(
            f"{bold(_format_job(record.job))}  failed too often, {escape(error)}  "
            f"{dim(f'{format_age(record.changed_at)} ago')}"
        )


def _print_work(work_result: _WorkResult) -> None:
    failed = f", {pluralize(work_result.count('failed'), 'job')} failed for good" if work_result.count("failed") else ""
    remaining = f", {pluralize(work_result.left, 'job')} left" if work_result.left else ""
    print_line(f"Did {pluralize(work_result.count('done'), 'job')}{failed}{remaining}")


def _format_job_state(record: "JobRecord") -> str:
    if record.state == "running":
        return "is being worked on"
    error = f", {escape(record.outcome.error)} before" if record.outcome and record.outcome.error else ""
    after = record.job.not_before
    pause = (after - datetime.now(UTC)).total_seconds() if after else 0.0
    return f"waits for {pause:,.0f} s more{error}" if pause > 0 else f"is due{error}"


def _format_job(job: "Job") -> str:
    user = f" of {job.user}" if job.user else ""
    return escape(f"{job.kind} {job.session}".rstrip() + user)


def _maintenance_document(
    overdue: "OverdueWork", expiring: "Sequence[PlannedPruning]", work_result: _WorkResult | None
) -> "dict[str, JsonValue]":
    work_document: dict[str, JsonValue] | None = None
    if work_result:
        work_document = {
            "done": work_result.count("done"),
            "failed": work_result.count("failed"),
            "left": work_result.left,
        }
    return {
        "waiting": [_job_document(each) for each in overdue.waiting],
        "failed": [_job_document(each) for each in overdue.failed],
        "behind": [{"agent": job.agent, "session": job.session} for job in overdue.behind],
        "old": [{"path": pruning.path, "action": pruning.action, "rule": pruning.rule} for pruning in expiring],
        "worked": work_document,
    }


def _job_document(record: "JobRecord") -> "dict[str, JsonValue]":
    job = record.job
    return {
        "id": job.id,
        "kind": job.kind,
        "agent": job.agent,
        "session": job.session,
        "user": job.user,
        "state": record.state,
        "attempts": job.attempts,
        "created": record.created_at.isoformat(),
        "after": job.not_before.isoformat() if job.not_before else None,
        "error": record.outcome.error if record.outcome else None,
    }


@dataclass(frozen=True, kw_only=True)
class _ConsolidationOutcome:
    """The result: the changes, made or proposed, with the lines that differ; `note` is about the model."""

    done: "ConsolidationResult | None" = None
    proposal: "Proposal | None" = None
    diff: "Sequence[str]" = ()
    note: str = ""


def consolidate(
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Read all curated memory anew, not only what is new.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change and change nothing.")] = False,
    approve: Annotated[bool, typer.Option("--approve", help="Carry out the proposal that waits.")] = False,
    shared: SharedOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make curated memory of what was learned, now; `undo` takes a run back.

    A model is asked where the settings name one, else the rules decide. With the setting consolidation.mode = "preview"
    the background only proposes, and --approve carries it out. The exit code is 1 if an answer, or an approval, was of
    no use.
    """
    if approve and (dry_run or deep):
        raise InvalidInput("--approve carries out what waits: it goes with neither --dry-run nor --deep.")
    target = require_target(root, user, project, shared=shared)
    print_setting_errors(target)
    outcome = run_async(lambda: _run_consolidation(target, deep=deep, dry_run=dry_run, approve=approve))
    doubts = {} if dry_run else _count_doubts(target)
    if as_json:
        print_json({**_consolidation_document(outcome), "doubts": {**doubts}})
    else:
        _print_consolidation(outcome)
        _print_doubts(doubts)
    if _is_rejected(outcome):
        raise typer.Exit(1)


def _count_doubts(target: Target) -> dict[str, int]:
    """Return how many doubts of each kind wait for a review, the most urgent kind first."""
    return dict(Counter(doubt.kind for doubt in with_memory(target, lambda memory: memory.review())))


def _print_doubts(doubts: "Mapping[str, int]") -> None:
    if doubts:
        print_line(f"  {format_doubts(doubts)}")


async def _run_consolidation(target: Target, *, deep: bool, dry_run: bool, approve: bool) -> _ConsolidationOutcome:
    from ricordo.runtime.workspace import Dependencies, open_workspace
    from ricordo.workspace.history.log import PERSON

    parts, note = await _with_model(Dependencies.create(settings=target.settings, actor=target.user))
    async with open_workspace(target.root, await load_scope(target), parts) as workspace:
        curation = workspace.curation
        if curation is None:
            raise InvalidInput("Consolidation is switched off: set consolidation to on, or leave the setting out.")
        if dry_run:
            proposal = await curation.consolidator.preview(deep=deep)
            return _ConsolidationOutcome(proposal=proposal, diff=await _diff_proposal(workspace, proposal), note=note)
        result = await (curation.approve(who=PERSON) if approve else curation.run(force=True, deep=deep, who=PERSON))
        return _ConsolidationOutcome(done=result, note=note)


async def _with_model(parts: "Dependencies") -> "tuple[Dependencies, str]":
    """Return the parts with the model of the settings, and the reason if it could not be loaded."""
    from anyio.to_thread import run_sync

    from ricordo.models.config import OFFLINE

    config, name = parts.settings.consolidation, parts.settings.model
    if name is None or name == OFFLINE or config is None or config.model is not None:
        return parts, ""
    from ricordo.runtime.models import load_agent_model

    try:
        model = await run_sync(partial(load_agent_model, name, parts.settings))
    except (ModelError, ExtraMissing) as error:
        return parts, f"the rules decided: {type(error).__name__}"
    return replace(parts, model=model), ""


async def _diff_proposal(workspace: "Workspace", proposal: "Proposal") -> list[str]:
    """Return the changes of a proposal as a unified diff of each document."""
    lines: list[str] = []
    for path, data in sorted(proposal.documents.items()):
        try:
            before = (await workspace.memory_root.files.read(path)).data
        except FileMissing:
            before = b""
        old, new = (each.decode("utf-8", "replace").splitlines() for each in (before, data or b""))
        lines += difflib.unified_diff(old, new, fromfile=path, tofile=path, n=1, lineterm="")
    return lines


def _is_rejected(outcome: _ConsolidationOutcome) -> bool:
    from ricordo.curation.consolidator import NO_PROPOSAL, PROPOSAL_OUTDATED, REJECTED

    if outcome.proposal is not None:
        return bool(outcome.proposal.rejected)
    skipped = outcome.done.skipped if outcome.done else ""
    return skipped.startswith(REJECTED) or skipped in {NO_PROPOSAL, PROPOSAL_OUTDATED}


def _print_consolidation(outcome: _ConsolidationOutcome) -> None:
    if outcome.done is None:
        assert outcome.proposal is not None
        proposal = outcome.proposal
        for line in outcome.diff:
            print_line(escape(line))
        counts = map(len, (proposal.kept, proposal.merged, proposal.superseded, proposal.retired))
        files = ", ".join(path.removeprefix("workspace/") for path in sorted(proposal.documents))
        print_line(f"Would be {_format_counts(*counts)}, in {escape(files)}" if files else "Nothing would change.")
        _print_undecided(len(proposal.undecided))
        _print_notes(proposal.rejected, outcome.note or proposal.note, proposal.refused)
        return
    run = outcome.done
    if run.skipped:
        print_line(f"Nothing was changed: {escape(run.skipped)}")
    else:
        print_line(_format_counts(run.kept, run.merged, run.superseded, run.retired))
    if run.change_id:
        print_line(
            dim(f"  {run.change_id}  {escape(', '.join(run.files))}: `ricordo undo {run.change_id}` takes it back")
        )
    if run.cap:
        print_line(dim(f"  as many as its {run.cap} allow stand in MEMORY.md, the rest in topics"))
    _print_undecided(run.undecided)
    _print_notes("", outcome.note or run.note, run.refused)
    if run.cost.requests:
        cost = "" if run.cost.dollars is None else f", ${run.cost.dollars:.4f}"
        print_line(dim(f"  {pluralize(run.cost.requests, 'request')}, {run.cost.tokens:,} tokens{cost}"))


def _print_undecided(count: int) -> None:
    if count:
        pairs = pluralize(count, "pair contradicts each other", "pairs contradict each other")
        print_line(
            f"  {pairs} and no rule decides: `ricordo confirm` the one that holds, or `ricordo forget` the other"
        )


def _print_notes(rejected: str, note: str, refused: "Sequence[str]") -> None:
    if rejected:
        print_line(f"{bold('The answer was rejected')}: {escape(rejected)}")
    if note:
        print_line(dim(f"  {escape(note)}"))
    if refused:
        print_line(
            dim(
                f"  {pluralize(len(refused), 'proposal')} of the model not carried out: {', '.join(sorted({*refused}))}"
            )
        )


def _format_counts(curated: int, merged: int, superseded: int, retired: int) -> str:
    curated_text = pluralize(curated, "memory", "memories")
    return f"{curated_text} curated, {merged:,} merged, {superseded:,} superseded, {retired:,} retired"


def _consolidation_document(outcome: _ConsolidationOutcome) -> "dict[str, JsonValue]":
    if outcome.proposal is not None:
        proposal = outcome.proposal
        return {
            "dry_run": True,
            "kept": [*proposal.kept],
            "merged": [*proposal.merged],
            "superseded": [{"old": one.old, "new": one.new} for one in proposal.superseded],
            "retired": [{"id": one.id, "reason": one.reason} for one in proposal.retired],
            "undecided": [[*pair] for pair in proposal.undecided],
            "files": [*sorted(path.removeprefix("workspace/") for path in proposal.documents)],
            "refused": [*proposal.refused],
            "rejected": proposal.rejected or None,
            "note": outcome.note or proposal.note or None,
            "diff": "\n".join(outcome.diff),
        }
    result = outcome.done
    assert result is not None
    return {
        "dry_run": False,
        "change": result.change_id or None,
        "skipped": result.skipped or None,
        "deep": result.deep,
        "read": result.read,
        "kept": result.kept,
        "merged": result.merged,
        "superseded": result.superseded,
        "retired": result.retired,
        "left": result.left,
        "undecided": result.undecided,
        "waiting": result.waiting,
        "files": [*result.files],
        "cap": result.cap or None,
        "refused": [*result.refused],
        "note": outcome.note or result.note or None,
        "requests": result.cost.requests,
        "tokens": result.cost.tokens,
        "cost": None if result.cost.dollars is None else str(result.cost.dollars),
    }


def spending(
    *,
    days: Annotated[int, typer.Option("--days", "-d", min=1, max=3_660, help="So many days, today included.")] = 7,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what memory asked models for in the background, and what is left of today's limit.

    Over the limit memory goes on by rules until tomorrow; turns are never counted.
    """
    from ricordo.clock import SystemClock
    from ricordo.models.spending import SpendingJournal
    from ricordo.runtime.workspace import root_files

    target = require_target(root, user, project)
    print_setting_errors(target)
    today = SystemClock().today()

    async def read() -> "tuple[Sequence[RequestRecord], SpendingTotal]":
        journal = SpendingJournal(root_files(target.user_folder))
        return await journal.read_since(today - timedelta(days=days - 1)), await journal.read_day(today)

    requests, spent = run_async(read)
    if as_json:
        print_json(_spending_document(target, requests, spent))
        return
    _print_today(spent, target.settings.spending)
    for day, day_requests in groupby(requests, key=lambda each: each.day):
        _print_day(day, list(day_requests))


def _print_today(spent: "SpendingTotal", config: "SpendingConfig") -> None:
    from ricordo.models.spending import find_refusal

    tokens = f" of {config.daily_tokens:,}" if config.daily_tokens is not None else ""
    cost = f" of ${config.daily_cost:,.2f}" if config.daily_cost is not None else ""
    requests = pluralize(spent.requests, "request")
    print_line(f"{bold('Today')}  {requests}, {spent.tokens:,}{tokens} tokens, ${spent.cost:,.4f}{cost}")
    if spent.unpriced:
        print_line(dim(f"       the price of {pluralize(spent.unpriced, 'request')} is not known"))
    if spent.reserved:
        print_line(dim(f"       {spent.reserved:,} tokens are reserved for requests that have not ended"))
    if spent.over:
        print_line(
            dim(f"       {spent.over:,} tokens are more than was allowed: a model did not keep to what it was told")
        )
    if reason := find_refusal(spent, config, tokens=1):
        print_line(f"       The limit is reached: {reason}. Memory goes on by rules until tomorrow.")


def _print_day(day: "date", requests: "Sequence[RequestRecord]") -> None:
    print_line(f"\n{bold(day.isoformat())}")
    for (purpose, model), spent in _sum_by_purpose(requests).items():
        failed = f", {spent.failed} failed" if spent.failed else ""
        print_line(
            f"  {escape(purpose):<16} {spent.requests:>5,}  in {spent.input:>9,}  out {spent.output:>8,}  "
            f"${spent.cost:>8,.4f}  {dim(escape(model) + failed)}"
        )


def _sum_by_purpose(requests: "Sequence[RequestRecord]") -> "dict[tuple[str, str], SpendingTotal]":
    from ricordo.models.spending import SpendingTotal

    totals: dict[tuple[str, str], SpendingTotal] = {}
    for each in requests:
        key = each.purpose, each.model
        totals[key] = totals.get(key, SpendingTotal()) + each.total
    return dict(sorted(totals.items()))


def _spending_document(
    target: Target, requests: "Sequence[RequestRecord]", spent: "SpendingTotal"
) -> "dict[str, JsonValue]":
    from ricordo.models.spending import find_refusal

    config = target.settings.spending
    days: list[JsonValue] = [
        {"day": day.isoformat(), "purpose": purpose, "model": model, **_spent_document(each)}
        for day, day_requests in groupby(requests, key=lambda each: each.day)
        for (purpose, model), each in _sum_by_purpose(list(day_requests)).items()
    ]
    limit: dict[str, JsonValue] = {
        "tokens": config.daily_tokens,
        "cost": config.daily_cost,
        "reached": bool(find_refusal(spent, config, tokens=1)),
    }
    now: dict[str, JsonValue] = {**_spent_document(spent), "reserved": spent.reserved}
    return {"root": str(target.root), "today": now, "limit": limit, "days": days}


def _spent_document(spent: "SpendingTotal") -> "dict[str, JsonValue]":
    return {
        "requests": spent.requests,
        "failed": spent.failed,
        "input": spent.input,
        "output": spent.output,
        "cost": float(spent.cost),
        "unpriced": spent.unpriced,
        "over": spent.over,
    }
