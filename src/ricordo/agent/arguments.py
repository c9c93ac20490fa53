"""Checks of an agent's arguments that types can't make. Each error says what is expected.

Invariant: the returned value has the stated type, whatever was passed.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ricordo.agent.sub_agents import RemoteAgent, SubAgent
from ricordo.agent.tools import ApprovalHandler, Tool
from ricordo.context.contract import Strategy
from ricordo.errors import InvalidSetting
from ricordo.guard.permissions import PermissionRule, parse_rule
from ricordo.runtime.settings import OPT_IN_TOOLS
from ricordo.workspace.agent_state import StateStore

__all__ = [
    "check_approve",
    "check_opt_in_tools",
    "check_state_store",
    "check_strategies",
    "check_sub_agents",
    "check_tools",
    "parse_permission_rules",
]


_T = TypeVar("_T")


def check_strategies(given: Sequence[Strategy] | None) -> tuple[Strategy, ...] | None:
    """Return the strategies; None if none were passed. Raises: InvalidSetting."""
    if given is None:
        return None
    return _check_sequence(
        "strategies", given, "reductions of ricordo.context", lambda each: _has_methods(each, "act", "reduce")
    )


def check_tools(given: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools. Raises: InvalidSetting."""
    return _check_sequence(
        "tools", given, "tools, as `ricordo.agent.tools.tool` makes them", lambda each: _has_methods(each, "spec")
    )


def parse_permission_rules(given: Sequence[str]) -> tuple[PermissionRule, ...]:
    """Parse lines into permission rules. Raises: InvalidSetting."""
    lines = _check_sequence(
        "permissions", given, "lines such as `deny shell(git push*)`", lambda each: isinstance(each, str)
    )
    return tuple(parse_rule(line, source="the program") for line in lines)


def check_sub_agents(given: Sequence[SubAgent | RemoteAgent]) -> tuple[SubAgent | RemoteAgent, ...]:
    """Return the sub-agents. Raises: InvalidSetting."""
    kinds = (SubAgent, RemoteAgent)
    return _check_sequence("sub_agents", given, "SubAgent and RemoteAgent values", lambda each: isinstance(each, kinds))


def check_opt_in_tools(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names of the opt-in tools; None to use the settings. Raises: InvalidSetting."""
    if given is None:
        return None
    return _check_sequence(
        "opt_in_tools", given, f"names of {', '.join(OPT_IN_TOOLS)}", lambda each: each in OPT_IN_TOOLS
    )


def check_approve(given: ApprovalHandler | None) -> ApprovalHandler | None:
    """Return the approval handler. Raises: InvalidSetting."""
    if given is not None and not callable(given):
        raise InvalidSetting(
            f"approve is an async function that takes what is asked and returns a bool, not {given!r}."
        )
    return given


def check_state_store(given: StateStore | None) -> StateStore | None:
    """Return the state store. Raises: InvalidSetting."""
    if given is not None and not _has_methods(given, "load", "save"):
        raise InvalidSetting(
            f"states is a ricordo.workspace.agent_state.StateStore, which loads and saves, not {given!r}."
        )
    return given


def _check_sequence(name: str, given: Sequence[_T], kind: str, fits: Callable[[object], bool]) -> tuple[_T, ...]:
    """Return a sequence, which may be empty, as a tuple. Raises `InvalidSetting` for a single value or a wrong type."""
    several: object = given
    if isinstance(several, str) or not isinstance(several, Sequence) or not all(map(fits, several)):
        raise InvalidSetting(f"{name} are several {kind}, in a list, not {given!r}.")
    return tuple(given)


def _has_methods(given: object, *methods: str) -> bool:
    return all(hasattr(given, method) for method in methods)
