"""A function as a tool: what it is given, what it gives back, and when it has failed."""

import dataclasses
import enum
import threading

import anyio
import pytest

from ricordo.agent import Tool, ToolContext, tool
from ricordo.errors import StorageFull, ToolFailed
from ricordo.messages import Text
from ricordo.scope import Scope

pytestmark = pytest.mark.anyio
CONTEXT = ToolContext(call_id="c1", scope=Scope(project="shop"), agent="main", session="s1")


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_on_the_loop() -> None:
    @tool
    def plain() -> int:
        return threading.get_ident()

    @tool
    async def asynchronous() -> int:
        return threading.get_ident()

    assert await plain({}, CONTEXT) != threading.get_ident()
    assert await asynchronous({}, CONTEXT) == threading.get_ident()


async def test_a_call_that_does_not_fit_never_reaches_the_function() -> None:
    called: list[int] = []

    @tool(name="count", description="Counts.", timeout=60)
    def anything(by: int = 1) -> int:
        called.append(by)
        return by

    assert (anything.spec.name, anything.spec.description) == ("count", "Counts.")
    for wrong in ({"by": "many"}, {"to": 1}, {"by": 1, "to": 2}):
        with pytest.raises(ToolFailed, match="argument"):
            await anything(wrong, CONTEXT)
    assert called == []
    assert await anything({"by": "3"}, CONTEXT) == 3
    assert await anything({}, CONTEXT) == 1


async def test_the_context_of_the_call_is_given_to_who_asks_and_not_shown() -> None:
    @tool
    def where(context: ToolContext, loud: bool = False) -> str:
        return context.session.upper() if loud else context.session

    assert [*where.spec.parameters["properties"]] == ["loud"]  # type: ignore[misc]
    assert await where({"loud": True}, CONTEXT) == "S1"
    with pytest.raises(ToolFailed, match="no argument `context`"):
        await where({"context": "mine"}, CONTEXT)


async def test_a_call_that_takes_too_long_has_failed() -> None:
    release = threading.Event()

    @tool(timeout=0.05)
    async def forever() -> None:
        await anyio.sleep_forever()

    @tool(timeout=0.05)
    def stuck() -> None:
        release.wait()

    for each in (forever, stuck):
        with pytest.raises(ToolFailed, match=r"did not end within 0\.05 seconds"):
            await each({}, CONTEXT)
    release.set()


async def test_errors_of_ours_are_told_and_others_stay_what_they_are() -> None:
    @tool
    def full() -> None:
        raise StorageFull

    @tool
    async def timed() -> None:
        raise TimeoutError("its own")

    with pytest.raises(ToolFailed, match="disk is full") as failed:
        await full({}, CONTEXT)
    assert isinstance(failed.value.__cause__, StorageFull)
    with pytest.raises(TimeoutError, match="its own"):
        await timed({}, CONTEXT)


async def test_what_a_function_returns_can_be_told_to_a_model() -> None:
    class Colour(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Found:
        colour: Colour
        places: tuple[int, ...]

    part = Text(text="a")
    for value, told in (
        ("text", "text"),
        (b"raw", b"raw"),
        (None, None),
        (Found(Colour.RED, (1, 2)), {"colour": "red", "places": [1, 2]}),
        ({1: {2}}, {"1": [2]}),
        (part, [part]),
        ((part, part), (part, part)),
        ([], []),
        (1 + 2j, "(1+2j)"),
    ):

        def give(value: object = value) -> object:
            return value

        made: Tool = tool(give)
        assert await made({}, CONTEXT) == told
