"""`memory track` and `untrack`: whether git sees the curated memory of a root.

A root hides all of itself from git. Only a person's explicit word lets git see MEMORY.md and the topics; transcripts,
ledgers, keys and caches stay hidden also then.
"""

import sys
from typing import TYPE_CHECKING

import typer

from ricordo.cli.context import require_target, run_async
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption, YesOption
from ricordo.cli.render import print_json, print_line, escape
from ricordo.errors import FileMissing, InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["track", "untrack"]


def track(
    *,
    yes: YesOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let git see the curated memory: MEMORY.md and the topics, nothing else.

    Whoever sees the repository can then read them. It asks first; without a terminal it needs --yes.
    """
    target = require_target(root, user, project)
    if not yes:
        if not sys.stdin.isatty() or as_json:
            raise InvalidInput("Letting git see the memory needs a confirmation: give --yes.")
        print_line(f"git will see MEMORY.md and memory/topics in {escape(str(target.root / 'workspace'))}.")
        print_line("Once committed, everybody who sees the repository can read them.")
        typer.confirm("Let git see them?", abort=True)
    from ricordo.runtime.trust import IGNORE_ALL_BUT_CURATED

    _write_gitignore(target.root, IGNORE_ALL_BUT_CURATED)
    _print_tracked("git sees MEMORY.md and memory/topics now; nothing was added or committed.", as_json, tracked=True)


def untrack(
    *,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hide all of the root from git again; what was committed stays in its history."""
    target = require_target(root, user, project)
    from ricordo.runtime.trust import IGNORE_ALL

    _write_gitignore(target.root, IGNORE_ALL)
    _print_tracked(
        "git sees nothing of the root. `git rm --cached` takes out what was added before.", as_json, tracked=False
    )


def _write_gitignore(root: "Path", rule: bytes) -> None:
    from ricordo.files import ABSENT
    from ricordo.runtime.assembly import root_files
    from ricordo.workspace.layout import IGNORE_FILE

    async def replace() -> None:
        files = root_files(root)
        try:
            version = (await files.read(IGNORE_FILE)).version
        except FileMissing:
            version = ABSENT
        await files.replace(IGNORE_FILE, rule, expected=version)

    run_async(replace)


def _print_tracked(message: str, as_json: bool, *, tracked: bool) -> None:
    if as_json:
        print_json({"tracked": tracked})
    else:
        print_line(message)
