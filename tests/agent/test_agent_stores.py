"""One line says what an agent remembers with; the tools and the prompt go through it, and all else stays as it was."""

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.to_thread import run_sync

from agents_at_work import SCOPE, settings, spoken, system, transcript
from hand_clock import HandClock
from hand_made_roots import begun
from places import place_of
from ricordo import Entry, HarnessAgent, MemoryConfig, Scope
from ricordo.context import Preamble
from ricordo.errors import ExtraMissing, InvalidSetting, ScopeMismatch, StorageFailed, StorageFull
from ricordo.messages import Tokens
from ricordo.runtime import Settings, open_store, register_store
from ricordo.runtime.stores import set_default_store
from ricordo.search import Hit, Query
from ricordo.stores import (
    SCHEMES,
    Backend,
    Closes,
    Driver,
    Forgets,
    KeepsSessions,
    Lists,
    OpenRequest,
    PlainDriver,
    Store,
    StoreParts,
    compose_entries,
    match_entries,
)
from ricordo.testing import Call, Say, ScriptedModel
from source_tree import PACKAGE, modules

pytestmark = pytest.mark.anyio

FACT = "Test fixtures live in tests/data."
PLAIN = tuple(scheme for scheme in SCHEMES if scheme not in {"none", "layered"})
PERSISTENT = tuple(scheme for scheme in PLAIN if scheme not in {"ring", "mock"})


def address(scheme: str, folder: Path) -> str:
    if scheme == "fanout":
        return f"fanout:jsonl:{folder / 'one'},json:{folder / 'two'}"
    options = "?embedder=hashing" if scheme == "vector" else ""
    return f"{scheme}:" if scheme in {"none", "ring", "mock"} else f"{scheme}:{folder / scheme}{options}"


def remembering(kind: str = "fact") -> ScriptedModel:
    """Return a model that remembers, recalls and replies, and sums up whatever it is asked after that."""
    items: list[Call | Say] = [
        Call("remember", {"content": FACT, "kind": kind, "tags": ["fixtures"]}),
        Call("recall", {"query": "fixtures"}),
        Say("They live in tests/data."),
    ]
    return ScriptedModel(
        lambda request: items[request.number - 1] if request.number <= len(items) else Say("Talk.\nTAGS: talk")
    )


def memory_files(root: Path) -> list[Path]:
    """Return what a root holds of memory: ledgers, curated memory, the profile."""
    workspace = place_of(root) / "workspace"
    return [*(workspace / "memory").rglob("*.md"), *workspace.glob("MEMORY.md"), *workspace.glob("profile.json")]


def names_of_backends_in_the_loop() -> list[str]:
    """Return the modules of the agent's loop, and what it is made of, that name a module of a concrete store."""
    concrete = re.compile("|".join(rf"ricordo\.stores\.{path.stem}\b" for path in _backends()))
    rooms = {"agent", "harness", "middleware", "tools"}
    return [module.name for module in modules() if module.room in rooms and concrete.search(module.text)]


def _backends() -> list[Path]:
    folder = PACKAGE / "stores"
    return [path for path in folder.glob("*.py") if re.search(r"^class \w+\((\w+, )*Backend\)", path.read_text(), re.M)]


@pytest.mark.req("GO-SWAP", "GO-AT5")
@pytest.mark.parametrize("scheme", PLAIN)
async def test_the_same_session_with_the_same_tools_runs_on_every_store(tmp_path: Path, scheme: str) -> None:
    root, model = tmp_path / ".ricordo", remembering()
    async with HarnessAgent(
        model, memory=MemoryConfig(root=root, store=address(scheme, tmp_path)), scope=SCOPE, settings=settings(root)
    ) as agent:
        assert str(await agent.send("Remember where the fixtures are.")) == "They live in tests/data."
        assert [hit.entry.content for hit in await agent.store.recall("tests/data")][:1] != []
        assert agent.memory is None
        assert agent.is_recorded
    said = [result.text for message in model.requests[2].messages for result in message.tool_results]
    assert "remembered" in said[0]
    assert scheme == "sessions" or FACT in said[1]
    assert "recall" in {tool.name for tool in model.requests[0].tools}
    assert "`recall` finds" in system(model.requests[0])
    assert len(await transcript(root, agent_session(root))) == 6
    assert memory_files(root) == []
    assert names_of_backends_in_the_loop() == []


