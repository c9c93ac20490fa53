"""A failure that may pass is asked again with growing pauses; nothing that was given is given twice."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from ricordo.errors import (
    InvalidSetting,
    ModelError,
    ModelKeyMissing,
    ModelNotFound,
    ModelOverflow,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    ReplyInvalid,
)
from ricordo.messages import JsonValue, Message, Text, ToolSpec
from ricordo.models import Reply, ReplyEvent, ReplyFinished, RetryConfig, TextDelta
from ricordo.models.wrappers import RetryingModel, RetryState, TimedModel, next_delay

PASSING = (ModelRateLimited, ModelUnavailable, ModelTimeout)
LASTING = (ModelOverflow, ModelRefused, ModelKeyMissing, ModelNotFound)
REPLY = Reply(message=Message(role="assistant", parts=(Text(text="Yes."),)))
REPLY_EVENT = ReplyFinished(reply=REPLY)


@dataclass
class Staged:
    """A model that fails as it is told, one entry a call: an error, or events with an error among them."""

    stages: list[ModelError | list[ReplyEvent | ModelError] | float]
    calls: int = 0
    closed: int = 0
    name: str = "staged:model"
    window: int | None = 8_192

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        stage = self._next()
        if isinstance(stage, ModelError):
            raise stage
        if isinstance(stage, float):
            await anyio.sleep(stage)
        return REPLY

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        stage = self._next()
        try:
            if isinstance(stage, float):
                yield TextDelta(text="Y")
                await anyio.sleep(stage)
                return
            for event in stage if isinstance(stage, list) else [stage]:
                if isinstance(event, ModelError):
                    raise event
                yield event
        finally:
            self.closed += 1

    def _next(self) -> ModelError | list[ReplyEvent | ModelError] | float:
        self.calls += 1
        return self.stages.pop(0)


@dataclass
class Pauses:
    """A sleep that only notes how long it was asked to last."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def retrying(model: Staged, pauses: Pauses, *, config: RetryConfig | None = None) -> RetryingModel:
    return RetryingModel(model=model, config=config or RetryConfig(jitter=0.0), sleep=pauses, random=lambda: 0.5)


async def drain(events: AsyncIterator[ReplyEvent], given: list[ReplyEvent]) -> None:
    """Read `events` to the end; those that came before a failure are in `given`."""
    async for event in events:
        given.append(event)  # noqa: PERF401  what came before a failure is kept


async def close(events: AsyncIterator[ReplyEvent]) -> None:
    """Close a stream that was not read to its end."""
    closing = getattr(events, "aclose", None)
    assert closing is not None
    await closing()


@pytest.mark.anyio
@pytest.mark.parametrize("error", PASSING)
async def test_what_may_pass_is_tried_three_times_with_doubling_pauses(error: type[ModelError]) -> None:
    model, pauses = Staged([error(), error(), [REPLY_EVENT]]), Pauses()
    assert await retrying(model, pauses).complete(()) is REPLY
    assert pauses.seconds == [1.0, 2.0]
    assert model.calls == 3


@pytest.mark.anyio
async def test_whoever_waits_is_told_why_and_how_long(caplog: pytest.LogCaptureFixture) -> None:
    model = Staged([ModelUnavailable("acme:one can't answer now (503)."), ReplyInvalid("Empty."), [REPLY_EVENT]])
    await retrying(model, Pauses()).complete(())
    assert [(record.name, record.levelname, record.message) for record in caplog.records] == [
        ("ricordo.models", "WARNING", "Asking again in 1.0 s: acme:one can't answer now (503)."),
        ("ricordo.models", "WARNING", "Asking again at once: Empty."),
    ]
    caplog.clear()
    with pytest.raises(ModelRefused):
        await retrying(Staged([ModelRefused("No.")]), Pauses()).complete(())
    assert caplog.records == []


@pytest.mark.anyio
async def test_the_last_failure_is_raised_after_the_last_try() -> None:
    errors = [ModelUnavailable(f"failure {number}") for number in (1, 2, 3)]
    model = Staged([*errors])
    with pytest.raises(ModelUnavailable) as raised:
        await retrying(model, Pauses()).complete(())
    assert raised.value is errors[2]


@pytest.mark.anyio
@pytest.mark.parametrize("error", LASTING)
async def test_what_would_fail_again_is_not_tried_again(error: type[ModelError]) -> None:
    model, pauses = Staged([error()]), Pauses()
    with pytest.raises(error):
        await retrying(model, pauses).complete(())
    assert (model.calls, pauses.seconds) == (1, [])


@pytest.mark.anyio
async def test_the_pause_that_the_provider_asks_for_is_kept() -> None:
    model, pauses = Staged([ModelRateLimited(retry_after=17.0), [REPLY_EVENT]]), Pauses()
    await retrying(model, pauses).complete(())
    assert pauses.seconds == [17.0]


@pytest.mark.anyio
async def test_a_provider_that_asks_for_too_long_a_pause_is_not_asked_again() -> None:
    model, pauses = Staged([ModelRateLimited(retry_after=3_600.0)]), Pauses()
    with pytest.raises(ModelRateLimited):
        await retrying(model, pauses).complete(())
    assert pauses.seconds == []


