"""Session files: what one session was about, and what was saved in it, as Markdown that people read and edit.

    # 2026-11-21 08:00

    tags: compaction, release
    duration: 12 minutes, 5 turns, 34000 tokens in, 2100 tokens out, $0.0123
    session: 01hx…
    started: 2026-11-21T08:00:00.000Z
    closing: 34000 tokens in, 120 tokens out, $0.0012

    ## Summary

    We moved the deployment to main.

    ## Facts

    - Fixtures live in `testdata/golden/`. [kind:: fact] [at:: …] [by:: user] ^<id>

Reading is lenient: whatever a person removed, moved or added leaves the rest as it is. `update_session` changes what
differs and nothing else, so sections, lines and front matter of others survive.

Invariant: an entry that `update_session` wrote is read back as it was, in the order of saving.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

from ricordo.clock import format_rfc3339
from ricordo.files.contract import compute_version
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, preview_line, parse_entries, render_entry
from ricordo.workspace.escapes import escape_value, unescape
from ricordo.workspace.session_head import (
    SessionTotals,
    SessionHeader,
    SessionSection,
    parse_totals,
    join_session,
    render_totals,
    split_session,
    find_start,
)

__all__ = ["SessionFile", "create_digest", "parse_session", "update_session"]

_SUMMARY, _THREADS, _NOTES, _FILES = "Summary", "Open threads", "Notes", "Files read"
_SECTION_BY_KIND = {"decision": "Decisions", "fact": "Facts", "preference": "Preferences", "lesson": "Lessons"}
_KIND_BY_SECTION = {name: kind for kind, name in _SECTION_BY_KIND.items()} | {_NOTES: "note"}
_SECTION_ORDER = (_SUMMARY, "Decisions", _THREADS, "Facts", "Preferences", "Lessons", _NOTES, _FILES)
_SECTION_NAMES = {name.casefold(): name for name in _SECTION_ORDER}
_PROSE_SECTIONS = frozenset({_SUMMARY, _THREADS, _FILES})
_PENDING, _OUTDATED = "pending", "outdated"
_SEQUENCE_FIELD = "seq"
_KIND_FIELD = b"[kind:: "
_MARKUP = r"(?=#{1,6}(?:\s|$)|```|~~~)"
_LOOKALIKE_MARKUP = re.compile(rf"^([ \t]*\\*){_MARKUP}", re.MULTILINE)
_ESCAPED_MARKUP = re.compile(rf"^([ \t]*\\*)\\{_MARKUP}", re.MULTILINE)
_ITEM = re.compile(r"[-*+] +(?:\[(?P<done>[ xX])\] +)?(?P<text>\S.*)")
_DIGEST_CHARACTERS = 300
_LINE_ENDS = "\r\n"


@dataclass(frozen=True, kw_only=True)
class SessionFile:
    """One session: when it was, what it was about, and the entries that were saved in it, the oldest first.

    `started` is aware. `worked` is what the session took, `closing` the request that summed it up. With `pending` the
    summary is a digest made by rules, until one is made; with `outdated` the session went on after it was made.
    """

    started: datetime
    session: str = ""
    worked: SessionTotals = field(default_factory=SessionTotals)
    closing: SessionTotals = field(default_factory=SessionTotals)
    tags: tuple[str, ...] = ()
    summary: str = ""
    pending: bool = False
    outdated: bool = False
    open_threads: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()


def create_digest(entries: Sequence[Entry]) -> str:
    """Return a sentence of the newest entries, for a session without a summary: at most 300 characters, "" for none."""
    shown = ""
    for entry in reversed(entries):
        line = preview_line(entry.content)
        longer = f"{shown}; {line}" if shown else f"Saved: {line}"
        if len(longer) > _DIGEST_CHARACTERS:
            break
        shown = longer
    return shown


def parse_session(data: bytes, path: str) -> SessionFile | None:
    """Return what a document in `sessions/` says; None when neither it nor its name tells when the session was."""
    head, sections = split_session(data)
    started = find_start(head, path)
    if started is None:
        return None
    summary = _read_summary(sections)
    state, _, check = head.get("summary").lower().partition(" ")
    # what a person has rewritten waits for no other summary
    waits = check.strip() in {"", _summary_checksum(summary)}
    return SessionFile(
        started=started,
        session=unescape(head.get("session")),
        worked=parse_totals(head.get("duration")),
        closing=parse_totals(head.get("closing")),
        tags=head.get_list("tags"),
        summary=summary,
        pending=waits and state == _PENDING,
        outdated=waits and state == _OUTDATED,
        open_threads=_read_items(sections, _THREADS),
        files_read=_read_items(sections, _FILES),
        entries=tuple(entry for _, entry in _read_numbered_entries(sections, path)),
    )


def update_session(data: bytes, path: str, wanted: SessionFile) -> bytes:
    """Return the document (empty: none yet) changed to what `wanted` says.

    Entries that it lacks are added, and those that `wanted` lacks are taken out. One with the id and the time of one
    that is there is that one, so a hand edit of it stays.
    """
    head, sections = split_session(data)
    present = parse_session(data, path) if data else None
    head.set_title(f"{wanted.started.astimezone():%Y-%m-%d %H:%M}")
    for name, value in _changed_fields(wanted, present).items():
        head.set_field(name, value)
    texts = {
        _SUMMARY: (_read_summary(sections), wanted.summary, _escape_summary(wanted.summary)),
        _THREADS: (_read_items(sections, _THREADS), wanted.open_threads, _render_items(wanted.open_threads)),
        _FILES: (_read_items(sections, _FILES), wanted.files_read, _render_items(wanted.files_read)),
    }
    for name, (now, then, text) in texts.items():
        if now != then:
            _set_section_text(sections, name, text)
    _remove_other_entries(sections, path, {(entry.id, entry.time) for entry in wanted.entries})
    bullets: dict[str, list[str]] = {}
    for entry in _number_new_entries(_read_numbered_entries(sections, path), wanted.entries):
        bullets.setdefault(_SECTION_BY_KIND.get(entry.kind, _NOTES), []).append(render_entry(entry))
    for name, added in bullets.items():
        _append_bullets(_get_or_insert_section(sections, name), "".join(added))
    _separate_sections(head, sections)
    return join_session(head, sections)


def _changed_fields(wanted: SessionFile, present: SessionFile | None) -> dict[str, str]:
    """Return the fields that differ from those of the present document."""
    state = _PENDING if wanted.pending else _OUTDATED if wanted.outdated else ""
    fields = {
        "tags": ", ".join(wanted.tags),
        "duration": render_totals(wanted.worked),
        "session": escape_value(wanted.session) if wanted.session else "",
        "started": format_rfc3339(wanted.started),
        "summary": f"{state} {_summary_checksum(wanted.summary)}" if state else "",
        "closing": "" if wanted.closing == SessionTotals() else render_totals(wanted.closing),
    }
    if present is None:
        return fields
    values = {"tags": "tags", "duration": "worked", "session": "session", "started": "started", "closing": "closing"}
    same = {name for name, value in values.items() if getattr(wanted, value) == getattr(present, value)}
    return {name: value for name, value in fields.items() if name not in same}


def _summary_checksum(summary: str) -> str:
    """Return eight hex digits by which it is seen whether a person has changed the summary."""
    return compute_version(" ".join(summary.split()).encode("utf-8", "replace"))[:8]


def _read_summary(sections: Sequence[SessionSection]) -> str:
    text = "\n\n".join(section.body.strip() for section in sections if _section_name(section) == _SUMMARY)
    plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\r\n", "\n")
    return _ESCAPED_MARKUP.sub(r"\1", plain).strip()


def _escape_summary(summary: str) -> str:
    plain = summary.encode("utf-8", "replace").decode().strip()
    return _LOOKALIKE_MARKUP.sub(r"\1\\", plain)


def _read_items(sections: Sequence[SessionSection], name: str) -> tuple[str, ...]:
    """Return the bullets of a section, one line each; those that a person ticked off are left out."""
    lines = [
        line.strip() for section in sections if _section_name(section) == name for line in section.body.split("\n")
    ]
    matches = [match for line in lines if (match := _ITEM.fullmatch(line)) and match["done"] not in {"x", "X"}]
    return tuple(match["text"].encode("utf-8", "surrogateescape").decode("utf-8", "replace") for match in matches)


def _render_items(items: Sequence[str]) -> str:
    return "".join(f"- {item}\n" for item in items)


def _section_name(section: SessionSection) -> str:
    return _SECTION_NAMES.get(section.name.casefold(), section.name)


def _read_numbered_entries(sections: Sequence[SessionSection], path: str) -> list[tuple[int, Entry]]:
    """Return the entries with their numbers (0: none), the oldest first."""
    found: list[tuple[tuple[int, bool, str], Entry]] = []
    for section in sections:
        data = _normalize_body(section)
        for one in _locate_entries(section, path):
            block = data[one.offset : one.offset + one.length]
            entry, number = one.entry, 0
            if entry.extra and entry.extra[-1][0] == _SEQUENCE_FIELD and entry.extra[-1][1].isdecimal():
                number = int(entry.extra[-1][1])
                entry = replace(entry, extra=entry.extra[:-1])
            if _KIND_FIELD not in block:
                entry = replace(entry, kind=_KIND_BY_SECTION.get(_section_name(section), "fact"))
            by_hand = f"^{entry.id}".encode() not in block
            found.append(((number, by_hand, "" if by_hand else entry.id), entry))
    return [(key[0], entry) for key, entry in sorted(found, key=lambda one: one[0])]


def _locate_entries(section: SessionSection, path: str) -> list[LocatedEntry]:
    """Return the entries of a section; in those of people, only bullets that say of what kind they are."""
    name = _section_name(section)
    if name in _PROSE_SECTIONS:
        return []
    only = None if name in _SECTION_ORDER else _has_kind_field
    return parse_entries(_normalize_body(section), f"{path}#{name}", only=only)


def _normalize_body(section: SessionSection) -> bytes:
    """Return what stands in a section, as if no editor had changed its line ends."""
    return section.body.replace("\r\n", "\n").encode("utf-8", "surrogateescape")


def _remove_other_entries(
    sections: list[SessionSection], path: str, stays: Collection[tuple[str, datetime | None]]
) -> None:
    """Take out all other entries, and sections of ours in which nothing is left then."""
    for section in [*sections]:
        body = rest = _normalize_body(section)
        for one in reversed(_locate_entries(section, path)):
            if (one.entry.id, one.entry.time) not in stays:
                rest = rest[: one.offset] + rest[one.offset + one.length :]
        if rest != body:
            section.body = rest.decode("utf-8", "surrogateescape")
            if not rest.strip() and _section_name(section) in _SECTION_ORDER:
                sections.remove(section)


def _has_kind_field(bullet: bytes) -> bool:
    return _KIND_FIELD in bullet


def _number_new_entries(present: Sequence[tuple[int, Entry]], wanted: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the entries that are not there yet, with a number where their ids do not tell the order of saving."""
    there = {(entry.id, entry.time) for _, entry in present}
    added = [entry for entry in wanted if (entry.id, entry.time) not in there]
    number = max((number for number, _ in present), default=0)
    ids = [*(entry.id for _, entry in present if not entry.id.startswith("h")), *(entry.id for entry in added)]
    ascending = all(ids) and all(before < after for before, after in pairwise(ids))
    if number == 0 and ascending and not any(key == _SEQUENCE_FIELD for entry in added for key, _ in entry.extra):
        yield from added
        return
    for place, entry in enumerate(added, number + 1):
        yield replace(entry, extra=(*entry.extra, (_SEQUENCE_FIELD, str(place))))


