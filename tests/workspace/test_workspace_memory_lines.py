"""Lines of memory documents: exactly those that were asked for, of memory documents only."""

from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.files.in_memory import InMemoryFiles
from ricordo.files.local import LocalFiles
from ricordo.tools import memory_get

pytestmark = pytest.mark.anyio

LINES = [f"line {number}" for number in range(1, 8)]
DOCUMENT = ("\n".join(LINES) + "\n").encode()
MEMORY_PATHS = ["MEMORY.md", "/MEMORY.md", "memory/2026-11-21.md", "memory/topics/a.md", "memory/archive/2026-08-01.md"]
OUT_OF_RANGE: list[tuple[int, int | None]] = [(2, 1), (7, 3), (0, 1), (-1, 2), (1, 0), (1, -1), (8, 9), (99, None)]
OTHER_PATHS = [
    "",
    "/",
    ".",
    "memory",
    "memory/",
    "profile.json",
    "memory/.tombstones.jsonl",
    "agents/main/sessions/s1.log.jsonl",
    "sessions/a.md",
    "plans/a.md",
    "OTHER.md",
    "memory.md",
    "guard.key",
    "../guard.key",
    "../project.json",
    "memory/../../guard.key",
    "memory/../profile.json",
    "memory/../MEMORY.md",
    "..\\MEMORY.md",
    "memory/．．/MEMORY.md",
    "MEMORY.md\x00",
    "/etc/passwd",
    "memory/none.md",
]


@pytest.mark.req("AS-BUG-27")
async def test_memory_get_gives_inclusive_lines_of_memory_files_and_nothing_else(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")
    for path in {path.lstrip("/") for path in MEMORY_PATHS}:
        await files.create(f"workspace/{path}", DOCUMENT)
    for path in ("profile.json", "agents/main/sessions/s1.log.jsonl", "sessions/a.md", "plans/a.md", "OTHER.md"):
        await files.create(f"workspace/{path}", b"not for this tool\n")
    await files.create("guard.key", b"not for this tool\n")
    for path in MEMORY_PATHS:
        for first, last in combinations_with_replacement(range(1, 8), 2):
            result = await memory_get(files, path, first, last)
            assert (result.text, result.is_error) == ("\n".join(LINES[first - 1 : last]), False)
        assert (await memory_get(files, path)).text == "\n".join(LINES)
        assert (await memory_get(files, path, 6, 99)).text == "\n".join(LINES[5:])
        for start, end in OUT_OF_RANGE:
            refused = await memory_get(files, path, start, end)
            assert refused.is_error
            assert "line 2" not in refused.text
    for path in OTHER_PATHS:
        refused = await memory_get(files, path)
        assert refused.is_error, path
        assert refused.text
        assert "not for this tool" not in refused.text


@given(text=st.text(max_size=60), start=st.integers(1, 5), length=st.integers(0, 5))
async def test_the_lines_are_those_that_an_editor_counts(text: str, start: int, length: int) -> None:
    files = InMemoryFiles()
    await files.create("workspace/MEMORY.md", text.encode("utf-8", "replace"))
    lines = text.encode("utf-8", "replace").decode().split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    result = await memory_get(files, "MEMORY.md", start, start + length)
    if start > max(len(lines), 1):
        assert result.is_error
    else:
        assert result.text == "\n".join(lines[start - 1 : start + length])
