"""A topic leads back to what was said: an entry names its session and messages, and these are all that is shown."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from agents_at_work import SCOPE, settings, spoken, system
from command_line import ricordo
from conversation_strategies import said as spoke
from hand_made_roots import begun
from places import place_of
from ricordo import HarnessAgent, Memory, MemoryConfig
from ricordo.context import TurnRecallConfig
from ricordo.storage.local import LocalFiles
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C1-topic", "HE-C1-transcript")]

DECIDED = (
    "We decided to rent the walnut harvester for the orchard from Okonkwo each October, because buying one of our own"
    " would take the whole budget of the year and of the one after it."
)
QUESTION = "Which walnut harvester do we rent for the orchard?"


async def learned(root: Path) -> None:
    """Hold a session of three turns, of which the middle one is learned, and let it go to a topic."""
    begun(root, root.parent / "data")
    given = settings(root, consolidates=True)
    async with HarnessAgent(
        ScriptedModel(lambda request: Say(f"Reply {request.number}.")),
        memory=root, scope=SCOPE, session="one", settings=given,
    ) as agent:  # fmt: skip
        for text in ("Good morning.", DECIDED, "See you."):
            await agent.send(text)
    async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=given) as agent:
        await agent.consolidate()


def topic_of(root: Path) -> Path:
    """Return the only topic file that tells of it."""
    (found,) = [
        path
        for path in (place_of(root) / "workspace" / "memory" / "topics").rglob("*.md")
        if "Okonkwo" in path.read_text("utf-8")
    ]
    return found


@pytest.mark.req("HE-C1-transcript")
async def test_a_topic_leads_to_exactly_what_was_said_and_no_transcript_is_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "shop" / ".ricordo"
    await learned(root)
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        assert await memory.search("harvester"), "the indexer has read what was said"
        said = (await memory.session("one")).messages
    topic = topic_of(root)
    (pointer,) = set(re.findall(r"\[from:: ([^\]]+)\]", topic.read_text("utf-8")))
    assert pointer == f"one#{said[2].id}"
    opened: list[str] = []
    for verb in ("read", "read_from"):
        real = getattr(LocalFiles, verb)

        async def watched(self: LocalFiles, path: str, *rest: int, real: object = real) -> object:
            opened.append(path)
            return await real(self, path, *rest)  # type: ignore[operator]

        monkeypatch.setattr(LocalFiles, verb, watched)
    path = topic.relative_to(place_of(root) / "workspace").as_posix()
    apart = f"one#{said[0].id},{said[2].id}"
    calls: list[ScriptItem] = [
        Call("recall", {"query": "walnut harvester"}),
        Call("memory_get", {"path": path}),
        Call("session_history", {"session_id": pointer}),
        Call("session_history", {"session_id": apart}),
        Say("From Okonkwo."),
    ]
    before: list[str] = []

    def answer(request: RecordedRequest) -> ScriptItem:
        if request.number == 3:
            before.extend(opened)
        return calls[request.number - 1]

    model = ScriptedModel(answer)
    given = replace(settings(root), turn_recall=TurnRecallConfig(seconds=20.0))
    async with HarnessAgent(
        model, memory=MemoryConfig(root=root, hooks=False), scope=SCOPE, session="two", settings=given
    ) as agent:
        await agent.send(QUESTION)
    assert "Okonkwo" in "".join(each.text for each in model.requests[0].messages)
    assert before
    assert not [each for each in before if each.endswith("one.log.jsonl")]
    shown = [text for role, text in spoken(model.requests[-1].messages) if role == "tool"]
    assert "Okonkwo" in shown[0]
    assert pointer in shown[1]
    assert shown[2].count("<past-session-item ") == 1
    assert DECIDED in shown[2]
    assert shown[3].count("<past-session-item ") == 2, "what was said between the two is not shown"
    assert said[0].text in shown[3]
    assert DECIDED in shown[3]
    assert [each for each in opened if each.endswith("one.log.jsonl")]
    for name, held in (
        (pointer, [DECIDED]), (apart, [said[0].text, DECIDED]), ("one", [each.text for each in said])
    ):  # fmt: skip
        done = await run_sync(partial(ricordo, "session", "show", name, "--root", root, "--json"))
        assert [each["text"] for each in done.document["conversation"]] == held
    assert (await run_sync(partial(ricordo, "session", "show", "one#none", "--root", root))).code == 1


@pytest.mark.req("HE-C1-transcript", "HE-C1-topic")
async def test_an_answer_that_rests_on_its_question_points_to_both(tmp_path: Path) -> None:
    root = tmp_path / "shop" / ".ricordo"
    begun(root, root.parent / "data")
    given = settings(root, consolidates=True)
    asked = "Shall we rent the walnut harvester for the orchard from Okonkwo each October and not buy one of our own?"
    agreed = "Yes, since one of our own would take the whole budget of the year and also of the one after it."
    async with HarnessAgent("offline", memory=root, scope=SCOPE, session="one", settings=given) as agent:
        await agent.record([spoke(asked, role="assistant"), spoke(agreed), spoke("See you.")])
        assert await agent.flush()
        await agent.consolidate()
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        told = (await memory.session("one")).messages
    (pointer,) = set(re.findall(r"\[from:: ([^\]]+)\]", topic_of(root).read_text("utf-8")))
    assert pointer == f"one#{told[1].id},{told[0].id}"
    done = await run_sync(partial(ricordo, "session", "show", pointer, "--root", root, "--json"))
    assert [each["text"] for each in done.document["conversation"]] == [asked, agreed]


@pytest.mark.req("HE-C1-topic")
async def test_a_topic_is_not_in_the_prompt_until_it_is_asked_for_or_has_to_do_with_what_is_said(
    tmp_path: Path,
) -> None:
    root = tmp_path / "shop" / ".ricordo"
    await learned(root)
    topic = topic_of(root)
    name = topic.relative_to(place_of(root) / "workspace").as_posix()
    shown = []
    for text in ("Hello.", QUESTION):
        model = ScriptedModel(
            lambda request, path=name: Call("memory_get", {"path": path}) if request.number == 1 else Say("Good.")  # type: ignore[misc]
        )
        async with HarnessAgent(model, memory=root, scope=SCOPE, settings=settings(root)) as agent:
            await agent.send(text)
        shown.append((system(model.requests[0]), spoken(model.requests[1].messages)[-1][1]))
    (without, read), (with_it, _) = shown
    assert "the one after it" not in without
    assert "the one after it" in with_it
    assert "the one after it" in read
    index = [line for line in without.splitlines() if topic.name in line]
    assert index, "the index names the topic and its file"
    assert "topics/" in index[0]
    (title,) = re.findall(r'^name: "?(.*?)"?$', topic.read_text("utf-8"), re.MULTILINE)
    assert title in index[0]