def _append_bullets(section: SessionSection, bullets: str) -> None:
    body = section.body.rstrip(_LINE_ENDS)
    if "```" in body or "~~~" in body:
        # below a fence that nobody closed it would be no bullet
        section.body = f"\n{bullets}{section.body}"
    else:
        section.body = f"{body}\n{bullets}\n"


def _set_section_text(sections: list[SessionSection], name: str, text: str) -> None:
    """Let `text` be all that stands in the sections of this name; without any there is none."""
    if text:
        _get_or_insert_section(sections, name).body = f"\n{text.rstrip()}\n\n"
    first = next((section for section in sections if _section_name(section) == name), None)
    sections[:] = [one for one in sections if _section_name(one) != name or (text and one is first)]


def _get_or_insert_section(sections: list[SessionSection], name: str) -> SessionSection:
    """Return the first section of this name; one that is not there is made, in its place among the others."""
    for section in sections:
        if _section_name(section) == name:
            return section
    later = _SECTION_ORDER[_SECTION_ORDER.index(name) + 1 :]
    at = next((number for number, section in enumerate(sections) if _section_name(section) in later), len(sections))
    sections.insert(at, SessionSection(name=name, heading=f"## {name}\n"))
    return sections[at]


def _separate_sections(head: SessionHeader, sections: list[SessionSection]) -> None:
    """Let a blank line stand above each heading, and none at the end of the document."""
    if head.lines and sections and head.lines[-1].strip():
        head.lines[-1] = head.lines[-1].rstrip(_LINE_ENDS) + "\n\n"
    for section in sections[:-1]:
        if not section.body.endswith(("\n\n", "\n\r\n")):
            section.body = section.body.rstrip(_LINE_ENDS) + "\n\n"
    if sections:
        sections[-1].body = sections[-1].body.rstrip(_LINE_ENDS) + "\n"
