"""Users of one root: what one of them saves is found by that user alone, what the project shares by all of them."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from places import place_of
from ricordo import Memory, Scope
from ricordo.errors import EntryNotFound, ReasonRequired, ScopeMismatch, SessionNotFound
from ricordo.messages import Message, Text
from ricordo.search import Query

pytestmark = pytest.mark.anyio

SHOP = Scope(project="shop")
CANARIES = tuple(f"canary{number:02}{'xyz'[number % 3] * 4}" for number in range(20))


def of(user: str) -> Scope:
    return Scope(user=user, project="shop")


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


async def fill(memory: Memory) -> list[str]:
    """Save each canary by another way of saving, and return the ids of the entries."""
    for number, canary in enumerate(CANARIES[:8]):
        await memory.remember(f"My code word number {number} is {canary}.", kind="decision", tags=[canary])
    session = [said(f"I prefer {canary} for everything, always.") for canary in CANARIES[8:16]]
    await memory.ingest(session, session="monday")
    profile = memory.profile()
    for canary in CANARIES[16:18]:
        await profile.add_fact(f"User's salary is {canary} euros.", category="context")
    for canary in CANARIES[18:]:
        await memory.remember(canary * 700)
    return [entry.id for entry in await memory.entries()]


async def everything(memory: Memory) -> str:
    """Return what every verb of a memory that reads tells, in one text."""
    told: list[object] = [
        await memory.entries(),
        await memory.sessions(),
        await memory.preamble(),
        await memory.history(),
        await memory.background_runs(),
        await memory.doctor(),
        await memory.profile().show(),
        await memory.recall("", limit=50),
        await memory.preamble_cut(),
    ]
    for word in (*CANARIES, "code word", "salary", "prefer everything", "What is my salary?"):
        told += [
            await memory.recall(word, limit=50, around=True),
            await memory.search(word, limit=50, around=True),
            await memory.explain(Query(text=word), limit=50, rejected=50),
            await memory.answer(word),
        ]
    # what was asked for is told back in the answers' own words
    return "\n".join(map(repr, told))


@pytest.mark.req("HE-C5-user", "HE-O-tenancy")
async def test_no_verb_that_reads_tells_one_user_what_another_saved(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=of("ann")) as ann, Memory.open(tmp_path / "r", scope=of("ben")) as ben:
        ids = await fill(ann)
        own = await everything(ann)
        assert [canary for canary in CANARIES if canary not in own] == []
        told = await everything(ben)
        assert [canary for canary in CANARIES if canary in told] == []
        assert await ben.entries() == []
        for entry_id in ids:
            for act in (ben.entry, ben.forget, ben.pin, ben.confirm, ben.mark_used, ben.usage):
                with pytest.raises(EntryNotFound):
                    await act(entry_id)
        with pytest.raises(SessionNotFound):
            await ben.session("monday")


@pytest.mark.req("HE-C5-user", "DF-C52", "HE-O-tenancy")
@pytest.mark.parametrize("other", ["Ann", "ANN", "ann%", "..", "ann/../ann", "a\u0308nn"])
async def test_names_that_look_alike_are_different_users(tmp_path: Path, other: str) -> None:
    async with Memory.open(tmp_path / "r", scope=of("ann")) as ann, Memory.open(tmp_path / "r", scope=of(other)) as ben:
        await ann.remember("I park in the cellar.")
        await ben.remember("I park on the roof.")
        assert [hit.entry.content for hit in await ann.recall("park")] == ["I park in the cellar."]
        assert [hit.entry.content for hit in await ben.recall("park")] == ["I park on the roof."]
        assert ann.folder.resolve().parent == ben.folder.resolve().parent != ann.folder.resolve()
        assert str(ann.folder).casefold() != str(ben.folder).casefold()


@pytest.mark.req("AS-BUG-28", "HE-O-tenancy")
async def test_the_same_session_id_is_another_session_for_another_user(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=of("ann")) as ann, Memory.open(tmp_path / "r", scope=of("ben")) as ben:
        async with anyio.create_task_group() as group:
            for memory, text in ((ann, "I prefer tea."), (ben, "I prefer coffee.")):
                group.start_soon(partial(memory.ingest, [said(text)], session="s"))
        assert [message.text for message in (await ann.session("s")).messages] == ["I prefer tea."]
        assert [message.text for message in (await ben.session("s")).messages] == ["I prefer coffee."]


@pytest.mark.req("AS-BUG-28", "DF-C52")
async def test_a_session_of_another_agent_of_the_same_user_is_not_found(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=of("ann")) as ann:
        await ann.ingest([said("I prefer tea.")], session="s")
    coder = replace(of("ann"), agent="coder")
    async with Memory.open(tmp_path / "r", scope=coder) as memory:
        assert not await memory.sessions()
        with pytest.raises(SessionNotFound):
            await memory.session("s")
        await memory.ingest([said("I prefer coffee.")], session="s")
        assert [message.text for message in (await memory.session("s")).messages] == ["I prefer coffee."]


@pytest.mark.req("HE-C5-user")
async def test_what_one_agent_saves_for_its_user_every_agent_of_the_user_recalls_in_every_project(
    tmp_path: Path,
) -> None:
    coder = Scope(user="ann", project="shop", agent="coder")
    async with Memory.open(tmp_path / "shop" / ".ricordo", scope=coder) as memory:
        saved = await memory.remember("I park in the cellar.", scope=Scope(user="ann"), reason="it is about me")
        assert saved.scope == Scope(user="ann")
    for agent in (None, "coder", "writer"):
        scope = Scope(user="ann", project="garden", agent=agent)
        async with Memory.open(tmp_path / "garden" / ".ricordo", scope=scope) as memory:
            assert [hit.entry.content for hit in await memory.recall("park")] == ["I park in the cellar."]


@pytest.mark.req("HE-C5-project")
async def test_what_is_saved_for_the_project_is_found_by_all_of_its_users(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=of("ann")) as ann:
        shared = await ann.remember("We deploy only from main.", scope=SHOP)
        assert shared.scope == SHOP
        own = await ann.remember("I deploy on Fridays.")
    async with Memory.open(tmp_path / "r", scope=of("ben")) as ben:
        assert [entry.id for entry in await ben.entries()] == [shared.id]
        [hit] = await ben.recall("deploy")
        assert (hit.source, hit.entry.scope) == ("shared", SHOP)
        assert "We deploy only from main." in await ben.preamble()
        assert 'source="project/memory/' in await ben.preamble()
    async with Memory.open(tmp_path / "r", scope=SHOP) as project:
        assert [entry.id for entry in await project.entries()] == [shared.id]
    async with Memory.open(tmp_path / "r", scope=of("ann")) as ann:
        assert {entry.id for entry in await ann.entries()} == {shared.id, own.id}
    assert (tmp_path / "r" / "workspace").joinpath("memory").is_dir()
    assert (place_of(tmp_path / "r", "ann") / "workspace" / "memory").is_dir()
    assert not (place_of(tmp_path / "r", "ann") / "guard.key").exists()


@pytest.mark.req("HE-C5-user")
async def test_what_is_saved_for_a_user_alone_is_found_in_all_of_their_projects(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=of("ann")) as ann:
        with pytest.raises(ReasonRequired):
            await ann.remember("I like tea.", scope=Scope(user="ann"))
        await ann.remember("I like tea.", scope=Scope(user="ann"), reason="it holds everywhere")
    async with Memory.open(tmp_path / "s", scope=Scope(user="ann", project="garden")) as ann:
        assert [hit.source for hit in await ann.recall("tea")] == ["user"]
    async with Memory.open(tmp_path / "r", scope=of("ben")) as ben:
        assert await ben.recall("tea") == []


@pytest.mark.req("HE-C5-required", "HE-C5-user")
async def test_a_memory_saves_only_for_those_it_is_open_for(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=of("ann")) as ann, Memory.open(tmp_path / "r", scope=SHOP) as project:
        for memory, scope in ((ann, of("ben")), (ann, Scope(user="ben")), (project, of("ann"))):
            with pytest.raises(ScopeMismatch):
                await memory.remember("This is nobody's.", scope=scope, reason="a try")
        assert await ann.entries() == await project.entries() == []


@pytest.mark.req("HE-C5-project", "HE-C6-boundary")
@pytest.mark.parametrize("other", [None, "b"])
async def test_a_root_of_one_team_is_not_opened_for_another_or_for_none(tmp_path: Path, other: str | None) -> None:
    async with Memory.open(tmp_path / "r", scope=Scope(user="ann", team="a", project="shop")) as memory:
        saved = await memory.remember("We deploy only from main.", scope=Scope(project="shop"))
        assert saved.scope == Scope(team="a", project="shop")
    with pytest.raises(ScopeMismatch):
        async with Memory.open(tmp_path / "r", scope=Scope(user="ann", team=other, project="shop")):
            pass


@pytest.mark.req("HE-C5-user", "HE-C6")
async def test_users_of_a_team_are_apart_too(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=Scope(user="ann", team="a")) as ann:
        await ann.remember("I like tea.")
    async with Memory.open(tmp_path / "r", scope=Scope(user="ben", team="a")) as ben:
        assert await ben.entries() == []


@pytest.mark.req("DF-C52")
@pytest.mark.parametrize("user", ["ann-17239b6e", "con", "aux.txt", "ann."])
async def test_a_place_from_before_is_found_by_its_marker_and_a_new_one_has_a_name_that_is_safe(
    user: str, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    async with Memory.open(root, scope=of(user)) as memory:
        kept = await memory.remember("The harbour opens at six.")
        safe = memory.folder
    assert safe.name.startswith(f"{user.replace('.', '%2E')}-")
    before = safe.rename(safe.with_name(user))
    async with Memory.open(root, scope=of(user)) as memory:
        assert await memory.entries() == [kept]
        assert memory.folder == before
    # where case is ignored, the folder of that name may be the one of `Ann`
    marker = before / "project.json"
    marker.write_text(marker.read_text().replace(f'"{user}"', '"Ann"'))
    async with Memory.open(root, scope=of(user)) as memory:
        assert await memory.entries() == []
        assert memory.folder == safe
