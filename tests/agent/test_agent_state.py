"""The state of an agent after a compaction: the smaller window is kept at once, and nothing else changes."""

import json
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, said, settings
from desks import Person
from fake_models import FakeModel, Hanging, Item, call, calling, reply
from places import place_of
from ricordo import CompactionConfig, HarnessAgent
from ricordo.agent import tool
from ricordo.errors import ModelUnavailable
from ricordo.messages import Message, get_mark
from ricordo.models import ChatModel
from ricordo.storage import Disk
from ricordo.testing import Call, Say, ScriptedModel
from ricordo.workspace import state_path
from ricordo.workspace.agent_state import UNKNOWN_RULES

pytestmark = pytest.mark.anyio

LONG = "some more words to fill a line, " * 20
STANDING: dict[str, Any] = {
    "plan": {"active": True, "path": "plans/a.md", "by": "user"},
    "todos": [{"id": "1", "content": "Look", "status": "completed"}, {"id": "2", "content": "Go", "status": "pending"}],
    "permissions": [{"rule": "deny shell(git push*)", "why": "Never.", "source": "person"}],
    "delivered": [f"task-{number}" for number in range(30)],
}
TWO_BEGUN = [{"id": str(number), "content": "Go", "status": "in_progress"} for number in range(2)]
WRONG: list[dict[str, Any]] = [
    {"plan": "plans/a.md"}, {"todos": TWO_BEGUN}, {"permissions": [{"rule": "forbid shell(ls)"}]}, {"delivered": [1]},
]  # fmt: skip
CONFIG = CompactionConfig(trigger_messages=12, keep_messages=4, model="offline")


def agent(model: ChatModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "compaction": CONFIG} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


def document(root: Path) -> dict[str, Any]:
    """Return the state as it stands on the disk."""
    found: dict[str, Any] = json.loads((place_of(root) / state_path("main", "s")).read_text(encoding="utf-8"))
    return found


def ids(window: tuple[Message, ...]) -> list[str]:
    return [message.id for message in window if message.role != "system"]


def stored(root: Path) -> list[str]:
    return [message["id"] for message in document(root)["window"]]


async def talked(root: Path) -> None:
    """Leave a session behind that the next request makes smaller."""
    async with agent(FakeModel(), root) as one:
        await one.record([said(f"Number {number}. {LONG}") for number in range(20)])


@pytest.mark.req("AS-STATE-01", "AS-COMPACT-10")
@pytest.mark.parametrize("ends", ["answered", "failed", "cancelled"])
async def test_a_session_goes_on_from_the_summary_and_the_tail_from_the_moment_they_were_made(
    tmp_path: Path, ends: str
) -> None:
    await talked(tmp_path)
    at_call: list[list[str]] = []

    @tool
    def look() -> str:
        """Look at the disk, as who comes after a kill would."""
        at_call.append(stored(tmp_path))
        return "seen"

    silence = Hanging()
    endings: dict[str, Item] = {"answered": reply("Yes."), "failed": ModelUnavailable("gone"), "cancelled": silence}
    model = FakeModel(calling(call("look")), endings[ends])
    async with agent(model, tmp_path, tools=[look]) as one:
        if ends == "failed":
            with pytest.raises(ModelUnavailable):
                await one.send("And now?")
        elif ends == "cancelled":
            async with anyio.create_task_group() as group:
                group.start_soon(one.send, "And now?")
                await silence.reached.wait()
                group.cancel_scope.cancel()
        else:
            await one.send("And now?")
        window = one.window
        # at the end of the call, before anything is closed
        assert stored(tmp_path) == ids(window)
    sent = model.asked[0]
    assert len(ids(sent)) < 12
    assert next(get_mark(message) for message in sent if message.role != "system") == "summary"
    # while the turn went on, what had been sent was kept already
    assert at_call == [ids(sent)]
    more = FakeModel(calling(call("look")), reply("Yes."), calling(call("look")), reply("Yes."))
    async with agent(more, tmp_path, tools=[look]) as one:
        for number in range(2):
            # each of the compactions in one process is kept
            await one.record([said(f"More of it, {number}. {LONG}") for _ in range(20)])
            await one.send("And then?")
            assert at_call[-1] == ids(more.asked[-2]) != stored(tmp_path)
            assert len(at_call[-1]) < 12
        window = one.window
    again = FakeModel(reply("Hello again."))
    async with agent(again, tmp_path) as one:
        assert one.window == window
        await one.send("Still there?")
    assert ids(again.asked[0])[:-1] == ids(window)


