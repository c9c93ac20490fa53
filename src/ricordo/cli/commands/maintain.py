"""`maintain`: what waits to be done in a root, shown and done."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, existing, run, scope_of, tell_trouble
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, SharedOption, UserOption
from ricordo.cli.render import age, bold, counted, dim, emit, say, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.files import FileStore
    from ricordo.maintenance.overdue import Overdue
    from ricordo.maintenance.prune import Fate
    from ricordo.messages.types import JsonValue
    from ricordo.queue import Job, JobRecord, Queue

__all__ = ["maintain"]

_ACTS = {
    "announce": "goes to the trash soon, which is announced now",
    "archive": "goes to the archive",
    "delete": "is deleted from the trash",
    "forget": "is forgotten",
    "trash": "goes to the trash",
}


@dataclass(frozen=True, kw_only=True)
class _Worked:
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
    target = existing(root, user, project, shared=shared)
    tell_trouble(target)
    found, old, worked = run(lambda: _maintained(target, dry_run=dry_run, retry=retry, seconds=seconds))
    left = bool(worked and (worked.left or worked.count("failed") or (found.failed and not retry)))
    if as_json:
        emit(_document(found, old, worked))
    else:
        _print_found(found, old)
        if worked:
            _print_worked(worked)
    if left:
        raise typer.Exit(1)


async def _maintained(
    target: Target, *, dry_run: bool, retry: bool, seconds: float
) -> "tuple[Overdue, Sequence[Fate], _Worked | None]":
    """Maintain each place of the root that is the user's or shared, and return what all of them had to do together."""
    from ricordo.maintenance.overdue import Overdue

    shares = target.place != target.root
    places = [target, replace(target, shared=True)] if shares else [target]
    done = [await _place_maintained(each, dry_run=dry_run, retry=retry, seconds=seconds) for each in places]
    found = Overdue(
        waiting=[record for each, _, _ in done for record in each.waiting],
        failed=[record for each, _, _ in done for record in each.failed],
        behind=[job for each, _, _ in done for job in each.behind],
    )
    worked = [each for _, _, each in done if each]
    ended = [record for each in worked for record in each.ended]
    whole = _Worked(ended=ended, left=sum(each.left for each in worked)) if worked else None
    return found, [fate for _, old, _ in done for fate in old], whole


async def _place_maintained(
    target: Target, *, dry_run: bool, retry: bool, seconds: float
) -> "tuple[Overdue, Sequence[Fate], _Worked | None]":
    from ricordo.audit.history import PERSON
    from ricordo.maintenance.overdue import overdue, take_up
    from ricordo.maintenance.worker import MAINTAIN
    from ricordo.queue import Job
    from ricordo.runtime.assembly import Parts, look_into, open_workspace

    if dry_run:
        async with look_into(target.place, Parts.standard(settings=target.settings, actor=target.user)) as (
            inbox,
            files,
        ):
            return await overdue(inbox, files), await _old(target, files), None
    scope, parts = await scope_of(target), Parts.standard(settings=target.settings, actor=target.user)
    async with open_workspace(target.root, scope, parts) as workspace:
        if workspace.curation:
            workspace.curation.asked_by = PERSON
        began = workspace.place.clock.now()
        found = await overdue(workspace.inbox, workspace.place.files)
        old = await _old(target, workspace.place.files)
        await workspace.inbox.put(Job(kind=MAINTAIN, key=MAINTAIN))
        await take_up(workspace.inbox, found, retry=retry)
        left = await workspace.worker.settle(seconds=seconds)
        ended = [each for each in await _ended(workspace.inbox) if each.changed >= began]
        return found, old, _Worked(ended=ended, left=left)


async def _old(target: Target, files: "FileStore") -> "list[Fate]":
    """Return what is past its time, and what the next cycle does with it."""
    from ricordo.clock import SystemClock
    from ricordo.maintenance.expire import expired
    from ricordo.maintenance.prune import Fate, fates
    from ricordo.maintenance.retain import leaving

    config, clock = target.settings.maintenance, SystemClock()
    days = config.daily_file_retention_days
    rule = f"daily_file_retention_days = {days}"
    ledgers = await expired(files, today=clock.today(), days=days)
    gone = await leaving(files, target.settings.retention.read, now=clock.now(), scope=await scope_of(target))
    return [
        *(Fate(path=path, act="archive", rule=rule) for path in ledgers),
        *await fates(files, now=clock.now(), config=config),
        *(Fate(path=f"memory {each.entry.id}", act="forget", rule=each.rule.text) for each in gone.memories),
        *(Fate(path=f"transcript {each.session}", act="trash", rule=each.rule.text) for each in gone.sessions),
    ]


async def _ended(inbox: "Queue") -> "Sequence[JobRecord]":
    return await inbox.jobs(states={"done", "failed"}, limit=1_000)


def _print_found(found: "Overdue", old: "Sequence[Fate]") -> None:
    if not (found.waiting or found.failed or found.behind):
        say("Nothing waits in the inbox, and every session was learned from to its end.")
    for fate in old:
        say(f"{bold(shown(fate.path))}  {_ACTS[fate.act]}  {dim(fate.rule)}")
    for record in reversed(found.waiting):
        say(f"{bold(_name(record.job))}  {_state(record)}  {dim(f'asked for {age(record.created)} ago')}")
    for job in found.behind:
        say(f"{bold(_name(job))}  holds more than was learned from it")
    for record in found.failed:
        error = (record.outcome.error if record.outcome else None) or "no error is known"
        say(f"{bold(_name(record.job))}  failed too often, {shown(error)}  {dim(f'{age(record.changed)} ago')}")


def _print_worked(worked: _Worked) -> None:
    failed = f", {counted(worked.count('failed'), 'job')} failed for good" if worked.count("failed") else ""
    left = f", {counted(worked.left, 'job')} left" if worked.left else ""
    say(f"Did {counted(worked.count('done'), 'job')}{failed}{left}")


def _state(record: "JobRecord") -> str:
    if record.state == "running":
        return "is being worked on"
    error = f", {shown(record.outcome.error)} before" if record.outcome and record.outcome.error else ""
    after = record.job.after
    pause = (after - datetime.now(UTC)).total_seconds() if after else 0.0
    return f"waits for {pause:,.0f} s more{error}" if pause > 0 else f"is due{error}"


def _name(job: "Job") -> str:
    user = f" of {job.user}" if job.user else ""
    return shown(f"{job.kind} {job.session}".rstrip() + user)


def _document(found: "Overdue", old: "Sequence[Fate]", worked: _Worked | None) -> "dict[str, JsonValue]":
    done: dict[str, JsonValue] | None = None
    if worked:
        done = {"done": worked.count("done"), "failed": worked.count("failed"), "left": worked.left}
    return {
        "waiting": [_record(each) for each in found.waiting],
        "failed": [_record(each) for each in found.failed],
        "behind": [{"agent": job.agent, "session": job.session} for job in found.behind],
        "old": [{"path": fate.path, "act": fate.act, "rule": fate.rule} for fate in old],
        "worked": done,
    }


def _record(record: "JobRecord") -> "dict[str, JsonValue]":
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
