"""Two writers and four readers on one root: what was acknowledged is found by whoever asks after that.

How long they go on in `make soak` is said by the environment variable SOAK_SECONDS, ten minutes unless it is given;
`-s` shows what they told in the end: how much was saved and asked, and how long the longest answer took.
"""

import os
import sys
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from piped_processes import start_script
from ricordo import Memory, Scope

SCRIPT = Path(__file__).with_name("writers_and_readers.py")
SCOPE = Scope(user="me", project="shop")
SOAK_SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
ROLES = {"one": "write", "two": "write"} | {f"reader {number}": "read" for number in range(4)}

pytestmark = pytest.mark.anyio


def lived(root: Path, seconds: float) -> dict[str, list[str]]:
    """Let all of them go at once, and return what each told; trouble of any kind fails the test."""
    running = {name: start_script(SCRIPT, root, name, role, seconds) for name, role in ROLES.items()}
    for process in running.values():
        assert process.stdout.readline() == "ready\n", process.told()
    for process in running.values():
        process.stdin.write("\n")
        process.stdin.flush()
    told = {}
    for name, process in running.items():
        out, trouble = process.communicate()
        assert (process.returncode, trouble) == (0, ""), (name, trouble[-2000:])
        told[name] = out.splitlines()
    return told


async def check(root: Path, seconds: float) -> None:
    async with Memory.open(root, scope=SCOPE):
        pass
    told = await run_sync(lived, root, seconds)
    assert [line for lines in told.values() for line in lines if line.startswith(("lost", "broken"))] == []
    last = {name: lines[-1].split() for name, lines in told.items()}
    sys.stdout.write(f"{last}\n")
    assert all(int(last[name][1]) > 0 for name in ROLES), last
    saved = {name: int(last[name][1]) for name in ("one", "two")}
    async with Memory.open(root, scope=SCOPE) as memory:
        assert [check.name for check in await memory.doctor() if not check.ok] == []
        kept = sorted(entry.content for entry in await memory.entries() if entry.content.startswith("The number"))
        wanted = [f"The number of {name} is {number}." for name, count in saved.items() for number in range(count)]
        assert kept == sorted(wanted)
        before = [hit.entry.content for hit in await memory.recall("number of one", limit=50)]
    assert not [name for name in os.listdir(root) if "broken" in name]
    (root / "memory_index.db").unlink()
    async with Memory.open(root, scope=SCOPE) as memory:
        assert [hit.entry.content for hit in await memory.recall("number of one", limit=50)] == before


@pytest.mark.req("FC-LOCKED")
async def test_what_two_processes_write_is_found_by_four_that_read_meanwhile(tmp_path: Path) -> None:
    await check(tmp_path / "root", 1.0)


@pytest.mark.soak
@pytest.mark.timeout(2 * SOAK_SECONDS + 300)
async def test_two_writers_and_four_readers_go_on_for_ten_minutes(tmp_path: Path) -> None:
    await check(tmp_path / "root", SOAK_SECONDS)
