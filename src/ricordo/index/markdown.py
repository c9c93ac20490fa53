"""Markdown to chunks: each entry is one, and what stands between the entries is cut into paragraphs.

A bullet that is an entry carries its fields, any other bullet, paragraph, table or block of code is a chunk of prose
under its heading. Nothing of a document is left out, but for what consolidation writes around memories: it says again
what they say. Line numbers are those of the file, whatever bytes it holds.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ricordo.index.contract import Chunk
from ricordo.index.documents import SearchDocument
from ricordo.index.pieces import split_chunk
from ricordo.workspace.document_text import decode_lines
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.topic_frame import find_frame_lines

__all__ = ["is_self_contained_block", "chunk_markdown"]

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*")
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s+\S")
_FENCE = re.compile(r"\s*(```|~~~)")
_WORD_CHARACTER = re.compile(r"\w")
_ENTRY_ID = re.compile(rb"\^[0-9A-Za-z-]+[ \t]*\Z")
_SORTS_WITH_ENTRIES = frozenset({"curated", "ledger", "note"})


@dataclass(frozen=True, kw_only=True)
class _MarkdownLine:
    number: int
    text: str
    heading: str


def chunk_markdown(document: SearchDocument, data: bytes, *, first_line: int = 1, heading: str = "") -> list[Chunk]:
    """Return the chunks of `data` in the order of its lines, the first of which has the number `first_line`.

    `heading` is the one that the data stands under, for the tail of a document.
    """
    lines = decode_lines(data)
    located = _parse_document_entries(document, data) if document.sort in _SORTS_WITH_ENTRIES else []
    taken = {number for entry in located for number in range(entry.line, entry.end_line + 1)}
    if document.sort == "curated":
        taken |= find_frame_lines(data)
    marked = list(_lines_with_headings(lines, heading))
    chunks = [_entry_chunk(document, entry, lines, marked[entry.line - 1].heading) for entry in located]
    for paragraph in _split_paragraphs(line for line in marked if line.number not in taken):
        chunks += _chunk_paragraph(document, paragraph)
    chunks.sort(key=lambda chunk: (chunk.line_number, chunk.part))
    return [
        replace(chunk, line_number=chunk.line_number + first_line - 1, end_line=chunk.end_line + first_line - 1)
        for chunk in _attach_neighbours(chunks)
    ]


def is_self_contained_block(tail: bytes) -> bool:
    """Tell whether `tail`, appended to a ledger, means the same when it is read alone: bullets that carry their ids."""
    if not tail.startswith(b"- ") or b"```" in tail or b"~~~" in tail:
        return False
    bullets = re.split(rb"\n(?=- )", tail.rstrip(b"\n"))
    return all(_ENTRY_ID.search(bullet) for bullet in bullets)


def _parse_document_entries(document: SearchDocument, data: bytes) -> list[LocatedEntry]:
    found = parse_entries(data, document.path)
    # in a foreign note a bullet is a memory only when it says so
    return [entry for entry in found if document.sort != "note" or not entry.entry.id.startswith("h")]


def _entry_chunk(document: SearchDocument, located: LocatedEntry, lines: list[str], heading: str) -> Chunk:
    entry = located.entry
    return Chunk(
        path=document.path,
        line_number=located.line,
        end_line=located.end_line,
        content=entry.content,
        sort=document.sort,
        markup="\n".join(lines[located.line - 1 : located.end_line]) + "\n",
        heading=heading,
        entry_id=entry.id,
        kind=entry.kind,
        tags=entry.tags,
        time=entry.said_at,
        session=entry.source.session or "",
    )


def _lines_with_headings(lines: list[str], heading: str) -> Iterator[_MarkdownLine]:
    """Yield each line with the heading it stands under; a heading stands under itself."""
    fenced = False
    for number, text in enumerate(lines, 1):
        if _FENCE.match(text):
            fenced = not fenced
        match = None if fenced else _HEADING.fullmatch(text)
        heading = match[2] if match else heading
        yield _MarkdownLine(number=number, text=text.rstrip("\r"), heading=heading)


def _split_paragraphs(lines: Iterator[_MarkdownLine]) -> Iterator[list[_MarkdownLine]]:
    """Yield runs of lines that belong together: cut at blank lines, headings and list items, never inside a fence."""
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
    whole = Chunk(
        path=document.path,
        line_number=paragraph[0].number,
        end_line=paragraph[-1].number,
        content=text,
        sort=document.sort,
        heading=paragraph[0].heading,
        entry_id=document.entry_id,
        kind="session-summary" if document.sort == "session" else "",
        session=document.session,
    )
    return split_chunk(whole)


def _attach_neighbours(chunks: list[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks, prose knowing the prose on both sides; entries stand for themselves."""
    for at, chunk in enumerate(chunks):
        before, after = chunks[at - 1 : at] if at else [], chunks[at + 1 : at + 2]
        if chunk.markup:
            yield chunk
        else:
            yield replace(
                chunk,
                before=before[0].content if before and not before[0].markup else "",
                after=after[0].content if after and not after[0].markup else "",
            )
