"""Workers for sub-agents: each prompt gets its own session, made from the parent's options, and an answer.

Invariant: a sub-agent is bound by its parent's rules and plan mode, and asks the same person.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Literal

from anyio.to_thread import run_sync

from ricordo.agent.contract import ModelRequest, ModelResponse, StepHandler, TurnEnding, TurnResult
from ricordo.agent.options import DEFAULT_INSTRUCTIONS, AgentOptions, ParentLink, RemoteAgent, SubAgent
from ricordo.agent.session import AgentSession
from ricordo.agent.session_services import MEMORY_TOOLS, SESSION_TOOLS
from ricordo.agent.tools import Approval, ApprovalHandler
from ricordo.agent.tools.tasks import SubAgentWorker
from ricordo.clock import IdSource
from ricordo.errors import InvalidSetting
from ricordo.jobs.tasks import ReportProgress, TaskProgress
from ricordo.jobs.tasks.runner import run_in_worker_thread
from ricordo.lazy import dataclass
from ricordo.messages import Message, Text, get_mark
from ricordo.models import ModelSettings
from ricordo.models.config import OFFLINE
from ricordo.models.provider import load_model
from ricordo.runtime.services import Dependencies
from ricordo.runtime.settings import OPT_IN_TOOLS
from ricordo.workspace.agent_state import WorkStateHolder

__all__ = ["LocalWorker", "RemoteWorker", "create_workers", "load_sub_agent_models"]


_MAX_SESSION_CHARS = 80
_ID_CHARS = 8
_PLAN_MODE_NOTE = "[The agent that asks is only planning: tools that change anything are refused.]"
_REQUEST_LIMIT_NOTE = "[It was stopped at its limit of requests, before it had come to an end.]"
_CUT_OFF_NOTE = "[Its answer was cut off before its end.]"
_REFUSAL_NOTE = "[Its model refused to go on.]"
_TURN_LIMIT_NOTE = "[It was stopped at its limit of tokens or cost, before it had come to an end.]"
_ENDING_NOTES: Mapping[TurnEnding, str] = {
    "max_iters": _REQUEST_LIMIT_NOTE,
    "limit": _TURN_LIMIT_NOTE,
    "length": _CUT_OFF_NOTE,
    "window": _CUT_OFF_NOTE,
    "refused": _REFUSAL_NOTE,
}


@dataclass(frozen=True, kw_only=True)
class RemoteWorker:
    """Runs an agent elsewhere."""

    spec: RemoteAgent
    type: Literal["local_agent", "remote_agent"] = "remote_agent"

    @property
    def name(self) -> str:
        """The name for `spawn`."""
        return self.spec.name

    @property
    def description(self) -> str:
        """When to use the agent."""
        return self.spec.description

    @property
    def seconds(self) -> float | None:
        """The time limit in seconds."""
        return self.spec.seconds

    async def __call__(self, prompt: str, report: ReportProgress) -> str:
        """Return the agent's answer. Raises the agent's errors."""
        return await run_in_worker_thread(self.spec.ask)(prompt, report)


@dataclass(frozen=True, kw_only=True)
class LocalWorker:
    """Runs a sub-agent in this process; `parent` are the parent's options with the values of its session.

    `create_session` opens a session.
    """

    spec: SubAgent
    parent: AgentOptions
    session: str
    session_state: WorkStateHolder
    ids: IdSource
    create_session: Callable[[AgentOptions], Awaitable[AgentSession]]
    type: Literal["local_agent", "remote_agent"] = "local_agent"

    @property
    def name(self) -> str:
        """The name for `spawn`."""
        return self.spec.name

    @property
    def description(self) -> str:
        """When to use the sub-agent."""
        return self.spec.description

    @property
    def seconds(self) -> float | None:
        """The time limit in seconds."""
        return self.spec.seconds

    async def __call__(self, prompt: str, report: ReportProgress) -> str:
        """Return the sub-agent's reply to `prompt`, in a new session. Raises: ModelError; StorageError."""
        name = f"{self.session[:_MAX_SESSION_CHARS]}-{self.ids.new()[-_ID_CHARS:]}"
        session = await self.create_session(self.build_options(name, report))
        text = f"{prompt}\n\n{_PLAN_MODE_NOTE}" if self.session_state.work_state.plan.active else prompt
        result = await session.turn_runner.send([Message(role="user", parts=(Text(text=text),))])
        return _describe_result(result)

    def build_options(self, session: str, report: ReportProgress) -> AgentOptions:
        """Return the options of the sub-agent for `session`; each of its requests is reported to `report`."""
        spec, parent = self.spec, self.parent
        return replace(
            parent,
            model=parent.model if spec.model is None else spec.model,
            scope=replace(parent.scope, agent=spec.name, session=None),
            session=session,
            instructions=DEFAULT_INSTRUCTIONS if spec.instructions is None else spec.instructions,
            memory=replace(parent.memory, hooks=spec.memory_hooks),
            builtin_tools=replace(parent.builtin_tools, memory=spec.memory_tools, planning=False),
            approve=_approve_as(spec.name, parent.approve),
            sub_agents=(),
            limits=replace(parent.limits, max_iters=spec.max_iters or parent.limits.max_iters),
            strategies=None if spec.reductions else parent.strategies,
            parent=ParentLink(
                get_state=lambda: self.session_state.work_state,
                has_tool=self._has_tool,
                reductions=spec.reductions,
                middleware=_ProgressMiddleware(report),
            ),
        )

    def _has_tool(self, tool: str) -> bool:
        """Return whether the sub-agent gets this tool of its parent."""
        if self.spec.memory_tools and tool in MEMORY_TOOLS:
            return True
        if self.spec.tools is not None:
            return tool in self.spec.tools
        return tool not in SESSION_TOOLS | MEMORY_TOOLS | {*OPT_IN_TOOLS}