@pytest.mark.req("AS-STATE-01", "AS-COMPACT-09")
async def test_a_state_that_can_not_be_kept_keeps_no_window_from_getting_smaller(tmp_path: Path) -> None:
    await talked(tmp_path)
    model = FakeModel(reply("Yes."))
    async with agent(model, tmp_path) as one:
        folder = (place_of(tmp_path) / state_path("main", "s")).parent
        folder.rename(tmp_path / "gone")
        folder.write_text("in the way")
        await one.send("And now?")
        assert get_mark(one.window[0]) == "summary"
        assert ids(one.window)[:-1] == ids(model.asked[0])
        folder.unlink()


@pytest.mark.req("AS-STATE-01", "AS-STATE-02", "AS-COMPACT-10", "HE-T1")
async def test_a_compaction_changes_the_window_of_a_state_and_nothing_else(tmp_path: Path) -> None:
    await talked(tmp_path)
    path = place_of(tmp_path) / state_path("main", "s")
    other = {"v": 3, "learns": False, "turns": 7, "ratio": 1.5, "mood": {"calm": True}, "tasks": ["one", 2], **STANDING}
    path.write_text(json.dumps(document(tmp_path) | other), encoding="utf-8")
    before = document(tmp_path)
    async with agent(FakeModel(), tmp_path, memory_hooks=False) as one:
        reports = await one.compact()
        assert [report.status for report in reports if report.action == "compact"] == ["done"]
        after = document(tmp_path)
    assert after["window"] != before["window"]
    assert len(after["window"]) < len(before["window"])
    for left in (after, document(tmp_path)):
        assert {name: value for name, value in left.items() if name != "window"} == {
            name: value for name, value in before.items() if name != "window"
        }
        assert left.items() >= other.items()


@pytest.mark.req("AS-STATE-02", "AS-COMPACT-10")
async def test_a_compaction_within_a_turn_changes_the_window_of_a_state_and_nothing_else(tmp_path: Path) -> None:
    await talked(tmp_path)
    path = place_of(tmp_path) / state_path("main", "s")
    other = {"v": 3, "turns": 7, "ratio": 1.5, "mood": {"calm": True}, **STANDING}
    path.write_text(json.dumps(document(tmp_path) | other), encoding="utf-8")
    before = document(tmp_path)
    at_call: list[dict[str, Any]] = []

    @tool(effect="reads")
    def look() -> str:
        """Look at the disk."""
        at_call.append(document(tmp_path))
        return "seen"

    async with agent(FakeModel(calling(call("look")), reply("Yes.")), tmp_path, tools=[look]) as one:
        await one.send("And now?")
    (within,) = at_call
    assert len(within["window"]) < len(before["window"])
    # what was said was recorded; the rest is as it was
    assert within == before | {"window": within["window"], "last": within["last"]}
    after = document(tmp_path)
    assert after == before | {"window": after["window"], "last": after["last"], "turns": 8}


