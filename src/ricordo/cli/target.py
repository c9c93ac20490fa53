"""From options to memory: which root, whose scope, and the one place where an event loop runs.

A root's marker says whose it is; what it does not say is the user of this machine and, for a root that is not there
yet, the project named after the folder that holds it. Finding a root creates nothing. Settings that can't be used are
reported in one line, and commands go on without them.

Invariant: a root is only ever made in a folder that is new, empty, or was begun as a root; one that has lost its marker
is neither skipped nor claimed anew.
"""

import os
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ricordo.errors import (
    DocumentInvalid,
    FileMissing,
    InvalidInput,
    InvalidSetting,
    RicordoError,
    RootNotFound,
    RootNotTrusted,
    StorageError,
)
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from ricordo.guard import Redactor
    from ricordo.hooks.contract import HookAnswer, HookEvent
    from ricordo.hooks.places import Place
    from ricordo.runtime import Settings
    from ricordo.runtime.memory import Memory
    from ricordo.runtime.teams import TeamFolder
    from ricordo.scope import Scope

__all__ = [
    "Target",
    "answer_hook",
    "find_root_folder",
    "find_target",
    "find_team",
    "load_redactor",
    "load_scope",
    "locate_target",
    "open_memory",
    "open_personal_memory",
    "print_setting_errors",
    "read_memory",
    "require_target",
    "run_async",
    "with_memory",
]


_T = TypeVar("_T")
_MAX_PROJECT_CHARS = 200
_LOCAL_EMBEDDERS = frozenset({"auto", "static", "minilm", "multilingual", "hashing"})
_EMBEDDING_SECONDS = 0.5
# what a root holds from its first moments on, and keeps when its making was cut off
_ROOT_FILES = frozenset(
    {".gitignore", "guard.key", "locks", "users", "history", "trash", "queue.db", "memory_index.db", "config.toml"}
)
# what a root holds once it was opened
_USED_ROOT_FILES = ("users", "queue.db", "memory_index.db", "history")
_IGNORE_ALL = b"*"


@dataclass(frozen=True, kw_only=True)
class Target:
    """The root that a command works on, there or not, and for whom.

    `owner` is whose root it is by its marker, None where there is none that can be read. With `is_shared` the command
    is for what the project shares, and not for what is the user's alone. `session` is the one whose own memory it sees
    too. `setting_errors` is what keeps settings from being used; `settings` are those that hold without it.
    `stray_files` counts the files of a memory that lie where no marker says whose root it is.
    """

    root: Path
    exists: bool
    user: str
    owner: "Scope | None"
    project: str | None
    settings: "Settings"
    setting_errors: tuple[RicordoError, ...] = ()
    stray_files: int = 0
    is_shared: bool = False
    session: str | None = None

    @property
    def lost_marker_message(self) -> str:
        """Say what a root without its marker lacks, and how it is mended."""
        from ricordo.workspace.layout import PROJECT_FILE

        files = "1 file" if self.stray_files == 1 else f"{self.stray_files:,} files"
        return (
            f"{PROJECT_FILE} is missing from {self.root}, where {files} of a memory are: restore it from a backup, "
            f"or write whose memory it is into it, such as "
            f'{{"scope": {{"project": "{_default_project_name(self.root)}"}}}}.'
        )

    @property
    def tenant(self) -> str | None:
        """The tenant that the root's marker names."""
        return self.owner.tenant if self.owner else None

    @property
    def user_folder(self) -> Path:
        """The folder of what is the user's alone in the root; the root itself where nobody shares it."""
        from ricordo.runtime.roots import scope_folder
        from ricordo.scope import Scope

        if self.is_shared or (self.owner is not None and not (self.owner.project or self.owner.team)):
            return self.root
        return scope_folder(self.root, Scope(user=self.user, project="any"))

    @property
    def project_folder(self) -> Path:
        """The folder that the root belongs to."""
        return self.root.parent

    def folders(self) -> dict[str, Path]:
        """Return the folders of the places that are read, narrowest first, by the label that their hits carry."""
        from ricordo.runtime.roots import TEAM_FOLDER, session_folder, user_root_path

        users = user_root_path(self.settings.data, self.user, self.tenant)
        session = {"session": session_folder(self.user_folder, self.session)} if self.session else {}
        own = {"project": self.user_folder, "own": self.user_folder, "shared": self.root, "user": users}
        return session | own | {"team": self.settings.team or self.root.parent / TEAM_FOLDER}

    def display_path(self, path: str, label: str = "project") -> str:
        """Return the file at `path` of a place so that it can be opened from here."""
        absolute_path = self.folders().get(label, self.user_folder).absolute() / path
        here = Path.cwd()
        return str(absolute_path.relative_to(here) if absolute_path.is_relative_to(here) else absolute_path)


