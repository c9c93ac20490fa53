"""Session files: what was written is read back, and what people write into them stays."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.messages import Usage
from ricordo.scope import Scope
from ricordo.workspace import Source
from ricordo.workspace.session_files import (
    SessionFile,
    SessionTotals,
    create_digest,
    parse_session,
    to_tag,
    update_session,
)

STARTED = datetime(2026, 5, 13, 9, 47, 3, 120_000, tzinfo=UTC)
PATH = "sessions/2026-05-13-09h47.md"
USED = Usage(input=34_000, output=2_100, cache_read=700, cache_write=20)


def entry(number: int, content: str = "", *, kind: str = "fact", tags: tuple[str, ...] = ()) -> Entry:
    return Entry(content=content or f"Fact {number}.", kind=kind, tags=tags, id=f"{number:026d}", time=STARTED)


FULL = SessionFile(
    started=STARTED,
    session="s-1",
    totals=SessionTotals(minutes=12, turns=5, usage=USED, cost=Decimal("0.0123")),
    closing=SessionTotals(usage=Usage(input=900, output=80), cost=Decimal("0.0004")),
    tags=("compaction", "tests"),
    summary="We moved the fixtures.\n\nThen we ran everything.",
    open_threads=("Delete the old folder",),
    files_read=("src/app.py",),
    entries=(
        entry(1, "Fixtures live in testdata/golden/."),
        entry(2, "Deploy only from main.", kind="decision"),
        entry(3, "Use tabs.", kind="preference"),
        entry(4, "Retry once.", kind="lesson"),
        entry(5, "Ann is the owner.", kind="person", tags=("who",)),
    ),
)

lines = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r"), max_size=40)
contents = st.text(max_size=60).filter(lambda text: bool(text.strip()))
one_line = lines.map(lambda text: " ".join(text.split())).filter(lambda text: text[:1].isalpha())
counts = st.integers(0, 10**9)
costs = st.none() | st.decimals(0, 10**6, places=6)
spent = st.builds(
    SessionTotals,
    minutes=st.none() | counts,
    turns=st.none() | counts,
    usage=st.builds(Usage, input=counts, output=counts, cache_read=counts, cache_write=counts),
    cost=costs,
)
saved = st.builds(
    Entry,
    content=contents,
    kind=st.sampled_from(["fact", "decision", "preference", "lesson", "person", "preamble", "session-summary"]),
    tags=st.lists(st.text(max_size=8), max_size=2).map(tuple),
    id=st.integers(0, 30).map("{:026d}".format),
    time=st.integers(0, 10**6).map(lambda second: STARTED + timedelta(seconds=second)),
    scope=st.none() | st.just(Scope(user="me", project="shop")),
    source=st.builds(Source, session=st.none() | st.just("s-1"), quote=st.none() | contents),
    extra=st.lists(st.tuples(st.sampled_from(["seq", "mood"]), st.text(max_size=4)), max_size=2).map(tuple),
)
files = st.builds(
    SessionFile,
    started=st.integers(0, 10**9).map(lambda second: STARTED + timedelta(seconds=second)),
    session=st.text(max_size=12),
    totals=spent,
    closing=st.just(SessionTotals()) | spent.map(lambda one: replace(one, minutes=None, turns=None)),
    tags=st.lists(one_line.map(to_tag).filter(bool), max_size=3, unique=True).map(tuple),
    summary=lines.map(str.strip) | st.just("# Not a heading\n```\n## Facts\n- no\n\\# one"),
    is_outdated=st.booleans(),
    open_threads=st.lists(one_line, max_size=3).map(tuple),
    files_read=st.lists(one_line, max_size=3).map(tuple),
    entries=st.lists(saved, max_size=5, unique_by=lambda one: (one.id, one.time)).map(tuple),
)


@pytest.mark.req("GO-G12", "GO-I1", "GO-FRIC")
@given(files)
def test_what_was_written_is_read_back(file: SessionFile) -> None:
    assert parse_session(update_session(b"", PATH, file), PATH) == file


@pytest.mark.req("GO-G12", "GO-G14")
@given(files, st.lists(saved, max_size=4, unique_by=lambda one: (one.id, one.time)))
def test_what_is_added_later_comes_after_what_was_there(file: SessionFile, later: list[Entry]) -> None:
    there = {(one.id, one.time) for one in file.entries}
    added = tuple(one for one in later if (one.id, one.time) not in there)
    once = update_session(b"", PATH, file)
    longer = replace(file, entries=(*file.entries, *added))
    twice = update_session(once, PATH, longer)
    assert parse_session(twice, PATH) == longer
    assert update_session(twice, PATH, longer) == twice


@pytest.mark.req("GO-G12")
def test_a_session_file_reads_like_notes() -> None:
    text = update_session(b"", PATH, FULL).decode()
    local = STARTED.astimezone()
    assert text.startswith(
        f"# {local:%Y-%m-%d %H:%M}\n\n"
        "tags: compaction, tests\n"
        "duration: 12 minutes, 5 turns, 34000 tokens in, 2100 tokens out, 700 read from cache, 20 written to cache,"
        " $0.0123\n"
        "session: s-1\n"
        "started: 2026-05-13T09:47:03.120Z\n"
        "closing: 900 tokens in, 80 tokens out, $0.0004\n\n"
        "## Summary\n\nWe moved the fixtures.\n\nThen we ran everything.\n\n## Decisions\n\n- Deploy only from main. ["
    )
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "Summary", "Decisions", "Open threads", "Facts", "Preferences", "Lessons", "Notes", "Files read",
    ]  # fmt: skip
    assert "[kind:: person]" in text
    assert "\n\n\n" not in text
    assert text.endswith("- src/app.py\n")


@pytest.mark.req("GO-G12")
def test_empty_sections_and_fields_are_left_out() -> None:
    text = update_session(b"", PATH, SessionFile(started=STARTED, summary="One.")).decode()
    assert text.splitlines()[1:] == [
        "", "duration: cost unknown", "started: 2026-05-13T09:47:03.120Z", "", "## Summary", "", "One.",
    ]  # fmt: skip


@pytest.mark.req("GO-AT4", "GO-I5")
def test_what_people_write_is_honoured_and_survives_a_rewrite() -> None:
    edited = (
        b"---\nmood: good\naliases: [golden]\n---\n"
        b"# The day of the fixtures\n\nA word of mine.\nTags: [Golden, '#slow']\nsession: s-1\n"
        b"started: 2026-05-13T09:47:03.120Z\n\n"
        b"## Summary\n\nMine.\n\n## My thoughts\n\n- not a memory\n- Kept. [kind:: lesson]\n\n"
        b"## facts\n\nSome prose.\n- By hand\n\n## Open threads\n- [x] done\n- [ ] to do\n"
    )
    read = parse_session(edited, PATH)
    assert read is not None
    assert (read.started, read.session, read.tags, read.summary) == (STARTED, "s-1", ("Golden", "slow"), "Mine.")
    assert [(one.kind, one.content, one.by) for one in read.entries] == [
        ("lesson", "Kept.", "hand"), ("fact", "By hand", "hand"),
    ]  # fmt: skip
    assert read.open_threads == ("to do",)
    rewritten = update_session(edited, PATH, replace(read, summary="Theirs.", entries=(*read.entries, entry(1))))
    for line in edited.decode().splitlines():
        assert line in {"Mine."} | set(rewritten.decode().splitlines())
    assert parse_session(rewritten, PATH) == replace(read, summary="Theirs.", entries=(entry(1), *read.entries))
    untitled = edited.replace(b"# The day of the fixtures\n\n", b"")
    again = update_session(untitled, PATH, replace(read, tags=("new",)))
    assert again.startswith(b"---\nmood: good\naliases: [golden]\n---\n# "), "what stands first stays first"


@pytest.mark.req("GO-I5")
def test_bytes_that_are_no_text_survive_a_rewrite() -> None:
    data = b"# 2026-05-13 09:47\n\xff\n\n## Mine\n\xfe\n"
    changed = update_session(data, PATH, replace(FULL, summary="New."))
    assert b"\n\xff\n" in changed
    assert b"\n\xfe\n" in changed


@pytest.mark.req("GO-G12")
@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_fence_that_nobody_closed_hides_no_entry(fence: str) -> None:
    data = f"# 2026-05-13 09:47\n\n## Summary\n\n{fence}\n\n## Facts\n\n{fence}\n".encode()
    read = parse_session(update_session(data, PATH, replace(FULL, summary=fence)), PATH)
    assert read is not None
    assert read.entries == FULL.entries


@pytest.mark.req("GO-G12", "GO-I5")
def test_the_session_files_of_others_are_read() -> None:
    data = (
        b"# 2026-05-13 09:47\n\ntags: compaction\nduration: 1,012 minutes, 1 turn, $0.02\n\n"
        b"## Summary\nWe talked.\n\n## Decisions\n- Keep the newest.\n- Drop the rest.\n\n## Notes\n- Odd.\n"
    )
    read = parse_session(data, PATH)
    assert read is not None
    assert read.started == datetime(2026, 5, 13, 9, 47).astimezone(UTC)
    assert (read.totals.minutes, read.totals.turns, read.totals.cost) == (1_012, 1, Decimal("0.02"))
    assert [(one.kind, one.content) for one in read.entries] == [
        ("decision", "Keep the newest."), ("decision", "Drop the rest."), ("note", "Odd."),
    ]  # fmt: skip


@pytest.mark.req("GO-G11")
def test_the_name_tells_the_time_where_nothing_else_does() -> None:
    read = parse_session(b"## Summary\nOld.\n", PATH)
    assert read is not None
    assert read.started == datetime(2026, 5, 13, 9, 47).astimezone(UTC)
    assert parse_session(b"# Read me\n\nWhat lies here.\n", "sessions/README.md") is None
    assert parse_session(b"# 2026-99-13 09:47\n", "sessions/README.md") is None


@pytest.mark.req("GO-AT4", "GO-D10")
@pytest.mark.parametrize("state", ["pending", "outdated"])
def test_a_waiting_summary_that_a_person_rewrote_waits_no_more(state: str) -> None:
    waiting = replace(FULL, is_pending=state == "pending", is_outdated=state == "outdated", summary="Saved: this.")
    data = update_session(b"", PATH, waiting)
    assert f"\nsummary: {state} ".encode() in data
    assert parse_session(data, PATH) == waiting
    read = parse_session(data.replace(b"Saved: this.", b"We saved this, and more."), PATH)
    assert read is not None
    assert not read.is_pending
    assert not read.is_outdated
    assert parse_session(update_session(data, PATH, FULL), PATH) == FULL


@pytest.mark.req("GO-G12")
def test_other_line_ends_change_nothing() -> None:
    data = update_session(b"", PATH, FULL).replace(b"\n", b"\r\n")
    assert parse_session(data, PATH) == FULL
    assert update_session(data, PATH, FULL).rstrip() == data.rstrip()
    rest = replace(FULL, entries=FULL.entries[1:])
    assert parse_session(update_session(data, PATH, rest), PATH) == rest


@pytest.mark.req("GO-AT4")
def test_an_edited_entry_is_not_added_again() -> None:
    data = update_session(b"", PATH, FULL)
    edited = data.replace(b"Deploy only from main.", b"Deploy on Mondays.")
    assert update_session(edited, PATH, FULL) == edited


@pytest.mark.req("HE-O-audit-forget")
def test_an_entry_can_be_taken_out() -> None:
    data = update_session(b"", PATH, FULL)
    rest = replace(FULL, entries=(FULL.entries[0], *FULL.entries[2:]))
    gone = update_session(data, PATH, rest)
    assert b"## Decisions" not in gone
    assert parse_session(gone, PATH) == rest
    lines = data.decode().split("\n")
    assert [line for line in lines if line not in gone.decode().split("\n")] == [
        line for line in lines if "Deploy" in line or line == "## Decisions"
    ]


@pytest.mark.req("GO-D10")
def test_a_digest_names_the_newest_and_stays_short() -> None:
    assert create_digest([]) == ""
    assert create_digest([entry(1), entry(2)]) == "Saved: Fact 2.; Fact 1."
    assert len(create_digest([entry(number, "word " * 50) for number in range(9)])) <= 300
