"""Sub-agents: descriptions of agents that another agent can give work to in the background.

A sub-agent has its own session, window and transcript. It inherits its parent's compaction settings unless they are
given; it has memory only where that is asked for.
"""

import enum
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ricordo.context.config import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.errors import InvalidSetting
from ricordo.jobs.tasks import ReportProgress
from ricordo.lazy import lazy_compile
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.provider import validate_model_name

__all__ = ["FROM_PARENT", "Inherited", "RemoteAgent", "RemoteWork", "SubAgent", "check_max_iters"]


_NAME = lazy_compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_DEFAULT_SECONDS = 3_600.0
_REDUCTIONS: Mapping[str, type] = {
    "compaction": CompactionConfig,
    "tool_result_eviction": ToolResultEvictionConfig,
    "clear_results": ClearResultsConfig,
    "dedupe_reads": DedupeReadsConfig,
    "truncate_args": TruncateArgsConfig,
}


class Inherited(enum.Enum):
    """What a sub-agent has from its parent."""

    FROM_PARENT = "the parent's"


FROM_PARENT = Inherited.FROM_PARENT
"""The value of a setting that is the parent's."""
RemoteWork: TypeAlias = Callable[[str, ReportProgress], Awaitable[str] | str]
"""Sends a prompt to wherever the agent runs and returns its answer; it may tell how far that is meanwhile.

One that is not async runs in a thread, and can't be stopped."""


@dataclass(frozen=True, kw_only=True)
class SubAgent:
    """An agent that runs in this process, in a session of its own, when `spawn` is called with its `name`.

    `description` tells the parent's model when to use it, `instructions` are its system prompt, `model_settings` what
    a model that is given by name is told. `tools` are the names
    of the parent's tools that it gets; by default all but those of memory and of past sessions. `recall` or another
    one of these that is named here is switched on by that, whatever the parent has; `memory_tools` switches all of
    memory's on, and shows it memory as its parent sees it. Plans, todos and tasks are its parent's alone.
    `memory_hooks` lets it be learned from. Each reduction is the parent's, off included, unless one, or None for off,
    is given; then `strategies` of the parent hold for it no longer. `max_iters` bounds its requests, `seconds` its
    work.
    """

    name: str
    description: str
    instructions: str | None = None
    model: str | ChatModel | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    tools: tuple[str, ...] | None = None
    memory_tools: bool = False
    memory_hooks: bool = False
    compaction: CompactionConfig | Inherited | None = FROM_PARENT
    tool_result_eviction: ToolResultEvictionConfig | Inherited | None = FROM_PARENT
    clear_results: ClearResultsConfig | Inherited | None = FROM_PARENT
    dedupe_reads: DedupeReadsConfig | Inherited | None = FROM_PARENT
    truncate_args: TruncateArgsConfig | Inherited | None = FROM_PARENT
    max_iters: int | None = None
    seconds: float | None = _DEFAULT_SECONDS

    def __post_init__(self) -> None:
        """Refuse what names no agent, and limits that are none."""
        _check_common(self.name, self.description, self.seconds)
        check_max_iters(self.max_iters)
        validate_model_name(self.model, None, self.model_settings)
        if isinstance(self.tools, str) or not all(isinstance(name, str) for name in _iterate(self.tools)):
            raise InvalidSetting(f"The tools of a sub-agent are several names, not {self.tools!r}.")
        for name, kind in _REDUCTIONS.items():
            value: object = getattr(self, name)
            if not (value is None or isinstance(value, (kind, Inherited))):
                raise InvalidSetting(f"{name} of a sub-agent is a {kind.__name__}, or None for off, not {value!r}.")


@dataclass(frozen=True, kw_only=True)
class RemoteAgent:
    """An agent that runs elsewhere: `ask` sends it the prompt. The rest is as in `SubAgent`."""

    name: str
    description: str
    ask: RemoteWork
    seconds: float | None = _DEFAULT_SECONDS

    def __post_init__(self) -> None:
        """Refuse what names no agent, a limit that is none, and what can't be asked."""
        _check_common(self.name, self.description, self.seconds)
        if not callable(self.ask):
            raise InvalidSetting(
                f"ask of the agent {self.name} is a function of a prompt and a report, not {self.ask!r}."
            )


def check_max_iters(most: int | None) -> None:
    """Refuse what is no number of requests, from 1 on, nor None. Raises: InvalidSetting."""
    given: object = most
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
        raise InvalidSetting(f"max_iters is a whole number, at least 1, not {given!r}.")


def _iterate(given: object) -> Iterable[object]:
    """Return the parts of what was given, nothing for None, and itself for what has none."""
    if given is None:
        return ()
    return given if isinstance(given, Iterable) else (given,)


def _check_common(name: object, description: object, seconds: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidSetting(
            f"The name of a sub-agent has 1 to 40 letters, digits, dashes and underscores, not {name!r}."
        )
    if not isinstance(description, str) or not description.strip():
        raise InvalidSetting(f"The sub-agent {name} needs a description: it tells the model when to use it.")
    if seconds is not None and not (isinstance(seconds, (int, float)) and seconds > 0):
        raise InvalidSetting(f"A sub-agent works for a number of seconds above 0, or for any time, not {seconds!r}.")
