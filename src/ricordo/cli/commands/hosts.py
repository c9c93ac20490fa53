"""`install`, `uninstall`, `status` and `hook`: whether a coding agent, the host, uses this memory, and how."""

import os
import shutil
import sys
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ricordo import __version__
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption, YesOption
from ricordo.cli.render import (
    bold,
    dim,
    escape,
    format_age,
    pluralize,
    print_json,
    print_line,
    print_note,
    wrap,
)
from ricordo.cli.target import Target, answer_hook, locate_target, open_memory, read_memory, run_async
from ricordo.errors import (
    EntryNotFound,
    InvalidInput,
    RicordoError,
    RootNotTrusted,
    SessionNotFound,
    StorageError,
    install_command,
)
from ricordo.hooks.entry import run_hook
from ricordo.hooks.given import GivenMemory, GivenToSession, list_sessions
from ricordo.hooks.log import HookRun, read_runs
from ricordo.hooks.places import HOOKS_FOLDER, Place, find_data_folder, make_place
from ricordo.hooks.spool import list_items
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ricordo.hooks.drainer import DrainReport
    from ricordo.hooks.install.connection import HostConnection
    from ricordo.hooks.install.contract import ConfigChange, Installer, InstallScope
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.memory import Memory
    from ricordo.workspace.entry import Entry

__all__ = [
    "describe_given",
    "drain_hooks",
    "explain_session",
    "given_document",
    "hook",
    "host_status",
    "install",
    "list_given",
    "prepare_next_session",
    "uninstall",
]

_MAX_SESSIONS = 5
_MAX_SHOWN = 3
_SCOPES = ("user", "project")

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
        typer.confirm(f"Disconnect {_host_title(installer.name)}?", True, abort=True)
    connection.uninstall(changes)
    if as_json:
        print_json(_describe(connection, changes))
    elif changes:
        print_line(
            f"Disconnected {_host_title(installer.name)}. What is remembered stays; `ricordo memory list` shows it."
        )
    else:
        print_line(f"{_host_title(installer.name)} was not connected in {escape(str(connection.folder))}.")


def _open_connection(host: str, scope: str) -> "tuple[Installer, HostConnection]":
    """Return how a host is connected, and the connection for this user or for the project here."""
    from ricordo.hooks.install.connection import HostConnection, find_host_folder
    from ricordo.hooks.install.hosts import load_installer
    from ricordo.runtime import Settings, new_root_path

    if scope not in {"user", "project"}:
        raise typer.BadParameter(f"{scope!r} is no scope: write user or project.", param_hint="--scope")
    installer = load_installer(host)
    project = new_root_path(Path.cwd()).parent
    folder = find_host_folder(installer, cast("InstallScope", scope), project, os.environ)
    data, program = Settings.from_environment().data, _find_program(scope)
    return installer, HostConnection(installer, folder, data=data, program=program, version=__version__)


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
    return {"folder": str(connection.folder), "program": connection.program, "files": files}


def _print_effect(installer: "Installer", scope: str, *, is_connected: bool) -> None:
    where = "in all of your projects" if scope == "user" else "in this project"
    print_line(f"{_host_title(installer.name)} {'was' if is_connected else 'is now'} connected {where}.")
    print_line("  Each session begins with what is remembered, and a prompt brings the memories that fit it.")
    print_line("  What is said is kept and learned from, in plain files on this machine.")
    print_line(f"  Look: `ricordo status`, `ricordo memory list`. Take it back: `ricordo uninstall {installer.name}`.")
    if installer.confirmation:
        print_line(installer.confirmation)
    if find_spec("mcp") is None:
        print_line(f"Its model has no tools of the memory yet: {install_command('mcp')} adds them.")
    if scope == "project" and shutil.which("ricordo") is None:
        print_line(dim("The files name the program `ricordo`, which is not on your PATH: put it there."))


@dataclass(frozen=True, kw_only=True)
class _HostState:
    """One host in one scope. `trouble` says why its files can't be read, or which program is not there."""

    name: str
    scope: str
    folder: Path
    state: str
    trouble: str
    confirmation: str
    last: HookRun | None
    troubles: int


@dataclass(frozen=True, kw_only=True)
class _LearnedSession:
    """A session that was learned from, and the memories that rest on it, newest first."""

    session: str
    last: datetime
    entries: "tuple[Entry, ...]"


