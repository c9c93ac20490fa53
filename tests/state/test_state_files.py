"""An agent's state: what was saved is found again whole, without secrets, and nothing broken is overwritten."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import any_text, json_values, messages
from ricordo.errors import InvalidMessage, VersionConflict
from ricordo.guard import PermissionRule, Redactor, ToolPattern
from ricordo.messages import Message, Text, ToolCall
from ricordo.storage import ABSENT
from ricordo.storage.local import LocalFiles
from ricordo.workspace import (
    AgentState,
    FileStateStore,
    PermissionGrants,
    PlanState,
    Todo,
    WorkState,
    cursor_path,
    state_path,
)
from ricordo.workspace.agent_state import STATE_VERSION, UNKNOWN_RULES, decode_state, encode_state, salvage_state
from standings import standings

pytestmark = pytest.mark.anyio

KNOWN = set(json.loads(encode_state(AgentState(agent="a", session="s"))))
UNKNOWN = WorkState(permissions=(UNKNOWN_RULES,))
SECRET = "sk-ant-api03-" + "Ab3dEf9hIjKlMn0pQrStUvWxYz12345678" * 2


def states() -> st.SearchStrategy[AgentState]:
    extra = st.dictionaries(any_text(6).filter(lambda name: name not in KNOWN), json_values(), max_size=3)
    newer = st.builds(lambda rest, version: {**rest, "v": version}, extra, st.integers(STATE_VERSION + 1, 99))
    return st.builds(
        AgentState,
        agent=st.just("main"),
        session=st.just("s1"),
        window=st.lists(messages(), max_size=4).map(tuple),
        learns=st.booleans(),
        turns=st.integers(0, 10**9),
        last=st.text(max_size=30),
        ratio=st.floats(0, 10**6, exclude_min=True),
        work_state=standings(),
        extra=st.one_of(extra, newer),
    )


def made(folder: Path) -> FileStateStore:
    return FileStateStore(LocalFiles(folder), Redactor(bytes(32)), PermissionGrants(LocalFiles(folder), "granted"))


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


@pytest.mark.req("AS-STATE-02", "AS-STATE-03", "AS-STATE-06", "AS-STATE-07")
@given(states())
def test_any_state_is_read_as_it_was_written(state: AgentState) -> None:
    assert decode_state(encode_state(state), agent="main", session="s1") == state


@pytest.mark.req("AS-BUG-29")
@given(st.one_of(st.binary(max_size=60), json_values().map(lambda value: json.dumps(value).encode())))
def test_any_bytes_are_a_state_or_named_as_none(data: bytes) -> None:
    try:
        state = decode_state(data, agent="main", session="s1")
    except InvalidMessage:
        return
    assert decode_state(encode_state(state), agent="main", session="s1") == state


@pytest.mark.req("AS-BUG-29", "AS-STATE-06")
@pytest.mark.parametrize(
    "fields",
    [
        {"v": 0},
        {"v": "2"},
        {"user": 1},
        {"last": 1},
        {"window": {}},
        {"window": ["Go"]},
        {"turns": True},
        {"turns": -1},
        {"learns": 0},
        {"ratio": 0},
        {"plan": "plans/a.md"},
        {"plan": {"active": 1}},
        {"plan": {"path": None}},
        {"plan": {"by": "nobody"}},
        {"plan": {"approved": 1}},
        {"todos": {}},
        {"todos": ["Go"]},
        {"todos": [{"content": "Go"}]},
        {"todos": [{"id": "1"}]},
        {"todos": [{"id": 1, "content": "Go"}]},
        {"todos": [{"id": "1", "content": "Go", "status": "begun"}]},
        {"todos": [{"id": each, "content": "Go", "status": "in_progress"} for each in "12"]},
        {
            "todos": [
                {"id": f"{at}", "content": "Go", "status": ("pending", "in_progress")[at % 6 < 1]} for at in range(7)
            ]
        },
        {"permissions": ["deny shell"]},
        {"permissions": [{"why": "Never."}]},
        {"permissions": [{"rule": "forbid shell(ls)"}]},
        {"permissions": [{"rule": "deny shell(ls"}]},
        {"permissions": [{"rule": "deny shell", "why": None}]},
        {"permissions": [{"rule": "deny shell", "source": 1}]},
        {"delivered": "task-1"},
        {"delivered": [1]},
    ],
    ids=json.dumps,
)
def test_what_is_of_the_wrong_kind_is_never_mended(fields: dict[str, object]) -> None:
    whole = json.loads(encode_state(AgentState(agent="a", session="s")))
    with pytest.raises(InvalidMessage):
        decode_state(json.dumps(whole | fields).encode(), agent="a", session="s")


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_stands_where_a_document_says_nothing_of_it(version: int) -> None:
    data = json.dumps({"v": version, "agent": "a", "session": "s", "turns": 3, "window": []}).encode()
    assert decode_state(data, agent="a", session="s") == AgentState(agent="a", session="s", turns=3)
    assert json.loads(encode_state(decode_state(data, agent="a", session="s")))["v"] == STATE_VERSION


def test_what_stands_may_leave_out_what_is_as_ever() -> None:
    fields = {
        "plan": {"path": "plans/a.md"},
        "todos": [{"id": "1", "content": "Go"}],
        "permissions": [{"rule": "ask x"}],
    }
    state = decode_state(json.dumps({"v": 2} | fields).encode(), agent="a", session="s")
    assert state.work_state == WorkState(
        plan=PlanState(path="plans/a.md"),
        todos=(Todo(id="1", content="Go"),),
        permissions=(PermissionRule(decision="ask", pattern=ToolPattern(tool="x")),),
    )


@pytest.mark.req("AS-STATE-06")
@pytest.mark.parametrize(
    "standing",
    [
        WorkState(
            todos=(Todo(id="1", content="a", status="in_progress"), Todo(id="2", content="b", status="in_progress"))
        ),
        WorkState(todos=(Todo(id="1", content="a", status="begun"),)),  # type: ignore[arg-type]
        WorkState(plan=PlanState(author="nobody")),  # type: ignore[arg-type]
        WorkState(permissions=(PermissionRule(decision="forbid", pattern=ToolPattern(tool="x")),)),  # type: ignore[arg-type]
        WorkState(permissions=(PermissionRule(decision="deny", pattern=ToolPattern(tool="")),)),
    ],
)
def test_what_could_not_be_read_back_is_not_written(standing: WorkState) -> None:
    with pytest.raises(InvalidMessage):
        encode_state(AgentState(agent="a", session="s", work_state=standing))


@pytest.mark.parametrize(
    "state",
    [
        AgentState(agent="a", session="s", extra={"turns": 3}),
        AgentState(agent="a", session="s", extra={"v": STATE_VERSION}),
        AgentState(agent="a", session="s", ratio=0.0),
        AgentState(agent="a", session="s", ratio=float("nan")),
        AgentState(agent="a", session="s", turns=-1),
    ],
)
def test_a_state_that_has_no_form_is_refused(state: AgentState) -> None:
    with pytest.raises(InvalidMessage):
        encode_state(state)


@pytest.mark.req("AS-STATE-02", "AS-STATE-03", "AS-STATE-06", "AS-STATE-07")
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


@pytest.mark.req("GO-I5")
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
@pytest.mark.parametrize(
    ("broken", "left"),
    [
        (b"", UNKNOWN),
        (b"{", UNKNOWN),
        (b"[]", UNKNOWN),
        (b'{"v": 1, "window": [{"v": 1}]}', WorkState()),
        (b"\xff\xfe", UNKNOWN),
        (b'{"v": 0}', UNKNOWN),
    ],
)
async def test_a_state_that_cannot_be_read_is_moved_aside_and_never_overwritten(
    tmp_path: Path, broken: bytes, left: WorkState
) -> None:
    store = made(tmp_path)
    path = tmp_path / state_path("main", "s1")
    path.parent.mkdir(parents=True)
    for number in (1, 2):
        content = broken + b" " * number
        path.write_bytes(content)
        stated = await store.load("main", "s1")
        assert stated.state == AgentState(agent="main", session="s1", work_state=left)
        assert stated.set_aside == f"{state_path('main', 's1')}.broken-{number}"
        await store.save(AgentState(agent="main", session="s1", turns=1), expected=stated.version)
        assert (tmp_path / stated.set_aside).read_bytes() == content
        path.unlink()


@pytest.mark.req("AS-BUG-29")
async def test_a_broken_state_stays_until_another_takes_its_place_and_is_kept_once(tmp_path: Path) -> None:
    path = tmp_path / state_path("main", "s1")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"broken")
    for _ in range(2):
        # as after a kill: who opens it next is told the same
        stated = await made(tmp_path).load("main", "s1")
        assert (stated.state.work_state, stated.set_aside[-9:]) == (UNKNOWN, ".broken-1")
    store = made(tmp_path)
    stated = await store.load("main", "s1")
    await store.save(stated.state, expected=stated.version)
    assert [found.name for found in sorted(path.parent.iterdir())] == ["s1.json", "s1.json.broken-1"]
    assert (await made(tmp_path).load("main", "s1")).state == stated.state
    other = made(tmp_path)
    path.write_bytes(b"again")
    await other.load("main", "s1")
    path.write_bytes(b"by a third")
    with pytest.raises(VersionConflict):
        await other.save(stated.state, expected=ABSENT)
    path.unlink()
    assert (await other.load("main", "s1")).set_aside == ""
    await other.save(stated.state, expected=ABSENT)


RULES = tuple(
    PermissionRule(decision="deny", pattern=ToolPattern(tool="shell", argument=each), source="user") for each in "ab"
)
FULL = AgentState(
    agent="main",
    session="s1",
    window=(said("Hello."),),
    user="ada",
    learns=False,
    turns=3,
    work_state=WorkState(
        plan=PlanState(active=True, path="plans/a.md", author="user"),
        todos=(Todo(id="1", content="Go"),),
        permissions=RULES,
        delivered_results=("t",),
    ),
)


@pytest.mark.req("AS-BUG-29")
@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        ({"window": [{"v": 1}]}, {}),
        ({"turns": -1, "ratio": None}, {}),
        ({"user": 1}, {"user": ""}),
        ({"learns": "no"}, {"learns": True}),
        ({"todos": [{"id": "1"}]}, {"todos": ()}),
        ({"delivered": [1]}, {"delivered_results": ()}),
        (
            {"plan": {"active": "yes", "path": "plans/a.md"}},
            {"plan": PlanState(), "permissions": (UNKNOWN_RULES, *RULES)},
        ),
        ({"plan": None}, {"plan": PlanState(), "permissions": (UNKNOWN_RULES, *RULES)}),
        ({"permissions": None}, {"permissions": (UNKNOWN_RULES,)}),
        (
            {"permissions": ["deny x", {"rule": "deny shell(b)", "source": "user"}]},
            {"permissions": (UNKNOWN_RULES, RULES[1])},
        ),
    ],
)
def test_of_a_damaged_state_what_is_whole_stands_and_unknown_rules_let_nothing_act_unasked(
    damage: dict[str, object], lost: dict[str, object]
) -> None:
    fields = json.loads(encode_state(FULL)) | {"window": [{"v": 1}]} | damage
    # from version 2 on a document says what stands, so what is missing is lost too
    for gone in (fields, {key: value for key, value in fields.items() if value is not None}):
        data = json.dumps(gone).encode()
        with pytest.raises(InvalidMessage):
            decode_state(data, agent="main", session="s1")
        found = salvage_state(data, agent="main", session="s1")
        stands = {"plan", "permissions", "todos", "delivered_results"}
        standing = replace(FULL.work_state, **{key: value for key, value in lost.items() if key in stands})  # type: ignore[arg-type]
        assert found == replace(
            FULL, window=(), turns=0, work_state=standing,
            **{key: value for key, value in lost.items() if key not in stands},  # type: ignore[arg-type]
        )  # fmt: skip
        assert decode_state(encode_state(found), agent="main", session="s1") == found, "and it can be kept"


@pytest.mark.req("AS-BUG-29")
def test_what_was_damaged_twice_has_the_rule_for_it_once() -> None:
    once = salvage_state(b"{", agent="main", session="s1")
    fields = json.loads(encode_state(once)) | {"plan": 1}
    assert salvage_state(json.dumps(fields).encode(), agent="main", session="s1").work_state == UNKNOWN


@pytest.mark.req("AS-BUG-29")
@given(st.one_of(st.binary(max_size=60), json_values().map(lambda value: json.dumps(value).encode())))
def test_any_bytes_that_are_no_state_leave_one_that_lets_nothing_act_unasked(data: bytes) -> None:
    found = salvage_state(data, agent="main", session="s1")
    assert found.work_state.permissions[0] == UNKNOWN_RULES
    assert decode_state(encode_state(found), agent="main", session="s1") == found


@pytest.mark.req("FC-SECRET")
async def test_no_secret_of_the_window_reaches_the_disk(tmp_path: Path) -> None:
    window = (
        said(f"The key is {SECRET}."),
        Message(role="assistant", parts=(ToolCall(id="1", name="run", arguments=json.dumps({"key": SECRET})),)),
    )
    store = made(tmp_path)
    await store.save(AgentState(agent="main", session="s1", window=window, extra={"a": [SECRET]}), expected=ABSENT)
    assert SECRET.encode() not in (tmp_path / state_path("main", "s1")).read_bytes()
    assert len((await store.load("main", "s1")).state.window) == 2


@pytest.mark.req("FC-SECRET")
async def test_no_secret_of_what_stands_reaches_the_disk(tmp_path: Path) -> None:
    pattern = ToolPattern(tool="shell", argument=f"curl -H *{SECRET}*")
    standing = WorkState(
        plan=PlanState(path=f"plans/{SECRET}.md"),
        todos=(Todo(id=SECRET, content=f"Put {SECRET} into the vault"),),
        permissions=(PermissionRule(decision="deny", pattern=pattern, reason=f"It has {SECRET}.", source=SECRET),),
        delivered_results=(SECRET,),
    )
    store = made(tmp_path)
    await store.save(AgentState(agent="main", session="s1", work_state=standing), expected=ABSENT)
    assert SECRET.encode() not in (tmp_path / state_path("main", "s1")).read_bytes()
    kept = (await store.load("main", "s1")).state.work_state
    assert kept.todos[0].content.startswith("Put [secret:")
    assert kept.permissions[0].pattern.argument.startswith("curl -H *[secret:")
    assert all("[secret:" in text for text in (kept.plan.path, kept.permissions[0].reason, *kept.delivered_results))


def test_a_session_whose_name_ends_like_a_cursor_has_a_place_of_its_own() -> None:
    assert state_path("main", "x.cursor") != cursor_path("main", "x")
    assert state_path("main", "x.CURSOR").lower() != cursor_path("main", "x").lower()
    assert state_path("main", "x.y") == "workspace/agents/main/state/x.y.json"


class CountingRedactor(Redactor):
    """Counts the texts that are searched for secrets."""

    texts = 0

    def clean(self, text: str) -> str:
        self.texts += 1
        return super().clean(text)


@pytest.mark.req("FC-SECRET")
async def test_a_save_redacts_what_is_new_in_the_window_and_writes_all_of_it(tmp_path: Path) -> None:
    redactor = CountingRedactor(bytes(32))
    states = FileStateStore(LocalFiles(tmp_path), redactor)
    window = [said(f"Number {number}.") for number in range(400)]
    state = AgentState(agent="main", session="s1", window=tuple(window))
    version = await states.save(state, expected=ABSENT)
    first, redactor.texts = redactor.texts, 0
    longer = replace(state, window=(*window[10:], said(f"The key is {SECRET}.")))
    await states.save(longer, expected=version)
    assert redactor.texts < first / 10
    document = (tmp_path / state_path("main", "s1")).read_text(encoding="utf-8")
    assert SECRET not in document
    assert document.count('"Number ') == 390
    assert "Number 9." not in document
    *others, newest = (await FileStateStore(LocalFiles(tmp_path), redactor).load("main", "s1")).state.window
    assert others == window[10:]
    assert newest.text.startswith("The key is ")
