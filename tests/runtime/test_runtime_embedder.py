"""The embedder of a memory: named in the settings or given, at work for every root, and never in the way."""

from pathlib import Path

import anyio
import pytest

from concepts import Concepts
from ricordo import HarnessAgent, Memory, Scope
from ricordo.errors import InvalidSetting, ModelNotFound, ModelUnavailable
from ricordo.models.embedders.static import StaticEmbedder
from ricordo.runtime import Settings
from ricordo.runtime.models import choose_embedder

pytestmark = pytest.mark.anyio

ME = Scope(user="me", project="p")
THESE = Settings.from_environment({})


async def vectors_line(memory: Memory) -> str:
    return next((check.detail for check in await memory.doctor() if check.name == "vectors"), "")


async def test_a_memory_is_found_by_meaning_and_a_failing_embedder_is_told_by_the_doctor(tmp_path: Path) -> None:
    embedder = Concepts()
    async with Memory.open(tmp_path / "root", scope=ME, embedder=embedder) as memory:
        await memory.remember("The dog sleeps in the kitchen.")
        assert not await vectors_line(memory)
        (hit,) = await memory.recall("puppy")
        assert hit.entry.content == "The dog sleeps in the kitchen."
        assert hit.signals["dense"] > 0.5
        embedder.error = ModelUnavailable("no route")
        await memory.remember("We sail on Sundays.")
        assert len(await memory.recall("sail")) == 1
        told = await vectors_line(memory)
        assert told.startswith("1 passages have no vector yet and are found by their words: no route")
        assert "`ricordo maintain` embeds them" in told


async def test_what_holds_in_all_projects_is_embedded_too(tmp_path: Path) -> None:
    settings = Settings.from_environment({"RICORDO_DATA": str(tmp_path / "data"), "RICORDO_USER": "me"})
    async with Memory.open(tmp_path / "root", scope=ME, settings=settings, embedder=Concepts()) as memory:
        await memory.remember("A hound barks.", scope=Scope(user="me"), reason="it is mine everywhere")
        for _ in range(500):
            if await memory.recall("puppy"):
                break
            await anyio.sleep(0.01)
        assert [hit.entry.content for hit in await memory.recall("puppy")] == ["A hound barks."]


async def test_the_settings_name_the_embedder_and_an_argument_wins(tmp_path: Path) -> None:
    settings = Settings.load(environment={"RICORDO_EMBEDDER": "hashing", "RICORDO_DATA": str(tmp_path / "data")})
    assert settings.embedder == "hashing"
    vectors = tmp_path / "root" / "memory_index_vectors.db"
    async with Memory.open(tmp_path / "root", scope=ME, settings=settings, embedder="none") as memory:
        await memory.doctor()
    assert not await anyio.Path(vectors).exists()
    async with Memory.open(tmp_path / "root", scope=ME, settings=settings) as memory:
        await memory.remember("Deployments go out on Mondays.")
        assert (await memory.recall("deployment"))[0].entry.content == "Deployments go out on Mondays."
        await memory.doctor()
    assert await anyio.Path(vectors).exists()


def test_a_name_of_the_embedder_is_checked() -> None:
    assert Settings.load(environment={"RICORDO_EMBEDDER": "none"}).embedder is None
    assert choose_embedder(None, THESE) is choose_embedder("none", THESE) is None
    assert isinstance(choose_embedder("auto", THESE), StaticEmbedder)
    with pytest.raises(ModelNotFound):
        choose_embedder("nothing", THESE)
    with pytest.raises(InvalidSetting):
        Settings.load(arguments={"embedder": " "})


def test_auto_is_none_where_the_package_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ricordo.models.embedders.static._PACKAGE", "a_package_that_is_not_there")
    assert choose_embedder("auto", THESE) is None


