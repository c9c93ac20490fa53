"""Hits come with the heading, the date and the speaker, and on request with what stands beside them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from command_line import ricordo
from desks import CONTEXT
from hand_made_roots import begun
from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.agent.tools.memory import memory_search_tool, recall_tool
from ricordo.errors import StorageError
from ricordo.guard import parse_fence
from ricordo.messages import JsonValue, Text, Tokens, estimate_text
from ricordo.runtime import Dependencies, open_workspace
from ricordo.search.index import WorkspaceIndex
from ricordo.search.recall import MAX_NEIGHBOUR_CHARS
from ricordo.search.retrieval import ChunkLocation, ChunkNeighbours

pytestmark = pytest.mark.anyio
SHOP = Scope(user="me", project="shop")
BEGUN = datetime(2026, 11, 1, 9, tzinfo=UTC)
SAID = ("Where is the kayak?", "The kayak is in the shed.", "Thanks, " + "I will look there now. " * 20)
TOPIC = """# Boats

## In the shed

- The kayak is blue.
- The canoe is red.
- The raft is green.

## Sold

- Oars.
"""


def _conversation() -> list[Message]:
    return [
        Message(
            role="assistant" if at == 1 else "user",
            id=f"m{at}",
            time=BEGUN + timedelta(minutes=at),
            parts=(Text(text=text),),
        )
        for at, text in enumerate(SAID)
    ]


def _write_topic(root: Path) -> None:
    topic = place_of(begun(root)) / "workspace" / "memory" / "topics" / "boats.md"
    topic.parent.mkdir(parents=True)
    topic.write_text(TOPIC, encoding="utf-8")


async def test_a_message_comes_with_the_messages_beside_it_shortened_to_one_line(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        await memory.ingest(_conversation(), session="s1")
        (hit,) = [hit for hit in await memory.search("kayak shed", around=True) if hit.entry.content == SAID[1]]
        assert (hit.speaker, hit.date) == ("assistant", BEGUN + timedelta(minutes=1))
        assert hit.before is not None
        assert (hit.before.text, hit.before.speaker, hit.before.line_number) == (SAID[0], "user", hit.line_number - 1)
        assert hit.after is not None
        assert hit.after.text.startswith("Thanks, I will look")
        assert hit.after.text.endswith("…")
        assert len(hit.after.text) <= MAX_NEIGHBOUR_CHARS + 1
        (plain,) = [hit for hit in await memory.search("kayak shed") if hit.entry.content == SAID[1]]
        assert (plain.before, plain.after) == (None, None)


async def test_a_memory_comes_with_its_heading_and_what_stands_under_it_too(tmp_path: Path) -> None:
    _write_topic(tmp_path / "root")
    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        (hit,) = await memory.recall("canoe", limit=1, around=True)
        assert hit.heading == "In the shed"
        assert [each.text for each in (hit.before, hit.after) if each] == ["The kayak is blue.", "The raft is green."]
        (last,) = await memory.recall("oars", limit=1, around=True)
        assert (last.heading, last.before, last.after) == ("Sold", None, None)
        told = await memory.explain("canoe", limit=1, around=True)
        assert told.hits[0].before == hit.before


async def test_a_message_whose_teaching_was_forgotten_is_shown_beside_nothing(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        said = ("We decided to paint the kayak yellow.", "Where do the paddles hang?")
        messages = [
            Message(role="user", id=f"m{at}", time=BEGUN, parts=(Text(text=text),)) for at, text in enumerate(said)
        ]
        learned = (await memory.ingest(messages, session="s1")).entries
        (hit,) = await memory.search("paddles hang", limit=1, around=True)
        assert hit.before is not None
        assert hit.before.text == said[0]
        for entry in learned:
            await memory.forget(entry.id)
        assert learned
        (hit,) = await memory.search("paddles hang", limit=1, around=True)
        assert hit.before is None


async def test_an_index_in_trouble_takes_no_hit_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: WorkspaceIndex, __: list[ChunkLocation]) -> list[ChunkNeighbours | None]:
        raise StorageError("no disk")

    _write_topic(tmp_path / "root")
    monkeypatch.setattr(WorkspaceIndex, "beside", refuse)
    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        (hit,) = await memory.recall("canoe", limit=1, around=True)
        assert (hit.entry.content, hit.before) == ("The canoe is red.", None)


async def test_the_tools_show_what_stands_beside_each_where_they_are_asked_to(tmp_path: Path) -> None:
    _write_topic(tmp_path / "root")
    async with open_workspace(tmp_path / "root", SHOP, Dependencies.create()) as workspace:
        for tool in (recall_tool(workspace.store), memory_search_tool(workspace.store)):
            told = str(await tool({"query": "canoe", "limit": 1, "around": True}, CONTEXT))
            assert parse_fence(told) == (
                "[before: The kayak is blue.]\nThe canoe is red.\n[after: The raft is green.]",
            )
            assert "memory/topics/boats.md:6, under In the shed" in told
            plain = str(await tool({"query": "canoe", "limit": 1}, CONTEXT))
            assert parse_fence(plain) == ("The canoe is red.",)
            both = parse_fence(str(await tool({"query": "canoe raft", "around": True}, CONTEXT)))
            assert both is not None
            assert "[before: The kayak is blue.]\nThe canoe is red." in both
            assert "The raft is green." in both


async def test_what_stands_beside_takes_only_what_the_hits_leave_of_the_budget(tmp_path: Path) -> None:
    _write_topic(tmp_path / "root")
    async with open_workspace(tmp_path / "root", SHOP, Dependencies.create()) as workspace:
        asked: dict[str, JsonValue] = {"query": "canoe", "limit": 1, "around": True}
        sizes = set()
        for budget in range(40, 130, 3):
            told = str(await recall_tool(workspace.store, budget=Tokens(budget))(asked, CONTEXT))
            assert estimate_text(told) <= budget or "none fits" in told
            if "none fits" not in told:
                assert "The canoe is red." in told
                sizes.add(told.count("[before") + told.count("[after"))
        assert sizes == {0, 2}


def test_the_commands_show_the_heading_and_on_request_what_stands_beside() -> None:
    saved = ricordo("remember", "The paddle is long.", "--json").document
    topic = Path(saved["file"]).parent / "topics" / "boats.md"
    topic.parent.mkdir()
    topic.write_text(TOPIC, encoding="utf-8")
    for command in (["recall"], ["memory", "search"]):
        plain = ricordo(*command, "canoe", "--limit", "1").out
        assert "under In the shed" in plain
        assert "raft" not in plain
        for more in ([], ["--why"]):
            shown = ricordo(*command, "canoe", "--limit", "1", "--around", *more).out
            assert "before: The kayak is blue." in shown
            assert "after: The raft is green." in shown
            (hit,) = ricordo(*command, "canoe", "--limit", "1", "--json", *more).document["hits"]
            assert hit["heading"] == "In the shed"
            assert hit["before"] == {"text": "The kayak is blue.", "speaker": None, "line": 5}
            assert hit["after"]["text"] == "The raft is green."
            assert hit["date"] is None
    (hit,) = ricordo("recall", "paddle", "--json").document["hits"]
    assert (hit["before"], hit["after"], hit["date"]) == (None, None, hit["entry"]["time"])
