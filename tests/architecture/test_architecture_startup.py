"""A library is imported and a command is started many times a day: neither pays for what it does not use.

What counts is which modules are loaded, not how long it takes: that is the same on every machine.
"""

import dataclasses
import inspect
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from ricordo import Scope, lazy

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
    "ricordo.extraction.rules", "ricordo.jobs.tasks", "ricordo.messages.formats", "ricordo.importers",
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
_REMEMBER = '"--root", "root", "remember", "The service runs in Frankfurt.", "--tag", "service"'
_LIST = '"--root", "root", "memory", "list", "--limit", "5", "--kind", "fact", "--newer-than", "7d", "--json"'
_CONTEXT = '"context", "--root", "root", "--budget", "500"'
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
        (_COMMAND.format(arguments=_REMEMBER), 128, HEAVY | RARE),
        (f"{_COMMAND.format(arguments=_REMEMBER)}\n{_COMMAND.format(arguments=_LIST)}", 129, HEAVY | RARE),
        (f"{_COMMAND.format(arguments=_REMEMBER)}\n{_COMMAND.format(arguments=_CONTEXT)}", 132, HEAVY | RARE),
        (_LIBRARY_USE, 126, _LIBRARIES | RARE | {"typer", "ricordo.cli"}),
    ],
    ids=["version", "remember", "list", "context", "library"],
)
def test_everyday_processes_load_few_modules(code: str, most: int, unwanted: set[str], tmp_path: Path) -> None:
    """The bound is a ratchet: lower it when fewer modules are loaded, and raise it for nothing that could wait."""
    loaded = _loaded(code, tmp_path)
    assert {name for name in loaded if any(name == each or name.startswith(f"{each}.") for each in unwanted)} == set()
    assert len([name for name in loaded if name.startswith("ricordo.")]) <= most


def test_the_measure_sees_what_is_loaded(tmp_path: Path) -> None:
    assert _loaded("import yaml", tmp_path) & HEAVY == {"yaml"}


def _make_class(decorate: Callable[..., Any]) -> Any:
    @decorate(frozen=True, kw_only=True)
    class Place:
        name: str
        floors: tuple[int, ...] = (1, 2)
        notes: list[str] = dataclasses.field(default_factory=list, compare=False)
        key: str = dataclasses.field(default="", repr=False)
        size: int = dataclasses.field(default=3, init=False)

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("a place has a name")

    @decorate(frozen=True, kw_only=True)
    class House(Place):
        rooms: int = 1

    @decorate
    class Cursor:
        line: int
        column: int = 0

    return Place, House, Cursor


def _describe(act: Callable[[], object]) -> object:
    try:
        return act()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "act",
    [
        lambda place, house, cursor: [str(inspect.signature(each)) for each in (place, house, cursor)],
        lambda place, house, cursor: [get_type_hints(each.__init__) for each in (place, house, cursor)],
        lambda place, house, cursor: [repr(place(name="a", notes=["n"])), repr(house(name="a")), repr(cursor(1, 2))],
        lambda place, house, cursor: [place(name="a") == place(name="a", notes=["n"])],
        lambda place, house, cursor: [place(name="a") == house(name="a")],
        lambda place, house, cursor: [cursor(1) == cursor(1, 0), cursor(1) == cursor(2), cursor(1) == 1],
        lambda place, house, cursor: [hash(place(name="a")), hash(house(name="a", rooms=2))],
        lambda place, house, cursor: hash(cursor(1)),
        lambda place, house, cursor: place(),
        lambda place, house, cursor: place("a"),
        lambda place, house, cursor: place(name=""),
        lambda place, house, cursor: setattr(place(name="a"), "name", "b"),
        lambda place, house, cursor: setattr(house(name="a"), "other", "b"),
        lambda place, house, cursor: delattr(house(name="a"), "rooms"),
        lambda place, house, cursor: setattr(type("Own", (place,), {})(name="a"), "other", "b"),
        lambda place, house, cursor: setattr(type("Own", (place,), {})(name="a"), "key", "b"),
        lambda place, house, cursor: dataclasses.asdict(dataclasses.replace(house(name="a"), rooms=4)),
        lambda place, house, cursor: place(name="a").notes is place(name="a").notes,
        lambda place, house, cursor: dataclasses.dataclass(type("Open", (place,), {})),
        lambda place, house, cursor: dataclasses.dataclass(frozen=True)(type("Closed", (house,), {})).__name__,
        lambda place, house, cursor: [each.__match_args__ for each in (place, house, cursor)],
    ],
)  # fmt: skip
def test_a_lazy_dataclass_acts_as_a_standard_one(act: Callable[..., object]) -> None:
    lazy_classes, standard_classes = _make_class(lazy.dataclass), _make_class(dataclasses.dataclass)
    assert _describe(lambda: act(*lazy_classes)) == _describe(lambda: act(*standard_classes))


def test_a_lazy_dataclass_compiles_a_method_once_and_only_when_it_is_used() -> None:
    place, _, _ = _make_class(lazy.dataclass)
    methods = ("__init__", "__repr__", "__eq__", "__hash__")
    assert not any(inspect.isfunction(vars(place)[name]) for name in methods)
    first = place(name="a")
    assert [name for name in methods if inspect.isfunction(vars(place)[name])] == ["__init__"]
    compiled = vars(place)["__init__"]
    assert place(name="a") == first
    assert vars(place)["__init__"] is compiled
    assert pickle.loads(pickle.dumps(Scope(user="me"))) == Scope(user="me")


# Modules that the process of a hook must not load where it only hands something over: each costs milliseconds.
_COSTLY_FOR_HOOKS = {
    "anyio", "argparse", "ast", "asyncio", "dataclasses", "datetime", "email", "inspect", "logging", "pathlib",
    "platformdirs", "random", "shutil", "sqlite3", "subprocess", "tempfile", "threading", "tomllib", "typer", "urllib",
}  # fmt: skip


@pytest.mark.parametrize("event", ["Stop", "SessionEnd", "PreCompact", "SessionStart"])
def test_a_hook_loads_next_to_nothing(event: str, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text("{}\n", encoding="utf-8")
    given = {"session_id": "one", "cwd": str(tmp_path), "transcript_path": str(tmp_path / "talk.jsonl")}
    command = [sys.executable, "-X", "importtime", "-m", "ricordo", "hook", "claude-code", event]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "ricordo.hooks.spool" in loaded
    assert loaded & (HEAVY | _COSTLY_FOR_HOOKS) == set()
    assert len([name for name in loaded if name.startswith("ricordo")]) <= 18
    assert len(loaded) <= 95
