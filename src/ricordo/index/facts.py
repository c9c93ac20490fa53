"""The facts of a profile to chunks: each is an entry, as it would stand in a ledger, on the line that says it.

What else a profile holds are summaries of what is found elsewhere. A document that can't be read has no facts; a record
of it that can't be hides no other.
"""

import json

from ricordo.errors import DocumentInvalid, InvalidEntry
from ricordo.guard import Redactor
from ricordo.index.contract import Chunk
from ricordo.index.documents import SearchDocument
from ricordo.workspace.categories import kind_for_category
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import render_entry
from ricordo.workspace.profile import Fact, parse_profile_time
from ricordo.workspace.profile_codec import parse_profile

__all__ = ["FACT_TAG", "chunk_profile"]

FACT_TAG = "profile"
"""The tag that facts of a profile have."""

_NOT_SESSIONS = frozenset({"", "unknown", "manual", "import", "consolidation"})


def chunk_profile(document: SearchDocument, data: bytes, redactor: Redactor) -> list[Chunk]:
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
        found = _find_fact(text, fact.content, at)
        line, at = line + text.count("\n", at, found), found
        chunks.append(_fact_chunk(document, fact, line, redactor))
    return chunks


def _find_fact(text: str, content: str, start: int) -> int:
    """Return where a document says this, from `start` on; `start` where it is written in a way of its own."""
    written = (json.dumps(content, ensure_ascii=ascii_only) for ascii_only in (False, True))
    return next((at for each in written if (at := text.find(each, start)) >= 0), start)


def _fact_chunk(document: SearchDocument, fact: Fact, line: int, redactor: Redactor) -> Chunk:
    entry = _fact_entry(fact, redactor)
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
        time=entry.said_at,
        session=entry.source.session or "",
    )


def _fact_entry(fact: Fact, redactor: Redactor) -> Entry:
    known = fact.source.thread not in _NOT_SESSIONS
    quote = fact.source.quote and redactor.clean(fact.source.quote)
    plain = Entry(
        content=redactor.clean(fact.content.strip()), tags=(FACT_TAG,), by="user" if fact.is_protected else "flush"
    )
    told = Entry(
        content=plain.content,
        kind=kind_for_category(fact.category),
        tags=plain.tags,
        time=parse_profile_time(fact.updated_at) or parse_profile_time(fact.created_at),
        by=plain.by,
        confidence=fact.confidence,
        confirmed=parse_profile_time(fact.confirmed_at),
        pinned=fact.pinned,
        source=Source(
            session=fact.source.thread if known else None,
            messages=tuple(filter(None, fact.source.messages)) if known else (),
            quote=(quote or None) if known else None,
        ),
    )
    try:
        return told.validate()
    except InvalidEntry:
        # what a person wrote into it by hand may fit into no line
        return plain