async def test_what_waits_for_a_vector_can_be_waited_for(tmp_path: Path) -> None:
    embedder = Concepts()
    async with Memory.open(tmp_path / "root", scope=ME, embedder=embedder) as memory:
        embedder.error = ModelUnavailable("no route")
        await memory.remember("The dog sleeps in the kitchen.")
        assert await memory.embed(seconds=5) == 1
        embedder.error = None
        assert await memory.embed(seconds=5) == 0, "asked by hand, it does not wait for the end of the pause"
        embedder.error = ModelUnavailable("no route")
        await memory.remember("A loaf costs two coins.")
        assert await memory.embed(seconds=5) == 1
    async with Memory.open(tmp_path / "root", scope=ME, embedder=Concepts()) as memory:
        assert await memory.embed(seconds=5) == 0
        assert [hit.entry.content for hit in await memory.recall("puppy")] == ["The dog sleeps in the kitchen."]
    async with Memory.open(tmp_path / "root", scope=ME) as memory:
        assert await memory.embed() == 0


@pytest.mark.parametrize(
    ("named", "embedder"), [(None, "auto"), ("none", None), ("hashing", "hashing")], ids=["unsaid", "none", "named"]
)
def test_finding_by_meaning_is_the_default_only_where_nobody_said_otherwise(
    named: str | None, embedder: str | None
) -> None:
    environment = {"RICORDO_EMBEDDER": named} if named else {}
    assert Settings.load(environment=environment).with_default_embedder().embedder == embedder


async def test_a_memory_and_a_recommended_agent_find_by_meaning_and_any_other_agent_by_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RICORDO_EMBEDDER")
    chosen: list[object] = []

    def choose(named: object, *_: object) -> None:
        chosen.append(named)

    monkeypatch.setattr("ricordo.runtime.workspace.choose_embedder", choose)
    for agent in (HarnessAgent.with_recommended_settings, HarnessAgent):
        async with agent("offline", memory=tmp_path / ".ricordo", scope=ME):
            pass
    for settings in (None, Settings.from_environment()):
        async with Memory.open(tmp_path / ".ricordo", scope=ME, settings=settings):
            pass
    async with Memory.open(tmp_path / ".ricordo", scope=ME, embedder="none"):
        pass
    assert chosen == ["auto", None, "auto", None, "none"]


async def test_a_memory_finds_by_meaning_what_was_saved_a_moment_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RICORDO_EMBEDDER")
    async with Memory.open(tmp_path / ".ricordo", scope=ME) as memory:
        await memory.remember_many(["The dog sleeps in the kitchen.", "We sail on Sundays.", "The office is in Turin."])
        assert [hit.entry.content for hit in await memory.recall("puppy", limit=1)] == [
            "The dog sleeps in the kitchen."
        ]
        await memory.remember("Our cook is called Nadia.")
        assert [hit.entry.content for hit in await memory.search("chef", limit=1)] == ["Our cook is called Nadia."]
    monkeypatch.setattr("ricordo.models.embedders.static._PACKAGE", "a_package_that_is_not_there")
    async with Memory.open(tmp_path / ".ricordo", scope=ME) as memory:
        assert await memory.recall("puppy") == []
        assert len(await memory.recall("dog")) == 1


async def test_an_answer_is_surer_with_an_embedder_only_by_its_nearness_in_meaning(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "root", scope=ME, embedder=Concepts()) as memory:
        await memory.remember("The dog sleeps in the kitchen.")
        await memory.remember("We sail on Sundays.")
        await memory.embed()
        with_embedder = await memory.answer("Where does the dog sleep?")
        assert with_embedder.hit is not None
        nearness = with_embedder.hit.signals["dense"]
        assert nearness > 0.5
    async with Memory.open(tmp_path / "root", scope=ME, embedder="none") as memory:
        without = await memory.answer("Where does the dog sleep?")
    assert with_embedder.text == without.text
    # a fifth of what is beyond the usual nearness of 0.23, on the scale of 1.2
    assert with_embedder.score == pytest.approx(without.score + 0.2 * (nearness - 0.23) / 1.2, abs=1e-4)
