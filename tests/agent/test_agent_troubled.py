"""A model that misbehaves: the turn says so, what was said stays, and the next turn goes on from it."""

from pathlib import Path

import anyio
import pytest

from agents_at_work import SCOPE, is_valid, said, settings, spoken, transcript
from reached_models import MODELS, load_packages, reach, serving
from ricordo import HarnessAgent
from ricordo.agent import ToolContext, tool
from ricordo.errors import (
    InvalidMessage,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    ReplyInvalid,
    RicordoError,
    StorageError,
)
from ricordo.messages import Message, Text, ToolCall, ToolResult, get_mark
from ricordo.models import ChatModel
from ricordo.testing import (
    Call,
    Calls,
    Empty,
    Fail,
    Garbage,
    HalfStream,
    Hang,
    LoopbackServer,
    Say,
    ScriptedModel,
    ScriptItem,
)

# On trio, the vendors' packages leave the end of their streams to the garbage collector.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic|httpx|httpcore):ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <async_generator:pytest.PytestUnraisableExceptionWarning"),
]

TROUBLES: dict[str, tuple[ScriptItem, type[ModelError]]] = {
    "garbage": (Garbage(), ReplyInvalid),
    "nothing": (Empty(), ReplyInvalid),
    "429": (Fail(429, "SECRETLY too many"), ModelRateLimited),
    "500": (Fail(500, "SECRETLY broken"), ModelUnavailable),
    "half": (HalfStream(2, Say("This reply never comes to its end.")), ModelError),
}


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    load_packages()


def agent(model: ChatModel, root: Path, session: str = "s") -> HarnessAgent:
    return HarnessAgent(model, memory=root, scope=SCOPE, session=session, settings=settings(root))


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_turn_that_failed_over_the_wire_is_followed_by_one_that_works(
    tmp_path: Path, name: str, trouble: str, streamed: bool
) -> None:
    item, error = TROUBLES[trouble]
    root = tmp_path / ".ricordo"
    with serving([Say("Hello."), item, Say("Port 5433.")]) as server:
        async with agent(reach(server, name), root) as one:
            await one.send("Hi.")
            with pytest.raises(error):
                await _sent(one, "We deploy only from main.", streamed=streamed)
            held = spoken(one.window)
        async with agent(reach(server, name), root) as other:
            assert spoken(other.window) == held, "what a failed turn said is taken up by the next process"
            assert str(await other.send("And which port?")) == "Port 5433."
            window = other.window
        sent = server.requests[-1].messages
    assert is_valid(window)
    logged = await transcript(root)
    assert spoken(logged) == spoken(window)
    assert [text for role, text in spoken(logged) if role == "user"] == [
        "Hi.",
        "We deploy only from main.",
        "And which port?",
    ]
    everything = " ".join(text for _, text in spoken([*sent, *window]))
    assert "SECRETLY" not in everything
    assert "Error" not in everything
    cut = [message for message in window if get_mark(message) == "cut"]
    assert len(cut) == (trouble == "half" and streamed)
    assert all("This reply never comes to its end.".startswith(message.text) for message in cut)


async def _sent(one: HarnessAgent, text: str, *, streamed: bool) -> None:
    if not streamed:
        await one.send(text)
        return
    async with one.stream(text) as events:
        async for _ in events:
            pass


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("name", MODELS)
async def test_a_model_that_hangs_is_left_after_its_time(tmp_path: Path, name: str) -> None:
    root = tmp_path / ".ricordo"
    with LoopbackServer([Say("Hello."), Hang(), Say("Here again.")]) as server:
        # what is loaded by the first request would use up the short time before the second one is sent
        await reach(server, name).complete([said("Hello?")])
        async with agent(reach(server, name, timeout=0.3), root) as one:
            with pytest.raises(ModelTimeout):
                await one.send("Are you there?")
            server.release()
        async with agent(reach(server, name), root) as other:
            assert str(await other.send("And now?")) == "Here again."
    said_by_user = [text for role, text in spoken(await transcript(root)) if role == "user"]
    assert said_by_user == ["Are you there?", "And now?"]


@pytest.mark.req("AS-BUG-12")
async def test_what_was_said_in_a_cancelled_turn_is_kept(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Hang(), Say("Good.")])
    async with agent(model, root) as one:
        async with anyio.create_task_group() as group:
            group.start_soon(one.send, "We deploy only from main.")
            await model.wait_for_held()
            group.cancel_scope.cancel()
        assert spoken(one.window) == [("user", "We deploy only from main.")]
        assert spoken(await transcript(root)) == [("user", "We deploy only from main.")]
        assert str(await one.send("Again.")) == "Good."
        assert await one.drain() == 0
        assert one.memory is not None
        assert [entry.content for entry in await one.memory.entries()] == ["We deploy only from main."]


