"""Teams: a folder with the memory that a team shares is made, opened for a member, and its members are changed."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ricordo.concurrency import run_in_thread
from ricordo.errors import AlreadyExists, RicordoError
from ricordo.lazy import dataclass
from ricordo.runtime.claiming import claim_trusted_root, trust_root
from ricordo.runtime.roots import TEAM_FOLDER, parse_marker, read_marker, read_team_key
from ricordo.runtime.services import Dependencies
from ricordo.runtime.settings import Settings
from ricordo.runtime.trust import IGNORE_ALL_BUT_TEAM
from ricordo.scope import Scope
from ricordo.storage import FileStore
from ricordo.workspace.history.change_sets import ChangeSets
from ricordo.workspace.layout import IGNORE_FILE, PROJECT_FILE, TOMBSTONES
from ricordo.workspace.team import MEMBERS_FILE, Role, TeamAccess, parse_members, render_members

__all__ = ["TeamFolder", "create_team", "find_team", "open_team_access", "set_member"]


_ATTRIBUTES_FILE = ".gitattributes"
_ATTRIBUTES = f"""# Where two people changed a file, git keeps the lines of both, and Ricordo does the rest.
/{MEMBERS_FILE} merge=union
/workspace/MEMORY.md merge=union
/workspace/memory/** merge=union
""".encode()


@dataclass(frozen=True, kw_only=True)
class TeamFolder:
    """The memory of a team on this machine: its folder, its members, and why it is not used; empty if it is."""

    name: str
    folder: Path
    members: Mapping[str, Role]
    trouble: str = ""


def find_team(root: Path, user: str, settings: Settings) -> TeamFolder | None:
    """Return the team whose memory is beside the project's `root`, as `user` may use it; None without one.

    Nothing of a folder that is not trusted is used. It blocks on the disk.
    """
    folder = settings.team or root.parent / TEAM_FOLDER
    if not (folder / PROJECT_FILE).is_file():
        return None
    try:
        settings.check_trust(folder)
        name = parse_marker((folder / PROJECT_FILE).read_bytes()).team or ""
        members = parse_members((folder / MEMBERS_FILE).read_bytes())
    except (OSError, RicordoError) as error:
        return TeamFolder(name="", folder=folder, members={}, trouble=str(error))
    trouble = "" if user in members else f"{user} is no member."
    return TeamFolder(name=name, folder=folder, members=members, trouble=trouble)


async def set_member(files: FileStore, user: str, member: str, role: Role | None, parts: Dependencies) -> None:
    """Give a member of the team whose `files` these are a role; None removes them. `user` is a curator.

    Raises: MembershipRequired; DocumentInvalid.
    """
    owner = await read_marker(files)
    changes = ChangeSets(files, clock=parts.clock, ids=parts.ids, user=user)
    access = await open_team_access(files, changes, (owner.team if owner else None) or "", is_required=True)
    if access is not None:
        await access.set_member(member, role)


async def open_team_access(files: FileStore, changes: ChangeSets, team: str, *, is_required: bool) -> TeamAccess | None:
    """Return what the user of `changes` may do in the memory of a team.

    None for a root that names no members, unless it `is_required` that it names them. Raises: MembershipRequired.
    """
    if not is_required and await files.info(MEMBERS_FILE) is None:
        return None
    access = TeamAccess(files=files, changes=changes, team=team, user=changes.user, key=await read_team_key(files))
    await access.require("reader")
    return access


async def create_team(
    folder: Path, files: FileStore, scope: Scope, user: str, parts: Dependencies, *, trust_list: FileStore
) -> None:
    """Make the folder of a team's memory, of which `user` is the first curator; `scope` has the team.

    Raises: AlreadyExists if it is there; RootNotTrusted for a folder with other files; StorageError.
    """
    if await files.info(PROJECT_FILE) is not None:
        raise AlreadyExists(f"{folder} is a memory already.")
    await run_in_thread(parts.settings.check_trust, folder)
    # the folder is on the list of trusted roots before it has a file, and names its members before it is a team's
    await trust_root(folder, files, trust_list=trust_list, clock=parts.clock, keeps_key=True)
    await files.create(MEMBERS_FILE, render_members({user: "curator"}))
    await files.create(_ATTRIBUTES_FILE, _ATTRIBUTES)
    # git carries only files that somebody added once
    await files.create(TOMBSTONES, b"")
    claim = partial(claim_trusted_root, settings=parts.settings, trust_list=trust_list)
    await claim(folder, files, scope, clock=parts.clock, ids=parts.ids)
    stored = await files.read(IGNORE_FILE)
    await files.replace(IGNORE_FILE, IGNORE_ALL_BUT_TEAM, expected=stored.version)
