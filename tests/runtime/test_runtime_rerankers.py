"""A reranker by its name: registered or installed, at work wherever memory is found, and never silently missing."""

import importlib.metadata
from collections.abc import Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import ClassVar

import pytest

from command_line import ricordo
from ricordo import HarnessAgent, Memory, Scope
from ricordo.errors import ExtraMissing, InvalidSetting
from ricordo.runtime import Settings, models, register_reranker
from ricordo.runtime.models import choose_reranker, load_reranker
from ricordo.testing import Say, ScriptedModel

pytestmark = pytest.mark.anyio
ME = Scope(user="me")
SAID = ("The harvester is green.", "The harvester stands in the old barn.")


class Longest:
    """The longer, the better; it counts how often it was made and asked."""

    made: ClassVar[list["Longest"]] = []

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.made.append(self)

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append(query)
        longest = max(map(len, texts))
        return [len(text) / longest for text in texts]


class Shortest(Longest):
    """The shorter, the better."""

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [1 - score for score in await super().scores(query, texts)]


class NoReranker:
    """Has no scores."""


def _fails() -> Longest:
    raise OSError("no weights")


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer rerankers as installed packages would, and register none."""
    import sys

    named = {"longest": "Longest", "shortest": "Shortest", "empty": "NoReranker", "failing": "_fails", "old": "Gone"}
    points = [
        EntryPoint(name=name, value=f"reranking_pack:{value}", group=models.RERANKER_GROUP)
        for name, value in named.items()
    ]
    points.append(EntryPoint(name="broken", value="a_pack_that_is_not_there:Longest", group=models.RERANKER_GROUP))
    found = EntryPoints(points)
    monkeypatch.setitem(sys.modules, "reranking_pack", sys.modules[Longest.__module__])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found.select(group=group))
    monkeypatch.setattr(models, "_FACTORIES", {})
    monkeypatch.setattr(Longest, "made", [])


async def _remember(root: Path) -> None:
    async with Memory.open(root, scope=ME, embedder="none") as memory:
        for text in SAID:
            await memory.remember(text)


async def _best(root: Path, *, reranker: "Longest | str | None" = None, settings: Settings | None = None) -> str:
    async with Memory.open(root, scope=ME, settings=settings, embedder="none", reranker=reranker) as memory:
        return (await memory.recall("harvester"))[0].entry.content


async def test_an_argument_or_the_settings_name_the_reranker(tmp_path: Path) -> None:
    await _remember(tmp_path / "root")
    assert await _best(tmp_path / "root", reranker="longest") == SAID[1]
    assert await _best(tmp_path / "root", reranker="shortest") == SAID[0]
    assert len(Longest.made) == 2
    named = Settings.load(environment={"RICORDO_RERANKER": "longest"})
    assert named.reranker == "longest"
    assert await _best(tmp_path / "root", settings=named) == SAID[1]
    assert await _best(tmp_path / "root", settings=named, reranker="shortest") == SAID[0]
    assert await _best(tmp_path / "root", settings=named, reranker=Longest()) == SAID[1]
    before = len(Longest.made)
    await _best(tmp_path / "root", settings=named, reranker="none")
    assert len(Longest.made) == before


async def test_search_explain_and_the_store_of_a_memory_ask_the_one_that_is_named(tmp_path: Path) -> None:
    await _remember(tmp_path / "root")
    async with Memory.open(tmp_path / "root", scope=ME, embedder="none", reranker="longest") as memory:
        assert (await memory.search("harvester"))[0].entry.content == SAID[1]
        assert (await memory.explain("harvester")).hits[0].score_parts["rerank"] > 0
        assert (await memory.recall("harvester"))[0].signals["rerank"] > 0
    (reranker,) = Longest.made
    assert reranker.asked == ["harvester"] * 3


async def test_an_agent_finds_with_the_one_that_its_settings_name(tmp_path: Path) -> None:
    await _remember(tmp_path / "root")
    settings = Settings.load(environment={"RICORDO_RERANKER": "longest"})
    model = ScriptedModel([Say("In the barn.")])
    async with HarnessAgent(model, memory=tmp_path / "root", scope=ME, settings=settings) as agent:
        await agent.send("Where is the harvester?")
    assert any(each.asked for each in Longest.made)


def test_a_name_that_nobody_offers_is_told_with_those_there_are() -> None:
    with pytest.raises(InvalidSetting, match=r"'longst'.*did you mean longest\?.*broken, empty, failing, longest"):
        load_reranker("longst")
    with pytest.raises(InvalidSetting, match="no `async def scores"):
        load_reranker("empty")
    with pytest.raises(InvalidSetting, match="blank"):
        Settings.load(arguments={"reranker": " "})
    assert choose_reranker(None) is choose_reranker("none") is None


@pytest.mark.parametrize(
    ("name", "why"), [("broken", "a_pack_that_is_not_there"), ("old", "Gone"), ("failing", "no weights")]
)
def test_a_package_that_can_not_be_loaded_is_told(name: str, why: str) -> None:
    with pytest.raises(ExtraMissing, match=f"{name}.*{why}"):
        load_reranker(name)


def test_a_program_registers_one_before_an_installed_one_is_looked_for() -> None:
    register_reranker("longest", Shortest)
    assert isinstance(load_reranker("longest"), Shortest)
    register_reranker("mine-1.0", Longest)
    assert "mine-1.0" in models.list_rerankers()
    for name in ("", "none", "My own", "a:b", "-x"):
        with pytest.raises(InvalidSetting, match="name"):
            register_reranker(name, Longest)


def test_the_command_line_finds_with_it_and_only_what_finds_pays_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / ".ricordo"
    monkeypatch.setenv("RICORDO_RERANKER", "longest")
    for text in SAID:
        ricordo("remember", text, "--root", root)
    assert not Longest.made
    assert ricordo("recall", "harvester", "--root", root, "--json").document["hits"][0]["entry"]["content"] == SAID[1]
    assert [each.asked for each in Longest.made] == [["harvester"]]
    assert "the reranker longest has a say" in ricordo("doctor", "--root", root).out


def test_the_command_line_says_in_one_line_that_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / ".ricordo"
    monkeypatch.setenv("RICORDO_RERANKER", "longst")
    assert ricordo("remember", SAID[0], "--root", root).code == 0
    done = ricordo("recall", "harvester", "--root", root)
    assert done.code != 0
    assert "There is no reranker 'longst': did you mean longest?" in " ".join(done.err.split())
    doctor = ricordo("doctor", "--root", root)
    assert doctor.code == 1
    assert "longst" in doctor.out
