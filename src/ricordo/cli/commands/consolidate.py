"""`consolidate`: put memory in order now, look at what that would change, and approve of what waits."""

import difflib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, require_target, run_async, load_scope, print_setting_errors
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, SharedOption, UserOption
from ricordo.cli.render import bold, pluralize, dim, print_json, print_line, escape
from ricordo.errors import ExtraMissing, FileMissing, InvalidInput, ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.consolidation.consolidate import ConsolidationResult
    from ricordo.consolidation.types import Proposal
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.assembly import Dependencies, Workspace

__all__ = ["consolidate"]


@dataclass(frozen=True, kw_only=True)
class _ConsolidationOutcome:
    """What came of it: what was done, or what would be, with the lines that differ; `note` is about the model."""

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
    told = run_async(lambda: _run_consolidation(target, deep=deep, dry_run=dry_run, approve=approve))
    if as_json:
        print_json(_consolidation_document(told))
    else:
        _print_consolidation(told)
    if _is_rejected(told):
        raise typer.Exit(1)


async def _run_consolidation(target: Target, *, deep: bool, dry_run: bool, approve: bool) -> _ConsolidationOutcome:
    from ricordo.audit.history import PERSON
    from ricordo.runtime.assembly import Dependencies, open_workspace

    parts, note = await _with_model(Dependencies.create(settings=target.settings, actor=target.user))
    async with open_workspace(target.root, await load_scope(target), parts) as workspace:
        curation = workspace.curation
        if curation is None:
            raise InvalidInput("Consolidation is switched off: set consolidation to on, or leave the setting out.")
        if dry_run:
            proposal = await curation.consolidator.preview(deep=deep)
            return _ConsolidationOutcome(proposal=proposal, diff=await _diff_proposal(workspace, proposal), note=note)
        done = await (curation.approve(who=PERSON) if approve else curation.run(force=True, deep=deep, who=PERSON))
        return _ConsolidationOutcome(done=done, note=note)


async def _with_model(parts: "Dependencies") -> "tuple[Dependencies, str]":
    """Return the parts with the model of the settings, and why there is none that could be loaded."""
    from anyio.to_thread import run_sync

    from ricordo.harness.offline import OFFLINE

    config, name = parts.settings.consolidation, parts.settings.model
    if name is None or name == OFFLINE or config is None or config.model is not None:
        return parts, ""
    from ricordo.runtime.named_model import load_agent_model

    try:
        model = await run_sync(partial(load_agent_model, name, parts.settings))
    except (ModelError, ExtraMissing) as error:
        return parts, f"the rules decided: {type(error).__name__}"
    return replace(parts, model=model), ""


async def _diff_proposal(workspace: "Workspace", proposal: "Proposal") -> list[str]:
    """Return the lines that a proposal changes, as a unified diff of what each document is to be."""
    lines: list[str] = []
    for path, data in sorted(proposal.documents.items()):
        try:
            before = (await workspace.memory_root.files.read(path)).data
        except FileMissing:
            before = b""
        old, new = (each.decode("utf-8", "replace").splitlines() for each in (before, data or b""))
        lines += difflib.unified_diff(old, new, fromfile=path, tofile=path, n=1, lineterm="")
    return lines


def _is_rejected(told: _ConsolidationOutcome) -> bool:
    from ricordo.consolidation.consolidate import NO_PROPOSAL, REJECTED, PROPOSAL_OUTDATED

    if told.proposal is not None:
        return bool(told.proposal.rejected)
    skipped = told.done.skipped if told.done else ""
    return skipped.startswith(REJECTED) or skipped in {NO_PROPOSAL, PROPOSAL_OUTDATED}


def _print_consolidation(told: _ConsolidationOutcome) -> None:
    if told.done is None:
        assert told.proposal is not None
        proposal = told.proposal
        for line in told.diff:
            print_line(escape(line))
        counts = map(len, (proposal.kept, proposal.merged, proposal.superseded, proposal.retired))
        files = ", ".join(path.removeprefix("workspace/") for path in sorted(proposal.documents))
        print_line(f"Would be {_format_counts(*counts)}, in {escape(files)}" if files else "Nothing would change.")
        _print_undecided(len(proposal.undecided))
        _print_notes(proposal.rejected, told.note or proposal.note, proposal.refused)
        return
    done = told.done
    if done.skipped:
        print_line(f"Nothing was changed: {escape(done.skipped)}")
    else:
        print_line(_format_counts(done.kept, done.merged, done.superseded, done.retired))
    if done.change_id:
        print_line(
            dim(f"  {done.change_id}  {escape(', '.join(done.files))}: `ricordo undo {done.change_id}` takes it back")
        )
    if done.cap:
        print_line(dim(f"  as many as its {done.cap} allow stand in MEMORY.md, the rest in topics"))
    _print_undecided(done.undecided)
    _print_notes("", told.note or done.note, done.refused)
    if done.cost.requests:
        cost = "" if done.cost.dollars is None else f", ${done.cost.dollars:.4f}"
        print_line(dim(f"  {pluralize(done.cost.requests, 'request')}, {done.cost.tokens:,} tokens{cost}"))


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


def _format_counts(kept: int, merged: int, superseded: int, retired: int) -> str:
    told = pluralize(kept, "memory", "memories")
    return f"{told} curated, {merged:,} merged, {superseded:,} superseded, {retired:,} retired"


def _consolidation_document(told: _ConsolidationOutcome) -> "dict[str, JsonValue]":
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
