"""list_files, glob_files and grep_files: what there is, by folder, by name and by content.

Results are sorted by path and bounded, and say what they leave out. Names that begin with a dot are left out, unless
the search begins in such a folder.
"""

from collections.abc import Callable, Sequence
from typing import Annotated

from ricordo.errors import FileMissing, ToolFailed
from ricordo.files import FileInfo
from ricordo.tools.contract import Tool
from ricordo.tools.file_roots import FileRoots, Located
from ricordo.tools.function import tool
from ricordo.tools.globs import glob_matches

__all__ = ["glob_files_tool", "list_files_tool", "visible_files"]

_MOST = 200
_LONGEST_PATTERN = 500


async def visible_files(located: Located) -> list[tuple[str, FileInfo]]:
    """Return the files in a folder and those below it, or the file itself, as their path below it and what is known.

    They are sorted by path. Raises: ToolFailed if there is none.
    """
    if located.inside and (info := await _file(located)):
        return [(info.path.rpartition("/")[2], info)]
    below = await located.files.list(located.path)
    prefix = f"{located.path}/" if located.path else ""
    found = [(info.path.removeprefix(prefix), info) for info in below]
    visible = [(path, info) for path, info in found if not any(part.startswith(".") for part in path.split("/"))]
    if not visible and located.inside:
        raise ToolFailed(f"There is no folder {located.shown}, or no file is in it.")
    return visible


async def _file(located: Located) -> FileInfo | None:
    """Return the file that the path names; None for a folder, of which nothing can be read."""
    try:
        await located.files.read_from(located.path, 0, 0)
    except FileMissing:
        return None
    return await located.files.info(located.path)


def list_files_tool(roots: FileRoots) -> Tool:
    """Return the tool that lists one folder."""

    async def list_files(
        path: Annotated[str, "the folder; a leading slash means the workspace, else the working directory"] = "",
    ) -> str:
        """List the files and folders in a folder."""
        located = await roots.locate(path or roots.default)
        children: dict[str, str] = {}
        for name, info in await visible_files(located):
            child, slash, _ = name.partition("/")
            children[child + slash] = f"{child}{slash}" if slash else f"{child} ({info.size:,} bytes)"
        return _told(located, [children[child] for child in sorted(children)], "entries")

    return tool(list_files)


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
        found = [located.shown_of(info.path) for name, info in await visible_files(located) if matches(name)]
        return _told(located, found, "files")

    return tool(glob_files)


def _matching(pattern: str) -> Callable[[str], bool]:
    # in a pattern of several parts the first slash only says that it begins at the root
    anchored = pattern.lstrip("/")
    return lambda name: glob_matches(anchored, name)


def _told(located: Located, lines: Sequence[str], what: str) -> str:
    if not lines:
        return f"[{located.shown}: no {what}]"
    if len(lines) > _MOST:
        head = f"[{located.shown}: the first {_MOST} of {len(lines):,} {what}; ask for a folder or a narrower pattern]"
    else:
        head = f"[{located.shown}: {len(lines)} {what}]"
    return "\n".join([head, *lines[:_MOST]])
