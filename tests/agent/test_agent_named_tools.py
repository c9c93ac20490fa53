"""What a window names can be opened by a tool that is there, whatever is on and whatever a program's own tools are."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from ricordo import CompactionConfig, HarnessAgent, ToolResultEvictionConfig
from ricordo.agent import Tool, ToolContext, tool
from ricordo.context import ClearResultsConfig, DedupeReadsConfig
from ricordo.errors import InvalidSetting
from ricordo.messages import JsonValue, Message
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

OURS = re.compile(
    r"`((?:expand|recall|remember|forget|spawn|shell|(?:read|grep|memory|session|task|plan|todo)_[a-z]+))`"
)
HANDLES = re.compile(r"`?expand`? with `?((?:c[0-9a-f]{10})|(?:m:[0-9a-z]{26}))")
MORE_HANDLES = re.compile(r" and `(c[0-9a-f]{10})`")
PATHS = re.compile(r"(?<![\w./])/(?:agents|large_tool_results|memory|plans|sessions)/[\w./-]*\w")


@tool
def wide(number: int = 0) -> str:
    """Return much."""
    return f"result {number}\n" + "a line of what was found\n" * 90


@tool(name="read_file")
def own_reader(path: str) -> str:
    """Read something of mine."""
    return f"mine: {path}"


COMPACTION = CompactionConfig(
    trigger_messages=0, trigger_tokens=1_500, keep_tokens=600, model="offline", flush_before_compact=False
)
EVICTION = ToolResultEvictionConfig(max_result_chars=500, preview_chars=50)
CLEARING = ClearResultsConfig(trigger_tokens=500, keep_results=1, min_tokens=50)


def chosen(on: str, own: Sequence[Tool] = ()) -> dict[str, object]:
    """Return the arguments that switch on what the letters say."""
    return {
        "session_tools": "s" in on,
        "file_tools": "f" in on,
        "memory_tools": "m" in on,
        "planning": "p" in on,
        "tools": [wide, *own],
        **({"compaction": COMPACTION} if "c" in on else {}),
        **({"tool_result_eviction": EVICTION} if "e" in on else {}),
        **({"clear_results": CLEARING} if "r" in on else {}),
        **({"dedupe_reads": DedupeReadsConfig(tool_names=frozenset({"wide"}), min_tokens=1)} if "d" in on else {}),
    }


def agent(root: Path, options: Mapping[str, object]) -> HarnessAgent:
    given: dict[str, Any] = {"session": "s", "settings": settings(root), **options}
    return HarnessAgent(ScriptedModel(_working), **agent_arguments(workspace=root, scope=SCOPE, **given))


def _working(request: RecordedRequest) -> ScriptItem:
    """Call the wide tool twice in each turn, then answer with much."""
    said = [message.role for message in request.messages]
    done = len(said) - max(at for at, role in enumerate(said) if role == "user") - 1
    reminded = 0 if "system-reminder" not in str(request.messages[-1].parts) else 1
    if request.messages[-1].tool_results and done >= 3:
        return Say("It is all done, as the plan says. " * 20)
    return Call("wide", {"number": done // 2 + reminded})


def texts(messages: Sequence[Message]) -> str:
    said = [text for each in messages for text in (each.text, *(result.text for result in each.tool_results))]
    return "\n".join(said)


async def opened(tools: Mapping[str, Tool], name: str, arguments: dict[str, JsonValue]) -> str:
    context = ToolContext(call_id="c", scope=SCOPE, agent="main", session="s")
    return str(await tools[name](arguments, context))


async def check(one: HarnessAgent) -> set[str]:
    """Open all that the next request names; return the kinds of what it names."""
    tools = {each.spec.name: each for each in one._session.tools}
    request = await one.preview_request()
    named = texts(request.messages)
    assert {*OURS.findall(named)} <= {*tools}
    handles = {*HANDLES.findall(named), *MORE_HANDLES.findall(named)}
    for handle in handles:
        assert "record" in await opened(tools, "expand", {"handle": handle})
    for path in {*PATHS.findall(named)}:
        reader = "read_result" if own_reader in tools.values() else "read_file"
        assert "result" in await opened(tools, reader, {"path": path})
    kinds = {"c" for each in handles if each.startswith("c")} | {"m" for each in handles if each.startswith("m:")}
    return kinds | ({"path"} if PATHS.findall(named) else set())


@pytest.mark.req("AS-EVICT-06", "AS-TRUNC-05", "AS-BUG-11", "AS-EVICT-02")
@pytest.mark.parametrize(
    ("on", "own", "names"),
    [
        ("", (), set()),
        ("c", (), {"c"}),
        ("e", (), {"path"}),
        ("e", (own_reader,), {"path"}),
        ("rd", (), {"m"}),
        # whether the window needs a compaction by then depends on what recall brought in time
        ("sfmpcerd", (), set()),
        ("fpce", (), {"c", "path"}),
        ("mcr", (own_reader,), {"c"}),
    ],
)
async def test_whatever_a_window_names_can_be_opened(
    tmp_path: Path, on: str, own: Sequence[Tool], names: set[str]
) -> None:
    async with agent(tmp_path, chosen(on, own)) as one:
        for number in range(3):
            await one.send(f"Do step {number} of the plan, please, and say what came of it.")
        assert await check(one) >= names
        await one.compact()
        assert "c" in await check(one)
    # another program goes on with the session, with tools of its own, or with none
    for then, others in (("", ()), ("m", (own_reader,)), ("f", ())):
        async with agent(tmp_path, chosen(then, others)) as one:
            assert "c" in await check(one)


@pytest.mark.req("AS-EVICT-06")
async def test_a_window_that_names_evicted_results_is_read_by_whoever_goes_on_with_it(tmp_path: Path) -> None:
    async with agent(tmp_path, chosen("e")) as one:
        await one.send("Look.")
    for on, own in (("", ()), ("", (own_reader,)), ("f", ()), ("sm", (own_reader,))):
        async with agent(tmp_path, chosen(on, own)) as one:
            assert "path" in await check(one)


@pytest.mark.req("AS-CTX-01")
async def test_memory_names_no_tool_that_is_not_there(tmp_path: Path) -> None:
    async with agent(tmp_path, chosen("m")) as one:
        assert one.memory
        await one.memory.remember("We deploy only from main.")
    for on in ("", "m"):
        async with agent(tmp_path, chosen(on) | {"session": "t"}) as one:
            assert "We deploy only from main." in await one.system_prompt()
            await check(one)


async def test_a_tool_of_a_program_that_is_called_as_ours_is_refused_by_its_name(tmp_path: Path) -> None:
    @tool
    def expand(what: str) -> str:
        """Expand something of mine."""
        return what

    with pytest.raises(InvalidSetting, match="Two tools are called expand"):
        async with agent(tmp_path, chosen("", (expand,))):
            pass
