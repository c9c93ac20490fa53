"""`install` and `uninstall`: a coding agent, the host, is connected to this memory, and disconnected again."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo import __version__
from ricordo.cli.options import JsonOption, YesOption
from ricordo.cli.render import bold, dim, escape, print_error, print_json, print_line, print_note, wrap
from ricordo.errors import InvalidInput, RicordoError, install_command
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.hooks.install.connection import HostConnection
    from ricordo.hooks.install.contract import ConfigChange, InstallScope
    from ricordo.messages.types import JsonValue

__all__ = ["SCOPES", "TITLE_WIDTH", "describe_place", "find_connection", "install", "list_signs", "uninstall"]

SCOPES: "tuple[InstallScope, ...]" = ("user", "project")
TITLE_WIDTH = 14
_OWN_MEMORY = "personal"

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
    host: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST]",
            show_default=False,
            help="The coding agent, such as claude-code, codex or gemini. Without it those of this machine are shown "
            "and offered.",
        ),
    ] = None,
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
    if host is None:
        _install_found(_check_scope(scope), dry_run=dry_run, worker=worker, yes=yes, as_json=as_json)
        return
    connection = _require_connection(host, scope)
    changes = connection.plan_install()
    if dry_run:
        _print_plan(connection, changes, as_json)
        return
    _require_approval(yes=yes, as_json=as_json, verb="Connecting")
    if changes and not yes:
        _print_changes(connection, changes)
        typer.confirm(f"Write {'this file' if len(changes) == 1 else f'these {len(changes)} files'}?", True, abort=True)
    is_worker = _decide_worker([connection], worker, yes=yes)
    connection.install(changes)
    if as_json:
        confirm = connection.installer.confirmations.get(connection.options.scope)
        print_json({**_describe(connection, changes), "worker": is_worker, "confirm": confirm})
        return
    _print_effect(connection, is_connected=not changes)
    _print_needs([connection])


def uninstall(
    host: Annotated[
        str, typer.Argument(metavar="HOST", help="The coding agent, such as claude-code.", show_default=False)
    ],
    *,
    scope: _ScopeOption = "user",
    dry_run: _DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Disconnect a coding agent: its settings are again what they were before `ricordo install`.

    What is remembered stays. What somebody changed in the settings since stays too.
    """
    connection = _require_connection(host, scope)
    title, changes = connection.installer.title, connection.plan_uninstall()
    if dry_run:
        _print_plan(connection, changes, as_json)
        return
    _require_approval(yes=yes, as_json=as_json, verb="Disconnecting")
    if changes and not yes:
        _print_changes(connection, changes)
        typer.confirm(f"Disconnect {title}?", True, abort=True)
    connection.uninstall(changes)
    if as_json:
        print_json(_describe(connection, changes))
    elif changes:
        print_line(f"Disconnected {title}. What is remembered stays; `ricordo memory list` shows it.")
    else:
        print_line(f"{title} was not connected in {escape(str(connection.folder))}.")


def find_connection(host: str, scope: "InstallScope") -> "HostConnection | None":
    """Return the connection of a host for this user or for the project here; None if it has no such scope.

    Raises: InvalidInput for an unknown host.
    """
    from ricordo.hooks.install.connection import open_connection, read_machine
    from ricordo.hooks.install.hosts import load_installer
    from ricordo.runtime import Settings, new_root_path

    settings = Settings.from_environment()
    return open_connection(
        load_installer(host),
        scope,
        read_machine(new_root_path(Path.cwd(), worktrees="separate").parent, os.environ),
        data=settings.data,
        root=settings.root or settings.data / _OWN_MEMORY,
        program=_find_program(scope),
        version=__version__,
    )


def list_signs(host: str) -> tuple[str, ...]:
    """Return the folders and programs by which it is seen that a host is on this machine; empty if it is not."""
    from ricordo.hooks.install.connection import find_signs, read_machine
    from ricordo.hooks.install.hosts import load_installer

    return find_signs(load_installer(host), read_machine(Path.cwd(), os.environ))


