"""What a summary's request learns in the same breath: taken before, accepted or released after, never both."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import anyio
import pytest

from conversation_strategies import said
from ricordo.context import Compact, CompactionConfig, CompactionSummary, ExtractionLease, Reduction, Window
from ricordo.errors import ModelUnavailable, StorageFull
from ricordo.extraction import Finding
from ricordo.messages import Message, Text, ToolCall, ToolResult, get_mark, with_ids, with_mark, with_pin

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C4", "DF-C70")]

BODY = "## SESSION INTENT\nPort the shop.\n## SUMMARY\nDone.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
LESSON = Finding(content="The shop runs on PostgreSQL.", kind="fact", confidence=0.9, message_ids=("m1",), quote="own")


@dataclass
class Learns:
    """A handover and what it takes; notes every call, and raises where it is told to."""

    raises: dict[str, BaseException] = field(default_factory=dict)
    busy: bool = False
    calls: list[str] = field(default_factory=list)
    said: list[Sequence[Message]] = field(default_factory=list)
    lessons: list[Sequence[Finding]] = field(default_factory=list)
    pending_ids: Collection[str] = ("m1", "m2")

    async def __call__(self, messages: Sequence[Message]) -> ExtractionLease | None:
        self._note("take")
        self.said.append(messages)
        return None if self.busy else self

    async def accept(self, lessons: Sequence[Finding]) -> None:
        self._note("accept")
        self.lessons.append(lessons)

    async def release(self) -> None:
        self._note("release")
        await anyio.lowlevel.checkpoint()
        self.calls.append("released")

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call in self.raises:
            raise self.raises[call]


@dataclass
class Writes:
    """Writes `found`, or raises it, or does what it does; notes what it was asked."""

    found: CompactionSummary | BaseException | Callable[[], Awaitable[CompactionSummary]]
    told: list[Sequence[Message]] = field(default_factory=list)
    pending: list[Collection[str]] = field(default_factory=list)
    focus: str = ""
    most: int | None = None

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> CompactionSummary:
        self.told.append(messages)
        self.pending.append(pending)
        self.focus, self.most = focus, most_tokens
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found if isinstance(self.found, CompactionSummary) else await self.found()


def talk(count: int = 60) -> tuple[Message, ...]:
    return tuple(said(f"Message {n} says something of its own, in a sentence.", id=f"m{n}") for n in range(count))


async def reduced(
    learns: Learns,
    writes: Writes,
    config: CompactionConfig | None = None,
    messages: Sequence[Message] | None = None,
    forced: object = "",
    **values: object,
) -> Reduction:
    compact = Compact(config or CompactionConfig(), writes, handover=learns, **values)  # type: ignore[arg-type]
    return await compact.reduce(
        Window(messages=tuple(messages or talk()), agent="main", session="s1", focus="the port", forced=str(forced))
    )


@pytest.mark.req("AS-COMPACT-05")
@pytest.mark.parametrize(
    ("found", "calls", "note"),
    [
        (CompactionSummary(text=BODY, lessons=(LESSON,)), ["take", "accept"], ""),
        (CompactionSummary(text=BODY, lessons=()), ["take", "accept"], ""),
        (CompactionSummary(text=BODY), ["take", "release", "released"], ""),
        (CompactionSummary(text=" ", lessons=(LESSON,)), ["take", "accept"], "digest"),
        (CompactionSummary(text="far too long " * 4_000, lessons=(LESSON,)), ["take", "accept"], "digest"),
        (CompactionSummary(text=""), ["take", "release", "released"], "digest"),
        (ModelUnavailable(), ["take", "release", "released"], "digest"),
    ],
    ids=["lessons", "none to learn", "not usable", "no summary", "too long", "nothing", "an error"],
)
async def test_lessons_are_accepted_whatever_the_summary_and_what_brings_none_is_released(
    found: CompactionSummary | Exception, calls: list[str], note: str
) -> None:
    learns, writes = Learns(), Writes(found)
    done = await reduced(learns, writes)
    assert learns.calls == calls
    assert learns.lessons == ([found.lessons] if isinstance(found, CompactionSummary) and "accept" in calls else [])
    assert [message.id for message in learns.said[0]] == [f"m{n}" for n in range(40)]
    assert (writes.pending, writes.focus) == ([("m1", "m2")], "the port")
    assert (done.report.status, len(writes.told)) == ("done", 1)
    assert note in done.report.note


@pytest.mark.req("AS-BUG-01", "CC-PIN")
async def test_what_the_summary_has_to_say_of_itself_is_told_and_its_bound_is_what_it_stands_for() -> None:
    writes = Writes(CompactionSummary(text=BODY, notes=("one part was left out",)))
    done = await reduced(Learns(), writes)
    assert "one part was left out" in done.report.note
    assert writes.most is not None
    assert 300 < writes.most < done.report.tokens_before
    longer = Writes(CompactionSummary(text="word " * (writes.most + 100)))
    assert "not smaller" in (await reduced(Learns(), longer)).report.note


@pytest.mark.req("AS-COMPACT-05", "AS-FLUSH-05", "AS-COMPACT-09")
@pytest.mark.parametrize("combined", [True, False], ids=["combined", "separate"])
async def test_the_prefix_is_handed_on_before_the_request_and_nothing_is_when_that_is_off(combined: bool) -> None:
    order: list[str] = []
    handed: list[Sequence[Message]] = []

    class Ordered(Learns):
        async def __call__(self, messages: Sequence[Message]) -> ExtractionLease | None:
            order.append("taken")
            handed.append(messages)
            return await super().__call__(messages)

    async def put(messages: Sequence[Message]) -> None:
        order.append("put")
        handed.append(messages)

    async def write() -> CompactionSummary:
        order.append("summary")
        return CompactionSummary(text=BODY, lessons=())

    config = CompactionConfig(combined=combined)
    assert config.flush_before_compact
    learns = Ordered()
    talked = [replace(each, role="assistant") if at % 2 else each for at, each in enumerate(talk())]
    talked[3] = with_mark(talked[3], "cut")
    talked[5] = with_mark(talked[5], "notice")
    talked[7] = replace(talked[7], parts=(*talked[7].parts, ToolCall(id="c1", name="look", arguments="{}")))
    talked[8] = replace(talked[8], role="tool", parts=(ToolResult(call_id="c1", parts=(Text(text="Seen."),)),))
    found = await reduced(learns, Writes(write), config, talked, before_summary=put)
    assert order == ["taken" if combined else "put", "summary"]
    assert len(found.dropped) == 40
    assert [tuple(messages) for messages in handed] == [tuple(each for each in found.dropped if each != talked[5])]
    assert learns.calls == (["take", "accept"] if combined else [])
    handed.clear()
    again = await reduced(Ordered(), Writes(write), config, talked, "overflow", before_summary=put)
    assert [tuple(messages) for messages in handed] == [tuple(each for each in again.dropped if each != talked[5])]
    order.clear()
    handed.clear()
    learns, writes = Ordered(), Writes(write)
    off = await reduced(learns, writes, replace(config, flush_before_compact=False), talked, before_summary=put)
    assert (order, handed, learns.calls, writes.pending) == (["summary"], [], [], [()])
    assert off.messages == found.messages


@pytest.mark.req("AS-COMPACT-05", "AS-COMPACT-16")
async def test_where_others_learn_already_nothing_is_learned_here_and_nobody_is_told_twice() -> None:
    put: list[Sequence[Message]] = []

    async def hook(messages: Sequence[Message]) -> None:
        put.append(messages)

    learns, writes = Learns(busy=True), Writes(CompactionSummary(text=BODY, lessons=(LESSON,)))
    assert (await reduced(learns, writes, before_summary=hook)).report.status == "done"
    assert (learns.calls, writes.pending, put) == (["take"], [()], [])


@pytest.mark.req("AS-COMPACT-05")
@pytest.mark.parametrize(
    ("raising", "calls"),
    [
        ("take", ["take"]),
        ("accept", ["take", "accept", "release", "released"]),
        ("release", ["take", "release"]),
    ],
)
async def test_trouble_with_learning_is_a_note_and_the_summary_is_made(raising: str, calls: list[str]) -> None:
    learns = Learns(raises={raising: StorageFull()})
    found = await reduced(learns, Writes(CompactionSummary(text=BODY, lessons=None if raising == "release" else ())))
    assert learns.calls == calls
    assert found.report.status == "done"
    assert "StorageFull" in found.report.note


@pytest.mark.req("AS-COMPACT-06", "AS-COMPACT-09")
async def test_what_was_taken_is_released_when_the_transcript_does_not_hold_it_or_an_error_breaks_off() -> None:
    async def full(_messages: Sequence[Message]) -> None:
        raise StorageFull

    learns, writes = Learns(), Writes(CompactionSummary(text=BODY))
    assert (await reduced(learns, writes, offload=full)).report.status == "failed"
    assert (learns.calls, writes.told) == (["take", "release", "released"], [])
    learns = Learns()
    with pytest.raises(ZeroDivisionError):
        await reduced(learns, Writes(ZeroDivisionError()))
    assert learns.calls == ["take", "release", "released"]


def _bare(error: BaseException) -> BaseException:
    return error


def _caused(error: BaseException) -> BaseException:
    outer = ModelUnavailable("The request failed.")
    outer.__cause__ = error
    return outer


def _in_context(error: BaseException) -> BaseException:
    outer = StorageFull("The disk is full.")
    outer.__context__ = error
    return outer


def _in_a_group(error: BaseException) -> BaseException:
    return BaseExceptionGroup("all of it", [ValueError("another"), _caused(error)])


def _in_a_circle(error: BaseException) -> BaseException:
    first, second = RuntimeError("first"), ModelUnavailable("second")
    first.__cause__, second.__cause__, error.__cause__ = second, error, first
    return first


@pytest.mark.req("AS-CHAIN-03")
@pytest.mark.parametrize("wrap", [_bare, _caused, _in_context, _in_a_group, _in_a_circle])
@pytest.mark.parametrize("where", ["handover", "before_summary", "offload", "summary", "accept"])
async def test_a_cancellation_is_raised_as_one_however_it_is_wrapped_and_what_was_taken_is_released(
    where: str, wrap: Callable[[BaseException], BaseException]
) -> None:
    reached = anyio.Event()

    async def hang() -> None:
        found: BaseException = AssertionError()
        try:
            reached.set()
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as error:
            found = wrap(error)
        # outside of the handler, so that nothing but the wrapping links the two
        raise found

    class Hanging(Learns):
        async def __call__(self, messages: Sequence[Message]) -> ExtractionLease | None:
            if where == "handover":
                await hang()
            return await super().__call__(messages)

        async def accept(self, lessons: Sequence[Finding]) -> None:
            await hang()

    async def hook(_messages: Sequence[Message]) -> None:
        await hang()

    async def write() -> CompactionSummary:
        if where == "summary":
            await hang()
        return CompactionSummary(text=BODY, lessons=())

    learns, writes = Hanging(), Writes(write)
    config = CompactionConfig(combined=where != "before_summary")
    hooks = {where: hook} if where in {"before_summary", "offload"} else {}
    raised: list[BaseException] = []

    async def run() -> None:
        try:
            await reduced(learns, writes, config, None, **hooks)
        except BaseException as error:
            raised.append(error)
            raise

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await reached.wait()
            scope.cancel()
    assert [type(error) for error in raised] == [anyio.get_cancelled_exc_class()]
    assert len(writes.told) == (1 if where in {"summary", "accept"} else 0)
    taken = where in {"offload", "summary", "accept"}
    assert learns.calls == (["take", "release", "released"] if taken else [])


@pytest.mark.req("AS-CHAIN-03")
async def test_a_time_that_ran_out_is_an_error_and_no_cancellation() -> None:
    async def late() -> CompactionSummary:
        try:
            with anyio.fail_after(0):
                await anyio.sleep_forever()
        except TimeoutError as error:
            raise ModelUnavailable from error
        raise AssertionError

    found = await reduced(Learns(), Writes(late))
    assert found.report.status == "done"
    assert "ModelUnavailable" in found.report.note


@pytest.mark.req("AS-COMPACT-05", "CC-PIN")
async def test_what_a_person_pinned_is_told_only_to_be_learned_from_and_instructions_never_are() -> None:
    rule = Message(role="system", parts=(Text(text="Answer in English."),), id="rule")
    pins = (with_pin(said("Never touch production.", id="p1")), with_pin(said("Ask before deleting.", id="p2")))
    messages = (*talk(5), rule, *pins, with_mark(said("Recalled.", id="mem"), "memory"), *talk(60)[5:])
    learns, writes = Learns(pending_ids=("p2",)), Writes(CompactionSummary(text=BODY, lessons=()))
    compact = Compact(CompactionConfig(), writes, handover=learns)
    found = await compact.reduce(Window(messages=messages, agent="main", session="s1"))
    assert {"p1", "p2"} < {message.id for message in learns.said[0]}
    assert not {"rule", "mem"} & {message.id for message in learns.said[0]}
    told = {message.id for message in writes.told[0]}
    assert "p2" in told
    assert not {"rule", "p1"} & told
    assert {"rule", "p1", "p2", "mem"} < {message.id for message in found.dropped}
    assert get_mark(found.messages[0]) == "summary"


@pytest.mark.req("AS-COMPACT-06", "AS-COMPACT-10")
async def test_ids_of_what_goes_make_its_handle_and_where_nothing_keeps_it_the_report_says_so() -> None:
    messages = tuple(with_ids(talk(), session="s1"))
    window = Window(messages=messages, agent="main", session="s1")
    config = CompactionConfig(offload_before_compact=False)
    offloaded: list[Sequence[Message]] = []

    async def offload(messages: Sequence[Message]) -> None:
        offloaded.append(messages)

    kept = await Compact(config, Writes(CompactionSummary(text=BODY)), offload=offload).reduce(window)
    assert (offloaded, kept.report.note) == ([], "")
    assert kept.report.handle in kept.messages[0].text
    lost = await Compact(config, Writes(CompactionSummary(text=BODY)), offload=offload, is_recorded=False).reduce(
        window
    )
    assert (lost.report.status, lost.report.handle, offloaded) == ("done", "", [])
    assert "can't be undone" in lost.report.note
    assert "expand" in kept.messages[0].text
    assert "expand" not in lost.messages[0].text
    held = await Compact(
        CompactionConfig(), Writes(CompactionSummary(text=BODY)), offload=offload, is_recorded=False
    ).reduce(window)
    assert (held.report.handle, held.report.note, len(offloaded)) == (kept.report.handle, "", 1)