def broken(whole: dict[str, Any]) -> list[bytes]:
    """Return what a state may look like that can't be parsed: torn, garbage, and of wrong types or values."""
    data = json.dumps(whole | STANDING).encode()
    wrong = [json.dumps(whole | STANDING | fields).encode() for fields in WRONG]
    return [data[: len(data) // 2], b"\x00\xff" * 40, *wrong]


@pytest.mark.req("AS-BUG-29")
async def test_a_state_that_can_not_be_parsed_stays_aside_and_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await talked(tmp_path)
    path = place_of(tmp_path) / state_path("main", "s")
    cases = broken(document(tmp_path))
    for number, data in enumerate(cases, start=1):
        path.write_bytes(data)
        caplog.clear()
        async with agent(FakeModel(reply("Yes.")), tmp_path, compaction=None) as one:
            assert path.with_name(f"s.json.broken-{number}").read_bytes() == data
            warning, *others = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
            # the first two can't be parsed at all, and in two others the plan or a rule is not whole
            unknown = number in {1, 2, 3, 5}
            assert (one.permissions.rules[:1] == (UNKNOWN_RULES,), len(others)) == (unknown, unknown)
            assert not unknown or 'permissions.remove("*")' in others[0]
            assert warning.endswith(f"set aside as {state_path('main', 's')}.broken-{number}.")
            # the transcript has what was said, and the session goes on
            assert len(one.window) >= 20
            await one.send("And now?")
        assert document(tmp_path)["turns"] == 1
    kept = {f"s.json.broken-{number}": data for number, data in enumerate(cases, start=1)}
    async with agent(FakeModel(), tmp_path) as one:
        await one.compact()
    assert {each.name: each.read_bytes() for each in path.parent.glob("*.broken-*")} == kept
    assert {name: document(tmp_path)[name] for name in STANDING} == STANDING | {"delivered": []}, "what is whole stays"


@pytest.mark.req("AS-BUG-29")
async def test_what_a_damaged_state_forbade_is_not_done_and_nothing_acts_unasked_until_a_person_says_so(
    tmp_path: Path,
) -> None:
    ran: list[str] = []

    def opened(*branches: str, **options: object) -> HarnessAgent:
        async def deploy(branch: str) -> str:
            """Deploy a branch."""
            ran.append(branch)
            return "done"

        calls = [Call("deploy", {"branch": branch}) for branch in branches]
        return agent(ScriptedModel([*calls, Say("Done.")]), tmp_path, tools=[tool(deploy)], **options)

    path = place_of(tmp_path) / state_path("main", "s")
    async with opened("wild") as one:
        await one.permissions.deny("deploy(wild)")
        await one.send("Go.")
    path.write_bytes(path.read_bytes()[:-20])
    async with opened() as one:
        assert one.permissions.rules == (UNKNOWN_RULES,)
        # and it is left again before anything was saved
    async with opened("wild", permissions=["allow deploy"]) as one:
        await one.send("Go on.")
        assert ran == []
    person = Person(True)
    async with opened("main", approve=person) as one:
        await one.send("Go on.")
        assert ([asked.target for asked in person.asked], ran) == (["main"], ["main"])
        assert await one.permissions.remove("*")
    async with opened("wild") as one:
        assert one.permissions.rules == ()
        await one.send("Go on.")
    assert ran == ["main", "wild"]


class WrittenBytes(Disk):
    """Counts the bytes that are written."""

    count = 0

    def write(self, descriptor: int, data: bytes) -> None:
        self.count += len(data)
        super().write(descriptor, data)


@pytest.mark.req("AS-STATE-01")
@pytest.mark.parametrize("earlier", [5, 200])
async def test_recording_writes_the_message_and_not_the_window_and_leaving_writes_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: int
) -> None:
    disk, message = WrittenBytes(), said("One more.")
    made, check = list[Message](), Message.__post_init__

    def count_and_check(message: Message) -> None:
        made.append(message)
        check(message)

    async with agent(FakeModel(), tmp_path, compaction=None, disk=disk, hooks=False) as one:
        await one.record([said(f"Number {number}. {LONG}") for number in range(earlier)])
        before, disk.count = document(tmp_path), 0
        monkeypatch.setattr(Message, "__post_init__", count_and_check)
        await one.record([message])
        assert disk.count < len(LONG)
        assert len(made) < 10
        assert document(tmp_path) == before
        window = ids(one.window)
    assert stored(tmp_path) == window
    assert len(window) == earlier + 1


@pytest.mark.req("AS-STATE-01", "AS-BUG-12")
async def test_what_was_recorded_before_a_kill_is_in_the_window_of_the_next_process(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    async with agent(FakeModel(reply("Hi.")), whole, compaction=None) as one:
        await one.send("Hello.")
        for number in range(3):
            await one.record([said(f"Number {number}.")])
        shutil.copytree(whole, killed)
        window = ids(one.window)
    assert len(stored(killed)) == len(window) - 3
    async with agent(FakeModel(), killed, compaction=None) as next_one:
        assert ids(next_one.window) == window
