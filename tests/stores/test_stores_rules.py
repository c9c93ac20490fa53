"""Rules that are remembered: in force in whatever document they stand, until a person forgets them."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from hand_clock import HandClock
from ricordo import Entry, Memory, Message, Scope
from ricordo.agent.permissions import MemoryRules
from ricordo.curation import Consolidator
from ricordo.errors import FileMissing, StorageError, StorageFailed, UndoRefused
from ricordo.messages import Text
from ricordo.runtime import Dependencies, Settings, Workspace, open_workspace
from ricordo.search.memory_root import MemoryRoot
from ricordo.stores import LayeredMemory
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-ENFORCE")]

SHOP = Scope(user="me", project="shop")
PUSH = "deny shell(git push --force*)"
CONTENT = "Never force-push."


class Root:
    """An open root, its rules, and its files as people and programs see them."""

    def __init__(self, workspace: Workspace) -> None:
        layers = workspace.store.offers(LayeredMemory)
        assert layers is not None
        self.place = workspace.memory_root
        self.layers = layers
        self.store = workspace.store
        self.folder = Path(workspace.memory_root.folder) / "workspace"
        self.rules = MemoryRules(layers)

    async def told(self) -> list[str]:
        """Return the rules as text."""
        return [f"{rule.decision} {rule.pattern.tool}({rule.pattern.argument})" for rule in await self.rules()]

    async def save(self, content: str = CONTENT, rule: str | None = PUSH) -> Entry:
        return await self.store.save(Entry(content=content, rule=rule))

    async def consolidate(self) -> None:
        place = self.place
        made = Consolidator(
            files=place.files, changes=place.changes, redactor=place.redactor, clock=place.clock, key=place.key
        )
        await made.consolidate(force=True)

    def write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Root]:
    settings = Settings(root=None, user="me", data=folder.parent / "data", cache=folder.parent / "cache")
    parts = Dependencies.create(settings=settings, clock=HandClock())
    async with open_workspace(folder, SHOP, parts) as workspace:
        yield Root(workspace)


@pytest.fixture
async def root(tmp_path: Path) -> AsyncIterator[Root]:
    async with opened(tmp_path / "root") as found:
        yield found


async def test_a_rule_is_in_force_as_soon_as_it_is_saved_and_says_whose_it_is(root: Root) -> None:
    assert await root.rules() == ()
    saved = await root.save("Never force-push.\nAna lost a day of work.")
    [rule] = await root.rules()
    assert (rule.decision, rule.pattern.tool, rule.pattern.argument) == ("deny", "shell", "git push --force*")
    assert rule.source == f"memory {saved.id}"
    assert rule.reason.startswith("Never force-push.")
    assert "\n" not in rule.reason


async def test_a_rule_that_is_curated_too_is_told_once_and_one_whose_ledger_is_archived_holds(root: Root) -> None:
    saved = await root.save()
    await root.consolidate()
    assert saved.id in (root.folder / "MEMORY.md").read_text()
    assert await root.told() == ["deny shell(git push --force*)"]
    [ledger] = (root.folder / "memory").glob("*.md")
    (root.folder / "memory" / "archive").mkdir()
    ledger.rename(root.folder / "memory" / "archive" / ledger.name)
    (root.folder / "MEMORY.md").unlink()
    assert await root.told() == ["deny shell(git push --force*)"]


@pytest.mark.parametrize(
    "curated", ["# Memory\n", "# Memory\n\n- Never force-push. [by:: user] [rule:: ask shell] ^{}\n"]
)
async def test_a_rule_that_a_tool_took_out_of_curated_memory_or_weakened_there_stands(root: Root, curated: str) -> None:
    saved = await root.save()
    await root.consolidate()
    assert "rule::" in (root.folder / "MEMORY.md").read_text()
    root.write("MEMORY.md", curated.format(saved.id))
    assert "deny shell(git push --force*)" in await root.told()
    await root.consolidate()
    assert "deny shell(git push --force*)" in await root.told()


@pytest.mark.parametrize("state", ["superseded", "retired"])
async def test_no_state_of_a_memory_switches_its_rule_off(root: Root, state: str) -> None:
    root.write("memory/topics/git.md", f"- Never. [by:: user] [state:: {state}] [rule:: {PUSH}] ^abc\n")
    assert await root.told() == ["deny shell(git push --force*)"]


async def test_rules_that_people_write_into_any_document_hold_and_those_of_agents_do_not(root: Root) -> None:
    root.write("MEMORY.md", "- Never. [rule:: deny a]\n- Never. [by:: agent] [rule:: deny b] ^b\n")
    root.write(
        "memory/topics/git.md", "- Ask. [rule:: ask c(x)] [by:: hand]\n- Never. [by:: flush] [rule:: deny d] ^d\n"
    )
    root.write("memory/2026-01-01.md", "- It. [by:: import] [rule:: deny e] ^e\n- All. [rule:: allow f]\n")
    assert await root.told() == ["deny a()", "ask c(x)"]


async def test_a_rule_without_an_id_has_the_one_that_memory_knows_it_by(root: Root) -> None:
    root.write("MEMORY.md", "- Never.\n- Never. [rule:: deny a]\n")
    [rule] = await root.rules()
    [known] = [entry for entry in await root.layers.entries() if entry.rule]
    assert rule.source == f"memory {known.id}"


async def test_what_is_said_in_a_conversation_or_saved_by_an_agent_is_never_a_rule(tmp_path: Path) -> None:
    field = "[rule:: deny shell(*)]"
    said = f"We decided to deploy only from main. {field}"
    bullets = f"Never do it.\n\n- Never. [by:: user] {field}\n\n" + "And more was said of it. " * 300
    folder = tmp_path / "root"
    settings = Settings(root=None, user="me", data=tmp_path / "data", cache=tmp_path / "cache")
    async with Memory.open(folder, scope=SHOP, settings=settings, clock=HandClock()) as memory:
        done = await memory.ingest(
            [
                Message(role="user", parts=(Text(text=said),)),
                Message(role="user", parts=(Text(text=f"- x {field} ^abc"),)),
            ],
            session="s1",
        )
        assert any("main" in entry.content for entry in done.entries)
        await memory.remember(said, by="agent")
        await memory.remember(bullets, by="agent")
        await memory.remember(f"{field}\n{field}", by="user", tags=(field,), kind=f"fact {field}")
    async with opened(folder) as root:
        assert any((root.folder / "memory" / "long").iterdir())
        assert await root.rules() == ()
        await root.consolidate()
        assert await root.rules() == ()
        assert not any(entry.rule for entry in await root.layers.entries())


async def test_forgetting_switches_a_rule_off_at_once_and_undo_switches_it_on_again(root: Root) -> None:
    saved = await root.save()
    await root.consolidate()
    assert len(await root.rules()) == 1
    await root.layers.forget(saved.id, who="user")
    assert await root.rules() == ()
    await root.layers.undo(None, who="user")
    assert await root.told() == ["deny shell(git push --force*)"]


@pytest.mark.parametrize("consolidated", [False, True])
async def test_taking_back_the_save_of_a_rule_switches_it_off_and_brings_back_what_gave_way(
    root: Root, consolidated: bool
) -> None:
    plain = await root.save(rule=None)
    await root.consolidate()
    saved = await root.save()
    if consolidated:
        await root.consolidate()
        assert plain.id not in (root.folder / "MEMORY.md").read_text().replace(f"supersedes:: {plain.id}", "")
    await root.layers.undo(saved.id, who="user")
    assert await root.rules() == ()
    assert f"^{plain.id}" in (root.folder / "MEMORY.md").read_text()
    assert (await root.layers.get(plain.id)).state == "active"


async def test_a_save_is_not_taken_back_where_somebody_gave_its_line_another_rule(root: Root) -> None:
    saved = await root.save()
    await root.consolidate()
    root.write("MEMORY.md", (root.folder / "MEMORY.md").read_text().replace("rule:: deny", "rule:: ask"))
    with pytest.raises(UndoRefused, match="ricordo forget"):
        await root.layers.undo(saved.id, who="user")
    assert len(await root.rules()) == 2
    await root.layers.forget(saved.id, who="user")
    assert await root.rules() == ()


async def test_pinning_and_confirming_leave_a_rule_as_it_is(root: Root) -> None:
    saved = await root.save()
    await root.consolidate()
    before = await root.rules()
    await root.layers.mark_entry(saved.id, "pin", who="user")
    await root.layers.mark_entry(saved.id, "confirm", who="user")
    assert await root.rules() == before


async def test_rules_for_all_projects_of_a_user_hold_after_those_of_the_project(root: Root) -> None:
    await root.store.save(
        Entry(content="Ask first.", rule="ask web_fetch", scope=Scope(user="me"), reason="It holds everywhere.")
    )
    await root.save()
    assert await root.told() == ["deny shell(git push --force*)", "ask web_fetch()"]


class Only:
    """Layers of one place."""

    def __init__(self, place: MemoryRoot) -> None:
        self._place = place

    async def places(self) -> list[MemoryRoot]:
        return [self._place]


async def test_only_what_changed_is_read_again(root: Root) -> None:
    await root.save()
    root.write("memory/topics/git.md", "- Ask. [rule:: ask c]\n")
    files = WatchedFiles(root.place.files)
    rules = MemoryRules(Only(replace(root.place, files=files)))
    assert len(await rules()) == 2
    first = files.bytes_read
    assert await rules() == await rules()
    assert files.bytes_read == first
    root.write("memory/topics/more.md", "- Ask. [rule:: ask d]\n")
    assert len(await rules()) == 3
    assert files.bytes_read == first + len("- Ask. [rule:: ask d]\n")


async def test_a_document_that_is_moved_while_it_is_read_is_not_missed(root: Root) -> None:
    await root.save()
    [ledger] = (root.folder / "memory").glob("*.md")
    archived = root.folder / "memory" / "archive" / ledger.name

    async def moved(verb: str, path: str) -> None:
        if verb == "read" and path.endswith(ledger.name) and ledger.exists():
            await run_sync(archived.parent.mkdir)
            await run_sync(ledger.rename, archived)

    files = WatchedFiles(root.place.files, moved)
    rules = MemoryRules(Only(replace(root.place, files=files)))
    assert len(await rules()) == 1
    assert archived.exists()
    with pytest.raises(FileMissing):
        await root.place.files.read(f"workspace/memory/{ledger.name}")


async def test_a_document_that_can_not_be_read_is_not_one_without_rules(root: Root) -> None:
    await root.save()
    closed = True

    async def refused(verb: str, path: str) -> None:
        if closed and verb == "read":
            raise StorageFailed(f"{path} can't be read.")

    rules = MemoryRules(Only(replace(root.place, files=WatchedFiles(root.place.files, refused))))
    for _ in range(2):
        with pytest.raises(StorageError):
            await rules()
    closed = False
    assert len(await rules()) == 1


async def test_a_folder_that_can_not_be_read_is_not_one_without_rules(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.write("memory/topics/git.md", "- Ask. [rule:: ask c]\n")
    assert len(await root.rules()) == 1
    scan = os.scandir

    def scandir(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        if str(path).endswith("/topics"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", scandir)
        with pytest.raises(StorageError, match="rules in it are not known"):
            await root.rules()
    assert len(await root.rules()) == 1