def agent_session(root: Path) -> str:
    (log,) = (place_of(root) / "workspace").rglob("*.log.jsonl")
    return log.name.removesuffix(".log.jsonl")


@pytest.mark.req("AS-LEDGER-03", "GO-AT2", "GO-G4", "GO-G22")
@pytest.mark.parametrize("scheme", PERSISTENT)
async def test_what_a_store_kept_is_in_the_prompt_of_the_next_session(tmp_path: Path, scheme: str) -> None:
    root = tmp_path / ".ricordo"
    # a key-value store shows what was pinned by this kind, and nothing else
    kind = "preamble" if scheme == "kv" else "fact"
    (tmp_path / "AGENTS.md").write_text("Answer in short sentences.\n")
    for model in (remembering(kind), ScriptedModel(lambda request: Say("In tests/data."))):
        async with HarnessAgent(
            model, memory=MemoryConfig(root=root, store=address(scheme, tmp_path)), scope=SCOPE, settings=settings(root)
        ) as agent:
            await agent.send("Where do our test fixtures live?")
            requests = len(model.requests)
    prompt = system(model.requests[0])
    assert 0 < prompt.index("Answer in short sentences.") < prompt.index(FACT)
    assert requests == 1


@pytest.mark.req("AS-COMPACT-16", "GO-SWAP")
async def test_learning_and_consolidating_are_off_with_another_store_than_the_root(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel(lambda request: Say("Fine."))
    async with HarnessAgent(
        model,
        memory=MemoryConfig(root=root, store="ring:"),
        scope=SCOPE,
        session="s",
        settings=settings(root, consolidates=True),
    ) as agent:
        await agent.send("We deploy only from main.")
        assert await agent.drain() == 0
        assert (await agent.consolidate()).skipped
    assert memory_files(root) == []
    async with HarnessAgent(
        "offline", memory=root, scope=SCOPE, session="t", settings=settings(root, consolidates=True)
    ) as agent:
        assert await agent.drain() == 0
    assert memory_files(root) == []


async def loaded(root: Path | None, environment: dict[str, str]) -> Settings:
    return await run_sync(Settings.load, root, environment)


@pytest.mark.req("GO-SWAP")
async def test_the_settings_name_the_store_and_an_argument_wins(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    begun(root, tmp_path / "data")
    (root / "config.toml").write_text('store = "jsonl:./notes"\n')
    held = await loaded(root, {"RICORDO_DATA": str(tmp_path / "data"), "RICORDO_CACHE": str(tmp_path / "cache")})
    async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=held) as agent:
        await agent.store.save(Entry(content=FACT))
    assert FACT in "".join(path.read_text() for path in (root / "notes").glob("*.jsonl"))
    async with HarnessAgent(
        "offline", memory=MemoryConfig(root=root, store="none"), scope=SCOPE, settings=held
    ) as agent:
        assert await agent.store.recall("") == []
    named = await loaded(root, {"RICORDO_STORE": f"json:{tmp_path / 'elsewhere'}"})
    assert named.store == f"json:{tmp_path / 'elsewhere'}"
    assert (await loaded(None, {})).store == "layered"


@pytest.mark.parametrize("store", ["jsonl:/somewhere", "jsonl:../../elsewhere", "fanout:json:./a,jsonl:/b", "shop:x"])
async def test_a_folder_that_came_with_a_config_can_not_send_memories_elsewhere(tmp_path: Path, store: str) -> None:
    root = tmp_path / "project" / ".ricordo"
    begun(root)
    (root / "config.toml").write_text(f'store = "{store}"\n')
    held = await loaded(root, {})
    with pytest.raises(InvalidSetting, match=r"config\.toml can't name"):
        async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=held):
            pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.req("GO-SWAP")
async def test_the_default_of_the_process_is_the_store_of_agents_that_name_none(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    set_default_store(f"jsonl:{tmp_path / 'notes'}")
    try:
        async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=settings(root)) as agent:
            await agent.store.save(Entry(content=FACT))
            assert agent.memory is None
    finally:
        set_default_store(None)
    assert list((tmp_path / "notes").glob("*.jsonl"))
    async with HarnessAgent("offline", memory=root, scope=SCOPE, settings=settings(root)) as agent:
        assert agent.memory is not None
        assert await agent.store.recall("") == []


