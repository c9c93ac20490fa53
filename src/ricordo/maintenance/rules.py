"""Rules of retention, as people write them: what is to go, after how long, and what keeps it. Pure.

    kind=fact tag=errand: delete after 6 months unless accessed
    transcripts: delete after 2 years
    user=guest: delete after 30 days

Invariant: only a rule that somebody wrote deletes; without rules nothing that memory holds goes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ricordo.errors import InvalidSetting
from ricordo.scopes import Scope
from ricordo.workspace.entry import Entry

__all__ = ["ExpiredMemory", "RetentionConfig", "RetentionRule", "find_expired_memories", "parse_rule"]

_RULE_PATTERN = re.compile(
    r"\s*(?P<what>[^:]*?)\s*:\s*delete\s+after\s+(?P<number>\d{1,5})\s+(?P<unit>day|week|month|year)s?"
    r"(?:\s+unless\s+(?P<unless>accessed|confirmed))?\s*\.?\s*",
    re.IGNORECASE,
)
_CONDITION_PATTERN = re.compile(r"(kind|tag|tenant|user|team|project|agent)=(\S+)", re.IGNORECASE)
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_RULE_HINT = "write it like: kind=fact tag=errand: delete after 6 months unless accessed"


@dataclass(frozen=True, kw_only=True)
class RetentionRule:
    """What goes `after` so long: memories that meet all conditions, or `transcripts`.

    `scope` names parts of a scope, such as the user. With `unless`, the time counts from when a memory was last
    `accessed` (used or confirmed) or `confirmed`, if that is later than when it was saved.
    """

    text: str
    after: timedelta
    kinds: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    scope: Sequence[tuple[str, str]] = ()
    unless: str = ""
    transcripts: bool = False

    def matches(self, entry: Entry, own: Scope | None = None) -> bool:
        """Tell whether a memory meets every condition; a pinned one meets none.

        `own` is the scope of its place, which holds for every memory there.
        """
        if self.transcripts or entry.pinned:
            return False
        parts = {name: value for scope in (own, entry.scope) if scope for name, value in scope.parts().items()}
        return (
            (not self.kinds or entry.kind in self.kinds)
            and self.tags <= frozenset(entry.tags)
            and all(parts.get(name) == value for name, value in self.scope)
        )


@dataclass(frozen=True, kw_only=True)
class RetentionConfig:
    """The rules of a root; the first that a memory meets decides about it."""

    rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InvalidSetting, with its text, for a rule that is none."""
        for rule in self.rules:
            parse_rule(rule)

    @property
    def parsed_rules(self) -> tuple[RetentionRule, ...]:
        """The rules, in order."""
        return tuple(map(parse_rule, self.rules))


@dataclass(frozen=True, kw_only=True)
class ExpiredMemory:
    """A memory that goes by `rule`, since it was saved or last accessed at `since`."""

    entry: Entry
    rule: RetentionRule
    since: datetime


def parse_rule(text: str) -> RetentionRule:
    """Return the rule. Raises `InvalidSetting` with what is wrong and how a rule is written."""
    match = _RULE_PATTERN.fullmatch(text)
    if match is None:
        raise InvalidSetting(f"rules: {text!r} is no rule; {_RULE_HINT}.")
    words = match["what"].split()
    if transcripts := words == ["transcripts"]:
        words = []
    found: dict[str, list[str]] = {}
    for word in words:
        condition = _CONDITION_PATTERN.fullmatch(word)
        if condition is None:
            raise InvalidSetting(f"rules: {word!r} is no condition; {_RULE_HINT}.")
        found.setdefault(condition[1].lower(), []).append(condition[2])
    if not transcripts and not found:
        raise InvalidSetting(f"rules: {text!r} would delete everything: name a kind, a tag or a scope.")
    if transcripts and match["unless"]:
        raise InvalidSetting(f"rules: {text!r}: a transcript is not accessed or confirmed.")
    after = timedelta(days=int(match["number"]) * _UNIT_DAYS[match["unit"].lower()])
    if not after:
        raise InvalidSetting(f"rules: {text!r} deletes at once: a memory is kept for at least a day.")
    return RetentionRule(
        text=" ".join(text.split()),
        after=after,
        kinds=frozenset(found.pop("kind", [])),
        tags=frozenset(tag.lstrip("#") for tag in found.pop("tag", [])),
        scope=tuple((name, value) for name, values in found.items() for value in values),
        unless=(match["unless"] or "").lower(),
        transcripts=transcripts,
    )


def find_expired_memories(
    entries: Iterable[tuple[Entry, datetime | None, datetime | None]],
    rules: Sequence[RetentionRule],
    *,
    now: datetime,
    own: Scope | None = None,
) -> list[ExpiredMemory]:
    """Return the memories that are past the time of the first rule they meet, in the order given.

    Each comes with when it was last accessed and last confirmed. One without a time of its own stays. `own` is the
    scope of the place in which all of them stand.
    """
    found = []
    for entry, accessed, confirmed in entries:
        rule = next((each for each in rules if each.matches(entry, own)), None)
        if rule is None or entry.time is None:
            continue
        later = {"accessed": accessed, "confirmed": confirmed}.get(rule.unless)
        since = max(entry.time, later) if later else entry.time
        if now - since > rule.after:
            found.append(ExpiredMemory(entry=entry, rule=rule, since=since))
    return found
