"""Session files: the topic of one session, and what was saved in it, as Markdown that people read and edit.

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

Reading is lenient. `update_session` changes only what differs.

Invariants: splitting and joining a document returns the same bytes. An entry that `update_session` wrote is read back
unchanged, in the order of saving.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise

from ricordo.clock import format_rfc3339, truncate_to_milliseconds
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import Usage
from ricordo.storage.contract import compute_version
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, preview_line, render_entry
from ricordo.workspace.markdown import escape_value, unescape

__all__ = [
    "SessionFile",
    "SessionHeader",
    "SessionSection",
    "SessionTotals",
    "create_digest",
    "find_start",
    "join_session",
    "parse_session",
    "parse_totals",
    "render_totals",
    "split_session",
    "to_tag",
    "update_session",
]


_LINE = lazy_compile(r"[^\n]*\n|[^\n]+\Z")
_HEADING = lazy_compile(r"^##[ \t]+(?P<name>\S[^\n]*)(?:\n|\Z)", re.MULTILINE)
_FIELD_NAMES = ("tags", "duration", "session", "started", "summary", "closing")
_FIELD_LINE = lazy_compile(rf"(?i)(?P<name>{'|'.join(_FIELD_NAMES)}):(?P<value>.*)")
_DATE_PATTERN = lazy_compile(r"(?P<day>\d{4}-\d\d-\d\d)(?:[T -]+(?P<hour>\d\d)[:h](?P<minute>\d\d))?")


@dataclass(kw_only=True)
class SessionSection:
    """A second-level heading with the text below it; `name` is the text of the heading."""

    name: str
    heading: str
    body: str = ""


@dataclass(kw_only=True)
class SessionHeader:
    """The lines above the first section: front matter, the title, and fields such as `tags: release`."""

    lines: list[str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return the value of a field, which may be in the front matter; empty without it."""
        for line in self.lines:
            match = _FIELD_LINE.fullmatch(line.strip())
            if match and match["name"].lower() == name:
                return match["value"].strip()
        return ""

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return the comma-separated words of a field."""
        words = (to_tag(word) for word in self.get(name).strip("[]").split(","))
        return tuple(dict.fromkeys(word for word in words if word))

    def set_field(self, name: str, value: str) -> None:
        """Set a field, in place if it exists; an empty value removes it."""
        index = next((number for number in self._line_numbers() if self._is_field(number, name)), None)
        if index is not None:
            self.lines[index : index + 1] = [f"{name}: {value}\n"] if value else []
        elif value:
            fields = [number for number in self._line_numbers() if self._is_field(number)]
            if fields:
                self.lines.insert(fields[-1] + 1, f"{name}: {value}\n")
            else:
                self.lines[self._number_below_title() :] = ["\n", f"{name}: {value}\n", *self._lines_below_title()]

    def set_title(self, title: str) -> None:
        """Set the title if the document has none."""
        if not any(line.startswith("# ") for line in self.lines):
            self.lines.insert(self._line_numbers().start, f"# {title}\n")

    def _is_field(self, number: int, name: str = "") -> bool:
        match = _FIELD_LINE.fullmatch(self.lines[number].strip())
        return match is not None and name in {"", match["name"].lower()}

    def _line_numbers(self) -> range:
        """Return the range of lines below the front matter."""
        start = 0
        if self.lines and self.lines[0].strip() == "---":
            ends = (number for number in range(1, len(self.lines)) if self.lines[number].strip() in {"---", "..."})
            start = next((number + 1 for number in ends), 0)
        return range(start, len(self.lines))

    def _number_below_title(self) -> int:
        titles = (number + 1 for number in self._line_numbers() if self.lines[number].startswith("# "))
        return next(titles, self._line_numbers().start)

    def _lines_below_title(self) -> list[str]:
        rest = self.lines[self._number_below_title() :]
        return rest if any(line.strip() for line in rest) else []


@dataclass(frozen=True, kw_only=True)
class SessionTotals:
    """The duration of some work and its cost in US dollars; None if unknown."""

    minutes: int | None = None
    turns: int | None = None
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None


_COUNT_PATTERNS = {
    "minutes": lazy_compile(r"([\d,]+) minutes?"),
    "turns": lazy_compile(r"([\d,]+) turns?"),
    "input": lazy_compile(r"([\d,]+) tokens in"),
    "output": lazy_compile(r"([\d,]+) tokens out"),
    "cache_read": lazy_compile(r"([\d,]+) read from cache"),
    "cache_write": lazy_compile(r"([\d,]+) written to cache"),
}
_COST_PATTERN = lazy_compile(r"\$(\d+(?:\.\d+)?)")


def parse_totals(text: str) -> SessionTotals:
    """Parse a line such as `12 minutes, 5 turns, $0.0123`; missing parts are unknown."""
    matches = {name: pattern.search(text) for name, pattern in _COUNT_PATTERNS.items()}
    counts = {name: int(match[1].replace(",", "") or 0) for name, match in matches.items() if match}
    tokens = {name: counts.get(name, 0) for name in ("input", "output", "cache_read", "cache_write")}
    cost = _COST_PATTERN.search(text)
    return SessionTotals(
        minutes=counts.get("minutes"),
        turns=counts.get("turns"),
        usage=Usage(**tokens),
        cost=Decimal(cost[1]) if cost else None,
    )


def render_totals(amount: SessionTotals) -> str:
    """Return the line that `parse_totals` parses back to this value."""
    usage = amount.usage
    parts = [_render_count(amount.minutes, "minute"), _render_count(amount.turns, "turn")]
    if usage != Usage():
        parts += [f"{usage.input} tokens in", f"{usage.output} tokens out"]
    parts += [f"{usage.cache_read} read from cache"] * bool(usage.cache_read)
    parts += [f"{usage.cache_write} written to cache"] * bool(usage.cache_write)
    parts.append("cost unknown" if amount.cost is None else f"${amount.cost:f}")
    return ", ".join(filter(None, parts))


def split_session(data: bytes) -> tuple[SessionHeader, list[SessionSection]]:
    """Split a document into its header and sections; bytes that are not UTF-8 are preserved."""
    text = data.decode("utf-8", "surrogateescape")
    headings = list(_HEADING.finditer(text))
    ends = [*(match.start() for match in headings[1:]), len(text)]
    head = text[: headings[0].start()] if headings else text
    sections = [
        SessionSection(name=match["name"].rstrip(), heading=match.group(), body=text[match.end() : end])
        for match, end in zip(headings, ends, strict=bool(headings))
    ]
    return SessionHeader(lines=_LINE.findall(head)), sections


def join_session(head: SessionHeader, sections: list[SessionSection]) -> bytes:
    """Return the document with this header and these sections."""
    text = "".join([*head.lines, *(section.heading + section.body for section in sections)])
    return text.encode("utf-8", "surrogateescape")


def find_start(head: SessionHeader, path: str) -> datetime | None:
    """Return the start of a session: from its field, else its title, else its file name, both in local time."""
    try:
        started = datetime.fromisoformat(head.get("started"))
        if started.tzinfo is not None:
            return truncate_to_milliseconds(started)
    except (ValueError, OverflowError):
        pass
    titles = [line for line in head.lines if line.startswith("# ")]
    for text in (*titles, path.rpartition("/")[2]):
        match = _DATE_PATTERN.search(text)
        try:
            if match:
                moment = f"{match['day']}T{match['hour'] or '00'}:{match['minute'] or '00'}"
                return truncate_to_milliseconds(datetime.fromisoformat(moment).astimezone(UTC))
        except (ValueError, OverflowError, OSError):
            continue
    return None


def to_tag(text: str) -> str:
    """Return a text as a tag of a session: on one line, without commas and surrounding marks."""
    return " ".join(text.replace(",", " ").split()).strip("#\"'[] ")


def _render_count(number: int | None, noun: str) -> str:
    return "" if number is None else f"{number} {noun}{'' if number == 1 else 's'}"


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
_LOOKALIKE_MARKUP = lazy_compile(rf"^([ \t]*\\*){_MARKUP}", re.MULTILINE)
_ESCAPED_MARKUP = lazy_compile(rf"^([ \t]*\\*)\\{_MARKUP}", re.MULTILINE)
_ITEM = lazy_compile(r"[-*+] +(?:\[(?P<done>[ xX])\] +)?(?P<text>\S.*)")
_DIGEST_CHARACTERS = 300
_LINE_ENDS = "\r\n"


@dataclass(frozen=True, kw_only=True)
class SessionFile:
    """One session: its time, its topic, and the entries that were saved in it, oldest first.

    `started` is aware. `totals` has the duration and cost of the session, `closing` those of the request for its
    summary. If `is_pending`, the summary is a digest made by rules until one is written; if `is_outdated`, the session
    continued after it.
    """

    started: datetime
    session: str = ""
    totals: SessionTotals = field(default_factory=SessionTotals)
    closing: SessionTotals = field(default_factory=SessionTotals)
    tags: tuple[str, ...] = ()
    summary: str = ""
    is_pending: bool = False
    is_outdated: bool = False
    open_threads: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()


def create_digest(entries: Sequence[Entry]) -> str:
    """Return a digest of the newest entries for a session without a summary: at most 300 characters, or ""."""
    digest = ""
    for entry in reversed(entries):
        line = preview_line(entry.content)
        longer = f"{digest}; {line}" if digest else f"Saved: {line}"
        if len(longer) > _DIGEST_CHARACTERS:
            break
        digest = longer
    return digest


def parse_session(data: bytes, path: str) -> SessionFile | None:
    """Parse a document in `sessions/`; None if neither it nor its name has the time of the session."""
    head, sections = split_session(data)
    started = find_start(head, path)
    if started is None:
        return None
    summary = _read_summary(sections)
    state, _, check = head.get("summary").lower().partition(" ")
    # a summary edited by a person is neither pending nor outdated
    waits = check.strip() in {"", _summary_checksum(summary)}
    return SessionFile(
        started=started,
        session=unescape(head.get("session")),
        totals=parse_totals(head.get("duration")),
        closing=parse_totals(head.get("closing")),
        tags=head.get_list("tags"),
        summary=summary,
        is_pending=waits and state == _PENDING,
        is_outdated=waits and state == _OUTDATED,
        open_threads=_read_items(sections, _THREADS),
        files_read=_read_items(sections, _FILES),
        entries=tuple(entry for _, entry in _read_numbered_entries(sections, path)),
    )


def update_session(data: bytes, path: str, target: SessionFile) -> bytes:
    """Update the document (empty: none yet) to match `target`.

    Missing entries are added, and entries not in `target` are removed. An entry with the same id and time as an
    existing one is the same entry, so a person's edit of it stays.
    """
    head, sections = split_session(data)
    present = parse_session(data, path) if data else None
    head.set_title(f"{target.started.astimezone():%Y-%m-%d %H:%M}")
    for name, value in _changed_fields(target, present).items():
        head.set_field(name, value)
    texts = {
        _SUMMARY: (_read_summary(sections), target.summary, _escape_summary(target.summary)),
        _THREADS: (_read_items(sections, _THREADS), target.open_threads, _render_items(target.open_threads)),
        _FILES: (_read_items(sections, _FILES), target.files_read, _render_items(target.files_read)),
    }
    for name, (current, new, text) in texts.items():
        if current != new:
            _set_section_text(sections, name, text)
    _remove_other_entries(sections, path, {(entry.id, entry.time) for entry in target.entries})
    bullets: dict[str, list[str]] = {}
    for entry in _number_new_entries(_read_numbered_entries(sections, path), target.entries):
        bullets.setdefault(_SECTION_BY_KIND.get(entry.kind, _NOTES), []).append(render_entry(entry))
    for name, added in bullets.items():
        _append_bullets(_get_or_insert_section(sections, name), "".join(added))
    _separate_sections(head, sections)
    return join_session(head, sections)


def _changed_fields(target: SessionFile, present: SessionFile | None) -> dict[str, str]:
    """Return the fields that differ from those of the present document."""
    state = _PENDING if target.is_pending else _OUTDATED if target.is_outdated else ""
    fields = {
        "tags": ", ".join(target.tags),
        "duration": render_totals(target.totals),
        "session": escape_value(target.session) if target.session else "",
        "started": format_rfc3339(target.started),
        "summary": f"{state} {_summary_checksum(target.summary)}" if state else "",
        "closing": "" if target.closing == SessionTotals() else render_totals(target.closing),
    }
    if present is None:
        return fields
    values = {"tags": "tags", "duration": "totals", "session": "session", "started": "started", "closing": "closing"}
    unchanged = {name for name, value in values.items() if getattr(target, value) == getattr(present, value)}
    return {name: value for name, value in fields.items() if name not in unchanged}


def _summary_checksum(summary: str) -> str:
    """Return eight hex digits that show whether a person has changed the summary."""
    return compute_version(" ".join(summary.split()).encode("utf-8", "replace"))[:8]


def _read_summary(sections: Sequence[SessionSection]) -> str:
    text = "\n\n".join(section.body.strip() for section in sections if _section_name(section) == _SUMMARY)
    plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\r\n", "\n")
    return _ESCAPED_MARKUP.sub(r"\1", plain).strip()


def _escape_summary(summary: str) -> str:
    plain = summary.encode("utf-8", "replace").decode().strip()
    return _LOOKALIKE_MARKUP.sub(r"\1\\", plain)


def _read_items(sections: Sequence[SessionSection], name: str) -> tuple[str, ...]:
    """Return the bullets of a section, one line each, without those that a person ticked off."""
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
    """Return the entries with their numbers (0: none), oldest first."""
    rows: list[tuple[tuple[int, bool, str], Entry]] = []
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
            rows.append(((number, by_hand, "" if by_hand else entry.id), entry))
    return [(key[0], entry) for key, entry in sorted(rows, key=lambda one: one[0])]


def _locate_entries(section: SessionSection, path: str) -> list[LocatedEntry]:
    """Return the entries of a section; in a section added by a person, only bullets with a kind."""
    name = _section_name(section)
    if name in _PROSE_SECTIONS:
        return []
    only = None if name in _SECTION_ORDER else _has_kind_field
    return parse_entries(_normalize_body(section), f"{path}#{name}", only=only)


def _normalize_body(section: SessionSection) -> bytes:
    """Return the body of a section with normalized line ends."""
    return section.body.replace("\r\n", "\n").encode("utf-8", "surrogateescape")


def _remove_other_entries(
    sections: list[SessionSection], path: str, stays: Collection[tuple[str, datetime | None]]
) -> None:
    """Remove all other entries, and standard sections left empty by this."""
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


def _number_new_entries(present: Sequence[tuple[int, Entry]], entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the new entries, numbered if their ids do not show the order of saving."""
    present_keys = {(entry.id, entry.time) for _, entry in present}
    added = [entry for entry in entries if (entry.id, entry.time) not in present_keys]
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
        # below an unclosed fence it would not be a bullet
        section.body = f"\n{bullets}{section.body}"
    else:
        section.body = f"{body}\n{bullets}\n"


