"""list_files, glob_files and grep_files: files by folder, by name and by content.

Results are sorted by path and limited, and say what they leave out: hidden names, links and installed packages. Glob
patterns take bounded time; a regular expression that never ends is stopped with its process.
"""

import os
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple, cast

import anyio
import anyio.to_thread

from ricordo.agent.tools import line_search
from ricordo.agent.tools.contract import Tool
from ricordo.agent.tools.file_roots import FileRoots, LocatedPath
from ricordo.agent.tools.function import tool
from ricordo.agent.tools.paging import decode_text
from ricordo.errors import FileMissing, PathRefused, StorageError, ToolFailed
from ricordo.guard import Redactor, cut
from ricordo.lazy import dataclass
from ricordo.messages.json_text import dumps, loads
from ricordo.storage import FileInfo
from ricordo.storage.contract import safe_path
from ricordo.workspace.layout import PROJECT_PREFIX

__all__ = [
    "GREP_SECONDS",
    "MAX_NAMES",
    "VisibleFiles",
    "find_visible_files",
    "glob_files_tool",
    "grep_files_tool",
    "list_files_tool",
    "list_folder",
    "matches_glob",
    "walk_files",
]


MAX_NAMES = 50_000
"""Maximum number of file and folder names that one search reads."""
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
_IsClosed = Callable[[Path], bool]


def walk_files(
    top: Path, inside: str, *, is_closed: _IsClosed, max_files: int = MAX_NAMES
) -> tuple[list[FileInfo], bool]:
    """Return the files below the folder `inside` of `top`, and whether there are more than `max_files` names.

    Their paths are relative to `top` and sorted. A folder that `is_closed` or can't be read is left out.
    """
    files: list[FileInfo] = []
    waiting = deque([inside])
    seen = 0
    while waiting and seen <= max_files:
        folder = waiting.popleft()
        for entry in islice(_scan_entries(top / folder), max_files + 1 - seen):
            seen += 1
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED_FOLDERS and not is_closed(top / path):
                    waiting.append(path)
            elif seen <= max_files and (info := _entry_info(entry, path)) is not None:
                files.append(info)
    return sorted(files, key=lambda info: info.path), seen > max_files


def list_folder(top: Path, inside: str, *, is_closed: _IsClosed) -> dict[str, int | None] | None:
    """Return the names in `inside` below `top`, with file sizes in bytes (None for a folder); None if it is no folder.

    Hidden names, links and closed folders are left out.
    """
    if not (top / inside).is_dir():
        return None
    children: dict[str, int | None] = {}
    for entry in _scan_entries(top / inside):
        if entry.is_dir(follow_symlinks=False):
            if not is_closed(top / inside / entry.name):
                children[entry.name] = None
        elif (info := _entry_info(entry, entry.name)) is not None:
            children[entry.name] = info.size
    return children


def _scan_entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the visible entries of a folder, sorted by name; none if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            sorted_entries = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in sorted_entries:
        if not entry.name.startswith(".") and _is_safe(entry.name):
            yield entry


def _is_safe(name: str) -> bool:
    try:
        return safe_path(name) == name
    except PathRefused:
        return False


def _entry_info(entry: os.DirEntry[str], path: str) -> FileInfo | None:
    """Return the file info of a regular file; None for anything else, and if it no longer exists."""
    try:
        if not entry.is_file(follow_symlinks=False):
            return None
        stat = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return FileInfo(path=path, size=stat.st_size, modified_ns=stat.st_mtime_ns)


def matches_glob(pattern: str, path: str) -> bool:
    """Return whether `path` matches `pattern`; a pattern without a slash matches the name in any folder."""
    names = path.split("/")
    if "/" not in pattern.strip("/"):
        return fnmatchcase(names[-1], pattern.strip("/"))
    return _matches_parts([part for part in pattern.split("/") if part not in {"", "."}], names)


def _matches_parts(parts: Sequence[str], names: Sequence[str]) -> bool:
    # reached[n]: the parts so far match the first n names
    reached = [True, *[False] * len(names)]
    for part in parts:
        if part == "**":
            for count in range(1, len(names) + 1):
                reached[count] = reached[count] or reached[count - 1]
        else:
            reached = [False, *(reached[count] and fnmatchcase(name, part) for count, name in enumerate(names))]
    return reached[-1]


_MAX_RESULTS = 200
_MAX_PATTERN_CHARS = 500


@dataclass(frozen=True, kw_only=True)
class VisibleFiles:
    """Files below a folder, each with its relative path and file info; `more` is True if some are left out."""

    files: Sequence[tuple[str, FileInfo]]
    more: bool = False

    @property
    def more_text(self) -> str:
        """The note that there are more files; empty if there are not."""
        return f"; only the nearest {len(self.files):,} files were looked at" if self.more else ""


async def find_visible_files(roots: FileRoots, located: LocatedPath) -> VisibleFiles:
    """Return the files in a folder and below it, or the file itself.

    They are sorted by path. Raises: ToolFailed if there is none.
    """
    if located.relative_path and (info := await _file_info(located)):
        return VisibleFiles(files=[(info.path.rpartition("/")[2], info)])
    visible = await _walk_located(roots, located)
    if not visible.files and located.relative_path:
        raise ToolFailed(f"There is no folder {located.display_path}, or no file is in it.")
    return visible


