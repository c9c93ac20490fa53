"""Logged: a wrapper that tells a log what a strategy did, in numbers and never in content.

Invariant: it changes nothing; what the strategy hands back or raises comes through as it is.
"""

import logging

from ricordo.compaction.contract import Act, Reduction, Strategy, Window

__all__ = ["LoggingStrategy"]

_LEVELS = {"done": logging.INFO, "skipped": logging.DEBUG, "failed": logging.WARNING}


class LoggingStrategy:
    """Tells what another strategy did; see the module."""

    def __init__(self, strategy: Strategy, *, log: logging.Logger | None = None) -> None:
        """Tell `log`, by default `ricordo.compaction`: what was done as information, what failed as a warning.

        What was skipped is told for debugging.
        """
        self._strategy = strategy
        self._log = log or logging.getLogger("ricordo.compaction")

    @property
    def act(self) -> Act:
        """What the strategy does."""
        return self._strategy.act

    async def reduce(self, window: Window) -> Reduction:
        """Return what the strategy returns."""
        try:
            found = await self._strategy.reduce(window)
        except Exception as error:
            self._log.warning("%s: failed with %s", self.act, type(error).__name__)
            raise
        report = found.report
        self._log.log(
            _LEVELS[report.status],
            "%s: %s, %s; %d to %d messages, %d to %d tokens",
            report.act,
            report.status,
            report.reason or "no reason given",
            report.messages_before,
            report.messages_after,
            report.tokens_before,
            report.tokens_after,
        )
        return found
