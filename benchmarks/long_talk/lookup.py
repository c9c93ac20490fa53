"""Looking facts up where a conversation is held: in the window, in memory, in the transcript, behind handles."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from long_talk.facts import Fact
from long_talk.ways import USER
from ricordo import HarnessAgent, Scope
from ricordo.agent.tools import ToolContext
from ricordo.agent.tools.sessions import session_tools
from ricordo.errors import CompactionNotFound, MessageNotFound
from ricordo.messages import Message, Text, ToolCall, ToolResult
from ricordo.storage.local import LocalFiles
from ricordo.workspace.layout import DEFAULT_AGENT, WORKSPACE

__all__ = ["Found", "looked_up", "told"]

_HITS = 5
_HANDLE = re.compile(r"\b(?:c[0-9a-f]{10}|m:[0-9a-z]+)\b|/large_tool_results/[^\s,]+\.txt\b")


@dataclass(frozen=True, kw_only=True)
class Found:
    """Where the answer to a fact stands."""

    fact: Fact
    window: bool
    memory: bool
    search: bool
    expand: bool


async def looked_up(agent: HarnessAgent, root: Path, facts: Sequence[Fact]) -> list[Found]:
    """Return where each of `facts` can be read, by its exact answer."""
    window = "\n".join(map(told, agent.window))
    opened = await _opened(agent, root, window, {fact.answer for fact in facts})
    return [
        Found(
            fact=fact,
            window=fact.answer in window,
            memory=await _in_memory(agent, fact),
            search=fact.answer in await _searched(root, fact.topic),
            expand=fact.answer in opened,
        )
        for fact in facts
    ]


def told(message: Message) -> str:
    """Return all that a message says, calls and results too."""
    return "\n".join(_texts(message))


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text():
                yield part.text
            case ToolCall():
                yield part.arguments
            case ToolResult():
                yield part.text


async def _in_memory(agent: HarnessAgent, fact: Fact) -> bool:
    assert agent.memory is not None
    return any(fact.answer in hit.entry.content for hit in await agent.memory.search(fact.question, limit=_HITS))


async def _searched(root: Path, phrase: str) -> str:
    (search,) = (
        tool
        for tool in session_tools(LocalFiles(root), agent=DEFAULT_AGENT, user=USER)
        if tool.spec.name == "session_search"
    )
    context = ToolContext(call_id="c", scope=Scope(user=USER, project="shop"), agent=DEFAULT_AGENT, session="s")
    return str(await search({"query": phrase}, context))


async def _opened(agent: HarnessAgent, root: Path, window: str, wanted: set[str]) -> set[str]:
    """Return the answers that stand behind the handles of the window, and behind those that stand there in turn."""
    found: set[str] = set()
    ahead = list(dict.fromkeys(_HANDLE.findall(window)))
    seen = set(ahead)
    while ahead and found != wanted:
        text = await _behind(agent, root, ahead.pop(0))
        found |= {answer for answer in wanted if answer in text}
        more = [handle for handle in dict.fromkeys(_HANDLE.findall(text)) if handle not in seen]
        seen.update(more)
        ahead += more
    return found


async def _behind(agent: HarnessAgent, root: Path, handle: str) -> str:
    """Return what `expand` opens, or the file that an evicted result is in."""
    if handle.startswith("/"):
        return (await LocalFiles(root).read(WORKSPACE + handle)).data.decode()
    try:
        return "\n".join(map(told, await agent.compactions.expand(handle)))
    except (CompactionNotFound, MessageNotFound):
        return ""
