"""A secret that a person wrote by hand into a file stays in that file, and reaches no index, prompt or tool result."""

import json
import random
import sqlite3
import string
from contextlib import closing
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from hand_made_roots import begun
from ricordo import BuiltinTools, HarnessAgent, Memory
from ricordo.agent import tool
from ricordo.guard import parse_fence
from ricordo.messages import Text, Tokens, estimate_text
from ricordo.runtime import open_store
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-SECRET")]

PASSWORD, TOKEN = "Kx93" + "mPq-77", "ghp_" + "a1B2c3D4e5F6" * 3
LINES = [f"The database password is {PASSWORD}.", f"We push the gondola with {TOKEN} always."]
KEY_LINES = ["".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=64)) for seed in range(3)]
BULLETS = "".join(f"- {line}\n" for line in LINES)
PROSE = "".join(f"{line}\n\n" for line in LINES)
FACTS = [{"id": f"fact_{at}", "content": line, "category": "knowledge"} for at, line in enumerate(LINES)]
SESSION = f"---\nsession: old\n---\n# 2026-05-13\n\n## Summary\n\n{PROSE}"
FILES = {
    "MEMORY.md": f"# Memory\n\n{BULLETS}",
    "memory/topics/database.md": f"---\nname: database\ndescription: {LINES[0]}\ntype: project\n---\n{BULLETS}",
    "memory/2026-01-02.md": f"# 2026-01-02\n\n{BULLETS}",
    "memory/archive/2025-01-02.md": f"# 2025-01-02\n\n{BULLETS}",
    "rules/house.md": PROSE,
    "profile.json": json.dumps({"version": "1.0", "facts": FACTS}, indent=1),
    "sessions/2026-05-13-09h47.md": SESSION,
    "plans/next.md": PROSE,
    "memories/gondola.md": PROSE,
    "notes.md": PROSE,
}


def written(root: Path, path: str) -> Path:
    place = begun(root, root.parent / "data") / "workspace" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(FILES[path], encoding="utf-8")
    return place


def holding(folder: Path) -> list[str]:
    """Return the files below a folder whose bytes hold one of the secrets."""
    wanted = [form for secret in (PASSWORD, TOKEN) for form in (secret.encode(), secret.lower().encode())]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(
        str(path.relative_to(folder)) for path in files if any(form in path.read_bytes().lower() for form in wanted)
    )


def assert_is_clean(text: str) -> None:
    assert PASSWORD not in text
    assert TOKEN not in text


@pytest.mark.req("FC-DOCTOR")
@pytest.mark.may_block("the test reads the database itself")
@pytest.mark.parametrize("path", FILES)
async def test_it_is_in_no_index_and_in_nothing_that_memory_returns(path: str, tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    place = written(root, path)
    async with Memory.open(root, scope=SCOPE) as memory:
        found = [await memory.recall("database password"), await memory.search("gondola push"), await memory.recall("")]
        shown = repr(found) + await memory.preamble() + repr(await memory.answer("What is the database password?"))
        assert_is_clean(shown)
        assert holding(tmp_path) == [str(place.relative_to(tmp_path))]
        (check,) = [each for each in await memory.doctor() if each.name.startswith("secrets") and not each.ok]
    assert f"workspace/{path}:" in check.detail
    assert_is_clean(check.detail)
    assert holding(tmp_path) == [str(place.relative_to(tmp_path))]
    assert place.read_text(encoding="utf-8") == FILES[path]


@tool
def deploy() -> list[Text]:
    """Deploy it."""
    return [Text(text=f"TOKEN={TOKEN}\n"), Text(text='{"password": "' + PASSWORD + '"}\n' + "\n".join(KEY_LINES))]


@pytest.mark.parametrize("options", [{}, {"incognito": True}, {"workspace": "read only"}])
async def test_what_a_tool_or_the_shell_returns_reaches_the_model_without_its_secrets(
    options: dict[str, object], tmp_path: Path
) -> None:
    async def yes(_: object) -> bool:
        return True

    root = tmp_path / ".ricordo"
    if options.pop("workspace", ""):
        begun(root, tmp_path / "data").joinpath("project.json").write_text("no marker")
    model = ScriptedModel([Call("deploy", {}), Call("shell", {"command": f"echo TOKEN={TOKEN}"}), Say("Done.")])
    given = {"settings": settings(root), "tools": [deploy], "shell": True, "approve": yes} | options
    async with HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given)) as agent:
        await agent.send("Deploy it.")
        has_shell = agent.is_recorded or "incognito" in options
    results = [each.text for message in model.requests[2].messages for each in message.tool_results]
    assert len(results) == 2
    assert_is_clean(repr(results))
    assert not any(line in results[0] for line in KEY_LINES)
    # without a root there is no shell
    assert [text.count("[secret:") for text in results if "no tool" not in text] == [3, 1][: 1 + has_shell]


