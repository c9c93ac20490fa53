"""What nobody confirmed or used for long leaves MEMORY.md for the archive, is found there, and returns if it counts."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from places import place_of
from ricordo import Entry, Memory
from ricordo.curation import archive_faded
from ricordo.search import DecayConfig
from ricordo.workspace import render_entry

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C7-keep")]

FADED_TOPIC = "workspace/memory/topics/faded.md"
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
IDS = {name: f"01k6yvgewd8dp5gr1g9vsf{number:04}" for number, name in enumerate(("old", "new", "mark", "goal", "rule"))}
Opened = Callable[[], AbstractAsyncContextManager[Memory]]


def bullet(name: str, content: str, days: int, **more: object) -> str:
    entry = Entry(content=content, id=IDS[name], time=NOW - timedelta(days=days), by="user", **more)  # type: ignore[arg-type]
    return render_entry(entry)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root whose MEMORY.md holds old and new memories."""
    workspace = place_of(tmp_path / ".ricordo") / "workspace"
    workspace.mkdir(parents=True)
    lines = [
        "# Memory\n", "\n", "Written by a person.\n", "\n", "## Goals\n", "\n",
        bullet("goal", "The shop opens in Turin.", 136, kind="goal"), "\n", "## Facts\n", "\n",
        bullet("old", "The walnut tree is at the gate.", 361), bullet("new", "The walnut oil is in the cellar.", 359),
        bullet("mark", "The walnut harvest is in October.", 900, pinned=True),
    ]  # fmt: skip
    (workspace / "MEMORY.md").write_text("".join(lines), encoding="utf-8")
    return tmp_path / ".ricordo"


@pytest.fixture
def opened(root: Path) -> Opened:
    given = replace(settings(root, consolidates=True), flush=None)

    @asynccontextmanager
    async def open_again() -> AsyncIterator[Memory]:
        async with Memory.open(
            root, scope=SCOPE, settings=given, clock=HandClock(NOW), background=False, trusted=True
        ) as memory:
            yield memory

    return open_again


async def maintain(memory: Memory, decay: DecayConfig | None = None) -> int:
    """Do what the maintenance cycle does about faded memories."""
    place, given = memory._workspace.memory_root, memory._settings
    assert given is not None
    assert given.consolidation is not None
    usage = await place.usage.read_all() if place.usage else {}
    return await archive_faded(
        place.files, place.changes,
        usage=usage, decay=decay or given.decay, now=place.clock.now(), config=given.consolidation,
    )  # fmt: skip


def texts(root: Path) -> tuple[str, str]:
    """Return MEMORY.md and the archive, empty if there is none."""
    workspace = place_of(root) / "workspace"
    archive = place_of(root) / FADED_TOPIC
    return (workspace / "MEMORY.md").read_text("utf-8"), archive.read_text("utf-8") if archive.exists() else ""


@pytest.mark.req("HE-C1b")
async def test_what_has_faded_leaves_for_the_archive_and_is_still_found_listed_and_undone(
    root: Path, opened: Opened
) -> None:
    before = texts(root)[0]
    async with opened() as memory:
        assert await maintain(memory) == 2
        after, archive = texts(root)
        assert [name for name in IDS if IDS[name] in after] == ["new", "mark"]
        assert [name for name in IDS if IDS[name] in archive] == ["old", "goal"]
        assert "Written by a person." in after
        assert "## Goals" not in after
        assert "(memory/topics/faded.md)" in after
        assert {hit.entry.id for hit in await memory.recall("walnut")} == {IDS["old"], IDS["new"], IDS["mark"]}
        (hit,) = await memory.recall("Turin")
        assert (hit.entry.id, hit.path) == (IDS["goal"], FADED_TOPIC)
        same = [hit.entry.id for hit in await memory.recall("the walnut is")]
        assert same[-1] == IDS["old"]
        assert {IDS["old"], IDS["goal"]} <= {entry.id for entry in await memory.entries()}
        assert await maintain(memory) == 0
        assert texts(root) == (after, archive)
        (change,) = [item for item in await memory.history() if item.action == "archive"]
        await memory.undo(change.id)
    assert texts(root) == (before, "")


