"""`doctor`: what is well and what is not."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from ricordo.cli.context import Target, existing, run, with_memory
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import emit, say, shown
from ricordo.errors import DocumentInvalid, ScopeError, StorageError

if TYPE_CHECKING:
    from ricordo.audit.doctor import Check
    from ricordo.messages.types import JsonValue

__all__ = ["doctor"]


def doctor(
    *,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at every part of the root and change nothing.

    The exit code is 1 if something is wrong.
    """
    target = existing(root, user, project)
    checks = _checks(target)
    well = all(check.ok for check in checks)
    if as_json:
        documents: list[JsonValue] = [
            {"name": check.name, "ok": check.ok, "count": check.count, "detail": check.detail} for check in checks
        ]
        emit({"root": str(target.root), "ok": well, "checks": documents})
    else:
        say(f"{shown(str(target.root))}")
        for check in checks:
            say(f"  {'ok  ' if check.ok else 'FAIL'}  {check.name:<10} {check.count:>6,}  {shown(check.detail)}")
    if not well:
        raise typer.Exit(1)


def _checks(target: Target) -> "list[Check]":
    """Return what was found; a root that can't be opened is looked at from outside."""
    from ricordo.audit.doctor import Check
    from ricordo.runtime.assembly import inspect_root

    try:
        return with_memory(target, lambda memory: memory.doctor())
    except (DocumentInvalid, ScopeError, StorageError) as error:
        broken = Check(name="root", ok=False, count=1, detail=str(error))
    with TemporaryDirectory() as folder:
        return [broken, *run(lambda: inspect_root(target.root, Path(folder)))]