def locate_target(root: Path | None, user: str | None, project: str | None) -> Target:
    """Return the root that was named, else the nearest one, else where a new one would be created.

    A folder that holds a root, such as a project's, stands for that root. Raises: RootNotTrusted, before anything of
    the root is read; InvalidInput for a folder that holds other things.
    """
    from ricordo.runtime import Settings
    from ricordo.workspace.layout import PROJECT_FILE

    folder = find_root_folder(root)
    exists = (folder / PROJECT_FILE).is_file()
    if not (exists or (folder / "guard.key").is_file() or _count_workspace_files(folder)):
        _check_root_folder(folder)
    Settings.from_environment().check_trust(folder)
    loaded, trouble = _load_settings(folder, {"root": root.absolute() if root else None, "user": user or None})
    settings = loaded.with_default_embedder()
    return Target(
        root=folder,
        exists=exists,
        user=settings.user,
        owner=_read_owner(folder) if exists else None,
        project=project,
        settings=settings,
        setting_errors=trouble,
        stray_files=0 if exists else _count_workspace_files(folder),
    )


def find_root_folder(root: Path | None) -> Path:
    """Return the folder of the root that was named, else of the nearest one, else where a new one would be created."""
    from ricordo.runtime import Settings, new_root_path
    from ricordo.runtime.roots import ROOT_FOLDER
    from ricordo.workspace.layout import PROJECT_FILE

    here = Path.cwd()
    settings = Settings.from_environment()
    configured_root, worktrees = root or settings.root, settings.worktrees
    folder = (configured_root or _nearest_root(here, worktrees) or new_root_path(here, worktrees)).absolute()
    is_around = bool(configured_root) and not (folder / PROJECT_FILE).is_file() and (folder / ROOT_FOLDER).is_dir()
    return folder / ROOT_FOLDER if is_around and folder.name != ROOT_FOLDER else folder


def find_target(
    root: Path | None, user: str | None, project: str | None, *, strict: bool = False, shared: bool = False,
    session: str | None = None,
) -> Target:  # fmt: skip
    """Return the root that was named, else the nearest one, else where a new one would be created.

    With `strict` settings that can't be used are raised. With `shared` it is for what the project shares.

    Raises:
        DocumentInvalid: the files of a memory are there, and the marker of their root is not.
        InvalidInput: the folder holds other things, so that no root can be made of it.
    """
    target = replace(locate_target(root, user, project), is_shared=shared, session=session)
    if strict and target.setting_errors:
        raise target.setting_errors[0]
    if target.stray_files:
        raise DocumentInvalid(target.lost_marker_message)
    return target


def require_target(
    root: Path | None, user: str | None, project: str | None, *, shared: bool = False, session: str | None = None
) -> Target:
    """Return the root that was named or found. Raises `RootNotFound`, and what `find_target` raises."""
    target = find_target(root, user, project, shared=shared, session=session)
    if not target.exists:
        message = f"There is no memory yet: `ricordo remember` or `ricordo import` creates it in {target.root}."
        raise RootNotFound(message)
    return target


async def load_redactor(target: Target) -> "Redactor":
    """Return what takes secrets out, by the key of the root where there is one."""
    from ricordo.guard import Redactor
    from ricordo.runtime.roots import create_key, digest_key
    from ricordo.runtime.workspace import root_files
    from ricordo.workspace.layout import GUARD_KEY

    try:
        return Redactor(digest_key((await root_files(target.root).read(GUARD_KEY)).data))
    except FileMissing:
        return Redactor(create_key())


