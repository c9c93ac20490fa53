"""The profile: what is known of a user in three levels, as one value; the codec of `profile.json` stands beside it.

The user level (work, personal, top of mind) follows each dialogue, history (recent, earlier, background) changes
seldom, and facts stay. Times are kept as they were written, so that nothing of another system's export is lost;
`parse_profile_time` reads them.

Invariant: what a document holds that has no name here stands in `extra`, and goes back where it came from.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count

from ricordo.messages.types import JsonValue

__all__ = [
    "CATEGORIES",
    "CORRECTION",
    "FACT_ID_PREFIX",
    "HISTORY_SUMMARIES",
    "USER_SUMMARIES",
    "Fact",
    "FactSource",
    "Profile",
    "ProfileSummary",
    "create_fact_id",
    "parse_profile_time",
    "create_profile",
    "format_profile_time",
]

FACT_ID_PREFIX = "fact_"
"""How the id of a fact begins."""
USER_SUMMARIES = ("workContext", "personalContext", "topOfMind")
"""The summaries of the user level, by their names in the document."""
HISTORY_SUMMARIES = ("recentMonths", "earlierContext", "longTermBackground")
"""The summaries of the history level, by their names in the document."""
CORRECTION = "correction"
"""The category of what a user set right."""
CATEGORIES = ("preference", "knowledge", "context", "behavior", "goal", CORRECTION)
"""The categories that have a name; any other one is kept as it is."""


@dataclass(frozen=True, kw_only=True)
class ProfileSummary:
    """One of the six summaries: its text, empty when nothing is known, and when it was written."""

    summary: str = ""
    updated_at: str = ""
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FactSource:
    """Where a fact comes from: a `thread` (session), or who gave it: manual, import, consolidation, unknown.

    `messages` are the ids of the messages it rests on, `quote` words that stand in the first of them.
    """

    thread: str = "unknown"
    messages: tuple[str, ...] = ()
    quote: str = ""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that is known. `confidence` is in 0..1, higher is surer; it counts as confirmed `confirmations` times.

    `source_error` says what was wrong before, for a correction. `valid_days` is how long it is expected to hold from
    its last confirmation on, None for no end of its own. `merged_from` are the ids of the facts it stands for.
    `revision` counts its changes, from 1 on. A `pinned` one and one that a person gave (`source.thread` is `manual`)
    is never dropped by itself.
    """

    id: str
    content: str = ""
    category: str = "context"
    confidence: float = 0.5
    created_at: str = ""
    updated_at: str = ""
    source: FactSource = field(default_factory=FactSource)
    source_error: str | None = None
    valid_days: int | None = None
    confirmed_at: str = ""
    confirmations: int = 1
    reviewed_at: str = ""
    merged_from: tuple[str, ...] = ()
    pinned: bool = False
    revision: int = 1
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def is_protected(self) -> bool:
        """Whether only a person may remove it."""
        return self.pinned or self.source.thread == "manual"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What is known of one user. `summaries` holds the six by their names in the document; `facts` are oldest first.

    `revision` counts the saves of the document, 0 for one that was never saved.
    """

    version: str = "1.0"
    revision: int = 0
    last_updated: str = ""
    summaries: Mapping[str, ProfileSummary] = field(
        default_factory=lambda: {name: ProfileSummary() for name in (*USER_SUMMARIES, *HISTORY_SUMMARIES)}
    )
    facts: tuple[Fact, ...] = ()
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    def find_fact(self, fact_id: str) -> Fact | None:
        """Return the fact with this id; None when there is none."""
        return next((fact for fact in self.facts if fact.id == fact_id), None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is known."""
        return not self.facts and not any(each.summary.strip() for each in self.summaries.values())


def create_profile(now: datetime) -> Profile:
    """Return the profile of somebody of whom nothing is known yet; it shares nothing with another one."""
    return Profile(last_updated=format_profile_time(now))


def create_fact_id(content: str, taken: Collection[str]) -> str:
    """Return an id for a fact that says this: `fact_` and 8 hex digits, none of those that are `taken`.

    The same content gets the same id as long as that is free.
    """
    said = content.encode("utf-8", "surrogatepass")
    found = (f"{FACT_ID_PREFIX}{blake2b(b'%d:' % attempt + said, digest_size=4).hexdigest()}" for attempt in count())
    return next(each for each in found if each not in taken)


def parse_profile_time(written_time: str) -> datetime | None:
    """Return a time as it was written, in UTC; one without a zone is UTC, and None is what can't be read."""
    try:
        found = datetime.fromisoformat(written_time.strip())
    except ValueError:
        return None
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        return None


def format_profile_time(moment: datetime) -> str:
    """Return a time as the document has it: UTC, ISO 8601 with a Z at its end."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