def host_status(
    *, root: RootOption = None, user: UserOption = None, project: ProjectOption = None, as_json: JsonOption = False
) -> None:
    """Show whether coding agents are connected, when a hook last ran, what was learned lately, and what waits."""
    runs = read_runs(str(Path(find_data_folder(os.environ), HOOKS_FOLDER)))
    states = [state for name in _host_names() for state in _read_states(name, runs)]
    try:
        target = locate_target(root, user, project)
    except RootNotTrusted as error:
        target, trouble = None, str(error)
    else:
        trouble = ""
    place = make_place(str(target.root), target.user, os.environ) if target else None
    waiting = len(list_items(place)) if place else 0
    learned = read_memory(target, _load_learned) if target and target.exists else []
    if as_json:
        document: dict[str, JsonValue] = {
            "hosts": [_state_document(state) for state in states],
            "root": str(target.root) if target else None,
            "trouble": trouble or None,
            "learned": [_learned_document(each) for each in learned],
            "waiting": waiting,
        }
        print_json(document)
        return
    for state in states:
        _print_state(state)
    _print_learned(learned)
    if trouble:
        print_line(escape(trouble))
    if waiting:
        print_line(
            f"{bold('Waiting')}   {pluralize(waiting, 'part of a transcript', 'parts of transcripts')}: learned from "
            "while a session runs, or by `ricordo maintain`"
        )


def explain_session(target: Target, name: str, *, as_json: bool) -> None:
    """Print which memories hooks gave to a session of a coding agent, by the beginning of its id or `last`."""
    given = _find_session(make_place(str(target.root), target.user, os.environ), name)
    entries = read_memory(target, lambda memory: _load_entries(memory, given.memories))
    if as_json:
        memories: list[JsonValue] = [
            {"id": each.id, "event": each.event, "at": _format_time(each.at), "content": entries.get(each.id)}
            for each in given.memories
        ]
        print_json({"host": given.host, "session": given.session, "memories": memories})
        return
    print_line(f"{_host_title(given.host)}, session {escape(given.session)}")
    if not given.memories:
        print_line("  It was given no memory.")
    for each in given.memories:
        print_line(wrap(entries.get(each.id) or "(forgotten)", "  "))
        print_line(dim(f"    {each.id}, {_describe_event(each.event)}, {_format_time(each.at)}"))


def list_given(target: Target, entry_id: str) -> list[tuple[GivenToSession, GivenMemory]]:
    """Return the sessions of coding agents that were given a memory, the one used last first."""
    place = make_place(str(target.root), target.user, os.environ)
    return [(given, each) for given in list_sessions(place) for each in given.memories if each.id == entry_id]


def describe_given(given: GivenToSession, memory: GivenMemory) -> str:
    """Return when and how a session of a coding agent was given a memory."""
    session = f"{_host_title(given.host)} session {given.session}"
    return escape(f"given to {session} {_describe_event(memory.event)}, {_format_time(memory.at)}")


def given_document(given: GivenToSession, memory: GivenMemory) -> "dict[str, JsonValue]":
    """Return the same as JSON."""
    return {"host": given.host, "session": given.session, "event": memory.event, "at": _format_time(memory.at)}


def _host_names() -> "Iterable[str]":
    from ricordo.hooks.install.hosts import INSTALLER_NAMES

    return INSTALLER_NAMES


def _read_states(name: str, runs: "Sequence[HookRun]") -> list[_HostState]:
    """Return where a host is connected or ought to be: for this user, and for the project if it is connected there."""
    own = [run for run in runs if run.host == name]
    states = []
    for scope in _SCOPES:
        installer, connection = _open_connection(name, scope)
        try:
            state: str = connection.read_state()
            trouble = ""
            if state != "absent" and (missing := connection.find_missing_program()):
                trouble = f"the program {missing} is not there"
        except RicordoError as error:
            state, trouble = "unreadable", str(error)
        if scope == "user" or state != "absent":
            states.append(
                _HostState(
                    name=name,
                    scope=scope,
                    folder=connection.folder,
                    state=state,
                    trouble=trouble,
                    confirmation=installer.confirmation,
                    last=own[0] if own else None,
                    troubles=sum(bool(run.trouble) for run in own),
                )
            )
    return states


async def _load_learned(memory: "Memory") -> list[_LearnedSession]:
    sessions = sorted(await memory.sessions(), key=lambda info: info.last, reverse=True)[:_MAX_SESSIONS]
    entries = await memory.entries()
    return [
        _LearnedSession(
            session=info.session,
            last=info.last,
            entries=tuple(entry for entry in entries if entry.source.session == info.session),
        )
        for info in sessions
    ]


