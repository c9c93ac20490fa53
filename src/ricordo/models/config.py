"""Settings and names of models: replies, the retries of failed calls, and what memory may spend."""

import math
from typing import Literal, get_args

from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass

__all__ = ["OFFLINE", "ModelSettings", "RetryConfig", "SpendingConfig", "provider_name", "validate_model_name"]


OFFLINE = "offline"
"""The name of the model that quotes memory and asks nobody."""
_EFFORTS = get_args(Literal["low", "medium", "high"])


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Settings of each reply for a model given by name, and the size of its window.

    None leaves a setting to the provider. `window` is in tokens, for a model that is in no table. `reply_tokens` is the
    maximum length of a reply, thinking included. `temperature` is the sampling temperature, at least 0. `thinking` says
    whether the model thinks before it answers: true, false, `low`, `medium` or `high`.
    """

    window: int | None = None
    reply_tokens: int | None = None
    temperature: float | None = None
    thinking: bool | str | None = None

    def __post_init__(self) -> None:
        """Reject limits that are not above 0, a temperature below 0, and an unknown kind of thinking."""
        for name in ("window", "reply_tokens"):
            limit: object = getattr(self, name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0):
                raise InvalidSetting(f"{name} is a whole number of tokens above 0, not {limit!r}.")
        temperature: object = self.temperature
        is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
        if temperature is not None and not (is_number and 0 <= self.temperature < math.inf):  # type: ignore[operator]
            raise InvalidSetting(f"temperature is a number of at least 0, not {temperature!r}.")
        if self.thinking is not None and not isinstance(self.thinking, bool) and self.thinking not in _EFFORTS:
            raise InvalidSetting(f"thinking is true, false, or one of {', '.join(_EFFORTS)}, not {self.thinking!r}.")


@dataclass(frozen=True, kw_only=True)
class RetryConfig:
    """When to retry a failed call, in seconds.

    `attempts` includes the first try: 1 never retries. The delays double from `first_delay` up to `longest_delay`; a
    provider that requests a longer delay is not called again. All delays of one call together take at most
    `total_delay`. `jitter`, from 0 to 1, is the fraction of a delay that may be subtracted at random.
    """

    attempts: int = 3
    first_delay: float = 1.0
    longest_delay: float = 60.0
    total_delay: float = 120.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Reject impossible values."""
        if self.attempts < 1:
            raise InvalidSetting(f"RetryConfig.attempts is at least 1, not {self.attempts}.")
        for name in ("first_delay", "longest_delay", "total_delay"):
            if getattr(self, name) < 0:
                raise InvalidSetting(f"RetryConfig.{name} is seconds from 0 up, not {getattr(self, name)}.")
        if not 0 <= self.jitter <= 1:
            raise InvalidSetting(f"RetryConfig.jitter is from 0 to 1, not {self.jitter}.")


@dataclass(frozen=True, kw_only=True)
class SpendingConfig:
    """How much the requests of memory may use in one day of the user's calendar, across all processes.

    Each user of a root has this limit, and so has the shared part of the root. `daily_tokens` counts input and output.
    `daily_cost` is in US dollars and counts requests with a known price. None means no limit. `reply_tokens` is the
    maximum length of one reply, thinking included; it shrinks when less is left of the day. Turns are not requests of
    memory: they are never counted or refused.
    """

    daily_tokens: int | None = 2_000_000
    daily_cost: float | None = 5.0
    reply_tokens: int = 8_000

    def __post_init__(self) -> None:
        """Reject limits below 0 and `reply_tokens` that is not above 0. Raises: InvalidSetting."""
        for name in ("daily_tokens", "daily_cost"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InvalidSetting(f"{name} is a number of at least 0, or none, not {value}.")
        if self.reply_tokens <= 0:
            raise InvalidSetting(f"reply_tokens is a number above 0, not {self.reply_tokens}.")


def validate_model_name(model: object, base_url: object, settings: object = None) -> None:
    """Reject a blank model name, a blank base URL, and a base URL or settings without a model name.

    Raises: InvalidSetting.
    """
    if not isinstance(settings, ModelSettings | None):
        raise InvalidSetting(f"model_settings is a ModelSettings or None, not {settings!r}.")
    if settings not in {None, ModelSettings()} and not isinstance(model, str):
        raise InvalidSetting(
            "model_settings are for a model that is given by name; one that is made already has its own, which "
            "load_model takes."
        )
    if isinstance(model, str) and not model.strip():
        raise InvalidSetting("model names a model, or is None; this name is blank.")
    if base_url is None:
        return
    if not isinstance(base_url, str) or not base_url.strip():
        raise InvalidSetting(f"base_url is an address such as http://localhost:8000/v1, not {base_url!r}.")
    if not isinstance(model, str):
        raise InvalidSetting("base_url is the address of a model that is named beside it: set model too.")


def provider_name(name: str) -> str:
    """Return the provider prefix of a model name; empty if it has none."""
    provider, colon, _ = name.partition(":")
    return provider if colon else ""
