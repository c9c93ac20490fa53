"""`install`, `uninstall` and `hook`: whether a coding agent, the host, uses this memory, and what it starts then."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ricordo import __version__
from ricordo.cli.options import JsonOption, YesOption
from ricordo.cli.render import dim, escape, print_json, print_line, print_note
from ricordo.errors import InvalidInput, RootNotTrusted, StorageError
from ricordo.hooks.contract import PROMPT, STARTED, HookAnswer, HookEvent
from ricordo.hooks.entry import run_hook
from ricordo.hooks.places import Place, make_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.cli.target import Target
    from ricordo.context.config import HooksConfig
    from ricordo.hooks.drainer import DrainReport
    from ricordo.hooks.install.connection import HostConnection
    from ricordo.hooks.install.contract import ConfigChange, Installer, InstallScope
    from ricordo.messages.types import JsonValue

__all__ = ["answer_in_process", "drain_hooks", "hook", "install", "prepare_next_session", "uninstall"]

_HostArgument = Annotated[
    str, typer.Argument(metavar="HOST", help="The coding agent: claude-code or codex.", show_default=False)
]
_ScopeOption = Annotated[
    str,
    typer.Option(
        "--scope",
        metavar="user|project",
        help="For all of your projects, or in the files of this project, for everybody who works in it.",
    ),
]
_DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the difference in each file, and write nothing.")]


def install(
    host: _HostArgument,
    *,
    scope: _ScopeOption = "user",
    dry_run: _DryRunOption = False,
    worker: Annotated[
        bool | None,
        typer.Option(
            "--worker/--no-worker",
            show_default=False,
            help="Whether a process of at most 30 s may learn from a session after it has ended; else it is asked, and "
            "with --yes it may.",
        ),
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Connect a coding agent: it begins each session with what is remembered, and what was said is learned from.

    It adds hooks and an MCP server to the agent's own settings, which otherwise stay as they are, and asks first.
    Doing it twice changes nothing; `ricordo uninstall` restores the settings.
    """
    from ricordo.hooks.install.connection import write_worker_setting
    from ricordo.runtime import Settings

    installer, connection = _open_connection(host, scope)
    changes = connection.plan_install()
    if dry_run:
        _print_plan(connection, changes, as_json)
        return
    _require_approval(yes=yes, as_json=as_json, verb="Connecting")
    if changes and not yes:
        _print_changes(connection, changes)
        typer.confirm(f"Write {'this file' if len(changes) == 1 else f'these {len(changes)} files'}?", True, abort=True)
    is_worker = worker if worker is not None else _ask_for_worker(yes)
    write_worker_setting(Settings.from_environment().data, is_worker=is_worker)
    connection.install(changes)
    if as_json:
        print_json({**_describe(connection, changes), "worker": is_worker, "confirm": installer.confirmation or None})
        return
    _print_effect(installer, scope, is_connected=not changes)


