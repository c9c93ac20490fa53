"""Loads a chat model by its name: `provider:model`, such as `anthropic:claude-sonnet-5`.

Invariant: no vendor's package is imported before a model is loaded. A vendor's package never retries; the only retries
are those of `RetryConfig`.
"""

from ricordo.errors import InvalidSetting, ModelNotFound
from ricordo.models.config import ModelSettings, RetryConfig
from ricordo.models.contract import ChatModel
from ricordo.models.errors import create_extra_error
from ricordo.models.wrappers import RetryingModel, TimedModel

__all__ = ["DEFAULT_TIMEOUT", "load_model"]


DEFAULT_TIMEOUT = 300.0
"""Seconds for one try of one reply. Long replies of thinking models take minutes."""
_STALL_SECONDS = 120.0
"""Maximum seconds of silence inside a stream. Some providers send nothing while the model thinks."""


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
    thinking: bool | str | None = None,
) -> ChatModel:
    """Return the model of this name. The key is `api_key`, else the provider's environment variable.

    `base_url` points to another server of the same protocol. `timeout` is in seconds, for one try. `window`,
    `reply_tokens`, `temperature` and `thinking` are those of `ModelSettings`. The first call imports the provider's
    package, which takes about a second: call it before the event loop runs, or in a worker thread. No connection is
    opened before the first request.

    Raises:
        ModelNotFound: no provider has this prefix.
        ModelKeyMissing: the provider needs a key; the message says how to set it.
        ExtraMissing: the provider's package is not installed; the message says how to install it.
        InvalidSetting: the timeout is not above 0, or `ModelSettings` rejects a value.
    """
    if timeout <= 0:
        raise InvalidSetting("The timeout of a model is above 0.")
    settings = ModelSettings(window=window, reply_tokens=reply_tokens, temperature=temperature, thinking=thinking)
    if ":" not in name:
        raise ModelNotFound(f"{name!r} names no provider: write provider:model, such as anthropic:claude-sonnet-5.")
    try:
        from ricordo.models.connect import connect_model
    except ImportError as error:
        raise create_extra_error(name, error) from error
    connected = connect_model(name, base_url=base_url, api_key=api_key, seconds=timeout, settings=settings)
    timed = TimedModel(model=connected, seconds=timeout, stall_seconds=min(timeout, _STALL_SECONDS))
    return RetryingModel(model=timed, config=retry or RetryConfig())
