"""Settings of consolidation.

Invariant: a configuration that exists can be carried out; what can't be is refused when it is made, by its field.
"""

import math
import re
from dataclasses import dataclass, field

from ricordo.errors import InvalidSetting
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.naming import validate_model_name
from ricordo.tokens import estimate_text
from ricordo.workspace.index_bounds import IndexBounds

__all__ = [
    "APPLY_MODE",
    "CHARACTERS_SLOT",
    "TOKENS_SLOT",
    "LEDGER_SLOT",
    "MEMORY_SLOT",
    "PREVIEW_MODE",
    "ConsolidationConfig",
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
