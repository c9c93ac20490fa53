"""Two memories that can't both hold are shown together, each with a marker, until somebody decides."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from command_line import ricordo
from hand_made_roots import begun
from places import place_of
from ricordo import Entry, Memory, Scope
from ricordo.agent.tools.memory import render_hits
from ricordo.context import MemorySnapshot, SavedEntry, compose_preamble
from ricordo.guard import parse_fence
from ricordo.messages import Tokens, estimate_text
from ricordo.runtime.finding import read_preamble
from ricordo.search import MEMORY_DOCUMENT_TYPES, Query
from ricordo.workspace import render_entry
from ricordo.workspace.entry import CONTRADICTS_NEXT, CONTRADICTS_PREVIOUS, name_contradiction

pytestmark = pytest.mark.req("FC-CONFLICT")

NEVER, ALWAYS = "We never deploy on Fridays.", "We always deploy on Fridays."
NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)
ROOT = Path(".ricordo")
CURATED = place_of(ROOT) / "workspace" / "MEMORY.md"
IDS = {text: f"01m80qv68xdbv9twp7wr0x910{number}" for number, text in enumerate((NEVER, ALWAYS, "Ana likes tea."))}
"""The ids under which `shop` has saved them."""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a root in the working directory with both memories and another one, and consolidate it."""
    monkeypatch.chdir(tmp_path)
    ledger = place_of(begun(ROOT)) / "workspace" / "memory" / "2026-11-21.md"
    ledger.parent.mkdir(parents=True)
    (ROOT / "project.json").write_text('{"scope": {"project": "shop"}}', encoding="utf-8")
    rows = [
        Entry(content=text, id=name, kind="convention", time=NOW.replace(day=21, minute=at))
        for at, (text, name) in enumerate(IDS.items())
    ]
    ledger.write_text("# 2026-11-21\n\n" + "".join(map(render_entry, rows)), encoding="utf-8")
    told = ricordo("consolidate").out
    assert "1 pair contradicts each other and no rule decides: `ricordo confirm` the one that holds" in told
    return CURATED


@pytest.mark.anyio
async def test_what_reads_like_a_duplicate_of_its_opponent_is_a_hit_and_not_left_out_as_one(
    shop: Path, anyio_backend: str
) -> None:
    said = ("Commit messages must not be signed.", "Commit messages must be signed.")
    rows = [Entry(content=text, id=f"{at:026}", kind="fact", time=NOW) for at, text in enumerate(said)]
    (place_of(ROOT) / "workspace" / "memory" / "2026-11-22.md").write_text(
        "".join(map(render_entry, rows)), encoding="utf-8"
    )
    await run_sync(ricordo, "consolidate")
    async with Memory.open(ROOT, scope=Scope(user="me", project="shop")) as memory:
        explained = await memory.explain("signed commit messages", limit=5)
    assert {hit.entry.id for hit in explained.hits[:2]} == {one.id for one in rows}
    assert {one.id for one in rows}.isdisjoint(each.hit.entry.id for each in explained.rejected)


def _lines() -> list[str]:
    return [line for line in CURATED.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]


def _contradicted() -> set[str]:
    return {
        content
        for content, name in IDS.items()
        if any("[contradicts:: " in line and name in line[-30:] for line in _lines())
    }


@pytest.mark.req("FC-CONFLICT")
def test_both_lines_name_each_other_in_the_file_and_stand_together_in_every_rendering(shop: Path) -> None:
    lines = _lines()
    assert sorted(line.startswith((f"- {NEVER} ", f"- {ALWAYS} ")) for line in lines) == [False, True, True]
    at = next(at for at, line in enumerate(lines) if ALWAYS in line)
    assert f"[contradicts:: {IDS[NEVER]}]" in lines[at]
    assert f"[contradicts:: {IDS[ALWAYS]}]" in lines[at + 1]
    shown = ricordo("context").out.splitlines()
    told = shown.index(f"- {ALWAYS}")
    assert shown[told : told + 4] == [f"- {ALWAYS}", f"  {CONTRADICTS_NEXT}", f"- {NEVER}", f"  {CONTRADICTS_PREVIOUS}"]
    found = ricordo("recall", "do we always deploy on Fridays?").out
    assert [line.strip() for line in found.splitlines() if "contradicts the" in line] == [
        CONTRADICTS_NEXT,
        CONTRADICTS_PREVIOUS,
    ]
    hits = ricordo("recall", "do we always deploy on Fridays?", "--limit", "2", "--json").document["hits"]
    assert [(hit["entry"]["id"], hit["entry"]["contradicts"]) for hit in hits] == [
        (IDS[ALWAYS], [IDS[NEVER]]),
        (IDS[NEVER], [IDS[ALWAYS]]),
    ]
    answered = ricordo("ask", "Do we always deploy on Fridays?").out
    assert f"contradicts, not decided: {NEVER}" in answered


