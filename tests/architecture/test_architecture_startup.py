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

# Rooms and files that only learning, maintenance, agents and rare commands need.
RARE = {
    "ricordo.adapters", "ricordo.agent", "ricordo.context.strategies.summarize", "ricordo.context.summary",
    "ricordo.curation.consolidator", "ricordo.curation.profile", "ricordo.curation.undo", "ricordo.extraction.flusher",
    "ricordo.extraction.rules", "ricordo.jobs.tasks", "ricordo.messages.formats", "ricordo.messages.importers",
    "ricordo.models.provider", "ricordo.models.wrappers", "ricordo.runtime.doctor", "ricordo.runtime.maintenance",
    "ricordo.search.answer", "ricordo.search.vector_search", "ricordo.testing",
}  # fmt: skip
_LIBRARIES = HEAVY - {"numpy"}

_COMMAND = """
import sys
sys.argv = ["ricordo", {arguments}]
from ricordo.cli.main import run
try:
    run()
except SystemExit as stop:
    assert not stop.code, stop.code
"""
_HELP = _COMMAND.format(arguments='"--help"')
_LIBRARY_USE = """
import anyio
from ricordo import Memory, Scope
async def main():
    async with Memory.open("root", scope=Scope(user="me", project="shop"), embedder="none") as memory:
        await memory.remember("The service runs in Frankfurt.")
        assert await memory.recall("Where does the service run?")
        assert await memory.preamble()
anyio.run(main)
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


@pytest.mark.parametrize(
    ("code", "most", "unwanted"),
    [
        (_COMMAND.format(arguments='"--version"'), 10, HEAVY_FOR_HELP | RARE),
        (_COMMAND.format(arguments='"remember", "The service runs in Frankfurt."'), 145, HEAVY | RARE),
        (_LIBRARY_USE, 138, _LIBRARIES | RARE | {"typer", "ricordo.cli"}),
    ],
    ids=["version", "remember", "library"],
)
def test_everyday_processes_load_few_modules(code: str, most: int, unwanted: set[str], tmp_path: Path) -> None:
    """The bound is a ratchet: lower it when fewer modules are loaded, and raise it for nothing that could wait."""
    loaded = _loaded(code, tmp_path)
    assert {name for name in loaded if any(name == each or name.startswith(f"{each}.") for each in unwanted)} == set()
    assert len([name for name in loaded if name.startswith("ricordo.")]) <= most


def test_the_measure_sees_what_is_loaded(tmp_path: Path) -> None:
    assert _loaded("import yaml", tmp_path) & HEAVY == {"yaml"}
