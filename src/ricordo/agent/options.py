"""The options of an agent, its sub-agents, and what a sub-agent has from its parent.

A sub-agent has its own session, window and transcript. It inherits its parent's compaction settings unless they are
given; it has memory only if enabled.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import NoneType
from typing import Literal, TypeAlias, TypeVar, get_args

from ricordo.agent.contract import StepMiddleware
from ricordo.agent.loop import TurnLimits, check_max_iters
from ricordo.agent.session_closing import ClosingMode
from ricordo.agent.tools import ApprovalHandler, Tool
from ricordo.clock import Clock
from ricordo.context.contract import Strategy
from ricordo.context.strategies import Reductions, check_reductions
from ricordo.errors import InvalidScope, InvalidSetting
from ricordo.events import EventSink
from ricordo.extraction.config import FlushConfig
from ricordo.guard import has_secret
from ricordo.guard.permissions import PermissionRule, parse_rule
from ricordo.jobs.tasks import ReportProgress
from ricordo.lazy import dataclass, lazy_compile
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.config import validate_model_name
from ricordo.runtime.settings import OPT_IN_TOOLS, Settings
from ricordo.runtime.validation import check_type, short_repr
from ricordo.scope import Scope
from ricordo.storage.disk import Disk
from ricordo.stores import Store
from ricordo.stores.addresses import SCHEMES, parse_address
from ricordo.workspace.agent_state import StateStore, WorkState
from ricordo.workspace.layout import DEFAULT_AGENT

__all__ = [
    "DEFAULT_INSTRUCTIONS",
    "AgentOptions",
    "BuiltinTools",
    "MemoryConfig",
    "ParentLink",
    "PromptRefresh",
    "RemoteAgent",
    "RemoteWork",
    "SubAgent",
    "parse_permission_rules",
]


_NAME = lazy_compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_DEFAULT_SECONDS = 3_600.0
RemoteWork: TypeAlias = Callable[[str, ReportProgress], Awaitable[str] | str]
"""Sends a prompt to the remote agent and returns its answer; it may report progress.