@pytest.mark.req("FC-CONFLICT", "HE-O-conflict")
def test_a_newer_value_of_one_attribute_takes_the_place_of_the_older_and_of_no_other_subjects(shop: Path) -> None:
    for text in ("The deadline of Atlas is 3 May.", "The deadline of Borea is 3 May.", "The owner of Atlas is Ana."):
        ricordo("remember", text)
    ricordo("remember", "The deadline of Atlas is 10 May.")
    done = ricordo("consolidate", "--json").document
    assert (done["superseded"], done["undecided"]) == (1, 1)
    states = {row["content"]: row["state"] for row in ricordo("memory", "list", "--json").document["entries"]}
    assert [text for text, state in states.items() if state != "active"] == ["The deadline of Atlas is 3 May."]
    lines = CURATED.read_text(encoding="utf-8")
    assert "3 May" not in lines.replace("The deadline of Borea is 3 May.", "")
    for text in ("The deadline of Atlas is 10 May.", "The deadline of Borea is 3 May.", "The owner of Atlas is Ana."):
        assert f"- {text} " in lines


def test_every_look_at_memory_tells_of_the_pair(shop: Path) -> None:
    rows = {row["content"]: row["contradicts"] for row in ricordo("memory", "list", "--json").document["entries"]}
    assert rows == {NEVER: [IDS[ALWAYS]], ALWAYS: [IDS[NEVER]], "Ana likes tea.": []}
    assert f"contradicts {IDS[NEVER]}: not decided" in ricordo("memory", "list").out
    for command in (("memory", "show"), ("why",)):
        assert ricordo(*command, IDS[NEVER], "--json").document["contradicts"] == [IDS[ALWAYS]]
        told = " ".join(ricordo(*command, IDS[NEVER]).out.split())
        assert f"contradicts {IDS[ALWAYS]}, not decided: {ALWAYS} decide by `ricordo confirm {IDS[NEVER]}`," in told
        assert f"or {IDS[ALWAYS]}: that one holds; or `ricordo forget` one" in told
        assert "contradicts" not in ricordo(*command, IDS["Ana likes tea."]).out
    looked_at = ricordo("doctor").out.splitlines()[1:]
    assert [row[:22] for row in looked_at if "contradictions" in row] == ["  note  contradictions"]
    widths = {len(found[0]) for row in looked_at if (found := re.match(r"  \S+ +\S+ +\S+", row))}
    assert len(widths) == 1, "the counts stand in one column"
    checks = {check["name"]: check for check in ricordo("doctor", "--json").document["checks"]}
    assert (checks["contradictions"]["count"], checks["contradictions"]["ok"]) == (1, True)
    assert f"{IDS[NEVER]} and {IDS[ALWAYS]}" in checks["contradictions"]["detail"]


def test_forgetting_one_takes_the_marker_off_the_other_at_once_and_undo_brings_both_back(shop: Path) -> None:
    before = CURATED.read_bytes()
    assert ricordo("forget", IDS[ALWAYS], "--yes").code == 0
    assert IDS[ALWAYS] not in CURATED.read_text(encoding="utf-8")
    assert _contradicted() == set()
    assert ricordo("undo").code == 0
    assert CURATED.read_bytes() == before


def test_confirming_one_says_what_comes_of_it_and_the_next_run_lets_it_take_the_others_place(shop: Path) -> None:
    told = " ".join(ricordo("confirm", IDS[NEVER]).out.split())
    assert f"It contradicts {IDS[ALWAYS]}: {ALWAYS} It takes that one's place with the next consolidation" in told
    assert ricordo("consolidate", "--json").document["superseded"] == 1
    assert (_contradicted(), len(_lines())) == (set(), 2)
    shown = ricordo("memory", "show", IDS[ALWAYS], "--json").document
    assert (shown["state"], shown["contradicts"]) == ("superseded", [])
    assert ricordo("memory", "list").out.count("superseded") == 1
    assert f"  {ALWAYS}\n  superseded by {IDS[NEVER]}\n" in ricordo("memory", "list").out


def test_where_both_are_confirmed_both_stand_without_a_marker(shop: Path) -> None:
    for name in (IDS[NEVER], IDS[ALWAYS]):
        ricordo("confirm", name)
    done = ricordo("consolidate", "--json").document
    assert (done["superseded"], done["undecided"]) == (0, 0)
    assert (_contradicted(), len(_lines())) == (set(), 3)


