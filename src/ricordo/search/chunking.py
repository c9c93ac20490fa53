"""Chunking: turns documents into chunks, and chunks into rows of the index. Pure, so it can run in any thread.

Markdown, transcripts, tool results and profiles each have a chunker; long texts are split. A row consists of a chunk,
its terms, and hashes for comparisons.

Invariant: rows depend only on the document's name, its bytes and the root's key, and contain no secret. If
`is_self_contained` is true, the rows of an appended tail equal those that the whole document would give.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from ricordo import messages
from ricordo.errors import InvalidMessage
from ricordo.guard import Redactor
from ricordo.lazy import dataclass, lazy_compile
from ricordo.search.bm25 import place_key
from ricordo.search.contract import Chunk
from ricordo.search.documents import SearchDocument, neighbour_terms, own_terms
from ricordo.workspace.entry_codec import (
    LocatedEntry,
    iter_bullets,
    parse_entries,
    render_entry,
    without_field_comment,
)
from ricordo.workspace.markdown import decode_lines, find_frame_lines, find_written_id, to_utf8

if TYPE_CHECKING:
    from ricordo.messages.types import Message, Part

__all__ = [
    "MAX_PIECE_CHARS",
    "SORTS_WITH_ENTRIES",
    "ChunkRow",
    "KeptRow",
    "TailContext",
    "build_changed_rows",
    "build_rows",
    "build_tail_rows",
    "chunk_markdown",
    "chunk_profile",
    "chunk_tool_result",
    "chunk_transcript",
    "embedding_text",
    "embedding_text_id",
    "following_terms",
    "hash64",
    "is_self_contained",
    "is_self_contained_block",
    "message_text",
    "speaker_line",
    "split_chunk",
    "split_text",
]


MAX_PIECE_CHARS = 1_000
"""The maximum number of characters of a piece, about 150 words."""
_MIN_PIECE_CHARS = 600


def split_chunk(chunk: Chunk, *, one_line: bool = False) -> list[Chunk]:
    """Split `chunk` into pieces with their own lines; with `one_line` all pieces have the line of the whole."""
    chunks = []
    line = chunk.line_number
    for part, piece in enumerate(split_text(chunk.content)):
        end = line if one_line else line + piece.rstrip("\n").count("\n")
        content = piece.strip("\n")
        if content.strip():
            chunks.append(
                replace(chunk, content=content, part=part, line_number=line, end_line=min(end, chunk.end_line))
            )
        line += 0 if one_line else piece.count("\n")
    return chunks


def split_text(text: str) -> Iterator[str]:
    """Yield pieces of at most 1,000 characters that join to `text`, split at the best boundary near their end."""
    start = 0
    while len(text) - start > MAX_PIECE_CHARS:
        end = start + _split_position(text[start : start + MAX_PIECE_CHARS])
        yield text[start:end]
        start = end
    if start < len(text) or not text:
        yield text[start:]


def _split_position(window: str) -> int:
    """Return where to split: after the last paragraph, line, sentence or word that ends past the minimum size."""
    for pattern in ("\n\n", "\n", ". ", "。", " "):
        at = window.rfind(pattern, _MIN_PIECE_CHARS)
        if at >= 0:
            return at + len(pattern)
    return len(window)


_HEADING = lazy_compile(r"(#{1,6})\s+(.*?)\s*#*\s*")
_LIST_ITEM = lazy_compile(r"(?:[-*+]|\d{1,9}[.)])\s+\S")
_FENCE = lazy_compile(r"\s*(```|~~~)")
_WORD_CHARACTER = lazy_compile(r"\w")
_ENTRY_ID = lazy_compile(rb"\^[0-9A-Za-z-]+[ \t]*\Z")
SORTS_WITH_ENTRIES = frozenset({"curated", "ledger", "note"})


@dataclass(frozen=True, kw_only=True)
class KeptRow:
    """A row of the index that stays, found by its digest, and the lines of its bullet now."""

    digest: bytes
    line: int
    end_line: int


@dataclass(frozen=True, kw_only=True)
class _MarkdownLine:
    number: int
    text: str
    heading: str


def chunk_markdown(document: SearchDocument, data: bytes, *, first_line: int = 1, heading: str = "") -> list[Chunk]:
    """Return the chunks of `data` in line order; the first line has the number `first_line`.

    `heading` is the heading above the data, for the tail of a document.
    """
    chunks, _ = _chunk_changes(document, data, {}, heading=heading)
    if first_line == 1:
        return chunks
    return [
        replace(chunk, line_number=chunk.line_number + first_line - 1, end_line=chunk.end_line + first_line - 1)
        for chunk in chunks
    ]


def _chunk_changes(
    document: SearchDocument, data: bytes, known: Mapping[tuple[str, str], bytes], *, heading: str = ""
) -> tuple[list[Chunk], list[KeptRow]]:
    """Return the chunks of `data` in line order, and the rows of bullets in `known`, which are not parsed."""
    plain = without_field_comment(data, keep_lines=True) if document.document_type == "curated" else data
    lines = decode_lines(plain)
    marked = list(_lines_with_headings(lines, heading))
    # with the fields of a bullet elsewhere, its text does not tell whether its row stays
    bullets = _match_bullets(data, lines, marked, known) if known and without_field_comment(data) is data else []
    kept = [row for row in bullets if row is not None]
    located = _parse_document_entries(document, data, bullets) if document.document_type in SORTS_WITH_ENTRIES else []
    bullet_lines = [*((one.line, one.end_line) for one in located), *((row.line, row.end_line) for row in kept)]
    entry_lines = {number for line, end_line in bullet_lines for number in range(line, end_line + 1)}
    if document.document_type == "curated":
        entry_lines |= find_frame_lines(plain)
    # a memory in quarantine is not found until a person accepts it
    located = [one for one in located if one.entry.state != "quarantined"]
    chunks = [
        _entry_chunk(
            document,
            one,
            _markup(lines, one.line, one.end_line) if plain is data else _render_markup(one),
            marked[one.line - 1].heading,
        )
        for one in located
    ]
    for paragraph in _split_paragraphs(line for line in marked if line.number not in entry_lines):
        chunks += _chunk_paragraph(document, paragraph)
    chunks.sort(key=lambda chunk: (chunk.line_number, chunk.part))
    return [*_attach_neighbours(chunks, [row.line for row in kept])], kept


def _match_bullets(
    data: bytes, lines: Sequence[str], marked: "Sequence[_MarkdownLine]", known: Mapping[tuple[str, str], bytes]
) -> list[KeptRow | None]:
    """Return the row of each bullet that is in `known`, by heading and text; None for the others.

    A bullet without a written id is none of them: its derived id depends on the bullets before it.
    """
    unused, rows = dict(known), list[KeptRow | None]()
    for line, end_line, _, bullet in iter_bullets(to_utf8(data)):
        key = marked[line - 1].heading, _markup(lines, line, end_line)
        digest = unused.pop(key, None) if find_written_id(bullet) else None
        rows.append(None if digest is None else KeptRow(digest=digest, line=line, end_line=end_line))
    return rows


def is_self_contained_block(tail: bytes) -> bool:
    """Return whether `tail`, appended to a ledger, can be parsed alone: it has only bullets with their ids."""
    if not tail.startswith(b"- ") or b"```" in tail or b"~~~" in tail:
        return False
    bullets = re.split(rb"\n(?=- )", tail.rstrip(b"\n"))
    return all(_ENTRY_ID.search(bullet) for bullet in bullets)


def _parse_document_entries(
    document: SearchDocument, data: bytes, bullets: Sequence[KeptRow | None]
) -> list[LocatedEntry]:
    """Return the entries of a document, without the bullets whose rows are kept."""
    rows = iter(bullets)
    found = parse_entries(data, document.path, only=(lambda _: next(rows) is None) if bullets else None)
    # in other notes a bullet is an entry only if it has an id
    return [entry for entry in found if document.document_type != "note" or not entry.entry.id.startswith("h")]


def _render_markup(located: LocatedEntry) -> str:
    """Return the bullet of an entry with all its fields."""
    return render_entry(located.entry, long=located.long_path)


def _entry_chunk(document: SearchDocument, located: LocatedEntry, markup: str, heading: str) -> Chunk:
    entry = located.entry
    return Chunk(
        path=document.path,
        line_number=located.line,
        end_line=located.end_line,
        content=entry.content,
        document_type=document.document_type,
        markup=markup,
        heading=heading,
        entry_id=entry.id,
        kind=entry.kind,
        tags=entry.tags,
        time=entry.said_at,
        session=entry.source.session or "",
    )


def _markup(lines: Sequence[str], line: int, end_line: int) -> str:
    return "\n".join(lines[line - 1 : end_line]) + "\n"


def _lines_with_headings(lines: list[str], heading: str) -> Iterator[_MarkdownLine]:
    """Yield each line with the heading above it; a heading has itself."""
    fenced = False
    for number, text in enumerate(lines, 1):
        if _FENCE.match(text):
            fenced = not fenced
        match = None if fenced else _HEADING.fullmatch(text)
        heading = match[2] if match else heading
        yield _MarkdownLine(number=number, text=text.rstrip("\r"), heading=heading)


def _split_paragraphs(lines: Iterator[_MarkdownLine]) -> Iterator[list[_MarkdownLine]]:
    """Yield the lines of each paragraph: split at blank lines, headings and list items, never inside a fence."""
    run: list[_MarkdownLine] = []
    fenced = False
    for line in lines:
        apart = bool(run) and line.number != run[-1].number + 1
        starts = not fenced and bool(
            not line.text.strip() or _LIST_ITEM.match(line.text) or _HEADING.fullmatch(line.text)
        )
        if run and (apart or starts):
            yield run
            run = []
        if _FENCE.match(line.text):
            fenced = not fenced
        if fenced or (line.text.strip() and not _HEADING.fullmatch(line.text)):
            run.append(line)
    if run:
        yield run


def _chunk_paragraph(document: SearchDocument, paragraph: list[_MarkdownLine]) -> list[Chunk]:
    text = "\n".join(line.text for line in paragraph)
    if not _WORD_CHARACTER.search(text):
        return []
    chunk = Chunk(
        path=document.path,
        line_number=paragraph[0].number,
        end_line=paragraph[-1].number,
        content=text,
        document_type=document.document_type,
        heading=paragraph[0].heading,
        entry_id=document.entry_id,
        kind="session-summary" if document.document_type == "session" else "",
        session=document.session,
    )
    return split_chunk(chunk)


def _attach_neighbours(chunks: list[Chunk], kept_lines: Sequence[int]) -> Iterator[Chunk]:
    """Yield the chunks; prose gets its neighbouring prose on both sides, entries get none.

    `kept_lines` are the lines of further entries, in order.
    """
    for at, chunk in enumerate(chunks):
        before, after = chunks[at - 1 : at] if at else [], chunks[at + 1 : at + 2]
        if chunk.markup:
            yield chunk
        else:
            yield replace(
                chunk,
                before=before[0].content if before and _are_adjacent(before[0], chunk, kept_lines) else "",
                after=after[0].content if after and _are_adjacent(chunk, after[0], kept_lines) else "",
            )


def _are_adjacent(chunk: Chunk, following: Chunk, kept_lines: Sequence[int]) -> bool:
    """Return whether two successive chunks are prose without an entry in between."""
    between = bisect(kept_lines, chunk.line_number) != bisect(kept_lines, following.line_number)
    return not (chunk.markup or following.markup or between)


def chunk_transcript(
    document: SearchDocument, data: bytes, redactor: Redactor, *, first_line: int = 1, before: str = ""
) -> list[Chunk]:
    """Return the chunks of the messages in `data`, whose first line has the number `first_line`.

    `before` is the preceding message in the form of `speaker_line`.
    """
    spoken = [
        pieces
        for number, message in _parse_messages(data.split(b"\n"), first_line)
        if _is_searchable(message)
        and (pieces := split_chunk(_message_chunk(document, message, number, redactor), one_line=True))
    ]
    chunks: list[Chunk] = []
    for at, pieces in enumerate(spoken):
        earlier = speaker_line(spoken[at - 1][-1]) if at else before
        later = speaker_line(spoken[at + 1][0]) if at + 1 < len(spoken) else ""
        chunks += [replace(piece, before=earlier, after=later) for piece in pieces]
    return chunks


def chunk_tool_result(document: SearchDocument, data: bytes) -> list[Chunk]:
    """Return the pieces of an evicted tool result, each with its lines; empty for pictures and other binary data."""
    if not document.path.endswith(".txt") and b"\0" in data:
        return []
    text = data.decode("utf-8", "replace")
    chunk = Chunk(
        path=document.path,
        line_number=1,
        end_line=text.rstrip("\n").count("\n") + 1,
        content=text,
        document_type=document.document_type,
        session=document.session,
    )
    return split_chunk(chunk)


def message_text(message: "Message") -> str:
    """Return the text of a message: its words, its tool calls with arguments, and its results."""
    return "\n".join(text for part in message.parts if (text := _part_text(part)))


_TOOL_TEXT_END = 1_000
"""So many characters at the beginning and at the end of a tool's text in an imported message are indexed."""