async def _walk_located(roots: FileRoots, located: LocatedPath) -> VisibleFiles:
    prefix = f"{located.path}/" if located.path else ""
    if roots.folder is None or located.in_workspace:
        files = [(info.path.removeprefix(prefix), info) for info in await located.files.list(located.path)]
        return VisibleFiles(files=[(name, info) for name, info in files if not _is_hidden(name)])
    walk = partial(walk_files, roots.folder.resolve(), located.path, is_closed=roots.is_closed)
    # It only reads, so a cancelled call does not have to wait for the thread.
    infos, more = await anyio.to_thread.run_sync(walk, abandon_on_cancel=True)
    return VisibleFiles(files=[(info.path.removeprefix(prefix), info) for info in infos], more=more)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


async def _file_info(located: LocatedPath) -> FileInfo | None:
    """Return the file info of the path; None for a folder, which can't be read."""
    try:
        await located.files.read_from(located.path, 0, 0)
    except FileMissing:
        return None
    return await located.files.info(located.path)


async def _list_children(roots: FileRoots, located: LocatedPath) -> dict[str, int | None]:
    """Return the names in a folder, with the bytes of a file or None for a folder."""
    if roots.folder is not None and not located.in_workspace:
        list_names = partial(list_folder, roots.folder.resolve(), located.path, is_closed=roots.is_closed)
        names = await anyio.to_thread.run_sync(list_names, abandon_on_cancel=True)
        if names is not None:
            return names
    children: dict[str, int | None] = {}
    if roots.shared and located.in_workspace and not located.relative_path and not located.is_shared:
        children[PROJECT_PREFIX] = None
    for name, info in (await find_visible_files(roots, located)).files:
        child, slash, _ = name.partition("/")
        children[child] = None if slash else info.size
    return children


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
        # A pattern may start with the slash of the workspace.
        folder = path or ("/" if pattern.startswith("/") else roots.default_path)
        located = await roots.locate(folder)
        matches = _glob_matcher(pattern)
        visible = await find_visible_files(roots, located)
        paths = [located.display_path_of(info.path) for name, info in visible.files if matches(name)]
        return _render_list(located, paths, "files", visible.more_text)

    return tool(glob_files, effect="reads")


def _glob_matcher(pattern: str) -> Callable[[str], bool]:
    # In a pattern of several parts a leading slash only anchors it to the root.
    anchored = pattern.lstrip("/")
    return lambda name: matches_glob(anchored, name)


def _render_list(located: LocatedPath, lines: Sequence[str], noun: str, more: str = "") -> str:
    if not lines:
        return f"[{located.display_path}: no {noun}{more}]"
    if len(lines) > _MAX_RESULTS:
        advice = "ask for a folder or a narrower pattern"
        head = f"[{located.display_path}: the first {_MAX_RESULTS} of {len(lines):,} {noun}{more}; {advice}]"
    else:
        head = f"[{located.display_path}: {len(lines)} {noun}{more}]"
    return "\n".join([head, *lines[:_MAX_RESULTS]])


GREP_SECONDS = 10.0
"""Time limit of the matching in one call, in seconds."""
_MAX_LINES = 100
_MAX_LINE_CHARS = 300
_MAX_FILE_BYTES = 8 * 1024 * 1024
_MAX_BATCH_BYTES = 8 * 1024 * 1024
_MAX_SEARCH_BYTES = 64 * 1024 * 1024


class _MatchedLine(NamedTuple):
    name: str
    number: int
    character: int
    text: str

    def render(self, width: int) -> str:
        """Return the line with its position and a note if it was cut."""
        cut = f" (from character {self.character})" if self.character or len(self.text) == width else ""
        return f"{self.name}:{self.number}:{cut} {self.text}"


class _SkippedFiles:
    """The numbers of files that were not searched, by reason."""

    def __init__(self) -> None:
        self.binary = 0
        self.large = 0
        self.unreadable = 0
        self.over_limit = 0

    def render(self) -> str:
        """Return the counts in words, empty if there are none."""
        counts = {
            "not a text": self.binary,
            f"over {_MAX_FILE_BYTES >> 20} MB": self.large,
            "unreadable": self.unreadable,
            f"beyond the first {_MAX_SEARCH_BYTES >> 20} MB": self.over_limit,
        }
        description = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
        return f"; not searched: {description}" if description else ""