def test_a_line_that_a_person_deletes_or_rewrites_is_contradicted_by_nothing_at_once(shop: Path) -> None:
    text = CURATED.read_text(encoding="utf-8")
    line = next(line for line in _lines() if ALWAYS in line)
    CURATED.write_text(text.replace(line + "\n", ""), encoding="utf-8")
    assert "contradicts" not in ricordo("context").out
    assert ricordo("memory", "show", IDS["Ana likes tea."], "--json").document["contradicts"] == []
    CURATED.write_text(text.replace(ALWAYS, "We deploy when it suits us."), encoding="utf-8")
    assert ricordo("consolidate", "--json").document["undecided"] == 0
    assert _contradicted() == set()


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.anyio
async def test_what_was_not_asked_for_is_shown_beside_its_opponent_and_named_where_it_has_no_room(
    shop: Path, anyio_backend: str
) -> None:
    async with Memory.open(ROOT, scope=Scope(user="me", project="shop")) as memory:
        both = await memory.recall("never", limit=5)
        assert [hit.entry.content for hit in both[:2]] == [NEVER, ALWAYS]
        assert [hit.contradicts for hit in both] == [(IDS[ALWAYS],), (IDS[NEVER],), *[()] * (len(both) - 2)]
        shown = parse_fence(render_hits(both[:2], Tokens(500), now=NOW)) or ()
        assert shown == (f"{NEVER}\n{CONTRADICTS_NEXT}", f"{ALWAYS}\n{CONTRADICTS_PREVIOUS}")
        (alone,) = await memory.recall("never", limit=1)
        assert parse_fence(render_hits([alone], Tokens(500), now=NOW)) == (
            f"{NEVER}\n{name_contradiction(IDS[ALWAYS])}",
        )
        for most in range(40, 200):
            text = render_hits(both[:2], Tokens(most), now=NOW)
            told = parse_fence(text) if text.startswith("<") else ()
            assert estimate_text(text) <= most or not told
            if told and len(told) == 1 and told[0].startswith(f"{NEVER}\n"):
                assert told == (f"{NEVER}\n{name_contradiction(IDS[ALWAYS])}",)
        others = [hit for hit in await memory.recall("tea", limit=5) if hit.entry.content == "Ana likes tea."]
        assert [hit.contradicts for hit in others] == [()]
        until = NOW.replace(day=21, minute=0, second=30)
        (filtered,) = await memory.search(
            Query(text="deploy", until=until, document_types=MEMORY_DOCUMENT_TYPES), limit=5
        )
        assert (filtered.entry.content, filtered.contradicts) == (NEVER, (IDS[ALWAYS],))
        explained = await memory.explain("We never deploy on Fridays", limit=2)
        assert f"contradicts {IDS[ALWAYS]}: not decided" in explained.hits[0].explanation
        assert {hit.entry.id for hit in explained.hits}.isdisjoint(each.hit.entry.id for each in explained.rejected)
        assert {line.text for line in MemorySnapshot.from_preamble(await read_preamble(memory)).lines} == {
            f"- {NEVER}", f"- {ALWAYS}", "- Ana likes tea.",
        }  # fmt: skip


def _document(*rows: Entry) -> bytes:
    return ("# Memory\n\n## Facts\n\n" + "".join(map(render_entry, rows))).encode()


def test_a_prompt_with_room_for_one_names_the_other_and_a_gone_one_is_named_by_none() -> None:
    one = Entry(content=NEVER, id="a" * 26, time=NOW, extra=(("contradicts", "b" * 26),))
    other = Entry(content=ALWAYS, id="b" * 26, time=NOW, extra=(("contradicts", "a" * 26),))
    filler = [
        Entry(content=f"Shelf {number} holds {number} boxes of tea.", id=f"{number:026}", time=NOW)
        for number in range(9)
    ]
    assert CONTRADICTS_NEXT in compose_preamble(_document(one, *filler, other), ()).text
    pinned = replace(one, pinned=True)
    for most in range(90, 330, 8):
        text = compose_preamble(
            _document(pinned, *filler, other), (), Tokens(most), pinned=[SavedEntry(entry=pinned, source="MEMORY.md")]
        ).text
        assert estimate_text(text) <= most
        if f"- {NEVER}" in text:
            assert (CONTRADICTS_NEXT in text) == (ALWAYS in text)
            assert (name_contradiction(other.id) in text) == (ALWAYS not in text)
    assert "contradicts" not in compose_preamble(_document(one, *filler), ()).text
    assert name_contradiction(other.id) in compose_preamble(_document(one, *filler), (), elsewhere=[other.id]).text
    gone = replace(other, state="superseded")
    assert "contradicts" not in compose_preamble(_document(one, gone), ()).text