def _indexed_text(message: "Message") -> str:
    """Return the text of a message; of what tools were told and printed in an imported one, the beginning and the end.

    Most of the bytes of a coding agent's history are files and logs that tools printed, and few of them are looked for.
    A search for a phrase reads the transcript itself and finds all of them.
    """
    if messages.get_import(message) is None:
        return message_text(message)
    texts = (
        _shorten(_part_text(part)) if isinstance(part, messages.ToolCall | messages.ToolResult) else _part_text(part)
        for part in message.parts
    )
    return "\n".join(filter(None, texts))


def _shorten(text: str) -> str:
    if len(text) <= 2 * _TOOL_TEXT_END:
        return text
    return f"{text[:_TOOL_TEXT_END]}\n…\n{text[-_TOOL_TEXT_END:]}"


def speaker_line(chunk: Chunk) -> str:
    """Return a message in the form that its neighbours store: speaker and content."""
    return f"{chunk.speaker}: {chunk.content}"


def _is_searchable(message: "Message") -> bool:
    return message.role != "system" and messages.get_mark(message) in {None, "cut"}


def _part_text(part: "Part") -> str:
    match part:
        case messages.Text():
            return part.text
        case messages.ToolCall():
            return f"{part.name} {part.arguments}"
        case messages.ToolResult():
            return "\n".join(_part_text(inner) for inner in part.parts)
        case messages.Media():
            return " ".join(filter(None, (part.name, part.description)))
        case _:
            return ""