def find_team(target: Target) -> "TeamFolder | None":
    """Return the team whose memory is beside the root, or where the settings say; None without one."""
    from ricordo.runtime.roots import TEAM_FOLDER
    from ricordo.workspace.layout import PROJECT_FILE

    folder = target.settings.team or target.root.parent / TEAM_FOLDER
    if not (folder / PROJECT_FILE).is_file():
        return None
    from ricordo.runtime.teams import find_team

    return find_team(target.root, target.user, target.settings)


async def load_scope(target: Target) -> "Scope":
    """Return whose memory is opened, with the team beside the root if the user is a member of it.

    Raises `DocumentInvalid` when the marker of the root can't be read.
    """
    from ricordo.runtime.roots import read_marker
    from ricordo.runtime.workspace import root_files
    from ricordo.scope import Scope

    owner = await read_marker(root_files(target.root)) if target.exists else None
    parts = owner.parts() if owner else {"project": target.project or _default_project_name(target.root)}
    if target.project:
        parts["project"] = target.project
    if not target.is_shared and ("project" in parts or "team" in parts):
        parts["user"] = target.user
        team = find_team(target) if "team" not in parts else None
        if team and not team.trouble:
            parts["team"] = team.name
    if target.session:
        parts["session"] = target.session
    return Scope(**parts)


@asynccontextmanager
async def open_memory(target: Target, *, finds: bool = False, background: bool = True) -> "AsyncIterator[Memory]":
    """Open the memory of `target`, which is created when it is not there; settings that can't be used are told.

    An embedder is there only for a command that `finds`: one of this machine first reads what is new, for a moment. So
    is a reranker. Without `background` no job of the inbox runs: who only looks does not wait for one.
    """
    from ricordo.runtime.memory import Memory

    print_setting_errors(target)
    settings, override = target.settings, None if finds else "none"
    async with Memory.open(
        target.root,
        scope=await load_scope(target),
        settings=settings,
        embedder=override,
        reranker=override,
        actor=target.user,
        background=background,
    ) as memory:
        if finds and settings.embedder in _LOCAL_EMBEDDERS:
            await memory.embed(seconds=_EMBEDDING_SECONDS)
        yield memory


def open_personal_memory(target: Target) -> "AbstractAsyncContextManager[Memory]":
    """Open what the user of `target` sees in all projects, which is created when it is not there."""
    from ricordo.runtime.memory import Memory
    from ricordo.runtime.roots import user_root_path
    from ricordo.scope import Scope

    folder = user_root_path(target.settings.data, target.user, target.tenant)
    scope = Scope(user=target.user, tenant=target.tenant)
    return Memory.open(
        folder, scope=scope, settings=target.settings, embedder="none", reranker="none", actor=target.user
    )


def print_setting_errors(target: Target) -> None:
    """Say in one line which settings can't be used, and that the rest goes on without them."""
    if target.setting_errors:
        # a hook opens a memory too, and need not load what only prints
        from ricordo.cli.render import join_sentences, print_error

        print_error(f"{join_sentences(target.setting_errors)} It goes on without.")


def run_async(work: Callable[[], Awaitable[_T]]) -> _T:
    """Run `work` to its end on an event loop."""
    import anyio

    return anyio.run(work)


def with_memory(target: Target, work: "Callable[[Memory], Awaitable[_T]]", *, finds: bool = False) -> _T:
    """Open the memory of `target`, do `work` with it and close it; `finds` says that it looks for something."""
    return run_async(partial(_work_with_memory, target, work, finds=finds, background=True))


def read_memory(target: Target, work: "Callable[[Memory], Awaitable[_T]]", *, finds: bool = False) -> _T:
    """Do `work` that only reads, as `with_memory`; no job of the inbox runs meanwhile."""
    return run_async(partial(_work_with_memory, target, work, finds=finds, background=False))


async def _work_with_memory(
    target: Target, work: "Callable[[Memory], Awaitable[_T]]", *, finds: bool, background: bool
) -> _T:
    async with open_memory(target, finds=finds, background=background) as memory:
        return await work(memory)


