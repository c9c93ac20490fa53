"""Recall and answers over real workspaces: merged sources, quotes with their places, and the courage to say no."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ricordo import Entry, Message
from ricordo.errors import StorageFailed
from ricordo.messages import Text, ToolResult, encode_message
from ricordo.search import Match, Query, RecallConfig, SearchSource, answer_question, recall_memories, search
from ricordo.search.answer import NOT_IN_MEMORY
from ricordo.search.contract import Freshness, SyncReport
from ricordo.search.index import WorkspaceIndex
from ricordo.storage import AppendedRange
from ricordo.testing import InMemoryFiles
from ricordo.workspace import render_entry

pytestmark = pytest.mark.anyio

BEGUN = datetime(2026, 11, 1, 9, tzinfo=UTC)
NOW = BEGUN + timedelta(days=20)
LEDGER = "workspace/memory/2026-11-01.md"
LOG = "workspace/agents/main/sessions/s1.log.jsonl"


async def source(folder: Path, label: str, *memories: tuple[str, str], said: tuple[str, ...] = ()) -> SearchSource:
    """Return a workspace with these memories (content, kind), a day apart, and these messages."""
    files = InMemoryFiles()
    for number, (content, kind) in enumerate(memories):
        entry = Entry(content=content, kind=kind, id=f"01jd{number:022d}", time=BEGUN + timedelta(days=number))
        await files.append(LEDGER, render_entry(entry).encode(), header=b"# 2026-11-01\n\n")
    for number, text in enumerate(said):
        time = BEGUN + timedelta(minutes=number)
        await files.append(
            LOG, encode_message(Message(role="user", id=f"m{number}", time=time, parts=(Text(text=text),)))
        )
    return SearchSource(label=label, index=await WorkspaceIndex.open(folder / f"{label}.db", files))


PROJECT = (
    ("We deploy only from main.", "decision"),
    ("We use Postgres for the billing database.", "decision"),
    ("We migrated to MongoDB for the billing database.", "decision"),
    ("The staging server listens on port 5433.", "fact"),
    ("Test fixtures live in tests/fixtures/orders.", "convention"),
)


async def test_a_memory_is_recalled_by_other_forms_of_its_words_with_a_reason(tmp_path: Path) -> None:
    project = await source(tmp_path, "project", *PROJECT)
    hits = await recall_memories([project], "deployment branch", now=NOW)
    assert [hit.entry.content for hit in hits] == ["We deploy only from main."]
    assert (hits[0].entry.kind, hits[0].path, hits[0].line_number) == ("decision", LEDGER, 3)
    assert hits[0].explanation == "has deployment; decision; 20 days ago"


async def test_nothing_to_do_with_the_query_is_an_empty_list(tmp_path: Path) -> None:
    assert await recall_memories([await source(tmp_path, "project", *PROJECT)], "wifi password", now=NOW) == []


@pytest.mark.req("HE-C1-transcript")
async def test_recall_leaves_transcripts_to_search(tmp_path: Path) -> None:
    project = await source(tmp_path, "project", *PROJECT, said=("The wombat is asleep.", "Good."))
    assert await recall_memories([project], "wombat", now=NOW) == []
    hits = await search([project], "wombat", now=NOW)
    assert (hits[0].entry.kind, hits[0].path, hits[0].line_number) == ("message", LOG, 1)


async def test_several_workspaces_are_ranked_as_one_and_hits_say_whose_they_are(tmp_path: Path) -> None:
    project = await source(tmp_path, "project", *PROJECT)
    user = await source(tmp_path, "user", ("I prefer short answers.", "preference"), ("I deploy on Mondays.", "fact"))
    hits = await recall_memories([project, user], "deploy", now=NOW)
    assert {(hit.source, hit.entry.content) for hit in hits} == {
        ("project", "We deploy only from main."),
        ("user", "I deploy on Mondays."),
    }
    assert [hit.entry.content for hit in await recall_memories([project, user], "short answers", now=NOW)] == [
        "I prefer short answers."
    ]


async def test_the_same_memory_in_two_workspaces_is_one_hit_of_the_narrower(tmp_path: Path) -> None:
    project = await source(tmp_path, "project", ("We deploy only from main.", "decision"))
    user = await source(tmp_path, "user", ("We deploy only from main.", "decision"))
    assert [hit.source for hit in await recall_memories([project, user], "deploy main", now=NOW)] == ["project"]


class Unreadable:
    """An index whose workspace can't be reached."""

    async def search(self, query: Query | str, limit: int = 10) -> list[Match]:
        raise StorageFailed("The share is gone.")

    async def refresh(self) -> SyncReport:
        raise StorageFailed("The share is gone.")

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        raise StorageFailed("The share is gone.")

    async def index_appended(self, path: str, offset: int, data: bytes) -> None:
        raise StorageFailed("The share is gone.")

    def freshness(self) -> Freshness:
        return Freshness(state="broken")

    async def close(self) -> None:
        pass


