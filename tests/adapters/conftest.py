"""The table of frameworks and what each withstands, which `make test-adapters` writes into the guide."""

import os
from pathlib import Path

import pytest

from framework_conformance import FRAMEWORK_PROPERTY, render_table
from source_tree import ROOT

_PAGE = ROOT / "docs/guide/frameworks.md"
_BEGIN, _END = "<!-- written by make test-adapters -->\n", "<!-- end -->\n"
_passed: dict[tuple[str, str], bool] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note which test passed with which framework; one with several examples passes with all of them."""
    framework = dict(report.user_properties).get(FRAMEWORK_PROPERTY)
    if framework is not None and (report.when == "call" or report.failed):
        name = report.nodeid.rpartition("::")[2].partition("[")[0]
        _passed[str(framework), name] = _passed.get((str(framework), name), True) and report.passed


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the table after a run of all frameworks."""
    is_worker = hasattr(session.config, "workerinput")
    if _passed and not is_worker and os.environ.get("RICORDO_ADAPTERS") == "required" and not _is_narrowed(session):
        _write(_PAGE, render_table(_passed))


def _is_narrowed(session: pytest.Session) -> bool:
    options = session.config.option
    return bool(options.keyword or options.lf or any("::" in each for each in session.config.args))


def _write(page: Path, table: str) -> None:
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    written = f"{before}{_BEGIN}\n{table}\n{_END}{after}"
    if written != text:
        page.write_text(written, encoding="utf-8")
