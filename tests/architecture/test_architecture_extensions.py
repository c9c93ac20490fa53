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
                action = "shout"

                def __init__(self, config: ShoutConfig) -> None:
                    self._config = config

                @classmethod
                def create(cls, config: ShoutConfig, context: StrategyContext) -> "Shout":
                    return cls(config)

                async def reduce(self, window: Window) -> Reduction:
                    messages = [replace(each, parts=(Text(text=each.text.upper()),)) for each in window.messages]
                    return changed_reduction(self.action, window, messages, "it is asked for")
            ''',
    },
    lines=(
        (
            "context/strategies/__init__.py",
            "    compaction: CompactionConfig | None\n",
            "    shout: Annotated[ShoutConfig | None, 'shout.Shout']\n",
        ),
        (
            "context/strategies/__init__.py",
            "from ricordo.errors import InvalidSetting\n",
            "from ricordo.context.strategies.shout import ShoutConfig\n",
        ),
    ),
    use="""
        from pathlib import Path
        from ricordo import HarnessAgent, Scope, SubAgent
        from ricordo.context.strategies.shout import ShoutConfig
        from ricordo.errors import InvalidSetting
        from ricordo.runtime import Settings
        from ricordo.runtime.settings import list_settings
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
LANGUAGE = Addition(
    files={
        "language/packs/eo.py": '''
            """Esperanto."""

            from ricordo.language.packs import LanguagePack

            __all__ = ["PACK"]


            PACK = LanguagePack(
                code="eo",
                name="Esperanto",
                letters="ĉĝĥĵŝŭ",
                words={"stop": "la kaj ni mi por", "function": "la kaj ni mi por estas", "ending": "ojn oj o"},
                tables={
                    "month": "3 = marto; 5 = majo",
                    "day": "0 = hodiaŭ; 1 = morgaŭ",
                    "unit": "week = semajnoj",
                    "number": "2 = du",
                    "distance_lead": "-1 = antaŭ",
                },
                phrases={
                    "password_name": "pasvorto",
                    "secret_copula": "estas",
                    "negation": "ne|neniam",
                    "question_opening": "kie|kiu|kio",
                    "remember_verb": "memoru",
                    "remember_that": "ke",
                },
                cues={"decision": "(?:ni|mi) (?:decidis|elektis)", "preference": "mi preferas", "self": "(?:mi|ni)"},
                signals={"preference": "mi (?:tre )?preferas"},
                denied="ne",
            )
            ''',
    },
    lines=(
        (
            "language/packs/__init__.py",
            '    "en", "de", "fr", "es", "it", "pt", "zh", "ja", "ko", "ru", "ar", "hi",\n',
            '    "eo",\n',
        ),
    ),
    use="""
        from datetime import date
        from ricordo.extraction.grounding import contains_credential
        from ricordo.extraction.rules import extract
        from ricordo.language import content_words, detect_acts, detect_language, find_dates
        from ricordo.language.duplicates import is_same_statement
        from ricordo.language.acts import default_detector
        from ricordo.messages import Message, Text
        from ricordo.models.offline import extract_remember_request, is_question

        async def use():
            said = "Ni decidis uzi MariaDB por la mendoj."
            found = extract([Message(role="user", parts=(Text(text=said),))])
            dates = find_dates("La tago estas 7 majo, morgaŭ aŭ antaŭ du semajnoj.", date(2024, 5, 15))
            return {
                "language": detect_language(said),
                "acts": sorted(detect_acts(said)),
                "findings": [[each.kind, each.content] for each in found],
                "signals": sorted(default_detector().detect("Mi preferas kafon.")),
                "denied": sorted(default_detector().detect("Ne mi preferas kafon.")),
                "dates": [each.iso for each in dates],
                "words": content_words("la mendoj kaj la mendo"),
                "same": is_same_statement("La servilo uzas TLS en Oslo.", "La servilo neniam uzas TLS en Oslo."),
                "question": is_question("Kie ni deplojas"),
                "request": extract_remember_request("Memoru ke la pordo estas ruĝa."),
                "secret": contains_credential("La pasvorto estas kafo7!kato"),
            }
        """,
    found={
        "language": "eo",
        "acts": ["decision", "self"],
        "findings": [["decision", "User: Ni decidis uzi MariaDB por la mendoj."]],
        "signals": ["preference"],
        "denied": [],
        "dates": ["2024-05-07", "2024-05-16", "2024-04-29 to 2024-05-05"],
        "words": ["mend", "mend"],
        "same": False,
        "question": True,
        "request": "la pordo estas ruĝa.",
        "secret": True,
    },
)
IMPORTER = Addition(
    files={
        "importers/diary.py": """
            "Reads diaries: lines with a day and a text, and what the writer wants to keep."

            from ricordo.importers import ImportedMemory, ImportedMessage
            from ricordo.messages import Message, Text


            def recognizes(source):
                return any(isinstance(each.value, dict) and "day" in each.value for each in source.first_records)


            def read(source):
                for record in source.records():
                    match record.value:
                        case {"day": day, "text": text}:
                            message = Message(role="user", parts=(Text(text=text),))
                            yield ImportedMessage(session=day, message=message, line=record.line)
                        case {"keep": text}:
                            yield ImportedMemory(text=text, line=record.line)
                        case _:
                            source.report(record.line, "This is no part of a diary.")
            """,
    },
    lines=(
        (
            "importers/registry.py",
            "_BUILT_IN: Mapping[str, tuple[str, str]] = {\n",
            '    "diary": ("diary", "a diary"),\n',
        ),
    ),
    use="""
        from pathlib import Path
        from ricordo import read_history
        from ricordo.importers import ImportSource, find_sources, read_items

        async def use():
            lines = ['{"day": "mon", "text": "It rained."}', '{"keep": "Seeds are in the shed."}', '{"dya": "tue"}']
            Path("diary.jsonl").write_text("\\n".join(lines))
            problems = []
            [found] = find_sources(ImportSource(Path("diary.jsonl"), on_problem=problems.append))
            return {
                "messages": [(each.session, each.message.text) for each in read_history(Path("."), on_problem=print)],
                "memories": [each.text for each in read_items(found.source, found.form) if hasattr(each, "text")],
                "problems": [[each.line, each.reason] for each in problems],
            }
        """,
    found={
        "messages": [["mon", "It rained."]],
        "memories": ["Seeds are in the shed."],
        "problems": [[3, "This is no part of a diary."]],
    },
)
STORE = Addition(
    files={
        "stores/shelf.py": """
            "A store that is a list, as an example."

            from contextlib import asynccontextmanager

            from ricordo.stores.in_memory import MockStore


            @asynccontextmanager
            async def open_shelf(opening):
                yield MockStore(opening.parts, opening.scope)
            """,
    },
    lines=(
        (
            "stores/addresses.py",
            '    "markdown": BuiltInStore(import_path="markdown:open_markdown", description="one Markdown file"),\n',
            '    "shelf": BuiltInStore(import_path="shelf:open_shelf", description="a shelf", has_folder=False),\n',
        ),
    ),
    use="""
        from ricordo import Entry, Scope
        from ricordo.runtime import Settings, open_store
        from ricordo.runtime.stores import list_schemes

        async def use():
            settings = Settings.load(None, {"RICORDO_STORE": "shelf:top"})
            async with open_store(settings.store, scope=Scope(user="me")) as store:
                await store.save(Entry(content="The atlas stands on top."))
                found = [hit.entry.content for hit in await store.recall("atlas", limit=1)]
            return found, [each.description for each in list_schemes() if each.name == "shelf"]
        """,
    found=[["The atlas stands on top."], ["a shelf"]],
)
COMMAND = Addition(
    files={
        "cli/commands/greet.py": """
            "The command greet."


            def greet(name: str) -> None:
                "Greet somebody."
                print(f"Hello {name}.")
            """,
    },
    lines=(("cli/application.py", '    "demo": "demo:demo",\n', '    "greet": "greet:greet",\n'),),
    use="""
        from ricordo.cli.application import app
        from typer.testing import CliRunner

        async def use():
            done, shown = (CliRunner().invoke(app, words).output for words in (["greet", "Ada"], ["--help"]))
            return done.strip(), [" ".join(line.split()) for line in shown.splitlines() if "greet" in line]
        """,
    found=["Hello Ada.", ["greet Greet somebody."]],
)
CUE = Addition(
    files={},
    lines=(("language/packs/en.py", "^(?:many|big|huge) thanks\n", "^much obliged\n"),),
    use="""
        from ricordo.language import detect_acts

        async def use():
            return sorted(detect_acts("Much obliged for the hint.", "en"))
        """,
    found=["thanks"],
)
PROVIDER = Addition(
    files={
        "models/echo.py": """
            "A provider of models that say what they are told."

            from ricordo.messages import Message, Text
            from ricordo.models.contract import Reply
            from ricordo.models.wrappers import WholeReplies


            class EchoModel(WholeReplies):
                window = None

                def __init__(self, name):
                    self.name = name

                async def complete(self, messages, *, tools=(), schema=None):
                    said = [each.text for each in messages if each.role == "user"]
                    return Reply(message=Message(role="assistant", parts=(Text(text=said[0]),)))
            """,
    },
    lines=(
        (
            "models/provider.py",
            '        raise InvalidSetting("The timeout of a model is above 0.")\n',
            '    if name.startswith("echo:"):\n'
            "        from ricordo.models.echo import EchoModel\n"
            "        return EchoModel(name)\n",
        ),
    ),
    use="""
        from pathlib import Path
        from ricordo import HarnessAgent, Scope

        async def use():
            async with HarnessAgent("echo:loud", scope=Scope(user="me"), memory=Path("echoed")) as agent:
                return str(await agent.send("Is anybody there?"))
        """,
    found="Is anybody there?",
)
EMBEDDER = Addition(
    files={
        "models/embedders/letters.py": """
            "An embedder that counts letters."

            import numpy as np


            class LettersEmbedder:
                dimension, model_id = 2, "letters"

                async def embed(self, texts):
                    return np.array([[text.count("a"), text.count("b")] for text in texts], dtype=np.float32)
            """,
    },
    lines=(
        (
            "models/embedders/__init__.py",
            '    "hashing": "static:HashingEmbedder",\n',
            '    "letters": "letters:LettersEmbedder",\n',
        ),
    ),
    use="""
        from ricordo.models.embedders import load_embedder

        async def use():
            return (await load_embedder("letters").embed(["abba", "a"])).tolist()
        """,
    found=[[2.0, 2.0], [1.0, 0.0]],
)
ADDITIONS = {
    "importer": IMPORTER,
    "store": STORE,
    "compaction strategy": STRATEGY,
    "human language": LANGUAGE,
    "command": COMMAND,
    "cue": CUE,
    "provider": PROVIDER,
    "embedder": EMBEDDER,
}


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
