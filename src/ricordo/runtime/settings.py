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
    `cache` (RICORDO_CACHE) the indexes of roots that can't be written to. `index` (RICORDO_INDEX) is a folder for the
    indexes of all roots, one below it for each; without it an index lies in its root, beside the workspace.
    """

    root: Path | None
    user: str
    data: Path
    cache: Path
    index: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Read the settings from `environment`, by default the process's own."""
        given = os.environ if environment is None else environment
        root, index = given.get("RICORDO_ROOT"), given.get("RICORDO_INDEX")
        return cls(
            root=Path(root) if root else None,
            user=given.get("RICORDO_USER") or _login(),
            data=Path(given.get("RICORDO_DATA") or platformdirs.user_data_path("ricordo")),
            cache=Path(given.get("RICORDO_CACHE") or platformdirs.user_cache_path("ricordo")),
            index=Path(index) if index else None,
        )


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "user"
