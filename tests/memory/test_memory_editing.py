"""An entry is edited under its id, many are saved or forgotten at once, and each of these is one change to undo."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hand_clock import HandClock
from places import place_of
from ricordo import Entry, Memory, Scope
from ricordo.errors import EntryNotFound, InvalidEntry, InvalidQuery, ScopeMismatch
from ricordo.guard import Trust

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]
SHOP = Scope(user="me", project="shop")
LONG = "The shop has many shelves. " * 400


def documents(root: Path) -> dict[str, bytes]:
    """Return the memory documents of the user of this test by name."""
    folder = place_of(root) / "workspace"
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.md"))}


async def contents(memory: Memory, **filters: object) -> list[str]:
    return [entry.content for entry in await memory.entries(**filters)]  # type: ignore[arg-type]


async def test_an_update_keeps_the_id_and_is_found_and_undone_with_every_byte(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.remember("We use uv.")
        saved = await memory.remember("We deploy on Mondays.", tags=["deploy"], metadata={"area": "web"})
        before = documents(root)
        updated = await memory.update(
            saved.id[-8:], content="We deploy on Thursdays.", kind="decision", metadata={"area": "ops", "page": "a]b\n"}
        )
        assert (updated.id, updated.time, updated.tags) == (saved.id, saved.time, ("deploy",))
        assert (updated.kind, updated.metadata) == ("decision", {"area": "ops", "page": "a]b\n"})
        assert updated.confirmed is not None
        assert [hit.entry for hit in await memory.recall("when do we deploy", limit=1)] == [updated]
        assert await memory.recall("Mondays") == []
        assert {entry.content for entry in await memory.versions(saved.id)} == {
            "We deploy on Mondays.",
            "We deploy on Thursdays.",
        }
        assert [item.action for item in await memory.history(saved.id)] == ["update", "save"]
        await memory.undo()
        assert documents(root) == before
        assert await memory.entry(saved.id) == saved
        assert [item.action for item in await memory.history(saved.id)] == ["undo", "update", "save"]
        assert len(await memory.history(saved.id, limit=1)) == 1
        await memory.forget(saved.id)
        assert (await memory.history(saved.id))[0].action == "forget"


async def test_an_update_reaches_curated_memory_and_long_content(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        saved = await memory.remember("I live in Rome.")
        (place_of(root) / "workspace" / "MEMORY.md").write_text(f"# Memory\n\n- I live in Rome. ^{saved.id}\n")
        before = documents(root)
        await memory.update(saved.id, content=LONG)
        assert (await memory.entry(saved.id)).content == LONG
        assert all(b"Rome" not in data for data in documents(root).values())
        assert "Rome" not in await memory.preamble()
        await memory.update(saved.id, tags=["home"])
        assert (await memory.entry(saved.id)).content == LONG
        await memory.update(saved.id, content="I live in Turin.")
        assert [name for name in documents(root) if "long" in name] == []
        for _ in range(3):
            await memory.undo()
        assert documents(root) == before


async def test_an_update_that_is_refused_or_changes_nothing_writes_nothing(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        saved = await memory.remember("We use uv.", metadata={"area": "web"})
        before, changes = documents(root), await memory.history()
        for wrong in (
            {"content": " "},
            {"kind": ""},
            {"tags": "one"},
            {"metadata": {"kind": "x"}},
            {"metadata": {"until": "x"}},
            {"metadata": {"1st": "x"}},
            {"metadata": {"area": 5}},
            {"metadata": ["area"]},
        ):
            with pytest.raises(InvalidEntry):
                await memory.update(saved.id, **wrong)
        with pytest.raises(EntryNotFound):
            await memory.update("nothing", content="We use pip.")
        await memory.update(saved.id)
        await memory.update(saved.id, content="We use uv.", metadata={"area": "web"})
        assert (documents(root), await memory.history()) == (before, changes)


async def test_an_agent_changes_what_an_agent_saved_and_vouches_for_nothing(opened: Opened) -> None:
    async with opened() as memory:
        saved = await memory.remember("We deploy on Mondays.", by="agent")
        updated = await memory.update(saved.id, content="We deploy on Thursdays.", by="agent")
        assert (updated.content, updated.by, updated.trust, updated.confirmed) == (
            "We deploy on Thursdays.", "agent", Trust.AGENT, None,
        )  # fmt: skip
        assert (await memory.history(saved.id))[0].actor == "agent"
        await memory.forget(saved.id, by="agent")
        assert (await memory.history(saved.id))[0].actor == "agent"


@pytest.mark.parametrize("mark", ["said", "confirmed", "pinned"])
async def test_an_agent_can_not_change_the_text_of_what_a_person_stands_behind(
    opened: Opened, root: Path, mark: str
) -> None:
    async with opened() as memory:
        saved = await memory.remember("We deploy on Mondays.", by="user" if mark == "said" else "agent")
        if mark != "said":
            await (memory.confirm if mark == "confirmed" else memory.pin)(saved.id)
        before = documents(root)
        with pytest.raises(InvalidEntry, match="save what holds now as a new memory"):
            await memory.update(saved.id, content="We deploy on Thursdays.", by="agent")
        assert documents(root) == before
        assert (await memory.update(saved.id, tags=["deploy"], by="agent")).trust is Trust.USER


async def test_a_secret_in_an_update_is_never_written(opened: Opened, root: Path) -> None:
    secret = "AKIA" + "QX7ZNM4RT2LPWK3V"
    async with opened() as memory:
        saved = await memory.remember("We use uv.")
        updated = await memory.update(saved.id, content=f"The key is {secret}.", metadata={"note": secret})
        assert secret not in updated.content + updated.metadata["note"]
        assert all(secret.encode() not in data for data in documents(root).values())


async def test_a_consolidation_keeps_an_update_and_its_metadata(opened: Opened) -> None:
    async with opened() as memory:
        curation = memory._workspace.curation
        assert curation is not None
        saved = await memory.remember("We deploy on Mondays.", kind="decision", metadata={"area": "web"})
        await curation.run(force=True)
        await memory.update(saved.id, content="We deploy on Thursdays.", metadata={"area": "ops"})
        await memory.remember("The office is in Turin.")
        await curation.run(force=True)
        standing = await memory.entry(saved.id)
        assert (standing.content, standing.metadata) == ("We deploy on Thursdays.", {"area": "ops"})
        assert "Mondays" not in await memory.preamble()


async def test_many_are_saved_with_their_own_times_as_one_change(opened: Opened, root: Path) -> None:
    day = datetime(2024, 5, 1, 8, tzinfo=UTC)
    given_entries = [
        Entry(
            content=f"Ticket {number} was closed.", time=day + timedelta(days=number), extra=(("ticket", str(number)),)
        )
        for number in range(5)
    ]
    async with opened() as memory:
        await memory.remember("We use uv.")
        before = documents(root)
        saved = await memory.remember_many([*given_entries, "The office is in Turin."])
        assert [entry.time for entry in saved[:5]] == [entry.time for entry in given_entries]
        assert [entry.content for entry in saved][-1] == "The office is in Turin."
        assert len({entry.id for entry in saved}) == 6
        assert saved[3].metadata == {"ticket": "3"}
        assert await memory.entry(saved[3].id) == saved[3]
        item = (await memory.history())[0]
        assert (item.action, set(item.entries)) == ("save", {entry.id for entry in saved})
        await memory.undo()
        assert documents(root) == before
        assert await memory.remember_many([]) == []


async def test_one_invalid_entry_among_many_leaves_all_unsaved(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        before = documents(root)
        for wrong in (["We use uv.", ""], ["We use uv.", 5], "We use uv.", [Entry(content="x", kind="")]):
            with pytest.raises(InvalidEntry):
                await memory.remember_many(wrong)  # type: ignore[arg-type]
        assert documents(root) == before


async def test_delete_all_forgets_only_what_matches_in_one_place_and_is_undone_at_once(
    opened: Opened, root: Path
) -> None:
    async with opened(Scope(project="shop")) as memory:
        await memory.remember("Visitors park behind the house.")
    async with opened() as memory:
        await memory.remember("I sleep at ten.", scope=Scope(user="me"), reason="true everywhere")
        web = await memory.remember("The web team uses React.", metadata={"area": "web"})
        ops = await memory.remember("The ops team uses Go.", kind="decision", tags=["go"], metadata={"area": "ops"})
        before = documents(root)
        done = await memory.delete_all(metadata={"area": ["web", "none"]})
        assert ([entry.id for entry in done.entries], bool(done.change_id)) == ([web.id], True)
        assert (await memory.delete_all(kinds="decision", tags="rust")).entries == ()
        done = await memory.delete_all(reason="they left")
        assert [entry.id for entry in done.entries] == [ops.id]
        assert sorted(await contents(memory)) == ["I sleep at ten.", "Visitors park behind the house."]
        assert (await memory.history())[0].reason == "they left"
        await memory.undo(done.change_id)
        await memory.undo()
        assert documents(root) == before
        done = await memory.delete_all()
        assert len(done.entries) == 2
        await memory.undo()
        assert len(await memory.entries()) == 4
        assert len((await memory.delete_all(scope=Scope(project="shop"))).entries) == 1
        with pytest.raises(ScopeMismatch):
            await memory.delete_all(scope=Scope(user="another", project="shop"))
        with pytest.raises(InvalidQuery):
            await memory.delete_all(states=["gone"])
        assert await memory.delete_all(since=datetime.now(UTC) + timedelta(days=1)) == type(done)()


async def test_entries_are_filtered_and_paged_in_an_order_that_later_writes_do_not_shift(opened: Opened) -> None:
    clock = HandClock()
    async with opened(clock=clock) as memory:
        for number in range(7):
            clock.turn(days=1)
            await memory.remember(
                f"Note {number}.",
                kind="goal" if number % 2 else "fact",
                metadata={"part": "even" if number % 2 == 0 else "odd"},
            )
        whole = await memory.entries()
        assert [entry.content for entry in whole] == [f"Note {number}." for number in range(6, -1, -1)]
        first = await memory.entries(limit=3)
        await memory.remember("Note 7.")
        await memory.forget(first[-1].id)
        second = await memory.entries(limit=3, after=first[-1])
        third = await memory.entries(limit=3, after=second[-1].id)
        assert [*first, *second, *third] == whole
        assert await memory.entries(limit=3, after=third[-1]) == []
        with pytest.raises(EntryNotFound):
            await memory.entries(after=first[-1].id)
        with pytest.raises(InvalidQuery):
            await memory.entries(after=5)  # type: ignore[arg-type]
        assert await contents(memory, kinds=["goal"], limit=2) == ["Note 5.", "Note 3."]
        assert await contents(memory, metadata={"part": "even"}, until=whole[3].time) == ["Note 2.", "Note 0."]
        assert await contents(memory, metadata={"part": ["even", "odd"]}, since=whole[1].time) == ["Note 6.", "Note 5."]
        assert await contents(memory, states="superseded") == []
        with pytest.raises(InvalidQuery):
            await memory.entries(metadata={"part": 5})  # type: ignore[dict-item]


async def test_recall_with_metadata_finds_as_many_as_there_are(opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember_many(
            [
                Entry(content=f"The printer in room {number} is slow.", extra=(("floor", str(number % 10)),))
                for number in range(100)
            ]
        )
        hits = await memory.recall("slow printer", limit=8, metadata={"floor": "7"})
        assert [hit.entry.metadata for hit in hits] == [{"floor": "7"}] * 8
        assert len(await memory.recall("slow printer", limit=50, metadata={"floor": ["7", "8"]})) == 20
        assert await memory.recall("slow printer", metadata={"floor": "11"}) == []


_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"at", "by", "from", "kind", "long", "tag", "rule", "seq", "state", "since", "until"}
)


@given(
    content=st.text(min_size=1, max_size=40).filter(lambda text: any(each.isalnum() for each in text)),
    metadata=st.dictionaries(_NAMES, st.text(max_size=12), max_size=3),
)
async def test_what_is_updated_reads_back_as_it_was_given(
    tmp_path_factory: pytest.TempPathFactory, content: str, metadata: dict[str, str]
) -> None:
    root = tmp_path_factory.mktemp("root") / ".ricordo"
    async with Memory.open(root, scope=SHOP) as memory:
        saved = await memory.remember("We use uv.")
        updated = await memory.update(saved.id, content=content, metadata=metadata)
        assert await memory.entry(saved.id) == updated
        (again,) = await memory.remember_many([Entry(content=content, extra=tuple(metadata.items()))])
        assert (again.content, again.metadata) == (updated.content, updated.metadata)
        await memory.undo()
        await memory.undo()
        assert await memory.entries() == [saved]