@pytest.mark.parametrize("act", ["confirm", "pin"])
async def test_a_mark_returns_a_memory_at_once_and_an_undo_archives_it_again(
    root: Path, opened: Opened, act: str
) -> None:
    async with opened() as memory:
        await maintain(memory)
        archived = texts(root)
        await (memory.confirm if act == "confirm" else memory.pin)(IDS["old"])
        after, archive = texts(root)
        assert IDS["old"] in after.partition("## Facts")[2]
        assert IDS["old"] not in archive
        assert IDS["goal"] in archive
        assert await maintain(memory) == 0
        await memory.undo()
        assert texts(root) == archived
        await memory.confirm(IDS["old"])
        await memory.confirm(IDS["goal"])
        after, archive = texts(root)
        assert IDS["goal"] in after.partition("## Goals")[2].partition("##")[0]
        assert (archive, "faded.md" in after) == ("", False)


async def test_what_was_used_or_is_a_rule_or_lies_elsewhere_stays(root: Path, opened: Opened) -> None:
    memory_file = place_of(root) / "workspace" / "MEMORY.md"
    own = "## Mine\n\n" + bullet("rule", "Never push by force.", 900).replace(IDS["rule"], IDS["rule"])
    memory_file.write_text(memory_file.read_text("utf-8") + "\n" + own, encoding="utf-8")
    async with opened() as memory:
        await memory.mark_used(IDS["old"])
        assert await maintain(memory) == 1
        after, archive = texts(root)
        assert IDS["old"] in after
        assert IDS["rule"] in after
        assert IDS["goal"] in archive
        await memory.mark_used(IDS["goal"])
        assert await maintain(memory) == 1
        assert IDS["goal"] in texts(root)[0]


async def test_the_threshold_and_the_half_lives_are_settings_and_zero_archives_nothing(
    root: Path, opened: Opened
) -> None:
    before = texts(root)[0]
    async with opened() as memory:
        assert await maintain(memory, DecayConfig(archive_below=0)) == 0
        assert texts(root) == (before, "")
        assert await maintain(memory, DecayConfig(fact=3650, goal=3650)) == 0
        assert await maintain(memory, DecayConfig(archive_below=0.2)) == 3
        assert await maintain(memory, DecayConfig(archive_below=0)) == 3
        assert sorted(texts(root)[0].splitlines()) == sorted(before.splitlines())


async def test_the_maintenance_cycle_archives(root: Path, opened: Opened) -> None:
    async with opened() as memory:
        counts = await memory._workspace.services._maintain()
        assert counts["prune.archived"] == 2
    assert IDS["old"] in texts(root)[1]


async def test_a_dream_leaves_the_archive_alone_and_what_is_said_again_returns(root: Path, opened: Opened) -> None:
    async with opened() as memory:
        await maintain(memory)
        archived = texts(root)
        curation = memory._workspace.curation
        assert curation is not None
        await curation.consolidator.consolidate(deep=True)
        assert texts(root) == archived
        await memory.remember("The walnut tree is at the gate.")
        await curation.consolidator.consolidate(deep=True)
        await maintain(memory)
        after, archive = texts(root)
        assert "The walnut tree is at the gate." in after
        assert IDS["old"] not in archive
        assert IDS["goal"] in archive


@pytest.mark.parametrize(
    ("content", "days_ago", "stays"),
    [
        ("The concert is on Saturday 24 October (2026-10-24), at nine.", 40, False),
        ("The concert is on Saturday 24 October (2026-10-24), at nine.", 10, True),
        ("The fair is next week (2026-10-26 to 2026-11-01), in the old hall.", 30, False),
        ("The concert is on Saturday 14 November (2026-11-14), at nine.", 40, True),
        ("From Monday the 19th (2026-10-19) the choir sings on Thursdays.", 40, True),
        ("The tower fell on 3 May (2026-99-99).", 40, True),
    ],
    ids=["two weeks over", "said again since then", "a week that is over", "over last week", "holds on", "no day"],
)
async def test_an_appointment_that_is_over_goes_to_the_archive(
    root: Path, opened: Opened, content: str, days_ago: int, stays: bool
) -> None:
    memory_file = place_of(root) / "workspace" / "MEMORY.md"
    memory_file.write_text(f"# Memory\n\n## Facts\n\n{bullet('new', content, days_ago, kind='fact')}", encoding="utf-8")
    async with opened() as memory:
        assert await maintain(memory) == (0 if stays else 1)
        assert (IDS["new"] in texts(root)[0]) is stays
        assert [entry.id for entry in await memory.entries(states=("active",))] == [IDS["new"]]
        if not stays:
            await memory.confirm(IDS["new"])
            assert await maintain(memory) == 0
            assert IDS["new"] in texts(root)[0]
