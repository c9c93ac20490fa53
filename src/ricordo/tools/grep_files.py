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
from ricordo.tools.file_roots import FileRoots, Located
from ricordo.tools.find_files import visible_files
from ricordo.tools.function import tool
from ricordo.tools.globs import glob_matches
from ricordo.tools.paging import decoded

__all__ = ["SECONDS", "grep_files_tool"]

SECONDS = 10.0
"""How long one call may match, in seconds."""

_MOST_LINES = 100
_WIDTH = 300
_LONGEST_PATTERN = 500
_LARGEST_FILE = 8 * 1024 * 1024
_LARGEST_BATCH = 8 * 1024 * 1024
_LARGEST_SEARCH = 64 * 1024 * 1024


class _Line(NamedTuple):
    name: str
    number: int
    character: int
    text: str

    def told(self, width: int) -> str:
        """Return the line with its place, and where it was cut."""
        cut = f" (from character {self.character})" if self.character or len(self.text) == width else ""
        return f"{self.name}:{self.number}:{cut} {self.text}"


class _Skipped:
    """What was not searched, counted."""

    def __init__(self) -> None:
        self.binary = 0
        self.large = 0
        self.unreadable = 0
        self.rest = 0

    def told(self) -> str:
        """Return the counts in words, empty for none."""
        counts = {
            "not a text": self.binary,
            f"over {_LARGEST_FILE >> 20} MB": self.large,
            "unreadable": self.unreadable,
            f"beyond the first {_LARGEST_SEARCH >> 20} MB": self.rest,
        }
        said = ", ".join(f"{count} {why}" for why, count in counts.items() if count)
        return f"; not searched: {said}" if said else ""


def grep_files_tool(roots: FileRoots, redactor: Redactor, *, seconds: float = SECONDS) -> Tool:
    """Return the tool; a search that matches for longer than `seconds` has failed. `redactor` takes secrets out."""

    async def grep_files(
        pattern: Annotated[str, "a regular expression in Python's syntax"],
        path: Annotated[str, "the file or folder to search; a leading slash means the workspace"] = "",
        glob: Annotated[str, "only files whose path matches, such as *.py"] = "",
        ignore_case: Annotated[bool, "whether capitals match small letters"] = False,
    ) -> str:
        """Find lines by a regular expression. A hit is told as path:line: text."""
        if max(len(pattern), len(glob)) > _LONGEST_PATTERN:
            raise ToolFailed(f"A pattern has at most {_LONGEST_PATTERN} characters.")
        located = await roots.locate(path or roots.default)
        visible = await visible_files(roots, located)
        files = [info for name, info in visible.files if not glob or glob_matches(glob, name)]
        skipped = _Skipped()
        found: list[_Line] = []
        more = False
        with anyio.move_on_after(seconds) as scope:
            async with aclosing(_batches(located, files, skipped)) as batches:
                async for texts in batches:
                    lines, more = await _search(pattern, texts, ignore_case=ignore_case, most=_MOST_LINES - len(found))
                    found += await anyio.to_thread.run_sync(_without_secrets, lines, dict(texts), redactor)
                    if more:
                        break
        if scope.cancelled_caught:
            raise ToolFailed(f"The search took more than {seconds:g} seconds: try a simpler pattern or fewer files.")
        head = f"the first {len(found)} lines, there are more" if more else f"{len(found)} lines"
        told = [line.told(_WIDTH) for line in found]
        return "\n".join([f"[{located.shown}: {head} in {len(files):,} files{visible.told}{skipped.told()}]", *told])

    return tool(grep_files, effect="reads")


async def _batches(
    located: Located, files: Sequence[FileInfo], skipped: _Skipped
) -> AsyncGenerator[list[tuple[str, str]], None]:
    """Yield the texts with their names, some at a time; count what is left out."""
    batch: list[tuple[str, str]] = []
    size = total = 0
    for info in files:
        if total + info.size > _LARGEST_SEARCH:
            skipped.rest += 1
            continue
        text = await _text(located, info, skipped)
        if text is None:
            continue
        if batch and size + info.size > _LARGEST_BATCH:
            yield batch
            batch, size = [], 0
        batch.append((located.shown_of(info.path), text))
        size += info.size
        total += info.size
    if batch:
        yield batch


async def _text(located: Located, info: FileInfo, skipped: _Skipped) -> str | None:
    if info.size > _LARGEST_FILE:
        skipped.large += 1
        return None
    try:
        text = decoded((await located.files.read(info.path)).data)
    except (StorageError, FileMissing):
        skipped.unreadable += 1
        return None
    skipped.binary += text is None
    return text


async def _search(
    pattern: str, texts: Sequence[tuple[str, str]], *, ignore_case: bool, most: int
) -> tuple[list[_Line], bool]:
    """Return at most `most` matching lines, and whether there are more. Raises: ToolFailed for a pattern that is none.

    Cancelled, it kills the process that matches.
    """
    asked = await anyio.to_thread.run_sync(partial(_question, pattern, texts, ignore_case=ignore_case, most=most))
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
    return [_Line(*line) for line in cast("list[list[str]]", answer["lines"])], bool(answer["more"])  # type: ignore[arg-type]


def _without_secrets(lines: Sequence[_Line], texts: Mapping[str, str], redactor: Redactor) -> list[_Line]:
    """Return the lines as they stand in their texts without secrets, which are known by the whole of a text."""
    cleaned: dict[str, list[str]] = {}
    for name in {line.name for line in lines}:
        text = redactor.clean_keeping_lines(texts[name])
        if text is not texts[name]:
            cleaned[name] = text.replace("\r\n", "\n").split("\n")
    return [_shown(line, cleaned.get(line.name), texts) for line in lines]


def _shown(line: _Line, cleaned: Sequence[str] | None, texts: Mapping[str, str]) -> _Line:
    if cleaned is None:
        return line
    before = texts[line.name].replace("\r\n", "\n").split("\n")[line.number - 1]
    now = cleaned[line.number - 1]
    return line if now == before else line._replace(character=0, text=cut(now, _WIDTH))


def _question(pattern: str, texts: Sequence[tuple[str, str]], *, ignore_case: bool, most: int) -> bytes:
    named = [[name, text] for name, text in texts]
    asked = {"pattern": pattern, "ignore_case": ignore_case, "most": most, "width": _WIDTH, "texts": [*named]}
    return dumps(asked).encode()  # type: ignore[arg-type]
