"""`memory track` and `untrack`: whether git sees the curated memory of a root.

A root hides all of itself from git. Only a person's explicit word lets git see MEMORY.md and the topics; transcripts,
ledgers, keys and caches stay hidden also then.
"""

import sys
from typing import TYPE_CHECKING

import typer

from ricordo.cli.context import existing, run
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption, YesOption
from ricordo.cli.render import emit, say, shown
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
    target = existing(root, user, project)
    if not yes:
        if not sys.stdin.isatty() or as_json:
            raise InvalidInput("Letting git see the memory needs a confirmation: give --yes.")
        say(f"git will see MEMORY.md and memory/topics in {shown(str(target.root / 'workspace'))}.")
        say("Once committed, everybody who sees the repository can read them.")
        typer.confirm("Let git see them?", abort=True)
    from ricordo.runtime.trust import SHOWS_CURATED

    _set_rule(target.root, SHOWS_CURATED)
    _tell("git sees MEMORY.md and memory/topics now; nothing was added or committed.", as_json, tracked=True)


def untrack(
    *,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hide all of the root from git again; what was committed stays in its history."""
    target = existing(root, user, project)
    from ricordo.runtime.trust import HIDES_ALL

    _set_rule(target.root, HIDES_ALL)
    _tell("git sees nothing of the root. `git rm --cached` takes out what was added before.", as_json, tracked=False)


def _set_rule(root: "Path", rule: bytes) -> None:
    from ricordo.files import ABSENT
    from ricordo.runtime.assembly import files_of
    from ricordo.workspace.layout import IGNORE_FILE

    async def replace() -> None:
        files = files_of(root)
        try:
            version = (await files.read(IGNORE_FILE)).version
        except FileMissing:
            version = ABSENT
        await files.replace(IGNORE_FILE, rule, expected=version)

    run(replace)


def _tell(message: str, as_json: bool, *, tracked: bool) -> None:
    if as_json:
        emit({"tracked": tracked})
    else:
        say(message)