def _load_settings(root: Path, options: Mapping[str, object]) -> "tuple[Settings, tuple[RicordoError, ...]]":
    """Return the settings; where a file, or the environment, can't be used, those without it, and why."""
    from ricordo.runtime.settings import MACHINE_SETTINGS, Settings, environment_variable

    places = {name: os.environ[name] for name in map(environment_variable, MACHINE_SETTINGS) if name in os.environ}
    trouble: list[RicordoError] = []
    for folder, environment in ((root, os.environ), (None, os.environ), (root, places)):
        for own in (True, False):
            try:
                return Settings.load(folder, environment, options, own=own), tuple(trouble)
            except (DocumentInvalid, InvalidSetting, StorageError) as error:
                trouble += [] if str(error) in map(str, trouble) else [error]
    return Settings.load(None, places, options, own=False), tuple(trouble)


def _read_owner(root: Path) -> "Scope | None":
    """Return whose root it is by its marker; what is wrong with a marker is said when the root is opened."""
    from ricordo.runtime.roots import parse_marker
    from ricordo.workspace.layout import PROJECT_FILE

    with suppress(OSError, DocumentInvalid):
        return parse_marker((root / PROJECT_FILE).read_bytes())
    return None


def _nearest_root(start: Path, worktrees: str) -> Path | None:
    """Return the nearest root at or above `start`, also one that has lost its marker."""
    from ricordo.runtime.roots import ROOT_FOLDER, list_folders_above
    from ricordo.workspace.layout import PROJECT_FILE

    candidates = (folder / ROOT_FOLDER for folder in list_folders_above(start, worktrees))
    return next((each for each in candidates if (each / PROJECT_FILE).is_file() or _count_workspace_files(each)), None)


def _count_workspace_files(root: Path) -> int:
    from ricordo.workspace.layout import USERS, WORKSPACE

    # a workspace alone is none that was lost: a clone has what `ricordo memory track` let be committed, and no more
    if not any((root / name).exists() for name in _USED_ROOT_FILES):
        return 0
    folders = [root / WORKSPACE, *(root / USERS).glob(f"*/{WORKSPACE}")]
    return sum(path.is_file() for folder in folders for path in folder.rglob("*"))


def _check_root_folder(folder: Path) -> None:
    """Raise `InvalidInput` when `folder` is a file, or holds anything that no root begins with.

    One with the name of a root is left to the check of trust, which says what may be done.
    """
    from ricordo.runtime.roots import ROOT_FOLDER

    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file: name a folder for the root.")
    if folder.name != ROOT_FOLDER and folder.is_dir() and not all(_belongs_to_root(path) for path in folder.iterdir()):
        raise InvalidInput(
            f"{folder} is no root and not empty: name a folder that is new or empty, such as {folder / '.ricordo'}."
        )


def _belongs_to_root(path: Path) -> bool:
    if path.name == ".gitignore":
        return _is_root_gitignore(path)
    if path.name == "workspace":
        files = (inner.relative_to(path) for inner in path.rglob("*") if inner.is_file())
        return all(file.parts[0] == "MEMORY.md" or file.parts[:2] == ("memory", "topics") for file in files)
    return path.name in _ROOT_FILES or path.name.startswith("memory_index.db")


def _is_root_gitignore(path: Path) -> bool:
    try:
        return _IGNORE_ALL in path.read_bytes().splitlines()
    except OSError:
        return False


def _default_project_name(root: Path) -> str:
    from ricordo.runtime.roots import ROOT_FOLDER

    folder = root.parent if root.name == ROOT_FOLDER else root
    name = "".join(character for character in folder.name if character.isprintable()).strip()
    return name[:_MAX_PROJECT_CHARS] or "project"


def answer_hook(place: "Place", event: "HookEvent") -> "HookAnswer":
    """Open the memory of a place and return its answer; a notice for the person if its root is not trusted.

    Raises: RicordoError, OSError.
    """
    from ricordo.hooks.answers import answer_event
    from ricordo.hooks.contract import PROMPT, STARTED, HookAnswer

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
    config = target.settings.hooks
    return read_memory(
        target,
        lambda memory: answer_event(memory, place, event, config=config),
        finds=event.kind == PROMPT,
    )


def _format_notice(place: "Place", error: RootNotTrusted) -> str:
    path = shlex.quote(place.root)
    if "is not trusted" not in str(error):
        return f"Ricordo ignores the memory in {place.root}: {error}"
    return (
        f"Ricordo ignores the memory in {place.root}, which was not made or trusted on this machine. "
        f"`ricordo trust --show {path}` shows what it holds, `ricordo trust {path}` trusts it."
    )