def _approve_as(name: str, approve: ApprovalHandler | None) -> ApprovalHandler | None:
    """Return a handler that asks the same person and names the sub-agent."""
    if approve is None:
        return None

    async def ask_person(asked: Approval) -> bool:
        return await approve(replace(asked, agent=name))

    return ask_person


class _ProgressMiddleware:
    """Step middleware that reports the number of requests and the latest tool calls."""

    def __init__(self, report: ReportProgress) -> None:
        self._report = report

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        response = await step(request)
        called = ", ".join(dict.fromkeys(call.name for call in response.reply.message.tool_calls))
        self._report(TaskProgress(done=request.step, text=called or "answering"))
        return response


def create_workers(
    sub_agents: Sequence[SubAgent | RemoteAgent],
    *,
    parent: str,
    list_tools: Callable[[], frozenset[str]],
    create_local: Callable[[SubAgent], SubAgentWorker],
) -> dict[str, SubAgentWorker]:
    """Return the workers for the agent `parent`, by name; `list_tools` returns the tools that they can get.

    Raises: InvalidSetting for a duplicate name, the parent's name, or an unknown tool.
    """
    workers: dict[str, SubAgentWorker] = {}
    for each in sub_agents:
        if each.name == parent:
            raise InvalidSetting(f"A sub-agent can't be called {parent}, as its parent is: their sessions would mix.")
        if each.name in workers:
            raise InvalidSetting(f"Two sub-agents are called {each.name}.")
        if isinstance(each, RemoteAgent):
            workers[each.name] = RemoteWorker(spec=each)
            continue
        unknown = sorted(set(each.tools or ()) - list_tools())
        if unknown:
            available, unknown_names = ", ".join(sorted(list_tools())), ", ".join(unknown)
            raise InvalidSetting(
                f"The sub-agent {each.name} can't be given {unknown_names}. What it can have: {available}."
            )
        workers[each.name] = create_local(each)
    return workers


def _describe_result(result: TurnResult) -> str:
    """Return the reply of a turn; for an incomplete turn its last text and how it ended."""
    note = _ENDING_NOTES.get(result.ending)
    if note is None:
        return str(result)
    texts = [message.text for message in result.messages if message.role == "assistant" and get_mark(message) is None]
    last = next((text for text in reversed(texts) if text.strip()), "")
    return "\n".join(filter(None, [last, note]))


async def load_sub_agent_models(
    sub_agents: Sequence[SubAgent | RemoteAgent], parts: Dependencies
) -> tuple[SubAgent | RemoteAgent, ...]:
    """Return the sub-agents with their models loaded, so that a load error is raised at opening."""
    loaded: list[SubAgent | RemoteAgent] = []
    for each in sub_agents:
        if isinstance(each, SubAgent) and isinstance(each.model, str) and each.model != OFFLINE:
            url = parts.settings.resolve_address(each.model, setting="", own=None, agent=parts.model)
            load = partial(load_model, each.model, base_url=url, **asdict(each.model_settings))
            loaded.append(replace(each, model=await run_sync(load), model_settings=ModelSettings()))
        else:
            loaded.append(each)
    return tuple(loaded)