@pytest.mark.may_block("the test reads the database itself")
async def test_no_request_of_an_agent_holds_one_whatever_it_opens(tmp_path: Path) -> None:
    root, folder = tmp_path / ".ricordo", tmp_path / "work"
    folder.mkdir()
    for path in FILES:
        written(root, path)
    for name in ("AGENTS.md", "settings.env"):
        (folder / name).write_text(PROSE)
    opened = [Call("read_file", {"path": f"/{path}"}) for path in FILES]
    opened += [Call("read_file", {"path": "settings.env"}), Call("grep_files", {"pattern": "password|push"})]
    opened += [Call("grep_files", {"pattern": "password|push", "path": "/"}), Call("recall", {"query": "database"})]
    opened += [Call("memory_get", {"path": "MEMORY.md"}), Call("memory_search", {"query": "gondola"})]
    opened += [Call("memory", {"command": "view", "path": "/memories/gondola.md"})]
    model = ScriptedModel([*opened[:8], Say("Half."), *opened[8:], Say("Done.")])
    async with HarnessAgent(
        model,
        memory=root,
        scope=SCOPE,
        session="s",
        settings=settings(root),
        builtin_tools=BuiltinTools(opt_in=["memory"], files=True, working_directory=folder),
    ) as agent:
        await agent.send("What do we push the gondola with?")
        await agent.send("And the database?")
    assert len(model.requests) == len(opened) + 2
    asked = repr(model.requests)
    assert_is_clean(asked)
    assert asked.count("[secret:github-token:") > len(opened)
    people = {f".ricordo/workspace/{path}" for path in FILES} | {"work/AGENTS.md", "work/settings.env"}
    assert set(holding(tmp_path)) == people


@pytest.mark.may_block("the test reads the database itself")
async def test_an_index_of_before_leaves_none_of_its_bytes(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    place = written(root, "MEMORY.md")
    async with Memory.open(root, scope=SCOPE) as memory:
        assert await memory.recall("database")
    with closing(sqlite3.connect(root / "memory_index.db")) as before:
        before.execute("UPDATE chunk SET content = content || ?, markup = ?", (TOKEN, PASSWORD))
        before.execute("UPDATE words SET own = own || ' ' || ?", (TOKEN.lower(),))
        before.execute("PRAGMA user_version = 7")
        before.commit()
    assert "memory_index.db" in " ".join(holding(root))
    async with Memory.open(root, scope=SCOPE) as memory:
        hits = await memory.recall("database password")
        assert_is_clean(repr(hits))
        assert hits
        assert holding(tmp_path) == [str(place.relative_to(tmp_path))]
    assert holding(tmp_path) == [str(place.relative_to(tmp_path))]


@pytest.mark.may_block("the test reads the database itself")
async def test_a_folder_of_session_files_gives_none_and_has_none_in_its_index(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    async with open_store(f"sessions:{folder}", scope=SCOPE) as store:
        await store.recall("")
    (folder / "sessions").mkdir(parents=True, exist_ok=True)
    (folder / "sessions/2026-05-13-09h47.md").write_text(SESSION)
    async with open_store(f"sessions:{folder}", scope=SCOPE) as store:
        assert_is_clean(repr(await store.recall("database")) + await store.preamble())
    assert [name for name in holding(folder) if "index" in name] == []


@pytest.mark.parametrize("scheme", ["folder", "markdown", "fulltext"])
@pytest.mark.may_block("the test reads the files itself")
async def test_a_folder_that_is_opened_in_place_gives_none(scheme: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (begun(folder) / "memory").mkdir()
    (folder / "MEMORY.md").write_text(FILES["MEMORY.md"])
    (folder / "memory/2026-01-02.md").write_text(FILES["memory/2026-01-02.md"])
    async with open_store(f"{scheme}:{folder}", scope=SCOPE) as store:
        found = [await store.recall("gondola"), await store.recall("")]
        assert_is_clean(repr(found) + await store.preamble())
    assert [name for name in holding(folder) if not name.endswith(".md")] == []


@pytest.mark.req("FC-DOCTOR")
async def test_a_file_whose_name_holds_one_is_in_no_index_and_doctor_tells_its_folder_and_that_of_instructions(
    tmp_path: Path,
) -> None:
    root = tmp_path / ".ricordo"
    notes = begun(root, tmp_path / "data") / "workspace" / "notes"
    notes.mkdir(parents=True)
    (notes / f"push-{TOKEN}.md").write_text("The gondola is black.\n", encoding="utf-8")
    (notes / "plain.md").write_text("The gondola is long.\n", encoding="utf-8")
    (tmp_path / "AGENTS.md").write_text(f"Be brief.\n{LINES[1]}\n", encoding="utf-8")
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        found = await memory.search("gondola")
        assert [hit.path for hit in found] == ["workspace/notes/plain.md"]
        failing = {check.name: check.detail for check in await memory.doctor() if not check.ok}
    assert holding(tmp_path) == ["AGENTS.md"]
    assert "AGENTS.md:2" in failing["instructions"]
    assert any("the name of a file in workspace/notes/" in detail for detail in failing.values())
    assert_is_clean(repr(failing))


@pytest.mark.parametrize("budget", [200, 320, 600])
async def test_the_marks_of_secrets_keep_a_preamble_within_its_budget_and_push_nothing_out_that_is_not_cut(
    budget: int, tmp_path: Path
) -> None:
    root = tmp_path / ".ricordo"
    place = begun(root, tmp_path / "data") / "users" / "me" / "workspace"
    place.mkdir(parents=True)
    begin, end = "-----BEGIN PRIVATE " + "KEY-----", "-----END PRIVATE " + "KEY-----"
    lines = [f"- pwd: Kx{number}mPq-7z" for number in range(30)]
    text = "\n".join([f"- It began with {begin}", *KEY_LINES, *lines, f"- and ended with {end}", "- The last one."])
    (place / "MEMORY.md").write_text(f"{text}\n", encoding="utf-8")
    saved = "".join(f"- [by:: user] The pwd: Qz{number}mPq-7z ^{number:026}\n" for number in range(30))
    (place / "memory").mkdir()
    (place / "memory" / "2026-01-02.md").write_text(f"# 2026-01-02\n\n{saved}", encoding="utf-8")
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        shown = await memory.preamble(Tokens(budget))
    assert 0.6 * budget < estimate_text(shown) <= budget
    assert "mPq-7z" not in shown
    assert parse_fence(shown), "it is one whole block"
    assert "The last one." in shown
