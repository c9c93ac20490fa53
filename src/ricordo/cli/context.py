"""From options to memory: which root, whose scope, and the one place where an event loop runs.

A root's marker says whose it is; what it does not say is the user of this machine and, for a root that is not there
yet, the project named after the folder that holds it. Finding a root creates nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ricordo.errors import RootNotFound

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.runtime import Settings
    from ricordo.scopes import Scope

__all__ = ["Target", "existing", "find", "opened", "run", "scope_of", "with_memory"]

_T = TypeVar("_T")
_LONGEST = 200


@dataclass(frozen=True, kw_only=True)
class Target:
    """The root that a command works on, there or not, and for whom."""

    root: Path
    exists: bool
    user: str
    project: str | None
    settings: "Settings"

    @property
    def project_folder(self) -> Path:
        """The folder that the root belongs to."""
        return self.root.parent

    def folders(self) -> dict[str, Path]:
        """Return the folders of the roots that are read, by the label that their hits carry."""
        from ricordo.runtime.roots import user_root

        return {"project": self.root, "own": self.root, "user": user_root(self.settings.data, self.user)}

    def file(self, path: str, label: str = "project") -> str:
        """Return the file at `path` of a root so that it can be opened from here."""
        whole = self.folders().get(label, self.root).absolute() / path
        here = Path.cwd()
        return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def find(root: Path | None, user: str | None, project: str | None) -> Target:
    """Return the root that was named, else the nearest one, else where a new one would be created."""
    from ricordo.runtime import Settings, find_root, new_root
    from ricordo.workspace.layout import PROJECT

    settings = Settings.from_environment()
    here = Path.cwd()
    folder = (root or settings.root or find_root(here) or new_root(here)).absolute()
    return Target(
        root=folder,
        exists=(folder / PROJECT).is_file(),
        user=user or settings.user,
        project=project,
        settings=settings,
    )


def existing(root: Path | None, user: str | None, project: str | None) -> Target:
    """Return the root that was named or found. Raises `RootNotFound`."""
    target = find(root, user, project)
    if not target.exists:
        message = f"There is no memory yet: `ricordo remember` or `ricordo ingest` creates it in {target.root}."
        raise RootNotFound(message)
    return target


async def scope_of(target: Target) -> "Scope":
    """Return whose memory is opened. Raises `DocumentInvalid` when the marker of the root can't be read."""
    from ricordo.runtime.assembly import files_of
    from ricordo.runtime.marker import read_marker
    from ricordo.scopes import Scope

    owner = await read_marker(files_of(target.root)) if target.exists else None
    parts = owner.parts() if owner else {"project": target.project or _project_name(target.root)}
    if target.project:
        parts["project"] = target.project
    if "project" in parts or "team" in parts:
        parts["user"] = target.user
    return Scope(**parts)


@asynccontextmanager
async def opened(target: Target) -> "AsyncIterator[Memory]":
    """Open the memory of `target`, which is created when it is not there."""
    from ricordo.memory import Memory

    async with Memory.open(target.root, scope=await scope_of(target), settings=target.settings) as memory:
        yield memory


def run(work: Callable[[], Awaitable[_T]]) -> _T:
    """Run `work` to its end on an event loop."""
    import anyio

    return anyio.run(work)


def with_memory(target: Target, work: "Callable[[Memory], Awaitable[_T]]") -> _T:
    """Open the memory of `target`, do `work` with it and close it."""

    async def do() -> _T:
        async with opened(target) as memory:
            return await work(memory)

    return run(do)


def _project_name(root: Path) -> str:
    from ricordo.runtime.roots import FOLDER

    folder = root.parent if root.name == FOLDER else root
    name = "".join(character for character in folder.name if character.isprintable()).strip()
    return name[:_LONGEST] or "project"
