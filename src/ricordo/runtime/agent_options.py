"""What describes an agent, before anything of it is open."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Literal, TypeAlias, get_args

from ricordo.clock import Clock
from ricordo.errors import InvalidScope, InvalidSetting
from ricordo.events import EventSink
from ricordo.files.disk import Disk
from ricordo.flush.config import FlushConfig
from ricordo.guard import has_secret
from ricordo.guard.permissions import PermissionRule
from ricordo.harness.sub_agents import RemoteAgent, SubAgent, check_max_iters
from ricordo.harness.turn_limits import TurnLimits
from ricordo.middleware import StepMiddleware
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.naming import validate_model_name
from ricordo.runtime.closing import ClosingMode
from ricordo.runtime.given import check_type, short_repr
from ricordo.runtime.reductions import ReductionOptions
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.state import WorkState, StateStore
from ricordo.stores import Store
from ricordo.stores.opening import parse_address
from ricordo.tools import ApprovalHandler, Tool

__all__ = ["AgentOptions", "ParentLink", "PromptRefresh"]

PromptRefresh: TypeAlias = Literal["session", "step"]
"""When memory that changed enters the system prompt: with the next session or compaction, or with the next request."""


_BOOLEAN_OPTIONS = (
    "memory_tools", "memory_hooks", "session_tools", "incognito", "require_memory", "file_tools", "shell", "planning",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ParentLink:
    """What a sub-agent has from the session that lets it work: what stands there, which holds for it too, and what
    watches its requests. `has_tool` tells whether it is given a tool, by its name; `inherit_reductions` makes its reductions of those
    that are in force with its parent's options and its own model."""

    get_state: Callable[[], WorkState]
    has_tool: Callable[[str], bool]
    inherit_reductions: Callable[[ReductionOptions], ReductionOptions]
    middleware: StepMiddleware


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """What describes an agent; see `HarnessAgent` for each. With `recommended` every reduction that is None is on.

    `parent` is there for a sub-agent. `trusted` vouches for the root.
    """

    model: str | ChatModel
    model_settings: ModelSettings | None = None
    scope: Scope
    root: Path | None = None
    store: str | Store | None = None
    session: str | None = None
    instructions: str | None = None
    tools: tuple[Tool, ...] = ()
    reductions: ReductionOptions = field(default_factory=ReductionOptions)
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
        """Refuse a turn of no request, an unknown refresh, no address of a store, and secrets in names of files."""
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
