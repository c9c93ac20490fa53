"""Whether hooks are on, and whether a hook may start a worker; read without loading the settings.

RICORDO_HOOKS wins over the user's own config.toml. A root can't switch them on: its config.toml is read later, by the
process that opens it.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Switches", "read_switches"]


_OFF_WORDS = frozenset({"false", "off", "no", "0"})
_ON_WORDS = frozenset({"true", "on", "yes", "1"})
_MAX_BYTES = 256 * 1024


class Switches(NamedTuple):
    """Whether hooks are on, and whether a worker may be started."""

    is_on: bool = True
    starts_worker: bool = False


def read_switches(data: str, environment: "Mapping[str, str]") -> Switches:
    """Return the switches for the user with the data folder `data`. A config.toml that can't be used says nothing."""
    table = _read_table(os.path.join(data, "config.toml"))
    hooks = environment.get("RICORDO_HOOKS", "").strip().lower()
    worker = environment.get("RICORDO_HOOKS__WORKER", "").strip().lower()
    is_on = hooks not in _OFF_WORDS if hooks else table is not False
    starts_worker = worker in _ON_WORDS if worker else isinstance(table, dict) and table.get("worker") is True
    return Switches(is_on=is_on, starts_worker=is_on and starts_worker)


def _read_table(path: str) -> object:
    """Return the value of `hooks` in a file of settings, None if it has none."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES)
        if b"hooks" not in data:
            return None
        # most files of settings do not name hooks, and the parser costs as much as the rest of a hook
        import tomllib

        return tomllib.loads(data.decode("utf-8")).get("hooks")
    except (OSError, ValueError, RecursionError):
        return None