@pytest.mark.anyio
async def test_a_stream_is_started_again_only_before_its_first_event() -> None:
    model, pauses = Staged([ModelUnavailable(), [TextDelta(text="Y"), ModelUnavailable("broke")]]), Pauses()
    given: list[ReplyEvent] = []
    with pytest.raises(ModelUnavailable, match="broke"):
        await drain(retrying(model, pauses).stream(()), given)
    assert given == [TextDelta(text="Y")]
    assert (model.calls, model.closed) == (2, 2)


@pytest.mark.anyio
async def test_a_stream_that_is_left_early_is_closed() -> None:
    model = Staged([[TextDelta(text="Y"), REPLY_EVENT]])
    events = retrying(model, Pauses()).stream(())
    assert await anext(events) == TextDelta(text="Y")
    await close(events)
    assert model.closed == 1


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_cancellation_goes_through_and_is_not_tried_again(stream: bool) -> None:
    model = Staged([60.0])
    timed = TimedModel(model=retrying(model, Pauses()), seconds=60.0, stall_seconds=60.0)
    async with anyio.create_task_group() as group:

        async def ask() -> None:
            await (drain(timed.stream(()), []) if stream else timed.complete(()))

        group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert model.calls == 1


@pytest.mark.anyio
async def test_a_reply_that_does_not_come_is_a_timeout() -> None:
    with pytest.raises(ModelTimeout, match="within"):
        await TimedModel(model=Staged([60.0]), seconds=0.02, stall_seconds=60.0).complete(())


@pytest.mark.anyio
@pytest.mark.parametrize(("seconds", "stall"), [(60.0, 0.02), (0.02, 60.0)], ids=["stall", "total"])
async def test_a_stream_that_stops_is_a_timeout_and_is_closed(seconds: float, stall: float) -> None:
    model = Staged([60.0])
    given: list[ReplyEvent] = []
    with pytest.raises(ModelTimeout):
        await drain(TimedModel(model=model, seconds=seconds, stall_seconds=stall).stream(()), given)
    assert given == [TextDelta(text="Y")]
    assert model.closed == 1


@pytest.mark.anyio
async def test_a_reader_who_takes_a_pause_is_not_timed_out() -> None:
    model = Staged([[TextDelta(text="Y"), REPLY_EVENT]])
    events = TimedModel(model=model, seconds=0.2, stall_seconds=0.2).stream(())
    await anext(events)
    await anyio.sleep(0.3)
    assert await anext(events) == REPLY_EVENT
    await close(events)


def test_wrappers_have_the_name_and_window_of_the_model_inside() -> None:
    model = Staged([])
    wrapped = TimedModel(model=retrying(model, Pauses()), seconds=1.0, stall_seconds=1.0)
    assert (wrapped.name, wrapped.window) == ("staged:model", 8_192)


def test_an_invalid_reply_is_asked_for_once_more_at_once() -> None:
    config, error = RetryConfig(attempts=9), ReplyInvalid()
    first = RetryState().add_failure(error)
    assert next_delay(config, error, first, chance=0.0) == 0.0
    assert next_delay(config, error, first.add_failure(error), chance=0.0) is None
    assert next_delay(config, error, first.add_failure(ModelUnavailable()), chance=0.0) == 0.0
    assert next_delay(config, ReplyInvalid(said="In my own words."), first, chance=0.0) is None


@examples(
    attempts=st.integers(1, 50),
    longest=st.floats(0, 100),
    total=st.floats(0, 300),
    jitter=st.floats(0, 1),
    asked=st.lists(st.one_of(st.none(), st.floats(0, 1_000)), min_size=50, max_size=50),
    chances=st.lists(st.floats(0, 1), min_size=50, max_size=50),
)
def test_pauses_stay_within_their_bounds_and_come_to_an_end(
    attempts: int,
    longest: float,
    total: float,
    jitter: float,
    asked: list[float | None],
    chances: list[float],
) -> None:
    config = RetryConfig(attempts=attempts, longest_delay=longest, total_delay=total, jitter=jitter)
    tries = RetryState()
    for seconds, chance in zip(asked, chances, strict=True):
        error = ModelRateLimited(retry_after=seconds)
        tries = tries.add_failure(error)
        delay = next_delay(config, error, tries, chance=chance)
        if delay is None:
            break
        assert (seconds or 0.0) <= delay <= longest
        tries = tries.add_pause(delay)
        assert tries.waited <= total + 1e-9
    assert tries.failures <= attempts


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"first_delay": -1.0}, {"longest_delay": -1.0}, {"total_delay": -1.0}, {"jitter": 1.5}]
)
def test_a_config_that_can_not_be_carried_out_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidSetting):
        RetryConfig(**wrong)  # type: ignore[arg-type]


def test_a_timeout_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        TimedModel(model=Staged([]), seconds=0.0, stall_seconds=1.0)
