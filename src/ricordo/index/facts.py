"""The facts of a profile to chunks: each is an entry, as it would stand in a ledger, on the line that says it.

What else a profile holds are summaries of what is found elsewhere. A document that can't be read has no facts; a record
of it that can't be hides no other.
"""

import json

from ricordo.errors import DocumentInvalid, InvalidEntry
from ricordo.guard import Redactor
from ricordo.index.contract import Chunk
from ricordo.index.documents import Document
from ricordo.workspace.categories import kind_of
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import render_entry
from ricordo.workspace.profile import Fact, moment_of
from ricordo.workspace.profile_codec import parse_profile

__all__ = ["FACT", "fact_chunks"]

FACT = "profile"
"""The tag that facts of a profile have."""

_NO_SESSION = frozenset({"", "unknown", "manual", "import", "consolidation"})


def fact_chunks(document: Document, data: bytes, redactor: Redactor) -> list[Chunk]:
    """Return the facts of a profile that say something, without secrets, in the order of its lines."""
    try:
        facts = parse_profile(data, document.path).profile.facts
    except DocumentInvalid:
        return []
    text, at, line = data.decode("utf-8", "replace"), 0, 1
    chunks = []
    for fact in facts:
        if not fact.content.strip():
            continue
        found = _place(text, fact.content, at)
        line, at = line + text.count("\n", at, found), found
        chunks.append(_chunk(document, fact, line, redactor))
    return chunks


def _place(text: str, content: str, start: int) -> int:
    """Return where a document says this, from `start` on; `start` where it is written in a way of its own."""
    written = (json.dumps(content, ensure_ascii=ascii_only) for ascii_only in (False, True))
    return next((at for each in written if (at := text.find(each, start)) >= 0), start)


def _chunk(document: Document, fact: Fact, line: int, redactor: Redactor) -> Chunk:
    entry = _entry(fact, redactor)
    return Chunk(
        path=document.path,
        line_number=line,
        end_line=line,
        content=entry.content,
        sort=document.sort,
        markup=render_entry(entry),
        entry_id=redactor.clean(fact.id),
        kind=entry.kind,
        tags=entry.tags,
        time=entry.said,
        session=entry.source.session or "",
    )


def _entry(fact: Fact, redactor: Redactor) -> Entry:
    known = fact.source.thread not in _NO_SESSION
    quote = fact.source.quote and redactor.clean(fact.source.quote)
    plain = Entry(content=redactor.clean(fact.content.strip()), tags=(FACT,), by="user" if fact.is_kept else "flush")
    told = Entry(
        content=plain.content,
        kind=kind_of(fact.category),
        tags=plain.tags,
        time=moment_of(fact.updated_at) or moment_of(fact.created_at),
        by=plain.by,
        confidence=fact.confidence,
        confirmed=moment_of(fact.confirmed_at),
        pinned=fact.pinned,
        source=Source(
            session=fact.source.thread if known else None,
            messages=tuple(filter(None, fact.source.messages)) if known else (),
            quote=(quote or None) if known else None,
        ),
    )
    try:
        return told.checked()
    except InvalidEntry:
        # what a person wrote into it by hand may fit into no line
        return plain
