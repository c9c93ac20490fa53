"""`maintain`: what waits to be done in a root, shown and done."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, require_target, run_async, load_scope, print_setting_errors
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, SharedOption, UserOption
from ricordo.cli.render import format_age, bold, pluralize, dim, print_json, print_line, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.files import FileStore
    from ricordo.maintenance.overdue import OverdueWork
    from ricordo.maintenance.prune import PlannedPruning
    from ricordo.messages.types import JsonValue
    from ricordo.queue import Job, JobRecord, JobQueue

__all__ = ["maintain"]

_FATE_TEXTS = {
    "announce": "goes to the trash soon, which is announced now",
    "archive": "goes to the archive",
    "delete": "is deleted from the trash",
    "forget": "is forgotten",
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

    Sessions that hold more than was learned are found in the files too. It is done for what is yours in the project and
    for what the project shares, with --shared for the latter alone. The exit code is 1 if something is left.
    """
    target = require_target(root, user, project, shared=shared)
    print_setting_errors(target)
    found, old, worked = run_async(lambda: _maintain_root(target, dry_run=dry_run, retry=retry, seconds=seconds))
    left = bool(worked and (worked.left or worked.count("failed") or (found.failed and not retry)))
    if as_json:
        print_json(_maintenance_document(found, old, worked))
    else:
        _print_overdue(found, old)
        if worked:
            _print_work(worked)
    if left:
        raise typer.Exit(1)


async def _maintain_root(
    target: Target, *, dry_run: bool, retry: bool, seconds: float
) -> "tuple[OverdueWork, Sequence[PlannedPruning], _WorkResult | None]":
    """Maintain each place of the root that is the user's or shared, and return what all of them had to do together."""
    from ricordo.maintenance.overdue import OverdueWork

    shares = target.user_folder != target.root
    places = [target, replace(target, shared=True)] if shares else [target]
    done = [await _maintain_place(each, dry_run=dry_run, retry=retry, seconds=seconds) for each in places]
    found = OverdueWork(
        waiting=[record for each, _, _ in done for record in each.waiting],
        failed=[record for each, _, _ in done for record in each.failed],
        behind=[job for each, _, _ in done for job in each.behind],
    )
    worked = [each for _, _, each in done if each]
    ended = [record for each in worked for record in each.ended]
    whole = _WorkResult(ended=ended, left=sum(each.left for each in worked)) if worked else None
    return found, [fate for _, old, _ in done for fate in old], whole


async def _maintain_place(
    target: Target, *, dry_run: bool, retry: bool, seconds: float
) -> "tuple[OverdueWork, Sequence[PlannedPruning], _WorkResult | None]":
    from ricordo.audit.history import PERSON
    from ricordo.maintenance.overdue import find_overdue_work, resume_overdue_work
    from ricordo.maintenance.worker import MAINTAIN_KIND
    from ricordo.queue import Job
    from ricordo.runtime.assembly import Dependencies, open_for_inspection, open_workspace

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
        began = workspace.memory_root.clock.now()
        found = await find_overdue_work(workspace.inbox, workspace.memory_root.files)
        old = await _list_expiring(target, workspace.memory_root.files)
        await workspace.inbox.put(Job(kind=MAINTAIN_KIND, key=MAINTAIN_KIND))
        await resume_overdue_work(workspace.inbox, found, retry=retry)
        left = await workspace.worker.drain_all(seconds=seconds)
        ended = [each for each in await _list_ended_jobs(workspace.inbox) if each.changed >= began]
        return found, old, _WorkResult(ended=ended, left=left)


async def _list_expiring(target: Target, files: "FileStore") -> "list[PlannedPruning]":
    """Return what is past its time, and what the next cycle does with it."""
    from ricordo.clock import SystemClock
    from ricordo.maintenance.expire import find_expired_ledgers
    from ricordo.maintenance.prune import PlannedPruning, plan_pruning
    from ricordo.maintenance.retain import plan_retention

    config, clock = target.settings.maintenance, SystemClock()
    days = config.daily_file_retention_days
    rule = f"daily_file_retention_days = {days}"
    ledgers = await find_expired_ledgers(files, today=clock.today(), days=days)
    gone = await plan_retention(
        files, target.settings.retention.parsed_rules, now=clock.now(), scope=await load_scope(target)
    )
    return [
        *(PlannedPruning(path=path, act="archive", rule=rule) for path in ledgers),
        *await plan_pruning(files, now=clock.now(), config=config),
        *(PlannedPruning(path=f"memory {each.entry.id}", act="forget", rule=each.rule.text) for each in gone.memories),
        *(
            PlannedPruning(path=f"transcript {each.session}", act="trash", rule=each.rule.text)
            for each in gone.sessions
        ),
    ]


async def _list_ended_jobs(inbox: "JobQueue") -> "Sequence[JobRecord]":
    return await inbox.jobs(states={"done", "failed"}, limit=1_000)


def _print_overdue(found: "OverdueWork", old: "Sequence[PlannedPruning]") -> None:
    if not (found.waiting or found.failed or found.behind):
        print_line("Nothing waits in the inbox, and every session was learned from to its end.")
    for fate in old:
        print_line(f"{bold(escape(fate.path))}  {_FATE_TEXTS[fate.act]}  {dim(fate.rule)}")
    for record in reversed(found.waiting):
        print_line(
            f"{bold(_format_job(record.job))}  {_format_job_state(record)}  {dim(f'asked for {format_age(record.created)} ago')}"
        )
    for job in found.behind:
        print_line(f"{bold(_format_job(job))}  holds more than was learned from it")
    for record in found.failed:
        error = (record.outcome.error if record.outcome else None) or "no error is known"
        print_line(
            f"{bold(_format_job(record.job))}  failed too often, {escape(error)}  {dim(f'{format_age(record.changed)} ago')}"
        )


def _print_work(worked: _WorkResult) -> None:
    failed = f", {pluralize(worked.count('failed'), 'job')} failed for good" if worked.count("failed") else ""
    left = f", {pluralize(worked.left, 'job')} left" if worked.left else ""
    print_line(f"Did {pluralize(worked.count('done'), 'job')}{failed}{left}")


def _format_job_state(record: "JobRecord") -> str:
    if record.state == "running":
        return "is being worked on"
    error = f", {escape(record.outcome.error)} before" if record.outcome and record.outcome.error else ""
    after = record.job.after
    pause = (after - datetime.now(UTC)).total_seconds() if after else 0.0
    return f"waits for {pause:,.0f} s more{error}" if pause > 0 else f"is due{error}"


def _format_job(job: "Job") -> str:
    user = f" of {job.user}" if job.user else ""
    return escape(f"{job.kind} {job.session}".rstrip() + user)


def _maintenance_document(
    found: "OverdueWork", old: "Sequence[PlannedPruning]", worked: _WorkResult | None
) -> "dict[str, JsonValue]":
    done: dict[str, JsonValue] | None = None
    if worked:
        done = {"done": worked.count("done"), "failed": worked.count("failed"), "left": worked.left}
    return {
        "waiting": [_job_document(each) for each in found.waiting],
        "failed": [_job_document(each) for each in found.failed],
        "behind": [{"agent": job.agent, "session": job.session} for job in found.behind],
        "old": [{"path": fate.path, "act": fate.act, "rule": fate.rule} for fate in old],
        "worked": done,
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
        "created": record.created.isoformat(),
        "after": job.after.isoformat() if job.after else None,
        "error": record.outcome.error if record.outcome else None,
    }