@pytest.mark.req("GO-G22-fallback", "GO-G3", "GO-G20")
@pytest.mark.parametrize("error", [ExtraMissing(), StorageFull(), StorageFailed(), PermissionError("no")])
async def test_a_store_that_can_not_be_opened_is_told_once_and_the_agent_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    @asynccontextmanager
    async def refusing(opening: OpenRequest) -> AsyncIterator[Backend]:
        if opening:
            raise error
        yield Held(opening.parts)

    register_store("refusing", refusing)
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Call("remember", {"content": FACT}), Say("Kept."), Say("Fine.")])
    with caplog.at_level(logging.WARNING, "ricordo"):
        async with HarnessAgent(
            model, memory=MemoryConfig(root=root, store="refusing:"), scope=SCOPE, session="s", settings=settings(root)
        ) as agent:
            assert str(await agent.send("Remember this.")) == "Kept."
            assert str(await agent.send("And?")) == "Fine."
            assert await agent.store.recall("") == []
            assert await agent.store.preamble() == ""
    assert [record.getMessage().count("refusing:") for record in caplog.records] == [1]
    assert "Memory is off" in model.requests[1].messages[-1].tool_results[0].text
    assert "Memory can't be opened" in system(model.requests[0])
    assert "`recall`" not in system(model.requests[0])
    assert len(await transcript(root)) == 6
    with pytest.raises((type(error), StorageFailed)):
        async with HarnessAgent(
            model,
            memory=MemoryConfig(root=root, store="refusing:", required=True),
            scope=SCOPE,
            settings=settings(root),
        ):
            pass


@pytest.mark.req("GO-SWAP")
async def test_an_address_of_no_store_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="names no store"):
        HarnessAgent("offline", memory=MemoryConfig(root=tmp_path, store=" "), scope=SCOPE)
    with pytest.raises(InvalidSetting, match="jsnol"):
        async with HarnessAgent("offline", memory=MemoryConfig(root=tmp_path / "r", store="jsnol:x"), scope=SCOPE):
            pass


@pytest.mark.req("GO-G3")
async def test_no_memory_has_no_place(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="takes no place"):
        async with HarnessAgent("offline", memory=MemoryConfig(root=tmp_path / "r", store="none:./x"), scope=SCOPE):
            pass


@pytest.mark.req("AS-INDEX-05", "AS-CTX-01", "GO-G23", "GO-G3", "GO-G20")
@pytest.mark.parametrize("given", ["none", "none:"])
async def test_with_memory_off_neither_the_tools_nor_the_prompt_know_of_it(tmp_path: Path, given: str) -> None:
    root, model = tmp_path / ".ricordo", ScriptedModel([Say("Hello.")])
    async with HarnessAgent(
        model, memory=MemoryConfig(root=root, store=given), scope=SCOPE, session="s", settings=settings(root)
    ) as agent:
        await agent.send("Hello.")
        saved = await agent.store.save(Entry(content=FACT))
        assert saved.content == FACT
        assert await agent.store.recall("") == []
        assert await agent.store.preamble() == ""
    names = {tool.name for tool in model.requests[0].tools}
    assert not names & {"remember", "recall", "memory_search", "memory_get"}
    prompt = system(model.requests[0])
    assert "remember" not in prompt
    assert "recall" not in prompt
    assert "memory" not in prompt
    assert memory_files(root) == []


@pytest.mark.req("AS-CURATED-03", "GO-G26-cache", "GO-G2")
async def test_what_somebody_else_saves_is_told_after_the_newest_message(tmp_path: Path) -> None:
    root, where = tmp_path / ".ricordo", f"jsonl:{tmp_path / 'notes'}"
    model = ScriptedModel([Say("One."), Say("Two."), Call("remember", {"content": "Mine."}), Say("3."), Say("4.")])
    async with HarnessAgent(
        model, memory=MemoryConfig(root=root, store=where), scope=SCOPE, settings=settings(root)
    ) as agent:
        await agent.send("First.")
        async with open_store(where, scope=SCOPE, settings=settings(root)) as other:
            await other.save(Entry(content=FACT))
        await agent.send("Second.")
        await agent.send("Third.")
        await agent.send("Fourth.")
    prompts = {system(request) for request in model.requests}
    assert len(prompts) == 1
    assert FACT in model.requests[1].messages[-1].text
    told = [text for role, text in spoken(model.requests[-1].messages) if role == "user" and "Memory changed" in text]
    assert len(told) == 1
    assert not any("Mine." in text for text in told)


