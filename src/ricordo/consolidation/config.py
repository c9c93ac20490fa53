"""Settings of consolidation."""

from dataclasses import dataclass

from ricordo.errors import InvalidSetting

__all__ = ["ConsolidationConfig"]


@dataclass(frozen=True, kw_only=True)
class ConsolidationConfig:
    """How much curated memory holds and how often it is made.

    `max_lines`, `max_bytes` and `max_tokens` bound MEMORY.md; tokens are those of the prompt, without the fields of
    entries. An entry of at most `index_characters` characters may stand in it, whatever its kind; a longer one goes
    to a topic. `min_gap` is the number of seconds between two runs that nobody asked for, `signal_entries` how many
    new entries make a run worthwhile. A run reads at most `batch_entries`. `min_confidence` (0..1) is what an
    extracted entry needs to be curated, `fact_confidence` what a plain fact needs that was said once. Two entries
    whose content words are alike by `duplicate` (0..1) say the same. A name that `subject_entries`
    curated memories share can become a topic. One run supersedes at most `max_superseded` memories or a tenth of
    the curated ones, whichever is more.
    """

    max_lines: int = 200
    max_tokens: int = 4_000
    max_bytes: int = 25_000
    index_characters: int = 150
    min_gap: float = 30 * 60.0
    signal_entries: int = 1
    batch_entries: int = 1_000
    min_confidence: float = 0.6
    fact_confidence: float = 0.7
    duplicate: float = 0.8
    subject_entries: int = 3
    max_superseded: int = 20

    def __post_init__(self) -> None:
        """Refuse shares outside 0..1 and bounds below 1."""
        for name in ("min_confidence", "fact_confidence", "duplicate"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSetting(f"{name} is a share between 0 and 1, not {getattr(self, name)!r}.")
        counted = (
            "max_lines", "max_tokens", "max_bytes", "index_characters", "signal_entries", "batch_entries",
            "subject_entries",
        )  # fmt: skip
        for name in counted:
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} is a number of at least 1, not {getattr(self, name)!r}.")
        for name in ("min_gap", "max_superseded"):
            if getattr(self, name) < 0:
                raise InvalidSetting(f"{name} can't be negative: {getattr(self, name)!r}.")
