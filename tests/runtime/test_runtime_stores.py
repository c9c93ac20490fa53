"""A store is opened by one line, wherever its backend comes from, in a folder that is its owner's."""

import errno
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from disks import FailingDisk
from places import place_of
from ricordo import Entry, Scope
from ricordo.errors import (
    DocumentInvalid,
    ExtraMissing,
    InvalidInput,
    InvalidScope,
    InvalidSetting,
    RootNotTrusted,
    ScopeMismatch,
    ScopeRequired,
    StorageError,
    StorageFull,
)
from ricordo.messages import Tokens
from ricordo.runtime import Settings, open_store, register_store
from ricordo.runtime import stores as built_in_stores
from ricordo.runtime import stores as registry
from ricordo.runtime.stores import BUILT_IN_STORES, get_default_store, list_schemes, open_backend, set_default_store
from ricordo.search import Hit, Query
from ricordo.stores import (
    SCHEMES,
    Backend,
    Closes,
    Driver,
    Forgets,
    LayeredMemory,
    Lists,
    OpenRequest,
    StoreParts,
    match_entries,
)

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-plug", "GO-SWAP")]

SCOPE = Scope(user="me", project="shop")
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Shelf(Backend):
    """A backend of a third party: a list for each scope; it can be closed."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self.kept: dict[Scope, list[Entry]] = {}
        self.closed = 0

    def _driver(self, scope: Scope) -> Driver:
        return _OnShelf(self, self.kept.setdefault(scope, []))


class _OnShelf:
    def __init__(self, shelf: Shelf, kept: list[Entry]) -> None:
        self._shelf = shelf
        self._kept = kept

    async def write(self, entry: Entry) -> Entry:
        self._kept.append(entry)
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        return match_entries(reversed(self._kept), query, limit)

    async def preamble(self, budget: Tokens | None) -> str:
        return "\n".join(entry.content for entry in self._kept)

    async def close(self) -> None:
        self._shelf.closed += 1


SHELVES: list[Shelf] = []
OPENINGS: list[OpenRequest] = []


@asynccontextmanager
async def open_shelf(opening: OpenRequest) -> AsyncIterator[Backend]:
    OPENINGS.append(opening)
    SHELVES.append(Shelf(opening.parts))
    yield SHELVES[-1]


@pytest.fixture(autouse=True)
def nothing_chosen() -> Iterator[None]:
    SHELVES.clear()
    OPENINGS.clear()
    register_store("shelf", open_shelf)
    yield
    set_default_store(None)


def settings(root: Path) -> Settings:
    return Settings(root=None, user="me", data=root / "data", cache=root / "cache", consolidation=None)


async def test_the_default_store_keeps_nothing_until_one_is_set(tmp_path: Path) -> None:
    assert get_default_store() is None
    async with open_store(scope=SCOPE) as store:
        await store.save(Entry(content="We deploy only from main."))
        assert await store.recall("") == []
        assert await store.preamble() == ""
    set_default_store("shelf:")
    assert get_default_store() == "shelf:"
    async with open_store(scope=SCOPE) as store:
        await store.save(Entry(content="We deploy only from main."))
        assert [hit.entry.content for hit in await store.recall("main")] == ["We deploy only from main."]
    with pytest.raises(InvalidSetting):
        set_default_store(" ")


@pytest.mark.req("GO-BK-plug")
async def test_a_store_of_a_third_party_is_opened_by_its_name_bound_and_closed(tmp_path: Path) -> None:
    register_store("second-shelf", open_shelf)
    async with open_store("shelf:?size=3", scope=SCOPE, settings=settings(tmp_path)) as store:
        assert store.scope == SCOPE
        saved = await store.save(Entry(content=f"The key is {SECRET}."))
        assert SECRET not in saved.content
        assert await store.preamble() == saved.content, "the text of its preamble is what is shown"
        assert OPENINGS[0].address.options == {"size": "3"}
        assert OPENINGS[0].folder is None
        assert SHELVES[0].closed == 0
    assert SHELVES[0].closed == 1


async def test_a_store_is_closed_when_its_block_raises() -> None:
    async def raising() -> None:
        async with open_store("shelf:", scope=SCOPE):
            raise KeyError

    with pytest.raises(KeyError):
        await raising()
    assert SHELVES[0].closed == 1


async def test_a_backend_is_bound_to_one_scope_after_another() -> None:
    async with open_backend("shelf:", scope=SCOPE) as backend:
        mine, other = backend.bind(SCOPE), backend.bind(Scope(user="me", project="library"))
        await mine.save(Entry(content="Mine."))
        assert await other.recall("") == []
        assert mine.offers(Closes) is not None


@pytest.mark.parametrize("scheme", ["jsonl", "layered", "none"])
def test_the_schemes_of_ricordo_can_not_be_taken(scheme: str) -> None:
    with pytest.raises(InvalidSetting, match="own"):
        register_store(scheme, open_shelf)


@pytest.mark.parametrize("scheme", ["", "a", "Shelf", "my shelf", "1st", "a:b"])
def test_a_scheme_that_no_address_could_name_is_refused(scheme: str) -> None:
    with pytest.raises(InvalidSetting, match="scheme"):
        register_store(scheme, open_shelf)


async def test_an_installed_package_offers_a_store_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        [
            EntryPoint(name="rack", value=f"{__name__}:open_shelf", group=registry.STORE_GROUP),
            EntryPoint(name="broken", value="ricordo_rack_that_is_not_there:open_rack", group=registry.STORE_GROUP),
        ]
    )
    monkeypatch.setitem(sys.modules, __name__, sys.modules[open_shelf.__module__])
    monkeypatch.setattr(registry, "entry_points", lambda group: points.select(group=group))
    async with open_store("rack:", scope=SCOPE) as store:
        await store.save(Entry(content="Kept."))
        assert await store.preamble() == "Kept."
    with pytest.raises(ExtraMissing, match="ricordo_rack_that_is_not_there"):
        async with open_store("broken:", scope=SCOPE):
            pass
    named = {scheme.name: scheme for scheme in list_schemes()}
    assert list(named)[: len(SCHEMES)] == list(SCHEMES)
    assert {"rack", "broken", "shelf"} <= set(named)


async def test_entry_points_are_looked_up_only_for_a_scheme_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_up(group: str) -> EntryPoints:
        raise AssertionError(group)

    monkeypatch.setattr(registry, "entry_points", looked_up)
    for address in ("shelf:", "none:"):
        async with open_store(address, scope=SCOPE):
            pass


async def test_a_scheme_that_nobody_has_is_told_with_those_there_are() -> None:
    with pytest.raises(InvalidSetting, match=r"'jsnol'.*did you mean jsonl\?.*markdown.*shelf"):
        async with open_store("jsnol:./notes", scope=SCOPE):
            pass


@pytest.mark.parametrize("address", ["jsonl:", "markdown:?newest=3", "jsonl://notes"])
async def test_a_store_that_needs_a_folder_asks_for_one(address: str) -> None:
    with pytest.raises(InvalidSetting, match="names no folder"):
        async with open_store(address, scope=SCOPE):
            pass


@pytest.mark.parametrize("address", ["none:./notes", "ring:./notes?capacity=5", "mock:./notes"])
async def test_a_store_that_keeps_nothing_on_disk_refuses_a_place(address: str) -> None:
    with pytest.raises(InvalidSetting, match=r"takes no place: leave \./notes out"):
        async with open_store(address, scope=SCOPE):
            pass


@pytest.mark.parametrize("scheme", ["json", "kv", "layered"])
async def test_a_place_below_a_file_and_one_at_nobodys_home_are_told_as_such(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "notes").write_text("mine\n")
    with pytest.raises(InvalidInput, match="notes is a file: name a folder"):
        async with open_store(f"{scheme}:{tmp_path / 'notes' / 'deep' / 'er'}", scope=SCOPE):
            pass
    with pytest.raises(InvalidSetting, match="home folder of nobody"):
        async with open_store(f"{scheme}:~nobody-has-this-name/notes", scope=SCOPE):
            pass


@pytest.mark.parametrize("scheme", ["jsonl", "folder", "layered"])
async def test_a_place_that_can_not_be_looked_at_is_an_error_of_storage(tmp_path: Path, scheme: str) -> None:
    with pytest.raises(StorageError, match="name too long"):
        async with open_store(f"{scheme}:{tmp_path / ('x' * 300)}", scope=SCOPE):
            pass


@pytest.mark.req("FC-SECRET")
async def test_nothing_is_opened_without_a_scope_or_for_one_that_holds_a_secret() -> None:
    with pytest.raises(ScopeRequired):
        async with open_store("none:", scope=None):
            pass
    with pytest.raises(InvalidScope):
        async with open_store("none:", scope=Scope(user=SECRET)):
            pass


def test_importing_the_registry_loads_no_plain_backend_and_no_heavy_package() -> None:
    code = "import ricordo.runtime.stores, sys; print([m for m in sys.modules if m.startswith('ricordo.stores.')])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    backends = {built_in.import_path.partition(":")[0] for built_in in BUILT_IN_STORES.values()} - {"in_memory"}
    assert backends
    assert [name for name in backends if f"'ricordo.stores.{name}'" in told] == []


_PARTS = """
import sys, anyio
from importlib import import_module
from inspect import isclass, isfunction
PARTS = {parts!r}
for part in PARTS:
    module = import_module(part)
    for name in module.__all__:
        made = getattr(module, name)
        if isclass(made) or isfunction(made):
            assert made.__module__ == part, (part, name, made.__module__)
    above = ("ricordo.agent.loop", "ricordo.agent.agent", "ricordo.runtime.memory")
    heavy = [name for name in above if name in sys.modules]
    assert not heavy, (part, heavy)