def _parse_messages(lines: Iterable[bytes], first_line: int) -> "Iterator[tuple[int, Message]]":
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            continue
        try:
            yield number, messages.decode_message(line)
        except (InvalidMessage, RecursionError):
            continue


def _message_chunk(document: SearchDocument, message: "Message", number: int, redactor: Redactor) -> Chunk:
    name = redactor.clean(message.name) if message.name else ""
    return Chunk(
        path=document.path,
        line_number=number,
        end_line=number,
        # older messages may contain secrets of a form that was unknown at the time
        content=redactor.clean(_indexed_text(message)),
        document_type=document.document_type,
        kind="message",
        time=message.time,
        session=document.session,
        message=message.id,
        # tool output has the speaker `tool`, whatever its name is
        speaker="tool" if message.role == "tool" or message.tool_results else name or message.role,
    )


def chunk_profile(document: SearchDocument, data: bytes, redactor: Redactor) -> list[Chunk]:
    """Return the non-empty facts of a profile in line order, without secrets."""
    from ricordo.workspace.profile import locate_facts

    return [_fact_chunk(document, located, redactor) for located in locate_facts(data, document.path)]


def _fact_chunk(document: SearchDocument, located: LocatedEntry, redactor: Redactor) -> Chunk:
    fact = located.entry
    quote = fact.source.quote and redactor.clean(fact.source.quote)
    entry = replace(fact, id="", content=redactor.clean(fact.content), source=replace(fact.source, quote=quote))
    return Chunk(
        path=document.path,
        line_number=located.line,
        end_line=located.end_line,
        content=entry.content,
        document_type=document.document_type,
        markup=render_entry(entry),
        entry_id=redactor.clean(fact.id),
        kind=entry.kind,
        tags=entry.tags,
        time=entry.said_at,
        session=entry.source.session or "",
    )


