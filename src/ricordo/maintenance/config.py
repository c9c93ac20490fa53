"""Settings of maintenance: how often it runs, and when what is old leaves the workspace."""

from dataclasses import dataclass
from datetime import timedelta

from ricordo.errors import InvalidSetting

__all__ = ["MaintenanceConfig"]

_MAX_INTERVAL = timedelta(days=3_660)


@dataclass(frozen=True, kw_only=True)
class MaintenanceConfig:
    """When a root is maintained; the names and the first three defaults are AgentScope's.

    A cycle runs every `interval`, whoever is alive then. A ledger that is older than `daily_file_retention_days`
    goes to the archive, once all of it is consolidated. The file of a session that ended more than
    `session_retention_days` ago goes to the trash, `announce_days` after that was announced, and is deleted
    `trash_days` later. None keeps for ever. Transcripts stay.
    """

    interval: timedelta = timedelta(hours=6)
    daily_file_retention_days: int | None = 90
    session_retention_days: int | None = 180
    announce_days: int = 7
    trash_days: int | None = 30

    def __post_init__(self) -> None:
        """Raise InvalidSetting for an interval or a retention that is not above 0."""
        if not isinstance(self.interval, timedelta) or not timedelta(0) < self.interval <= _MAX_INTERVAL:
            raise InvalidSetting(f"interval is a timedelta above 0 and of at most ten years, not {self.interval!r}.")
        for name in ("daily_file_retention_days", "session_retention_days", "trash_days"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidSetting(f"{name} is a number of at least 1, or none to keep for ever, not {value}.")
        if self.announce_days < 0:
            raise InvalidSetting(f"announce_days is a number of at least 0, not {self.announce_days}.")
