"""A memory folder of other tools is used where it lies, and they read it as before."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_at_work import SCOPE, settings, system
from ricordo import Entry, HarnessAgent, MemoryConfig, Scope
from ricordo.errors import EntryNotFound, InvalidInput, ScopeMismatch
from ricordo.messages import Tokens, estimate_text
from ricordo.runtime import open_store
from ricordo.runtime.stores import open_backend
from ricordo.stores import Forgets, Lists, Store
from ricordo.stores.memory_folder import add_link, create_topic, has_link, parse_document
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-AUTO")]

INDEX = """# Memory index

- [Testing feedback](feedback_testing.md) - real databases only
- [Who I am](user_role.md)
- The staging key is in the vault.

Deploys are frozen on Fridays.
"""
FEEDBACK = """---
name: Testing feedback
description: How tests are to be written
type: feedback
mood: strict
tags: [tests, "quoted: yes"]
---

Tests hit a real database, no mocks.

**Why:** a mocked migration broke production in spring.
**How to apply:** use the `shop-test` container.

- one bullet of theirs
"""
ROLE = "---\r\nname: Who I am\r\ntype: user\r\n---\r\n\r\nA data engineer who is new to Rust.\r\n"
FOREIGN: Mapping[str, bytes] = {
    "MEMORY.md": INDEX.encode(), "feedback_testing.md": FEEDBACK.encode(), "user_role.md": ROLE.encode(),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as another tool left it."""
    made = tmp_path / "projects" / "shop" / "memory"
    made.mkdir(parents=True)
    for name, data in FOREIGN.items():
        (made / name).write_bytes(data)
    return made


@asynccontextmanager
async def opened(folder: Path, scope: Scope = SCOPE) -> AsyncIterator[Store]:
    kept = settings(folder.parents[2] / "mine" / ".ricordo")
    async with open_store(f"folder:{folder}", scope=scope, settings=kept) as store:
        yield store


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.req("HE-AUTO")
async def test_a_folder_of_another_tool_is_searched_and_saved_to_in_its_own_layout(folder: Path) -> None:
    async with opened(folder) as store:
        assert await found(store, "migration") == ["feedback_testing.md"]
        assert await found(store, "RUST") == ["user_role.md"]
        assert await found(store, "staging vault") == ["MEMORY.md"]
        assert await found(store, "frozen") == ["MEMORY.md"]
        (hit,) = await store.recall("mocked")
        assert hit.entry.kind == "convention"
        assert "How tests are to be written" in hit.entry.content
        assert "real databases only" in await store.preamble()
        for content, kind in (("We deploy only from main.", "decision"), ("Call me Ana.", "preference")):
            await store.save(Entry(content=content, kind=kind, by="agent"))
        await store.save(Entry(content="Fixtures live in testdata/golden/.", by="agent", tags=("tests",)))
    after = contents(folder)
    assert set(after) == {*FOREIGN, "project.md", "user.md"}, "no marker, no lock, no rule for git"
    assert {name: after[name] for name in FOREIGN if name != "MEMORY.md"} == {
        name: data for name, data in FOREIGN.items() if name != "MEMORY.md"
    }
    lines = after["MEMORY.md"].decode().splitlines()
    added = [line for line in lines if line not in INDEX.splitlines()]
    assert [line for line in lines if line not in added] == INDEX.splitlines()
    assert [re.match(r"- \[([^]]+)\]\(([a-z_]+\.md)\)", line)[2] for line in added] == ["project.md", "user.md"]  # type: ignore[index]
    for name, kind in (("project.md", "project"), ("user.md", "user")):
        _, front, body = after[name].decode().split("---\n", 2)
        told = dict(line.split(": ", 1) for line in front.splitlines())
        assert (set(told), told["type"]) == ({"name", "description", "type"}, kind)
        assert "\n- " in body
    async with opened(folder) as store:
        assert await found(store, "deploy main") == ["project.md"]
        assert await found(store, "golden") == ["project.md"]
        assert "Call me Ana." in await store.preamble()


async def found(store: Store, query: str) -> list[str]:
    """Return the files in which a query finds something, and check that the lines are right."""
    return [hit.path for hit in await store.recall(query)]


