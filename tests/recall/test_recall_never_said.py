"""What was never said is not answered, though names and common words of the question are in memory; what was, is."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ricordo import Entry, Message
from ricordo.messages import Text, encode_message
from ricordo.search import SearchSource, answer_question, recall_memories, search
from ricordo.search.answer import NOT_IN_MEMORY
from ricordo.search.index import WorkspaceIndex
from ricordo.search.query_context import core_words
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Source as Origin
from ricordo.workspace import render_entry

pytestmark = pytest.mark.anyio

BEGUN = datetime(2026, 11, 1, 9, tzinfo=UTC)
NOW = BEGUN + timedelta(days=20)
LOG = "workspace/agents/main/sessions/s1.log.jsonl"
MEMORIES = (
    "The main database is PostgreSQL 16 on db-3.",
    "The office dog is Bruno.",
    "Maria is the product owner of checkout.",
    "We use pnpm for the orders service.",
    "Ines wants the invoices in English.",
    "Jonas went to the summer party.",
)


async def source(folder: Path, *entries: Entry, said: tuple[tuple[str, str], ...] = ()) -> SearchSource:
    """Return a workspace with these entries, and these messages (speaker, text)."""
    files = InMemoryFiles()
    for number, entry in enumerate(entries):
        stored = Entry(
            content=entry.content, kind=entry.kind, tags=entry.tags, source=entry.source, id=f"01jd{number:022d}",
            time=BEGUN + timedelta(days=number),
        )  # fmt: skip
        await files.append("workspace/memory/2026-11-01.md", render_entry(stored).encode())
    for number, (speaker, text) in enumerate(said):
        own = speaker == "assistant"
        message = Message(
            role="assistant" if own else "user", name=None if own else speaker, id=f"m{number}",
            time=BEGUN + timedelta(minutes=number), parts=(Text(text=text),),
        )  # fmt: skip
        await files.append(LOG, encode_message(message))
    return SearchSource(label="project", index=await WorkspaceIndex.open(folder / "index.db", files))


async def remembered(folder: Path) -> SearchSource:
    return await source(folder, *(Entry(content=content, kind="fact") for content in MEMORIES))


@pytest.mark.parametrize(
    "question",
    [
        "Do we use Kafka?",
        "What is Ines's salary?",
        "Who is the CEO of Pennywort?",
        "What is the PostgreSQL password?",
        "Is Maria on holiday?",
        "What is Maria's blood type?",
        "Which car does Jonas drive?",
        "Which university did Jonas go to?",
        "What is Jonas's favourite film?",
        "When is Maria's birthday?",
        "Which office dog did Maria bring?",
    ],
)
async def test_a_name_and_a_common_word_are_no_answer(tmp_path: Path, question: str) -> None:
    found = await answer_question([await remembered(tmp_path)], question, now=NOW)
    assert (found.found, found.text) == (False, NOT_IN_MEMORY)


REPORT = "The boiler shows E05 and there is no hot water."
CALL = 'calendar_add {"title": "Piano tuning", "place": "the piano in the hall"}'
TUNED = "The piano in the hall was tuned by Gavino on Friday."


@pytest.mark.parametrize(
    ("said", "question", "quotes"),
    [
        (
            (("Ines", REPORT), ("assistant", "E05 means too little water: open the black knob.")),
            "The boiler shows E05, no hot water. What did we do?",
            ["E05 means too little water: open the black knob.", REPORT],
        ),
        ((("assistant", CALL), ("Ines", TUNED)), "Who did the tuning of the piano in the hall?", [TUNED]),
        (
            (
                ("Ines", "A new demo goes to the channel embers first."),
                ("Jonas", "Yes, the new demo goes to embers first, to the channel."),
                ("Ines", "The demo may have at most 650 MB on the new shelf."),
            ),
            "Where does a new demo go first, and how big may a new demo be?",
            [
                "Yes, the new demo goes to embers first, to the channel.",
                "The demo may have at most 650 MB on the new shelf.",
            ],
        ),
    ],
    ids=["a finding before the report of the error", "a statement before a tool call", "two facts, each once"],
)
async def test_an_answer_quotes_what_was_found_out_and_at_most_one_passage_more(
    tmp_path: Path, said: tuple[tuple[str, str], ...], question: str, quotes: list[str]
) -> None:
    found = await answer_question([await source(tmp_path, said=said)], question, now=NOW)
    assert found.hit is not None
    assert [hit.entry.content for hit in (found.hit, *found.further)] == quotes
    assert all(quote in found.text for quote in quotes)
    assert not any(hit in found.others for hit in found.further)


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("which database do we use", MEMORIES[0]),
        ("Which database do we use?", MEMORIES[0]),
        ("database", MEMORIES[0]),
        ("What is the office dog called?", MEMORIES[1]),
        ("Who is the product owner of checkout?", MEMORIES[2]),
        ("Do we use pnpm?", MEMORIES[3]),
    ],
)
async def test_a_common_word_that_is_missing_sinks_no_answer(tmp_path: Path, question: str, quote: str) -> None:
    found = await answer_question([await remembered(tmp_path)], question, now=NOW)
    assert found.hit is not None
    assert found.hit.entry.content == quote


async def test_a_statement_is_quoted_before_a_question_of_the_same_words(tmp_path: Path) -> None:
    said = (
        ("Jon", "When are you opening the dance studio?"),
        ("Gina", "The dance studio opens next month, all styles."),
    )
    found = await answer_question(
        [await source(tmp_path, said=said)], "What kind of dance studio did Gina open?", now=NOW
    )
    assert found.hit is not None
    assert found.hit.entry.content == said[1][1]


async def test_a_memory_is_quoted_before_the_message_it_rests_on(tmp_path: Path) -> None:
    said = (("Ines", "Right. So the loading dock opens at 6:30, tell the courier."), ("Jonas", "Fine with me."))
    entry = Entry(
        content="The loading dock of the warehouse that Ines runs in Halle opens at 6:30.", kind="fact",
        source=Origin(session="s1", messages=("m0",)),
    )  # fmt: skip
    found = await answer_question(
        [await source(tmp_path, entry, said=said)], "When does the loading dock open?", now=NOW
    )
    assert found.hit is not None
    assert found.hit.entry.content == entry.content


async def test_what_holds_no_word_of_the_question_is_no_hit(tmp_path: Path) -> None:
    said = (("Ines", "Okay."), ("Jonas", "The courier comes at noon."), ("Ines", "Okay!"))
    project = await source(tmp_path, said=said)
    assert [hit.entry.content for hit in await search([project], "courier", now=NOW)] == [said[1][1]]
    found = await answer_question([project], "courier", now=NOW)
    assert found.others == ()


async def test_a_correction_ranks_above_what_it_corrects_which_says_so(tmp_path: Path) -> None:
    old = Entry(content="We use MySQL 8 as the orders database.", kind="decision")
    new = Entry(
        content="We are moving the orders database from MySQL to PostgreSQL 16, as MySQL can't roll back DDL.",
        kind="decision", tags=("correction",),
    )  # fmt: skip
    other = Entry(content="The search database is on db-3.", kind="fact")
    hits = await recall_memories([await source(tmp_path, old, other, new)], "which database", now=NOW)
    by_content = {hit.entry.content: hit for hit in hits}
    assert by_content[old.content].score < by_content[new.content].score
    assert "a later statement exists" in by_content[old.content].explanation
    assert "a later statement exists" not in by_content[new.content].explanation + by_content[other.content].explanation
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.req("HE-C7-ties")
async def test_an_empty_query_recalls_the_newest_whatever_its_kind(tmp_path: Path) -> None:
    entries = [Entry(content=f"Thing {kind}.", kind=kind) for kind in ("decision", "fact", "goal", "preference")]
    hits = await recall_memories([await source(tmp_path, *entries)], "", limit=3, now=NOW)
    assert [hit.entry.kind for hit in hits] == ["preference", "goal", "fact"]
    assert hits[0].explanation == "preference; 17 days ago"


def test_the_core_of_a_question_is_neither_names_nor_generic_words() -> None:
    assert core_words("What is Ines's salary?", ["Ines"]) == {"salary"}
    assert core_words("Which kind of database do we use?", []) == {"database"}
    assert core_words("Who is the CEO of Pennywort?", []) == {"ceo"}
    assert core_words("Do Ines and Jonas use things?", []) == set()
