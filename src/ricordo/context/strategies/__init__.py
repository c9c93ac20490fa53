"""Strategies: each reduces the window in one way. `Reductions` lists those that an agent can be given.

A strategy that is added needs its own file, with the strategy and its options, and one line in `Reductions`. From that
line come the argument of `HarnessAgent`, its value for sub-agents, its table of settings and its place in the pipeline.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast, get_args, get_type_hints

from ricordo.context.config import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from ricordo.context.contract import Strategy, StrategyConfig, StrategyContext

__all__ = ["Reductions", "check_reductions", "create_strategies", "with_recommended"]


class Reductions(TypedDict, total=False):
    """The options of each reduction of the window, in the order in which they run; None is off.

    Each line names the options and the class of the strategy, which is imported when the strategy is on. The summary
    comes last, and dropping after it; `ricordo.context.pipeline` creates both.
    """

    tool_result_eviction: Annotated[ToolResultEvictionConfig | None, "evict.EvictResults"]
    clear_results: Annotated[ClearResultsConfig | None, "clear.ClearResults"]
    dedupe_reads: Annotated[DedupeReadsConfig | None, "dedupe.DedupeReads"]
    truncate_args: Annotated[TruncateArgsConfig | None, "truncate.TruncateArgs"]
    compaction: CompactionConfig | None


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """One line of `Reductions`: the type of the options, and the class of the strategy; empty for the summary."""

    options: "type[StrategyConfig]"
    strategy: str


def check_reductions(options: Mapping[str, object]) -> Reductions:
    """Return the options that were given by name; they can't be changed. Raises: InvalidSetting for a value of another
    type; TypeError for an unknown name.
    """
    kinds = _list_kinds()
    if not isinstance(options, Mapping):
        raise InvalidSetting(f"reductions are options by name, such as {{'compaction': None}}, not {options!r:.80}.")
    for name, value in options.items():
        if name not in kinds:
            raise TypeError(f"There is no argument {name!r}. The reductions are {', '.join(kinds)}.")
        kind = kinds[name].options
        if not isinstance(value, (kind, NoneType)):
            raise InvalidSetting(f"{name} is a {kind.__name__} or None, not {value!r:.80}.")
    return cast("Reductions", MappingProxyType(dict(options)))


def with_recommended(requested: Reductions, settings: Reductions, window: int | None) -> Reductions:
    """Return the reductions with each one that is not given taken from `settings`, or else as recommended.

    A reduction that is None in `settings` stays off. `window` is the model's, in tokens; None if unknown. Arguments are
    not truncated by options of their own if the summary has some for it.
    """
    configured = dict(_given_options(settings)) | {name: each for name, each in requested.items() if each is not None}
    reductions = {
        name: configured[name] if name in configured else kind.options.recommended(window)
        for name, kind in _list_kinds().items()
    }
    summary = reductions["compaction"]
    if requested.get("truncate_args") is None and isinstance(summary, CompactionConfig) and summary.truncate_args:
        reductions["truncate_args"] = None
    return cast("Reductions", reductions)


def create_strategies(reductions: Reductions, context: "StrategyContext") -> "list[Strategy]":
    """Return the strategies that only shorten messages, in order; each message can be read in full again."""
    summary = reductions.get("compaction")
    if reductions.get("truncate_args") is None and summary is not None:
        reductions = {**reductions, "truncate_args": summary.truncate_args}
    kinds, options = _list_kinds(), dict(_given_options(reductions))
    enabled = [(kind.strategy, options[name]) for name, kind in kinds.items() if kind.strategy and options.get(name)]
    strategies = [_import_strategy(strategy).create(config, context) for strategy, config in enabled]
    return [strategy for strategy in strategies if strategy is not None]


def _import_strategy(name: str) -> Any:
    module, _, strategy = name.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), strategy)


def _given_options(reductions: Reductions) -> "Iterator[tuple[str, StrategyConfig | None]]":
    yield from cast("Mapping[str, StrategyConfig | None]", reductions).items()


@cache
def _list_kinds() -> Mapping[str, _Kind]:
    kinds = {}
    for name, hint in get_type_hints(Reductions, include_extras=True).items():
        options, *strategies = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
        kind = next(each for each in get_args(options) if each is not NoneType)
        kinds[name] = _Kind(options=kind, strategy=strategies[0] if strategies else "")
    return kinds
