"""Sub-agents: descriptions of agents that another agent can start in the background.

A sub-agent has its own session, window and transcript. It inherits its parent's compaction settings unless they are
given; it has memory only if enabled.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import field
from typing import TypeAlias

from ricordo.context.strategies import Reductions, check_reductions
from ricordo.errors import InvalidSetting
from ricordo.jobs.tasks import ReportProgress
from ricordo.lazy import dataclass, lazy_compile
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.config import validate_model_name

__all__ = ["RemoteAgent", "RemoteWork", "SubAgent", "check_max_iters"]


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


def check_max_iters(max_iters: int | None) -> None:
    """Check that `max_iters` is an integer of at least 1, or None. Raises: InvalidSetting."""
    value: object = max_iters
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise InvalidSetting(f"max_iters is a whole number, at least 1, not {value!r}.")


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