def grep_files_tool(roots: FileRoots, redactor: Redactor, *, seconds: float = GREP_SECONDS) -> Tool:
    """Return the tool; a search that matches for longer than `seconds` fails. `redactor` removes secrets."""

    async def grep_files(
        pattern: Annotated[str, "a regular expression in Python's syntax"],
        path: Annotated[str, "the file or folder to search; a leading slash means the workspace"] = "",
        glob: Annotated[str, "only files whose path matches, such as *.py"] = "",
        ignore_case: Annotated[bool, "whether capitals match small letters"] = False,
    ) -> str:
        """Find lines by a regular expression. A hit is told as path:line: text."""
        if max(len(pattern), len(glob)) > _MAX_PATTERN_CHARS:
            raise ToolFailed(f"A pattern has at most {_MAX_PATTERN_CHARS} characters.")
        located = await roots.locate(path or roots.default_path)
        visible = await find_visible_files(roots, located)
        files = [info for name, info in visible.files if not glob or matches_glob(glob, name)]
        skipped = _SkippedFiles()
        matches: list[_MatchedLine] = []
        more = False
        with anyio.move_on_after(seconds) as scope:
            async with aclosing(_read_batches(located, files, skipped)) as batches:
                async for texts in batches:
                    lines, more = await _run_search(
                        pattern, texts, ignore_case=ignore_case, max_lines=_MAX_LINES - len(matches)
                    )
                    matches += await anyio.to_thread.run_sync(_redact_lines, lines, dict(texts), redactor)
                    if more:
                        break
        if scope.cancelled_caught:
            raise ToolFailed(f"The search took more than {seconds:g} seconds: try a simpler pattern or fewer files.")
        head = f"the first {len(matches)} lines, there are more" if more else f"{len(matches)} lines"
        rendered = [line.render(_MAX_LINE_CHARS) for line in matches]
        return "\n".join(
            [
                f"[{located.display_path}: {head} in {len(files):,} files{visible.more_text}{skipped.render()}]",
                *rendered,
            ]
        )

    return tool(grep_files, effect="reads")


async def _read_batches(
    located: LocatedPath, files: Sequence[FileInfo], skipped: _SkippedFiles
) -> AsyncGenerator[list[tuple[str, str]], None]:
    """Yield the texts with their names in batches; count the files that are left out."""
    batch: list[tuple[str, str]] = []
    size = total = 0
    for info in files:
        if total + info.size > _MAX_SEARCH_BYTES:
            skipped.over_limit += 1
            continue
        text = await _read_text(located, info, skipped)
        if text is None:
            continue
        if batch and size + info.size > _MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append((located.display_path_of(info.path), text))
        size += info.size
        total += info.size
    if batch:
        yield batch


async def _read_text(located: LocatedPath, info: FileInfo, skipped: _SkippedFiles) -> str | None:
    if info.size > _MAX_FILE_BYTES:
        skipped.large += 1
        return None
    try:
        text = decode_text((await located.files.read(info.path)).data)
    except (StorageError, FileMissing):
        skipped.unreadable += 1
        return None
    skipped.binary += text is None
    return text


async def _run_search(
    pattern: str, texts: Sequence[tuple[str, str]], *, ignore_case: bool, max_lines: int
) -> tuple[list[_MatchedLine], bool]:
    """Return at most `max_lines` matching lines, and whether there are more. Raises: ToolFailed for an invalid pattern.

    A cancellation kills the matching process.
    """
    request = await anyio.to_thread.run_sync(
        partial(_encode_search, pattern, texts, ignore_case=ignore_case, max_lines=max_lines)
    )
    process = await anyio.run_process(
        # -I and -S: it needs no path and no packages, and starts much faster.
        [sys.executable, "-I", "-S", line_search.__file__],
        input=request,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    answer: object = None
    with suppress(ValueError):
        answer = loads(process.stdout)
    if not isinstance(answer, dict):
        raise ToolFailed("The search ended early: try a simpler pattern.")
    if answer["error"]:
        raise ToolFailed(f"The pattern is no regular expression: {answer['error']}.")
    return [_MatchedLine(*line) for line in cast("list[list[str]]", answer["lines"])], bool(answer["more"])  # type: ignore[arg-type]


def _redact_lines(lines: Sequence[_MatchedLine], texts: Mapping[str, str], redactor: Redactor) -> list[_MatchedLine]:
    """Return the lines without secrets, which are recognized in the whole text."""
    redacted_lines: dict[str, list[str]] = {}
    for name in {line.name for line in lines}:
        text = redactor.clean_keeping_lines(texts[name])
        if text is not texts[name]:
            redacted_lines[name] = text.replace("\r\n", "\n").split("\n")
    return [_redact_line(line, redacted_lines.get(line.name), texts) for line in lines]


def _redact_line(line: _MatchedLine, redacted_lines: Sequence[str] | None, texts: Mapping[str, str]) -> _MatchedLine:
    if redacted_lines is None:
        return line
    original = texts[line.name].replace("\r\n", "\n").split("\n")[line.number - 1]
    redacted = redacted_lines[line.number - 1]
    return line if redacted == original else line._replace(character=0, text=cut(redacted, _MAX_LINE_CHARS))


def _encode_search(pattern: str, texts: Sequence[tuple[str, str]], *, ignore_case: bool, max_lines: int) -> bytes:
    rows = [[name, text] for name, text in texts]
    request = {
        "pattern": pattern,
        "ignore_case": ignore_case,
        "most": max_lines,
        "width": _MAX_LINE_CHARS,
        "texts": [*rows],
    }
    return dumps(request).encode()  # type: ignore[arg-type]
