"""`doctor`: what is well and what is not."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, require_target, locate_target, run_async, load_scope, with_memory
from ricordo.cli.finding import describe_search_mode
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import print_json, print_line, join_sentences, escape
from ricordo.errors import DocumentInvalid, InvalidInput, RootNotTrusted, ScopeError, StorageError

if TYPE_CHECKING:
    from ricordo.audit.doctor import Check
    from ricordo.messages.types import JsonValue

__all__ = ["doctor"]

_NOTE_CHECKS = frozenset(
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
    place, checks = _run_checks(root, user, project, store)
    well = all(check.ok and not (strict and _is_note(check)) for check in checks)
    if as_json:
        documents: list[JsonValue] = [
            {"name": check.name, "ok": check.ok, "count": check.count, "detail": check.detail} for check in checks
        ]
        print_json({"store" if store else "root": place, "ok": well, "checks": documents})
    else:
        print_line(escape(place))
        width = max(len(check.name) for check in checks)
        for check in checks:
            print_line(
                f"  {_format_verdict(check)}  {check.name:<{width}} {check.count:>6,}  {escape(_format_detail(check))}"
            )
    if not well:
        raise typer.Exit(1)


def _run_checks(
    root: Path | None, user: str | None, project: str | None, store: str | None
) -> "tuple[str, list[Check]]":
    """Return what was looked at and the checks of it; of a root that is not trusted, that it is not."""
    from ricordo.audit.doctor import Check

    try:
        target = locate_target(root, user, project)
        if store:
            return store, _check_store(target, store)
        target = target if target.stray_files else require_target(root, user, project)
    except RootNotTrusted as error:
        return error.root, [Check(name="trust", ok=False, count=1, detail=str(error))]
    return str(target.root), [*_check_root(target), _check_settings(target), _check_search_mode(target)]


def _format_verdict(check: "Check") -> str:
    if not check.ok:
        return "FAIL"
    return "note" if _is_note(check) else "ok  "


def _is_note(check: "Check") -> bool:
    return check.ok and check.name in _NOTE_CHECKS and check.count > 0


def _format_detail(check: "Check") -> str:
    """Return what was looked at, and what to do only where there is something to do."""
    is_all = check.count or not check.ok or check.name == "finding"
    return check.detail if is_all else check.detail.partition(": ")[0]


def _check_store(target: Target, address: str) -> "list[Check]":
    """Return the checks of what another store than the root keeps. Raises: InvalidInput where it can't list that."""
    from ricordo.audit.doctor import Check
    from ricordo.audit.entry_checks import check_store_entries
    from ricordo.clock import SystemClock
    from ricordo.runtime.stores import open_store
    from ricordo.stores.capabilities import KeepsTombstones
    from ricordo.stores.contract import entries_as_stored

    async def look() -> "list[Check]":
        async with open_store(address, scope=await load_scope(target), settings=target.settings) as opened:
            entries = await entries_as_stored(opened)
            if entries is None:
                raise InvalidInput(f"The store {address} can't list its memories, so they can't be looked at.")
            keeps = opened.offers(KeepsTombstones)
            gone = {row.id for row in await keeps.tombstones()} if keeps else ()
            detail = "memories were forgotten, and are not taken in again; a record without content says when"
            forgotten = Check(name="forgotten", ok=True, count=len(gone), detail=detail)
            return [*check_store_entries(entries, now=SystemClock().now()), forgotten]

    return run_async(look)


def _check_settings(target: Target) -> "Check":
    """Return the check of config.toml and of the variables: how many settings they give, and what is wrong."""
    from ricordo.audit.doctor import Check

    if target.setting_errors:
        told = join_sentences(target.setting_errors)
        rest = (
            "What else that file, or the environment, says is not used either: `ricordo config show` lists what holds"
        )
        detail = f"settings that can't be used: {told} {rest}"
        return Check(name="config", ok=False, count=len(target.setting_errors), detail=detail)
    given = [origin for origin in target.settings.origins.values() if origin.kind in {"file", "environment"}]
    return Check(name="config", ok=True, count=len(given), detail="settings from config.toml and the environment")


def _check_search_mode(target: Target) -> "Check":
    """Return the check of the embedder: one that is named can be used, or none is there."""
    from ricordo.audit.doctor import Check

    finding = describe_search_mode(target.settings)
    return Check(
        name="finding", ok=finding.ok, count=int(finding.embedder is not None), detail=f"found {finding.description}"
    )


def _check_root(target: Target) -> "list[Check]":
    """Return what was found; a root that can't be opened is looked at from outside."""
    from ricordo.audit.doctor import Check
    from ricordo.runtime.assembly import inspect_root

    loss, finds = target.lost_marker_message if target.stray_files else None, describe_search_mode(target.settings).ok
    try:
        if loss is None:
            return with_memory(replace(target, setting_errors=()), lambda memory: memory.doctor(), finds=finds)
    except (DocumentInvalid, ScopeError, StorageError) as error:
        loss = str(error)
    broken = Check(name="root", ok=False, count=1, detail=loss)
    checks = [broken]
    for place in dict.fromkeys([target.user_folder, target.root]):
        with TemporaryDirectory() as folder:
            found = run_async(partial(inspect_root, place, Path(folder)))
        # of what the project shares only what is there
        checks += [check for check in found if place == target.user_folder or check.count or not check.ok]
    return checks
