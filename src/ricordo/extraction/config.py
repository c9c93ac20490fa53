"""Settings of extraction: what the rules keep, and when and how a model is asked.

Invariant: a configuration that exists can be carried out; a wrong value is refused with the name of its field.
"""

import math
import re
from dataclasses import dataclass, field

from ricordo.errors import InvalidSetting
from ricordo.messages.tokens import estimate_text
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.provider import validate_model_name

__all__ = [
    "ALWAYS",
    "FlushConfig",
    "LEDGER_PLACEHOLDER",
    "MEMORY_PLACEHOLDER",
    "MESSAGES_PLACEHOLDER",
    "NEVER",
    "RuleExtractionConfig",
    "throttle_trigger",
]


ALWAYS = "always"
"""What is said is extracted whenever the inbox gets to it."""
NEVER = "never"
"""Nothing is extracted, by nobody."""
MESSAGES_PLACEHOLDER = "{messages}"
"""What a flush prompt holds where the conversation goes."""
MEMORY_PLACEHOLDER, LEDGER_PLACEHOLDER = "{memory}", "{ledger}"
"""What a flush prompt may hold where MEMORY.md and the ledgers go; without these they stand before the conversation."""
_RULES_MODEL = "offline"
_THROTTLE_PATTERN = re.compile(r"throttled\((\d{1,9}(?:\.\d{1,6})?)\)")
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
_MIN_TOKENS = 1_500
_MAX_ATTEMPTS = 4


def throttle_trigger(min_gap: float) -> str:
    """Return the trigger by which at least `min_gap` seconds lie between two flushes of one scope; 0 is `ALWAYS`.

    Raises: InvalidSetting for None, a negative number, and what is none.
    """
    if not _is_number(min_gap) or not 0 <= min_gap < math.inf:
        raise InvalidSetting(f"The least gap between flushes is a number of seconds of at least 0, not {min_gap!r}.")
    return f"throttled({min_gap:.6f})" if min_gap else ALWAYS


@dataclass(frozen=True, kw_only=True)
class RuleExtractionConfig:
    """How much extraction keeps.

    `min_salience` is the score (see `ricordo.extraction.selection`) below which a statement without a cue of its own is
    dropped; higher keeps less. `min_confidence` (0..1) drops findings after scoring. `max_entry_chars` bounds one
    finding's statements, `max_sentence_chars` is the length above which a sentence is taken for a paste, and
    `max_message_chars` the length above which only the first and last paragraph of a message are read.
    `assistant_trust` (0..1) multiplies the confidence of what an assistant without a name said; 0 leaves it out.
    """

    min_salience: float = 1.1
    min_confidence: float = 0.3
    max_entry_chars: int = 700
    max_sentence_chars: int = 500
    max_message_chars: int = 6_000
    assistant_trust: float = 0.6

    def __post_init__(self) -> None:
        """Refuse shares outside 0..1 and lengths below 1."""
        for name in ("min_confidence", "assistant_trust"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSetting(f"{name} is a share between 0 and 1, not {getattr(self, name)!r}.")
        for name in ("max_entry_chars", "max_sentence_chars", "max_message_chars"):
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} is a number of characters of at least 1, not {getattr(self, name)!r}.")


