"""Paths of a model: a leading slash means the workspace, anything else the working directory.

If a project shares its workspace, `/project/` leads to it.

Invariant: a path never leads out of its root, never through a link in the workspace, and never from the working
directory into a folder named `.ricordo`.
"""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from ricordo.errors import FileMissing, PathRefused, ToolFailed
from ricordo.lazy import dataclass
from ricordo.storage import FileInfo, FileStore
from ricordo.storage.contract import safe_path
from ricordo.workspace.layout import PROJECT_PREFIX, USERS, WORKSPACE

__all__ = ["FileRoots", "LocatedPath", "SharedFiles"]


_ROOT_NAME = ".ricordo"


@dataclass(frozen=True, kw_only=True)
class SharedFiles:
    """The files of a root whose workspace a project shares, and its folder; tools only read them."""

    files: FileStore
    root: Path | None = None


@dataclass(frozen=True, kw_only=True)
class LocatedPath:
    """A resolved path: its files and its `path` in them; `display_path` is how the model writes it.

    `relative_path` is the path below its root, without a leading slash. With `is_shared` it is in the workspace that a
    project shares.
    """

    files: FileStore
    path: str
    relative_path: str
    display_path: str
    in_workspace: bool
    is_shared: bool = False

    def display_path_of(self, path: str) -> str:
        """Return how the model writes `path`, a path in `files`."""
        if not self.in_workspace:
            return path
        return (f"/{PROJECT_PREFIX}/" if self.is_shared else "/") + path.removeprefix(f"{WORKSPACE}/")

    async def get_info(self) -> FileInfo:
        """Return the size and modification time of the file. Raises `FileMissing`."""
        info = await self.files.info(self.path) if self.relative_path else None
        if info is None:
            raise FileMissing(f"There is no file {self.display_path}.")
        return info


class FileRoots:
    """The two roots of an agent's files."""

    def __init__(
        self,
        workspace: FileStore,
        working: FileStore | None = None,
        *,
        root: Path | None = None,
        folder: Path | None = None,
        below: str = "",
        shared: SharedFiles | None = None,
        closed_folder: Path | None = None,
    ) -> None:
        """Use the files of a root for its workspace, and those of the working directory, if any.

        `root` and `folder` are the folders of the two, used to resolve links; pass them for files on a disk. With
        `below`, such as `large_tool_results/monday`, the rest of the workspace is closed. `shared` is available as
        `/project`. `closed_folder` is the folder that the working directory does not lead into, by default `root`.
        """
        self._workspace = workspace
        self._working = working
        self._root = root
        self._closed_folder = closed_folder or root
        self._base_path = below.strip("/")
        self.shared = shared
        self.folder = folder

    @property
    def default_path(self) -> str:
        """The default path of a search: the working directory, or the workspace if there is none."""
        return "." if self._working else f"/{self._base_path}"

    async def locate(self, path: str) -> LocatedPath:
        """Resolve `path`, a file or folder that may not exist. Raises: PathRefused, ToolFailed."""
        inside = safe_path(path)
        if path.startswith("/"):
            if self._base_path and inside != self._base_path and not inside.startswith(f"{self._base_path}/"):
                raise PathRefused(f"{path[:80]} is closed: what can be read here lies below /{self._base_path}.")
            first, _, rest = inside.partition("/")
            if self.shared and first == PROJECT_PREFIX:
                return await self._locate_shared(self.shared, rest, path)
            within = f"{WORKSPACE}/{inside}" if inside else WORKSPACE
            if self._root is not None:
                await anyio.to_thread.run_sync(_refuse_links, self._root, within, path)
            return LocatedPath(
                files=self._workspace, path=within, relative_path=inside, display_path=f"/{inside}", in_workspace=True
            )
        if self._working is None:
            raise ToolFailed(
                "There is no working directory here: a path begins with a slash and lies in the workspace."
            )
        _refuse_roots(inside.split("/"), path)
        if self.folder is not None:
            # From here on it has the name of the link's target, so that nothing is done or approved under another name.
            inside = "/".join(await anyio.to_thread.run_sync(self._follow_links, inside, path))
        return LocatedPath(
            files=self._working, path=inside, relative_path=inside, display_path=inside or ".", in_workspace=False
        )

    def is_closed(self, folder: Path) -> bool:
        """Return whether a folder, given without links, is the root or inside it; this reads the disk."""
        if self._closed_folder is None:
            return False
        closed_parts = [_fold_name(part) for part in self._closed_folder.resolve().parts]
        return [_fold_name(part) for part in folder.parts[: len(closed_parts)]] == closed_parts

    async def _locate_shared(self, shared: SharedFiles, inside: str, path: str) -> LocatedPath:
        if _fold_name(inside.partition("/")[0]) == USERS:
            raise PathRefused(f"{path[:80]} is closed: it would belong to another user.")
        within = f"{WORKSPACE}/{inside}" if inside else WORKSPACE
        if shared.root is not None:
            await anyio.to_thread.run_sync(_refuse_links, shared.root, within, path)
        return LocatedPath(
            files=shared.files,
            path=within,
            relative_path=inside,
            display_path=f"/{PROJECT_PREFIX}/{inside}".rstrip("/"),
            in_workspace=True,
            is_shared=True,
        )

    def _follow_links(self, inside: str, path: str) -> Sequence[str]:
        assert self.folder is not None
        parts = _resolve_links(self.folder, inside, path)
        _refuse_roots(parts, path)
        if self.is_closed(self.folder.resolve().joinpath(*parts)):
            raise _closed_error(path)
        return parts


def _refuse_roots(parts: Sequence[str], path: str) -> None:
    """Refuse a path through any root, this one or that of another project."""
    if _ROOT_NAME in map(_fold_name, parts):
        raise _closed_error(path)


def _closed_error(path: str) -> PathRefused:
    return PathRefused(
        f"{path[:80]} is closed to file tools: what is remembered is reached by a leading slash, such as /MEMORY.md."
    )


def _refuse_links(root: Path, within: str, path: str) -> None:
    """Refuse a path of the workspace through a link, because write permission there depends on the path.

    Raises: PathRefused.
    """
    top = root.resolve()
    try:
        is_itself = (top / within).resolve() == top / within
    except (OSError, RuntimeError):
        is_itself = False
    if not is_itself:
        raise PathRefused(f"{path[:80]} goes through a symbolic link, which tools don't follow in the workspace.")


def _resolve_links(folder: Path, inside: str, path: str) -> tuple[str, ...]:
    """Return the parts of the path below `folder` with all links resolved. Raises `PathRefused`."""
    root = folder.resolve()
    try:
        return (root / inside).resolve().relative_to(root).parts
    except (ValueError, OSError, RuntimeError) as error:
        raise PathRefused(f"{path[:80]} leads out of the working directory.") from error


def _fold_name(name: str) -> str:
    """Return the name folded as the most tolerant file system compares it."""
    visible = "".join(mark for mark in unicodedata.normalize("NFKC", name) if unicodedata.category(mark) != "Cf")
    return visible.casefold().rstrip(" .") or name
