"""What of a memory is worth nothing: counted by the doctor, in the root and in any store, and never changed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from command_line import ricordo
from places import place_of
from ricordo import Entry, Scope
from ricordo.curation.quality_checks import check_store_entries, find_duplicates, is_junk, is_stale
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.runtime import open_store
from ricordo.stores import Forgets
from ricordo.workspace.history.usage import MemoryUsage, UsageCount

pytestmark = pytest.mark.req("FC-DOCTOR")

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SHOWN = render_fence([FencedItem(text="We use uv.", source="MEMORY.md", trust=Trust.USER)])


def key(letter: str) -> str:
    return f"sk-ant-api03-{letter * 8}abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"


def line(text: str, number: int, at: str = "2026-11-20", **fields: str) -> str:
    given = {"kind": "fact", "at": f"{at}T08:00:00.000Z", "by": "flush"} | fields
    shown = " ".join(f"[{name}:: {value}]" for name, value in given.items())
    return f"- {text} {shown} ^{number:026d}\n"


def put(path: str, text: str, *, root: Path = Path(".ricordo")) -> None:
    place = root / "workspace" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def files() -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in Path(".ricordo").rglob("*")
        if path.is_file() and "index" not in path.name
    }


def counts(*arguments: str) -> dict[str, tuple[bool, int]]:
    return {
        each["name"]: (each["ok"], each["count"]) for each in ricordo("doctor", "--json", *arguments).document["checks"]
    }


@pytest.mark.req("FC-DOCTOR")
def test_the_doctor_counts_what_is_worth_nothing_and_changes_nothing() -> None:
    ricordo("remember", "We deploy only from main.")
    clean = counts()
    assert all(clean[name] == (True, 0) for name in ("junk", "duplicates", "stale", "dangling", "secrets"))
    put(
        "memory/2026-11-20.md",
        "# 2026-11-20\n\n"
        + line("ok, thanks!", 1)
        + line("It is what it is.", 2)
        + line("Nadia owns the staging database.", 3, **{"from": "gone#m1"})
        + line("The staging database is owned by Nadia.", 4)
        + line("We use uv for every lock file.", 5, at="2024-01-01")
        + "- The minutes. [long:: memory/long/none.md] [at:: 2026-11-20T08:00:00.000Z] ^00000000000000000000000006\n"
        + line(f"Staging is reached with {key('L')}.", 7),
    )
    put("MEMORY.md", f"# Memory\n\n- The key is {key('M')}.\n- Thanks a lot!\n")
    put("memory/topics/keys.md", f"---\nname: keys\n---\n\n- Production takes {key('T')}\n  and {key('U')}.\n")
    put("memory/2026-11-19.md", "# 2026-11-19\n\n" + line(f"My own is {key('P')}.", 8), root=place_of(Path(".ricordo")))
    before = files()
    done = ricordo("doctor")
    found = counts()
    assert done.code == 1
    assert found["junk"] == (True, 3)
    assert found["duplicates"] == (True, 1)
    assert found["stale"] == (True, 1)
    assert found["secrets"] == (False, 3)
    assert found["dangling"] == (False, 2)
    own, *told = [row for row in done.out.splitlines()[1:] if row.split()[1] == "secrets"]
    assert own.split()[0] == "FAIL"
    assert "memory/2026-11-19.md:3" in own
    for place in ("MEMORY.md:3", "memory/2026-11-20.md:9", "memory/topics/keys.md:5"):
        assert f"workspace/{place}" in told[0]
    assert not any(key(letter) in done.out + done.err for letter in "LMTUP")
    rows = {row.split()[1]: row for row in done.out.splitlines()[1:]}
    verdicts = [rows[name].split()[0] for name in ("junk", "duplicates", "stale", "dangling", "secrets")]
    assert verdicts == ["note"] * 3 + ["FAIL"] * 2
    assert "1 long memories whose file is missing" in rows["dangling"]
    assert "1 of them in curated memory" in rows["junk"]
    assert "1 memories learned from conversations that are not kept" in rows["dangling"]
    assert files() == before


@pytest.mark.req("FC-DOCTOR")
def test_a_note_is_a_failure_where_that_is_asked_for() -> None:
    ricordo("remember", "We deploy only from main.")
    assert ricordo("doctor", "--strict").code == 0
    put("memory/2026-11-20.md", "# x\n\n" + line("ok, thanks!", 1))
    assert ricordo("doctor").code == 0
    assert ricordo("doctor", "--strict").code == 1


@pytest.mark.req("FC-DOCTOR")
def test_the_memories_of_another_store_are_looked_at_and_a_store_that_lists_none_says_so() -> None:
    async def saved() -> None:
        async with open_store("jsonl:notes", scope=Scope(user="me", project="shop")) as store:
            for text in ("We deploy only from main.", "We only deploy from main.", "Thanks!"):
                await store.save(Entry(content=text))
            forgets = store.offers(Forgets)
            assert forgets is not None
            await forgets.forget((await store.save(Entry(content="Gone."))).id, who="user")
            await store.save(Entry(content="The key was LOST.", time=NOW - timedelta(days=900)))

    anyio.run(saved)
    (file,) = [path for path in Path("notes").rglob("*.jsonl") if "LOST" in path.read_text("utf-8")]
    file.write_text(file.read_text("utf-8").replace("LOST", key("S")), "utf-8")
    before = file.read_bytes()
    given = ("--store", "jsonl:notes", "--user", "me", "--project", "shop")
    found = counts(*given)
    assert found == {
        "entries": (True, 4), "junk": (True, 1), "duplicates": (True, 1), "stale": (True, 1), "secrets": (False, 1),
        "forgotten": (True, 1),
    }  # fmt: skip
    assert ricordo("doctor", *given).code == 1
    assert file.read_bytes() == before
    assert ricordo("doctor", *given).out.splitlines()[0] == "jsonl:notes"
    refused = ricordo("doctor", "--store", "none")
    assert (refused.code, refused.out) == (1, "")
    assert "can't list its memories" in refused.err
    assert not Path(".ricordo").exists()


@pytest.mark.parametrize("text", ["Thanks!", "👍", "好的", "ok danke", "It is what it is.", "...", SHOWN])
def test_what_nobody_would_ask_for_is_junk(text: str) -> None:
    assert is_junk(Entry(content=text))
    assert not is_junk(Entry(content=text, rule="deny shell(rm*)"))


@pytest.mark.parametrize(
    "text",
    [
        "We use uv.",
        "彼はコーヒーが好きです。",
        "Port 5433.",
        "Use `<memory>` in the template.",
        "Ok Corral is the client.",
    ],
)
def test_what_says_something_is_no_junk(text: str) -> None:
    assert not is_junk(Entry(content=text))


def test_what_is_old_is_stale_unless_it_was_used_confirmed_or_pinned() -> None:
    old = Entry(content="We use uv.", time=NOW - timedelta(days=200))
    used = MemoryUsage(used=UsageCount(count=1, first=NOW, last=NOW))
    shown = MemoryUsage(shown=UsageCount(count=9, first=NOW, last=NOW))
    assert is_stale(old, None, NOW)
    assert is_stale(old, shown, NOW), "being shown is not being used"
    assert not is_stale(old, used, NOW)
    for fresh in (
        Entry(content="A.", time=NOW - timedelta(days=100)),
        Entry(content="A.", kind="preference", time=old.time),
        Entry(content="A.", time=old.time, confirmed=NOW - timedelta(days=1)),
        Entry(content="A.", time=old.time, pinned=True),
        Entry(content="A.", time=old.time, state="superseded"),
        Entry(content="A."),
    ):
        assert not is_stale(fresh, None, NOW)
    for name in ("until", "expires", "valid-until", "valid_until"):
        assert is_stale(Entry(content="A.", time=NOW, extra=((name, "2026-11-20"),)), used, NOW)
    assert not is_stale(Entry(content="A.", time=NOW, extra=(("until", "2026-11-22"),)), None, NOW)
    assert not is_stale(Entry(content="A.", time=NOW, extra=(("until", "next week"),)), None, NOW)


def test_what_was_merged_is_no_duplicate_and_other_numbers_and_names_are_none() -> None:
    said = ["We deploy from main.", "We deploy from main!", "Port 1 is open.", "Port 2 is open.", "We deploy from dev."]
    entries = [Entry(id=str(number), content=text) for number, text in enumerate(said)]
    assert find_duplicates(entries) == {"1"}
    assert find_duplicates(entries, merged={"1"}) == set()
    assert find_duplicates([]) == set()


def test_much_junk_is_a_failure() -> None:
    talk = [Entry(id=f"t{number}", content="Thanks!") for number in range(20)]
    rest = [Entry(id=f"r{number}", content=f"Port {number} is open.") for number in range(81)]
    assert [check.ok for check in check_store_entries([*talk, *rest], now=NOW) if check.name == "junk"] == [True]
    assert [check.ok for check in check_store_entries([*talk, *rest[:60]], now=NOW) if check.name == "junk"] == [False]


def test_each_memory_is_compared_with_a_few_dozen_at_most_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[str] = []

    def apart(one: str, other: str) -> bool:
        compared.extend((one, other))
        return False

    monkeypatch.setattr("ricordo.curation.quality_checks.is_same_statement", apart)
    entries = [Entry(id=str(number), content=f"The deploy server keeps lot {number}.") for number in range(400)]
    assert find_duplicates(entries) == set()
    assert 0 < len(compared) // 2 <= 24 * len(entries)
