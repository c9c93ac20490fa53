"""Whatever a file of a root holds, every operation gives an answer or an error of Ricordo."""

import ast
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import copytree

import pytest

from agents_at_work import SCOPE, settings
from hand_made_roots import begun
from ricordo import HarnessAgent, Memory, Message, Scope
from ricordo.errors import InvalidEntry, RicordoError
from ricordo.messages import Text
from source_tree import PACKAGE

pytestmark = pytest.mark.anyio

SURROGATE = "a\ud800b"
DAMAGE: Mapping[str, bytes] = {
    "nested arrays": b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "null": b"null",
    "a list": b"[1]",
    "bytes": bytes(range(256)),
    "nothing": b"",
    "an infinite number": b'{"at": 1e999, "id": NaN}',
}
READERS = frozenset({"messages/json_text.py", "workspace/profile.py", "importers/records.py"})
"""Who reads JSON of people or other programs in a way of their own; what they raise is theirs too."""


def said(*texts: str) -> list[Message]:
    return [Message(role="user", parts=(Text(text=text),)) for text in texts]


@pytest.fixture(scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> Path:
    """Return a root that has a file of every kind."""
    root = tmp_path_factory.mktemp("whole") / "r"
    given = settings(root, consolidates=True)
    async with Memory.open(root, scope=SCOPE, settings=given) as memory:
        kept = await memory.remember("We use uv.")
        await memory.remember("Long " * 1200)
        await memory.ingest(said("Nadia owns staging."), session="imported")
        await memory.profile().add_fact("Likes tea.")
        await memory.mark_used(kept.id)
        gone = await memory.remember("Soon gone.")
        await memory.forget(gone.id)
    async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=given, session="s") as agent:
        await agent.send("My name is Mira.")
        await agent.consolidate(deep=True)
        await agent.compact()
    return root


def documents(root: Path) -> list[Path]:
    """Return the files that can be damaged, without databases, contents under their digest, and locks."""
    files = (path.relative_to(root) for path in sorted(root.rglob("*")) if path.is_file())
    return [
        path for path in files if path.suffix not in {".db", ".z", ".db-wal", ".db-shm"} and path.parts[0] != "locks"
    ]


async def trouble(root: Path) -> AsyncIterator[str]:
    """Do everything that reads or writes a file, and yield what failed otherwise than by an error of Ricordo."""
    given = settings(root, consolidates=True)

    async def bare(act: Callable[[], Awaitable[object]]) -> str:
        try:
            await act()
        except RicordoError:
            return ""
        except Exception as error:  # noqa: BLE001 - which ones there are is what is asked
            return f"{type(error).__name__}: {error}"
        return ""

    async def memory_acts() -> None:
        async with Memory.open(root, scope=SCOPE, settings=given) as memory:
            curation = memory._workspace.curation
            assert curation is not None
            acts: Sequence[Callable[[], Awaitable[object]]] = (
                lambda: memory.recall("uv"), lambda: memory.search("staging"), lambda: memory.answer("Who owns it?"),
                memory.preamble, memory.entries, memory.history, memory.background_runs, memory.doctor, memory.sessions,
                lambda: memory.session("imported"), memory.profile().show, lambda: memory.profile().add_fact("Tea."),
                lambda: memory.remember("Paul owns billing."), lambda: memory.ingest(said("Zoe."), session="imported"),
                memory.undo, lambda: curation.run(force=True), lambda: curation.run(force=True, deep=True),
            )  # fmt: skip
            found.extend([told for act in acts if (told := await bare(act))])

    async def agent_acts() -> None:
        async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=given, session="s") as agent:
            found.extend([told for act in (lambda: agent.send("Where?"), agent.compact) if (told := await bare(act))])

    found: list[str] = []
    found += [await bare(memory_acts), await bare(agent_acts)]
    for told in filter(None, found):
        yield told


