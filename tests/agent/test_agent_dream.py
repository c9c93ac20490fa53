"""Consolidation beside an agent: it waits for turns, and no turn waits for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from hand_made_roots import begun
from places import place_of
from ricordo import HarnessAgent, Memory
from ricordo.curation import ConsolidationConfig
from ricordo.curation.config import PREVIEW_MODE
from ricordo.errors import StorageError, StorageFull
from ricordo.events import Event
from ricordo.jobs import Task
from ricordo.messages import JsonValue, Message, Text, ToolSpec
from ricordo.models import OFFLINE, Reply
from ricordo.runtime import Settings
from ricordo.storage.local import LocalFiles
from ricordo.testing import Say, ScriptedModel

pytestmark = pytest.mark.anyio

FACT = "We deploy only from main."


class Consolidating:
    """A model for consolidation only, which hangs until it is let go."""

    name = "consolidating"
    window: int | None = None

    def __init__(self) -> None:
        self.reached, self.go = anyio.Event(), anyio.Event()
        self.asked: list[str] = []
        self.answer = '{"merged": [], "superseded": [], "retired": [], "topics": []}'

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        del tools, schema
        self.asked.append(messages[0].text)
        self.reached.set()
        await self.go.wait()
        return Reply(message=Message(role="assistant", parts=(Text(text=self.answer),)))

    def stream(self, *args: object, **options: object) -> object:
        raise NotImplementedError

    spec = ToolSpec(name="wait", description="Wait.", parameters={"type": "object", "properties": {}})


def given(root: Path, **config: object) -> Settings:
    return replace(settings(root), consolidation=ConsolidationConfig(**config))  # type: ignore[arg-type]


def agent(root: Path, held: Settings, *, session: str = "s", heard: list[Event] | None = None) -> HarnessAgent:
    model = ScriptedModel(lambda request: Say(f"Reply {request.number}."))
    sink = heard.append if heard is not None else None
    return HarnessAgent(
        model, memory=root, scope=SCOPE, session=session, clock=HandClock(), on_event=sink, settings=held
    )


async def dreams(one: HarnessAgent) -> list[Task]:
    return [task for task in await one.tasks.all() if task.type == "dream"]


@pytest.mark.req("AS-CONS-06", "CC-GATES")
@pytest.mark.req("HE-C3-idle", "HE-A5", "HE-T6")
@pytest.mark.req("HE-C3-task")
async def test_a_turn_is_answered_while_a_consolidation_hangs_and_no_step_begins_beside_a_turn(tmp_path: Path) -> None:
    root, model, heard = tmp_path / ".ricordo", Consolidating(), list[Event]()
    async with agent(root, given(root, model=model), heard=heard) as one:
        await one.send(FACT)
        assert await one.flush()
        async with anyio.create_task_group() as group:
            group.start_soon(one.consolidate)
            with anyio.fail_after(20):
                await model.reached.wait()
            (dream,) = await dreams(one)
            assert (dream.type, dream.state) == ("dream", "running")
            began = len(heard)
            with anyio.fail_after(20):
                assert "Reply" in (await one.send("And you?")).message.text
            # the answer is there, and the dream has not ended
            assert not [event for event in heard[began:] if event.stage in {"consolidate", "prune"}]
            model.go.set()
        (dream,) = await dreams(one)
        assert (dream.state, dream.result) == ("completed", "1 kept, 0 merged, 0 superseded")
        assert len(model.asked) == 1
    turns = [number for number, event in enumerate(heard) if event.stage == "turn"]
    steps = [
        number
        for number, event in enumerate(heard)
        if event.status == "started" and event.stage in {"orient", "gather", "consolidate", "prune"}
    ]
    ended = [number for number in turns if heard[number].status == "finished"]
    assert all(not begin < step < end for begin, end in zip(turns[::2], ended, strict=True) for step in steps)
    assert FACT in (place_of(root) / "workspace" / "MEMORY.md").read_text(encoding="utf-8")


@pytest.mark.req("AS-CONS-06")
async def test_taking_in_a_conversation_does_not_wait_for_a_consolidation(tmp_path: Path) -> None:
    root, model, clock = tmp_path / ".ricordo", Consolidating(), HandClock()
    async with Memory.open(root, scope=SCOPE, settings=given(root, model=model), clock=clock) as memory:
        clock.turn(hours=1)
        with anyio.fail_after(20):
            await memory.ingest([Message(role="user", parts=(Text(text=FACT),))], session="s")
            assert [hit.entry.content for hit in await memory.recall("deploy")] == [FACT]
        model.go.set()


@pytest.mark.req("AS-CONS-06", "AS-BUG-14", "HE-C3-idle")
async def test_a_process_that_closes_asks_no_model_and_consolidates_all_the_same(tmp_path: Path) -> None:
    root, model = tmp_path / ".ricordo", Consolidating()
    async with agent(root, given(root, model=model)) as one:
        await one.send(FACT)
    assert model.asked == []
    assert FACT in (place_of(root) / "workspace" / "MEMORY.md").read_text(encoding="utf-8")


@pytest.mark.req("AS-CONS-06", "AS-CONS-03", "FC-CAP")
async def test_a_consolidation_of_the_agent_asks_its_own_model_and_counts_what_it_costs(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    said = '{"merged": [], "superseded": [], "retired": [], "topics": []}'
    model = ScriptedModel(lambda request: Say(said if "MEMORY.md" in str(request.messages[-1].text) else "Fine."))
    held = given(root)
    async with HarnessAgent(model, memory=root, scope=SCOPE, session="s", settings=held) as one:
        await one.send(FACT)
        assert await one.flush()
        done = await one.consolidate()
        assert (done.kept, done.cost.requests, done.note) == (1, 1, "")
    (journal,) = (place_of(root) / "spending").glob("*.jsonl")
    assert '"purpose":"consolidation"' in journal.read_text(encoding="utf-8")


@pytest.mark.req("CC-DREAMCOPY", "HE-O-retention")
async def test_in_preview_mode_the_background_only_proposes(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with agent(root, given(root, model=OFFLINE, mode=PREVIEW_MODE)) as one:
        await one.send(FACT)
    assert not (place_of(root) / "workspace" / "MEMORY.md").exists() or FACT not in (
        place_of(root) / "workspace" / "MEMORY.md"
    ).read_text(encoding="utf-8")
    assert (place_of(root) / "workspace" / "memory" / ".consolidation_proposal").exists()


@pytest.mark.req("CC-DREAMCOPY")
async def test_forgetting_a_memory_takes_the_proposal_that_waits_along(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    held = given(root, model=OFFLINE, mode=PREVIEW_MODE)
    async with agent(root, held) as one:
        await one.send(FACT)
    assert (place_of(root) / "workspace" / "memory" / ".consolidation_proposal").exists()
    # at this hour nothing is maintained, which would propose anew
    async with Memory.open(root, scope=SCOPE, settings=held, clock=HandClock()) as memory:
        saved = await memory.remember("The gate code is on paper.")
        await memory.forget(saved.id)
    assert not (place_of(root) / "workspace" / "memory" / ".consolidation_proposal").exists()


@pytest.mark.req("HE-C3-task", "CC-GATES", "AS-TRIG-04")
@pytest.mark.parametrize(("idle", "count", "dreamt"), [(600.0, 5, False), (0.0, 4, False), (0.0, 5, True)])
async def test_a_dream_that_nobody_asked_for_begins_only_between_sessions_after_five_others(
    tmp_path: Path, idle: float, count: int, *, dreamt: bool
) -> None:
    root = tmp_path / ".ricordo"
    others = place_of(begun(root, tmp_path / "data")) / "workspace" / "agents" / "main" / "sessions"
    others.mkdir(parents=True)
    for number in range(count):
        (others / f"other{number}.log.jsonl").write_text("", encoding="utf-8")
    heard: list[Event] = []
    async with agent(root, given(root, model=OFFLINE, idle_seconds=idle), heard=heard) as one:
        await one.send(FACT)
        assert await one.flush()
        session = one._session
        assert session.workspace
        assert session.workspace.curation
        await session.workspace.curation()
        (dream,) = await dreams(one)
        assert dream.state == "completed"
    told = [event.reason for event in heard if (event.stage, event.status) == ("orient", "finished")]
    assert ("dream" in told) is dreamt
    assert (place_of(root) / "workspace" / "memory" / ".dream_state").exists() is dreamt


@pytest.mark.req("AS-CONS-01", "AS-CONS-03", "AS-CONS-04", "AS-CONS-05", "AS-BUG-17", "AS-CURATED-01", "CC-GATES")
async def test_an_agent_asks_about_news_alone_and_a_lost_cursor_makes_all_of_it_news(tmp_path: Path) -> None:
    root, model = tmp_path / ".ricordo", Consolidating()
    model.go.set()
    folder = place_of(root) / "workspace"

    async def consolidated(*facts: str) -> tuple[int, bytes]:
        async with agent(root, given(root, model=model)) as one:
            assert one.memory is not None
            for fact in facts:
                await one.memory.remember(fact)
            done = await one.consolidate()
        return done.read, (folder / "MEMORY.md").read_bytes()

    first, second = "We deploy only from main.", "The staging server is called Heron."
    read, before = await consolidated(first)
    assert (read, len(model.asked)) == (1, 1)
    assert first in model.asked[0]
    assert "4,000 tokens" in model.asked[0]
    assert "about 16,000 characters" in model.asked[0]
    (ledger,) = (folder / "memory").glob("*.md")
    ledger.touch()
    assert await consolidated() == (0, before)
    assert len(model.asked) == 1, "nothing is new in another process either"
    read, before = await consolidated(second)
    assert (read, len(model.asked)) == (1, 2)
    memory, _, news = model.asked[1].partition('source="ledger"')
    assert first in memory
    assert first not in news.partition("</record>")[0]
    assert second in news
    state = folder / "memory/.consolidation_state"
    for damage in (None, b"{half"):
        assert state.is_file()
        state.unlink()
        if damage is not None:
            state.write_bytes(damage)
        assert await consolidated() == (2, before)
    (folder / "MEMORY.md").write_bytes(before)
    assert await consolidated() == (0, before)


@pytest.mark.req("AS-BUG-15", "AS-BUG-16", "AS-BUG-17", "AS-BUG-19", "AS-CONS-04", "CC-GATES")
async def test_an_agent_takes_in_what_is_saved_meanwhile_and_loses_nothing_to_a_bad_answer_or_a_bad_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, model, heard = tmp_path / ".ricordo", Consolidating(), list[Event]()
    curated = place_of(root) / "workspace" / "MEMORY.md"
    state = curated.parent / "memory" / ".consolidation_state"
    facts = [f"The {name} server is called {name.title()}son." for name in ("build", "mail", "test", "print")]
    async with agent(root, given(root, model=model), heard=heard) as one:
        assert one.memory is not None
        await one.memory.remember(facts[0])
        async with anyio.create_task_group() as group:
            group.start_soon(one.consolidate)
            await model.reached.wait()
            await one.memory.remember(facts[1])
            model.go.set()
        await one.memory.remember(facts[2])
        await one.consolidate()
        assert all(fact in curated.read_text() for fact in facts[:3])

        await one.memory.remember(facts[3])
        before = curated.read_bytes(), state.read_bytes()
        good = model.answer
        for bad in ("", '{"merged": [', "# Memory\n\n- Everything is fine."):
            model.answer = bad
            heard.clear()
            assert (await one.consolidate()).skipped.startswith("rejected: ")
            assert (curated.read_bytes(), state.read_bytes()) == before
            failed = [event.reason for event in heard if (event.stage, event.status) == ("consolidate", "failed")]
            assert [str(reason).startswith("rejected: ") for reason in failed] == [True]
        model.answer = good

        with monkeypatch.context() as patched:
            replace_file = LocalFiles.replace

            async def full(files: LocalFiles, path: str, *rest: Any, **named: Any) -> Any:
                if path.endswith("MEMORY.md"):
                    raise StorageFull
                return await replace_file(files, path, *rest, **named)

            patched.setattr(LocalFiles, "replace", full)
            with pytest.raises(StorageFull):
                await one.consolidate()
        assert (curated.read_bytes(), state.read_bytes()) == before
        assert (await one.consolidate()).read == 1
        assert facts[3] in curated.read_text()

        before = curated.read_bytes(), state.read_bytes()
        await one.memory.remember("The spare server is called Spareson.")
        curated.rename(tmp_path / "aside.md")
        curated.mkdir()
        with pytest.raises(StorageError):
            await one.consolidate()
        assert state.read_bytes() == before[1]
        curated.rmdir()
        assert (await one.consolidate()).read == 5
        assert all(fact in curated.read_text() for fact in facts)
        assert "Spareson" in curated.read_text()
