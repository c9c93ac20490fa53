"""What stands beside a chunk: of the same conversation, session or heading, as the files have it now."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ricordo import Entry, Message
from ricordo.messages import Text, encode_message
from ricordo.search import Query
from ricordo.search.index import WorkspaceIndex
from ricordo.search.retrieval import ChunkLocation
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Source, render_entry

pytestmark = pytest.mark.anyio
BEGUN = datetime(2026, 11, 1, 9, tzinfo=UTC)
LOG = "workspace/agents/main/sessions/s1.log.jsonl"
LEDGER = "workspace/memory/2026-11-01.md"
TOPIC = b"# Zoo\n\n## Birds\n\n- The heron stands.\n- The stork nests.\n\n## Cats\n\n- The lynx hides.\n"


def said(*texts: str) -> bytes:
    return b"".join(
        encode_message(Message(role="user", id=f"m{at}", time=BEGUN + timedelta(minutes=at), parts=(Text(text=text),)))
        for at, text in enumerate(texts)
    )


def saved(*rows: tuple[str, str]) -> bytes:
    entries = [
        Entry(content=content, id=f"01jd{at:022d}", time=BEGUN, source=Source(session=session or None))
        for at, (content, session) in enumerate(rows)
    ]
    return "".join(map(render_entry, entries)).encode()


async def beside(index: WorkspaceIndex, text: str) -> tuple[str | None, str | None]:
    """Return what stands before and after the best match for a text."""
    match = (await index.search(Query(text=text), 1))[0]
    (told,) = await index.beside([ChunkLocation(path=match.path, line_number=match.line_number, content=match.content)])
    assert told is not None
    assert (told.chunk.path, told.chunk.content) == (match.path, match.content)
    return told.before.content if told.before else None, told.after.content if told.after else None


@pytest.fixture(params=["index", "files"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / "index.db" if request.param == "index" else Path("/dev/null/none.db")


async def test_messages_stand_beside_messages_and_pieces_beside_pieces(place: Path) -> None:
    files = InMemoryFiles()
    long = "The beginning. " + "It is a long story. " * 80 + "The ending."
    await files.create(LOG, said("First a wombat.", long, "Then a quokka."))
    index = await WorkspaceIndex.open(place, files)
    await index.refresh()
    before, after = await beside(index, "wombat")
    assert before is None
    assert after is not None
    assert after.startswith("The beginning.")
    before, after = await beside(index, "ending")
    assert before is not None
    assert "long story" in before
    assert after == "Then a quokka."
    await index.close()


async def test_a_heading_holds_together_what_stands_under_it(place: Path) -> None:
    files = InMemoryFiles()
    await files.create("workspace/memory/topics/zoo.md", TOPIC)
    index = await WorkspaceIndex.open(place, files)
    await index.refresh()
    assert await beside(index, "heron") == (None, "The stork nests.")
    assert await beside(index, "stork") == ("The heron stands.", None)
    assert await beside(index, "lynx") == (None, None)
    await index.close()


async def test_a_ledger_holds_together_what_one_session_taught(place: Path) -> None:
    files = InMemoryFiles()
    rows = [("The heron.", ""), ("The stork.", ""), ("The lynx.", "s1"), ("The puma.", "s1"), ("The ibex.", "s2")]
    await files.create(LEDGER, saved(*rows))
    index = await WorkspaceIndex.open(place, files)
    await index.refresh()
    assert await beside(index, "heron") == (None, None)
    assert await beside(index, "stork") == (None, None)
    assert await beside(index, "lynx") == (None, "The puma.")
    assert await beside(index, "puma") == ("The lynx.", None)
    assert await beside(index, "ibex") == (None, None)
    await index.close()


async def test_what_was_superseded_is_shown_beside_nothing(place: Path) -> None:
    files = InMemoryFiles()
    old = render_entry(Entry(content="The stork.", id=f"01jd{7:022d}", state="superseded"))
    await files.create("workspace/memory/topics/zoo.md", f"# Zoo\n\n- The heron.\n{old}".encode())
    index = await WorkspaceIndex.open(place, files)
    await index.refresh()
    assert await beside(index, "heron") == (None, None)
    await index.close()


async def test_what_stands_there_no_more_has_nothing_beside_it(place: Path) -> None:
    files = InMemoryFiles()
    await files.create(LOG, said("A wombat.", "A quokka."))
    index = await WorkspaceIndex.open(place, files)
    await index.refresh()
    gone = [
        ChunkLocation(path=LOG, line_number=2, content="A wombat."),
        ChunkLocation(path=LOG, line_number=9, content="A wombat."),
        ChunkLocation(path="workspace/none.md", line_number=1, content="A wombat."),
        ChunkLocation(path="x", line_number=1, content=""),
    ]
    assert await index.beside(gone) == [None] * 4
    there = await index.beside([ChunkLocation(path=LOG, line_number=2, content="A quokka."), gone[0]])
    assert [None if one is None else one.chunk.content for one in there] == ["A quokka.", None]
    await index.close()
