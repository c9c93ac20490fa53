"""A profile as editable text, one line for each summary and each fact, and its parser. Pure.

    - Work: Builds ships.
    - [preference | 0.80] Likes tea (avoid: coffee) ^fact_1a2b3c4d

Invariants: an unchanged line is an unchanged record, including fields that the line does not show. A text with
unreadable lines is rejected as a whole, with their numbers.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from math import isfinite
from urllib.parse import quote, unquote

from ricordo.curation.profile.rendering import FACTS_HEADING, SUMMARY_HEADINGS
from ricordo.errors import InvalidInput
from ricordo.lazy import lazy_compile
from ricordo.workspace.profile import Fact, FactSource, Profile, ProfileSummary, create_fact_id

__all__ = ["apply_edited_text", "is_current_text", "render_editable"]


_SUMMARY_BY_LABEL = {label: name for _, names in SUMMARY_HEADINGS for name, label in names}
_HEADINGS = {*(heading for heading, _ in SUMMARY_HEADINGS), FACTS_HEADING}
_REVISION_LINE = lazy_compile(r"^# revision \d+.*$", re.MULTILINE)
_ESCAPED = lazy_compile(r"\\(?:u([0-9a-f]{4})|(.))", re.DOTALL)
_CONTROL_CHARACTERS = lazy_compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_FACT_PATTERN = lazy_compile(
    r"- \[(?P<label>(?:[^\]\\]|\\.)*)\] ?(?P<content>(?:[^\\]|\\.)*?)"
    r"(?: \(avoid: (?P<avoid>(?:[^\\]|\\.)*)\))?(?: \^(?P<id>\S+))?\s*"
)
_SUMMARY_PATTERN = lazy_compile(r"- (?P<label>[A-Za-z ]+):(?P<text>.*)")
_DAYS_PATTERN = lazy_compile(r"([1-9]\d{0,8}) days?")
_HELP_LINES = (
    "# Change a line, remove one, or add one such as `- [preference | 0.90] Likes tea`. A line without its `^id` is a",
    "# new fact. After the confidence, `pinned` keeps a fact, and `30 days` says how long it holds; `(avoid: ...)` at",
    "# the end says what was wrong. A line that begins with two spaces goes on with the one before it.",
)


def render_editable(profile: Profile) -> str:
    """Return the editable text of a profile."""
    lines = [_revision_line(profile), *_HELP_LINES]
    for heading, names in SUMMARY_HEADINGS:
        lines += ["", heading]
        lines += [_summary_line(label, profile.summaries.get(name) or ProfileSummary()) for name, label in names]
    lines += ["", FACTS_HEADING, *map(_fact_line, profile.facts)]
    return "\n".join(lines) + "\n"


def is_current_text(profile: Profile, text: str) -> bool:
    """Tell whether a text was made from this revision of the profile, or names no revision."""
    match = _REVISION_LINE.search(text)
    return match is None or match[0].rstrip() == _revision_line(profile)


def _revision_line(profile: Profile) -> str:
    # an undo restores the old revision, and the next save counts up from there
    return f"# revision {profile.revision} of {' '.join(profile.last_updated.split()) or 'no time'}"


def apply_edited_text(profile: Profile, text: str, *, now: str = "") -> Profile:
    """Return the profile with the edits of `text`, made from `render_editable(profile)`; `now` dates new facts.

    Raises: InvalidInput, with the number of each line that can't be read.
    """
    errors: list[str] = []
    summaries: dict[str, ProfileSummary] = {}
    facts: list[Fact] = []
    used_ids = {fact.id for fact in profile.facts}
    for number, line in _join_lines(text):
        try:
            if line.startswith("- ["):
                fact = _parse_fact(line, profile, used_ids, now)
                _refuse_duplicate(fact.id, [each.id for each in facts])
                facts.append(fact)
                used_ids.add(fact.id)
            elif line.strip() not in _HEADINGS:
                name, summary = _parse_summary(line, profile)
                _refuse_duplicate(name, summaries)
                summaries[name] = summary
        except ValueError as error:
            errors.append(f"line {number}: {error}")
    if errors:
        raise InvalidInput(f"Nothing was changed: {'; '.join(errors)}.")
    cleared = {name: _with_text(each, "") for name, each in profile.summaries.items() if name not in summaries}
    return replace(profile, summaries=_order_summaries({**cleared, **summaries}), facts=tuple(facts))


def _refuse_duplicate(name: str, seen: Collection[str]) -> None:
    if name in seen:
        raise ValueError(f"{name} stands twice")


def _join_lines(text: str) -> list[tuple[int, str]]:
    """Return the non-empty lines with their numbers; a continuation is joined to the line before it."""
    joined: list[tuple[int, str]] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("  ") and joined:
            joined[-1] = (joined[-1][0], f"{joined[-1][1].rstrip()} {line.strip()}")
        else:
            joined.append((number, line))
    return joined


def _summary_line(label: str, summary: ProfileSummary) -> str:
    return f"- {label}: {_escape(summary.summary)}".rstrip(" ")


def _parse_summary(line: str, profile: Profile) -> tuple[str, ProfileSummary]:
    match = _SUMMARY_PATTERN.fullmatch(line)
    name = _SUMMARY_BY_LABEL.get(match["label"]) if match else None
    if match is None or name is None:
        raise ValueError("this is neither a summary nor a fact")
    old = profile.summaries.get(name) or ProfileSummary()
    if line.rstrip() == _summary_line(match["label"], old).rstrip():
        return name, old
    return name, _with_text(old, _unescape(match["text"].strip()))


def _with_text(old: ProfileSummary, text: str) -> ProfileSummary:
    """Return a summary with this text; unchanged if the text is the same."""
    return old if text == old.summary.strip() else replace(old, summary=text)


def _fact_line(fact: Fact) -> str:
    label = " | ".join(
        [
            _escape(fact.category, "]|"),
            f"{fact.confidence:.2f}",
            *(["pinned"] if fact.pinned else []),
            *([f"{fact.valid_days} days"] if fact.valid_days is not None else []),
        ]
    )
    content = _escape(fact.content).replace("(avoid:", "\\(avoid:")
    avoid = f" (avoid: {_escape(fact.source_error)})" if fact.source_error is not None else ""
    return f"- [{label}] {content}{avoid} ^{quote(fact.id, safe='', errors='surrogatepass')}"


def _parse_fact(line: str, profile: Profile, used_ids: set[str], now: str) -> Fact:
    match = _FACT_PATTERN.fullmatch(line)
    if match is None:
        raise ValueError("a fact is written `- [category | 0.90] what is known`")
    old = _find_fact(match["id"], profile)
    if old and line.rstrip() == _fact_line(old).rstrip():
        return old
    content = _unescape(match["content"].strip())
    # compare with the displayed text, so that a text that a line can't show exactly stays unchanged
    is_unchanged = old is not None and _unescape(_escape(old.content).strip()) == content
    if not content and not is_unchanged:
        raise ValueError("a fact says something; remove the line to remove the fact")
    base = old or Fact(id=create_fact_id(content, used_ids), created_at=now, source=FactSource(thread="manual"))
    avoid = match["avoid"]
    new_content = old.content if old and is_unchanged else content
    return _apply_label(
        replace(base, content=new_content, source_error=_unescape(avoid) if avoid is not None else None), match["label"]
    )


def _find_fact(name: str | None, profile: Profile) -> Fact | None:
    if name is None:
        return None
    fact = profile.find_fact(unquote(name, errors="surrogatepass"))
    if fact is None:
        raise ValueError(f"the profile has no fact {name}; leave the id out for a new one")
    return fact


def _apply_label(fact: Fact, label: str) -> Fact:
    """Return the fact with the fields in its brackets."""
    category, *rest = (part.strip() for part in re.split(r"(?<!\\)\|", label))
    if not rest:
        raise ValueError("a fact has a category and a confidence, such as `[preference | 0.90]`")
    confidence, days = _parse_confidence(rest[0], fact.confidence), None
    for option in rest[1:]:
        match = _DAYS_PATTERN.fullmatch(option)
        is_current = fact.valid_days is not None and option == f"{fact.valid_days} days"
        if match or is_current:
            days = fact.valid_days if is_current else int(match[1]) if match else None
        elif option != "pinned":
            raise ValueError(f"{option!r} is neither `pinned` nor a number of days such as `30 days`")
    new_category = _unescape(category)
    category_value = fact.category if new_category == fact.category.strip() else new_category
    return replace(fact, category=category_value, confidence=confidence, pinned="pinned" in rest[1:], valid_days=days)


def _parse_confidence(text: str, old: float) -> float:
    """Return the confidence; the exact old one if the text shows it."""
    if text == f"{old:.2f}":
        return old
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not isfinite(value) or not 0 <= value <= 1:
        raise ValueError(f"{text!r} is no confidence between 0 and 1")
    return value


def _order_summaries(summaries: dict[str, ProfileSummary]) -> dict[str, ProfileSummary]:
    return {name: summaries.get(name) or ProfileSummary() for name in _SUMMARY_BY_LABEL.values()}


def _escape(text: str, extra_chars: str = "") -> str:
    """Return a text escaped to one line."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    escaped = _CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", escaped)
    for char in extra_chars:
        escaped = escaped.replace(char, f"\\{char}")
    return escaped


def _unescape(text: str) -> str:
    """Return the original text of `_escape`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else {"n": "\n"}.get(match[2], match[2]), text)
