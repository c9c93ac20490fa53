"""An agent's state: what was saved is found again whole, without secrets, and nothing broken is overwritten."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import any_text, json_values, messages
from ricordo.errors import InvalidMessage, VersionConflict
from ricordo.files import ABSENT
from ricordo.files.local import LocalFiles
from ricordo.guard import Redactor
from ricordo.messages import Message, Text, ToolCall
from ricordo.state import AgentState
from ricordo.state.codec import decode, encode
from ricordo.state.files import FileStates
from ricordo.workspace.layout import cursor_path, state_path

pytestmark = pytest.mark.anyio

KNOWN = {"v", "agent", "session", "turns", "ratio", "window"}
SECRET = "sk-ant-api03-" + "Ab3dEf9hIjKlMn0pQrStUvWxYz12345678" * 2


def states() -> st.SearchStrategy[AgentState]:
    extra = st.dictionaries(any_text(6).filter(lambda name: name not in KNOWN), json_values(), max_size=3)
    newer = st.builds(lambda rest, version: {**rest, "v": version}, extra, st.integers(2, 99))
    return st.builds(
        AgentState,
        agent=st.just("main"),
        session=st.just("s1"),
        window=st.lists(messages(), max_size=4).map(tuple),
        turns=st.integers(0, 10**9),
        last=st.text(max_size=30),
        ratio=st.floats(0, 10**6, exclude_min=True),
        extra=st.one_of(extra, newer),
    )


def made(folder: Path) -> FileStates:
    return FileStates(LocalFiles(folder), Redactor(bytes(32)))


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


@given(states())
def test_any_state_is_read_as_it_was_written(state: AgentState) -> None:
    assert decode(encode(state), agent="main", session="s1") == state


@given(st.one_of(st.binary(max_size=60), json_values().map(lambda value: json.dumps(value).encode())))
def test_any_bytes_are_a_state_or_named_as_none(data: bytes) -> None:
    try:
        state = decode(data, agent="main", session="s1")
    except InvalidMessage:
        return
    assert decode(encode(state), agent="main", session="s1") == state


@pytest.mark.parametrize(
    "state",
    [
        AgentState(agent="a", session="s", extra={"turns": 3}),
        AgentState(agent="a", session="s", extra={"v": 1}),
        AgentState(agent="a", session="s", ratio=0.0),
        AgentState(agent="a", session="s", ratio=float("nan")),
        AgentState(agent="a", session="s", turns=-1),
    ],
)
def test_a_state_that_has_no_form_is_refused(state: AgentState) -> None:
    with pytest.raises(InvalidMessage):
        encode(state)


async def test_a_state_goes_on_in_the_next_process(tmp_path: Path) -> None:
    assert (await made(tmp_path).load("main", "s1")).version == ABSENT
    state = AgentState(agent="main", session="s1", window=(said("Hello."),), turns=2, ratio=1.25)
    version = await made(tmp_path).save(state, expected=ABSENT)
    stated = await made(tmp_path).load("main", "s1")
    assert (stated.state, stated.version, stated.set_aside) == (state, version, "")
    assert (tmp_path / "workspace/agents/main/state/s1.json").is_file()
    assert (await made(tmp_path).load("other", "s1")).state == AgentState(agent="other", session="s1")


async def test_of_two_that_replace_one_version_the_second_is_told(tmp_path: Path) -> None:
    store = made(tmp_path)
    first = await store.save(AgentState(agent="main", session="s1", turns=1), expected=ABSENT)
    await store.save(AgentState(agent="main", session="s1", turns=2), expected=first)
    for expected in (first, ABSENT):
        with pytest.raises(VersionConflict):
            await store.save(AgentState(agent="main", session="s1", turns=9), expected=expected)
    assert (await store.load("main", "s1")).state.turns == 2


async def test_what_a_newer_version_wrote_survives(tmp_path: Path) -> None:
    store = made(tmp_path)
    path = tmp_path / state_path("main", "s1")
    path.parent.mkdir(parents=True)
    path.write_text('{"v": 3, "agent": "main", "session": "s1", "turns": 4, "mood": {"calm": true}, "window": []}')
    stated = await store.load("main", "s1")
    assert stated.state.turns == 4
    await store.save(stated.state, expected=stated.version)
    assert json.loads(path.read_text()).items() >= {"v": 3, "mood": {"calm": True}, "turns": 4}.items()


@pytest.mark.req("AS-BUG-29")
@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b'{"v": 1, "window": [{"v": 1}]}', b"\xff\xfe", b'{"v": 0}'])
async def test_a_state_that_cannot_be_read_is_moved_aside_and_never_overwritten(tmp_path: Path, broken: bytes) -> None:
    store = made(tmp_path)
    path = tmp_path / state_path("main", "s1")
    path.parent.mkdir(parents=True)
    for number in (1, 2):
        content = broken + b" " * number
        path.write_bytes(content)
        stated = await store.load("main", "s1")
        assert stated.state == AgentState(agent="main", session="s1")
        assert stated.set_aside == f"{state_path('main', 's1')}.broken-{number}"
        await store.save(AgentState(agent="main", session="s1", turns=1), expected=stated.version)
        assert (tmp_path / stated.set_aside).read_bytes() == content
        path.unlink()


async def test_a_kill_between_keeping_and_removing_a_broken_state_keeps_one(tmp_path: Path) -> None:
    path = tmp_path / state_path("main", "s1")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"broken")
    path.with_name("s1.json.broken-1").write_bytes(b"broken")
    assert (await made(tmp_path).load("main", "s1")).set_aside.endswith(".broken-1")
    assert [found.name for found in sorted(path.parent.iterdir())] == ["s1.json.broken-1"]


async def test_no_secret_of_the_window_reaches_the_disk(tmp_path: Path) -> None:
    window = (
        said(f"The key is {SECRET}."),
        Message(role="assistant", parts=(ToolCall(id="1", name="run", arguments=json.dumps({"key": SECRET})),)),
    )
    store = made(tmp_path)
    await store.save(AgentState(agent="main", session="s1", window=window, extra={"a": [SECRET]}), expected=ABSENT)
    assert SECRET.encode() not in (tmp_path / state_path("main", "s1")).read_bytes()
    assert len((await store.load("main", "s1")).state.window) == 2


def test_a_session_whose_name_ends_like_a_cursor_has_a_place_of_its_own() -> None:
    assert state_path("main", "x.cursor") != cursor_path("main", "x")
    assert state_path("main", "x.CURSOR").lower() != cursor_path("main", "x").lower()
    assert state_path("main", "x.y") == "workspace/agents/main/state/x.y.json"
