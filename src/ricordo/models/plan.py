"""Whether a failed call to a model is tried again, and after which pause.

Invariant: what would fail again in the same way (an overflow, a refusal, a missing key) is never tried again, and the
pauses of one call stay within the config's total.
"""

from dataclasses import dataclass

from ricordo.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable, ReplyInvalid
from ricordo.models.config import RetryConfig

__all__ = ["MIN_REPLY_TOKENS", "REPLY_MARGIN", "RetryState", "next_delay", "limit_reply_tokens"]

MIN_REPLY_TOKENS = 256
"""A reply of fewer tokens is not asked for."""

REPLY_MARGIN = 64
"""Tokens left free between a prompt and the longest reply to it."""

_MIN_REPLY_SHARE = 16

_TRANSIENT_ERRORS = (ModelRateLimited, ModelUnavailable, ModelTimeout)


@dataclass(frozen=True, kw_only=True)
class RetryState:
    """What was tried of one call: its failures, those of them that were invalid replies, and the seconds waited."""

    failures: int = 0
    invalid: int = 0
    waited: float = 0.0

    def add_failure(self, error: ModelError) -> "RetryState":
        """Return these tries and one more, which failed with `error`."""
        invalid = self.invalid + isinstance(error, ReplyInvalid)
        return RetryState(failures=self.failures + 1, invalid=invalid, waited=self.waited)

    def add_pause(self, seconds: float) -> "RetryState":
        """Return these tries after a pause of `seconds`."""
        return RetryState(failures=self.failures, invalid=self.invalid, waited=self.waited + seconds)


def next_delay(config: RetryConfig, error: ModelError, tries: RetryState, *, chance: float) -> float | None:
    """Return the pause in seconds before the next try; None when there is none.

    `tries` includes the one that failed with `error`; `chance` is from 0 to 1. An invalid reply is asked for once more,
    at once, unless it says something: who asked decides what that is worth. What the provider asks to wait counts
    as the least pause.
    """
    if tries.failures >= config.attempts:
        return None
    if isinstance(error, ReplyInvalid):
        return 0.0 if tries.invalid <= 1 and not error.said else None
    if not isinstance(error, _TRANSIENT_ERRORS):
        return None
    # Doubling with random shortening keeps many clients from coming back at once: M. Brooker, "Exponential Backoff And
    # Jitter", 2015, whose "equal jitter" is a jitter of 0.5.
    doubled = config.first_delay * 2.0 ** min(tries.failures - 1, 60)
    delay = min(doubled, config.longest_delay) * (1 - config.jitter * chance)
    asked = error.retry_after if isinstance(error, ModelRateLimited) else None
    if asked is not None:
        if asked > config.longest_delay:
            return None
        delay = max(delay, asked)
    return delay if tries.waited + delay <= config.total_delay else None


def limit_reply_tokens(wanted: int, window: int, *, prompt: int) -> int:
    """Return how many tokens a reply may take where `wanted` are asked for: what a `window` leaves beside the prompt.

    `prompt` is an estimate, which may be too high: a sixteenth of the window is always allowed, and at least 256.
    """
    least = min(wanted, max(MIN_REPLY_TOKENS, window // _MIN_REPLY_SHARE))
    return max(least, min(wanted, window - prompt - REPLY_MARGIN))
