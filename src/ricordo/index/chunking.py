"""Documents to rows: the chunks of a document with the terms they are found by. Pure, so it can run in any thread.

Invariant: the rows of a document depend on its name, its bytes and the root's key alone, and hold no secret. Where the
tail of a document can be read without what stands before it, `tail_rows` gives the same rows for it as `rows_of` would.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

from ricordo.guard import Redactor
from ricordo.index.contract import Chunk
from ricordo.index.documents import Document
from ricordo.index.facts import fact_chunks
from ricordo.index.markdown import is_whole_block, markdown_chunks
from ricordo.index.meaning import hashed, meaning_of
from ricordo.index.scoring import place_of
from ricordo.index.terms import around_terms, own_terms
from ricordo.index.transcripts import result_chunks, spoken_line, transcript_chunks

__all__ = ["Row", "Tail", "following_terms", "reads_alone", "rows_of", "tail_rows"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A chunk and its terms, its own and its neighbours', joined by spaces.

    `place`, `twin` and `meaning` are digests of 64 bits, of the place that it is or belongs to, of its text, and of
    what an embedder reads of it; `digest` is of all but the line numbers.
    """

    chunk: Chunk
    own: str
    around: str
    place: int
    twin: int
    meaning: int
    digest: bytes


@dataclass(frozen=True, kw_only=True)
class Tail:
    """What a document's tail follows: how many lines, the heading it stands under, the text of the last message."""

    lines: int
    heading: str = ""
    before: str = ""


def rows_of(document: Document, data: bytes, redactor: Redactor) -> list[Row]:
    """Return the rows of a whole document in the order of its lines, without the secrets that it may hold."""
    if document.sort == "transcript":
        chunks = transcript_chunks(document, data, redactor)
    elif document.sort == "result":
        chunks = result_chunks(document, redactor.clean_bytes(data))
    elif document.sort == "profile":
        chunks = fact_chunks(document, data, redactor)
    else:
        chunks = markdown_chunks(document, redactor.clean_bytes(data))
    return [*_rows(chunks)]


def tail_rows(document: Document, data: bytes, tail: Tail, redactor: Redactor) -> list[Row]:
    """Return the rows of the bytes that were appended to a document; only where `reads_alone` says so."""
    if document.sort == "transcript":
        chunks = transcript_chunks(document, data, redactor, first_line=tail.lines + 1, before=tail.before)
    else:
        chunks = markdown_chunks(document, redactor.clean_bytes(data), first_line=tail.lines + 1, heading=tail.heading)
    return [*_rows(chunks)]


def following_terms(rows: list[Row]) -> str:
    """Return what the first of these rows adds to the neighbours' terms of the message before it."""
    return " ".join(around_terms(replace(rows[0].chunk, before="", after=spoken_line(rows[0].chunk)))) if rows else ""


def reads_alone(document: Document, data: bytes) -> bool:
    """Tell whether the appended bytes mean the same without what stands before them."""
    return document.sort == "transcript" or (document.sort == "ledger" and is_whole_block(data))


def _rows(chunks: Iterable[Chunk]) -> Iterator[Row]:
    """Yield the rows of chunks; the pieces of one message belong to one place, which its first piece names."""
    message, place = ("", 0), 0
    for chunk in chunks:
        if not chunk.message or (chunk.message, chunk.line_number) != message:
            message, place = (chunk.message, chunk.line_number), hashed(place_of(chunk))
        yield _row(chunk, place)


def _row(chunk: Chunk, place: int) -> Row:
    own = " ".join(own_terms(chunk))
    around = " ".join(around_terms(chunk))
    fields = (
        own, around, place, chunk.content, chunk.markup, chunk.heading, chunk.entry_id, chunk.kind, chunk.tags,
        chunk.time, chunk.session, chunk.message, chunk.speaker, chunk.part,
    )  # fmt: skip
    digest = blake2b(repr(fields).encode("utf-8", "replace"), digest_size=12).digest()
    return Row(
        chunk=chunk, own=own, around=around, place=place, twin=hashed(chunk.content), meaning=meaning_of(chunk),
        digest=digest,
    )  # fmt: skip
