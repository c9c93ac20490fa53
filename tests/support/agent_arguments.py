"""The arguments of an agent from one flat set of options, of which a test can change one and leave the others."""

from dataclasses import fields
from typing import Any

from ricordo import BuiltinTools, MemoryConfig, TurnLimits

__all__ = ["agent_arguments"]

_GROUPS: dict[str, type] = {"memory": MemoryConfig, "builtin_tools": BuiltinTools, "limits": TurnLimits}
_FIELDS = {
    "workspace": "root",
    "memory_hooks": "hooks",
    "require_memory": "required",
    "memory_tools": "memory",
    "opt_in_tools": "opt_in",
    "session_tools": "sessions",
    "file_tools": "files",
}
"""The fields that have a longer name where they stand among others."""


def agent_arguments(**options: Any) -> dict[str, Any]:
    """Return the arguments of `HarnessAgent`: the fields of a group in their group, all others as they are."""
    found: dict[str, Any] = {}
    for name, kind in _GROUPS.items():
        known = {each.name for each in fields(kind)} - _GROUPS.keys()
        known |= {long for long, short in _FIELDS.items() if short in {each.name for each in fields(kind)}}
        given = {_FIELDS.get(option, option): options.pop(option) for option in [*options] if option in known}
        if given:
            found[name] = kind(**given)
    return options | found
