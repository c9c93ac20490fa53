"""The file tools as one set: reading, searching and writing below the two roots, and a shell when asked for."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from ricordo.errors import InvalidSetting
from ricordo.files import FileStore
from ricordo.guard import Redactor
from ricordo.tools.contract import ApprovalHandler, Tool
from ricordo.tools.edit_file import edit_file_tool, write_file_tool
from ricordo.tools.file_changes import FileWriter
from ricordo.tools.file_roots import FileRoots, SharedFiles
from ricordo.tools.find_files import glob_files_tool, list_files_tool
from ricordo.tools.grep_files import grep_files_tool
from ricordo.tools.read_file import MAX_READ_CHARS, read_file_tool
from ricordo.tools.shell import shell_tool
from ricordo.tools.task_tools import SessionTasks
from ricordo.workspace.changes import ChangeSets
from ricordo.workspace.index_bounds import IndexBounds

__all__ = ["file_tools"]

_KEY_BYTES = 32


def file_tools(
    workspace: FileStore,
    working: FileStore | None = None,
    *,
    changes: ChangeSets | None = None,
    approve: ApprovalHandler | None = None,
    root: Path | None = None,
    folder: Path | None = None,
    redactor: Redactor | None = None,
    shell: bool = False,
    shell_timeout: float = 120.0,
    shell_environment: Mapping[str, str] | None = None,
    tasks: SessionTasks | None = None,
    most_characters: int = MAX_READ_CHARS,
    bounds: IndexBounds | None = None,
    shared: SharedFiles | None = None,
    closed: Path | None = None,
) -> tuple[Tool, ...]:
    """Return read_file, write_file, edit_file, list_files, glob_files, grep_files, and shell if it is asked for.

    `workspace` are the files of a root, `changes` its change sets, without which the workspace is read-only. `root` is
    where it lies: give it when that is on a disk, as links in the workspace are refused then, and the way into it from
    the working directory is closed. `working` are the files of the working directory, and `folder` where it lies, which
    sees through its links, keeps the modes of its files and is needed by the shell. What a tool would write there is
    shown to `approve`, and refused without it. `redactor` is the root's own; without it the marks of secrets can't be
    compared with others. `shell_timeout` is in seconds; commands get the variables of `shell_environment`, or those of
    this process that hold no secret, and with `tasks` they can run in the background. One call of read_file shows
    at most `most_characters`. MEMORY.md is not written to beyond `bounds`. `shared` is what `/project` leads to, and is
    only read. `closed` is what the working directory does not lead into, by default `root`.

    Raises: InvalidSetting for a shell without a folder.
    """
    roots = FileRoots(workspace, working, root=root, folder=folder, shared=shared, closed=closed)
    guard = redactor or Redactor(secrets.token_bytes(_KEY_BYTES))
    writes = FileWriter(
        changes=changes,
        approve=approve,
        redactor=guard,
        bounds=bounds,
    )
    tools: tuple[Tool, ...] = (
        read_file_tool(roots, guard, most_characters=most_characters),
        write_file_tool(roots, writes),
        edit_file_tool(roots, writes),
        list_files_tool(roots),
        glob_files_tool(roots),
        grep_files_tool(roots, guard),
    )
    if not shell:
        return tools
    if folder is None:
        raise InvalidSetting("A shell needs the `folder` that its commands run in.")
    return (*tools, shell_tool(folder, approve, timeout=shell_timeout, environment=shell_environment, tasks=tasks))
