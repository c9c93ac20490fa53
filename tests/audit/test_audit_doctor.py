"""Doctor on a root that lives: consolidation leaves nothing to mend, and what is amiss is named with its place."""

from pathlib import Path

import pytest

from hand_made_roots import begun
from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.messages import Text
from ricordo.runtime import Settings
from ricordo.runtime.doctor import Check

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-DOCTOR")]

SHOP = Scope(user="me", project="shop")
LONG = "We decided to keep every word of the minutes. " + "And more was said. " * 400


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".ricordo"


def put(root: Path, path: str, text: str) -> None:
    place = place_of(begun(root)) / "workspace" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def curated(root: Path) -> str:
    return (place_of(root) / "workspace" / "MEMORY.md").read_text(encoding="utf-8")


def remove_long(root: Path) -> None:
    [path] = (place_of(root) / "workspace" / "memory" / "long").iterdir()
    path.unlink()


async def checked(root: Path, settings: Settings | None = None) -> dict[str, Check]:
    async with Memory.open(root, scope=SHOP, settings=settings) as memory:
        return {check.name: check for check in await memory.doctor()}


async def consolidated(root: Path) -> None:
    """Save, learn the same again, and learn a long text, so that all of it is in the ledger and curated."""
    said = ["We decided to deploy only from main.", LONG, "We decided to deploy only from main."]
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.remember(LONG, kind="decision")
        for number, text in enumerate(said):
            await memory.ingest([Message(role="user", parts=(Text(text=text),))], session=f"s{number}")


async def test_a_consolidated_root_is_well_and_says_nothing_twice(root: Path) -> None:
    await consolidated(root)
    assert "only from main" in curated(root)
    assert "merged::" in curated(root)
    checks = await checked(root)
    assert [check.name for check in checks.values() if not check.ok] == []
    assert {name: checks[name].count for name in ("duplicates", "ids", "dangling", "curated", "topics", "states")} == (
        dict.fromkeys(("duplicates", "ids", "dangling", "curated", "topics", "states"), 0)
    )
    async with Memory.open(root, scope=SHOP) as memory:
        assert checks["entries"].count == len(await memory.entries())


async def test_an_id_that_stands_in_two_curated_documents_stands_there_by_mistake(root: Path) -> None:
    await consolidated(root)
    put(root, "memory/topics/copy.md", curated(root))
    checks = await checked(root)
    assert not checks["ids"].ok
    assert checks["duplicates"].count == 0


async def test_a_long_memory_that_lost_its_file_counts_once_though_two_lines_point_to_it(root: Path) -> None:
    await consolidated(root)
    [topic] = (place_of(root) / "workspace" / "memory" / "topics").iterdir()
    assert "memory/long/" in topic.read_text(encoding="utf-8")
    remove_long(root)
    checks = await checked(root)
    assert (checks["dangling"].ok, checks["dangling"].count) == (False, 1)


@pytest.mark.req("CC-INDEXCAP")
async def test_memory_that_a_person_wrote_over_its_bounds_is_told_and_is_no_failure(root: Path) -> None:
    put(root, "MEMORY.md", "".join(f"- Thing number {number}.\n" for number in range(201)))
    checks = await checked(root)
    assert (checks["curated"].ok, checks["curated"].count) == (True, 1)
    assert "200 lines" in checks["curated"].detail
    settings = Settings.load(None, None, {"consolidation.max_lines": 300})
    assert (await checked(root, settings=settings))["curated"].count == 0


@pytest.mark.req("HE-C1b")
async def test_a_link_to_a_topic_that_is_not_there_is_a_failure_that_names_it(root: Path) -> None:
    put(root, "MEMORY.md", "# Memory\n\nSee [shop](memory/topics/shop.md) and [two](memory/topics/a%20b.md).\n")
    put(root, "memory/topics/a b.md", "- The till is red.\n")
    topics = (await checked(root))["topics"]
    assert (topics.ok, topics.count) == (False, 1)
    assert topics.detail.endswith("memory/topics/shop.md")


@pytest.mark.req("HE-C1b")
async def test_a_topic_that_a_person_removed_is_told_until_consolidation_has_listed_what_there_is(root: Path) -> None:
    await consolidated(root)
    put(root, "MEMORY.md", curated(root) + "\n## Topics\n\n1. [Shop](memory/topics/shop.md): till\n")
    topics = (await checked(root))["topics"]
    assert (topics.ok, topics.count) == (True, 1)
    assert topics.detail.endswith("memory/topics/shop.md")
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.ingest([Message(role="user", parts=(Text(text="We decided to use uv."),))], session="later")
    assert (await checked(root))["topics"].count == 0


async def test_a_state_that_was_set_aside_is_told_with_its_file_and_is_no_failure(root: Path) -> None:
    put(root, "agents/main/state/monday.json.broken-1", "{")
    put(root, "agents/main/state/monday.json", "{}")
    states = (await checked(root))["states"]
    assert (states.ok, states.count) == (True, 1)
    assert "workspace/agents/main/state/monday.json.broken-1" in states.detail


async def test_a_torn_line_of_a_journal_of_compactions_is_told_with_its_file_and_is_no_failure(root: Path) -> None:
    assert (await checked(root))["journals"].count == 0
    whole = '{"v": 1, "handle": "c0123456789", "before": []}\n{"v": 1, "undone": "c0123456789"}\n'
    put(root, "agents/main/compactions/monday.jsonl", whole + '{"v": 1, "handle": "c01')
    put(root, "agents/main/compactions/tuesday.jsonl", whole)
    journals = (await checked(root))["journals"]
    assert (journals.ok, journals.count) == (True, 1)
    assert journals.detail.endswith(
        "nothing else is lost, and the files may go: workspace/agents/main/compactions/monday.jsonl"
    )


async def test_a_change_that_was_cut_off_and_can_not_be_put_back_is_a_failure(root: Path) -> None:
    assert (await checked(root))["changes"].ok
    pending = place_of(root) / "history" / "pending" / "damaged.json"
    pending.parent.mkdir(parents=True, exist_ok=True)
    pending.write_text("{", encoding="utf-8")
    changes = (await checked(root))["changes"]
    assert (changes.ok, changes.count) == (False, 1)


async def test_an_inbox_that_was_set_aside_is_told_with_its_file_and_is_no_failure(root: Path) -> None:
    assert (await checked(root))["inboxes"].count == 0
    (place_of(root) / "queue.db").write_text("junk\n", encoding="utf-8")
    await checked(root)
    inboxes = (await checked(root))["inboxes"]
    assert (inboxes.ok, inboxes.count) == (True, 1)
    assert inboxes.detail.endswith("queue.db.broken-1")
