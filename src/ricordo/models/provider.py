"""A chat model by its name: `provider:model`, such as `anthropic:claude-sonnet-5`.

Invariant: nothing of a vendor is imported before a model is asked for, and nothing is retried by a vendor's package:
the only retries are those of `RetryConfig`.
"""

from typing import Literal, TypeAlias, get_args

from ricordo.errors import InvalidSetting, ModelNotFound
from ricordo.models.config import RetryConfig
from ricordo.models.contract import ChatModel
from ricordo.models.failures import extra_missing
from ricordo.models.retry import Retrying
from ricordo.models.timed import Timed

__all__ = ["DEFAULT_TIMEOUT", "Thinks", "load_model"]

_Effort = Literal["low", "medium", "high"]
Thinks: TypeAlias = bool | _Effort
"""Whether a model thinks before it answers, and how hard."""

DEFAULT_TIMEOUT = 300.0
"""Seconds for one try of one reply: long replies of models that think take minutes."""

_STALL_SECONDS = 120.0
"""Seconds of silence inside a stream: some providers send nothing while the model thinks."""


def load_model(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    retry: RetryConfig | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    window: int | None = None,
    reply_tokens: int | None = None,
    temperature: float | None = None,
    thinking: Thinks | None = None,
) -> ChatModel:
    """Return the model of this name; the key is that of `api_key`, else of the provider's environment variable.

    `base_url` points to another server of the same protocol. `timeout` is in seconds, for one try; `window` in tokens,
    for models that no table knows. `reply_tokens` is how long a reply may get, thinking included, `temperature` how
    freely it is worded, and `thinking` whether and how hard the model thinks before; None leaves each to the provider.
    The first call imports the provider's package, which takes about a second: make it
    before the event loop runs, or in a worker thread. No connection is made before the first request.

    Raises:
        ModelNotFound: no provider has this prefix.
        ModelKeyMissing: the provider needs a key; the message says how to set it.
        ExtraMissing: the provider's package is not installed; the message says how to install it.
        InvalidSetting: a limit is not above 0, or the temperature is below 0.
    """
    if timeout <= 0 or any(limit is not None and limit <= 0 for limit in (window, reply_tokens)):
        raise InvalidSetting("The timeout, the window and the longest reply of a model are above 0.")
    if temperature is not None and temperature < 0:
        raise InvalidSetting(f"The temperature of a model is at least 0, not {temperature}.")
    if thinking not in {None, True, False, *get_args(_Effort)}:
        raise InvalidSetting(f"thinking is true, false, or one of {', '.join(get_args(_Effort))}, not {thinking!r}.")
    if ":" not in name:
        raise ModelNotFound(f"{name!r} names no provider: write provider:model, such as anthropic:claude-sonnet-5.")
    try:
        from ricordo.models.connect import connect_model
    except ImportError as error:
        raise extra_missing(name, error) from error
    inside = connect_model(name, base_url=base_url, api_key=api_key, seconds=timeout, window=window)
    inside.reply_limit, inside.temperature, inside.thinking = reply_tokens, temperature, thinking
    timed = Timed(model=inside, seconds=timeout, stall_seconds=min(timeout, _STALL_SECONDS))
    return Retrying(model=timed, config=retry or RetryConfig())
