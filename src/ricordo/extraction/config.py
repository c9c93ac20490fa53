"""Settings of extraction: how much the rules keep, and when and how a model is called.

Invariant: every constructed configuration is valid. An invalid value raises `InvalidSetting` and names its field.
"""

import math
from dataclasses import field
from typing import TYPE_CHECKING

from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.tokens import estimate_text
from ricordo.models.config import ModelSettings, validate_model_name

if TYPE_CHECKING:
    from ricordo.models import ChatModel

__all__ = [
    "ALWAYS",
    "LEDGER_PLACEHOLDER",
    "MEMORY_PLACEHOLDER",
    "MESSAGES_PLACEHOLDER",
    "NEVER",
    "FlushConfig",
    "RuleExtractionConfig",
    "throttle_trigger",
]


ALWAYS = "always"
"""Messages are extracted whenever the inbox processes them."""
NEVER = "never"
"""Nothing is extracted, neither by a model nor by rules."""
MESSAGES_PLACEHOLDER = "{messages}"
"""Placeholder in a flush prompt that is replaced by the conversation."""
MEMORY_PLACEHOLDER, LEDGER_PLACEHOLDER = "{memory}", "{ledger}"
"""Optional placeholders in a flush prompt for MEMORY.md and the ledgers. If missing, both precede the conversation."""
_RULES_MODEL = "offline"
_THROTTLE_PATTERN = lazy_compile(r"throttled\((\d{1,9}(?:\.\d{1,6})?)\)")
_PLACEHOLDER = lazy_compile(r"\{[a-z_]+\}")
_MIN_TOKENS = 1_500
_MAX_ATTEMPTS = 4


def throttle_trigger(min_gap: float) -> str:
    """Return the trigger for at least `min_gap` seconds between two flushes of one scope; 0 gives `ALWAYS`.

    Raises: InvalidSetting if `min_gap` is not a finite number of at least 0.
    """
    if not _is_number(min_gap) or not 0 <= min_gap < math.inf:
        raise InvalidSetting(f"The least gap between flushes is a number of seconds of at least 0, not {min_gap!r}.")
    return f"throttled({min_gap:.6f})" if min_gap else ALWAYS


@dataclass(frozen=True, kw_only=True)
class RuleExtractionConfig:
    """Thresholds and limits of rule-based extraction.

    `min_relevance` (0..1) is the score of the relevance model below which a statement to or of an agent is dropped, and
    `min_salience` the score (see `ricordo.extraction.selection`) below which a message among people is; a higher value
    keeps less. `min_confidence` (0..1) drops findings after scoring. `max_entry_chars` limits
    the statements of one finding. A sentence longer than `max_sentence_chars` is treated as pasted text. Of a message
    longer than `max_message_chars`, only the first and last paragraph are read. `assistant_trust` (0..1) multiplies the
    confidence of statements by a nameless assistant; 0 ignores them.
    """

    min_relevance: float = 0.45
    min_salience: float = 1.1
    min_confidence: float = 0.3
    max_entry_chars: int = 700
    max_sentence_chars: int = 500
    max_message_chars: int = 6_000
    assistant_trust: float = 0.6

    def __post_init__(self) -> None:
        """Reject shares outside 0..1 and lengths below 1."""
        for name in ("min_relevance", "min_confidence", "assistant_trust"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSetting(f"{name} is a share between 0 and 1, not {getattr(self, name)!r}.")
        for name in ("max_entry_chars", "max_sentence_chars", "max_message_chars"):
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} is a number of characters of at least 1, not {getattr(self, name)!r}.")


@dataclass(frozen=True, kw_only=True)
class FlushConfig:
    """When messages are extracted, and how a model is called for it.

    `flush_trigger` is `ALWAYS`, `NEVER`, or `throttle_trigger(seconds)`; earlier flushes wait in the inbox until the
    gap has passed. `flush_prompt` replaces the built-in instructions and must contain `{messages}`; it may contain
    `{memory}` and `{ledger}`. `model` is used for flushes, a name or a model; by default the agent's model is used.
    With `offline`, rules extract from the messages that no summary has extracted from. `base_url` and `model_settings`
    apply to a model given by name.

    A request has at most `max_input_tokens` tokens in total; longer input is split over several requests. `reference`
    says which ledgers it includes besides MEMORY.md: that of `today`, or `all` as far as they fit. A message of more
    than `head_tail` characters is cut to its beginning and end, half of that each; 0 never cuts. A request takes at
    most `flush_seconds`. After `attempts` failed tries of the inbox, 1 to 4, the rules extract. When memory is closed,
    the inbox is processed for at most `closing_seconds`; the rest follows when it is opened again.
    """

    flush_trigger: str = ALWAYS
    flush_prompt: str | None = None
    model: "str | ChatModel | None" = None
    base_url: str | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    reference: str = "today"
    max_input_tokens: int = 16_000
    head_tail: int = 4_000
    flush_seconds: float = 60.0
    attempts: int = 3
    closing_seconds: float = 2.0

    def __post_init__(self) -> None:
        """Reject an unknown trigger or reference, a prompt without its placeholder, and impossible sizes."""
        if not isinstance(self.flush_trigger, str) or not self._is_trigger_valid():
            raise InvalidSetting(f"flush_trigger is always, never or throttled(seconds), not {self.flush_trigger!r}.")
        if self.min_gap == 0 and self.flush_trigger not in {ALWAYS, NEVER}:
            object.__setattr__(self, "flush_trigger", ALWAYS)
        validate_model_name(self.model, self.base_url, self.model_settings)
        if self.reference not in {"today", "all"}:
            raise InvalidSetting(f"reference is today or all, not {self.reference!r}.")
        for name, minimum, maximum in (
            ("max_input_tokens", _MIN_TOKENS, None),
            ("head_tail", 0, None),
            ("attempts", 1, _MAX_ATTEMPTS),
        ):
            _check_integer(name, getattr(self, name), minimum, maximum)
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
        """The minimum number of seconds between two flushes of one scope."""
        match = _THROTTLE_PATTERN.fullmatch(self.flush_trigger)
        return float(match[1]) if match else 0.0

    @property
    def is_enabled(self) -> bool:
        """Whether extraction is enabled."""
        return self.flush_trigger != NEVER

    @property
    def min_input_tokens(self) -> int:
        """The smallest allowed `max_input_tokens` for this prompt."""
        prompt = estimate_text(self.flush_prompt) if self.flush_prompt else 0
        return max(_MIN_TOKENS, 2 * prompt)

    @property
    def has_own_request(self) -> bool:
        """Whether flushes use their own prompt or model, so that no other request can serve them too."""
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
            f"flush_prompt holds {MESSAGES_PLACEHOLDER}, {MEMORY_PLACEHOLDER} and {LEDGER_PLACEHOLDER}, but "
            f"nothing is known for {', '.join(unknown)}."
        )


def _check_integer(name: str, value: object, minimum: int, maximum: int | None) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < minimum
        or (maximum is not None and value > maximum)
    ):
        bound = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise InvalidSetting(f"{name} is a whole number {bound}, not {value!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