@pytest.mark.req("AS-CURATED-03", "GO-G26-cache")
async def test_by_refresh_a_store_that_changed_writes_the_prompt_anew(tmp_path: Path) -> None:
    root, where = tmp_path / ".ricordo", f"jsonl:{tmp_path / 'notes'}"
    model = ScriptedModel([Say("One."), Say("Two.")])
    async with HarnessAgent(
        model, memory=MemoryConfig(root=root, store=where, refresh="step"), scope=SCOPE, settings=settings(root)
    ) as agent:
        await agent.send("First.")
        async with open_store(where, scope=SCOPE, settings=settings(root)) as other:
            await other.save(Entry(content=FACT))
        await agent.send("Second.")
    assert FACT not in system(model.requests[0])
    assert FACT in system(model.requests[1])


@pytest.mark.req("GO-G2", "FC-NOKEY")
async def test_an_agent_without_a_model_quotes_its_store(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with HarnessAgent(
        "offline", memory=MemoryConfig(root=root, store="ring:"), scope=SCOPE, settings=settings(root)
    ) as agent:
        await agent.store.save(Entry(content=FACT))
        await agent.store.save(Entry(content="Nadia owns the staging database."))
        assert FACT in str(await agent.send("Where do our test fixtures live?"))
        assert str(await agent.send("Who painted the ceiling?")) == "Not in memory."


class Held(Backend):
    """A store that holds back until it is closed."""

    def __init__(self, parts: StoreParts, error: Exception | None = None) -> None:
        super().__init__(parts)
        self.kept: list[Entry] = []
        self.written: list[Entry] = []
        self.error = error

    def _driver(self, scope: Scope) -> Driver:
        return _HeldDriver(self)


class _HeldDriver(PlainDriver):
    def __init__(self, held: Held) -> None:
        self._held = held

    async def write(self, entry: Entry) -> Entry:
        self._held.kept.append(entry)
        return entry

    async def entries(self) -> list[Entry]:
        return [*reversed(self._held.kept)]

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()
        if self._held.error:
            raise self._held.error
        self._held.written = list(self._held.kept)


def holding(error: Exception | None = None) -> list[Held]:
    """Register the scheme `held` and return the list that every backend opened under it comes into."""
    found: list[Held] = []

    @asynccontextmanager
    async def opened(opening: OpenRequest) -> AsyncIterator[Backend]:
        found.append(Held(opening.parts, error))
        yield found[-1]

    register_store("held", opened)
    return found


@pytest.mark.req("GO-G22-close")
@pytest.mark.parametrize("ending", ["end", "error", "cancel"])
async def test_leaving_the_agent_closes_its_store_however_it_is_left(tmp_path: Path, ending: str) -> None:
    held = holding()

    async def used() -> None:
        async with HarnessAgent(
            remembering(),
            memory=MemoryConfig(root=tmp_path / "r", store="held:"),
            scope=SCOPE,
            settings=settings(tmp_path / "r"),
        ) as agent:
            await agent.send("Remember where the fixtures are.")
            if ending == "error":
                raise KeyError
            if ending == "cancel":
                scope.cancel()
                await anyio.sleep_forever()

    with anyio.CancelScope() as scope, suppress(KeyError):
        await used()
    assert [entry.content for entry in held[0].written] == [FACT]


@pytest.mark.req("GO-G22-close")
async def test_a_store_that_can_not_be_closed_is_told_and_hides_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    holding(StorageFull("There is no room."))
    with caplog.at_level(logging.WARNING, "ricordo"), pytest.raises(KeyError):
        async with HarnessAgent("offline", memory=MemoryConfig(root=tmp_path / "r", store="held:"), scope=SCOPE):
            raise KeyError
    assert [record.getMessage().count("There is no room.") for record in caplog.records] == [1]


@pytest.mark.req("GO-G22-close")
@pytest.mark.parametrize("fails", [False, True])
async def test_a_folder_that_is_gone_at_the_end_is_told_and_ends_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    root, where = tmp_path / ".ricordo", tmp_path / "kept"
    with caplog.at_level(logging.WARNING, "ricordo"), suppress(KeyError):
        async with HarnessAgent(
            remembering(),
            memory=MemoryConfig(root=root, store=f"sessions:{where}"),
            scope=SCOPE,
            settings=settings(root),
        ) as agent:
            assert str(await agent.send("Remember where the fixtures are.")) == "They live in tests/data."
            where.rename(tmp_path / "elsewhere")
            where.write_text("no folder\n")
            if fails:
                raise KeyError
    assert "could not be closed" in caplog.text


@pytest.mark.req("GO-G22-close")
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("given_open", [False, True])
async def test_the_draft_of_the_running_session_becomes_its_file(tmp_path: Path, fails: bool, given_open: bool) -> None:
    root, where = tmp_path / ".ricordo", tmp_path / ".harness"

    async def used(store: str | Store) -> None:
        async with HarnessAgent(
            remembering(), memory=MemoryConfig(root=root, store=store), scope=SCOPE, settings=settings(root)
        ) as agent:
            await agent.send("Remember where the fixtures are.")
            assert not list((where / "sessions").glob("2*.md"))
            if fails:
                raise KeyError

    with suppress(KeyError):
        if given_open:
            async with open_store(str(where), scope=SCOPE) as store:
                await used(store)
                (file,) = (where / "sessions").glob("2*.md")
        else:
            await used(str(where))
    (file,) = (where / "sessions").glob("2*.md")
    assert FACT in file.read_text()
    assert not list((where / "sessions").glob(".draft-*"))


@pytest.mark.req("HE-C5-required", "HE-O-tenancy")
async def test_a_store_that_is_bound_to_somebody_else_is_refused(tmp_path: Path) -> None:
    async with open_store("ring:", scope=Scope(user="you", project="shop")) as store:
        with pytest.raises(ScopeMismatch):
            async with HarnessAgent("offline", memory=MemoryConfig(root=tmp_path / "r", store=store), scope=SCOPE):
                pass
    async with (
        open_store("ring:", scope=SCOPE) as store,
        HarnessAgent("offline", memory=MemoryConfig(root=tmp_path / "r", store=store), scope=SCOPE) as agent,
    ):
        assert agent.store is store


@pytest.mark.req("GO-AT5", "GO-SWAP")
async def test_one_line_makes_the_preamble_the_whole_file_and_recall_a_search_of_its_text(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    first, second = remembering(), ScriptedModel([Call("recall", {"query": "nadia"}), Say("Nadia does.")])
    async with HarnessAgent(
        first,
        memory=MemoryConfig(root=root, store=f"markdown:{tmp_path / 'notes'}"),
        scope=SCOPE,
        settings=settings(root),
    ) as agent:
        await agent.send("Remember where the fixtures are.")
    file = tmp_path / "notes" / "memory.md"
    head = file.read_text().replace("# Memory\n", "# Memory\n\nOf the shop in Bergamo.\n", 1)
    file.write_text(
        f"{head}\nBy hand: ask Nadia before you touch staging.\n\n## Who owns what\n\n- Nadia owns billing. #people\n"
    )
    async with HarnessAgent(
        second,
        memory=MemoryConfig(root=root, store=f"markdown:{tmp_path / 'notes'}"),
        scope=SCOPE,
        settings=settings(root),
    ) as agent:
        assert str(await agent.send("Who owns billing?")) == "Nadia does."
    prompt = system(second.requests[0])
    parts = (
        "Of the shop in Bergamo.",
        FACT,
        "ask Nadia before you touch staging",
        "## Who owns what",
        "Nadia owns billing.",
    )
    assert [prompt.index(told) for told in parts] == sorted(prompt.index(told) for told in parts)
    result = second.requests[1].messages[-1].tool_results[0].text
    assert "Nadia owns billing." in result
    assert FACT not in result
    assert tool_names(first) == tool_names(second)


def tool_names(model: ScriptedModel) -> list[str]:
    return [tool.name for tool in model.requests[0].tools]


@pytest.mark.req("GO-G23", "AS-CTX-01", "GO-G22", "GO-G4")
async def test_the_prompt_names_recall_beside_the_last_five_sessions_and_nothing_with_memory_off(
    tmp_path: Path,
) -> None:
    root, clock, first = tmp_path / ".ricordo", HandClock(), ""
    for number in range(1, 8):
        model = ScriptedModel([Say("Done."), Say(f"Chapter {number} was written.\nTAGS: chapter")])
        async with HarnessAgent(
            model,
            memory=MemoryConfig(root=root, store=str(tmp_path / "kept")),
            scope=SCOPE,
            settings=settings(root),
            clock=clock,
        ) as agent:
            await agent.send("We write one more chapter of the manual.")
        first = first or system(model.requests[0])
        clock.turn(minutes=1)
    prompts = {}
    for store in (str(tmp_path / "kept"), "none"):
        model = ScriptedModel(lambda request: Say("Hello."))
        async with HarnessAgent(
            model, memory=MemoryConfig(root=root, store=store), scope=SCOPE, settings=settings(root), clock=clock
        ) as agent:
            await agent.send("Hello.")
        prompts[store] = system(model.requests[0]), {"recall", "remember"} & set(tool_names(model))
    on, tools = prompts[str(tmp_path / "kept")]
    assert all("There is a memory store" in prompt and "`recall`" in prompt for prompt in (first, on))
    assert [number for number in range(1, 8) if f"Chapter {number} was written." in on] == [3, 4, 5, 6, 7]
    assert tools == {"recall", "remember"}
    off, tools = prompts["none"]
    assert not any(word in off for word in ("recall", "remember", "memory", "Chapter"))
    assert tools == set()


class _ThreeMethods:
    """A driver with what the contract names, and nothing else."""

    def __init__(self, kept: list[Entry]) -> None:
        self._kept = kept

    async def write(self, entry: Entry) -> Entry:
        self._kept.append(entry)
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        return match_entries(reversed(self._kept), query, limit)

    async def preamble(self, budget: Tokens | None) -> Preamble:
        return compose_entries([*reversed(self._kept)], budget)


class _Least(Backend):
    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self._kept: list[Entry] = []

    def _driver(self, scope: Scope) -> Driver:
        return _ThreeMethods(self._kept)


@pytest.mark.req("GO-G2", "GO-SWAP")
async def test_save_recall_and_preamble_are_all_that_an_agent_needs_of_a_store(tmp_path: Path) -> None:
    @asynccontextmanager
    async def least(opening: OpenRequest) -> AsyncIterator[Backend]:
        yield _Least(opening.parts)

    register_store("least", least)
    operations = {name for name in vars(Store) if not name.startswith("_")}
    assert operations == {"save", "recall", "preamble", "offers"}
    root, model = tmp_path / ".ricordo", remembering()
    async with open_store("least:", scope=SCOPE) as store:
        assert [store.offers(capability) for capability in (Lists, Forgets, Closes, KeepsSessions)] == [None] * 4
        async with HarnessAgent(
            model, memory=MemoryConfig(root=root, store=store), scope=SCOPE, session="s", settings=settings(root)
        ) as agent:
            assert str(await agent.send("Remember where the fixtures are.")) == "They live in tests/data."
            remembered, recalled = (request.messages[-1].tool_results[0].text for request in model.requests[1:3])
            assert remembered.startswith("remembered.")
            assert FACT in recalled
            await store.save(Entry(content="Nadia owns billing."))
            await agent.send("And now?")
            assert FACT in await agent.system_prompt(rebuild=True)
        assert [hit.entry.content for hit in await store.recall("billing")] == ["Nadia owns billing."]
        for content in ("Okafor leads the audit.", *(f"Note {number} is about ships." for number in range(30))):
            await store.save(Entry(content=f"{content} {'They come and go. ' * 20}"))
        small, opening = replace(settings(root), preamble_tokens=1_200), ScriptedModel([Say("Okafor.")])
        async with HarnessAgent(
            opening, memory=MemoryConfig(root=root, store=store), scope=SCOPE, session="t", settings=small
        ) as agent:
            await agent.send("Who leads the audit?")
        assert "Okafor leads the audit." in system(opening.requests[0]), "it is chosen for the first message"
    updates = [text for _, text in spoken(model.requests[3].messages) if "Memory changed" in text]
    assert [FACT in text for text in updates] == [False]
    assert "Nadia owns billing." in updates[0]


@pytest.mark.req("GO-G3", "GO-BK-none", "GO-G23")
async def test_the_default_store_keeps_nothing_and_an_agent_without_memory_runs(tmp_path: Path) -> None:
    async with open_store(scope=SCOPE) as store:
        assert (await store.save(Entry(content=FACT))).content == FACT
        assert await store.recall(FACT) == []
        assert await store.recall("") == []
        assert await store.preamble() == ""
        root, model = (
            tmp_path / ".ricordo",
            ScriptedModel([Say("One."), Call("remember", {"content": FACT}), Say("2.")]),
        )
        async with HarnessAgent(
            model, memory=MemoryConfig(root=root, store=store), scope=SCOPE, settings=settings(root)
        ) as agent:
            assert str(await agent.send("Hello.")) == "One."
            assert str(await agent.send("Remember it.")) == "2."
    assert "Memory is off" in model.requests[2].messages[-1].tool_results[0].text
    assert memory_files(root) == []
