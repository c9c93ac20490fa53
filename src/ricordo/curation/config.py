"""Settings of curation: consolidation, profile updates, profile injection, maintenance, and retention.

A retention rule is one line:

    kind=fact tag=errand: delete after 6 months unless accessed
    transcripts: delete after 2 years
    user=guest: delete after 30 days
    kind=lesson: keep the newest 500
    tag=log: keep the newest 2 MB
    tag=case-7: hold by Legal

Invariants: a configuration object is always valid; a wrong value raises an error that names its field. Without a rule,
no memory is deleted.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from itertools import accumulate
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from ricordo.errors import InvalidSetting, LegalHold
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.tokens import estimate_text
from ricordo.models.config import ModelSettings, validate_model_name
from ricordo.scope import Scope
from ricordo.workspace.documents import IndexBounds
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import (
    CORRECTION,
    HISTORY_SUMMARIES,
    TRASH,
    USER_SUMMARIES,
    is_memory,
    ledger_date,
    parse_record_path,
)

if TYPE_CHECKING:
    from ricordo.models import ChatModel

__all__ = [
    "APPLY_MODE",
    "CHARACTERS_SLOT",
    "LEDGER_SLOT",
    "MEMORY_SLOT",
    "PREVIEW_MODE",
    "TOKENS_SLOT",
    "ConsolidationConfig",
    "ExpiredMemory",
    "InjectionConfig",
    "LegalHolds",
    "MaintenanceConfig",
    "ProfileConfig",
    "RetentionConfig",
    "RetentionRule",
    "find_expired_memories",
    "find_hold",
    "parse_rule",
]


APPLY_MODE, PREVIEW_MODE = "apply", "preview"
"""Whether a run that no user requested is written, or waits for approval."""
TOKENS_SLOT, CHARACTERS_SLOT = "{max_memory_tokens}", "{max_memory_characters}"
"""The placeholders for the budget in a consolidation prompt."""
MEMORY_SLOT, LEDGER_SLOT = "{memory}", "{ledger}"
"""The placeholders for MEMORY.md and the new entries in a prompt; both are appended to a prompt without them."""
_SLOT = lazy_compile(r"\{[a-z_]+\}")
_MIN_INPUT_TOKENS = 3_000
_CONSOLIDATION_SHARES = ("min_confidence", "fact_confidence", "exact_confidence", "duplicate")
_AT_LEAST_ONE_SETTINGS = (
    "max_lines", "max_memory_tokens", "max_bytes", "index_characters", "signal_entries", "batch_entries",
    "subject_entries", "dream_sessions", "attempts",
)  # fmt: skip
_NOT_NEGATIVE_SETTINGS = ("min_gap", "max_superseded", "max_retired", "dream_hours", "idle_seconds")


@dataclass(frozen=True, kw_only=True)
class ConsolidationConfig:
    """The size of curated memory, the schedule of consolidation, and the settings of its model.

    `max_lines`, `max_bytes` and `max_memory_tokens` bound MEMORY.md; tokens are counted as in the prompt, without the
    fields of entries. MEMORY.md holds entries of at most `index_characters` characters, of any kind; a longer entry
    goes to a topic. A run that no user requested needs `signal_entries` new entries, and starts at least `min_gap`
    seconds after the last run. A run reads at most `batch_entries`. `min_confidence` (0..1) is the least confidence of
    an extracted entry to be curated, `fact_confidence` that of a plain statement that was said once, and
    `exact_confidence` that of one that holds a name, a number, an identifier or a title, or answers a question. Two
    entries whose content words have a similarity of `duplicate` (0..1) are duplicates. A name that `subject_entries`
    curated memories share can become a topic. One run supersedes at most `max_superseded` memories. It retires at most
    `max_retired` memories that have no replacement, or a tenth of the curated ones, whichever is more.

    `model` is a name or a model for consolidation; without it the model of the agent is used. With `offline` the rules
    decide alone. `base_url` is the URL of a model given by name, `model_settings` are its settings.
    `consolidation_prompt` replaces the built-in instructions. It must hold `{max_memory_tokens}` and
    `{max_memory_characters}`, and may hold `{memory}` and `{ledger}`. A request takes at most `seconds` seconds and
    `max_input_tokens` tokens; further requests are made for the rest. After `attempts` runs in a row with unusable
    answers, the rules decide. With `mode` `preview`, a run that no user requested is written only after approval.

    A dream reads all curated memory again. It runs when the last dream is `dream_hours` ago, `dream_sessions` other
    sessions changed since then, and the last turn ended `idle_seconds` ago.
    """

    max_lines: int = IndexBounds.max_lines
    max_memory_tokens: int = IndexBounds.max_tokens
    max_bytes: int = IndexBounds.max_bytes
    index_characters: int = 150
    min_gap: float = 30 * 60.0
    signal_entries: int = 1
    batch_entries: int = 1_000
    min_confidence: float = 0.6
    fact_confidence: float = 0.7
    exact_confidence: float = 0.6
    duplicate: float = 0.8
    subject_entries: int = 3
    max_superseded: int = 20
    max_retired: int = 20
    model: "str | ChatModel | None" = None
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
        """Raise InvalidSetting for shares outside 0..1, too low bounds, an unknown mode or a prompt without budget."""
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
        """The bounds of MEMORY.md."""
        return IndexBounds(max_lines=self.max_lines, max_bytes=self.max_bytes, max_tokens=self.max_memory_tokens)

    @property
    def min_tokens(self) -> int:
        """The minimum of `max_input_tokens` with this prompt."""
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
            f"consolidation_prompt holds {TOKENS_SLOT}, {CHARACTERS_SLOT}, {MEMORY_SLOT} and {LEDGER_SLOT}, "
            f"but nothing is"
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
    """The rules of a profile update.

    Facts: the profile holds up to `max_facts`; a new fact needs a confidence of `fact_confidence_threshold` (0..1) and
    has at most `max_fact_characters`. Two facts with a similarity of `duplicate_threshold` (0..1, higher is stricter)
    are merged. Beyond the cap, the fact with the lowest rank goes to the archive: `fact_eviction_policy` ranks by
    `confidence` alone, or `hybrid`: by confidence, recency and number of confirmations. Some places are reserved for
    corrections: `correction_reserved_fraction` of all, at most `correction_reserved_max`. The audit of evicted facts
    holds `eviction_audit_max_entries` ids and scores, 0 for none.

    Summaries: `summary_characters` bounds each summary; `summary_interval_days` is the least number of days between two
    versions of one, 0 or missing for no wait.

    Requests: `max_prompt_tokens` bounds a whole request, `max_message_characters` one message in it; `truncation` says
    whether the `head` of a longer message stays, or `head_tail`. `prompt` replaces `MEMORY_UPDATE_PROMPT`.
    `conflict_attempts` is the number of times an update is tried when another writer saves meanwhile.

    Staleness: a fact outside the protected categories that was not confirmed for `staleness_age_days`, or for its own
    lifetime, is reviewed. A review takes at least `staleness_min_candidates` and at most `staleness_max_reviewed`
    facts, and removes at most `staleness_max_removals_per_cycle`. The first lifetime of a fact is at most
    `staleness_max_lifetime_multiplier` times `staleness_age_days`; an extended one is at most
    `staleness_max_extension_days`.

    Merging of facts is off by default. With it, up to `consolidation_max_sources` facts of a category that has at least
    `consolidation_min_facts` become one, in at most `consolidation_max_groups_per_cycle` groups.
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
        """Raise InvalidSetting for shares outside 0..1, numbers below their minimum and unknown choices."""
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
        known_summaries = {*USER_SUMMARIES, *HISTORY_SUMMARIES}
        for setting, least in (("summary_characters", 1), ("summary_interval_days", 0)):
            for name, value in getattr(self, setting).items():
                if name not in known_summaries:
                    raise InvalidSetting(
                        f"{setting} knows no summary {name!r}: one of {', '.join(sorted(known_summaries))}."
                    )
                if not isfinite(value) or value < least:
                    raise InvalidSetting(f"{setting} of {name} is a number of at least {least}, not {value!r}.")
            object.__setattr__(self, setting, MappingProxyType(dict(getattr(self, setting))))