async def found_in(whole: Path, folder: Path, paths: Sequence[Path], damage: bytes | None) -> list[str]:
    root = folder / "r"
    copytree(whole, root)
    begun(root, root.parent / "data")
    for path in paths:
        target = root / path
        if damage is None:
            target.unlink()
            target.mkdir()
        else:
            target.write_bytes(damage)
    return [told async for told in trouble(root)]


@pytest.mark.req("DF-B14")
@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_to_all_machine_written_files_ends_in_answers_or_errors_of_ricordo(
    whole: Path, tmp_path: Path, damage: str
) -> None:
    own = {"project.json", "guard.key", "config.toml", ".gitignore"}
    machine = {".json", ".jsonl", ""}
    paths = [path for path in documents(whole) if path.suffix in machine and path.name not in own]
    assert {path.parts[2] for path in paths if path.parts[:2] == ("users", "me")} >= {"history", "workspace"}
    assert await found_in(whole, tmp_path, paths, DAMAGE[damage]) == []


@pytest.mark.req("DF-B14")
@pytest.mark.soak
async def test_damage_to_any_one_file_ends_in_answers_or_errors_of_ricordo(whole: Path, tmp_path: Path) -> None:
    found = {}
    for number, path in enumerate(documents(whole)):
        for name, damage in [*DAMAGE.items(), ("a folder", None)]:
            if told := await found_in(whole, tmp_path / f"{number}-{name}", [path], damage):
                found[f"{path}: {name}"] = told
    assert found == {}


def test_json_of_files_is_read_at_one_place() -> None:
    """What reads it elsewhere meets an error that nobody expects: JSON that is nested too deeply."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        name, code = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(code)) if "loads" in code else ():
            if isinstance(node, ast.Attribute) and node.attr == "loads" and ast.unparse(node.value) == "json":
                found.add(name)
    ours = {"cli/commands/demo.py", "agent/tools/line_search.py", "hooks/install/json_text.py"}
    # a hook starts for each prompt of a coding agent, and loads nothing but the standard library
    ours |= {f"hooks/{name}.py" for name in ("entry", "link", "log", "spool")}
    assert {name for name in found - ours if not name.startswith("testing/")} == READERS


async def test_a_lone_surrogate_is_kept_or_refused_wherever_it_stands(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=SCOPE, settings=settings(tmp_path / "r")) as memory:
        saved = await memory.remember(f"Content {SURROGATE}.", kind=SURROGATE, tags=[SURROGATE])
        assert (await memory.entry(saved.id)).tags == (SURROGATE,)
        assert [hit.entry.id for hit in await memory.recall("content", tags=[SURROGATE])] == [saved.id]
        assert [hit.entry.id for hit in await memory.recall("content", kinds=[SURROGATE])] == [saved.id]
        await memory.recall(SURROGATE)
        await memory.remember("It holds everywhere.", scope=Scope(user="me"), reason=SURROGATE)
        await memory.forget(saved.id, reason=SURROGATE)
        assert (await memory.history(limit=1))[0].reason == SURROGATE
        await memory.undo()
        assert (await memory.entry(saved.id)).content == f"Content {SURROGATE}."
        with suppress(RicordoError):
            await memory.ingest(said(f"Nadia {SURROGATE} owns it."), session=SURROGATE)


@pytest.mark.req("HE-A6")
@pytest.mark.parametrize("content", ["\u200b", "\ufeff \u2060\n", "\u3164\u2800", "\u00ad\u034f\ufe0f", "\x00\x1b"])
async def test_content_that_shows_nothing_is_refused(tmp_path: Path, content: str) -> None:
    async with Memory.open(tmp_path / "r", scope=SCOPE, settings=settings(tmp_path / "r")) as memory:
        with pytest.raises(InvalidEntry, match="can be seen"):
            await memory.remember(content)
        with pytest.raises(RicordoError):
            await memory.profile().add_fact(content)
        assert (await memory.remember(f"{content}é")).content == f"{content}é"