from ricordo.clock import MonotonicIds, SystemClock
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.agent.session_closing import summarize_by_rules
from ricordo.messages import Message, Text
from ricordo.scope import Scope
from ricordo.stores.contract import StoreParts
from ricordo.stores.in_memory import RingStore
from ricordo.agent.tools.contract import ToolContext
from ricordo.agent.tools.memory import recall_tool
from ricordo.agent.tools.memory import remember_tool

async def used():
    scope = Scope(user="me", project="shop")
    clock = SystemClock()
    parts = StoreParts(redactor=Redactor(b"0" * 32), clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock))
    store = RingStore(parts, scope).bind(scope)
    context = ToolContext(call_id="1", scope=scope, agent="main", session="s")
    print(await remember_tool(store)({{"content": "We deploy only from main."}}, context))
    print(await recall_tool(store)({{"query": "deploy"}}, context))
    said = (Message(role="user", parts=(Text(text="We deploy only from main."),)),)
    print(summarize_by_rules(said).summary)

anyio.run(used)
"""


@pytest.mark.req("GO-LAYOUT", "HE-A6")
def test_the_contract_each_backend_each_tool_and_the_closing_summary_are_used_without_a_harness() -> None:
    modules = {built_in.import_path.partition(":")[0] for built_in in BUILT_IN_STORES.values()}
    backends = [f"ricordo.stores.{name}" for name in sorted(modules)]
    tools = [f"ricordo.agent.tools.{name}" for name in ("memory", "memory_files")]
    parts = ["ricordo.stores.contract", *backends, "ricordo.stores.layered", *tools, "ricordo.agent.session_closing"]
    assert len(set(parts)) == len(parts)
    code = _PARTS.format(parts=parts)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "remembered" in done.stdout
    assert done.stdout.count("We deploy only from main") == 2


async def test_layered_is_the_memory_of_a_root_behind_the_three_operations(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with open_store(f"layered:{root}", scope=SCOPE, settings=settings(tmp_path)) as store:
        await store.save(Entry(content="We deploy only from main.", kind="decision"))
        assert "only from main" in await store.preamble()
        assert store.offers(LayeredMemory) is not None
    assert "only from main" in next((place_of(root) / "workspace" / "memory").glob("*.md")).read_text()
    async with open_store(f"layered:{root}", scope=SCOPE, settings=settings(tmp_path)) as store:
        assert [hit.entry.kind for hit in await store.recall("deploy")] == ["decision"]


@pytest.mark.parametrize("other", [Scope(user="me", project="library"), Scope(user="you", project="shop")])
async def test_an_open_root_is_bound_to_nobody_else(tmp_path: Path, other: Scope) -> None:
    async with open_backend(f"layered:{tmp_path / '.ricordo'}", scope=SCOPE, settings=settings(tmp_path)) as backend:
        session = Scope(user="me", project="shop", session="s")
        assert backend.bind(session).scope == session
        with pytest.raises(ScopeMismatch):
            backend.bind(other)


async def test_a_folder_is_claimed_hidden_from_git_and_nobody_elses(tmp_path: Path) -> None:
    where = tmp_path / "project" / "notes"
    async with open_store(f"jsonl:{where}", scope=SCOPE) as store:
        await store.save(Entry(content="Mine."))
    assert (where / ".gitignore").read_text() == "*\n"
    assert '"project": "shop"' in (where / "project.json").read_text()
    assert {path.stat().st_mode & 0o077 for path in [where, *where.rglob("*")]} == {0}
    before = {path: path.read_bytes() for path in where.rglob("*") if path.is_file()}
    with pytest.raises(ScopeMismatch):
        async with open_store(f"jsonl:{where}", scope=Scope(user="me", project="library")):
            pass
    assert before == {path: path.read_bytes() for path in where.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "foreign", ["main.py", "src/main.py", ".git/config", ".gitignore", "project/readme.txt", "memory.tar.gz"]
)
async def test_a_folder_with_other_things_in_it_becomes_no_store(tmp_path: Path, foreign: str) -> None:
    (tmp_path / foreign).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / foreign).write_text("*.pyc\n")
    with pytest.raises(InvalidInput, match="other things"):
        async with open_store(f"jsonl:{tmp_path}", scope=SCOPE):
            pass
    assert os.listdir(tmp_path) == [foreign.partition("/")[0]]
    with pytest.raises(InvalidInput, match="is a file"):
        async with open_store(f"jsonl:{tmp_path / foreign}", scope=SCOPE):
            pass


async def test_a_folder_that_another_process_is_claiming_is_no_foreign_one(tmp_path: Path) -> None:
    (tmp_path / ".~project.json.0f1e2d3c4b5a").write_text("{")
    async with open_store(f"jsonl:{tmp_path}", scope=SCOPE) as store:
        await store.save(Entry(content="Kept."))
        assert len(await store.recall("kept")) == 1


async def test_a_folder_of_memory_that_nobody_claimed_is_opened_as_it_is_when_it_is_vouched_for(tmp_path: Path) -> None:
    (tmp_path / "memory.md").write_text("# Memory\n\n- We deploy only from main. #deploy\n")
    with pytest.raises(RootNotTrusted):
        async with open_store(f"markdown:{tmp_path}", scope=SCOPE):
            pass
    assert os.listdir(tmp_path) == ["memory.md"]
    async with open_store(f"markdown:{tmp_path}", scope=SCOPE, trusted=True) as store:
        assert [hit.entry.tags for hit in await store.recall("deploy")] == [("deploy",)]


async def test_a_plain_store_in_a_root_uses_its_workspace_and_its_key(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with open_store(f"layered:{root}", scope=SCOPE, settings=settings(tmp_path)) as store:
        await store.save(Entry(content="Kept by the root."))
    key = (root / "guard.key").read_bytes()
    async with open_store(f"jsonl:{root}", scope=SCOPE, settings=settings(tmp_path)) as store:
        await store.save(Entry(content="Kept beside it."))
    assert "Kept beside it." in (place_of(root) / "workspace" / "memory.jsonl").read_text()
    assert (root / "guard.key").read_bytes() == key
    assert not (place_of(root) / "workspace" / "guard.key").exists()
    assert not (place_of(root) / "workspace" / "locks").exists()
    scope = Scope(user="me", project="library")
    with pytest.raises(ScopeMismatch):
        async with open_store(f"jsonl:{root}", scope=scope, settings=settings(tmp_path)):
            pass


async def test_a_secret_has_the_same_mark_whenever_a_store_is_opened(tmp_path: Path) -> None:
    marks = []
    for _ in range(2):
        async with open_store(f"jsonl:{tmp_path / 'notes'}", scope=SCOPE) as store:
            marks.append((await store.save(Entry(content=f"The key is {SECRET}."))).content)
    assert marks[0] == marks[1]
    assert SECRET not in (tmp_path / "notes" / "memory.jsonl").read_text()


@pytest.mark.parametrize(
    "address",
    ["markdown:{}", "jsonl:{}", "json:{}", "fulltext:{}", "sessions:{}", "folder:{}", "fanout:markdown:{},ring:"],
)
async def test_a_secret_that_a_person_wrote_into_a_file_of_a_store_leaves_it_as_its_mark(
    tmp_path: Path, address: str
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    if address.startswith("folder"):
        (folder / "MEMORY.md").write_text("# Memory\n")
    async with open_store(address.format(folder), scope=SCOPE) as store:
        saved = await store.save(Entry(content="The deploy key is HERE."))
        if closes := store.offers(Closes):
            await closes.close()
    for file in [path for path in folder.rglob("*.[jm]*") if "HERE" in path.read_text()]:
        file.write_text(file.read_text().replace("HERE", SECRET))
    async with open_store(address.format(folder), scope=SCOPE) as store:
        lists, forgets = store.offers(Lists), store.offers(Forgets)
        assert lists
        assert forgets
        wanted = next(entry.id for entry in await lists.entries() if "deploy key" in entry.content)
        seen = [
            *await lists.entries(),
            await lists.get(wanted),
            *(hit.entry for hit in await store.recall("deploy key")),
        ]
        told = [entry.content for entry in seen if "deploy key" in entry.content]
        told += [await store.preamble(), (await forgets.forget(wanted, who="user")).content]
    assert len(told) >= 4
    assert SECRET not in repr(told)
    assert all("[secret:github-token:" in text for text in told if text), told
    assert saved.id


async def test_a_damaged_key_and_a_full_disk_are_told_for_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "guard.key").write_bytes(b"short")
    with pytest.raises(DocumentInvalid, match=r"guard\.key"):
        async with open_store(f"jsonl:{tmp_path}", scope=SCOPE):
            pass
    with pytest.raises(StorageFull):
        async with open_store(f"jsonl:{tmp_path / 'full'}", scope=SCOPE, disk=FailingDisk(1, errno.ENOSPC)):
            pass


async def test_a_package_that_is_not_installed_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError("No module named 'lmdb'", name="lmdb")

    monkeypatch.setattr(built_in_stores, "import_module", missing)
    with pytest.raises(ExtraMissing, match=r"kv needs lmdb\. Install it with `pip install '\.\[kv\]'`"):
        async with open_store("kv:./notes", scope=SCOPE):
            pass
