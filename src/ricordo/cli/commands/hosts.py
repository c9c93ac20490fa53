"""`status` and `hook`: what coding agents, the hosts, and their hooks did with this memory."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.commands.install import SCOPES, TITLE_WIDTH, describe_place, find_connection, list_signs
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, dim, escape, format_age, pluralize, print_json, print_line, wrap
from ricordo.cli.target import Target, answer_hook, locate_target, open_memory, read_memory, run_async
from ricordo.errors import EntryNotFound, RicordoError, RootNotTrusted, SessionNotFound, StorageError
from ricordo.hooks.entry import run_hook
from ricordo.hooks.given import GivenMemory, GivenToSession, list_sessions
from ricordo.hooks.log import SERVED, HookRun, read_runs
from ricordo.hooks.places import HOOKS_FOLDER, Place, find_data_folder, make_place
from ricordo.hooks.spool import list_items
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ricordo.hooks.drainer import DrainReport
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
    "list_given",
    "prepare_next_session",
]

_MAX_SESSIONS = 5
_MAX_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class _HostState:
    """One host in one scope. `trouble` says why its files can't be read, or which program is not there.

    `is_found` says that the host is on this machine. `last` is the last run of a hook, `served` when the host last
    started the MCP server.
    """

    name: str
    title: str
    scope: str
    place: str
    folder: Path
    state: str
    trouble: str
    confirmation: str
    is_found: bool
    has_hooks: bool
    last: HookRun | None
    served: HookRun | None
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
    _print_states(states)
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
    """Return where a host is connected or could be: for this user, and for the project if it is connected there."""
    from ricordo.hooks.hosts import load_host

    own = [run for run in runs if run.host == name]
    hook_runs, served = [run for run in own if run.event != SERVED], [run for run in own if run.event == SERVED]
    states = []
    for scope in SCOPES:
        connection = find_connection(name, scope)
        if connection is None:
            continue
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
                    title=connection.installer.title,
                    scope=scope,
                    place=describe_place(connection),
                    folder=connection.folder,
                    state=state,
                    trouble=trouble,
                    confirmation=connection.installer.confirmations.get(scope, ""),
                    is_found=bool(list_signs(name)),
                    has_hooks=load_host(name) is not None,
                    last=hook_runs[0] if hook_runs else None,
                    served=served[0] if served else None,
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


def _print_states(states: "Sequence[_HostState]") -> None:
    """Print the hosts that are connected or on this machine, and in one line how the others are connected."""
    shown = [state for state in states if state.state != "absent" or state.is_found]
    for state in shown:
        _print_state(state)
    if not shown:
        print_line("No coding agent is connected, and none was found: `ricordo install HOST` connects one.")
    elif others := [state.title for state in states if state not in shown and state.scope == "user"]:
        print_line(dim(wrap(f"Not found: {', '.join(others)}.", f"{'':<{TITLE_WIDTH}} ")))


def _print_state(state: _HostState) -> None:
    title, indent = bold(f"{state.title:<{TITLE_WIDTH}}"), f"{'':<{TITLE_WIDTH}}"
    match state.state:
        case "connected":
            print_line(f"{title} connected{state.place}: {escape(str(state.folder))}")
        case "outdated":
            repair = f"`ricordo install {state.name}` brings it up to date"
            print_line(f"{title} connected{state.place} by another version: {repair}")
        case "absent":
            print_line(f"{title} not connected: `ricordo install {state.name}` does it")
        case _:
            print_line(f"{title} unknown")
    if state.trouble:
        print_line(f"{indent} {escape(state.trouble)}")
    if state.state == "absent":
        return
    if state.has_hooks:
        print_line(f"{indent} {_describe_hooks(state)}".rstrip())
    if state.served or not state.has_hooks:
        age = f"{format_age(datetime.fromtimestamp(state.served.at, UTC))} ago" if state.served else ""
        print_line(f"{indent} {f'it last started the server {age}' if age else 'it has not started the server yet'}")
    if state.troubles:
        print_line(f"{indent} {pluralize(state.troubles, 'run')} had trouble: `ricordo doctor` says which")


def _describe_hooks(state: _HostState) -> str:
    last = state.last
    if last is None:
        return f"no hook has run yet. {state.confirmation}"
    age = format_age(datetime.fromtimestamp(last.at, UTC))
    gave = f", gave {pluralize(last.given, 'memory')}" if last.given else ""
    return f"last hook: {escape(last.event)} {age} ago, {last.milliseconds:,.0f} ms{gave}"


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
        "title": state.title,
        "scope": state.scope,
        "folder": str(state.folder),
        "state": state.state,
        "connected": state.state == "connected",
        "found": state.is_found,
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
        "last_served": _format_time(state.served.at) if state.served else None,
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
