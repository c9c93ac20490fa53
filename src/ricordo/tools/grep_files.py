"""grep_files: lines that match a regular expression, with the place to read on at.

What is searched is bounded, and the time of the search too: a pattern that never ends is stopped.
"""

import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Annotated, NamedTuple, cast

import anyio
import anyio.to_thread

from ricordo.errors import FileMissing, StorageError, ToolFailed
from ricordo.files import FileInfo
from ricordo.guard import Redactor, cut
from ricordo.messages.jsontext import dumps, loads
from ricordo.tools import line_search
from ricordo.tools.contract import Tool
from ricordo.tools.file_roots import FileRoots, LocatedPath
from ricordo.tools.find_files import find_visible_files
from ricordo.tools.function import tool
from ricordo.tools.globs import matches_glob
from ricordo.tools.paging import decode_text

__all__ = ["GREP_SECONDS", "grep_files_tool"]

GREP_SECONDS = 10.0
"""How long one call may match, in seconds."""

_MAX_LINES = 100
_MAX_LINE_CHARS = 300
_MAX_PATTERN_CHARS = 500
_MAX_FILE_BYTES = 8 * 1024 * 1024
_MAX_BATCH_BYTES = 8 * 1024 * 1024
_MAX_SEARCH_BYTES = 64 * 1024 * 1024


class _MatchedLine(NamedTuple):
    name: str
    number: int
    character: int
    text: str

    def render(self, width: int) -> str:
        """Return the line with its place, and where it was cut."""
        cut = f" (from character {self.character})" if self.character or len(self.text) == width else ""
        return f"{self.name}:{self.number}:{cut} {self.text}"


class _SkippedFiles:
    """What was not searched, counted."""

    def __init__(self) -> None:
        self.binary = 0
        self.large = 0
        self.unreadable = 0
        self.over_limit = 0

    def render(self) -> str:
        """Return the counts in words, empty for none."""
        counts = {
            "not a text": self.binary,
            f"over {_MAX_FILE_BYTES >> 20} MB": self.large,
            "unreadable": self.unreadable,
            f"beyond the first {_MAX_SEARCH_BYTES >> 20} MB": self.over_limit,
        }
        said = ", ".join(f"{count} {why}" for why, count in counts.items() if count)
        return f"; not searched: {said}" if said else ""


def grep_files_tool(roots: FileRoots, redactor: Redactor, *, seconds: float = GREP_SECONDS) -> Tool:
    """Return the tool; a search that matches for longer than `seconds` has failed. `redactor` takes secrets out."""

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
        found: list[_MatchedLine] = []
        more = False
        with anyio.move_on_after(seconds) as scope:
            async with aclosing(_read_batches(located, files, skipped)) as batches:
                async for texts in batches:
                    lines, more = await _run_search(
                        pattern, texts, ignore_case=ignore_case, most=_MAX_LINES - len(found)
                    )
                    found += await anyio.to_thread.run_sync(_redact_lines, lines, dict(texts), redactor)
                    if more:
                        break
        if scope.cancelled_caught:
            raise ToolFailed(f"The search took more than {seconds:g} seconds: try a simpler pattern or fewer files.")
        head = f"the first {len(found)} lines, there are more" if more else f"{len(found)} lines"
        told = [line.render(_MAX_LINE_CHARS) for line in found]
        return "\n".join(
            [f"[{located.display_path}: {head} in {len(files):,} files{visible.more_text}{skipped.render()}]", *told]
        )

    return tool(grep_files, effect="reads")


async def _read_batches(
    located: LocatedPath, files: Sequence[FileInfo], skipped: _SkippedFiles
) -> AsyncGenerator[list[tuple[str, str]], None]:
    """Yield the texts with their names, some at a time; count what is left out."""
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
    pattern: str, texts: Sequence[tuple[str, str]], *, ignore_case: bool, most: int
) -> tuple[list[_MatchedLine], bool]:
    """Return at most `most` matching lines, and whether there are more. Raises: ToolFailed for a pattern that is none.

    Cancelled, it kills the process that matches.
    """
    asked = await anyio.to_thread.run_sync(partial(_encode_search, pattern, texts, ignore_case=ignore_case, most=most))
    done = await anyio.run_process(
        # -I and -S: it needs no path and no packages, and starts in a fraction of the time
        [sys.executable, "-I", "-S", line_search.__file__],
        input=asked,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    answer: object = None
    with suppress(ValueError):
        answer = loads(done.stdout)
    if not isinstance(answer, dict):
        raise ToolFailed("The search ended early: try a simpler pattern.")
    if answer["error"]:
        raise ToolFailed(f"The pattern is no regular expression: {answer['error']}.")
    return [_MatchedLine(*line) for line in cast("list[list[str]]", answer["lines"])], bool(answer["more"])  # type: ignore[arg-type]


def _redact_lines(lines: Sequence[_MatchedLine], texts: Mapping[str, str], redactor: Redactor) -> list[_MatchedLine]:
    """Return the lines as they stand in their texts without secrets, which are known by the whole of a text."""
    cleaned: dict[str, list[str]] = {}
    for name in {line.name for line in lines}:
        text = redactor.clean_keeping_lines(texts[name])
        if text is not texts[name]:
            cleaned[name] = text.replace("\r\n", "\n").split("\n")
    return [_redact_line(line, cleaned.get(line.name), texts) for line in lines]


def _redact_line(line: _MatchedLine, cleaned: Sequence[str] | None, texts: Mapping[str, str]) -> _MatchedLine:
    if cleaned is None:
        return line
    before = texts[line.name].replace("\r\n", "\n").split("\n")[line.number - 1]
    now = cleaned[line.number - 1]
    return line if now == before else line._replace(character=0, text=cut(now, _MAX_LINE_CHARS))


def _encode_search(pattern: str, texts: Sequence[tuple[str, str]], *, ignore_case: bool, most: int) -> bytes:
    named = [[name, text] for name, text in texts]
    asked = {"pattern": pattern, "ignore_case": ignore_case, "most": most, "width": _MAX_LINE_CHARS, "texts": [*named]}
    return dumps(asked).encode()  # type: ignore[arg-type]
