"""`consolidate`: put memory in order now, look at what that would change, and approve of what waits."""

import difflib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, existing, run, scope_of, tell_trouble
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, SharedOption, UserOption
from ricordo.cli.render import bold, counted, dim, emit, say, shown
from ricordo.errors import ExtraMissing, FileMissing, InvalidInput, ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.consolidation.consolidate import Consolidated
    from ricordo.consolidation.types import Proposal
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.assembly import Parts, Workspace

__all__ = ["consolidate"]


@dataclass(frozen=True, kw_only=True)
class _Told:
    """What came of it: what was done, or what would be, with the lines that differ; `note` is about the model."""

    done: "Consolidated | None" = None
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
    target = existing(root, user, project, shared=shared)
    tell_trouble(target)
    told = run(lambda: _carried_out(target, deep=deep, dry_run=dry_run, approve=approve))
    if as_json:
        emit(_document(told))
    else:
        _print(told)
    if _is_refused(told):
        raise typer.Exit(1)


async def _carried_out(target: Target, *, deep: bool, dry_run: bool, approve: bool) -> _Told:
    from ricordo.audit.history import PERSON
    from ricordo.runtime.assembly import Parts, open_workspace

    parts, note = await _with_model(Parts.standard(settings=target.settings, actor=target.user))
    async with open_workspace(target.root, await scope_of(target), parts) as workspace:
        curation = workspace.curation
        if curation is None:
            raise InvalidInput("Consolidation is switched off: set consolidation to on, or leave the setting out.")
        if dry_run:
            proposal = await curation.consolidator.preview(deep=deep)
            return _Told(proposal=proposal, diff=await _difference(workspace, proposal), note=note)
        done = await (curation.approve(who=PERSON) if approve else curation.run(force=True, deep=deep, who=PERSON))
        return _Told(done=done, note=note)


async def _with_model(parts: "Parts") -> "tuple[Parts, str]":
    """Return the parts with the model of the settings, and why there is none that could be loaded."""
    from anyio.to_thread import run_sync

    from ricordo.harness.offline import OFFLINE

    config, name = parts.settings.consolidation, parts.settings.model
    if name is None or name == OFFLINE or config is None or config.model is not None:
        return parts, ""
    from ricordo.runtime.named_model import load_named

    try:
        model = await run_sync(partial(load_named, name, parts.settings))
    except (ModelError, ExtraMissing) as error:
        return parts, f"the rules decided: {type(error).__name__}"
    return replace(parts, model=model), ""


async def _difference(workspace: "Workspace", proposal: "Proposal") -> list[str]:
    """Return the lines that a proposal changes, as a unified diff of what each document is to be."""
    lines: list[str] = []
    for path, data in sorted(proposal.documents.items()):
        try:
            before = (await workspace.place.files.read(path)).data
        except FileMissing:
            before = b""
        old, new = (each.decode("utf-8", "replace").splitlines() for each in (before, data or b""))
        lines += difflib.unified_diff(old, new, fromfile=path, tofile=path, n=1, lineterm="")
    return lines


def _is_refused(told: _Told) -> bool:
    from ricordo.consolidation.consolidate import NOTHING_WAITS, REJECTED, STALE

    if told.proposal is not None:
        return bool(told.proposal.rejected)
    skipped = told.done.skipped if told.done else ""
    return skipped.startswith(REJECTED) or skipped in {NOTHING_WAITS, STALE}


def _print(told: _Told) -> None:
    if told.done is None:
        assert told.proposal is not None
        proposal = told.proposal
        for line in told.diff:
            say(shown(line))
        counts = map(len, (proposal.kept, proposal.merged, proposal.superseded, proposal.retired))
        files = ", ".join(path.removeprefix("workspace/") for path in sorted(proposal.documents))
        say(f"Would be {_counted(*counts)}, in {shown(files)}" if files else "Nothing would change.")
        _print_undecided(len(proposal.undecided))
        _print_asides(proposal.rejected, told.note or proposal.note, proposal.refused)
        return
    done = told.done
    if done.skipped:
        say(f"Nothing was changed: {shown(done.skipped)}")
    else:
        say(_counted(done.kept, done.merged, done.superseded, done.retired))
    if done.change_id:
        say(dim(f"  {done.change_id}  {shown(', '.join(done.files))}: `ricordo undo {done.change_id}` takes it back"))
    if done.cap:
        say(dim(f"  as many as its {done.cap} allow stand in MEMORY.md, the rest in topics"))
    _print_undecided(done.undecided)
    _print_asides("", told.note or done.note, done.refused)
    if done.cost.requests:
        cost = "" if done.cost.dollars is None else f", ${done.cost.dollars:.4f}"
        say(dim(f"  {counted(done.cost.requests, 'request')}, {done.cost.tokens:,} tokens{cost}"))


def _print_undecided(count: int) -> None:
    if count:
        pairs = counted(count, "pair contradicts each other", "pairs contradict each other")
        say(f"  {pairs} and no rule decides: `ricordo confirm` the one that holds, or `ricordo forget` the other")


def _print_asides(rejected: str, note: str, refused: "Sequence[str]") -> None:
    if rejected:
        say(f"{bold('The answer was rejected')}: {shown(rejected)}")
    if note:
        say(dim(f"  {shown(note)}"))
    if refused:
        say(dim(f"  {counted(len(refused), 'proposal')} of the model not carried out: {', '.join(sorted({*refused}))}"))


def _counted(kept: int, merged: int, superseded: int, retired: int) -> str:
    told = counted(kept, "memory", "memories")
    return f"{told} curated, {merged:,} merged, {superseded:,} superseded, {retired:,} retired"


def _document(told: _Told) -> "dict[str, JsonValue]":
    if told.proposal is not None:
        proposal = told.proposal
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
            "note": told.note or proposal.note or None,
            "diff": "\n".join(told.diff),
        }
    done = told.done
    assert done is not None
    return {
        "dry_run": False,
        "change": done.change_id or None,
        "skipped": done.skipped or None,
        "deep": done.deep,
        "read": done.read,
        "kept": done.kept,
        "merged": done.merged,
        "superseded": done.superseded,
        "retired": done.retired,
        "left": done.left,
        "undecided": done.undecided,
        "waiting": done.waiting,
        "files": [*done.files],
        "cap": done.cap or None,
        "refused": [*done.refused],
        "note": told.note or done.note or None,
        "requests": done.cost.requests,
        "tokens": done.cost.tokens,
        "cost": None if done.cost.dollars is None else str(done.cost.dollars),
    }