def embedding_text(chunk: Chunk) -> str:
    """Return the text to embed: the speaker, the heading and the content, without neighbours.

    The date is left out too: a search finds it by words, and it would dominate the meaning of a short text.
    """
    # the heading of a ledger is a date, which is left out
    heading = chunk.heading if any(map(str.isalpha, chunk.heading)) else ""
    about = "".join(f"{name}: " for name in (chunk.speaker, heading) if name)
    return f"{about}{chunk.content}"


def embedding_text_id(chunk: Chunk) -> int:
    """Return the id of the text to embed, the same before and after the chunk is stored."""
    return hash64(embedding_text(chunk))


def hash64(text: str) -> int:
    """Return a digest of 64 bits as a signed number."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True, kw_only=True)
class ChunkRow:
    """A chunk with its own terms and those of its neighbours, joined by spaces.

    `place`, `twin` and `meaning` are digests of 64 bits: of the chunk's place, of its text, and of the text to embed.
    `digest` covers everything except the line numbers.
    """

    chunk: Chunk
    text: str
    context_text: str
    place: int
    twin: int
    meaning: int
    digest: bytes


@dataclass(frozen=True, kw_only=True)
class TailContext:
    """What precedes the tail of a document: the number of lines, the heading above it, and the last message."""

    lines: int
    heading: str = ""
    before: str = ""


def build_rows(document: SearchDocument, data: bytes, redactor: Redactor) -> list[ChunkRow]:
    """Return the rows of a whole document in line order, without secrets."""
    if document.document_type == "transcript":
        chunks = chunk_transcript(document, data, redactor)
    elif document.document_type == "result":
        chunks = chunk_tool_result(document, redactor.clean_bytes(data))
    elif document.document_type == "profile":
        chunks = chunk_profile(document, data, redactor)
    else:
        chunks = chunk_markdown(document, redactor.clean_bytes(data))
    return [*_build_chunk_rows(chunks)]


def build_changed_rows(
    document: SearchDocument, data: bytes, redactor: Redactor, known: Mapping[tuple[str, str], bytes]
) -> tuple[list[ChunkRow], list[KeptRow]]:
    """Return the new rows of a document with entries, without secrets, and the rows that stay, both in line order.

    `known` has the digests of the stored rows of its entries, by heading and markup.
    """
    chunks, kept = _chunk_changes(document, redactor.clean_bytes(data), known)
    return [*_build_chunk_rows(chunks)], kept


def build_tail_rows(document: SearchDocument, data: bytes, tail: TailContext, redactor: Redactor) -> list[ChunkRow]:
    """Return the rows of the bytes appended to a document; only valid if `is_self_contained` is true."""
    if document.document_type == "transcript":
        chunks = chunk_transcript(document, data, redactor, first_line=tail.lines + 1, before=tail.before)
    else:
        chunks = chunk_markdown(document, redactor.clean_bytes(data), first_line=tail.lines + 1, heading=tail.heading)
    return [*_build_chunk_rows(chunks)]


def following_terms(rows: list[ChunkRow]) -> str:
    """Return the terms that the first of these rows adds to the neighbour terms of the message before it."""
    return (
        " ".join(neighbour_terms(replace(rows[0].chunk, before="", after=speaker_line(rows[0].chunk)))) if rows else ""
    )


def is_self_contained(document: SearchDocument, data: bytes) -> bool:
    """Return whether the appended bytes can be parsed without what precedes them."""
    return document.document_type == "transcript" or (
        document.document_type == "ledger" and is_self_contained_block(data)
    )


def _build_chunk_rows(chunks: Iterable[Chunk]) -> Iterator[ChunkRow]:
    """Yield the rows of chunks; all pieces of a message have the place of its first piece."""
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
        chunk=chunk, text=own, context_text=around, place=place, twin=hash64(chunk.content),
        meaning=embedding_text_id(chunk), digest=digest,
    )  # fmt: skip