_INJECTION_TOKEN_RANGE = (100, 8_000)
_GUARANTEED_TOKEN_RANGE = (50, 2_000)


@dataclass(frozen=True, kw_only=True)
class InjectionConfig:
    """How much of a profile a prompt shows.

    The block has at most `max_injection_tokens` tokens, 100 to 8,000. Of these, `guaranteed_token_budget` (50 to 2,000)
    are reserved for facts of the `guaranteed_categories`. With `placement` `system` the block is in the memory part of
    the system prompt, with `user_message` in a message of its own after the first message of the user.
    """

    max_injection_tokens: int = 2_000
    guaranteed_categories: tuple[str, ...] = (CORRECTION,)
    guaranteed_token_budget: int = 500
    placement: Literal["system", "user_message"] = "system"

    def __post_init__(self) -> None:
        """Raise InvalidSetting for numbers out of range, a single text as categories, or an unknown placement."""
        for name, (minimum, maximum) in (
            ("max_injection_tokens", _INJECTION_TOKEN_RANGE),
            ("guaranteed_token_budget", _GUARANTEED_TOKEN_RANGE),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
                raise InvalidSetting(f"{name} is a whole number from {minimum} to {maximum:,}, not {value!r}.")
        categories: object = self.guaranteed_categories
        if not isinstance(categories, tuple) or not all(isinstance(each, str) for each in categories):
            raise InvalidSetting(f"guaranteed_categories are several texts, not {categories!r}.")
        if self.placement not in {"system", "user_message"}:
            raise InvalidSetting(f"placement is system or user_message, not {self.placement!r}.")


_MAX_INTERVAL = timedelta(days=3_660)


@dataclass(frozen=True, kw_only=True)
class MaintenanceConfig:
    """The schedule of maintenance; the names and the first three defaults are AgentScope's.

    A cycle runs every `interval`, whichever process is running then. A ledger older than `daily_file_retention_days` is
    archived once all of it is consolidated. The file of a session that ended more than `session_retention_days` ago is
    moved to the trash, at least `announce_days` after an announcement, and deleted `trash_days` later. None means
    never. Transcripts are not touched.
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


_RULE_PATTERN = lazy_compile(
    r"\s*(?P<what>[^:]*?)\s*:\s*(?:"
    r"delete\s+after\s+(?P<number>\d{1,5})\s+(?P<unit>day|week|month|year)s?"
    r"(?:\s+unless\s+(?P<unless>accessed|confirmed))?"
    r"|keep\s+(?:the\s+)?newest\s+(?P<most>\d{1,9})(?:\s*(?P<size>kB|MB))?"
    r"|hold\s+by\s+(?P<holder>\S.{0,99}?)"
    r")\s*\.?\s*",
    re.IGNORECASE,
)
_CONDITION_PATTERN = lazy_compile(r"(kind|tag|tenant|user|team|project|agent)=(\S+)", re.IGNORECASE)
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_SIZE_BYTES = {"kb": 1_000, "mb": 1_000_000}
_RULE_HINT = "write it like: kind=fact tag=errand: delete after 6 months unless accessed"


@dataclass(frozen=True, kw_only=True)
class RetentionRule:
    """A rule about the memories that meet all conditions, or about `transcripts`.

    It deletes them once they are older than `after`, or all but the newest `most_entries`, or all but the newest that
    have at most `most_bytes` of content together; or, with a `holder`, forbids that they are deleted. `scope` names
    parts of a scope, such as the user. With `unless`, the time counts from when a memory was last `accessed` (used or
    confirmed) or `confirmed`, if that is later than when it was saved.
    """

    text: str
    after: timedelta | None = None
    kinds: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    scope: Sequence[tuple[str, str]] = ()
    unless: str = ""
    transcripts: bool = False
    most_entries: int | None = None
    most_bytes: int | None = None
    holder: str = ""

    def matches(self, entry: Entry, own: Scope | None = None) -> bool:
        """Tell whether a memory meets every condition; a pinned memory matches only the rule of a holder.

        `own` is the scope of its root, which holds for every memory there.
        """
        if self.transcripts or (entry.pinned and not self.holder):
            return False
        parts = {name: value for scope in (own, entry.scope) if scope for name, value in scope.parts().items()}
        return (
            (not self.kinds or entry.kind in self.kinds)
            and self.tags <= frozenset(entry.tags)
            and all(parts.get(name) == value for name, value in self.scope)
        )


@dataclass(frozen=True, kw_only=True)
class RetentionConfig:
    """The retention rules of a root; the first rule that a memory matches decides, but a hold goes before all."""

    rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InvalidSetting, with the text of the rule, for an invalid rule."""
        for rule in self.rules:
            parse_rule(rule)

    @property
    def parsed_rules(self) -> tuple[RetentionRule, ...]:
        """The rules, in order."""
        return tuple(map(parse_rule, self.rules))

    def find_holds(self, scope: Scope | None) -> "LegalHolds | None":
        """Return the holds on the memory of the root of `scope`; None without any."""
        return LegalHolds.of(self.parsed_rules, scope) if self.rules else None


@dataclass(frozen=True, kw_only=True)
class LegalHolds:
    """The rules that hold memories and transcripts of the root of `scope`: what they cover can't be deleted."""

    rules: Sequence[RetentionRule]
    scope: Scope | None = None

    @classmethod
    def of(cls, rules: Iterable[RetentionRule], scope: Scope | None) -> "LegalHolds | None":
        """Return the holds among `rules`; None if there are none."""
        holding = [rule for rule in rules if rule.holder]
        return cls(rules=holding, scope=scope) if holding else None

    @property
    def of_transcripts(self) -> RetentionRule | None:
        """The rule that holds every transcript; None if none does."""
        return next((rule for rule in self.rules if rule.transcripts), None)

    def require_free(self, entries: Iterable[Entry]) -> None:
        """Raise LegalHold if one of these entries is held."""
        for entry in entries:
            if rule := find_hold(entry, self.rules, self.scope):
                raise _refusal(f"The memory {entry.id}", rule)

    def check(self, act: str, contents: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Raise LegalHold if a change deletes what is held: memories, transcripts, or anything in the trash.

        `contents` are each file's path and what it holds before and after. An undo deletes what leaves a ledger.
        """
        if act not in _DELETING_ACTS:
            return
        for path, before, after in contents:
            record = parse_record_path(path)
            if record and record.kind == "transcript" and before and not after and self.of_transcripts:
                raise _refusal(f"The transcript of {record.session}", self.of_transcripts)
            if path.startswith(f"{TRASH}/") and before and not after and path.count("/") > TRASH.count("/") + 1:
                raise _refusal("What is in the trash", self.rules[0])
        memories = [row for row in contents if (is_memory if act != "undo" else ledger_date)(row[0])]
        kept = {one.entry.id for path, _, after in memories for one in parse_entries(after, path)}
        self.require_free(
            one.entry for path, before, _ in memories for one in parse_entries(before, path) if one.entry.id not in kept
        )


def _refusal(what: str, rule: RetentionRule) -> LegalHold:
    return LegalHold(
        f'{what} can\'t be deleted: {rule.holder} holds it by the rule "{rule.text}". To lift the hold, remove that '
        "rule from `retention.rules` in config.toml."
    )


_DELETING_ACTS = frozenset({"forget", "prune", "delete", "undo"})


@dataclass(frozen=True, kw_only=True)
class ExpiredMemory:
    """A memory that `rule` deletes; it was saved or last accessed at `since`."""

    entry: Entry
    rule: RetentionRule
    since: datetime


def parse_rule(text: str) -> RetentionRule:
    """Return the rule. Raises `InvalidSetting`, which says what is wrong and how to write a rule."""
    match = _RULE_PATTERN.fullmatch(text)
    if match is None:
        raise InvalidSetting(f"rules: {text!r} is no rule; {_RULE_HINT}.")
    words = match["what"].split()
    if transcripts := words == ["transcripts"]:
        words = []
    options: dict[str, list[str]] = {}
    for word in words:
        condition = _CONDITION_PATTERN.fullmatch(word)
        if condition is None:
            raise InvalidSetting(f"rules: {word!r} is no condition; {_RULE_HINT}.")
        options.setdefault(condition[1].lower(), []).append(condition[2])
    if not transcripts and not options:
        effect = "hold" if match["holder"] else "delete"
        raise InvalidSetting(f"rules: {text!r} would {effect} everything: name a kind, a tag or a scope.")
    if transcripts and match["unless"]:
        raise InvalidSetting(f"rules: {text!r}: a transcript is not accessed or confirmed.")
    if transcripts and match["most"]:
        raise InvalidSetting(f"rules: {text!r}: transcripts are deleted by their age alone.")
    after = timedelta(days=int(match["number"]) * _UNIT_DAYS[match["unit"].lower()]) if match["number"] else None
    most = int(match["most"]) * _SIZE_BYTES.get((match["size"] or "").lower(), 1) if match["most"] else None
    if 0 in {most, None if after is None else after.days}:
        raise InvalidSetting(f"rules: {text!r} deletes at once: keep a memory for at least a day, and at least one.")
    return RetentionRule(
        text=" ".join(text.split()),
        after=after,
        most_entries=None if match["size"] else most,
        most_bytes=most if match["size"] else None,
        holder=" ".join((match["holder"] or "").split()),
        kinds=frozenset(options.pop("kind", [])),
        tags=frozenset(tag.lstrip("#") for tag in options.pop("tag", [])),
        scope=tuple((name, value) for name, values in options.items() for value in values),
        unless=(match["unless"] or "").lower(),
        transcripts=transcripts,
    )


def find_expired_memories(
    entries: Iterable[tuple[Entry, datetime | None, datetime | None]],
    rules: Sequence[RetentionRule],
    *,
    now: datetime,
    root_scope: Scope | None = None,
) -> list[ExpiredMemory]:
    """Return the memories that the first rule they match deletes now, without those that a rule holds.

    Those past their time are in the order given, then those beyond a number or a size, newest first. Each memory comes
    with the times when it was last accessed and last confirmed. One without a time of its own never expires.
    `root_scope` is the scope of the root that holds them.
    """
    expired: list[ExpiredMemory] = []
    ranked: dict[RetentionRule, list[ExpiredMemory]] = {}
    for entry, accessed, confirmed in entries:
        rule = find_hold(entry, rules, root_scope) or next(
            (each for each in rules if each.matches(entry, root_scope)), None
        )
        if rule is None or rule.holder or entry.time is None:
            continue
        later = {"accessed": accessed, "confirmed": confirmed}.get(rule.unless)
        since = max(entry.time, later) if later else entry.time
        memory = ExpiredMemory(entry=entry, rule=rule, since=since)
        if rule.after is None:
            ranked.setdefault(rule, []).append(memory)
        elif now - since > rule.after:
            expired.append(memory)
    return expired + [each for rule, memories in ranked.items() for each in _exceeding(rule, memories)]


def _exceeding(rule: RetentionRule, memories: Sequence[ExpiredMemory]) -> list[ExpiredMemory]:
    """Return the memories beyond the number or the size of `rule`, from the newest on; the newest one always stays."""
    newest_first = sorted(memories, key=lambda each: (each.since, each.entry.id), reverse=True)
    sizes = accumulate(len(each.entry.content.encode()) for each in newest_first)
    return [
        each
        for number, (each, size) in enumerate(zip(newest_first, sizes, strict=True), start=1)
        if number > 1 and (number > (rule.most_entries or number) or size > (rule.most_bytes or size))
    ]


def find_hold(entry: Entry, rules: Iterable[RetentionRule], root_scope: Scope | None = None) -> RetentionRule | None:
    """Return the first rule that holds an entry; None if it may be deleted."""
    return next((rule for rule in rules if rule.holder and rule.matches(entry, root_scope)), None)