@dataclass(frozen=True, kw_only=True)
class _Offer:
    """A host of this machine: how it is seen, what connecting it changes, and why that can't be done, else empty."""

    connection: "HostConnection"
    signs: tuple[str, ...]
    changes: "tuple[ConfigChange, ...]" = ()
    trouble: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the host can be connected, and is not."""
        return bool(self.changes)


def _install_found(scope: "InstallScope", *, dry_run: bool, worker: bool | None, yes: bool, as_json: bool) -> None:
    """Show the hosts of this machine and what each would get, and connect them if the person agrees."""
    from ricordo.hooks.install.hosts import INSTALLER_NAMES

    offers = [offer for name in INSTALLER_NAMES if (offer := _make_offer(name, scope))]
    open_offers = [offer for offer in offers if offer.is_open]
    is_shown_only = dry_run or not (yes or (sys.stdin.isatty() and not as_json))
    if not is_shown_only and open_offers:
        _require_approval(yes=yes, as_json=as_json, verb="Connecting")
    if not as_json:
        _print_offers(offers, [name for name in INSTALLER_NAMES if name not in _names(offers)], with_files=dry_run)
    troubles: dict[str, str] = {}
    if open_offers and not is_shown_only:
        count = len(open_offers)
        if not yes:
            typer.confirm(f"\nConnect {'it' if count == 1 else f'all {count}'}?", True, abort=True)
        _decide_worker([offer.connection for offer in open_offers], worker, yes=yes)
        troubles = _connect(open_offers, as_json=as_json)
    elif open_offers and not as_json:
        print_line("\n`ricordo install HOST` connects one of them, `ricordo install --yes` all.")
    if as_json:
        done = {} if is_shown_only else {name: name not in troubles for name in _names(open_offers)}
        print_json({"hosts": [_offer_document(offer, done, troubles) for offer in offers]})
    if troubles:
        raise typer.Exit(1)


def _make_offer(name: str, scope: "InstallScope") -> _Offer | None:
    signs, connection = list_signs(name), find_connection(name, scope)
    if not signs or connection is None:
        return None
    try:
        return _Offer(connection=connection, signs=signs, changes=connection.plan_install())
    except RicordoError as error:
        return _Offer(connection=connection, signs=signs, trouble=str(error))


def _connect(offers: "Sequence[_Offer]", *, as_json: bool) -> dict[str, str]:
    """Connect each host, and return what went wrong by its name; one that fails does not keep the others from it."""
    troubles: dict[str, str] = {}
    for offer in offers:
        installer = offer.connection.installer
        try:
            offer.connection.install(offer.changes)
        except RicordoError as error:
            troubles[installer.name] = str(error)
            print_error(f"{installer.title} was not connected: {error}")
            continue
        if not as_json:
            print_line()
            _print_effect(offer.connection, is_connected=False)
    if not as_json:
        _print_needs([offer.connection for offer in offers if offer.connection.installer.name not in troubles])
    return troubles


def _names(offers: "Sequence[_Offer]") -> list[str]:
    return [offer.connection.installer.name for offer in offers]


def _print_offers(offers: "Sequence[_Offer]", others: "Sequence[str]", *, with_files: bool) -> None:
    from ricordo.hooks.install.hosts import load_installer

    print_line("On this machine:" if offers else "No coding agent was found on this machine.")
    for offer in offers:
        installer = offer.connection.installer
        state = offer.trouble or ("" if offer.is_open else "connected already")
        print_line(f"  {bold(f'{installer.title:<{TITLE_WIDTH}}')} {escape(state or ', '.join(offer.signs))}")
        if offer.is_open:
            for line in _format_effects(offer.connection):
                print_line(wrap(line, f"  {'':<{TITLE_WIDTH}}   ", first=f"  {'':<{TITLE_WIDTH}} - "))
        if with_files:
            _print_changes(offer.connection, offer.changes)
    if others:
        titles = ", ".join(load_installer(name).title for name in others)
        print_line(dim(wrap(f"Not found: {titles}.", "  ")))


def _offer_document(offer: _Offer, done: dict[str, bool], troubles: dict[str, str]) -> "JsonValue":
    name = offer.connection.installer.name
    is_connected = done.get(name, not offer.is_open and not offer.trouble)
    return {
        "host": name,
        "title": offer.connection.installer.title,
        "found": list(offer.signs),
        "connected": is_connected,
        "trouble": offer.trouble or troubles.get(name) or None,
        **_describe(offer.connection, offer.changes),
    }


def _check_scope(scope: str) -> "InstallScope":
    if scope not in SCOPES:
        raise typer.BadParameter(f"{scope!r} is no scope: write user or project.", param_hint="--scope")
    return scope


def _require_connection(host: str, scope: str) -> "HostConnection":
    """Return the connection of a host. Raises: InvalidInput for an unknown host, and for a scope that it lacks."""
    connection = find_connection(host, _check_scope(scope))
    if connection is None:
        raise InvalidInput(f"{host} has no settings of a project: leave --scope project out.")
    return connection


def _find_program(scope: str) -> str:
    """Return what a host starts: this program by its path; in the files of a project, which others use, by its name."""
    if scope == "project":
        return "ricordo"
    places = [Path(sys.argv[0]), Path(sys.executable)]
    programs = [place.absolute().with_name("ricordo") for place in places]
    found = next((str(each) for each in programs if os.access(each, os.X_OK)), None) or shutil.which("ricordo")
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


def _decide_worker(connections: "Sequence[HostConnection]", worker: bool | None, *, yes: bool) -> bool | None:
    """Write whether a worker may run after a session, as the person said; None where no host would start one."""
    from ricordo.hooks.install.connection import write_worker_setting
    from ricordo.runtime import Settings

    if not any(connection.installer.learns for connection in connections):
        return None
    question = "May a process of at most 30 s run after a session, to learn from it at once?"
    is_worker = worker if worker is not None else yes or typer.confirm(question, True)
    write_worker_setting(Settings.from_environment().data, is_worker=is_worker)
    return is_worker


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
    return {"folder": str(connection.folder), "program": connection.options.program, "files": files}


def _format_effects(connection: "HostConnection") -> list[str]:
    return [effect.replace("{root}", connection.options.root) for effect in connection.installer.effects]


def describe_place(connection: "HostConnection") -> str:
    """Return for which projects a host is connected, after a space; empty for one that knows no projects."""
    if connection.options.scope == "project":
        return " in this project"
    return "" if any("{root}" in effect for effect in connection.installer.effects) else " in all of your projects"


def _print_effect(connection: "HostConnection", *, is_connected: bool) -> None:
    installer, scope = connection.installer, connection.options.scope
    print_line(f"{installer.title} {'was' if is_connected else 'is now'} connected{describe_place(connection)}.")
    for effect in _format_effects(connection):
        print_line(f"  {escape(effect)}")
    print_line(f"  Look: `ricordo status`, `ricordo memory list`. Take it back: `ricordo uninstall {installer.name}`.")
    if confirmation := installer.confirmations.get(scope):
        print_line(escape(confirmation))


def _print_needs(connections: "Sequence[HostConnection]") -> None:
    """Say what is missing on this machine for the hosts that were connected."""
    if find_spec("mcp") is None:
        print_line(f"Its model has no tools of the memory yet: {install_command('mcp')} adds them.")
    if any(each.options.scope == "project" for each in connections) and shutil.which("ricordo") is None:
        print_line(dim("The files name the program `ricordo`, which is not on your PATH: put it there."))