@pytest.mark.req("FC-STALE")
async def test_a_source_that_fails_takes_no_other_down_and_is_not_an_empty_answer_alone(tmp_path: Path) -> None:
    gone = SearchSource(label="team", index=Unreadable())
    project = await source(tmp_path, "project", *PROJECT)
    assert len(await recall_memories([gone, project], "deploy", now=NOW)) == 1
    with pytest.raises(StorageFailed):
        await recall_memories([gone], "deploy", now=NOW)


@pytest.mark.req("HE-MEM-01")
async def test_filters_reach_every_source(tmp_path: Path) -> None:
    project = await source(tmp_path, "project", *PROJECT)
    user = await source(tmp_path, "user", ("I deploy on Mondays.", "lesson"))
    hits = await recall_memories([project, user], Query(text="deploy", kinds=("lesson",)), now=NOW)
    assert [hit.entry.content for hit in hits] == ["I deploy on Mondays."]


@pytest.mark.req("HE-C7-keep", "HE-C7-ties")
async def test_an_empty_query_recalls_the_newest(tmp_path: Path) -> None:
    hits = await recall_memories([await source(tmp_path, "project", *PROJECT)], "", limit=2, now=NOW)
    assert [hit.entry.content for hit in hits] == [PROJECT[4][0], PROJECT[3][0]]


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("Which branch do we deploy from?", "We deploy only from main."),
        ("Where do our test fixtures live?", "Test fixtures live in tests/fixtures/orders."),
        ("What port is staging on?", "The staging server listens on port 5433."),
        ("Which database does billing use?", "We migrated to MongoDB for the billing database."),
    ],
)
async def test_an_answer_is_a_quote_with_its_file_and_line(tmp_path: Path, question: str, quote: str) -> None:
    project = await source(tmp_path, "project", *PROJECT, said=("Hello.", "How are you?"))
    found = await answer_question([project], question, now=NOW)
    line = next(number for number, (content, _) in enumerate(PROJECT, 3) if content == quote)
    assert found.found
    assert found.hit is not None
    assert found.hit.entry.content == quote
    assert (found.path, found.line_number) == (LEDGER, line)
    assert found.text.startswith(quote)
    assert f"{LEDGER}:{line}" in found.text
    assert found.score >= RecallConfig().min_fitness


@pytest.mark.parametrize(
    "question", ["What is the wifi password?", "Which payment provider do we use?", "Who is the CEO?", "", "?"]
)
async def test_what_was_never_said_is_not_in_memory(tmp_path: Path, question: str) -> None:
    project = await source(tmp_path, "project", *PROJECT, said=("We talked about the weather.",))
    found = await answer_question([project], question, now=NOW)
    assert (found.found, found.text, found.hit, found.path) == (False, NOT_IN_MEMORY, None, "")
    assert found.score < RecallConfig().min_fitness


