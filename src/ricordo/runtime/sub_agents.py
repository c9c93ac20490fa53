"""Sub-agents at work: a session of its own for each prompt, made from the parent's options, and what it came to.

Invariant: a sub-agent is held by its parent's rules and by its parent's plan mode, and asks the same person.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Literal

from anyio.to_thread import run_sync

from ricordo.clock import Ids
from ricordo.errors import InvalidSetting
from ricordo.harness.offline import OFFLINE
from ricordo.harness.sub_agents import Inherited, RemoteAgent, SubAgent
from ricordo.messages import Message, Text, mark_of
from ricordo.middleware import Ending, Request, Response, Step, TurnResult
from ricordo.models import ModelSettings
from ricordo.models.provider import load_model
from ricordo.runtime.agent_options import AgentOptions, Parentage
from ricordo.runtime.parts import Parts
from ricordo.runtime.reductions import Reductions
from ricordo.runtime.session import Session
from ricordo.runtime.tool_sets import MEMORY_TOOLS, SESSION_TOOLS
from ricordo.state import KeepsStanding
from ricordo.tasks import Progress, Report
from ricordo.tasks.threads import in_thread
from ricordo.tools import Approval, Approve
from ricordo.tools.memory_tools import OPT_IN_TOOLS
from ricordo.tools.task_tools import Worker

__all__ = ["LocalWorker", "RemoteWorker", "loaded", "workers"]

_REDUCTIONS = ("compaction", "tool_result_eviction", "clear_results", "dedupe_reads", "truncate_args")
_LONGEST_SESSION = 80
_TAIL = 8
_PLANNING = "[The agent that asks is only planning: tools that change anything are refused.]"
_STOPPED = "[It was stopped at its limit of requests, before it had come to an end.]"
_CUT_OFF = "[Its answer was cut off before its end.]"
_REFUSED = "[Its model refused to go on.]"
_SPENT = "[It was stopped at its limit of tokens or cost, before it had come to an end.]"
_NOTES: Mapping[Ending, str] = {
    "max_iters": _STOPPED,
    "limit": _SPENT,
    "length": _CUT_OFF,
    "window": _CUT_OFF,
    "refused": _REFUSED,
}


@dataclass(frozen=True, kw_only=True)
class RemoteWorker:
    """Lets an agent elsewhere work."""

    described: RemoteAgent
    type: Literal["local_agent", "remote_agent"] = "remote_agent"

    @property
    def name(self) -> str:
        """What `spawn` calls it."""
        return self.described.name

    @property
    def description(self) -> str:
        """When to use it."""
        return self.described.description

    @property
    def seconds(self) -> float | None:
        """How long it may work."""
        return self.described.seconds

    async def __call__(self, prompt: str, report: Report) -> str:
        """Return its answer. Raises what it raises."""
        return await in_thread(self.described.ask)(prompt, report)


@dataclass(frozen=True, kw_only=True)
class LocalWorker:
    """Lets a sub-agent work in this process; `parent` is described by its options, and by what its session came to.

    `begin` opens a session.
    """

    described: SubAgent
    parent: AgentOptions
    session: str
    keeper: KeepsStanding
    ids: Ids
    begin: Callable[[AgentOptions], Awaitable[Session]]
    type: Literal["local_agent", "remote_agent"] = "local_agent"

    @property
    def name(self) -> str:
        """What `spawn` calls it."""
        return self.described.name

    @property
    def description(self) -> str:
        """When to use it."""
        return self.described.description

    @property
    def seconds(self) -> float | None:
        """How long it may work."""
        return self.described.seconds

    async def __call__(self, prompt: str, report: Report) -> str:
        """Return what it replies to `prompt`, in a new session. Raises: ModelError; StorageError."""
        name = f"{self.session[:_LONGEST_SESSION]}-{self.ids.new()[-_TAIL:]}"
        session = await self.begin(self.options(name, report))
        planning = f"{prompt}\n\n{_PLANNING}" if self.keeper.standing.plan.active else prompt
        result = await session.conversation.send([Message(role="user", parts=(Text(text=planning),))])
        return _told(result)

    def options(self, session: str, report: Report) -> AgentOptions:
        """Return what describes it, in `session`; each of its requests is told to `report`."""
        described, parent = self.described, self.parent
        return replace(
            parent,
            model=parent.model if described.model is None else described.model,
            scope=replace(parent.scope, agent=described.name, session=None),
            session=session,
            instructions=described.instructions,
            memory_tools=described.memory_tools,
            memory_hooks=described.memory_hooks,
            approve=_asking_as(described.name, parent.approve),
            planning=False,
            sub_agents=(),
            max_iters=described.max_iters or parent.max_iters,
            parentage=Parentage(
                standing=lambda: self.keeper.standing, has=self._has, reduced=self._reduced, step=_Watched(report)
            ),
        )

    def _reduced(self, on: Reductions) -> Reductions:
        """Return the parent's reductions with those of its own; strategies that take their place are the parent's."""
        given = {name: getattr(self.described, name) for name in _REDUCTIONS}
        own = {name: value for name, value in given.items() if not isinstance(value, Inherited)}
        return replace(on, **own, strategies=None) if own else on

    def _has(self, tool: str) -> bool:
        """Tell whether it is given this tool of its parent."""
        if self.described.memory_tools and tool in MEMORY_TOOLS:
            return True
        if self.described.tools is not None:
            return tool in self.described.tools
        return tool not in SESSION_TOOLS | MEMORY_TOOLS | {*OPT_IN_TOOLS}


def _asking_as(name: str, approve: Approve | None) -> Approve | None:
    """Return what asks the same person, and says who asks."""
    if approve is None:
        return None

    async def ask(asked: Approval) -> bool:
        return await approve(replace(asked, agent=name))

    return ask


class _Watched:
    """Step middleware that tells how many requests were made, and what was called last."""

    def __init__(self, report: Report) -> None:
        self._report = report

    async def __call__(self, request: Request, step: Step) -> Response:
        response = await step(request)
        called = ", ".join(dict.fromkeys(call.name for call in response.reply.message.tool_calls))
        self._report(Progress(done=request.step, text=called or "answering"))
        return response


def workers(
    described: tuple[SubAgent | RemoteAgent, ...],
    *,
    parent: str,
    known: Callable[[], frozenset[str]],
    local: Callable[[SubAgent], Worker],
) -> dict[str, Worker]:
    """Return who can be let to work for the agent `parent`, by name; `known` are the tools that there are to be given.

    Raises: InvalidSetting for two of one name, for the parent's, and for a tool that there is none of.
    """
    found: dict[str, Worker] = {}
    for each in described:
        if each.name == parent:
            raise InvalidSetting(f"A sub-agent can't be called {parent}, as its parent is: their sessions would mix.")
        if each.name in found:
            raise InvalidSetting(f"Two sub-agents are called {each.name}.")
        if isinstance(each, RemoteAgent):
            found[each.name] = RemoteWorker(described=each)
            continue
        unknown = sorted(set(each.tools or ()) - known())
        if unknown:
            there, named = ", ".join(sorted(known())), ", ".join(unknown)
            raise InvalidSetting(f"The sub-agent {each.name} can't be given {named}. What it can have: {there}.")
        found[each.name] = local(each)
    return found


def _told(result: TurnResult) -> str:
    """Return what it replied; of a turn that broke off what it said last, and how that ended."""
    note = _NOTES.get(result.ending)
    if note is None:
        return str(result)
    said = [message.text for message in result.messages if message.role == "assistant" and mark_of(message) is None]
    last = next((text for text in reversed(said) if text.strip()), "")
    return "\n".join(filter(None, [last, note]))


async def loaded(sub_agents: Sequence[SubAgent | RemoteAgent], parts: Parts) -> tuple[SubAgent | RemoteAgent, ...]:
    """Return the sub-agents with their models, so that one that can't be loaded is told at the opening."""
    found: list[SubAgent | RemoteAgent] = []
    for each in sub_agents:
        if isinstance(each, SubAgent) and isinstance(each.model, str) and each.model != OFFLINE:
            url = parts.settings.address(each.model, setting="", own=None, agent=parts.model)
            load = partial(load_model, each.model, base_url=url, **asdict(each.model_settings))
            found.append(replace(each, model=await run_sync(load), model_settings=ModelSettings()))
        else:
            found.append(each)
    return tuple(found)
