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
from ricordo.tools.file_roots import FileRoots, Located
from ricordo.tools.folder_walk import children_of, files_below
from ricordo.tools.function import tool
from ricordo.tools.globs import glob_matches
from ricordo.workspace.layout import SHARED

__all__ = ["Visible", "glob_files_tool", "list_files_tool", "visible_files"]

_MOST = 200
_LONGEST_PATTERN = 500


@dataclass(frozen=True, kw_only=True)
class Visible:
    """Files in a folder and below it: for each its path from there on and what is known; `more` says not all are."""

    files: Sequence[tuple[str, FileInfo]]
    more: bool = False

    @property
    def told(self) -> str:
        """That there are more, in words; empty when there are not."""
        return f"; only the nearest {len(self.files):,} files were looked at" if self.more else ""


async def visible_files(roots: FileRoots, located: Located) -> Visible:
    """Return the files in a folder and those below it, or the file itself.

    They are sorted by path. Raises: ToolFailed if there is none.
    """
    if located.inside and (info := await _file(located)):
        return Visible(files=[(info.path.rpartition("/")[2], info)])
    found = await _below(roots, located)
    if not found.files and located.inside:
        raise ToolFailed(f"There is no folder {located.shown}, or no file is in it.")
    return found


async def _below(roots: FileRoots, located: Located) -> Visible:
    prefix = f"{located.path}/" if located.path else ""
    if roots.folder is None or located.in_workspace:
        below = [(info.path.removeprefix(prefix), info) for info in await located.files.list(located.path)]
        return Visible(files=[(name, info) for name, info in below if not _is_hidden(name)])
    look = partial(files_below, roots.folder.resolve(), located.path, is_closed=roots.is_closed)
    # it only looks, so nobody has to wait for a thread that nobody wants any more
    found, more = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
    return Visible(files=[(info.path.removeprefix(prefix), info) for info in found], more=more)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


async def _file(located: Located) -> FileInfo | None:
    """Return the file that the path names; None for a folder, of which nothing can be read."""
    try:
        await located.files.read_from(located.path, 0, 0)
    except FileMissing:
        return None
    return await located.files.info(located.path)


async def _children(roots: FileRoots, located: Located) -> dict[str, int | None]:
    """Return the names in a folder, with the bytes of a file, and of a folder None."""
    if roots.folder is not None and not located.in_workspace:
        look = partial(children_of, roots.folder.resolve(), located.path, is_closed=roots.is_closed)
        here = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
        if here is not None:
            return here
    found: dict[str, int | None] = {}
    if roots.shared and located.in_workspace and not located.inside and not located.is_shared:
        found[SHARED] = None
    for name, info in (await visible_files(roots, located)).files:
        child, slash, _ = name.partition("/")
        found[child] = None if slash else info.size
    return found


def list_files_tool(roots: FileRoots) -> Tool:
    """Return the tool that lists one folder."""

    async def list_files(
        path: Annotated[str, "the folder; a leading slash means the workspace, else the working directory"] = "",
    ) -> str:
        """List the files and folders in a folder."""
        located = await roots.locate(path or roots.default)
        children = await _children(roots, located)
        lines = [f"{name}/" if size is None else f"{name} ({size:,} bytes)" for name, size in sorted(children.items())]
        return _told(located, lines, "entries")

    return tool(list_files, effect="reads")


def glob_files_tool(roots: FileRoots) -> Tool:
    """Return the tool that finds files by name."""

    async def glob_files(
        pattern: Annotated[str, "such as *.py for a name in any folder, or docs/**/*.md"],
        path: Annotated[str, "the folder to search; a leading slash means the workspace"] = "",
    ) -> str:
        """Find files by a pattern of their path: `*` and `?` within a name, `**` for any folders."""
        if len(pattern) > _LONGEST_PATTERN:
            raise ToolFailed(f"A pattern has at most {_LONGEST_PATTERN} characters, this one has {len(pattern)}.")
        # a pattern may begin with the slash of the workspace
        folder = path or ("/" if pattern.startswith("/") else roots.default)
        located = await roots.locate(folder)
        matches = _matching(pattern)
        visible = await visible_files(roots, located)
        found = [located.shown_of(info.path) for name, info in visible.files if matches(name)]
        return _told(located, found, "files", visible.told)

    return tool(glob_files, effect="reads")


def _matching(pattern: str) -> Callable[[str], bool]:
    # in a pattern of several parts the first slash only says that it begins at the root
    anchored = pattern.lstrip("/")
    return lambda name: glob_matches(anchored, name)


def _told(located: Located, lines: Sequence[str], what: str, more: str = "") -> str:
    if not lines:
        return f"[{located.shown}: no {what}{more}]"
    if len(lines) > _MOST:
        ask = "ask for a folder or a narrower pattern"
        head = f"[{located.shown}: the first {_MOST} of {len(lines):,} {what}{more}; {ask}]"
    else:
        head = f"[{located.shown}: {len(lines)} {what}{more}]"
    return "\n".join([head, *lines[:_MOST]])