@dataclass(frozen=True, kw_only=True)
class FlushConfig:
    """When what was said is extracted, and what a model is asked for it.

    `flush_trigger` is `ALWAYS`, `NEVER`, or `throttle_trigger(seconds)`: what comes sooner waits out the gap in the inbox.
    `flush_prompt` replaces the built-in instructions and holds `{messages}`, and `{memory}` and `{ledger}` where it
    wants them to stand. `model` is the flush's own, a name or a model, else the agent's is asked; `offline` lets the
    rules extract what no summary learned from. `base_url` is where the model of this name is reached, `model_settings`
    what it is told.

    A request has at most `max_input_tokens` tokens in all; what does not fit is asked for in further ones. `reference`
    says which ledgers it carries beside MEMORY.md: that of `today`, or `all` as far as there is room. Of a message of
    more than `head_tail` characters the first and the last are shown, half of that each; 0 shows it whole. A
    request takes at most `flush_seconds`. After `attempts` tries of the inbox in which the model did not answer, 1 to
    4, the rules extract. When memory is closed, what waits is worked off for at most `closing_seconds`; the rest is
    taken up when it is opened again.
    """

    flush_trigger: str = ALWAYS
    flush_prompt: str | None = None
    model: str | ChatModel | None = None
    base_url: str | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    reference: str = "today"
    max_input_tokens: int = 16_000
    head_tail: int = 4_000
    flush_seconds: float = 60.0
    attempts: int = 3
    closing_seconds: float = 2.0

    def __post_init__(self) -> None:
        """Refuse an unknown trigger or reference, a prompt without a place for the messages, and impossible sizes."""
        if not isinstance(self.flush_trigger, str) or not self._is_trigger_valid():
            raise InvalidSetting(f"flush_trigger is always, never or throttled(seconds), not {self.flush_trigger!r}.")
        if self.min_gap == 0 and self.flush_trigger not in {ALWAYS, NEVER}:
            object.__setattr__(self, "flush_trigger", ALWAYS)
        validate_model_name(self.model, self.base_url, self.model_settings)
        if self.reference not in {"today", "all"}:
            raise InvalidSetting(f"reference is today or all, not {self.reference!r}.")
        for name, least, most in (
            ("max_input_tokens", _MIN_TOKENS, None),
            ("head_tail", 0, None),
            ("attempts", 1, _MAX_ATTEMPTS),
        ):
            _check_integer(name, getattr(self, name), least, most)
        if self.flush_prompt is not None:
            _check_prompt(self.flush_prompt)
            if self.max_input_tokens < self.min_input_tokens:
                raise InvalidSetting("flush_prompt takes at most half of max_input_tokens; this one is longer.")
        if not _is_number(self.closing_seconds) or not 0 <= self.closing_seconds < math.inf:
            raise InvalidSetting(f"closing_seconds is a number of at least 0, not {self.closing_seconds!r}.")
        if not _is_number(self.flush_seconds) or not 0 < self.flush_seconds < math.inf:
            raise InvalidSetting(f"flush_seconds is a number above 0, not {self.flush_seconds!r}.")

    @property
    def min_gap(self) -> float:
        """How many seconds lie at least between two flushes of one scope."""
        found = _THROTTLE_PATTERN.fullmatch(self.flush_trigger)
        return float(found[1]) if found else 0.0

    @property
    def is_enabled(self) -> bool:
        """Whether anything is extracted."""
        return self.flush_trigger != NEVER

    @property
    def min_input_tokens(self) -> int:
        """The least that `max_input_tokens` can be with this prompt."""
        prompt = estimate_text(self.flush_prompt) if self.flush_prompt else 0
        return max(_MIN_TOKENS, 2 * prompt)

    @property
    def has_own_request(self) -> bool:
        """Whether a flush is asked for in a way of its own, so that no other request can do it too."""
        return self.flush_prompt is not None or self.model not in {None, _RULES_MODEL}

    def _is_trigger_valid(self) -> bool:
        return self.flush_trigger in {ALWAYS, NEVER} or _THROTTLE_PATTERN.fullmatch(self.flush_trigger) is not None


def _check_prompt(prompt: object) -> None:
    if not isinstance(prompt, str) or MESSAGES_PLACEHOLDER not in prompt:
        raise InvalidSetting(
            f"flush_prompt holds {MESSAGES_PLACEHOLDER} where the conversation goes; this one does not."
        )
    unknown = sorted({*_PLACEHOLDER.findall(prompt)} - {MESSAGES_PLACEHOLDER, MEMORY_PLACEHOLDER, LEDGER_PLACEHOLDER})
    if unknown:
        raise InvalidSetting(
            f"flush_prompt holds {MESSAGES_PLACEHOLDER}, {MEMORY_PLACEHOLDER} and {LEDGER_PLACEHOLDER}, but nothing is known for {', '.join(unknown)}."
        )


def _check_integer(name: str, value: object, least: int, most: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        bound = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidSetting(f"{name} is a whole number {bound}, not {value!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
