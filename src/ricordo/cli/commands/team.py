"""`team`, `promote` and `demote`: what a team remembers together, who its members are, and who sees a memory."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.json_output import entry_document
from ricordo.cli.options import EntryId, JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import escape, print_json, print_line
from ricordo.cli.target import Target, find_target, find_team, require_target, run_async, with_memory
from ricordo.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue
    from ricordo.scope import ScopeName
    from ricordo.workspace.team import Role

__all__ = ["add", "create", "demote", "promote", "remove", "show"]


_Member = Annotated[str, typer.Argument(metavar="NAME", help="The name of the member, as of RICORDO_USER.")]
_Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the history keeps it.")]


def create(
    *,
    name: Annotated[str, typer.Argument(metavar="TEAM", help="The name of the team.")],
    path: Annotated[
        Path | None, typer.Argument(metavar="[PATH]", help="The new folder; by default .ricordo-team beside the root.")
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the folder of a team's memory, which git can carry; you are its first curator."""
    from ricordo.runtime.services import Dependencies
    from ricordo.runtime.teams import create_team
    from ricordo.runtime.workspace import root_files, trust_list_files
    from ricordo.scope import Scope

    target = find_target(root, user, project)
    folder = (path or _team_folder(target)).absolute()
    parts = Dependencies.create(settings=target.settings)
    scope = Scope(team=name, tenant=target.tenant)
    make = partial(create_team, folder, root_files(folder), scope, target.user, parts)
    run_async(partial(make, trust_list=trust_list_files(parts)))
    if as_json:
        print_json({"team": name, "folder": str(folder), "members": {target.user: "curator"}})
        return
    print_line(f"Made the memory of the team {escape(name)} in {escape(str(folder))}.")
    print_line("Commit it: git carries what the team shares, and nothing else of the folder.")


def show(
    *,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the team that shares memory here, its members and their roles."""
    target = find_target(root, user, project)
    team = find_team(target)
    if team is None:
        raise NotFound(f"There is no memory of a team in {_team_folder(target)}: `ricordo team create` makes one.")
    if as_json:
        members: dict[str, JsonValue] = {**team.members}
        print_json({"team": team.name, "folder": str(team.folder), "members": members, "trouble": team.trouble})
        return
    print_line(f"{escape(team.name or 'A team')}, in {escape(str(team.folder))}")
    for name, role in sorted(team.members.items()):
        print_line(f"  {role} {escape(name)}")
    if team.trouble:
        print_line(f"It is not used: {escape(team.trouble)}")


def add(
    *,
    name: _Member,
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help="reader, writer or curator.")] = "writer",
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a person read what the team shares, save for it, or take care of it; a curator does so."""
    if role not in {"reader", "writer", "curator"}:
        raise InvalidInput(f"A role is reader, writer or curator, not {role!r}.")
    _set_member(find_target(root, user, project), name, role, as_json=as_json)  # type: ignore[arg-type]


def remove(
    *,
    name: _Member,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a member out of the team: they read and write nothing of it any more, once git has carried it to them."""
    _set_member(find_target(root, user, project), name, None, as_json=as_json)


def _set_member(target: Target, name: str, role: "Role | None", *, as_json: bool) -> None:
    from ricordo.runtime.services import Dependencies
    from ricordo.runtime.teams import set_member
    from ricordo.runtime.workspace import root_files

    team = find_team(target)
    if team is None:
        raise NotFound(f"There is no memory of a team in {_team_folder(target)}.")
    target.settings.check_trust(team.folder)
    parts = Dependencies.create(settings=target.settings)
    run_async(partial(set_member, root_files(team.folder), target.user, name, role, parts))
    if as_json:
        print_json({"member": name, "role": role})
    else:
        print_line(f"{escape(name)} is a {role} of {escape(team.name)}." if role else f"{escape(name)} is out.")


def _team_folder(target: Target) -> Path:
    from ricordo.runtime.roots import TEAM_FOLDER

    return target.settings.team or target.root.parent / TEAM_FOLDER


def promote(
    *,
    entry_id: EntryId,
    to: Annotated[str, typer.Option("--to", metavar="SCOPE", help="project, team, or user: all of your projects.")],
    reason: _Reason = "",
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let more people, or more projects, see a memory; needs --reason. `ricordo undo` takes it back."""
    _move(require_target(root, user, project), entry_id, to, reason, {"project", "team", "user"}, as_json=as_json)


def demote(
    *,
    entry_id: EntryId,
    to: Annotated[str, typer.Option("--to", metavar="SCOPE", help="private: yours alone in this project.")] = "private",
    reason: _Reason = "",
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a memory yours alone again; the others no longer see it. `ricordo undo` takes it back."""
    _move(require_target(root, user, project), entry_id, to, reason, {"private"}, as_json=as_json)


def _move(target: Target, entry_id: str, to: str, reason: str, scopes: set[str], *, as_json: bool) -> None:
    if to not in scopes:
        raise InvalidInput(f"--to is {' or '.join(sorted(scopes))}, not {to!r}.")
    name: ScopeName = to  # type: ignore[assignment]
    entry = with_memory(target, lambda memory: memory.move(entry_id, name, reason=reason))
    if as_json:
        print_json({"moved": entry_document(entry, target.settings.decay), "to": to})
    else:
        print_line(f"Moved {entry.id} to {to}. `ricordo undo` takes it back.")
