"""One search over all that a scope may see, and nothing of what is somebody else's."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.messages import Text
from ricordo.runtime import Dependencies, Settings, open_workspace
from ricordo.runtime.roots import scope_folder
from ricordo.workspace import profile_path

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]
SHOP = Scope(project="shop")

FILES = {
    "archive": ("memory/archive/2026-08-01.md", "- The archived okapi was sold. [kind:: fact] ^01jdarchive\n"),
    "curated": ("MEMORY.md", "# Memory\n\n- The curated walrus is fed at six. [kind:: decision]\n"),
    "topic": ("memory/topics/zoo.md", "# Zoo\n\n- The topical lemur jumps. [kind:: fact]\n"),
    "profile": ("profile.json", ""),
    "session": ("sessions/2026-11-20-08h00.md", "# Session\n\nWe spoke about the summarised tapir.\n"),
    "result": ("large_tool_results/s1/grep-1a2b.txt", "the evicted ibex stands in line 40\n"),
    "note": ("plans/release.md", "# Release\n\nThe planned gecko ships first.\n"),
}
WORDS = {
    "archive": "archived okapi", "curated": "curated walrus", "topic": "topical lemur", "profile": "profiled axolotl",
    "session": "summarised tapir", "result": "evicted ibex", "note": "planned gecko", "ledger": "saved heron",
    "transcript": "spoken narwhal", "long": "endless anaconda",
}  # fmt: skip
RECALLED = WORDS.keys() - {"result"}
MEMORIES = RECALLED - {"transcript"}


def fact(content: str, **more: object) -> dict[str, object]:
    named = "".join(mark if mark.isalnum() else "_" for mark in content)[:20]
    given = {"id": f"fact_{named}", "content": content, "category": "preference", "confidence": 0.9}
    return given | {"createdAt": "2026-11-20T08:00:00Z", "updatedAt": "2026-11-20T08:00:00Z"} | more


def write_facts(root: Path, path: str, *facts: dict[str, object]) -> None:
    there = root / path
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text(json.dumps({"version": "1.0", "facts": list(facts)}, indent=1), encoding="utf-8")


async def test_one_search_finds_what_every_kind_of_document_says(opened: Opened) -> None:
    async with opened() as memory:
        for path, text in FILES.values():
            there = place_of(memory.root) / "workspace" / path
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(text, encoding="utf-8")
        write_facts(place_of(memory.root), profile_path(), fact("Prefers the profiled axolotl."))
        await memory.remember("The saved heron stands still.")
        await memory.remember(f"The endless anaconda.\n\n{'It goes on and on and on. ' * 400}")
        await memory.ingest([Message(role="user", parts=(Text(text="A spoken narwhal!"),))], session="s1")
        sorts = {}
        for name, words in WORDS.items():
            hits = await memory.search(words, limit=3)
            assert all(word in hits[0].entry.content for word in words.split()), name
            sorts[name] = hits[0].path
            recalled = [hit.path for hit in await memory.recall(words, limit=5)]
            assert (sorts[name] in recalled) == (name in RECALLED), name
            remembered = [hit.path for hit in await memory.recall(words, limit=5, said=False)]
            assert (sorts[name] in remembered) == (name in MEMORIES), name
        for name, (path, _) in FILES.items():
            assert sorts[name] == f"workspace/{path}"
        assert sorts["long"].startswith("workspace/memory/")
        assert sorts["transcript"].endswith("s1.log.jsonl")


@pytest.mark.req("DF-B4", "DF-FACTS-find")
async def test_a_fact_of_the_profile_is_a_hit_like_a_memory(opened: Opened) -> None:
    async with opened() as memory:
        said = fact('Keeps "three" héns\tin the yard.', pinned=True, source="s7", sourceMessages=["m1"])
        write_facts(place_of(memory.root), profile_path(), fact("Likes tea."), said)
        (hit,) = await memory.recall("hens in the yard")
        assert hit.entry.content == said["content"]
        assert (hit.entry.id, hit.entry.kind, hit.entry.tags) == (said["id"], "preference", ("profile",))
        assert (hit.entry.confidence, hit.entry.pinned, hit.entry.by) == (0.9, True, "user")
        assert (hit.entry.source.session, hit.entry.source.messages) == ("s7", ("m1",))
        assert hit.date is not None
        assert hit.date.isoformat() == "2026-11-20T08:00:00+00:00"
        lines = (place_of(memory.root) / hit.path).read_text(encoding="utf-8").splitlines()
        assert "h\\u00e9ns" in lines[hit.line_number - 1]
        assert [one.entry.content for one in await memory.recall("yard", kinds=["preference"])] == [said["content"]]
        assert await memory.recall("yard", kinds=["decision"]) == []


async def test_what_a_ledger_says_too_is_shown_once(opened: Opened) -> None:
    async with opened() as memory:
        saved = await memory.remember("Prefers oat milk in the coffee.")
        # the ledger knows since when, the fact only when the profile was last looked at
        told_later = fact("Prefers oat milk in the coffee.", confidence=1.0, updatedAt="2099-01-01T00:00:00Z")
        write_facts(place_of(memory.root), profile_path(), told_later)
        assert [hit.entry.id for hit in await memory.recall("oat milk")] == [saved.id]
        told = await memory.explain("oat milk")
        assert [each.reason for each in told.rejected] == ["duplicate"]


@pytest.mark.req("DF-C52")
@pytest.mark.parametrize("others", ["user", "agent", "nobody", "user and agent"])
async def test_no_profile_is_found_but_that_of_the_very_user_and_agent(tmp_path: Path, others: str) -> None:
    scopes = {
        "nobody": Scope(project="shop"), "user": Scope(project="shop", user="ada"),
        "agent": Scope(project="shop", agent="coder"),
        "user and agent": Scope(project="shop", user="ada", agent="coder"),
    }  # fmt: skip
    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        await memory.remember("The common wombat is nobody's.")
    for name, scope in scopes.items():
        where = scope_folder(tmp_path / "root", scope)
        write_facts(where, profile_path(scope.agent or "main"), fact(f"Whispers about {name.replace(' ', '')}."))
    write_facts(
        scope_folder(tmp_path / "root", Scope(project="shop", user="bob")), profile_path(), fact("Whispers about bob.")
    )
    async with Memory.open(tmp_path / "root", scope=scopes[others]) as memory:
        mine = [f"Whispers about {others.replace(' ', '')}."]
        for text in ("whispers", "", "Whispers about"):
            found = [*await memory.recall(text, limit=20), *await memory.search(text, limit=20)]
            found += (await memory.explain(text, limit=20, rejected=20)).hits
            assert {hit.entry.content for hit in found if hit.path.endswith("profile.json")} == set(mine)
        answer = await memory.answer("Who whispers about bob?")
        assert "bob" not in answer.text
        async with open_workspace(tmp_path / "root", scopes[others], Dependencies.create()) as workspace:
            hits = await workspace.store.recall("whispers", 20)
            assert [hit.entry.content for hit in hits] == mine


@pytest.mark.req("DF-C52")
async def test_what_another_profile_says_changes_nothing_of_a_search(tmp_path: Path) -> None:
    async def scores() -> list[tuple[str, float, tuple[str, ...]]]:
        async with Memory.open(tmp_path / "root", scope=Scope(project="shop", user="ada")) as memory:
            told = await memory.explain("quokka wombats harvester", limit=20)
            answer = await memory.answer("Who saw the quokka near the harvester?")
            return [
                *((hit.entry.content, round(hit.score, 6), hit.matched_words) for hit in told.hits),
                (answer.text, round(answer.score, 6), ()),
            ]

    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        await memory.remember("The wombat was seen near the fence.")
    before = await scores()
    said = [fact(f"The quokka drives harvester {number} with a wombat.") for number in range(9)]
    write_facts(place_of(tmp_path / "root", "bob"), profile_path(), *said)
    assert await scores() == before
    write_facts(place_of(tmp_path / "root", "ada"), profile_path(), *said[:1])
    assert await scores() != before


@pytest.mark.req("HE-O-audit-forget")
async def test_a_forgotten_fact_is_gone_from_the_next_search(tmp_path: Path) -> None:
    async with open_workspace(tmp_path / "root", SHOP, Dependencies.create()) as workspace:
        store = workspace.profiles.open_store(SHOP)
        write_facts(tmp_path / "root", store.path, fact("Owns a harvester."), fact("Owns a kayak."))
        assert len(await workspace.store.recall("owns", 5)) == 2
        base = await store.load()
        kept = tuple(each for each in base.facts if "kayak" in each.content)
        await store.save(replace(base, facts=kept), base=base, by="user", forget=True)
        assert [hit.entry.content for hit in await workspace.store.recall("owns", 5)] == ["Owns a kayak."]
        await store.clear(by="user")
        assert await workspace.store.recall("owns", 5) == []


@pytest.mark.req("DF-B14")
async def test_a_profile_that_is_off_or_broken_is_not_found_and_hides_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.remember("The kayak is blue.")
    write_facts(root, profile_path(), fact("Owns a kayak."))
    off = replace(Settings.from_environment(), profile=None)
    async with Memory.open(root, scope=SHOP, settings=off) as memory:
        assert [hit.entry.content for hit in await memory.recall("kayak")] == ["The kayak is blue."]
    async with Memory.open(root, scope=SHOP) as memory:
        assert len(await memory.recall("kayak")) == 2
        (root / profile_path()).write_text("{", encoding="utf-8")
        assert [hit.entry.content for hit in await memory.recall("kayak")] == ["The kayak is blue."]
