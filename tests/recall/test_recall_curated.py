"""One memory once, curated memory first, and what was superseded never as the answer: over real workspaces."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ricordo import Entry, Message
from ricordo.errors import StorageFailed
from ricordo.messages import Text, encode_message, with_mark
from ricordo.search import Match, Query, SearchSource, answer_question, recall_memories, search
from ricordo.search.index import WorkspaceIndex
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Source as Origin
from ricordo.workspace import render_entry
from ricordo.workspace.entry import EntryState

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-O-conflict")]

BEGUN = datetime(2026, 11, 1, 9, tzinfo=UTC)
NOW = BEGUN + timedelta(days=20)
LEDGER = "workspace/memory/2026-11-01.md"
MEMORY = "workspace/MEMORY.md"
TOPIC = "workspace/memory/topics/orders.md"
LOG = "workspace/agents/main/sessions/s1.log.jsonl"
WHICH = "Which database does the orders service use?"


def entry(
    number: int, content: str, *, supersedes: Entry | None = None, kind: str = "decision", state: EntryState = "active",
    messages: tuple[str, ...] = (),
) -> Entry:  # fmt: skip
    """Return an entry of the day with this number."""
    return Entry(
        content=content, kind=kind, id=f"01jd{number:022d}", time=BEGUN + timedelta(days=number), state=state,
        supersedes=supersedes.id if supersedes else None, source=Origin(session="s1", messages=messages),
    )  # fmt: skip


MYSQL = entry(1, "The orders service uses MySQL 8 as its database.")
POSTGRES = entry(3, "The orders service uses PostgreSQL 16 as its database.", supersedes=MYSQL)
SPANNER = entry(6, "The orders service uses Spanner as its database.", supersedes=POSTGRES)
OTHER = entry(2, "The staging server listens on port 5433.", kind="fact")


async def workspace(
    folder: Path, files: dict[str, tuple[Entry, ...]], *, said: tuple[tuple[str, str, int], ...] = ()
) -> list[SearchSource]:
    """Return a workspace with these documents, and these messages (speaker, text, day)."""
    store = InMemoryFiles()
    for path, entries in files.items():
        await store.create(path, ("# Notes\n\n" + "".join(map(render_entry, entries))).encode())
    for number, (speaker, text, day) in enumerate(said):
        message = Message(
            role="user", name=speaker, id=f"m{number}", time=BEGUN + timedelta(days=day), parts=(Text(text=text),)
        )
        await store.append(LOG, encode_message(message))
    return [SearchSource(label="project", index=await WorkspaceIndex.open(folder / "index.db", store))]


async def test_an_entry_in_three_places_is_one_hit_shown_where_it_is_curated(tmp_path: Path) -> None:
    everywhere = await workspace(tmp_path, {LEDGER: (OTHER, MYSQL), TOPIC: (MYSQL,), MEMORY: (OTHER, MYSQL)})
    for hits in (
        await recall_memories(everywhere, "orders database", now=NOW),
        await search(everywhere, WHICH, now=NOW),
    ):
        assert [(hit.entry, hit.path, hit.line_number) for hit in hits if hit.entry.id == MYSQL.id] == [
            (MYSQL, MEMORY, 4)
        ]
    found = await answer_question(everywhere, WHICH, now=NOW)
    assert (found.path, found.line_number, found.superseded) == (MEMORY, 4, ())
    assert MYSQL.id not in {hit.entry.id for hit in found.others}


async def test_a_topic_is_shown_before_the_ledger(tmp_path: Path) -> None:
    both = await workspace(tmp_path, {LEDGER: (OTHER, MYSQL), TOPIC: (MYSQL,)})
    assert [hit.path for hit in await recall_memories(both, "orders database", now=NOW)] == [TOPIC]


async def test_what_a_person_corrected_in_curated_memory_is_what_the_entry_says(tmp_path: Path) -> None:
    edited = entry(1, "The shop keeps its purchases in PostgreSQL.")
    corrected = await workspace(tmp_path, {LEDGER: (MYSQL,), MEMORY: (edited,)})
    hits = await recall_memories(corrected, "MySQL", now=NOW)
    assert [(hit.entry.content, hit.path) for hit in hits] == [(edited.content, MEMORY)]


async def test_a_ledger_is_shown_where_the_filters_leave_curated_memory_out(tmp_path: Path) -> None:
    both = await workspace(tmp_path, {LEDGER: (MYSQL,), MEMORY: (MYSQL,)})
    hits = await search(both, Query(text="database", document_types=("ledger",)), now=NOW)
    assert [hit.path for hit in hits] == [LEDGER]


async def test_an_answer_rests_on_curated_memory_rather_than_on_a_message_that_says_the_same(tmp_path: Path) -> None:
    said = (("Ines", "So which database? The orders service uses MySQL 8 as its database, for now at least.", 0),)
    found = await answer_question(await workspace(tmp_path, {MEMORY: (MYSQL, OTHER)}, said=said), WHICH, now=NOW)
    assert (found.path, found.line_number) == (MEMORY, 3)


async def test_an_answer_rests_on_curated_memory_rather_than_on_a_later_tool_call_that_repeats_it(
    tmp_path: Path,
) -> None:
    port = entry(1, "The orders service listens on 8443; 8080 on our hosts is taken by the metrics sidecar.")
    said = (("assistant", "Noted: the orders service listens on port 8443, 8080 is taken by the metrics sidecar.", 9),)
    found = await answer_question(
        await workspace(tmp_path, {MEMORY: (port,)}, said=said),
        "Which port does the orders service listen on?",
        now=NOW,
    )
    assert found.path == MEMORY


async def test_a_message_that_fits_clearly_better_is_quoted_before_curated_memory(tmp_path: Path) -> None:
    curated = entry(1, "The orders service has a database of its own.", kind="fact")
    said = (("Ines", "The refund window of the orders service is 45 days.", 0), ("Jonas", "Good.", 0))
    found = await answer_question(
        await workspace(tmp_path, {MEMORY: (curated,)}, said=said), "How many days is the refund window?", now=NOW
    )
    assert found.path == LOG


async def test_a_later_statement_is_quoted_before_what_curated_memory_does_not_know_yet(tmp_path: Path) -> None:
    later = entry(9, "The orders service moves its database from MySQL to PostgreSQL.")
    found = await answer_question(await workspace(tmp_path, {MEMORY: (MYSQL,), LEDGER: (later,)}), WHICH, now=NOW)
    assert found.path == LEDGER
    assert [hit.entry.id for hit in found.superseded] == [MYSQL.id]


@pytest.mark.req("HE-C7-ties")
async def test_what_was_superseded_is_named_after_the_answer_newest_first(tmp_path: Path) -> None:
    chain = await workspace(tmp_path, {LEDGER: (MYSQL, POSTGRES, SPANNER), MEMORY: (SPANNER,)})
    found = await answer_question(chain, WHICH, now=NOW)
    assert found.hit is not None
    assert (found.hit.entry.id, found.path, found.line_number) == (SPANNER.id, MEMORY, 3)
    assert [hit.entry.id for hit in found.superseded] == [POSTGRES.id, MYSQL.id]
    assert found.text.split("\n") == [
        SPANNER.content, f"(2026-11-07; {MEMORY}:3)", f"Superseded: {POSTGRES.content}", f"(2026-11-04; {LEDGER}:4)",
        f"Superseded: {MYSQL.content}", f"(2026-11-02; {LEDGER}:3)",
    ]  # fmt: skip
    assert not {hit.entry.id for hit in found.others} & {MYSQL.id, POSTGRES.id, SPANNER.id}


@pytest.mark.parametrize(("day", "held"), [(3, MYSQL), (5, POSTGRES), (9, SPANNER)])
async def test_a_question_about_a_past_day_gets_what_held_then(tmp_path: Path, day: int, held: Entry) -> None:
    chain = await workspace(tmp_path, {LEDGER: (MYSQL, POSTGRES, OTHER), MEMORY: (SPANNER,)})
    question = f"Which database did the orders service use on {day} November 2026?"
    assert (await recall_memories(chain, question, now=NOW))[0].entry.id == held.id
    found = await answer_question(chain, question, now=NOW)
    assert found.hit is not None
    assert found.hit.entry.id == held.id
    later = {entry.content for entry in (MYSQL, POSTGRES, SPANNER) if entry.time and entry.time.day > day}
    assert not any(content in found.text for content in later)


async def test_a_question_about_a_past_day_is_not_answered_by_what_announced_a_later_change(tmp_path: Path) -> None:
    announced = "We met the vendor twice and the database of the orders service is Cassandra as of 1 December."
    cassandra = entry(4, "The orders service stores its rows in Cassandra.", messages=("m0",))
    cassandra = replace(cassandra, extra=(("starts", "2026-12-01"),))
    chain = await workspace(tmp_path, {MEMORY: (MYSQL, cassandra)}, said=(("mia", announced, 4),))
    asked = "Which database did the orders service use on 10 November 2026?"
    found = await answer_question(chain, asked, now=NOW + timedelta(days=30))
    assert (found.hit and found.hit.entry.id, "Cassandra" in found.text) == (MYSQL.id, False)


async def test_superseded_memories_rank_below_their_successors_and_say_what_took_their_place(tmp_path: Path) -> None:
    chain = await workspace(tmp_path, {LEDGER: (MYSQL, POSTGRES), MEMORY: (SPANNER,)})
    for question in (WHICH, "MySQL 8", "PostgreSQL 16"):
        hits = [hit for hit in await recall_memories(chain, question, now=NOW) if hit.entry.id != OTHER.id]
        ids = [hit.entry.id for hit in hits]
        assert ids == sorted(ids, reverse=True)
        assert ids[0] == SPANNER.id
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert [(hit.entry.state, bool(hit.superseded_by)) for hit in hits] == [
            ("active", False), *[("superseded", True)] * (len(hits) - 1),
        ]  # fmt: skip
    old = next(hit for hit in await recall_memories(chain, WHICH, now=NOW) if hit.entry.id == POSTGRES.id)
    assert old.explanation.endswith(f"superseded by {MEMORY}:3")
    assert old.superseded_by == SPANNER.id


async def test_who_asks_by_the_old_words_hears_what_holds_now(tmp_path: Path) -> None:
    newer = entry(5, "Purchases live in PostgreSQL.", supersedes=MYSQL)
    renamed = await workspace(tmp_path, {LEDGER: (MYSQL,), MEMORY: (newer,)})
    found = await answer_question(renamed, "Does the orders service use MySQL?", now=NOW)
    assert found.hit is not None
    assert found.hit.entry.id == newer.id
    assert [hit.entry.id for hit in found.superseded] == [MYSQL.id]


async def test_what_a_summary_says_is_never_quoted_as_said_by_somebody(tmp_path: Path) -> None:
    told = Message(role="user", id="m9", time=BEGUN, parts=(Text(text=f"Summary: {MYSQL.content}"),))
    store = InMemoryFiles()
    await store.append(LOG, encode_message(with_mark(told, "summary")))
    sources = [SearchSource(label="project", index=await WorkspaceIndex.open(tmp_path / "index.db", store))]
    assert not (await answer_question(sources, WHICH, now=NOW)).found
    await store.append(LOG, encode_message(told))
    assert (await answer_question(sources, WHICH, now=NOW)).line_number == 2


async def test_a_message_whose_memory_was_superseded_is_not_the_answer(tmp_path: Path) -> None:
    old = entry(1, "The orders database is MySQL 8.", messages=("m0",))
    newer = entry(5, "Orders are kept in PostgreSQL, the database of the service.", supersedes=old)
    said = (("Ines", "The database that the orders service uses is MySQL 8, everywhere we use a database.", 1),)
    found = await answer_question(
        await workspace(tmp_path, {LEDGER: (old,), MEMORY: (newer,)}, said=said), WHICH, now=NOW
    )
    assert found.hit is not None
    assert found.hit.entry.id == newer.id


async def test_a_message_that_says_more_than_what_was_superseded_is_still_quoted(tmp_path: Path) -> None:
    old = entry(1, "We use MySQL 8 for the orders.", messages=("m0",))
    newer = entry(5, "We use PostgreSQL for the orders.", supersedes=old)
    said = (("Ines", "We use MySQL 8 for the orders, and the metrics exporter listens on port 9187.", 1),)
    both = await workspace(tmp_path, {LEDGER: (old,), MEMORY: (newer,)}, said=said)
    found = await answer_question(both, "Which port does the metrics exporter listen on?", now=NOW)
    assert found.path == LOG


async def test_a_chain_holds_where_its_middle_is_marked_superseded(tmp_path: Path) -> None:
    middle = entry(3, POSTGRES.content, supersedes=MYSQL, state="superseded")
    chain = await workspace(tmp_path, {LEDGER: (MYSQL, middle), MEMORY: (SPANNER,)})
    assert [hit.entry.id for hit in await recall_memories(chain, WHICH, now=NOW)] == [SPANNER.id, POSTGRES.id, MYSQL.id]
    (tmp_path / "cut").mkdir()
    cut = await workspace(tmp_path / "cut", {LEDGER: (MYSQL, middle)})
    assert [(hit.entry.id, hit.entry.state) for hit in await recall_memories(cut, WHICH, now=NOW)] == [
        (MYSQL.id, "superseded")
    ]
    assert not (await answer_question(cut, WHICH, now=NOW)).found


async def test_curated_memory_that_can_not_be_read_takes_nothing_from_what_was_found(tmp_path: Path) -> None:
    (whole,) = await workspace(tmp_path, {LEDGER: (MYSQL,), MEMORY: (MYSQL,)})
    search_whole = whole.index.search

    async def search_found_only(query: Query | str, limit: int = 10) -> list[Match]:
        if isinstance(query, Query) and not query.text:
            raise StorageFailed("The share is gone.")
        return await search_whole(query, limit)

    whole.index.search = search_found_only  # type: ignore[method-assign]
    assert [hit.entry.id for hit in await recall_memories([whole], "MySQL", now=NOW)] == [MYSQL.id]


async def test_a_successor_that_the_filters_leave_out_is_not_shown(tmp_path: Path) -> None:
    lesson = entry(5, "Purchases live in PostgreSQL.", supersedes=MYSQL, kind="lesson")
    mixed = await workspace(tmp_path, {LEDGER: (MYSQL,), MEMORY: (lesson,)})
    hits = await recall_memories(mixed, Query(text="MySQL database", kinds=("decision",)), now=NOW)
    assert [(hit.entry.id, hit.entry.state, hit.superseded_by) for hit in hits] == [(MYSQL.id, "superseded", lesson.id)]


async def test_an_entry_that_is_marked_superseded_is_shown_only_below_its_successor(tmp_path: Path) -> None:
    gone = entry(1, MYSQL.content, state="superseded")
    alone = await workspace(tmp_path, {LEDGER: (gone,)})
    assert await recall_memories(alone, WHICH, now=NOW) == []
    assert not (await answer_question(alone, WHICH, now=NOW)).found


async def test_entries_that_supersede_each_other_both_hold(tmp_path: Path) -> None:
    first = Entry(content=MYSQL.content, id=MYSQL.id, supersedes=POSTGRES.id, time=MYSQL.time)
    ring = await workspace(tmp_path, {LEDGER: (first, POSTGRES)})
    hits = await recall_memories(ring, WHICH, now=NOW)
    assert {(hit.entry.id, hit.superseded_by) for hit in hits} == {(MYSQL.id, ""), (POSTGRES.id, "")}
    assert (await answer_question(ring, WHICH, now=NOW)).found


async def test_a_change_of_one_number_in_many_words_is_no_duplicate(tmp_path: Path) -> None:
    words = "The nightly export of the orders service in the Halle warehouse to the finance team starts at"
    old = entry(1, f"{words} 01:30.")
    newer = entry(4, f"{words} 02:45.", supersedes=old)
    hits = await recall_memories(
        await workspace(tmp_path, {LEDGER: (old, newer)}), "When does the nightly export start?"
    )
    assert [hit.entry.id for hit in hits] == [newer.id, old.id]


async def test_without_links_a_change_names_only_the_older_memory_that_it_left_behind(tmp_path: Path) -> None:
    moved = entry(6, "We are moving the orders database from MySQL to PostgreSQL, as MySQL can't roll back DDL.")
    beside = entry(2, "The reporting database of the orders team is Oracle.")
    weighed = entry(3, "For the orders database we compared MySQL and PostgreSQL.")
    ledger = await workspace(tmp_path, {LEDGER: (MYSQL, beside, weighed, moved)})
    found = await answer_question(ledger, "Which database do the orders use?", now=NOW)
    assert found.hit is not None
    assert found.hit.entry.id == moved.id
    assert [hit.entry.id for hit in found.superseded] == [MYSQL.id]


async def test_nothing_is_superseded_by_a_memory_that_is_no_change(tmp_path: Path) -> None:
    plain = entry(6, "The orders service uses a database in Frankfurt.", kind="fact")
    found = await answer_question(await workspace(tmp_path, {LEDGER: (MYSQL, OTHER, plain)}), WHICH, now=NOW)
    assert found.found
    assert found.superseded == ()


RULES = "Yes. Before you do: use pnpm, not npm. The package-lock.json is a leftover, delete it. And keep answers short."


async def test_what_was_learned_from_a_message_is_quoted_before_the_message_itself(tmp_path: Path) -> None:
    pnpm = entry(1, "Use pnpm, not npm.", kind="convention", messages=("m0",))
    short = entry(2, "Ines: Keep answers short.", kind="preference", messages=("m0",))
    tabs = entry(3, "Use tabs.", kind="convention", messages=("m9",))
    sources = await workspace(tmp_path, {MEMORY: (pnpm, short, tabs)}, said=(("Ines", RULES, 1),))
    found = await answer_question(sources, "Which package manager does Ines want us to use?", now=NOW)
    assert found.hit is not None
    assert (found.hit.entry.id, found.path) == (pnpm.id, MEMORY)
    assert all(other.entry.id != pnpm.id for other in found.others)


async def test_what_was_learned_from_a_message_is_not_quoted_for_what_only_the_message_says(tmp_path: Path) -> None:
    said = "We use Redis for caching the baskets. Also, use pnpm, not npm."
    pnpm = entry(1, "Use pnpm, not npm.", kind="convention", messages=("m0",))
    gone = entry(2, "We use Redis for caching.", kind="decision", messages=("m0",), state="superseded")
    sources = await workspace(tmp_path, {MEMORY: (pnpm, gone)}, said=(("Ines", said, 1),))
    found = await answer_question(sources, "What do we use for caching?", now=NOW)
    assert found.path == LOG


async def test_a_memory_without_the_number_that_is_asked_for_does_not_stand_for_its_message(tmp_path: Path) -> None:
    tuna = entry(1, "The cats love tuna and sleep all day long.", kind="fact", messages=("m0",))
    said = (("Ines", "We have three cats. The cats love tuna and sleep all day long.", 1),)
    sources = await workspace(tmp_path, {MEMORY: (tuna,)}, said=said)
    assert (await answer_question(sources, "How many cats?", now=NOW)).path == LOG


async def test_what_was_learned_from_a_message_and_superseded_does_not_stand_for_it(tmp_path: Path) -> None:
    pnpm = entry(1, "Use pnpm, not npm.", kind="convention", messages=("m0",))
    bun = entry(4, "We are on bun now.", kind="convention", supersedes=pnpm)
    sources = await workspace(tmp_path, {MEMORY: (pnpm, bun)}, said=(("Ines", RULES, 1),))
    found = await answer_question(sources, "Which package manager does Ines want us to use?", now=NOW)
    assert found.hit is not None
    assert found.hit.entry.id != pnpm.id


async def test_a_later_rule_on_another_matter_with_one_word_in_common_is_no_restatement(tmp_path: Path) -> None:
    main = entry(1, "Deploys: we deploy only from main, by tag.", kind="convention")
    fridays = entry(5, "From now on we don't deploy on Fridays: the last one goes out on Thursday.", kind="convention")
    sources = await workspace(tmp_path, {MEMORY: (main, fridays)})
    assert "main" in (await answer_question(sources, "Which branch do we deploy from?", now=NOW)).text
    assert "Thursday" in (await answer_question(sources, "Do we deploy on Fridays?", now=NOW)).text


async def test_a_later_rule_in_nearly_the_same_words_is_a_restatement_though_it_holds_one_word_that_is_asked_for(
    tmp_path: Path,
) -> None:
    later = "From now on, please always hold the retrospective on Wednesdays, at ten, in the small room."
    said = (("Ines", "We always hold the retrospective on Mondays, please.", 0), ("Ines", later, 7))
    sources = await workspace(tmp_path, {}, said=said)
    assert (
        "Wednesdays" in (await answer_question(sources, "What weekday does Ines have the retrospective?", now=NOW)).text
    )


async def test_a_change_of_something_else_takes_nothing_back_for_a_name_in_common(tmp_path: Path) -> None:
    call = entry(1, "Ines is on call every third week, Ines's next one starts on 2 November.", kind="fact")
    moves = entry(5, "Ines says that staging moves next Tuesday, if it behaves.", kind="fact")
    sources = await workspace(tmp_path, {MEMORY: (call, moves)}, said=(("Ines", "Good morning.", 1),))
    assert "on call" in (await answer_question(sources, "When is Ines on call next?", now=NOW)).text


async def test_who_asks_what_happened_gets_what_came_of_a_goal_and_who_asks_for_the_goal_gets_that(
    tmp_path: Path,
) -> None:
    goal = entry(1, "The goal is to have the first real order go through the new service in October.", kind="goal")
    event = entry(5, "The first real order went through the new service on 28 October at 16:41.", kind="fact")
    sources = await workspace(tmp_path, {MEMORY: (goal, event)})
    assert "16:41" in (await answer_question(sources, "When did the first real order go through?", now=NOW)).text
    assert "goal" in (await answer_question(sources, "When should the first real order go through?", now=NOW)).text


@pytest.mark.req("HE-C7", "HE-A4", "HE-T5", "HE-C7-keep", "CC-HALFLIFE")
@pytest.mark.parametrize(
    ("swapped", "kind"), [(False, "fact"), (True, "fact"), (False, "decision"), (False, "convention"), (False, "goal")]
)
async def test_of_two_memories_as_near_to_the_question_the_one_of_two_weeks_goes_before_the_one_of_two_years(
    tmp_path: Path, swapped: bool, kind: str
) -> None:
    react, jquery = "In the frontend we migrated to react.", "In the frontend we settled on jquery."
    texts = (jquery, react) if swapped else (react, jquery)
    days = ((NOW - BEGUN).days - 14, (NOW - BEGUN).days - 730)
    saved = tuple(entry(at + 1, text) for at, text in enumerate(texts))
    aged = tuple(
        replace(one, kind=kind, time=BEGUN + timedelta(days=day)) for one, day in zip(saved, days, strict=True)
    )
    hits = await recall_memories(await workspace(tmp_path, {LEDGER: aged}), "frontend", now=NOW)
    assert [hit.entry.content for hit in hits] == list(texts)
    assert hits[0].score > hits[1].score
    assert hits[0].signals["bm25"] == hits[1].signals["bm25"]


@pytest.mark.req("HE-C7-keep", "CC-HALFLIFE")
@pytest.mark.parametrize("years", [3, 30, 1_000])
async def test_however_old_a_memory_is_it_is_listed_and_found_and_age_only_lowers_its_score(
    tmp_path: Path, years: int
) -> None:
    old = replace(entry(1, "The gate code is kept in the red notebook."), time=NOW - timedelta(days=365 * years))
    fresh = [replace(entry(number, f"Note {number} of today."), time=NOW) for number in range(2, 40)]
    sources = await workspace(tmp_path, {LEDGER: (old, *fresh)})
    (found,) = await recall_memories(sources, "notebook", now=NOW)
    assert found.entry.id == old.id
    assert old.id in {hit.entry.id for hit in await recall_memories(sources, "", limit=100, now=NOW)}
    (young,) = await recall_memories(sources, "notebook", now=old.time)
    assert 0 < found.score < young.score


async def test_words_scattered_over_an_assistants_list_answer_less_than_a_sentence_that_holds_them(
    tmp_path: Path,
) -> None:
    said = (
        ("assistant", "Missing:\n\n1. a database of our own\n2. a job to start it\n3. three tests, one is red", 3),
        ("assistant", "Good news. Start the database with `docker compose up --wait db`, it needs a while.", 1),
    )
    found = await answer_question(
        await workspace(tmp_path, {}, said=said), "How do we start the database for tests?", now=NOW
    )
    assert "--wait" in found.text