async def _load_entries(memory: "Memory", given: "Iterable[GivenMemory]") -> dict[str, str]:
    contents = {}
    for each in given:
        try:
            contents[each.id] = (await memory.entry(each.id)).content
        except EntryNotFound:
            continue
    return contents


def _find_session(place: Place, name: str) -> GivenToSession:
    sessions = list_sessions(place)
    found = [each for each in sessions if each.session.startswith(name)] if name != "last" else sessions[:1]
    if len(found) != 1:
        known = ", ".join(each.session for each in (found or sessions)[:_MAX_SESSIONS]) or "none"
        raise SessionNotFound(f"{'No' if not found else 'More than one'} session begins with {name}: {known}.")
    return found[0]


def _print_state(state: _HostState) -> None:
    title = bold(f"{_host_title(state.name):<12}")
    where = "in all of your projects" if state.scope == "user" else "in this project"
    match state.state:
        case "connected":
            print_line(f"{title} connected {where}: {escape(str(state.folder))}")
        case "outdated":
            print_line(
                f"{title} connected {where} by another version: `ricordo install {state.name}` brings it up to date"
            )
        case "absent":
            print_line(f"{title} not connected: `ricordo install {state.name}` does it")
    if state.trouble:
        print_line(f"{'':<12} {escape(state.trouble)}")
    if state.state == "absent":
        return
    if state.last is None:
        print_line(f"{'':<12} no hook has run yet. {state.confirmation}".rstrip())
        return
    age = format_age(datetime.fromtimestamp(state.last.at, UTC))
    gave = f", gave {pluralize(state.last.given, 'memory')}" if state.last.given else ""
    print_line(f"{'':<12} last hook: {escape(state.last.event)} {age} ago, {state.last.milliseconds:,.0f} ms{gave}")
    if state.troubles:
        print_line(f"{'':<12} {pluralize(state.troubles, 'run')} had trouble: `ricordo doctor` says which")


def _print_learned(learned: "Sequence[_LearnedSession]") -> None:
    for each in learned:
        count = pluralize(len(each.entries), "memory")
        print_line(f"{bold('Learned')}      {count} from {escape(each.session)}, {format_age(each.last)} ago")
        for entry in each.entries[:_MAX_SHOWN]:
            print_line(wrap(entry.content, f"{'':<15}", first=f"{'':<13}- "))


def _state_document(state: _HostState) -> "dict[str, JsonValue]":
    last = state.last
    return {
        "host": state.name,
        "title": _host_title(state.name),
        "scope": state.scope,
        "folder": str(state.folder),
        "state": state.state,
        "connected": state.state == "connected",
        "trouble": state.trouble or None,
        "last_hook": {
            "event": last.event,
            "at": _format_time(last.at),
            "milliseconds": last.milliseconds,
            "source": last.source,
            "given": last.given,
            "trouble": last.trouble or None,
        }
        if last
        else None,
        "troubles": state.troubles,
    }


def _learned_document(learned: _LearnedSession) -> "dict[str, JsonValue]":
    memories: list[JsonValue] = [{"id": entry.id, "content": entry.content} for entry in learned.entries]
    return {"session": learned.session, "last": learned.last.isoformat(), "memories": memories}


def _describe_event(event: str) -> str:
    return "as the session began" if event == "session-start" else "at a prompt"


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _host_title(name: str) -> str:
    """Return the name of a host for people."""
    from ricordo.hooks.hosts import load_host

    host = load_host(name)
    return host.title if host else name


def hook(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The coding agent, such as claude-code or codex.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Its name of the event, such as SessionStart.")],
) -> None:
    """Answer a coding agent at an event of its session, which it describes as JSON on standard input.

    A coding agent starts this by itself once it is connected. Whatever goes wrong, the exit code is 0 and a line in the
    hook log says why.
    """
    run_hook([host, event], os.environ, answer_hook)


def drain_hooks(target: "Target", *, seconds: float) -> "DrainReport | None":
    """Learn from what hooks handed over for a root, and return what was done; None if nothing waits.

    The root is created if it is not there. Raises: RicordoError.
    """
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
    from ricordo.hooks.answers import prepare_preamble

    place = make_place(str(target.root), target.user, os.environ)
    config = target.settings.hooks
    if config is None or target.is_shared or not Path(place.hooks_folder).is_dir():
        return
    with suppress(OSError, StorageError):
        read_memory(target, lambda memory: prepare_preamble(memory, place, config))