@pytest.mark.req("AS-BUG-12")
async def test_a_stream_that_is_left_keeps_what_was_said_of_the_reply(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Say("One two three four five six seven eight nine."), Say("Yes.")])
    async with agent(model, root) as one:
        async with one.stream("Count.") as events:
            async for _ in events:
                break
            await anyio.sleep(0.05)
        assert str(await one.send("Go on?")) == "Yes."
        assert is_valid(one.window)
    assert next(role for role, _ in spoken(await transcript(root))) == "user"


async def test_a_stream_ends_with_the_turn_it_came_to(tmp_path: Path) -> None:
    async with agent(ScriptedModel([Say("One two."), Fail(500)]), tmp_path / "root") as one:
        async with one.stream("Count.") as events:
            with pytest.raises(RicordoError, match="not ended"):
                _ = events.result
            async for _ in events:
                pass
            assert str(events.result) == "One two."
        async with one.stream("Again.") as events:
            with pytest.raises(ModelUnavailable):
                async for _ in events:
                    pass
            with pytest.raises(ModelUnavailable):
                _ = events.result


async def test_calls_that_a_turn_did_not_live_to_answer_are_answered_by_the_next(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    waiting = anyio.Event()

    @tool
    async def look(context: ToolContext) -> str:
        """Look."""
        del context
        waiting.set()
        await anyio.sleep_forever()
        return ""

    model = ScriptedModel([Calls(Call("look"), Call("look")), Say("Done.")])
    async with HarnessAgent(model, memory=root, scope=SCOPE, session="s", settings=settings(root), tools=[look]) as one:
        async with anyio.create_task_group() as group:
            group.start_soon(one.send, "Look.")
            await waiting.wait()
            group.cancel_scope.cancel()
        assert is_valid(one.window)
        assert str(await one.send("Well?")) == "Done."


async def test_a_conversation_that_was_taken_in_broken_is_sent_as_providers_accept_it(tmp_path: Path) -> None:
    broken = [
        Message(role="tool", parts=(ToolResult(call_id="lost", parts=(Text(text="?"),)),)),
        Message(role="assistant", parts=(ToolCall(id="a", name="look"),)),
        Message(role="user", parts=(Text(text="Meanwhile."),)),
        Message(role="assistant", parts=(Text(text="Hm."), ToolCall(id="b", name="look"))),
        Message(role="user", parts=(Text(text="So?"),)),
        Message(role="tool", parts=(ToolResult(call_id="a", parts=(Text(text="late"),)),)),
        Message(role="tool", parts=(ToolResult(call_id="a", parts=(Text(text="twice"),)),)),
        Message(role="assistant", parts=(Text(text="Well."),)),
    ]
    async with agent(ScriptedModel([Say("Fine.")]), tmp_path / "root") as one:
        await one.record(broken)
        assert str(await one.send("And now?")) == "Fine."
        assert is_valid(one.window)
        assert "twice" not in str(spoken(one.window))
    assert len(await transcript(tmp_path / "root")) == len(broken) + 2


@pytest.mark.parametrize("given", ["", " \n", [{"role": "user", "content": "Hello."}]])
async def test_what_no_provider_would_take_is_refused_before_it_is_recorded(tmp_path: Path, given: object) -> None:
    root = tmp_path / ".ricordo"
    async with agent(ScriptedModel([Say("Here.")]), root) as one:
        with pytest.raises(InvalidMessage):
            await one.send(given)  # type: ignore[call-overload]
        with pytest.raises(InvalidMessage):
            async with one.stream(given):  # type: ignore[arg-type]
                pass
        assert await transcript(root) == ()
        assert str(await one.send("Hello?")) == "Here."


@pytest.mark.req("AS-BUG-12")
async def test_a_turn_that_can_not_be_recorded_says_so_and_asks_nobody(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Say("Hello."), Say("Here.")])
    async with agent(model, root) as one:
        await one.send("Hi.")
        log = next(root.rglob("s.log.jsonl"))
        aside = log.rename(log.with_suffix(".aside"))
        log.mkdir()
        with pytest.raises(StorageError):
            await one.send("And now?")
        assert len(model.requests) == 1
        log.rmdir()
        aside.rename(log)
        assert str(await one.send("And now?")) == "Here."
    assert [text for _, text in spoken(await transcript(root))] == ["Hi.", "Hello.", "And now?", "Here."]
