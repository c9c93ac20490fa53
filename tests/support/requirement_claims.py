"""Collect what tests claim with `@pytest.mark.req(...)`, in one process or in many workers.

A claim travels as a user property of the test's report, the one channel that a worker and a single process share, so
the counting happens once, where the run is reported.
"""

from pathlib import Path

import pytest

from requirements import Claims, load_rows, render_table, report, write_report

__all__ = ["CLAIM_PROPERTY", "ClaimReporter", "attach_claims"]

CLAIM_PROPERTY = "req"


def attach_claims(items: list[pytest.Item]) -> None:
    """Write the ids that each test claims onto its reports."""
    for item in items:
        for mark in item.iter_markers("req"):
            item.user_properties.extend((CLAIM_PROPERTY, name) for name in mark.args)


class ClaimReporter:
    """Count the claims of a run, write the report file, and print the table at the end."""

    def __init__(self, *, requirements: Path, target: Path) -> None:
        """Read the rows of `requirements`; the report goes to `target`."""
        self._rows = load_rows(requirements)
        self._target = target
        self._claims = Claims()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in one phase of a test; only the call itself can prove anything, every phase can disprove it."""
        ids = [str(value) for name, value in report.user_properties if name == CLAIM_PROPERTY]
        if ids and (report.when == "call" or report.outcome != "passed"):
            self._claims.record(ids, outcome=report.outcome)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, and say where the lists of ids are."""
        write_report(self._target, self._rows, self._claims)
        terminalreporter.section("requirements")
        terminalreporter.write_line(render_table(self._rows, report(self._rows, self._claims)["passing"]))
        terminalreporter.write_line(f"ids: {self._target}")