def uninstall(
    host: _HostArgument,
    *,
    scope: _ScopeOption = "user",
    dry_run: _DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Disconnect a coding agent: its settings are again what they were before `ricordo install`.

    What is remembered stays. What somebody changed in the settings since stays too.
    """
    installer, connection = _open_connection(host, scope)
    changes = connection.plan_uninstall()
    if dry_run:
        _print_plan(connection, changes, as_json)
        return
    _require_approval(yes=yes, as_json=as_json, verb="Disconnecting")
    if changes and not yes:
        _print_changes(connection, changes)
        typer.confirm(f"Disconnect {_title(installer)}?", True, abort=True)
    connection.uninstall(changes)
    if as_json:
        print_json(_describe(connection, changes))
    elif changes:
        print_line(f"Disconnected {_title(installer)}. What is remembered stays; `ricordo memory list` shows it.")
    else:
        print_line(f"{_title(installer)} was not connected in {escape(str(connection.folder))}.")


def _open_connection(host: str, scope: str) -> "tuple[Installer, HostConnection]":
    from ricordo.hooks.install.connection import HostConnection, find_host_folder
    from ricordo.hooks.install.hosts import load_installer
    from ricordo.runtime import Settings, new_root_path

    if scope not in {"user", "project"}:
        raise typer.BadParameter(f"{scope!r} is no scope: write user or project.", param_hint="--scope")
    installer = load_installer(host)
    project = new_root_path(Path.cwd()).parent
    folder = find_host_folder(installer, cast("InstallScope", scope), project, os.environ)
    connection = HostConnection(
        installer,
        folder,
        data=Settings.from_environment().data,
        program=_find_program(scope),
        version=__version__,
    )
    return installer, connection


def _find_program(scope: str) -> str:
    """Return what a host starts: this program by its path; in the files of a project, which others use, by its name."""
    if scope == "project":
        return "ricordo"
    called = Path(sys.argv[0])
    beside = Path(sys.executable).with_name("ricordo")
    for place in (called if called.name == "ricordo" else beside, beside):
        if place.is_file() and os.access(place, os.X_OK):
            return str(place.absolute())
    found = shutil.which("ricordo")
    if found is None:
        raise InvalidInput("The program ricordo was not found: install the package, and start it by its name.")
    return found


def _require_approval(*, yes: bool, as_json: bool, verb: str) -> None:
    """Raise `InvalidInput` unless a person can be asked, or has said yes on a command line that no agent wrote."""
    from ricordo.hooks.install.connection import find_agent_variable

    variable = find_agent_variable(os.environ)
    if variable:
        raise InvalidInput(
            f"{verb} a host is up to a person: type this command in a terminal of your own. Here an agent started it "
            f"({variable} is set)."
        )
    if not yes and (as_json or not sys.stdin.isatty()):
        raise InvalidInput(f"{verb} a host changes its settings: look with --dry-run, then give --yes.")


def _ask_for_worker(yes: bool) -> bool:
    question = "May a process of at most 30 s run after a session, to learn from it at once?"
    return yes or typer.confirm(question, True)


def _print_plan(connection: "HostConnection", changes: "Sequence[ConfigChange]", as_json: bool) -> None:
    if as_json:
        print_json(_describe(connection, changes))
        return
    _print_changes(connection, changes)
    print_note("Nothing was written." if changes else "Nothing would change.")


def _print_changes(connection: "HostConnection", changes: "Sequence[ConfigChange]") -> None:
    from ricordo.hooks.install.plan import render_difference

    for change in changes:
        print_line(escape(render_difference(change, name=str(connection.folder / change.path))))
        print_line()


def _describe(connection: "HostConnection", changes: "Sequence[ConfigChange]") -> "dict[str, JsonValue]":
    from ricordo.hooks.install.plan import render_difference

    files: list[JsonValue] = [
        {
            "path": str(connection.folder / change.path),
            "change": "new" if change.before is None else "removed" if change.after is None else "changed",
            "difference": render_difference(change, name=str(connection.folder / change.path)),
        }
        for change in changes
    ]
    return {"folder": str(connection.folder), "files": files}


def _print_effect(installer: "Installer", scope: str, *, is_connected: bool) -> None:
    where = "in all of your projects" if scope == "user" else "in this project"
    print_line(f"{_title(installer)} {'was' if is_connected else 'is now'} connected {where}.")
    print_line("  Each session begins with what is remembered, and a prompt brings the memories that fit it.")
    print_line("  What is said is kept and learned from, in plain files on this machine.")
    print_line(f"  Look: `ricordo status`, `ricordo memory list`. Take it back: `ricordo uninstall {installer.name}`.")
    if installer.confirmation:
        print_line(installer.confirmation)
    if scope == "project" and shutil.which("ricordo") is None:
        print_line(dim("The files name the program `ricordo`, which is not on your PATH: put it there."))


def _title(installer: "Installer") -> str:
    from ricordo.hooks.hosts import load_host

    host = load_host(installer.name)
    return host.title if host else installer.name


def hook(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The coding agent, such as claude-code or codex.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Its name of the event, such as SessionStart.")],
) -> None:
    """Answer a coding agent at an event of its session, which it describes as JSON on standard input.

    A coding agent starts this by itself once it is connected. Whatever goes wrong, the exit code is 0 and a line in the
    hook log says why.
    """
    run_hook([host, event], os.environ, answer_in_process)


def answer_in_process(place: Place, event: HookEvent) -> HookAnswer:
    """Open the memory of a place and return its answer; a notice for the person if its root is not trusted.

    Raises: RicordoError, OSError.
    """
    from ricordo.cli.target import locate_target, read_memory
    from ricordo.hooks.answers import answer_event

    # what a command would tell a person is not for the host
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # the process ends soon
    try:
        target = locate_target(Path(place.root), None, None)
    except RootNotTrusted as error:
        if event.kind != STARTED:
            raise
        return HookAnswer(notice=_format_notice(place, error))
    if not target.exists or target.settings.hooks is None:
        return HookAnswer()
    config: HooksConfig = target.settings.hooks
    return read_memory(
        target,
        lambda memory: answer_event(memory, place, event, config=config),
        finds=event.kind == PROMPT,
    )


def drain_hooks(target: "Target", *, seconds: float) -> "DrainReport | None":
    """Learn from what hooks handed over for a root, and return what was done; None if nothing waits.

    The root is created if it is not there. Raises: RicordoError.
    """
    from ricordo.cli.target import open_memory, run_async
    from ricordo.hooks.drainer import drain_spool
    from ricordo.hooks.spool import list_items

    place = make_place(str(target.root), target.user, os.environ)
    if target.is_shared or not list_items(place):
        return None

    async def drain() -> "DrainReport":
        async with open_memory(target) as memory:
            return await drain_spool(memory, place, seconds=seconds, config=target.settings.hooks)

    return run_async(drain)


def prepare_next_session(target: "Target") -> None:
    """Prepare the preamble for the next session of a coding agent, if hooks were ever used here."""
    from ricordo.cli.target import read_memory
    from ricordo.hooks.answers import prepare_preamble

    place = make_place(str(target.root), target.user, os.environ)
    config = target.settings.hooks
    if config is None or target.is_shared or not Path(place.hooks_folder).is_dir():
        return
    with suppress(OSError, StorageError):
        read_memory(target, lambda memory: prepare_preamble(memory, place, config))


def _format_notice(place: Place, error: RootNotTrusted) -> str:
    import shlex

    path = shlex.quote(place.root)
    if "is not trusted" not in str(error):
        return f"Ricordo ignores the memory in {place.root}: {error}"
    return (
        f"Ricordo ignores the memory in {place.root}, which was not made or trusted on this machine. "
        f"`ricordo trust --show {path}` shows what it holds, `ricordo trust {path}` trusts it."
    )
