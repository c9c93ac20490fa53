"""A library is imported and a command is started many times a day: neither pays for what it does not use.

What counts is which modules are loaded, not how long it takes: that is the same on every machine.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Loaded by nothing that only imports the package or asks for help.
HEAVY = {
    "httpx",
    "hypothesis",
    "numpy",
    "opentelemetry",
    "pydantic",
    "pydantic_ai",
    "pytest",
    "quicktok",
    "rich",
    "trio",
    "unittest",
    "yaml",
}
# The library never needs the command line; help never needs a database or an event loop.
HEAVY_FOR_LIBRARY = HEAVY | {"typer", "ricordo.cli"}
HEAVY_FOR_HELP = HEAVY | {"asyncio", "sqlite3"}

_HELP = """
import sys
sys.argv = ["ricordo", "--help"]
from ricordo.cli.main import run
try:
    run()
except SystemExit as stop:
    assert not stop.code, stop.code
"""


def _loaded(code: str, tmp_path: Path) -> set[str]:
    target = tmp_path / "modules.json"
    told = f"{code}\nimport json, sys\nopen({str(target)!r}, 'w').write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(target.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("code", "heavy"), [("import ricordo", HEAVY_FOR_LIBRARY), (_HELP, HEAVY_FOR_HELP)], ids=["import", "help"]
)
def test_starting_loads_nothing_heavy(code: str, heavy: set[str], tmp_path: Path) -> None:
    assert _loaded(code, tmp_path) & heavy == set()


def test_the_measure_sees_what_is_loaded(tmp_path: Path) -> None:
    assert _loaded("import yaml", tmp_path) & HEAVY == {"yaml"}
