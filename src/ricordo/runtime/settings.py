"""Settings from the environment; no other file of Ricordo reads it."""

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

__all__ = ["Settings"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where memory lives and whose it is, when the caller does not say.

    `root` (RICORDO_ROOT) is the root to use instead of the one found from the working directory. `user`
    (RICORDO_USER) names the user, by default the login name. `data` (RICORDO_DATA) holds the users' own roots,
    `cache` (RICORDO_CACHE) the indexes of roots that can't be written to.
    """

    root: Path | None
    user: str
    data: Path
    cache: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Read the settings from `environment`, by default the process's own."""
        given = os.environ if environment is None else environment
        root = given.get("RICORDO_ROOT")
        return cls(
            root=Path(root) if root else None,
            user=given.get("RICORDO_USER") or _login(),
            data=Path(given.get("RICORDO_DATA") or platformdirs.user_data_path("ricordo")),
            cache=Path(given.get("RICORDO_CACHE") or platformdirs.user_cache_path("ricordo")),
        )


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "user"
