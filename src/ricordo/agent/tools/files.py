"""The file tools as one set, and read_file, which shows a page of a file and how to read on.

A page is small, so results of read_file are never evicted from the window.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import anyio.to_thread

from ricordo.agent.tools.contract import ApprovalHandler, Tool
from ricordo.agent.tools.file_edits import FileWriter, edit_file_tool, write_file_tool
from ricordo.agent.tools.file_roots import FileRoots, SharedFiles
from ricordo.agent.tools.file_search import glob_files_tool, grep_files_tool, list_files_tool
from ricordo.agent.tools.function import tool
from ricordo.agent.tools.paging import cut_page, decode_text, describe_page
from ricordo.agent.tools.shell import shell_tool
from ricordo.agent.tools.tasks import SessionTasks
from ricordo.errors import InvalidSetting, ToolFailed
from ricordo.guard import Redactor
from ricordo.storage import FileStore
from ricordo.workspace.documents import IndexBounds
from ricordo.workspace.history.change_sets import ChangeSets

__all__ = ["MAX_READ_CHARS", "file_tools", "read_file_tool"]


MAX_READ_CHARS = 20_000
"""Maximum characters that one call shows, about 5,000 tokens."""
_MAX_WHOLE_CHARS = 256 * 1024
_REDACTION_MARGIN = 16 * 1024
_MAX_READ_BYTES = 64 * 1024 * 1024
_BINARY_SIGNATURES = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a ZIP archive, such as an office document",
    b"\x1f\x8b": "gzip data",
    b"\x7fELF": "a program",
    b"SQLite format 3\0": "an SQLite database",
}


def read_file_tool(
    roots: FileRoots, redactor: Redactor, *, most_characters: int = MAX_READ_CHARS, name: str = "read_file"
) -> Tool:
    """Return the tool under `name`; a call shows at most `most_characters` characters, with marks for secrets.

    Raises: InvalidSetting below 1.
    """
    if most_characters < 1:
        raise InvalidSetting(f"A page has at least one character, not {most_characters}.")

    async def read_file(
        path: Annotated[str, "the file; a leading slash means the workspace, else the working directory"],
        offset: Annotated[int, "the first line to show, from 1"] = 1,
        limit: Annotated[int | None, "how many lines to show at most"] = None,
        character: Annotated[int, "where in the first line to begin, from 0, for lines too long for one page"] = 0,
    ) -> str:
        """Read a text file, page by page.

        The first line of the result says which part is shown and with which arguments to read on.
        """
        if offset < 1 or character < 0 or (limit is not None and limit < 1):
            raise ToolFailed("Lines count from 1, characters from 0, and a page has at least one line.")
        located = await roots.locate(path)
        info = await located.get_info()
        if info.size > _MAX_READ_BYTES:
            raise ToolFailed(f"{located.display_path} has {info.size:,} bytes, more than can be read here.")
        data = await located.files.read_from(located.path, 0)

        def render() -> str:
            text = decode_text(data)
            if text is None:
                return _describe_binary(data, located.display_path)
            text = _redact_around_page(text, redactor, line=offset, character=character, max_chars=most_characters)
            return _render_page(
                text, located.display_path, line=offset, character=character, lines=limit, max_chars=most_characters
            )

        return await anyio.to_thread.run_sync(render)

    return tool(read_file, name=name, effect="reads")


def _redact_around_page(text: str, redactor: Redactor, *, line: int, character: int, max_chars: int) -> str:
    """Return the text without secrets (in a very long text only around the page); lines keep their numbers.

    The page is cut from the result, so a private key that extends beyond the page is recognized as a whole.
    """
    if len(text) <= _MAX_WHOLE_CHARS:
        return redactor.clean_keeping_lines(text)
    begin = character
    for _ in range(line - 1):
        begin = text.find("\n", begin - character) + 1 + character
        if begin == character:
            return text
    start, end = max(0, begin - _REDACTION_MARGIN), begin + max_chars + _REDACTION_MARGIN
    return f"{text[:start]}{redactor.clean_keeping_lines(text[start:end])}{text[end:]}"


def _render_page(text: str, name: str, *, line: int, character: int, lines: int | None, max_chars: int) -> str:
    page = cut_page(text, line=line, character=character, lines=lines, max_chars=max_chars)
    if page is None:
        total = text.count("\n") + (not text.endswith("\n"))
        raise ToolFailed(f"{name} has {total} lines: there is nothing at line {line}, character {character}.")
    return f"[{name}: {describe_page(page)}]\n{page.text}"


def _describe_binary(data: bytes, name: str) -> str:
    kind = next((kind for start, kind in _BINARY_SIGNATURES.items() if data.startswith(start)), "of an unknown format")
    return f"[{name}: not a text, {len(data):,} bytes, {kind}. It begins with {data[:8].hex(' ')}.]"


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
    closed_folder: Path | None = None,
) -> tuple[Tool, ...]:
    """Return read_file, write_file, edit_file, list_files, glob_files, grep_files, and shell if requested.

    `workspace` are the files of a root, and `changes` its change sets; without them the workspace is read-only. `root`
    is its folder; pass it for a root on a disk, so that links in the workspace are refused and the root is closed to
    the working directory. `working` are the files of the working directory, and `folder` its path, which is used to
    resolve links, to keep file modes, and to run the shell. Writes there need approval by `approve`; without it they
    are refused. `redactor` is the root's own; without it the marks of secrets can't be compared with others.
    `shell_timeout` is in seconds. Commands get the variables in `shell_environment`, or those of this process without
    secrets; with `tasks` they can run in the background. One call of read_file shows at most `most_characters`.
    `bounds` limit MEMORY.md. `shared` is available as `/project`, read-only. `closed_folder` is the folder that the
    working directory does not lead into, by default `root`.

    Raises: InvalidSetting for a shell without a folder.
    """
    roots = FileRoots(workspace, working, root=root, folder=folder, shared=shared, closed_folder=closed_folder)
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
