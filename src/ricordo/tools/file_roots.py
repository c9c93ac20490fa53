"""Where a model's paths lead: a leading slash means the workspace, anything else the working directory.

Invariant: a path never leads out of its root, and never from the working directory into a folder that is closed to
tools, `.ricordo` above all, whose files have rules that only the leading slash knows.
"""

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from ricordo.errors import FileMissing, PathRefused, ToolFailed
from ricordo.files import FileInfo, FileStore
from ricordo.files.paths import safe_path
from ricordo.workspace.layout import WORKSPACE

__all__ = ["FileRoots", "Located"]


@dataclass(frozen=True, kw_only=True)
class Located:
    """A path that was followed: in which files it lies and under which name there, `shown` is how the model writes it.

    `inside` is the path below its root, without a slash at the beginning.
    """

    files: FileStore
    path: str
    inside: str
    shown: str
    in_workspace: bool

    def shown_of(self, path: str) -> str:
        """Return how the model writes `path`, which is one of `files`."""
        return f"/{path.removeprefix(f'{WORKSPACE}/')}" if self.in_workspace else path

    async def found(self) -> FileInfo:
        """Return what is known of the file. Raises `FileMissing`."""
        info = await self.files.info(self.path) if self.inside else None
        if info is None:
            raise FileMissing(f"There is no file {self.shown}.")
        return info


class FileRoots:
    """The two roots of an agent's files."""

    def __init__(
        self,
        workspace: FileStore,
        working: FileStore | None = None,
        *,
        folder: Path | None = None,
        closed: Collection[str] = (".ricordo",),
    ) -> None:
        """Use the files of a root, whose workspace is reached, and those of the working directory, where there is one.

        `folder` is where the latter lies, so that links in it are seen through; give it for any that is on a disk.
        Folders with a name in `closed` are not reached through the working directory.
        """
        self._workspace = workspace
        self._working = working
        self.folder = folder
        self._closed = frozenset(map(_folded, closed))

    @property
    def default(self) -> str:
        """Where a search begins when no path is given: the working directory, the workspace where there is none."""
        return "." if self._working else "/"

    async def locate(self, path: str) -> Located:
        """Return what `path` names, a file or a folder, there or not. Raises: PathRefused, ToolFailed."""
        inside = safe_path(path)
        if path.startswith("/"):
            files, within = self._workspace, f"{WORKSPACE}/{inside}" if inside else WORKSPACE
            return Located(files=files, path=within, inside=inside, shown=f"/{inside}", in_workspace=True)
        if self._working is None:
            raise ToolFailed(
                "There is no working directory here: a path begins with a slash and lies in the workspace."
            )
        self._check(inside.split("/"), path)
        if self.folder is not None:
            # from here on it has the name of what a link leads to, so that nothing is done, or approved, under another
            inside = "/".join(await anyio.to_thread.run_sync(partial(_followed, self.folder, inside, path)))
            self._check(inside.split("/"), path)
        return Located(files=self._working, path=inside, inside=inside, shown=inside or ".", in_workspace=False)

    def _check(self, parts: Collection[str], path: str) -> None:
        if not self._closed.isdisjoint(map(_folded, parts)):
            raise PathRefused(
                f"{path[:80]} is closed to file tools: what is remembered is reached by a leading slash, such as"
                " /MEMORY.md."
            )


def _followed(folder: Path, inside: str, path: str) -> tuple[str, ...]:
    """Return the parts of the path below `folder` after every link. Raises `PathRefused`."""
    root = folder.resolve()
    try:
        return (root / inside).resolve().relative_to(root).parts
    except (ValueError, OSError, RuntimeError) as error:
        raise PathRefused(f"{path[:80]} leads out of the working directory.") from error


def _folded(name: str) -> str:
    """Return the name as the most forgiving file system compares it."""
    visible = "".join(mark for mark in unicodedata.normalize("NFKC", name) if unicodedata.category(mark) != "Cf")
    return visible.casefold().rstrip(" .") or name