async def test_each_kind_is_saved_into_the_topic_of_its_type_and_topics_in_folders_are_searched(folder: Path) -> None:
    (folder / "topics").mkdir()
    (folder / "topics" / "dogs.md").write_text("---\nname: Dogs\n---\n\nThe office dog is called Bello.\n")
    kinds = {"preference": "user.md", "convention": "feedback.md", "goal": "project.md", "reference": "reference.md"}
    async with opened(folder) as store:
        assert await found(store, "Bello") == ["topics/dogs.md"]
        for kind, name in kinds.items():
            await store.save(Entry(content=f"Saved for {name}.", kind=kind, by="agent"))
        for name in kinds.values():
            assert await found(store, f"for {name}") == [name]
            assert has_link(contents(folder)["MEMORY.md"], name)
            assert f"\ntype: {name.removesuffix('.md')}\n" in contents(folder)[name].decode()


async def test_a_second_memory_for_a_topic_adds_no_second_line_to_the_index(folder: Path) -> None:
    async with opened(folder) as store:
        for number in range(3):
            await store.save(Entry(content=f"Decision {number} holds.", kind="decision", by="user"))
    assert contents(folder)["MEMORY.md"].count(b"project.md") == 1
    assert contents(folder)["project.md"].count(b"\n- Decision") == 3


async def test_a_topic_that_the_index_lists_in_another_way_is_not_listed_again(folder: Path) -> None:
    index = f"{INDEX}\n- [Project](./project.md#facts)\n"
    (folder / "MEMORY.md").write_text(index)
    (folder / "project.md").write_bytes(create_topic("project"))
    async with opened(folder) as store:
        await store.save(Entry(content="We deploy only from main.", kind="decision", by="agent"))
        assert "[Project]" not in [hit.entry.content for hit in await store.recall("project")]
    assert contents(folder)["MEMORY.md"].decode() == index


@pytest.mark.req("HE-C1b")
async def test_a_topic_that_a_killed_process_left_out_of_the_index_is_listed_by_the_next_save(folder: Path) -> None:
    (folder / "project.md").write_bytes(create_topic("project") + b"- Saved before the kill.\n")
    async with opened(folder) as store:
        await store.save(Entry(content="Saved after it.", by="user"))
    assert has_link(contents(folder)["MEMORY.md"], "project.md")


@pytest.mark.req("HE-O-audit-forget")
async def test_what_was_saved_is_forgotten_and_what_others_wrote_is_theirs_to_delete(folder: Path) -> None:
    async with opened(folder) as store:
        forgets, lists = store.offers(Forgets), store.offers(Lists)
        assert forgets
        assert lists
        saved = await store.save(Entry(content="The canary is yellow.", by="user"))
        await forgets.forget(saved.id, who="user")
        assert await store.recall("canary") == []
        with pytest.raises(EntryNotFound):
            await lists.get(saved.id)
        (theirs,) = await store.recall("migration")
        with pytest.raises(InvalidInput, match=r"feedback_testing\.md"):
            await forgets.forget(theirs.entry.id, who="user")
        (bullet,) = await store.recall("staging")
        await forgets.forget(bullet.entry.id, who="user")
    async with opened(folder) as store:
        with pytest.raises(InvalidInput, match="was forgotten"):
            await store.save(saved)
    after = contents(folder)
    assert after.keys() == {*FOREIGN, "user.md", "project.md", "reference.md"} & after.keys()
    assert b"canary" not in b"".join(after.values())
    assert b"staging" not in after["MEMORY.md"]
    assert after["feedback_testing.md"] == FOREIGN["feedback_testing.md"]


async def test_what_another_tool_writes_meanwhile_is_found_and_listed(folder: Path) -> None:
    async with opened(folder) as store:
        assert await store.recall("walnut") == []
        (folder / "reference_walnut.md").write_text("---\nname: Walnuts\ntype: reference\n---\nSee the walnut wiki.\n")
        (hit,) = await store.recall("walnut wiki")
        assert (hit.path, hit.entry.kind) == ("reference_walnut.md", "reference")


