"""The private socket: a process that has the memory open answers hooks of its place."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.to_thread import run_sync

from hooked_hosts import HookedHost, short_runtime_folder
from ricordo import Memory, Scope
from ricordo.hooks.drainer import drain_spool
from ricordo.hooks.places import Place, find_place, make_place
from ricordo.hooks.server import serve_hooks

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no such sockets here")]

QUESTION = "Which branch do we deploy from?"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HookedHost]:
    with short_runtime_folder() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield HookedHost(folder=tmp_path / "shop")


@asynccontextmanager
async def _open(host: HookedHost) -> Any:
    place = make_place(str(host.folder / ".ricordo"), "me", os.environ)
    async with Memory.open(place.root, scope=Scope(project="shop", user="me")) as memory:
        yield memory, place


def _sources(host: HookedHost) -> list[str]:
    lines = (host.hooks_folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [line.partition('"source": "')[2].partition('"')[0] for line in lines]


async def test_a_process_that_has_the_memory_open_answers_for_the_hooks(host: HookedHost) -> None:
    async with _open(host) as (memory, place):
        await memory.remember("We deploy only from the branch release.", kind="decision")
        async with serve_hooks(memory, place) as serves:
            assert serves
            assert stat.S_IMODE(os.stat(place.socket_path).st_mode) == 0o600
            given = await run_sync(host.prompt, QUESTION)
            assert "branch release" in given.context
            assert (await run_sync(host.prompt, f"{QUESTION} Tell me.")).out == ""
            assert "branch release" in (await run_sync(host.start, "two")).context
        assert await run_sync(os.listdir, place.runtime) == [f"{place.digest}.sock.lock"]
    assert _sources(host) == ["server"] * 3


async def test_the_second_process_of_a_place_leaves_the_first_alone(host: HookedHost) -> None:
    async with _open(host) as (memory, place), serve_hooks(memory, place) as first:
        async with serve_hooks(memory, place) as second:
            assert (first, second) == (True, False)
        await memory.remember("We deploy only from the branch release.")
        assert "branch release" in (await run_sync(host.prompt, QUESTION)).context
        assert _sources(host) == ["server"]


async def test_a_socket_that_a_killed_process_left_is_replaced_and_misleads_no_hook(host: HookedHost) -> None:
    async with _open(host) as (memory, place):
        await memory.remember("We deploy only from the branch release.")
        os.makedirs(place.runtime, mode=0o700)
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(place.socket_path)
        assert "branch release" in (await run_sync(host.prompt, QUESTION)).context
        async with serve_hooks(memory, place) as serves:
            assert serves
            assert "branch release" in (await run_sync(host.prompt, QUESTION, "two")).context
    assert _sources(host) == ["process", "server"]


async def test_nobody_answers_where_others_could_reach_the_socket(host: HookedHost) -> None:
    async with _open(host) as (memory, place):
        os.makedirs(place.runtime)
        os.chmod(place.runtime, 0o777)
        async with serve_hooks(memory, place) as serves:
            assert not serves
        await run_sync(host.prompt, QUESTION)
    assert _sources(host) == ["process"]


async def test_nobody_answers_where_hooks_are_off(host: HookedHost) -> None:
    async with _open(host) as (memory, place), serve_hooks(memory, place, config=None) as serves:
        assert not serves


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", b'{"event": 7}\n', b"x" * 3_000_000, b'{"event": {}}\n'])
async def test_a_client_that_writes_nonsense_gets_nothing_and_the_next_one_its_answer(
    host: HookedHost, data: bytes
) -> None:
    async with _open(host) as (memory, place):
        await memory.remember("We deploy only from the branch release.")
        async with serve_hooks(memory, place):
            assert await run_sync(partial(_exchange, place, data)) == b""
            assert "branch release" in (await run_sync(host.prompt, QUESTION)).context
    assert _sources(host) == ["server"]


async def test_a_process_that_is_idle_learns_from_what_waits(host: HookedHost) -> None:
    await run_sync(host.said, "one", "We decided to deploy only from the branch release.")
    await run_sync(host.hook, "Stop")
    async with _open(host) as (memory, place):
        report = await drain_spool(memory, place)
        assert (report.items, report.messages, report.left, report.troubles) == (1, 2, 0, ())
        assert [hit.entry.kind for hit in await memory.recall(QUESTION)] == ["decision"]
        again = await drain_spool(memory, place)
        assert (again.items, again.messages) == (0, 0)
    assert "branch release" in (await run_sync(host.start, "two")).context


def _exchange(place: Place, data: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(place.socket_path)
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            received = client.recv(100)
        except OSError:
            return b""
        return received if b'"context": ""' not in received else b""


@pytest.mark.req("CC-WORKTREE")
@pytest.mark.parametrize("is_begun", [True, False])
def test_a_linked_work_tree_has_the_place_of_the_main_one_unless_they_are_separate(
    tmp_path: Path, *, is_begun: bool
) -> None:
    main, beside = tmp_path / "shop", tmp_path / "beside"
    data = main / ".git" / "worktrees" / "beside"
    for folder in (data, beside / "src"):
        folder.mkdir(parents=True)
    (data / "commondir").write_text("../..\n")
    (beside / ".git").write_text(f"gitdir: {data}\n")
    if is_begun:
        (main / ".ricordo").mkdir()
        (main / ".ricordo" / "project.json").write_text("{}")
    for setting, top in (("", main), ("share", main), ("separate", beside)):
        place = find_place(str(beside / "src"), {"RICORDO_WORKTREES": setting, "RICORDO_USER": "me"})
        assert place is not None
        assert Path(place.root) == top / ".ricordo", setting
