"""`doctor`: what is well and what is not."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, existing, located, run, scope_of, with_memory
from ricordo.cli.finding import found_by
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import emit, say, sentences, shown
from ricordo.errors import DocumentInvalid, InvalidInput, RootNotTrusted, ScopeError, StorageError

if TYPE_CHECKING:
    from ricordo.audit.doctor import Check
    from ricordo.messages.types import JsonValue

__all__ = ["doctor"]

_WORTH_A_NOTE = frozenset(
    {
        "contradictions", "curated", "dangling", "duplicates", "journals", "junk", "profile", "stale", "states",
        "tasks", "topics", "unlearned", "users",
    }
)  # fmt: skip


def doctor(
    *,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="ADDRESS",
            show_default=False,
            help="Look at the memories of this store instead, such as jsonl:./notes.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Take a note for a failure.")] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at every part of the root and change nothing.

    The exit code is 1 if something is wrong.
    """
    place, checks = _looked_at(root, user, project, store)
    well = all(check.ok and not (strict and _is_note(check)) for check in checks)
    if as_json:
        documents: list[JsonValue] = [
            {"name": check.name, "ok": check.ok, "count": check.count, "detail": check.detail} for check in checks
        ]
        emit({"store" if store else "root": place, "ok": well, "checks": documents})
    else:
        say(shown(place))
        width = max(len(check.name) for check in checks)
        for check in checks:
            say(f"  {_verdict(check)}  {check.name:<{width}} {check.count:>6,}  {shown(_told(check))}")
    if not well:
        raise typer.Exit(1)


def _looked_at(
    root: Path | None, user: str | None, project: str | None, store: str | None
) -> "tuple[str, list[Check]]":
    """Return what was looked at and the checks of it; of a root that is not trusted, that it is not."""
    from ricordo.audit.doctor import Check

    try:
        target = located(root, user, project)
        if store:
            return store, _of_store(target, store)
        target = target if target.stray else existing(root, user, project)
    except RootNotTrusted as error:
        return error.root, [Check(name="trust", ok=False, count=1, detail=str(error))]
    return str(target.root), [*_checks(target), _settings(target), _finding(target)]


def _verdict(check: "Check") -> str:
    if not check.ok:
        return "FAIL"
    return "note" if _is_note(check) else "ok  "


def _is_note(check: "Check") -> bool:
    return check.ok and check.name in _WORTH_A_NOTE and check.count > 0


def _told(check: "Check") -> str:
    """Return what was looked at, and what to do only where there is something to do."""
    is_all = check.count or not check.ok or check.name == "finding"
    return check.detail if is_all else check.detail.partition(": ")[0]


def _of_store(target: Target, address: str) -> "list[Check]":
    """Return the checks of what another store than the root keeps. Raises: InvalidInput where it can't list that."""
    from ricordo.audit.doctor import Check
    from ricordo.audit.entry_checks import inspect_entries
    from ricordo.clock import SystemClock
    from ricordo.runtime.stores import open_store
    from ricordo.stores.capabilities import KeepsTombstones
    from ricordo.stores.contract import entries_as_stored

    async def look() -> "list[Check]":
        async with open_store(address, scope=await scope_of(target), settings=target.settings) as opened:
            entries = await entries_as_stored(opened)
            if entries is None:
                raise InvalidInput(f"The store {address} can't list its memories, so they can't be looked at.")
            keeps = opened.offers(KeepsTombstones)
            gone = {row.id for row in await keeps.tombstones()} if keeps else ()
            detail = "memories were forgotten, and are not taken in again; a record without content says when"
            forgotten = Check(name="forgotten", ok=True, count=len(gone), detail=detail)
            return [*inspect_entries(entries, now=SystemClock().now()), forgotten]

    return run(look)


def _settings(target: Target) -> "Check":
    """Return the check of config.toml and of the variables: how many settings they give, and what is wrong."""
    from ricordo.audit.doctor import Check

    if target.trouble:
        told = sentences(target.trouble)
        rest = (
            "What else that file, or the environment, says is not used either: `ricordo config show` lists what holds"
        )
        detail = f"settings that can't be used: {told} {rest}"
        return Check(name="config", ok=False, count=len(target.trouble), detail=detail)
    given = [origin for origin in target.settings.origins.values() if origin.kind in {"file", "environment"}]
    return Check(name="config", ok=True, count=len(given), detail="settings from config.toml and the environment")


def _finding(target: Target) -> "Check":
    """Return the check of the embedder: one that is named can be used, or none is there."""
    from ricordo.audit.doctor import Check

    finding = found_by(target.settings)
    return Check(name="finding", ok=finding.ok, count=int(finding.embedder is not None), detail=f"found {finding.told}")


def _checks(target: Target) -> "list[Check]":
    """Return what was found; a root that can't be opened is looked at from outside."""
    from ricordo.audit.doctor import Check
    from ricordo.runtime.assembly import inspect_root

    loss, finds = target.loss if target.stray else None, found_by(target.settings).ok
    try:
        if loss is None:
            return with_memory(replace(target, trouble=()), lambda memory: memory.doctor(), finds=finds)
    except (DocumentInvalid, ScopeError, StorageError) as error:
        loss = str(error)
    broken = Check(name="root", ok=False, count=1, detail=loss)
    checks = [broken]
    for place in dict.fromkeys([target.place, target.root]):
        with TemporaryDirectory() as folder:
            found = run(partial(inspect_root, place, Path(folder)))
        # of what the project shares only what is there
        checks += [check for check in found if place == target.place or check.count or not check.ok]
    return checks
