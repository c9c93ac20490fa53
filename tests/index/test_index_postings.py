"""Postings and the files give the same matches in the same order, with the same signals."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo import Entry, Message
from ricordo.guard import Redactor
from ricordo.messages import Text, encode_message
from ricordo.search import Match, Query
from ricordo.search.bm25 import SCORE_STEPS
from ricordo.search.chunking import build_rows
from ricordo.search.documents import classify_document, matches_filters, query_words
from ricordo.search.index import WorkspaceIndex
from ricordo.search.postings import IndexedRow, SegmentBuilder
from ricordo.testing import InMemoryFiles
from ricordo.workspace import render_entry

pytestmark = pytest.mark.anyio

BEGUN = datetime(2026, 11, 1, 9, tzinfo=UTC)
NOWHERE = Path("/dev/null/none.db")
WORDS = [
    "wombat", "Wombats", "quokka", "deploy", "deployment", "main", "the", "Datenbank", "Häuser", "maisons", "数据库",
    "东京", "데이터베이스를", "Привет", "база", "src/app/main.py:12", "getUserName", "17", "use", "2026-11-02",
    "قاعدة",
]  # fmt: skip
KINDS, TAGS, SESSIONS = ("fact", "decision", "lesson"), ("zoo", "x"), ("s1", "s2")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
entries = st.builds(
    lambda content, kind, tags, day: (content, kind, tags, day),
    texts, st.sampled_from(KINDS), st.sets(st.sampled_from(TAGS)).map(tuple), st.integers(1, 5),
)  # fmt: skip
corpora = st.tuples(
    st.lists(entries, max_size=8), st.lists(texts, max_size=8), st.lists(texts, max_size=4), st.lists(texts, max_size=4)
)
queries = st.builds(
    Query,
    text=texts,
    neighbours=st.booleans(),
    kinds=st.sampled_from([(), ("fact",), ("decision", "message")]),
    tags=st.sampled_from([(), ("zoo",), ("x", "zoo")]),
    session=st.sampled_from(["", *SESSIONS]),
    path=st.sampled_from(["", "workspace/memory/", "workspace/agents/main/sessions/s1"]),
    since=st.none() | st.integers(0, 4).map(lambda days: BEGUN + timedelta(days=days)),
    until=st.none() | st.integers(1, 5).map(lambda days: BEGUN + timedelta(days=days)),
    document_types=st.sampled_from([Query(text="").document_types, ("ledger", "note"), ("transcript",)]),
)


def documents(
    corpus: tuple[Sequence[tuple[str, str, tuple[str, ...], int]], Sequence[str], Sequence[str], Sequence[str]],
) -> dict[str, bytes]:
    """Return a ledger, two transcripts and a note."""
    written, first, second, prose = corpus
    ledger = "".join(
        render_entry(
            Entry(content=content, kind=kind, tags=tags, id=f"01jd{at:022d}", time=BEGUN + timedelta(days=day))
        )
        for at, (content, kind, tags, day) in enumerate(written)
    )
    logs = {
        f"workspace/agents/main/sessions/{session}.log.jsonl": b"".join(
            encode_message(
                Message(
                    role="user", id=f"m{at}", time=BEGUN + timedelta(hours=at), parts=(Text(text=text * (1 + at % 3)),)
                )
            )
            for at, text in enumerate(said)
        )
        for session, said in zip(SESSIONS, (first, second), strict=True)
    }
    note = "\n\n".join(prose).encode()
    found = {"workspace/memory/2026-11-01.md": ledger.encode(), "workspace/notes.md": note, **logs}
    return {path: data for path, data in found.items() if data}


def comparable(matches: Sequence[Match]) -> list[tuple[object, ...]]:
    """Return what is promised of matches, signals to six digits."""
    return [
        (match.path, match.line_number, match.chunk.part, match.rank, match.matched_words, match.missing_words,
         round(match.score, 6), {name: round(value, 6) for name, value in match.signals.items()})
        for match in matches
    ]  # fmt: skip


def expected(found: dict[str, bytes], query: Query) -> list[tuple[str, int, int]]:
    """Return what a query finds and in which order, told plainly: each row is looked at by the formulas alone."""
    words = query_words(query.text)
    rows = [
        row
        for path, data in found.items()
        if (document := classify_document(path, "workspace"))
        for row in build_rows(document, data, Redactor(bytes(32)))
    ]
    places = [
        max(len({row.place for row in rows if term in row.text.split()}) for term in group) for group in words.groups
    ]
    weights = [np.log(1 + 500 / (count + 0.5)) * share for count, share in zip(places, words.weights, strict=True)]
    scored = []
    for row in rows:
        chunk, own, every = row.chunk, row.text.split(), row.text.split() + row.context_text.split()
        held = [sum(own.count(term) for term in group) for group in words.groups]
        near = [sum(every.count(term) for term in group) for group in words.groups]
        usual = 120 if row.context_text else 40
        alone = sum(w * min(c, 3) / (min(c, 3) + 0.3 + 0.9 * len(own) / 40) for w, c in zip(weights, held, strict=True))
        beside = sum(
            w * min(c, 3) / (min(c, 3) + 0.3 + 0.9 * len(every) / usual) for w, c in zip(weights, near, strict=True)
        )
        score = (0.6 * alone + 0.4 * beside) / (sum(weights) or 1)
        if score and (any(held) or query.neighbours) and matches_filters(chunk, query):
            time = chunk.time.timestamp() if chunk.time else 0
            scored.append((-round(score * SCORE_STEPS), -time, chunk.path, chunk.line_number, chunk.part, chunk))
    taken: list[tuple[str, ...]] = []
    kept = []
    for *_, path, line, part, chunk in sorted(scored, key=lambda row: row[:5]):
        heap, twin = (path, str(line) if chunk.message or chunk.markup else ""), (chunk.content,)
        if taken.count(heap) < 20 and taken.count(twin) < 3:
            taken += [heap, twin]
            kept.append((path, line, part))
    return kept


@pytest.mark.req("AS-INDEX-04", "FC-STALE")
@settings(max_examples=25, deadline=None)
@given(corpora, st.lists(queries, min_size=1, max_size=4))
def test_index_scan_and_the_plain_formulas_agree(
    corpus: tuple[list[tuple[str, str, tuple[str, ...], int]], list[str], list[str], list[str]], asked: list[Query]
) -> None:
    found = documents(corpus)

    async def compare(folder: str) -> None:
        files = InMemoryFiles()
        for path, data in found.items():
            await files.create(path, data)
        index = await WorkspaceIndex.open(Path(folder) / "index.db", files)
        scan = await WorkspaceIndex.open(NOWHERE, files)
        await index.refresh()
        for query in asked:
            by_index = await index.search(query, 100)
            if len(query.document_types) > 2:
                assert comparable(by_index) == comparable(await scan.search(query, 100))
            plain = expected(found, query)
            if plain:
                assert [(match.path, match.line_number, match.chunk.part) for match in by_index] == plain
                assert comparable(await index.search(query, 3)) == comparable(by_index)[:3]
        await index.close()

    with TemporaryDirectory() as folder:
        anyio.run(compare, folder)


@pytest.mark.req("AS-INDEX-04")
async def test_of_many_matches_the_first_are_those_that_come_first_among_all(tmp_path: Path) -> None:
    files, chance = InMemoryFiles(), Random(3)
    drawn = [" ".join(chance.choices(WORDS, k=chance.randrange(1, 6))) for _ in range(700)]
    said = b"".join(
        encode_message(Message(role="user", id=f"m{at}", time=BEGUN, parts=(Text(text=text),)))
        for at, text in enumerate(drawn)
    )
    await files.append("workspace/agents/main/sessions/s1.log.jsonl", said)
    await files.append("workspace/notes.md", "\n\n".join(drawn).encode())
    index, scan = await WorkspaceIndex.open(tmp_path / "index.db", files), await WorkspaceIndex.open(NOWHERE, files)
    for text in ("wombat", "quokka deploy", "wombat main 数据库 база", "maisons 17"):
        for sorts in (Query(text="").document_types, ("note",), ("transcript", "ledger")):
            for neighbours in (False, True):
                query = Query(text=text, document_types=sorts, neighbours=neighbours)
                every = comparable(await index.search(query, 2_000))
                assert comparable(await index.search(query, 10)) == every[:10]
                # a scan reads only the documents of these sorts, and counts words in them alone
                if len(sorts) > 2:
                    assert comparable(await scan.search(query, 2_000)) == every
    await index.close()


def row(number: int, own: str, around: str = "") -> IndexedRow:
    return IndexedRow(number, 1, number, 0, number, number, 0, 0, 1, "fact", "", "s1", own, around)


@given(
    st.lists(st.tuples(st.lists(st.text("ab\0é数", min_size=1)), st.lists(st.text("ab\0é数", min_size=1))), max_size=9)
)
def test_a_block_finds_every_term_and_no_other(held: list[tuple[list[str], list[str]]]) -> None:
    builder = SegmentBuilder()
    builder.add([row(at + 1, " ".join(own), " ".join(around)) for at, (own, around) in enumerate(held)])
    postings = builder.build().postings
    for term in {term for pair in held for terms in pair for term in terms} | {"", "b", "aaaaaaaab"}:
        counts = [(own.count(term), (own + around).count(term)) for own, around in held]
        rows, packed = postings.find(term)
        assert rows.tolist() == [at for at, (_, every) in enumerate(counts) if every]
        assert [(count & 3, count >> 2) for count in packed.tolist()] == [
            (min(own, 3), min(every, 3)) for own, every in counts if every
        ]
    starting = {int(at) for rows, _ in postings.find_prefix("a") for at in rows}
    assert starting == {at for at, (own, around) in enumerate(held) if any(term[0] == "a" for term in own + around)}
