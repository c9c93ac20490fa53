"""list_files, glob_files and grep_files: what there is, by folder, by name and by content.

Results are sorted by path and bounded, and say what they leave out. Names that begin with a dot are left out, unless
the search begins in such a folder, and so are the files below folders of installed packages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import anyio.to_thread

from ricordo.errors import FileMissing, ToolFailed
from ricordo.files import FileInfo
from ricordo.tools.contract import Tool
from ricordo.tools.file_roots import FileRoots, LocatedPath
from ricordo.tools.folder_walk import list_folder, walk_files
from ricordo.tools.function import tool
from ricordo.tools.globs import matches_glob
from ricordo.workspace.layout import PROJECT_PREFIX

__all__ = ["VisibleFiles", "glob_files_tool", "list_files_tool", "find_visible_files"]

_MAX_RESULTS = 200
_MAX_PATTERN_CHARS = 500


@dataclass(frozen=True, kw_only=True)
class VisibleFiles:
    """Files in a folder and below it: for each its path from there on and what is known; `more` says not all are."""

    files: Sequence[tuple[str, FileInfo]]
    more: bool = False

    @property
    def more_text(self) -> str:
        """That there are more, in words; empty when there are not."""
        return f"; only the nearest {len(self.files):,} files were looked at" if self.more else ""


async def find_visible_files(roots: FileRoots, located: LocatedPath) -> VisibleFiles:
    """Return the files in a folder and those below it, or the file itself.

    They are sorted by path. Raises: ToolFailed if there is none.
    """
    if located.inside and (info := await _file_info(located)):
        return VisibleFiles(files=[(info.path.rpartition("/")[2], info)])
    found = await _walk_located(roots, located)
    if not found.files and located.inside:
        raise ToolFailed(f"There is no folder {located.display_path}, or no file is in it.")
    return found


async def _walk_located(roots: FileRoots, located: LocatedPath) -> VisibleFiles:
    prefix = f"{located.path}/" if located.path else ""
    if roots.folder is None or located.in_workspace:
        below = [(info.path.removeprefix(prefix), info) for info in await located.files.list(located.path)]
        return VisibleFiles(files=[(name, info) for name, info in below if not _is_hidden(name)])
    look = partial(walk_files, roots.folder.resolve(), located.path, is_closed=roots.is_closed)
    # it only looks, so nobody has to wait for a thread that nobody wants any more
    found, more = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
    return VisibleFiles(files=[(info.path.removeprefix(prefix), info) for info in found], more=more)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


async def _file_info(located: LocatedPath) -> FileInfo | None:
    """Return the file that the path names; None for a folder, of which nothing can be read."""
    try:
        await located.files.read_from(located.path, 0, 0)
    except FileMissing:
        return None
    return await located.files.info(located.path)


async def _list_children(roots: FileRoots, located: LocatedPath) -> dict[str, int | None]:
    """Return the names in a folder, with the bytes of a file, and of a folder None."""
    if roots.folder is not None and not located.in_workspace:
        look = partial(list_folder, roots.folder.resolve(), located.path, is_closed=roots.is_closed)
        here = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
        if here is not None:
            return here
    found: dict[str, int | None] = {}
    if roots.shared and located.in_workspace and not located.inside and not located.is_shared:
        found[PROJECT_PREFIX] = None
    for name, info in (await find_visible_files(roots, located)).files:
        child, slash, _ = name.partition("/")
        found[child] = None if slash else info.size
    return found


def list_files_tool(roots: FileRoots) -> Tool:
    """Return the tool that lists one folder."""

    async def list_files(
        path: Annotated[str, "the folder; a leading slash means the workspace, else the working directory"] = "",
    ) -> str:
        """List the files and folders in a folder."""
        located = await roots.locate(path or roots.default_path)
        children = await _list_children(roots, located)
        lines = [f"{name}/" if size is None else f"{name} ({size:,} bytes)" for name, size in sorted(children.items())]
        return _render_list(located, lines, "entries")

    return tool(list_files, effect="reads")


def glob_files_tool(roots: FileRoots) -> Tool:
    """Return the tool that finds files by name."""

    async def glob_files(
        pattern: Annotated[str, "such as *.py for a name in any folder, or docs/**/*.md"],
        path: Annotated[str, "the folder to search; a leading slash means the workspace"] = "",
    ) -> str:
        """Find files by a pattern of their path: `*` and `?` within a name, `**` for any folders."""
        if len(pattern) > _MAX_PATTERN_CHARS:
            raise ToolFailed(f"A pattern has at most {_MAX_PATTERN_CHARS} characters, this one has {len(pattern)}.")
        # a pattern may begin with the slash of the workspace
        folder = path or ("/" if pattern.startswith("/") else roots.default_path)
        located = await roots.locate(folder)
        matches = _glob_matcher(pattern)
        visible = await find_visible_files(roots, located)
        found = [located.display_path_of(info.path) for name, info in visible.files if matches(name)]
        return _render_list(located, found, "files", visible.more_text)

    return tool(glob_files, effect="reads")


def _glob_matcher(pattern: str) -> Callable[[str], bool]:
    # in a pattern of several parts the first slash only says that it begins at the root
    anchored = pattern.lstrip("/")
    return lambda name: matches_glob(anchored, name)


def _render_list(located: LocatedPath, lines: Sequence[str], what: str, more: str = "") -> str:
    if not lines:
        return f"[{located.display_path}: no {what}{more}]"
    if len(lines) > _MAX_RESULTS:
        ask = "ask for a folder or a narrower pattern"
        head = f"[{located.display_path}: the first {_MAX_RESULTS} of {len(lines):,} {what}{more}; {ask}]"
    else:
        head = f"[{located.display_path}: {len(lines)} {what}{more}]"
    return "\n".join([head, *lines[:_MAX_RESULTS]])