@pytest.mark.req("CC-INDEXCAP")
async def test_the_preamble_is_the_index_within_two_hundred_lines_and_its_budget(folder: Path) -> None:
    lines = [f"- [Topic {number}](topic_{number}.md): about number {number}" for number in range(400)]
    (folder / "MEMORY.md").write_text("\n".join(lines))
    async with opened(folder) as store:
        text = await store.preamble(Tokens(50_000))
        assert "Topic 199]" in text
        assert "Topic 200]" not in text
        assert "did not fit" in text
        assert estimate_text(await store.preamble(Tokens(300))) <= 300


async def test_a_folder_is_its_owner_s_and_says_so_without_a_mark_in_it(folder: Path) -> None:
    async with opened(folder):
        pass
    assert contents(folder) == FOREIGN
    with pytest.raises(ScopeMismatch):
        async with opened(folder, Scope(user="else")):
            pass
    kept = settings(folder.parents[2] / "mine" / ".ricordo")
    async with open_backend(f"folder:{folder}", scope=SCOPE, settings=kept) as backend:
        with pytest.raises(ScopeMismatch):
            backend.bind(Scope(user="me", project="else"))


@pytest.mark.parametrize("kind", ["code", "root", "workspace", "file"])
async def test_what_is_no_memory_folder_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "a" / "b" / "workspace"
    folder.mkdir(parents=True)
    marked = {"code": folder / "main.py", "root": folder / "project.json", "workspace": folder.parent / "project.json"}
    (marked.get(kind) or folder / "x").write_text("{}")
    if kind == "workspace":
        (folder / "MEMORY.md").write_text("# Memory\n")
    before = contents(tmp_path)
    with pytest.raises(InvalidInput):
        async with opened(folder / "x" if kind == "file" else folder):
            pass
    assert contents(tmp_path) == before


async def test_an_agent_remembers_into_a_folder_of_another_tool_and_reads_from_it(folder: Path) -> None:
    root = folder.parents[2] / "mine" / ".ricordo"
    model = ScriptedModel(
        [
            Call("remember", {"content": "The till is red.", "kind": "fact"}),
            Say("Kept."),
            Call("recall", {"query": "migration"}),
            Say("In spring."),
        ]
    )
    async with HarnessAgent(
        model,
        memory=MemoryConfig(root=root, store=f"folder:{folder}", closing_summary="off"),
        scope=SCOPE,
        settings=settings(root),
    ) as agent:
        await agent.send("Keep this: the till is red.")
        await agent.send("When did it break?")
    assert "real databases only" in system(model.requests[0])
    assert "broke production in spring" in model.requests[3].messages[-1].tool_results[0].text
    assert b"- The till is red." in contents(folder)["project.md"]


NAMES = st.sampled_from(["user.md", "a b.md", "project.md", "x-1.md"])
LINES = st.lists(
    st.one_of(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=30), st.sampled_from(
        ["- [A](a.md)", "- [B](./project.md): b", "* star", "```", "---", "", "# Memory", "  - nested", "1. [N](n.md)"]
    )), max_size=12,
)  # fmt: skip


@given(lines=LINES, ending=st.sampled_from(["\n", "\r\n"]), last=st.booleans(), name=NAMES)
def test_a_line_for_a_topic_takes_nothing_from_the_index(lines: list[str], ending: str, name: str, last: bool) -> None:
    before = (ending.join(lines) + (ending if last else "")).encode()
    after = add_link(before, name.replace(" ", "-"), create_topic("project"))
    assert has_link(after, name.replace(" ", "-"))
    rest = after.splitlines()
    at = next(number for number, line in enumerate(rest) if line.startswith(b"- [Project]("))
    assert [*rest[:at], *rest[at + 1 :]][-len(before.splitlines()) or len(rest) :] == before.splitlines()


@given(lines=LINES)
def test_any_document_is_read_and_no_two_of_its_memories_have_one_id(lines: list[str]) -> None:
    for path in ("MEMORY.md", "topic.md"):
        located = parse_document(path, "\n".join(lines).encode())
        assert len({one.entry.id for one in located}) == len(located)


async def test_a_folder_whose_first_save_was_cut_short_before_memory_md_opens_again(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "memory"
    async with opened(folder) as store:
        await store.save(Entry(content="The canary is yellow."))
    (folder / "MEMORY.md").unlink()
    async with opened(folder) as store:
        assert [hit.entry.content for hit in await store.recall("canary")] == ["The canary is yellow."]
