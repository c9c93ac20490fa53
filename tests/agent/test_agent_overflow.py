"""A request that is too large for the model: made good once, with what compaction leaves, and only where it is on."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, is_valid, said, settings, transcript
from fake_models import call, calling, reply
from places import place_of
from reached_models import load_packages, reach, serving
from ricordo import CompactionConfig, HarnessAgent, ToolResultEvictionConfig, TruncateArgsConfig
from ricordo.agent import AgentLoop, CompactionMiddleware, SessionState, tool
from ricordo.agent.session_state import TurnRunner
from ricordo.clock import SystemClock
from ricordo.context import Compact, DigestSummarizer
from ricordo.errors import ModelError, ModelOverflow
from ricordo.events import Emitter, Event
from ricordo.guard import Redactor
from ricordo.messages import JsonValue, Message, ToolSpec, get_mark, with_ids
from ricordo.models import ChatModel, Reply, ReplyEvent, ReplyFinished, TextDelta
from ricordo.storage.local import LocalFiles
from ricordo.testing import Fail, RecordedRequest, Say, overflow
from ricordo.workspace import AgentState, FileStateStore

pytestmark = [
    pytest.mark.anyio,
    # On trio, the vendors' packages leave the end of their streams to the garbage collector.
    pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic|http):ResourceWarning"),
]

SUMMARY = "## SESSION INTENT\nTalk.\n## SUMMARY\nTalked at length.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
LONG = "some more words to fill a line, " * 60


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


@tool
def wide() -> str:
    """Return very much."""
    return "\n".join(f"line {number} of what was found" for number in range(4_000))


@dataclass
class Narrow:
    """A model whose requests may have so many characters; it plays `replies`, and writes a summary when asked."""

    room: int
    root: Path
    replies: list[Reply] = field(default_factory=lambda: [reply("Fits.")])
    asked: list[tuple[Message, ...]] = field(default_factory=list)
    stored: list[tuple[Message, ...]] = field(default_factory=list)
    refused: list[ModelOverflow] = field(default_factory=list)
    summaries: int = 0
    name: str = "narrow"
    window: int | None = None

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        if not tools:
            self.summaries += 1
            return reply(SUMMARY)
        window = tuple(message for message in messages if message.role != "system")
        self.asked.append(window)
        kept = await FileStateStore(LocalFiles(place_of(self.root)), Redactor(bytes(32))).load("main", "s")
        self.stored.append(kept.state.window)
        if sum(len(str(message.parts)) for message in window) > self.room:
            self.refused.append(ModelOverflow(f"narrow: refused the request number {len(self.asked)}"))
            raise self.refused[-1]
        return self.replies.pop(0)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        answer = await self.complete(messages, tools=tools, schema=schema)
        if answer.message.text:
            yield TextDelta(text=answer.message.text)
        yield ReplyFinished(reply=answer)


def agent(model: ChatModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "tools": [wide]} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


async def answer(one: HarnessAgent, text: str, *, streamed: bool) -> str:
    if not streamed:
        return str(await one.send(text))
    async with one.stream(text) as events:
        heard = [event.text async for event in events if isinstance(event, TextDelta)]
        assert "".join(heard) == str(events.result)
        return str(events.result)


@pytest.mark.req(
    "AS-OVER-01", "AS-OVER-03", "AS-OVER-06", "AS-BUG-08", "AS-BUG-retry-duplicate", "AS-BUG-07", "HE-C3-kinds"
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_an_overflow_is_made_good_by_one_forced_compaction_with_nothing_but_a_configuration(
    tmp_path: Path, streamed: bool
) -> None:
    config = CompactionConfig(keep_messages=4)
    before = replace(config)
    events: list[Event] = []
    model = Narrow(room=30_000, root=tmp_path)
    async with agent(model, tmp_path, compaction=config, on_event=events.append) as one:
        await one.record([said(f"Number {number}. {LONG}") for number in range(30)])
        assert await answer(one, "And now?", streamed=streamed) == "Fits."
        assert is_valid(one.window)
        window = one.window
    forced = [event for event in events if event.stage == "compact" and "overflow" in (event.reason or "")]
    assert [(event.status, event.counts["messages_before"]) for event in forced] == [("finished", 31)]
    assert model.summaries == 1
    assert len(model.asked) == 2
    assert config == before
    # what is asked again is what was kept before: the summary and the tail, and what the user said once
    first, again = model.asked
    assert len(first) == 31
    assert len(again) == 1 + config.keep_messages
    assert get_mark(again[0]) == "summary"
    assert not any(get_mark(message) == "summary" for message in first)
    assert [message.text for message in again].count("And now?") == 1
    assert again[1:] == first[len(first) - len(again) + 1 :]
    assert [message.id for message in model.stored[1]] == [message.id for message in again]
    assert window == (*again, window[-1])
    assert [message.text for message in await transcript(tmp_path)].count("And now?") == 1


@pytest.mark.req("AS-OVER-02", "AS-COMPACT-14", "HE-C3-kinds")
@pytest.mark.parametrize(
    ("truncate", "streamed"), [(None, False), (TruncateArgsConfig(), True)], ids=["whole", "clipped and streamed"]
)
async def test_without_a_configuration_an_overflow_is_raised_as_it_is(
    tmp_path: Path, truncate: TruncateArgsConfig | None, streamed: bool
) -> None:
    model = Narrow(room=30_000, root=tmp_path)
    async with agent(model, tmp_path, truncate_args=truncate) as one:
        await one.record([said(f"Number {number}. {LONG}") for number in range(30)])
        with pytest.raises(ModelOverflow) as raised:
            await answer(one, "And now?", streamed=streamed)
    assert raised.value is model.refused[0]
    assert (len(model.asked), model.summaries) == (1, 0)


@pytest.mark.req("AS-OVER-05", "AS-OVER-01", "AS-OVER-03", "AS-BUG-08")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_second_overflow_is_raised_with_what_the_provider_said_as_its_cause(
    tmp_path: Path, streamed: bool
) -> None:
    refusals = [overflow("openai-chat", window=8_192, size=size) for size in (9_000, 8_500, 8_400)]
    with serving(refusals) as server:
        config = CompactionConfig(model="offline")
        async with agent(reach(server, "openai-chat:gpt-4o"), tmp_path, compaction=config) as one:
            await one.record([said(f"Number {number}. {LONG}") for number in range(30)])
            with pytest.raises(ModelOverflow) as raised:
                await answer(one, "And now?", streamed=streamed)
        assert len(server.requests) == 2
    assert raised.value.size == 8_500
    causes: list[BaseException] = [raised.value]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    assert "resulted in 8500 tokens" in str(causes[1])
    assert type(causes[1]).__module__.split(".")[0] in {"openai", "pydantic_ai"}


@pytest.mark.req("AS-BUG-06", "AS-OVER-03", "AS-OVER-01")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("earlier", "config"),
    [
        (0, CompactionConfig()),
        (1, CompactionConfig.dynamic()),
        (1, CompactionConfig(trigger_messages=0, trigger_tokens=0)),
        (17, CompactionConfig()),
    ],
    ids=["alone", "dynamic", "on demand", "after seventeen"],
)
async def test_an_overflow_by_one_giant_result_is_made_good_in_a_short_conversation(
    tmp_path: Path, earlier: int, config: CompactionConfig, streamed: bool
) -> None:
    model = Narrow(room=30_000, root=tmp_path, replies=[calling(call("wide")), reply("Found.")])
    async with agent(model, tmp_path, compaction=config) as one:
        if earlier:
            await one.record([said(f"Number {number}.") for number in range(earlier)])
        assert await answer(one, "Look.", streamed=streamed) == "Found."
        assert is_valid(one.window)
    assert len(model.asked[1]) == earlier + 3 <= 20
    assert len(model.refused) == 1
    assert len(model.asked) == 3


@pytest.mark.req("AS-BUG-10")
async def test_an_overflow_by_one_fresh_result_asks_for_no_summary_where_it_can_be_evicted(tmp_path: Path) -> None:
    model = Narrow(room=30_000, root=tmp_path, replies=[calling(call("wide")), reply("Found.")])
    config, eviction = CompactionConfig(), ToolResultEvictionConfig(max_result_chars=200_000, preview_chars=500)
    async with agent(model, tmp_path, compaction=config, tool_result_eviction=eviction) as one:
        await one.record([said(f"Number {number}. {LONG}") for number in range(10)])
        assert str(await one.send("Look.")) == "Found."
    assert len(model.refused) == 1
    assert model.summaries == 0


FITS = {
    "a code": "Bad: Context_Length_Exceeded.",
    "a context": "the MAXIMUM CONTEXT is 8k",
    "a limit": "Token Limit hit",
}
OTHERS = {
    "a rate limit": Fail(429, "Rate limit reached: token limit of 30,000 per minute, maximum context."),
    "a rate limit by words": Fail(400, "Rate limit reached: token limit of 30,000 TPM."),
    "a bad request": Fail(400, "tools.0.name: String should match pattern."),
    "a failure": Fail(500, "The server had an error while processing your request."),
    "a key": Fail(401, "Incorrect API key provided."),
}


def _narrow(request: RecordedRequest) -> Fail | Say:
    """Refuse what has more than 24,000 characters, as a model with a window of 8,192 tokens does."""
    size = sum(len(str(message.parts)) for message in request.messages)
    return overflow("openai-chat", window=8_192, size=size // 3) if size > 24_000 else Say("Fits.")


@pytest.mark.req("AS-BUG-04", "AS-OVER-03", "AS-OVER-05")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_first_message_larger_than_the_window_is_answered_by_a_provider_that_refuses_it(
    tmp_path: Path, streamed: bool
) -> None:
    giant = "".join(f"paragraph {number} of the long text. " for number in range(3_000))
    with serving(_narrow) as server:
        config = CompactionConfig(model="offline")
        async with agent(reach(server, "openai-chat:gpt-4o"), tmp_path, compaction=config) as one:
            assert await answer(one, giant, streamed=streamed) == "Fits."
            assert await answer(one, "And now?", streamed=streamed) == "Fits."
            assert [message.role for message in one.window] == ["user", "assistant"] * 2
        assert len(server.requests) == 3
    kept = await transcript(tmp_path)
    assert [message.text for message in kept if message.role == "user"] == [giant, "And now?"]


async def _answered(script: list[Fail | Say]) -> tuple[str, list[Event], int]:
    """Return what came of a conversation with a model that plays `script`: the reply or the error's type."""
    events: list[Event] = []
    compact = Compact(CompactionConfig(), DigestSummarizer())
    with serving(script) as server:
        step = CompactionMiddleware([compact], retries=1, emitter=Emitter(SystemClock(), (events.append,)))
        window = tuple(with_ids([said(f"Number {number}. {LONG}") for number in range(30)], session="s"))
        keeper = SessionState(AgentState(agent="main", session="s", window=window))
        model = reach(server, "openai-chat:gpt-4o")
        harness = AgentLoop(model, steps=[step, keeper.observe_request], record=keeper.record)
        going = TurnRunner(scope=SCOPE, run=harness.run, session_state=keeper)
        try:
            answer = str(await going.send([said("And now?")]))
        except ModelError as error:
            answer = type(error).__name__
        return answer, events, len(server.requests)


@pytest.mark.req("AS-OVER-04", "AS-BUG-07")
@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("words", FITS)
async def test_each_documented_phrase_in_any_case_is_an_overflow_and_made_good(words: str, status: int) -> None:
    answer, events, requests = await _answered([Fail(status, FITS[words]), Say("Fits.")])
    assert (answer, requests) == ("Fits.", 2)
    forced = [event for event in events if event.stage == "overflow" and event.status == "finished"]
    assert [event.counts["messages_before"] for event in forced] == [31]
    assert forced[0].counts["tokens_after"] <= forced[0].counts["target"]


@pytest.mark.req("AS-OVER-04", "AS-BUG-07")
@pytest.mark.parametrize("case", OTHERS)
async def test_what_is_no_overflow_is_raised_without_a_compaction(case: str) -> None:
    answer, events, requests = await _answered([OTHERS[case]])
    assert answer not in {"ModelOverflow", "Fits."}
    assert answer.startswith("Model")
    assert requests == 1
    assert {event.stage for event in events} == {"compact"}
    assert {event.status for event in events} == {"started", "skipped"}