async def test_a_long_message_is_quoted_in_part_and_what_a_tool_printed_is_only_pointed_to(tmp_path: Path) -> None:
    noise = "\n".join(f"setting{number} = {number}" for number in range(60))
    text = Text(text=f"{noise}\nrefund_window_days = 45\n{noise}")
    said = Message(role="user", id="m1", time=BEGUN, parts=(text,))
    printed = Message(role="tool", id="m1", time=BEGUN, parts=(ToolResult(call_id="c1", parts=(text,)),))
    for name, message in (("said", said), ("printed", printed)):
        files = InMemoryFiles()
        await files.append(LOG, encode_message(message))
        project = SearchSource(label="project", index=await WorkspaceIndex.open(tmp_path / f"{name}.db", files))
        found = await answer_question([project], "How many days is the refund window?", now=NOW)
        hits = [found.hit] if found.hit else list(found.unconfirmed)
        assert found.found is (name == "said")
        assert ["refund_window_days = 45" in hit.entry.content for hit in hits] == [True]
        assert len(found.text) < 800


OWNER = "Which team owns the billing dashboard?"


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (OWNER, OWNER),
        (OWNER, "Who owns the billing dashboard?"),
        ("What is the wifi name?", "Which wifi name do we have?"),
        ("what is the wifi name", "Which wifi name do we have?"),
        ("Hi there! What is the wifi name?", "What is the wifi name?"),
        ("wifi name", "Wifi name?"),
        ("Wie heißt das WLAN?", "Wie heißt das WLAN?"),
    ],
)
async def test_what_only_asks_is_not_an_answer(said: str, asked: str, tmp_path: Path) -> None:
    found = await answer_question([await source(tmp_path, "project", said=(said,))], asked, now=NOW)
    assert (found.found, found.text) == (False, NOT_IN_MEMORY)


@pytest.mark.parametrize("times", [1, 40])
async def test_a_question_asked_before_does_not_hide_what_answers_it(times: int, tmp_path: Path) -> None:
    told = "Team Apollo owns the billing dashboard."
    said = (told, *((OWNER, f"Does anybody know? {OWNER}") * times))
    found = await answer_question([await source(tmp_path, "project", said=said)], OWNER, now=NOW)
    assert found.found
    assert found.text.startswith(told)


async def test_a_question_in_the_words_of_its_answer_does_not_stand_for_it(tmp_path: Path) -> None:
    told, asked = "Apollo owns the billing dashboard.", "Does Apollo own the billing dashboard?"
    found = await answer_question([await source(tmp_path, "project", said=(told, asked))], asked, now=NOW)
    assert found.text.startswith(told)


async def test_a_question_that_states_something_too_is_quoted(tmp_path: Path) -> None:
    told = "Do you remember the wifi? Its name is Harbour7."
    found = await answer_question([await source(tmp_path, "project", said=(told,))], "What is the wifi name?", now=NOW)
    assert found.text.startswith(told)


async def test_a_saved_memory_in_the_words_of_the_question_is_quoted(tmp_path: Path) -> None:
    told = "We deploy only from main."
    found = await answer_question([await source(tmp_path, "project", (told, "convention"))], told, now=NOW)
    assert found.text.startswith(told)


@pytest.mark.parametrize(
    ("asked", "said", "quoted"),
    [
        (
            "Who has the pager?",
            (
                "From now on Ravi has the pager for pawprint.",
                "Ravi swaps, so Monique has the pager from 1 December on.",
            ),
            "Monique",
        ),
        ("用的是什么数据库？", ("数据库是 MySQL 8。", "数据库换成 PostgreSQL 了。"), "PostgreSQL"),
        ("Who has the pager?", ("Ravi has the pager.", "Ann saw that the pager was red yesterday."), "Ravi"),
    ],
)
async def test_a_later_statement_that_tells_of_a_change_is_quoted_and_a_later_mention_is_not(
    tmp_path: Path, asked: str, said: tuple[str, ...], quoted: str
) -> None:
    found = await answer_question([await source(tmp_path, "project", said=said)], asked, now=NOW)
    assert quoted in found.text.partition("\n")[0]


async def test_a_memory_of_the_asked_month_that_says_nothing_else_of_the_question_is_not_quoted(tmp_path: Path) -> None:
    memories = (("The server ticks at 20 Hz.", "fact"), ("Tosia baked for the whole team.", "fact"))
    project = await source(tmp_path, "project", *memories)
    found = await answer_question([project], "What did the dogs of the harbour cost in November 2026?", now=NOW)
    assert not found.found
    found = await answer_question([project], "At how many Hz did the server tick in November 2026?", now=NOW)
    assert "20 Hz" in found.text
