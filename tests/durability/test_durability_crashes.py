"""A process killed at any step loses nothing it had acknowledged, doubles nothing, and stops nobody after it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from piped_processes import start_code
from ricordo.storage.local import LocalFiles

Crashes = Callable[..., list[dict[str, Any]]]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")

_ADDER = """
import sys, anyio
from pathlib import Path
from ricordo.errors import VersionConflict
from ricordo.storage.local import LocalFiles

async def main():
    files = LocalFiles(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[2])):
        while True:
            stored = await files.read("workspace/MEMORY.md")
            try:
                await files.replace("workspace/MEMORY.md", stored.data + b"line\\n", expected=stored.version)
                break
            except VersionConflict:
                continue

anyio.run(main)
"""


def _two_processes_add_lines(root: Path, lines: int) -> None:
    running = [start_code(_ADDER, root, lines) for _ in range(2)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0


async def _create(root: Path) -> None:
    await LocalFiles(root).create("workspace/MEMORY.md", b"")


@pytest.mark.req("GO-D9", "DF-UPD-atomic")
def test_a_file_is_replaced_whole_or_not_at_all_and_no_replacement_is_lost(crashes: Crashes, tmp_path: Path) -> None:
    told = crashes("replace")
    assert [case["step"] for case in told if not case["half"]] == [
        "make_file",
        "write",
        "sync",
        "rename",
        "sync_folder",
        "",
    ]
    for case in told:
        renamed = case["step"] in {"sync_folder", ""}
        assert case["left"] == {"content": "new" if renamed else "old", "listed": ["workspace/MEMORY.md"]}
        assert case["again"]["content"] == "new"
    anyio.run(_create, tmp_path / "root")
    _two_processes_add_lines(tmp_path / "root", 20)
    assert (tmp_path / "root" / "workspace" / "MEMORY.md").read_bytes() == b"line\n" * 40


def _check_ingest(told: list[dict[str, Any]]) -> None:
    whole = told[-1]["again"]
    assert not told[-1]["killed"]
    assert len(whole["entries"]) == 4
    for case in told:
        where = (case["at"], case["step"], case["half"])
        left, again = case["left"], case["again"]
        for session in case["acked"]:
            assert left["sessions"][session] == whole["sessions"][session], where
            assert [entry for entry in whole["entries"] if f'"{session}"' in entry] == [
                entry for entry in left["entries"] if f'"{session}"' in entry
            ], where
        for session, texts in left["sessions"].items():
            assert whole["sessions"][session][: len(texts)] == texts, where
        for fact in ("sessions", "entries", "found"):
            assert again[fact] == whole[fact], where
        assert left["doubled ids"] == again["doubled ids"] == [], where
        torn = case["half"] and bool(set(again["unwell"]))
        assert again["unwell"] == (["lines"] if torn else []), where


@pytest.mark.req("DF-B24")
def test_an_ingest_killed_at_any_twentieth_step_is_completed_by_the_next_and_doubles_nothing(crashes: Crashes) -> None:
    told = crashes("ingest", every=20)
    assert len(told) > 3
    _check_ingest(told)


@pytest.mark.req("AS-TRANS-01", "AS-BUG-13")
@pytest.mark.soak
def test_an_ingest_killed_at_any_step_is_completed_by_the_next_and_doubles_nothing(crashes: Crashes) -> None:
    told = crashes("ingest")
    assert len(told) > 60
    _check_ingest(told)


def test_an_import_killed_at_any_tenth_step_is_completed_by_the_next(crashes: Crashes) -> None:
    told = crashes("import", every=10)
    assert len(told) > 5
    _check_imports(told)


@pytest.mark.soak
def test_an_import_killed_at_any_step_is_completed_by_the_next(crashes: Crashes) -> None:
    _check_imports(crashes("import"))


def _check_imports(told: list[dict[str, Any]]) -> None:
    whole = [
        ["The door is green.", "active", 18],
        ["The door is red.", "superseded", 16],
        ["The key is lost. The", "active", 5100],
        ["The lock is old.", "active", 16],
    ]
    assert not told[-1]["killed"]
    for case in told:
        where = (case["at"], case["step"], case["half"])
        if case["acked"]:
            assert case["left"]["entries"] == whole, where
        before = {text for text, *_ in case["left"]["entries"]}
        assert {"The door is red.", "The lock is old."} <= before, where
        assert [row for row in case["again"]["entries"] if row[0] in {text for text, *_ in whole}] == whole, where
        assert len(case["again"]["entries"]) - len(whole) <= case["half"], where


def test_the_import_of_a_history_killed_at_any_fortieth_step_goes_on_and_can_be_taken_back(crashes: Crashes) -> None:
    told = crashes("history", every=40)
    assert len(told) > 3
    _check_histories(told)


@pytest.mark.soak
def test_the_import_of_a_history_killed_at_any_step_goes_on_and_can_be_taken_back(crashes: Crashes) -> None:
    _check_histories(crashes("history"))


def _check_histories(told: list[dict[str, Any]]) -> None:
    whole = told[-1]["again"]
    assert not told[-1]["killed"]
    assert sorted(map(len, whole["sessions"].values())) == [2, 2]
    assert len(whole["entries"]) == 5
    for case in told:
        where = (case["at"], case["step"], case["half"])
        again, end = case["again"], case["end"]
        for fact in ("sessions", "entries", "doubled ids"):
            assert again[fact] == whole[fact] or case["half"], where
        assert end["sessions"] == {}, where
        assert len(end["entries"]) <= case["half"], where


@pytest.mark.req("GO-I7", "GO-D9", "GO-G6")
def test_a_kill_at_any_third_write_point_costs_at_most_the_save_that_had_not_returned(crashes: Crashes) -> None:
    told = crashes("remember", every=3)
    assert len(told) > 13
    _check_saves(told)


@pytest.mark.req("GO-D9", "GO-G6", "GO-I7")
@pytest.mark.soak
def test_a_kill_at_any_write_point_costs_at_most_the_save_that_had_not_returned(crashes: Crashes) -> None:
    told = crashes("remember")
    assert len(told) > 40
    _check_saves(told)


def _check_saves(told: list[dict[str, Any]]) -> None:
    assert {case["step"] for case in told} >= {"make_folder", "make_file", "write", "sync", "rename", "commit"}
    everything = told[-1]["left"]["memories"]
    for case in told:
        where = (case["at"], case["step"], case["half"])
        acked, left = case["acked"], case["left"]
        assert set(acked) <= set(left["memories"]), where
        assert left["whole"] or case["half"], where
        # half a line is told as damage, never passed over
        assert set(left["unwell"]) <= ({"damage"} if case["half"] else set()), where
        unknown = set(left["memories"]) - set(everything)
        assert len(unknown) <= case["half"], where
        assert len(left["memories"]) - len(acked) <= 1, where
        assert set(everything) <= set(case["again"]["memories"]), where
        assert len(case["again"]["memories"]) == len(left["memories"]) + 2, where


def _check_all_or_nothing(told: list[dict[str, Any]], *, ack: str, act: str) -> None:
    done, undone = told[-1]["left"], told[0]["left"]
    assert act in done["acts"]
    assert act not in undone["acts"]
    for case in told:
        where = (case["at"], case["step"], case["half"])
        assert case["left"] == (done if act in case["left"]["acts"] else undone), where
        assert act in case["left"]["acts"] or ack not in case["acked"], where
        assert case["again"] == done, where


_CHANGES = [("forget", "forgotten", "forget"), ("undo", "undone", "undo")]


@pytest.mark.req("DF-B14", "DF-C55", "GO-D9", "GO-I7")
@pytest.mark.parametrize(("scenario", "ack", "act"), _CHANGES)
def test_a_change_killed_at_any_sixth_step_is_whole_or_put_back(
    scenario: str, ack: str, act: str, crashes: Crashes
) -> None:
    _check_all_or_nothing(crashes(scenario, every=6), ack=ack, act=act)


@pytest.mark.req("GO-D9", "GO-I7", "DF-B14")
@pytest.mark.soak
@pytest.mark.parametrize(("scenario", "ack", "act"), _CHANGES)
def test_a_change_killed_at_any_step_is_whole_or_put_back(scenario: str, ack: str, act: str, crashes: Crashes) -> None:
    _check_all_or_nothing(crashes(scenario), ack=ack, act=act)
