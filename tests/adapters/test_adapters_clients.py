"""Loops of their own around the SDKs of OpenAI and Anthropic over Ricordo, with a scripted model over the wire."""

from pathlib import Path
from typing import Any

import pytest

from framework_conformance import FrameworkConformance, check_example, is_installed, play, run_page
from ricordo import Scope
from ricordo.errors import InvalidSetting
from ricordo.messages import Message
from ricordo.testing import Call, Calls, LoopbackServer, Say

if not (is_installed("openai") and is_installed("anthropic")):
    pytest.skip("the SDKs are not installed: make test-adapters installs them", allow_module_level=True)

from anthropic import Anthropic
from openai import OpenAI

from own_loop_driver import AnthropicLoop, OpenAILoop, SessionMemory

pytestmark = [pytest.mark.adapters, pytest.mark.anyio]
SCOPE = Scope(project="shop", user="ann")
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


class TestOpenAI(FrameworkConformance):
    """What every adapter withstands."""

    framework = OpenAILoop


class TestAnthropic(FrameworkConformance):
    """What every adapter withstands."""

    framework = AnthropicLoop


def _recorded(memory: SessionMemory) -> list[Message]:
    async def read() -> list[Message]:
        opened = (await memory.conversation.agent()).memory
        assert opened is not None
        return list((await opened.session("s1")).messages)

    return memory.run_blocking(read)


def test_a_blocking_client_of_openai_has_the_memory_and_the_given_one_stays_as_it_was(tmp_path: Path) -> None:
    with LoopbackServer([Say("Hi."), Calls(Call("add", {"a": 1}), text="Adding."), Say("Bye.")]) as server:
        client = OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        with SessionMemory("s1", scope=SCOPE, memory=tmp_path) as memory:
            create: Any = memory.wrap(client).chat.completions.create
            create(model="gpt-5", messages=HELLO)
            again: list[Any] = [{"role": "user", "content": "Again"}]
            streamed = [*create(model="gpt-5", messages=again, stream=True)]
            assert streamed
            assert [each.text for each in _recorded(memory)] == ["Hello", "Hi.", "Again", "Adding."]
            assert _recorded(memory)[-1].tool_calls[0].arguments == '{"a": 1}'
        client.chat.completions.create(model="gpt-5", messages=HELLO)
        assert len(server.requests[-1].messages) == 1


def test_a_blocking_client_of_anthropic_has_the_memory_in_each_kind_of_call(tmp_path: Path) -> None:
    with LoopbackServer([Say("One."), Calls(Call("add", {"a": 1})), Say("Three.")]) as server:
        client = Anthropic(base_url=server.url, api_key="none", max_retries=0)
        with SessionMemory("s1", scope=SCOPE, memory=tmp_path) as memory:
            wrapped = memory.wrap(client)
            fields: dict[str, Any] = {"model": "claude-sonnet-5", "max_tokens": 100}
            passed: list[Any] = [*HELLO]
            passed.append({"role": "assistant", "content": wrapped.messages.create(messages=passed, **fields).content})
            passed.append({"role": "user", "content": "Second"})
            assert [*wrapped.messages.create(messages=passed, stream=True, **fields)]
            (call,) = _recorded(memory)[-1].tool_calls
            done: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "1"}
            new: list[Any] = [{"role": "user", "content": [done]}]
            # only what is new, as a program passes it that keeps no list
            with wrapped.messages.stream(messages=new, **fields) as events:
                assert "".join(events.text_stream) == "Three."
            assert [each.role for each in _recorded(memory)] == [
                "user", "assistant", "user", "assistant", "tool", "assistant",
            ]  # fmt: skip
        assert server.problems == ()


def test_a_conversation_that_the_program_kept_is_recognised_after_a_start(tmp_path: Path) -> None:
    passed: list[Any] = []
    with LoopbackServer([Say("Ahoy."), Say("Ahoy."), Say("Ahoy.")]) as server:
        client = OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        for _ in range(3):
            with SessionMemory("s1", scope=SCOPE, memory=tmp_path) as memory:
                passed += HELLO
                reply = memory.wrap(client).chat.completions.create(model="gpt-5", messages=passed)
                passed.append(reply.choices[0].message)
                assert [each.text for each in _recorded(memory)] == ["Hello", "Ahoy."] * (len(passed) // 2)


def test_a_reply_that_was_not_read_to_its_end_is_not_recorded(tmp_path: Path) -> None:
    with LoopbackServer([Say("One two three four.")]) as server:
        client = OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        with SessionMemory("s1", scope=SCOPE, memory=tmp_path) as memory:
            with memory.wrap(client).chat.completions.create(model="gpt-5", messages=HELLO, stream=True) as events:
                next(iter(events))
            assert [each.text for each in _recorded(memory)] == ["Hello"]


def test_another_client_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="str"):
        SessionMemory("s1", scope=SCOPE).wrap("client")


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    with LoopbackServer(play) as server:
        assert "I was sent" in run_page("own-loop", server.url, tmp_path)
        assert server.problems == ()


def test_the_example_remembers_from_run_to_run(tmp_path: Path) -> None:
    check_example("own_loop", tmp_path)
