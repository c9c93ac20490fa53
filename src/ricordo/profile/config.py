"""How a profile is updated: its bounds, its intervals, and the two reviews of what it holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Literal

from ricordo.errors import InvalidSetting
from ricordo.workspace.profile import CORRECTION, HISTORY_SUMMARIES, USER_SUMMARIES

__all__ = ["ProfileConfig"]

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
