"""What the model saved by its tool is not learned a second time from the words that were said."""

from pathlib import Path

import pytest

from ricordo import HarnessAgent, Memory, Scope
from ricordo.extraction.known_memory import collect_saved_words
from ricordo.messages import Message, Text, ToolCall, ToolResult

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-JUNK")]
SCOPE = Scope(user="me", project="shop")


def calling(arguments: str, *, is_error: bool = False) -> list[Message]:
    return [
        Message(role="assistant", parts=(ToolCall(id="c1", name="remember", arguments=arguments),)),
        Message(role="tool", parts=(ToolResult(call_id="c1", parts=(Text(text="remembered."),), is_error=is_error),)),
    ]


async def test_what_was_saved_on_request_stands_in_memory_once_and_what_else_was_said_is_learned(
    tmp_path: Path,
) -> None:
    async with HarnessAgent("offline", memory=tmp_path / ".ricordo", scope=SCOPE) as agent:
        await agent.send("Remember that the office closes at six.")
        await agent.send("We deploy only from main.")
        await agent.drain(seconds=30)
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        contents = sorted(entry.content.casefold() for entry in await memory.entries())
    assert contents == ["the office closes at six.", "we deploy only from main."]


@pytest.mark.parametrize("arguments", ["{", "[]", '{"content": 5}', "{}"])
def test_a_call_that_could_save_nothing_hides_nothing(arguments: str) -> None:
    assert collect_saved_words(calling(arguments)) == frozenset()


def test_a_call_that_failed_saved_nothing() -> None:
    given = '{"content": "We deploy only from main."}'
    assert collect_saved_words(calling(given)) != frozenset()
    assert collect_saved_words(calling(given, is_error=True)) == frozenset()
