"""The options of an agent, and what a sub-agent has from its parent."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Literal, TypeAlias, get_args

from ricordo.agent.contract import StepMiddleware
from ricordo.agent.loop import TurnLimits
from ricordo.agent.session_closing import ClosingMode
from ricordo.agent.sub_agents import RemoteAgent, SubAgent, check_max_iters
from ricordo.agent.tools import ApprovalHandler, Tool
from ricordo.clock import Clock
from ricordo.context.contract import Strategy
from ricordo.context.strategies import Reductions, check_reductions
from ricordo.errors import InvalidScope, InvalidSetting
from ricordo.events import EventSink
from ricordo.extraction.config import FlushConfig
from ricordo.guard import has_secret
from ricordo.guard.permissions import PermissionRule
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.provider import validate_model_name
from ricordo.runtime.settings import Settings
from ricordo.runtime.validation import check_type, short_repr
from ricordo.scope import Scope
from ricordo.storage.disk import Disk
from ricordo.stores import Store
from ricordo.stores.addresses import parse_address
from ricordo.workspace.agent_state import StateStore, WorkState

__all__ = ["AgentOptions", "ParentLink", "PromptRefresh"]


PromptRefresh: TypeAlias = Literal["session", "step"]
"""When changed memory enters the system prompt: with the next session or compaction, or with the next request."""


_BOOLEAN_OPTIONS = (
    "memory_tools", "memory_hooks", "session_tools", "incognito", "require_memory", "file_tools", "shell", "planning",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ParentLink:
    """The values a sub-agent gets from its parent session.

    `get_state` returns the parent's state, which also applies to the sub-agent; `middleware` wraps its requests.
    `has_tool` says whether the sub-agent gets a tool, by name. `own_reductions` replace those of the parent.
    """

    get_state: Callable[[], WorkState]
    has_tool: Callable[[str], bool]
    own_reductions: Reductions
    middleware: StepMiddleware


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """The options of an agent; see `HarnessAgent` for each. With `recommended`, every reduction that is None is on.

    `parent` is set for a sub-agent. `trusted` vouches for the root.
    """

    model: str | ChatModel
    model_settings: ModelSettings | None = None
    scope: Scope
    root: Path | None = None
    store: str | Store | None = None
    session: str | None = None
    instructions: str | None = None
    tools: tuple[Tool, ...] = ()
    reductions: Reductions = field(default_factory=Reductions)
    strategies: tuple[Strategy, ...] | None = None
    recommended: bool = False
    memory_tools: bool = True
    opt_in_tools: tuple[str, ...] | None = None
    memory_hooks: bool = True
    session_tools: bool = True
    incognito: bool = False
    refresh: PromptRefresh = "session"
    require_memory: bool = False
    file_tools: bool = False
    shell: bool = False
    working_directory: Path | None = None
    approve: ApprovalHandler | None = None
    planning: bool = False
    sub_agents: tuple[SubAgent | RemoteAgent, ...] = ()
    permissions: tuple[PermissionRule, ...] = ()
    states: StateStore | None = None
    parent: ParentLink | None = None
    closing_summary: ClosingMode | None = None
    flush: FlushConfig | None = None
    max_iters: int | None = None
    turn_limits: TurnLimits | None = None
    on_event: EventSink | None = None
    settings: Settings | None = None
    trusted: bool = False
    clock: Clock | None = None
    disk: Disk | None = None

    def __post_init__(self) -> None:
        """Check the options: limits, types, model name, refresh, the address of the store, and no secrets in file
        names.
        """
        object.__setattr__(self, "reductions", check_reductions(self.reductions))
        check_max_iters(self.max_iters)
        self._check_types()
        validate_model_name(self.model, None, self.model_settings)
        if isinstance(self.store, str):
            parse_address(self.store)
        if self.closing_summary not in {None, *get_args(ClosingMode)}:
            modes = ", ".join(get_args(ClosingMode))
            raise InvalidSetting(f"closing_summary is one of {modes}, not {self.closing_summary!r}.")
        if self.refresh not in get_args(PromptRefresh):
            raise InvalidSetting(f"refresh is {' or '.join(get_args(PromptRefresh))}, not {self.refresh!r}.")
        if any(map(has_secret, (*self.scope.parts().values(), self.session or ""))):
            raise InvalidScope("A part of the scope, or the session, holds a secret: files would be named after it.")

    def _check_types(self) -> None:
        for name in ("session", "instructions"):
            check_type(name, getattr(self, name), str, NoneType, words="a text or None")
        for name in _BOOLEAN_OPTIONS:
            check_type(name, getattr(self, name), bool, words="True or False")
        check_type("flush", self.flush, FlushConfig, NoneType, words="a FlushConfig or None")
        check_type("settings", self.settings, Settings, NoneType, words="a value such as `Settings.load()` or None")
        if not isinstance(self.model, str) and not hasattr(self.model, "complete"):
            named = "a name such as anthropic:claude-sonnet-5, or a ChatModel"
            raise InvalidSetting(f"model is {named}, not {short_repr(self.model)}.")
        check_type(
            "store", self.store, str, Store, NoneType, words="an address such as jsonl:./notes, an open store or None"
        )
