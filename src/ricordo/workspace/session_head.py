"""The frame of a session file: its title and the lines below it, and the sections that follow.

Invariant: the frame of a document, joined again, is the document, byte for byte; a change of one line or one section
leaves all others as they are.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from ricordo.clock import truncate_to_milliseconds
from ricordo.messages import Usage

__all__ = [
    "SessionTotals",
    "SessionHeader",
    "SessionSection",
    "parse_totals",
    "join_session",
    "render_totals",
    "split_session",
    "find_start",
    "to_tag",
]

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_HEADING = re.compile(r"^##[ \t]+(?P<name>\S[^\n]*)(?:\n|\Z)", re.MULTILINE)
_FIELD_NAMES = ("tags", "duration", "session", "started", "summary", "closing")
_FIELD_LINE = re.compile(rf"(?i)(?P<name>{'|'.join(_FIELD_NAMES)}):(?P<value>.*)")
_DATE_PATTERN = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)(?:[T -]+(?P<hour>\d\d)[:h](?P<minute>\d\d))?")


@dataclass(kw_only=True)
class SessionSection:
    """A heading of the second level with what stands below it; `name` is the text of the heading."""

    name: str
    heading: str
    body: str = ""


@dataclass(kw_only=True)
class SessionHeader:
    """The lines above the first section: front matter, the title, and fields such as `tags: release`."""

    lines: list[str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return what a field says, also one in the front matter; empty without it."""
        for line in self.lines:
            match = _FIELD_LINE.fullmatch(line.strip())
            if match and match["name"].lower() == name:
                return match["value"].strip()
        return ""

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return the words of a field, which commas part."""
        words = (to_tag(word) for word in self.get(name).strip("[]").split(","))
        return tuple(dict.fromkeys(word for word in words if word))

    def set_field(self, name: str, value: str) -> None:
        """Set a field, in its place where it has one; without a value the field goes."""
        at = next((number for number in self._line_numbers() if self._is_field(number, name)), None)
        if at is not None:
            self.lines[at : at + 1] = [f"{name}: {value}\n"] if value else []
        elif value:
            fields = [number for number in self._line_numbers() if self._is_field(number)]
            if fields:
                self.lines.insert(fields[-1] + 1, f"{name}: {value}\n")
            else:
                self.lines[self._number_below_title() :] = ["\n", f"{name}: {value}\n", *self._lines_below_title()]

    def set_title(self, title: str) -> None:
        """Set the title of a document that has none."""
        if not any(line.startswith("# ") for line in self.lines):
            self.lines.insert(self._line_numbers().start, f"# {title}\n")

    def _is_field(self, number: int, name: str = "") -> bool:
        match = _FIELD_LINE.fullmatch(self.lines[number].strip())
        return match is not None and name in {"", match["name"].lower()}

    def _line_numbers(self) -> range:
        """Return the numbers of the lines below the front matter."""
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
    """How long something took and what it cost in US dollars; None where that is not known."""

    minutes: int | None = None
    turns: int | None = None
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None


_COUNT_PATTERNS = {
    "minutes": re.compile(r"([\d,]+) minutes?"),
    "turns": re.compile(r"([\d,]+) turns?"),
    "input": re.compile(r"([\d,]+) tokens in"),
    "output": re.compile(r"([\d,]+) tokens out"),
    "cache_read": re.compile(r"([\d,]+) read from cache"),
    "cache_write": re.compile(r"([\d,]+) written to cache"),
}
_COST_PATTERN = re.compile(r"\$(\d+(?:\.\d+)?)")


def parse_totals(text: str) -> SessionTotals:
    """Return what a line such as `12 minutes, 5 turns, $0.0123` says; what it does not say is not known."""
    found = {name: pattern.search(text) for name, pattern in _COUNT_PATTERNS.items()}
    counts = {name: int(match[1].replace(",", "") or 0) for name, match in found.items() if match}
    tokens = {name: counts.get(name, 0) for name in ("input", "output", "cache_read", "cache_write")}
    cost = _COST_PATTERN.search(text)
    return SessionTotals(
        minutes=counts.get("minutes"),
        turns=counts.get("turns"),
        usage=Usage(**tokens),
        cost=Decimal(cost[1]) if cost else None,
    )


def render_totals(amount: SessionTotals) -> str:
    """Return the line from which `parse_totals` reads this again."""
    usage = amount.usage
    shown = [_render_count(amount.minutes, "minute"), _render_count(amount.turns, "turn")]
    if usage != Usage():
        shown += [f"{usage.input} tokens in", f"{usage.output} tokens out"]
    shown += [f"{usage.cache_read} read from cache"] * bool(usage.cache_read)
    shown += [f"{usage.cache_write} written to cache"] * bool(usage.cache_write)
    shown.append("cost unknown" if amount.cost is None else f"${amount.cost:f}")
    return ", ".join(filter(None, shown))


def split_session(data: bytes) -> tuple[SessionHeader, list[SessionSection]]:
    """Return the frame of a document; bytes that are no UTF-8 are kept as they are."""
    text = data.decode("utf-8", "surrogateescape")
    found = list(_HEADING.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    head = text[: found[0].start()] if found else text
    sections = [
        SessionSection(name=match["name"].rstrip(), heading=match.group(), body=text[match.end() : end])
        for match, end in zip(found, ends, strict=bool(found))
    ]
    return SessionHeader(lines=_LINE.findall(head)), sections


def join_session(head: SessionHeader, sections: list[SessionSection]) -> bytes:
    """Return the document that has this frame."""
    text = "".join([*head.lines, *(section.heading + section.body for section in sections)])
    return text.encode("utf-8", "surrogateescape")


def find_start(head: SessionHeader, path: str) -> datetime | None:
    """Return when a session began: by its field, else its title, else the name of its file, which are in local time."""
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
    """Return a text as a tag of a session: in one line, without commas and the marks around it."""
    return " ".join(text.replace(",", " ").split()).strip("#\"'[] ")


def _render_count(number: int | None, noun: str) -> str:
    return "" if number is None else f"{number} {noun}{'' if number == 1 else 's'}"
