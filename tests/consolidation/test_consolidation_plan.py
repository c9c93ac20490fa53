"""What a run decides: what is curated, what is said already, what is replaced, and where everything stands."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.curation import CandidateEntry, ConsolidationConfig, ConsolidationInput, find_faults, propose
from ricordo.curation.proposal import is_due
from ricordo.curation.topics import FADED_HEAD, FADED_TOPIC, count_subjects
from ricordo.curation.types import Proposal, Retirement
from ricordo.errors import InvalidSetting
from ricordo.messages import estimate_text
from ricordo.workspace import MEMORY_PATH, Author, parse_entries, render_entry, render_prompt_lines
from ricordo.workspace.entry_codec import inline_fields, without_field_comment

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
LEDGER = "workspace/memory/2026-11-21.md"
CONFIG = ConsolidationConfig()
SMALL = ConsolidationConfig(max_lines=24, max_memory_tokens=160, max_bytes=2_400)


def entry(number: int, content: str, kind: str = "fact", by: Author = "flush", **more: object) -> Entry:
    moment = NOW + timedelta(minutes=number)
    return Entry(content=content, id=f"{number:026}", kind=kind, by=by, time=moment, **more)  # type: ignore[arg-type]


def ledgers(*entries: Entry) -> dict[str, bytes]:
    return {LEDGER: "".join(map(render_entry, entries)).encode("utf-8", "surrogatepass")}


def material(*entries: Entry, documents: dict[str, bytes] | None = None) -> ConsolidationInput:
    fresh = [CandidateEntry(entry=one) for one in entries]
    return ConsolidationInput(documents=documents or {}, ledgers=ledgers(*entries), fresh=fresh)


def documents(made: Proposal, before: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """Return curated memory as it is after a run."""
    after = {**(before or {}), **{path: data for path, data in made.documents.items() if path != LEDGER}}
    return {path: data for path, data in after.items() if data is not None}


def shown(made: Proposal) -> list[str]:
    return render_prompt_lines(documents(made).get(MEMORY_PATH, b""))


TEXTS = st.one_of(
    st.text(min_size=1, max_size=80),
    st.sampled_from(
        [
            "We use MySQL for the orders.", "We switched the orders from MySQL to PostgreSQL.", "Ana lives in Porto.",
            "Ana moved to Lisbon.", "We deploy on Fridays.", "We don't deploy on Fridays.", "word " * 60, "語" * 120,
            "Ana moved to Lisbon", "データベースはMySQLです。", "データベースはPostgreSQLです。", "## Facts", "```",
            "1. [x](memory/topics/x.md)", "Ana likes tea.", "Ana plays chess on Sundays.", "Ana has a cat.",
        ]
    ),
)  # fmt: skip
ENTRIES = st.lists(
    st.tuples(
        TEXTS,
        st.sampled_from(["fact", "decision", "preference", "convention", "goal", "lesson", "other kind"]),
        st.sampled_from(["user", "agent", "flush", "flush", "hand"]),
        st.sampled_from([0.5, 0.65, 0.8, 1.0]),
        st.integers(0, 3),
    ),
    max_size=24,
).map(
    lambda rows: [
        entry(number, text, kind, by, confidence=confidence, since=NOW + timedelta(days=day))  # type: ignore[arg-type]
        for number, (text, kind, by, confidence, day) in enumerate(rows)
        if text.strip()
    ]
)
HAND = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(
            ["# Mine", "## Facts", "- by hand", "```", "    code", "", "## Rules", "* star", "[x](topics/t.md)"]
        ),
    ),
    max_size=8,
).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))


@pytest.mark.req("AS-CONS-04", "HE-C1b", "HE-C1-index")
@given(entries=ENTRIES, hand=HAND, config=st.sampled_from([CONFIG, SMALL]))
def test_whatever_is_said_a_run_has_no_faults_and_a_second_one_nothing_to_do(
    entries: list[Entry], hand: bytes, config: ConsolidationConfig
) -> None:
    before = {MEMORY_PATH: hand} if hand else {}
    given_all = material(*entries, documents=before)
    made = propose(given_all, config)
    assert find_faults(given_all, made, config) == []
    after = documents(made, before)
    marked = {LEDGER: made.documents.get(LEDGER) or given_all.ledgers[LEDGER]}
    nothing_new = ConsolidationInput(documents=after, ledgers=marked)
    assert propose(nothing_new, config).documents == {}
    read_again = [CandidateEntry(entry=found.entry) for found in parse_entries(marked[LEDGER], LEDGER)]
    assert propose(ConsolidationInput(documents=after, ledgers=marked, fresh=read_again), config).documents == {}


@pytest.mark.req("HE-C3-guard")
@given(entries=ENTRIES, hand=HAND)
def test_every_line_of_a_person_survives_in_its_order(entries: list[Entry], hand: bytes) -> None:
    after = iter(
        documents(propose(material(*entries, documents={MEMORY_PATH: hand}), SMALL), {MEMORY_PATH: hand})[
            MEMORY_PATH
        ].split(b"\n")
    )
    assert all(line in after for line in hand.split(b"\n") if line.strip())


@pytest.mark.req("AS-CONS-03", "HE-C1-index", "HE-C1b", "HE-C2", "CC-INDEXCAP")
@given(entries=ENTRIES)
def test_no_bound_of_curated_memory_is_exceeded_and_no_entry_gets_lost(entries: list[Entry]) -> None:
    made = propose(material(*entries), SMALL)
    after = documents(made)
    memory = without_field_comment(after.get(MEMORY_PATH, b""))
    assert memory.count(b"\n") <= SMALL.max_lines
    assert len(memory) <= SMALL.max_bytes
    assert estimate_text("\n".join(render_prompt_lines(memory))) <= SMALL.max_memory_tokens
    standing = [found.entry.id for path, data in after.items() for found in parse_entries(data, path)]
    assert sorted(standing) == sorted(made.kept)
    told = {*made.kept, *made.merged, *made.left, *(one.old for one in made.superseded)}
    assert told == {one.id for one in entries}


@given(entries=ENTRIES, seed=st.randoms(use_true_random=False))
def test_the_order_of_the_ledgers_changes_nothing(entries: list[Entry], seed: object) -> None:
    shuffled = list(entries)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = propose(material(*entries), CONFIG), propose(material(*shuffled), CONFIG)
    assert documents(one) == documents(other)
    assert (one.kept, one.merged, one.superseded, one.left) == (other.kept, other.merged, other.superseded, other.left)


@pytest.mark.req("HE-C1b", "HE-C1-topic")
@given(entries=ENTRIES)
def test_topics_and_the_lines_that_list_them_agree(entries: list[Entry]) -> None:
    after = documents(propose(material(*entries), SMALL))
    listed = re.findall(rb"^\d+\. \[[^\n]*\]\((memory/topics/[^)\n]+)\)", after.get(MEMORY_PATH, b""), re.MULTILINE)
    assert sorted(f"workspace/{path.decode()}" for path in listed) == sorted(
        path for path in after if path != MEMORY_PATH
    )


@given(entries=ENTRIES)
def test_curated_entries_read_back_as_they_were_said(entries: list[Entry]) -> None:
    made = propose(material(*entries), CONFIG)
    said = {one.id: one for one in entries}
    for path, data in documents(made).items():
        for found in parse_entries(data, path):
            original = said[found.entry.id]
            assert (found.entry.content, found.entry.kind, found.entry.by) == (
                original.content,
                original.kind,
                original.by,
            )


@pytest.mark.req("AS-CONS-03", "HE-C1-topic", "HE-C2", "CC-INDEXCAP")
def test_the_most_useful_stand_first_and_the_rest_goes_to_topics() -> None:
    saved = [entry(number, f"Rule {number} of the house is kept.", "convention", "user") for number in range(5)]
    towns = ("Porto", "Faro", "Braga", "Leiria")
    told = [f"Ana told story number {number} about {towns[number % 4]}." for number in range(40)]
    facts = [entry(10 + number, text, confidence=0.9) for number, text in enumerate(told)]
    made = propose(material(*facts, *saved), SMALL)
    lines = shown(made)
    assert lines[0] == "# Memory"
    assert lines[1:3][0] == "## Topics"
    assert [line for line in lines if line.startswith("- Rule")] == [f"- {one.content}" for one in reversed(saved)]
    assert "workspace/memory/topics/porto.md" in documents(made)
    assert "workspace/memory/topics/ana.md" not in documents(made), "what most speak of tells nothing of a topic"


@pytest.mark.parametrize("kind", ["preference", "convention", "decision", "goal", "lesson", "fact", "other kind"])
@pytest.mark.req("HE-C2", "HE-T2", "HE-C1-topic", "HE-C1b")
def test_a_short_memory_stands_in_the_index_and_a_longer_one_of_the_same_kind_in_a_topic_with_a_pointer(
    kind: str,
) -> None:
    short, long = entry(1, "a" * 150, kind, "user"), entry(2, "b" * 151, kind, "user")
    after = documents(propose(material(short, long), CONFIG))
    (topic,) = [path for path in after if path != MEMORY_PATH]
    assert [found.entry.id for found in parse_entries(after[MEMORY_PATH], MEMORY_PATH)] == [short.id]
    assert [found.entry.content for found in parse_entries(after[topic], topic)] == [long.content]
    pointers = [line for line in after[MEMORY_PATH].split(b"\n") if topic.removeprefix("workspace/").encode() in line]
    assert len(pointers) == 1
    assert max(map(len, render_prompt_lines(after[MEMORY_PATH]))) < 160


@pytest.mark.req("HE-C2")
def test_a_curated_line_that_grew_too_long_moves_to_a_topic_and_a_pinned_one_or_a_person_s_stays() -> None:
    grown, pinned = entry(1, "a" * 200, by="user"), entry(2, "b" * 200, by="user", pinned=True)
    memory = f"# Memory\n\n## Facts\n\n{render_entry(grown)}{render_entry(pinned)}- {'c' * 200}\n".encode()
    before = {MEMORY_PATH: memory}
    after = documents(propose(ConsolidationInput(documents=before, ledgers=ledgers(grown, pinned)), CONFIG), before)
    (topic,) = [path for path in after if path != MEMORY_PATH]
    assert [found.entry.content[0] for found in parse_entries(after[MEMORY_PATH], MEMORY_PATH)] == ["b", "c"]
    assert [found.entry.id for found in parse_entries(after[topic], topic)] == [grown.id]


@pytest.mark.req("HE-C2")
def test_how_long_a_line_of_the_index_may_be_is_a_setting() -> None:
    entries = [entry(number, letter * 40, by="user") for number, letter in enumerate("ab")]
    assert list(documents(propose(material(*entries), ConsolidationConfig(index_characters=40)))) == [MEMORY_PATH]
    after = documents(propose(material(*entries), ConsolidationConfig(index_characters=39)))
    assert parse_entries(after[MEMORY_PATH], MEMORY_PATH) == []


def test_a_topic_is_described_by_what_is_in_it_until_a_person_describes_it() -> None:
    first, second = entry(1, "The gate opens by a song. " * 8, by="user"), entry(2, "Nine barrels. " * 12, by="user")
    before = documents(propose(material(first), CONFIG))
    later = ConsolidationInput(
        documents=before, ledgers=ledgers(first, second), fresh=[CandidateEntry(entry=second)], forgotten=[first.id]
    )
    after = documents(propose(later, CONFIG), before)
    (topic,) = [path for path in after if path != MEMORY_PATH]
    assert b"gate" not in after[topic] + after[MEMORY_PATH]
    assert b"Nine barrels" in after[MEMORY_PATH]


def test_small_talk_stays_in_the_ledger_and_what_lasts_is_curated() -> None:
    talk = entry(1, "Ana had a nice walk.", confidence=0.55)
    once = entry(2, "Ana has two cats.", confidence=0.75)
    rule = entry(3, "Branches are named ord-<ticket>.", "convention", confidence=0.65)
    explicit = entry(4, "The office closes at six.", by="user", confidence=0.1)
    made = propose(material(talk, once, rule, explicit), CONFIG)
    assert made.left == (talk.id,)
    assert shown(made) == [
        "# Memory", "## Conventions", f"- {rule.content}", "## Facts", f"- {explicit.content}", f"- {once.content}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "passing",
    [
        "Ines is on call this week (2026-10-12 to 2026-10-18) so Ines can approve it.",
        "Jonas is working from home today.",
        "Ines ist diese Woche im Urlaub.",
        "mysql://orders:[secret:url-password:2727099a]@db.example:3306/orders, the account is read-only.",
    ],
)
def test_a_secret_and_where_somebody_is_this_week_stay_in_the_ledger_unless_they_were_saved(passing: str) -> None:
    extracted = entry(1, passing, confidence=0.9)
    assert propose(material(extracted), CONFIG).left == (extracted.id,)
    saved = entry(2, passing, by="user")
    assert propose(material(saved), CONFIG).kept == (saved.id,)


@pytest.mark.parametrize(
    "lasting",
    [
        "Ines is on call every third week. This week was hers, so her next one starts on 2 November.",
        "The first order went through this morning at 9:41.",
        "Production is moved to PostgreSQL tonight at 23:00.",
        "The office is in Bristol, Ines works from Leipzig.",
        "The read replica is off limits for writes.",
        "Ines is away today. The code of the gate is changed each month.",
    ],
)
def test_an_event_a_turn_that_comes_round_and_what_holds_for_good_are_curated(lasting: str) -> None:
    fact = entry(1, lasting, confidence=0.75)
    assert propose(material(fact), CONFIG).kept == (fact.id,)


@pytest.mark.req("AS-CONS-02", "HE-C3")
def test_what_is_said_twice_stands_once_and_cites_the_other() -> None:
    first = entry(1, "Ana has two cats.", confidence=0.65)
    second = entry(2, "ana has two cats", confidence=0.65)
    made = propose(material(first, second), CONFIG)
    assert made.kept == (second.id,)
    assert made.merged == (first.id,)
    (found,) = parse_entries(documents(made)[MEMORY_PATH], MEMORY_PATH)
    assert found.entry.extra == (("merged", first.id),)


@pytest.mark.req("HE-C3", "HE-O-conflict", "FC-CONFLICT")
@pytest.mark.parametrize("in_two_runs", [False, True])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("We use MySQL for the orders.", "We switched the orders from MySQL to PostgreSQL."),
        ("use Postgres", "we migrated to MongoDB"),
        ("Unsere Datenbank ist MySQL.", "Unsere Datenbank ist jetzt PostgreSQL."),
        ("データベースはMySQLです。", "データベースはPostgreSQLです。"),
    ],
)
def test_the_newer_of_two_that_cannot_both_hold_wins_and_the_older_is_kept_as_superseded(
    old: str, new: str, in_two_runs: bool
) -> None:
    older, newer = entry(1, old, "decision", confidence=0.9), entry(2, new, "decision", confidence=0.9)
    before = documents(propose(material(older), CONFIG)) if in_two_runs else {}
    given_all = ConsolidationInput(
        documents=before,
        ledgers=ledgers(older, newer),
        fresh=[CandidateEntry(entry=one) for one in ([newer] if in_two_runs else [newer, older])],
    )
    made = propose(given_all, CONFIG)
    (curated,) = parse_entries(documents(made, before)[MEMORY_PATH], MEMORY_PATH)
    assert (curated.entry.id, curated.entry.supersedes) == (newer.id, older.id)
    marked = made.documents[LEDGER]
    assert marked is not None
    kept = [found.entry for found in parse_entries(marked, LEDGER)]
    assert [(one.content, one.state) for one in kept] == [(old, "superseded"), (new, "active")]
    assert ("successor", newer.id) in kept[0].extra


@pytest.mark.req("HE-O-conflict", "HE-C3", "FC-CONFLICT")
def test_what_was_said_earlier_and_comes_later_replaces_nothing() -> None:
    newer = entry(1, "Ana lives in Lisbon.", confidence=0.9, since=NOW)
    before = documents(propose(material(newer), CONFIG))
    older = entry(2, "Ana lives in Porto.", confidence=0.9, since=NOW - timedelta(days=400))
    made = propose(
        ConsolidationInput(documents=before, ledgers=ledgers(newer, older), fresh=[CandidateEntry(entry=older)]), CONFIG
    )
    assert [(one.old, one.new) for one in made.superseded] == [(older.id, newer.id)]
    assert [line for line in shown(made) if line.startswith("- ")] == ["- Ana lives in Lisbon."]


@pytest.mark.req("HE-C3-guard", "HE-O-conflict", "FC-CONFLICT")
def test_what_a_person_pinned_or_wrote_by_hand_is_never_replaced() -> None:
    pinned = entry(1, "Ana lives in Porto.", pinned=True)
    memory = b"# Memory\n\n## Facts\n\n- Our database is MySQL.\n" + render_entry(pinned).encode()
    news = [entry(2, "Ana moved to Lisbon.", by="user"), entry(3, "Our database is PostgreSQL.", by="user")]
    made = propose(material(*news, documents={MEMORY_PATH: memory}), CONFIG)
    assert made.superseded == ()
    assert set(memory.split(b"\n")) <= set(inline_fields(documents(made)[MEMORY_PATH]).split(b"\n"))
    assert len(made.kept) == len(news)


@pytest.mark.req("HE-C3-guard")
def test_one_run_supersedes_no_more_than_its_bound() -> None:
    old = [entry(number, f"The limit of queue {number}x is 10 items.", confidence=0.9) for number in range(5)]
    new = [entry(100 + number, f"The limit of queue {number}x is 20 items.", confidence=0.9) for number in range(5)]
    made = propose(material(*old, *new), ConsolidationConfig(max_superseded=2))
    assert len(made.superseded) == 2
    assert len(made.kept) == 8


@pytest.mark.req("HE-C1b", "HE-O-audit-forget")
def test_what_was_forgotten_is_taken_out_and_an_empty_topic_goes_with_its_line() -> None:
    facts = [entry(number, f"Ana told story number {number} about Porto.", confidence=0.9) for number in range(40)]
    made = propose(material(*facts), SMALL)
    before = documents(made)
    topics = [path for path in before if path != MEMORY_PATH]
    assert topics
    gone = {found.entry.id for path in topics for found in parse_entries(before[path], path)}
    after = propose(ConsolidationInput(documents=before, forgotten=gone), SMALL)
    assert [path for path, data in after.documents.items() if data is None] == topics
    assert b"memory/topics/" not in documents(after, before)[MEMORY_PATH]
    assert {found.entry.id for found in parse_entries(documents(after, before)[MEMORY_PATH], MEMORY_PATH)}.isdisjoint(
        gone
    )


@pytest.mark.req("HE-C1b")
def test_the_archive_may_go_with_its_last_memory_unless_a_person_wrote_into_it() -> None:
    faded = entry(1, "The walnut tree is at the gate.")
    head = FADED_HEAD.rstrip() + b"\n"
    gone = Proposal(documents={FADED_TOPIC: None}, merged=(faded.id,))
    archive = head + render_entry(faded).encode()
    assert find_faults(ConsolidationInput(documents={FADED_TOPIC: archive}), gone, CONFIG) == []
    named_anew = archive.replace(b"returns one", b"brings one back")
    for edited, lines in ((named_anew, 6), (archive + b"By hand.\n", 7)):
        faults = find_faults(ConsolidationInput(documents={FADED_TOPIC: edited}), gone, CONFIG)
        assert faults == [f"{lines} lines that a person wrote would be lost"]


@pytest.mark.req("HE-C3-guard")
@pytest.mark.parametrize(("curated", "most"), [(30, 20), (400, 40)])
def test_a_proposal_that_retires_more_than_it_may_is_found_faulty(curated: int, most: int) -> None:
    memory = b"## Facts\n\n" + b"".join(render_entry(entry(n, f"Fact {n}.")).encode() for n in range(curated))
    given_all = ConsolidationInput(documents={MEMORY_PATH: memory})
    for count, faults in ((most, []), (most + 1, [f"{most + 1} memories would be retired"])):
        retired = tuple(Retirement(id=f"{n:026}", reason="trivial") for n in range(count))
        assert find_faults(given_all, Proposal(retired=retired), CONFIG) == faults


@pytest.mark.req("AS-BUG-15")
def test_a_proposal_that_loses_something_is_found_faulty() -> None:
    kept = entry(1, "Ana has two cats.", by="user")
    memory = b"# Mine\n\n- by hand\n" + render_entry(kept).encode()
    given_all = ConsolidationInput(documents={MEMORY_PATH: memory})
    assert find_faults(given_all, Proposal(documents={MEMORY_PATH: b""}), CONFIG) == [
        "2 curated memories would be lost",
        "2 lines that a person wrote would be lost",
    ]
    assert find_faults(given_all, Proposal(kept=("x",)), CONFIG) == ["1 new memories would stand nowhere"]
    large = b"## Facts\n\n" + b"".join(render_entry(entry(n, "x" * 200)).encode() for n in range(400))
    assert find_faults(ConsolidationInput(), Proposal(documents={MEMORY_PATH: large}, kept=(f"{1:026}",)), CONFIG) == [
        "MEMORY.md would be larger than it may be"
    ]


@pytest.mark.req("AS-TRIG-04", "AS-CONS-04", "AS-CONS-06", "CC-GATES")
def test_a_run_is_due_when_there_is_enough_new_and_the_last_one_is_long_enough_ago() -> None:
    config = ConsolidationConfig(signal_entries=3, min_gap=1800.0)
    assert not is_due(NOW, None, 2, config)
    assert is_due(NOW, None, 3, config)
    assert not is_due(NOW, NOW - timedelta(minutes=29), 3, config)
    assert is_due(NOW, NOW - timedelta(minutes=30), 3, config)
    assert is_due(NOW, NOW + timedelta(days=1), 3, config)


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    "name", ["max_lines", "max_memory_tokens", "max_bytes", "min_gap", "duplicate", "index_characters"]
)
def test_a_setting_out_of_its_range_is_refused_by_its_name(name: str) -> None:
    given: dict[str, Any] = {name: -1}
    with pytest.raises(InvalidSetting, match=name):
        ConsolidationConfig(**given)


def test_the_user_who_has_no_name_is_no_subject_of_a_topic() -> None:
    entries = [
        Entry(content=f"User keeps ship {number} in Lisbon harbour.", id=f"{number:026}", time=NOW)
        for number in range(4)
    ]
    assert count_subjects(entries).counts.keys() == {"Lisbon"}


def test_names_that_are_asked_for_are_counted_in_all_entries_and_no_others_are() -> None:
    told = [
        "Ana met Bo.",
        "We saw Bo's sister Ana there.",
        "Then St. Anna-Maria came with Bo Li.",
        "BO",
        "Nobody (Bo) came.",
    ]
    entries = [Entry(content=text, id=f"{number:026}", time=NOW) for number, text in enumerate(told)]
    everything = count_subjects(entries).counts
    for one in entries:
        asked = count_subjects(entries, [one]).counts
        assert asked.items() <= everything.items()
        assert all(name.casefold() in one.content.casefold() for name in asked)
    assert everything["Bo"] == len(told)
    speaking = Entry(content="bo: I was there.", id="9" * 26, time=NOW)
    assert "Bo" not in count_subjects([*entries, speaking]).counts, "who speaks is no subject"
