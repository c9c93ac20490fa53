"""Settings of curation: consolidation, the profile and how much of it a prompt shows, maintenance, and retention.

A retention rule is written as a line:

    kind=fact tag=errand: delete after 6 months unless accessed
    transcripts: delete after 2 years
    user=guest: delete after 30 days

Invariants: a configuration that exists can be carried out; a wrong value is refused with the name of its field. Without
a rule, no memory is deleted.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isfinite
from types import MappingProxyType
from typing import Literal

from ricordo.errors import InvalidSetting
from ricordo.messages.tokens import estimate_text
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.provider import validate_model_name
from ricordo.scope import Scope
from ricordo.workspace.documents import IndexBounds
from ricordo.workspace.entry import Entry
from ricordo.workspace.profile import CORRECTION, HISTORY_SUMMARIES, USER_SUMMARIES

__all__ = [
    "APPLY_MODE",
    "CHARACTERS_SLOT",
    "ConsolidationConfig",
    "ExpiredMemory",
    "InjectionConfig",
    "LEDGER_SLOT",
    "MEMORY_SLOT",
    "MaintenanceConfig",
    "PREVIEW_MODE",
    "ProfileConfig",
    "RetentionConfig",
    "RetentionRule",
    "TOKENS_SLOT",
    "find_expired_memories",
    "parse_rule",
]


APPLY_MODE, PREVIEW_MODE = "apply", "preview"
"""Whether a run that nobody watches is written, or waits until somebody approves of it."""
TOKENS_SLOT, CHARACTERS_SLOT = "{max_memory_tokens}", "{max_memory_characters}"
"""What a consolidation prompt holds where the budget is told."""
MEMORY_SLOT, LEDGER_SLOT = "{memory}", "{ledger}"
"""What a prompt may hold where MEMORY.md and the new entries go; without these they stand at its end."""
_SLOT = re.compile(r"\{[a-z_]+\}")
_MIN_INPUT_TOKENS = 3_000
_CONSOLIDATION_SHARES = ("min_confidence", "fact_confidence", "exact_confidence", "duplicate")
_AT_LEAST_ONE_SETTINGS = (
    "max_lines", "max_memory_tokens", "max_bytes", "index_characters", "signal_entries", "batch_entries",
    "subject_entries", "dream_sessions", "attempts",
)  # fmt: skip
_NOT_NEGATIVE_SETTINGS = ("min_gap", "max_superseded", "max_retired", "dream_hours", "idle_seconds")


@dataclass(frozen=True, kw_only=True)
class ConsolidationConfig:
    """How much curated memory holds, how often it is made, and what a model is asked for it.

    `max_lines`, `max_bytes` and `max_memory_tokens` bound MEMORY.md; tokens are those of the prompt, without the fields
    of entries. An entry of at most `index_characters` characters may stand in it, whatever its kind; a longer one goes
    to a topic. `min_gap` is the number of seconds between two runs that nobody asked for, `signal_entries` how many
    new entries make a run worthwhile. A run reads at most `batch_entries`. `min_confidence` (0..1) is what an
    extracted entry needs to be curated, `fact_confidence` what a plain fact needs that was said once, and
    `exact_confidence` what suffices for one that holds a number, an identifier or a title, or answers a question. Two
    entries whose content words are alike by `duplicate` (0..1) say the same. A name that `subject_entries` curated
    memories share can become a topic. One run supersedes at most `max_superseded` memories, and takes at most
    `max_retired` out of view that no other stands for, or a tenth of the curated ones, whichever is more.

    `model` is consolidation's own, a name or a model, else the agent's is asked; `offline` leaves it to the rules.
    `base_url` is where the model of this name is reached, `model_settings` what it is told.
    `consolidation_prompt` replaces the built-in instructions and holds `{max_memory_tokens}` and
    `{max_memory_characters}`, and `{memory}` and `{ledger}` where it wants them to stand. A request takes at most
    `seconds`, and `max_input_tokens` tokens; what does not fit is asked for in further ones. After `attempts` runs in a
    row whose answers were of no use the rules do it. With `mode` `preview` a run that nobody asked for is written only
    when somebody approves of it.

    All curated memory is read anew, in a dream, when the last time is `dream_hours` ago, `dream_sessions` other
    sessions changed since, and nobody has said anything for `idle_seconds`.
    """

    max_lines: int = IndexBounds.max_lines
    max_memory_tokens: int = IndexBounds.max_tokens
    max_bytes: int = IndexBounds.max_bytes
    index_characters: int = 150
    min_gap: float = 30 * 60.0
    signal_entries: int = 1
    batch_entries: int = 1_000
    min_confidence: float = 0.6
    fact_confidence: float = 0.65
    exact_confidence: float = 0.55
    duplicate: float = 0.8
    subject_entries: int = 3
    max_superseded: int = 20
    max_retired: int = 20
    model: str | ChatModel | None = None
    base_url: str | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    consolidation_prompt: str | None = None
    max_input_tokens: int = 16_000
    seconds: float = 120.0
    attempts: int = 3
    mode: str = APPLY_MODE
    dream_hours: float = 24.0
    dream_sessions: int = 5
    idle_seconds: float = 600.0

    def __post_init__(self) -> None:
        """Refuse shares outside 0..1, bounds below 1, an unknown mode, and a prompt that does not tell the budget."""
        for name in _CONSOLIDATION_SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSetting(f"{name} is a share between 0 and 1, not {getattr(self, name)!r}.")
        for name in _AT_LEAST_ONE_SETTINGS:
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} is a number of at least 1, not {getattr(self, name)!r}.")
        for name in _NOT_NEGATIVE_SETTINGS:
            if getattr(self, name) < 0:
                raise InvalidSetting(f"{name} can't be negative: {getattr(self, name)!r}.")
        if not 0 < self.seconds < math.inf:
            raise InvalidSetting(f"seconds is a number above 0, not {self.seconds!r}.")
        if self.mode not in {APPLY_MODE, PREVIEW_MODE}:
            raise InvalidSetting(f"mode is {APPLY_MODE} or {PREVIEW_MODE}, not {self.mode!r}.")
        validate_model_name(self.model, self.base_url, self.model_settings)
        if self.consolidation_prompt is not None:
            _check_prompt(self.consolidation_prompt)
        if self.max_input_tokens < self.min_tokens:
            raise InvalidSetting(
                f"max_input_tokens is a whole number of at least {self.min_tokens:,}, not {self.max_input_tokens!r}."
            )

    @property
    def bounds(self) -> IndexBounds:
        """What MEMORY.md may have."""
        return IndexBounds(max_lines=self.max_lines, max_bytes=self.max_bytes, max_tokens=self.max_memory_tokens)

    @property
    def min_tokens(self) -> int:
        """The least that `max_input_tokens` can be with this prompt."""
        prompt = estimate_text(self.consolidation_prompt) if self.consolidation_prompt else 0
        return max(_MIN_INPUT_TOKENS, 2 * prompt)


def _check_prompt(prompt: object) -> None:
    needed = {TOKENS_SLOT, CHARACTERS_SLOT}
    missing = sorted(needed if not isinstance(prompt, str) else {place for place in needed if place not in prompt})
    if missing or not isinstance(prompt, str):
        raise InvalidSetting(
            f"consolidation_prompt holds {TOKENS_SLOT} and {CHARACTERS_SLOT} where it tells the budget; this one"
            f" lacks {' and '.join(missing)}."
        )
    if unknown := sorted({*_SLOT.findall(prompt)} - needed - {MEMORY_SLOT, LEDGER_SLOT}):
        raise InvalidSetting(
            f"consolidation_prompt holds {TOKENS_SLOT}, {CHARACTERS_SLOT}, {MEMORY_SLOT} and {LEDGER_SLOT}, but nothing is"
            f" known for {', '.join(unknown)}."
        )


_SUMMARY_CHARACTERS: Mapping[str, int] = dict(
    zip((*USER_SUMMARIES, *HISTORY_SUMMARIES), (600, 600, 900, 2_000, 1_500, 1_000), strict=True)
)
_SUMMARY_INTERVALS: Mapping[str, float] = dict(zip(HISTORY_SUMMARIES, (30.0, 90.0, 90.0), strict=True))
_PROFILE_SHARES = ("fact_confidence_threshold", "correction_reserved_fraction", "duplicate_threshold")
_PROFILE_AT_LEAST_ONE = (
    "max_facts", "max_fact_characters", "max_message_characters", "staleness_age_days",
    "staleness_min_candidates", "staleness_max_reviewed", "staleness_max_lifetime_multiplier",
    "staleness_max_extension_days", "consolidation_max_groups_per_cycle", "conflict_attempts",
)  # fmt: skip
_MIN_PROMPT_TOKENS = 5_000
_PROFILE_NOT_NEGATIVE = ("correction_reserved_max", "eviction_audit_max_entries", "staleness_max_removals_per_cycle")


@dataclass(frozen=True, kw_only=True)
class ProfileConfig:
    """The rules of an update.

    Facts: `max_facts` are kept; a new one needs a confidence of `fact_confidence_threshold` (0..1) and has at most
    `max_fact_characters`. Two facts that are alike by `duplicate_threshold` (0..1, higher is stricter) are one. Beyond
    the cap the lowest rank goes to the archive: `fact_eviction_policy` ranks by `confidence` alone, or `hybrid`, by
    confidence, how recently and how often it was confirmed. Corrections have a share of the places of their own,
    `correction_reserved_fraction` of all, at most `correction_reserved_max`. The audit of what went keeps
    `eviction_audit_max_entries` ids and scores, 0 for none.

    Summaries: `summary_characters` bounds each; `summary_interval_days` is how many days stand between two texts of
    one, 0 or none for no wait.

    Requests: `max_prompt_tokens` bounds a whole request, `max_message_characters` one message in it, of which
    `truncation` keeps the `head` or `head_tail`. `prompt` replaces `MEMORY_UPDATE_PROMPT`. `conflict_attempts` is how
    often an update is tried when somebody else saves meanwhile.

    Staleness: a fact of no protected category that nobody confirmed for `staleness_age_days`, or for its own lifetime,
    is reviewed, at least `staleness_min_candidates` and at most `staleness_max_reviewed` at once, of which at most
    `staleness_max_removals_per_cycle` go. A lifetime that is given at first is at most
    `staleness_max_lifetime_multiplier` times the age; an extended one has at most `staleness_max_extension_days`.

    Merging of facts is off; with it a category of `consolidation_min_facts` has up to `consolidation_max_sources` of
    them made one, in at most `consolidation_max_groups_per_cycle` groups.
    """

    max_facts: int = 100
    fact_confidence_threshold: float = 0.7
    max_fact_characters: int = 1_000
    duplicate_threshold: float = 0.7
    fact_eviction_policy: Literal["hybrid", "confidence"] = "hybrid"
    correction_reserved_fraction: float = 0.10
    correction_reserved_max: int = 10
    eviction_audit_max_entries: int = 200
    summary_characters: Mapping[str, int] = field(default_factory=lambda: _SUMMARY_CHARACTERS)
    summary_interval_days: Mapping[str, float] = field(default_factory=lambda: _SUMMARY_INTERVALS)
    max_prompt_tokens: int = 12_000
    max_message_characters: int = 1_000
    truncation: Literal["head", "head_tail"] = "head_tail"
    prompt: str | None = None
    conflict_attempts: int = 3
    staleness_review_enabled: bool = True
    staleness_age_days: int = 90
    staleness_min_candidates: int = 3
    staleness_max_reviewed: int = 30
    staleness_max_removals_per_cycle: int = 10
    staleness_protected_categories: tuple[str, ...] = (CORRECTION,)
    staleness_max_lifetime_multiplier: int = 20
    staleness_max_extension_days: int = 3_650
    consolidation_enabled: bool = False
    consolidation_min_facts: int = 8
    consolidation_max_groups_per_cycle: int = 3
    consolidation_max_sources: int = 8

    def __post_init__(self) -> None:
        """Refuse shares outside 0..1, bounds below their least and words that are none of the choices."""
        for name in _PROFILE_SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSetting(f"{name} is a share between 0 and 1, not {getattr(self, name)!r}.")
        for least, names in ((1, _PROFILE_AT_LEAST_ONE), (0, _PROFILE_NOT_NEGATIVE)):
            for name in names:
                if getattr(self, name) < least:
                    raise InvalidSetting(f"{name} is a number of at least {least}, not {getattr(self, name)!r}.")
        for name in ("consolidation_min_facts", "consolidation_max_sources"):
            if getattr(self, name) < 2:
                raise InvalidSetting(f"{name} is a number of at least 2, not {getattr(self, name)!r}.")
        if self.max_prompt_tokens < _MIN_PROMPT_TOKENS:
            raise InvalidSetting(f"max_prompt_tokens is at least {_MIN_PROMPT_TOKENS}, not {self.max_prompt_tokens!r}.")
        if self.fact_eviction_policy not in {"hybrid", "confidence"}:
            raise InvalidSetting(f"fact_eviction_policy is hybrid or confidence, not {self.fact_eviction_policy!r}.")
        if self.truncation not in {"head", "head_tail"}:
            raise InvalidSetting(f"truncation is head or head_tail, not {self.truncation!r}.")
        self._check_summaries()

    def _check_summaries(self) -> None:
        known = {*USER_SUMMARIES, *HISTORY_SUMMARIES}
        for setting, least in (("summary_characters", 1), ("summary_interval_days", 0)):
            for name, value in getattr(self, setting).items():
                if name not in known:
                    raise InvalidSetting(f"{setting} knows no summary {name!r}: one of {', '.join(sorted(known))}.")
                if not isfinite(value) or value < least:
                    raise InvalidSetting(f"{setting} of {name} is a number of at least {least}, not {value!r}.")
            object.__setattr__(self, setting, MappingProxyType(dict(getattr(self, setting))))


_INJECTION_TOKEN_RANGE = (100, 8_000)
_GUARANTEED_TOKEN_RANGE = (50, 2_000)


@dataclass(frozen=True, kw_only=True)
class InjectionConfig:
    """What of a profile is shown.

    The block has at most `max_injection_tokens` tokens, 100 to 8,000. Facts of the `guaranteed_categories` have
    `guaranteed_token_budget` of them before all others, 50 to 2,000. With `placement` `system` it stands in the memory
    part of the system prompt, with `user_message` in a message of its own after the user's first one.
    """

    max_injection_tokens: int = 2_000
    guaranteed_categories: tuple[str, ...] = (CORRECTION,)
    guaranteed_token_budget: int = 500
    placement: Literal["system", "user_message"] = "system"

    def __post_init__(self) -> None:
        """Refuse numbers out of their range, one text for several categories, and any other place."""
        for name, (least, most) in (
            ("max_injection_tokens", _INJECTION_TOKEN_RANGE),
            ("guaranteed_token_budget", _GUARANTEED_TOKEN_RANGE),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidSetting(f"{name} is a whole number from {least} to {most:,}, not {value!r}.")
        categories: object = self.guaranteed_categories
        if not isinstance(categories, tuple) or not all(isinstance(each, str) for each in categories):
            raise InvalidSetting(f"guaranteed_categories are several texts, not {categories!r}.")
        if self.placement not in {"system", "user_message"}:
            raise InvalidSetting(f"placement is system or user_message, not {self.placement!r}.")


_MAX_INTERVAL = timedelta(days=3_660)


@dataclass(frozen=True, kw_only=True)
class MaintenanceConfig:
    """When a root is maintained; the names and the first three defaults are AgentScope's.

    A cycle runs every `interval`, whoever is alive then. A ledger that is older than `daily_file_retention_days`
    goes to the archive, once all of it is consolidated. The file of a session that ended more than
    `session_retention_days` ago goes to the trash, `announce_days` after that was announced, and is deleted
    `trash_days` later. None keeps for ever. Transcripts stay.
    """

    interval: timedelta = timedelta(hours=6)
    daily_file_retention_days: int | None = 90
    session_retention_days: int | None = 180
    announce_days: int = 7
    trash_days: int | None = 30

    def __post_init__(self) -> None:
        """Raise InvalidSetting for an interval or a retention that is not above 0."""
        if not isinstance(self.interval, timedelta) or not timedelta(0) < self.interval <= _MAX_INTERVAL:
            raise InvalidSetting(f"interval is a timedelta above 0 and of at most ten years, not {self.interval!r}.")
        for name in ("daily_file_retention_days", "session_retention_days", "trash_days"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidSetting(f"{name} is a number of at least 1, or none to keep for ever, not {value}.")
        if self.announce_days < 0:
            raise InvalidSetting(f"announce_days is a number of at least 0, not {self.announce_days}.")


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