A function that is not async runs in a thread and can't be stopped.
"""


@dataclass(frozen=True, kw_only=True)
class SubAgent:
    """An agent that runs in this process, in its own session, when `spawn` is called with its `name`.

    `description` tells the parent's model when to use it, `instructions` are its system prompt, and `model_settings`
    apply to a model given by name. `tools` are the names of the parent's tools that it gets; by default all except
    those for memory and past sessions. A memory or session tool that is named here is enabled whatever the parent has.
    `memory_tools` enables all memory tools and shows it memory as its parent sees it. Plans, todos and tasks belong to
    its parent alone. `memory_hooks` extracts facts from its messages. Each reduction is inherited, also if off, unless
    `reductions` has it by the name of the argument of `HarnessAgent`, such as `{"compaction": None}` for off; then the
    parent's `strategies` no longer apply. `max_iters` limits its requests, `seconds` its running time.
    """

    name: str
    description: str
    instructions: str | None = None
    model: str | ChatModel | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    tools: tuple[str, ...] | None = None
    memory_tools: bool = False
    memory_hooks: bool = False
    reductions: Reductions = field(default_factory=Reductions)
    max_iters: int | None = None
    seconds: float | None = _DEFAULT_SECONDS

    def __post_init__(self) -> None:
        """Check the name, the description, the types and the limits. Raises `InvalidSetting`."""
        _check_common(self.name, self.description, self.seconds)
        check_max_iters(self.max_iters)
        validate_model_name(self.model, None, self.model_settings)
        if isinstance(self.tools, str) or not all(isinstance(name, str) for name in _iterate(self.tools)):
            raise InvalidSetting(f"The tools of a sub-agent are several names, not {self.tools!r}.")
        object.__setattr__(self, "reductions", check_reductions(self.reductions))


@dataclass(frozen=True, kw_only=True)
class RemoteAgent:
    """An agent that runs elsewhere: `ask` sends it the prompt. The rest is as in `SubAgent`."""

    name: str
    description: str
    ask: RemoteWork
    seconds: float | None = _DEFAULT_SECONDS

    def __post_init__(self) -> None:
        """Check the name, the description, the limit and `ask`. Raises `InvalidSetting`."""
        _check_common(self.name, self.description, self.seconds)
        if not callable(self.ask):
            raise InvalidSetting(
                f"ask of the agent {self.name} is a function of a prompt and a report, not {self.ask!r}."
            )


def _iterate(value: object) -> Iterable[object]:
    """Return the items of a value, none for None, and the value itself if it is not iterable."""
    if value is None:
        return ()
    return value if isinstance(value, Iterable) else (value,)


def _check_common(name: object, description: object, seconds: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidSetting(
            f"The name of a sub-agent has 1 to 40 letters, digits, dashes and underscores, not {name!r}."
        )
    if not isinstance(description, str) or not description.strip():
        raise InvalidSetting(f"The sub-agent {name} needs a description: it tells the model when to use it.")
    if seconds is not None and not (isinstance(seconds, (int, float)) and seconds > 0):
        raise InvalidSetting(f"A sub-agent works for a number of seconds above 0, or for any time, not {seconds!r}.")


DEFAULT_INSTRUCTIONS = "You are a helpful assistant. Say so when you do not know something."
PromptRefresh: TypeAlias = Literal["session", "step"]
"""When changed memory enters the system prompt: with the next session or compaction, or with the next request."""


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """Where an agent's memory lives, and what the agent does with it.

    `root` is the folder of the memory; the default is that of `Memory.open`. `store` is the address of another store,
    or an open one; the default comes from the process or the settings. Nothing is extracted into a store other than the
    root's own. With `required`, a root or a store that can't be opened is an error. `trusted` vouches for a root that
    was not created or trusted on this machine; such a root is refused otherwise.

    With `hooks`, facts are extracted from messages; `flush` says when, and by which model; the default comes from the
    settings, and its model is the agent's own. With neither `hooks` nor the memory tools, the prompt has no memory.
    Changes to memory enter the prompt with the next session or compaction, or with the next request if
    `refresh="step"`. If the store keeps sessions, `closing_summary` says when a session is summarized: when the agent
    is left (`"sync"`, the default of a store of session files), by the next agent that is opened (`"background"`), or
    never (`"off"`, the default of the root's own memory). `states` stores the state of the agent elsewhere.

    What the agent remembers for its session alone is erased when the agent is left. With `keeps_session` it stays for
    the next agent that continues the session, until nobody has used it for a day.

    An `incognito` session reads no memory or profile and records nothing, not even messages; the same holds for its
    sub-agents. Rules written by people still apply.
    """

    root: str | Path | None = None
    store: str | Store | None = None
    required: bool = False
    trusted: bool = False
    hooks: bool = True
    flush: FlushConfig | None = None
    refresh: PromptRefresh = "session"
    closing_summary: ClosingMode | None = None
    states: StateStore | None = None
    incognito: bool = False
    keeps_session: bool = False

    def __post_init__(self) -> None:
        """Check the types, the address of the store, and the modes. Raises: InvalidSetting."""
        check_type("The folder of a memory", self.root, str, Path, NoneType, words="a path or None")
        if isinstance(self.root, str) and self.root.partition(":")[0] in SCHEMES and ":" in self.root:
            raise InvalidSetting(
                f"{self.root} is the address of a store: pass it as MemoryConfig(store={self.root!r})."
            )
        check_type(
            "store", self.store, str, Store, NoneType, words="an address such as jsonl:./notes, an open store or None"
        )
        if isinstance(self.store, str):
            parse_address(self.store)
        for name in ("required", "trusted", "hooks", "incognito", "keeps_session"):
            check_type(name, getattr(self, name), bool, words="True or False")
        check_type("flush", self.flush, FlushConfig, NoneType, words="a FlushConfig or None")
        if self.closing_summary not in {None, *get_args(ClosingMode)}:
            modes = ", ".join(get_args(ClosingMode))
            raise InvalidSetting(f"closing_summary is one of {modes}, not {self.closing_summary!r}.")
        if self.refresh not in get_args(PromptRefresh):
            raise InvalidSetting(f"refresh is {' or '.join(get_args(PromptRefresh))}, not {self.refresh!r}.")
        if self.states is not None and not _has_methods(self.states, "load", "save"):
            raise InvalidSetting(
                f"states is a ricordo.workspace.StateStore, which loads and saves, not {self.states!r}."
            )


@dataclass(frozen=True, kw_only=True)
class BuiltinTools:
    """Which of Ricordo's tools the model has.

    `memory` are `remember`, `recall`, `memory_search` and `memory_get`; `opt_in` names further ones, `forget` and
    `memory`, and its default comes from the settings. `sessions` search the past sessions of the user. `files` read
    files, and change them with approval; `shell` runs commands with approval. Both work in `working_directory`, by
    default the folder that holds the root; the instructions in its AGENTS.md are read too. `planning` is a todo list
    and plan mode.
    """

    memory: bool = True
    opt_in: Sequence[str] | None = None
    sessions: bool = True
    files: bool = False
    shell: bool = False
    planning: bool = False
    working_directory: str | Path | None = None

    def __post_init__(self) -> None:
        """Check the types and the names. Raises: InvalidSetting."""
        for name in ("memory", "sessions", "files", "shell", "planning"):
            check_type(name, getattr(self, name), bool, words="True or False")
        check_type("working_directory", self.working_directory, str, Path, NoneType, words="a path or None")
        if self.opt_in is not None:
            kinds = f"names of {', '.join(OPT_IN_TOOLS)}"
            names = _check_sequence("opt_in", self.opt_in, kinds, lambda each: each in OPT_IN_TOOLS)
            object.__setattr__(self, "opt_in", names)


@dataclass(frozen=True, kw_only=True)
class ParentLink:
    """The values a sub-agent gets from its parent session.

    `get_state` returns the parent's state, which also applies to the sub-agent; `middleware` wraps its requests.
    `has_tool` says whether the sub-agent gets a tool, by name. `reductions` replace those of the parent.
    """

    get_state: Callable[[], WorkState]
    has_tool: Callable[[str], bool]
    reductions: Reductions
    middleware: StepMiddleware


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """The arguments of an agent; see `HarnessAgent` for each. With `recommended`, every reduction that is None is on.

    `parent` is set for a sub-agent.
    """

    model: str | ChatModel
    tools: Sequence[Tool] = ()
    scope: Scope
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    instructions: str | None = None
    session: str | None = None
    builtin_tools: BuiltinTools = field(default_factory=BuiltinTools)
    approve: ApprovalHandler | None = None
    permissions: Sequence[PermissionRule] = ()
    sub_agents: Sequence[SubAgent | RemoteAgent] = ()
    limits: TurnLimits = field(default_factory=TurnLimits)
    reductions: Reductions = field(default_factory=Reductions)
    strategies: Sequence[Strategy] | None = None
    model_settings: ModelSettings | None = None
    settings: Settings | None = None
    on_event: EventSink | None = None
    clock: Clock | None = None
    disk: Disk | None = None
    recommended: bool = False
    parent: ParentLink | None = None

    def __post_init__(self) -> None:
        """Check what types can't: each error says what is expected. Sequences become tuples.

        Raises: InvalidSetting; InvalidScope if a part of the scope holds a secret.
        """
        checked: dict[str, object] = {
            "reductions": check_reductions(self.reductions),
            "tools": _check_sequence("tools", self.tools, "tools, as `ricordo.agent.tool` makes them", _is_tool),
            "sub_agents": _check_sequence("sub_agents", self.sub_agents, "SubAgent and RemoteAgent values", _is_agent),
        }
        if self.strategies is not None:
            checked["strategies"] = _check_sequence(
                "strategies", self.strategies, "reductions of ricordo.context", _is_strategy
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_types()
        validate_model_name(self.model, None, self.model_settings)
        if any(map(has_secret, (*self.scope.parts().values(), self.session or ""))):
            raise InvalidScope("A part of the scope, or the session, holds a secret: files would be named after it.")

    @property
    def agent(self) -> str:
        """The name of the agent, under which its sessions are saved."""
        return self.scope.agent or DEFAULT_AGENT

    @property
    def user(self) -> str:
        """The user whose sessions these are; empty for everybody."""
        return self.scope.user or ""

    def with_defaults(self, settings: Settings, root: Path) -> "AgentOptions":
        """Return the options with every default that `settings` or the place of `root` decides."""
        tools, limits = self.builtin_tools, self.limits
        opt_in = settings.opt_in_tools if tools.opt_in is None else tools.opt_in
        folder = root.parent if tools.working_directory is None else Path(tools.working_directory)
        return replace(
            self,
            instructions=DEFAULT_INSTRUCTIONS if self.instructions is None else self.instructions,
            limits=replace(limits, max_iters=limits.max_iters or settings.max_iters),
            builtin_tools=replace(tools, opt_in=opt_in, working_directory=folder),
        )

    @property
    def remembers(self) -> bool:
        """Whether the agent uses memory: it has the memory tools, or facts are extracted from its messages."""
        return self.builtin_tools.memory or self.memory.hooks

    def _check_types(self) -> None:
        for name in ("session", "instructions"):
            check_type(name, getattr(self, name), str, NoneType, words="a text or None")
        for name, kind in (("memory", MemoryConfig), ("builtin_tools", BuiltinTools), ("limits", TurnLimits)):
            check_type(name, getattr(self, name), kind, words=f"a {kind.__name__}")
        check_type("settings", self.settings, Settings, NoneType, words="a value such as `Settings.load()` or None")
        if not isinstance(self.model, str) and not hasattr(self.model, "complete"):
            expected = "a name such as anthropic:claude-sonnet-5, or a ChatModel"
            raise InvalidSetting(f"model is {expected}, not {short_repr(self.model)}.")
        if self.approve is not None and not callable(self.approve):
            raise InvalidSetting(
                f"approve is an async function that takes what is asked and returns a bool, not {self.approve!r}."
            )


def parse_permission_rules(rules: Sequence[str]) -> tuple[PermissionRule, ...]:
    """Parse lines into permission rules. Raises: InvalidSetting."""
    kinds = "lines such as `deny shell(git push*)`"
    lines = _check_sequence("permissions", rules, kinds, lambda each: isinstance(each, str))
    return tuple(parse_rule(line, source="the program") for line in lines)


_T = TypeVar("_T")


def _check_sequence(name: str, value: Sequence[_T], kind: str, is_valid: Callable[[object], bool]) -> tuple[_T, ...]:
    """Return a sequence, which may be empty, as a tuple. Raises `InvalidSetting` for a single value or a wrong type."""
    items: object = value
    if isinstance(items, str) or not isinstance(items, Sequence) or not all(map(is_valid, items)):
        raise InvalidSetting(f"{name} are several {kind}, in a list, not {value!r}.")
    return tuple(value)


def _is_tool(value: object) -> bool:
    return _has_methods(value, "spec")


def _is_agent(value: object) -> bool:
    return isinstance(value, (SubAgent, RemoteAgent))


def _is_strategy(value: object) -> bool:
    return _has_methods(value, "action", "reduce")


def _has_methods(value: object, *methods: str) -> bool:
    return all(hasattr(value, method) for method in methods)
