"""What is added to Ricordo stands in a file of its own and one line of a registry.

Each kind of extension is added to a copy of the source, and used there as its user would use it.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from source_tree import ROOT

SOURCE = ROOT / "src" / "ricordo"
MOST_FILES = 2


@dataclass(frozen=True, kw_only=True)
class Addition:
    """New files by path, lines to add after a line of a registry, and code that prints what came of it as JSON."""

    files: dict[str, str]
    lines: tuple[tuple[str, str, str], ...] = field(default=())
    use: str
    found: object

    @property
    def touched(self) -> set[str]:
        """The source files that are new or changed."""
        return {*self.files, *(path for path, _, _ in self.lines)}


STRATEGY = Addition(
    files={
        "context/strategies/shout.py": '''
            """Shout: writes the texts of a person in capitals."""

            from dataclasses import dataclass, replace

            from ricordo.context.contract import Reduction, StrategyContext, Window
            from ricordo.context.plan import changed_reduction
            from ricordo.errors import InvalidSetting
            from ricordo.messages import Text


            @dataclass(frozen=True, kw_only=True)
            class ShoutConfig:
                """A text of at least `least_chars` characters is shouted."""

                least_chars: int = 1

                def __post_init__(self) -> None:
                    if self.least_chars < 0:
                        raise InvalidSetting("least_chars is at least 0.")

                @classmethod
                def recommended(cls, window: int | None) -> "ShoutConfig":
                    return cls()


            class Shout:
                act = "shout"

                def __init__(self, config: ShoutConfig) -> None:
                    self._config = config

                @classmethod
                def create(cls, config: ShoutConfig, context: StrategyContext) -> "Shout":
                    return cls(config)

                async def reduce(self, window: Window) -> Reduction:
                    messages = [replace(each, parts=(Text(text=each.text.upper()),)) for each in window.messages]
                    return changed_reduction(self.act, window, messages, "it is asked for")
            ''',
    },
    lines=(
        (
            "context/strategies/__init__.py",
            "    compaction: CompactionConfig | None\n",
            "    shout: Annotated[ShoutConfig | None, Shout.create]\n",
        ),
        (
            "context/strategies/__init__.py",
            "from ricordo.context.strategies.evict import EvictResults\n",
            "from ricordo.context.strategies.shout import Shout, ShoutConfig\n",
        ),
    ),
    use="""
        from pathlib import Path
        from ricordo import HarnessAgent, Scope, SubAgent
        from ricordo.context.strategies.shout import ShoutConfig
        from ricordo.errors import InvalidSetting
        from ricordo.runtime import Settings
        from ricordo.runtime.settings_list import list_settings
        from ricordo.testing import Say, ScriptedModel

        async def ask(make, **options):
            model, stages = ScriptedModel([Say("Yes.")]), []
            def note(event):
                stages.append(event.stage)
            async with make(model, memory=Path("root"), scope=Scope(user="me"), on_event=note, **options) as agent:
                await agent.send("hello")
            return [each.text for each in model.requests[0].messages if each.role == "user"], "shout" in stages

        async def use():
            settings = Settings.load(None, {"RICORDO_SHOUT__LEAST_CHARS": "3"})
            try:
                Settings.load(None, {"RICORDO_SHOUT__LEAST_CHARS": "-3"})
            except InvalidSetting as error:
                refused = str(error)
            return {
                "given": await ask(HarnessAgent, shout=ShoutConfig()),
                "off": await ask(HarnessAgent),
                "recommended": await ask(HarnessAgent.with_recommended_settings),
                "setting": settings.reductions["shout"].least_chars,
                "shown": [row.key for row in list_settings(settings) if row.key.startswith("shout")],
                "refused": refused,
                "sub-agent": SubAgent(name="a", description="b", reductions={"shout": None}).reductions["shout"],
            }
        """,
    found={
        "given": [["HELLO"], True],
        "off": [["hello"], False],
        "recommended": [["HELLO"], True],
        "setting": 3,
        "shown": ["shout", "shout.least_chars"],
        "refused": "RICORDO_SHOUT__LEAST_CHARS: shout.least_chars: least_chars is at least 0.",
        "sub-agent": None,
    },
)
ADDITIONS = {"compaction strategy": STRATEGY}


def _add(addition: Addition, package: Path) -> None:
    for name, text in addition.files.items():
        (package / name).write_text(dedent(text).lstrip(), encoding="utf-8")
    for name, before, line in addition.lines:
        text = (package / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{name} has no registry line to put the new one after"
        (package / name).write_text(text.replace(before, before + line), encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package that has every addition."""
    source = tmp_path_factory.mktemp("extended")
    # with the compiled files: they stay valid, and compiling all again would take seconds
    shutil.copytree(SOURCE, source / "ricordo")
    for addition in ADDITIONS.values():
        _add(addition, source / "ricordo")
    return source


@pytest.fixture(scope="module")
def used(extended: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what came of the use of each addition, in one process with the extended package."""
    code = ["import anyio, json, traceback", "found = {}"]
    for kind, addition in ADDITIONS.items():
        code += [dedent(addition.use), f"try:\n    found[{kind!r}] = anyio.run(use)"]
        code += [f"except Exception:\n    found[{kind!r}] = traceback.format_exc()"]
    code += ["print(json.dumps(found))"]
    place = tmp_path_factory.mktemp("used")
    environment = os.environ | {"PYTHONPATH": str(extended), "RICORDO_DATA": str(place / "data")}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, cwd=place, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return read


@pytest.mark.parametrize("kind", ADDITIONS)
def test_an_extension_takes_a_file_and_one_registry_and_is_used_like_those_that_are_there(
    kind: str, used: dict[str, Any]
) -> None:
    assert used[kind] == ADDITIONS[kind].found
    assert len(ADDITIONS[kind].touched) <= MOST_FILES