def _set_section_text(sections: list[SessionSection], name: str, text: str) -> None:
    """Set the text of the section with this name and remove further ones; an empty text removes all of them."""
    if text:
        _get_or_insert_section(sections, name).body = f"\n{text.rstrip()}\n\n"
    first = next((section for section in sections if _section_name(section) == name), None)
    sections[:] = [one for one in sections if _section_name(one) != name or (text and one is first)]


def _get_or_insert_section(sections: list[SessionSection], name: str) -> SessionSection:
    """Return the first section of this name, inserting it in the standard order if it is missing."""
    for section in sections:
        if _section_name(section) == name:
            return section
    later = _SECTION_ORDER[_SECTION_ORDER.index(name) + 1 :]
    index = next((number for number, section in enumerate(sections) if _section_name(section) in later), len(sections))
    sections.insert(index, SessionSection(name=name, heading=f"## {name}\n"))
    return sections[index]


def _separate_sections(head: SessionHeader, sections: list[SessionSection]) -> None:
    """Ensure a blank line above each heading, and none at the end of the document."""
    if head.lines and sections and head.lines[-1].strip():
        head.lines[-1] = head.lines[-1].rstrip(_LINE_ENDS) + "\n\n"
    for section in sections[:-1]:
        if not section.body.endswith(("\n\n", "\n\r\n")):
            section.body = section.body.rstrip(_LINE_ENDS) + "\n\n"
    if sections:
        sections[-1].body = sections[-1].body.rstrip(_LINE_ENDS) + "\n"
