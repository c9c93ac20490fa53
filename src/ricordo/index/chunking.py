"""Documents to rows: the chunks of a document with the terms they are found by. Pure, so it can run in any thread.

Invariant: the rows of a document depend on its name, its bytes and the root's key alone, and hold no secret. Where the
tail of a document can be read without what stands before it, `build_tail_rows` gives the same rows for it as `build_rows` would.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

from ricordo.guard import Redactor
from ricordo.index.contract import Chunk
from ricordo.index.documents import SearchDocument
from ricordo.index.facts import chunk_profile
from ricordo.index.markdown import is_self_contained_block, chunk_markdown
from ricordo.index.meaning import hash64, embedding_text_id
from ricordo.index.scoring import place_key
from ricordo.index.terms import neighbour_terms, own_terms
from ricordo.index.transcripts import chunk_tool_result, speaker_line, chunk_transcript

__all__ = ["ChunkRow", "TailContext", "following_terms", "is_self_contained", "build_rows", "build_tail_rows"]


@dataclass(frozen=True, kw_only=True)
class ChunkRow:
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
class TailContext:
    """What a document's tail follows: how many lines, the heading it stands under, the text of the last message."""

    lines: int
    heading: str = ""
    before: str = ""


def build_rows(document: SearchDocument, data: bytes, redactor: Redactor) -> list[ChunkRow]:
    """Return the rows of a whole document in the order of its lines, without the secrets that it may hold."""
    if document.sort == "transcript":
        chunks = chunk_transcript(document, data, redactor)
    elif document.sort == "result":
        chunks = chunk_tool_result(document, redactor.clean_bytes(data))
    elif document.sort == "profile":
        chunks = chunk_profile(document, data, redactor)
    else:
        chunks = chunk_markdown(document, redactor.clean_bytes(data))
    return [*_build_chunk_rows(chunks)]


def build_tail_rows(document: SearchDocument, data: bytes, tail: TailContext, redactor: Redactor) -> list[ChunkRow]:
    """Return the rows of the bytes that were appended to a document; only where `is_self_contained` says so."""
    if document.sort == "transcript":
        chunks = chunk_transcript(document, data, redactor, first_line=tail.lines + 1, before=tail.before)
    else:
        chunks = chunk_markdown(document, redactor.clean_bytes(data), first_line=tail.lines + 1, heading=tail.heading)
    return [*_build_chunk_rows(chunks)]


def following_terms(rows: list[ChunkRow]) -> str:
    """Return what the first of these rows adds to the neighbours' terms of the message before it."""
    return (
        " ".join(neighbour_terms(replace(rows[0].chunk, before="", after=speaker_line(rows[0].chunk)))) if rows else ""
    )


def is_self_contained(document: SearchDocument, data: bytes) -> bool:
    """Tell whether the appended bytes mean the same without what stands before them."""
    return document.sort == "transcript" or (document.sort == "ledger" and is_self_contained_block(data))


def _build_chunk_rows(chunks: Iterable[Chunk]) -> Iterator[ChunkRow]:
    """Yield the rows of chunks; the pieces of one message belong to one place, which its first piece names."""
    message, place = ("", 0), 0
    for chunk in chunks:
        if not chunk.message or (chunk.message, chunk.line_number) != message:
            message, place = (chunk.message, chunk.line_number), hash64(place_key(chunk))
        yield _build_row(chunk, place)


def _build_row(chunk: Chunk, place: int) -> ChunkRow:
    own = " ".join(own_terms(chunk))
    around = " ".join(neighbour_terms(chunk))
    fields = (
        own, around, place, chunk.content, chunk.markup, chunk.heading, chunk.entry_id, chunk.kind, chunk.tags,
        chunk.time, chunk.session, chunk.message, chunk.speaker, chunk.part,
    )  # fmt: skip
    digest = blake2b(repr(fields).encode("utf-8", "replace"), digest_size=12).digest()
    return ChunkRow(
        chunk=chunk, own=own, around=around, place=place, twin=hash64(chunk.content), meaning=embedding_text_id(chunk),
        digest=digest,
    )  # fmt: skip
