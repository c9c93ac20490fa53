"""What is stored besides does not change how well a passage fits: junk adds no weight and takes none away."""

import base64
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ricordo import Message
from ricordo.messages import Text, encode_message
from ricordo.search import Query, SearchSource, answer_question
from ricordo.search.index import WorkspaceIndex
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio

BEGUN = datetime(2026, 11, 1, 9, tzinfo=UTC)
LOG = "workspace/agents/main/sessions/s1.log.jsonl"
JUNK_LOG = "workspace/agents/main/sessions/junk.log.jsonl"
SAID = (
    "Invoices are stored in the S3 bucket pennywort-invoices.",
    "The staging server listens on port 5433.",
    "We deploy only from main.",
    "Please keep your answers short.",
)
QUESTIONS = ("Where do we store invoices?", "Which port does staging listen on?", "What do we deploy from?")
NEVER = ("What is the wifi password?", "Do we use Kafka?")


def line(text: str, number: int = 0) -> bytes:
    message = Message(role="user", id=f"m{number}", time=BEGUN + timedelta(seconds=number), parts=(Text(text=text),))
    return encode_message(message)


def logged(lines: int) -> str:
    chance = random.Random(7)
    return "\n".join(
        f"2026-11-01T09:{at // 60 % 60:02}:{at % 60:02}Z GET /invoices/{chance.randrange(10**6)} 200"
        for at in range(lines)
    )


JUNK: dict[str, tuple[str, bytes]] = {
    "one huge message": (JUNK_LOG, line("x " * 1_000_000)),
    "a huge message of the question's words": (JUNK_LOG, line("invoices store port " * 50_000)),
    "the same message thousands of times": (JUNK_LOG, b"".join(line("Where are invoices?", n) for n in range(3000))),
    "identical lines": ("workspace/lines.md", b"the invoices are late\n\n" * 3000),
    "base64": (
        "workspace/large_tool_results/s1/dump.txt", base64.b64encode(random.Random(3).randbytes(400_000)),
    ),
    "a log in a message": (JUNK_LOG, line(logged(5000))),
    "a log in a result": ("workspace/large_tool_results/s1/access.log", logged(5000).encode()),
    "a log in a note": ("workspace/access.md", logged(5000).replace("\n", "\n\n").encode()),
}  # fmt: skip


async def filled() -> InMemoryFiles:
    files = InMemoryFiles()
    for number, text in enumerate(SAID):
        await files.append(LOG, line(text, number))
    return files


async def asked(files: InMemoryFiles, database: Path) -> list[tuple[bool, str]]:
    index = await WorkspaceIndex.open(database, files, patience_seconds=60)
    source = [SearchSource(label="project", index=index)]
    found = [await answer_question(source, question, now=BEGUN) for question in (*QUESTIONS, *NEVER)]
    await index.close()
    return [(one.found, one.hit.entry.content if one.hit else "") for one in found]


@pytest.mark.parametrize("kind", JUNK)
async def test_junk_flips_no_answer(kind: str, tmp_path: Path) -> None:
    expected = [(True, said) for said in SAID[:3]] + [(False, "")] * len(NEVER)
    files = await filled()
    assert await asked(files, tmp_path / "clean.db") == expected
    await files.append(*JUNK[kind])
    assert await asked(files, tmp_path / "junk.db") == expected


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(alphabet="qxz ", min_size=1, max_size=3000), max_size=5))
async def test_what_holds_no_word_of_the_query_changes_no_score(tmp_path: Path, junk: list[str]) -> None:
    files = await filled()
    before = await searched(files)
    for number, text in enumerate(junk):
        await files.append(JUNK_LOG, line(f"{text}.", number))
    assert await searched(files) == before


async def searched(files: InMemoryFiles) -> list[tuple[str, float]]:
    """Return what is found in the files themselves, with scores."""
    index = await WorkspaceIndex.open(Path("/dev/null/none.db"), files)
    matches = await index.search(Query(text=QUESTIONS[0], neighbours=True), 10)
    await index.close()
    return [(match.content, match.score) for match in matches]


@pytest.mark.req("FC-STALE")
async def test_the_index_and_the_files_count_places_alike(tmp_path: Path) -> None:
    files = await filled()
    for path, data in JUNK.values():
        if len(data) < 500_000:
            await files.append(path, data)
    index = await WorkspaceIndex.open(tmp_path / "index.db", files, patience_seconds=60)
    scanned = await WorkspaceIndex.open(Path("/dev/null/none.db"), files)
    query = Query(text="stored in the bucket pennywort-invoices", neighbours=True)
    by_index, by_files = await index.search(query, 1), await scanned.search(query, 1)
    assert by_index[0].content == by_files[0].content == SAID[0]
    assert by_index[0].score == pytest.approx(by_files[0].score, abs=0.05)
    await index.close()


async def test_a_word_that_was_nowhere_is_absent_no_more_once_a_relative_of_it_is_written(tmp_path: Path) -> None:
    files = InMemoryFiles()
    await files.create("workspace/MEMORY.md", b"- The wombat lives here.\n")
    index = await WorkspaceIndex.open(tmp_path / "index.db", files)
    for _ in range(2):
        assert [match.missing_words for match in await index.search("harvesting wombat")] == [("harvesting",)]
    await files.create("workspace/more.md", b"It is a harvester.\n")
    assert [match.missing_words for match in await index.search("harvesting wombat")] == [()]
    await index.close()
