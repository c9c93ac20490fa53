"""Loads an embedder by its name: `static`, `minilm`, `multilingual`, `hashing`, or `provider:model`.

An example of the latter is `openai:text-embedding-3-small`. Invariant: no vendor's package and no numpy is imported
before an embedder is loaded.
"""

from collections.abc import Mapping
from importlib import import_module

from ricordo.errors import InvalidSetting, ModelNotFound
from ricordo.models.config import RetryConfig
from ricordo.models.contract import Embedder
from ricordo.models.errors import create_extra_error
from ricordo.models.wrappers import RetryPolicy

__all__ = ["load_embedder"]


_SECONDS = 60.0
_BATCH = 64


_LOCAL_EMBEDDERS: Mapping[str, str] = {
    "static": "static:StaticEmbedder",
    "minilm": "small_models:MiniLMEmbedder",
    "multilingual": "small_models:MultilingualEmbedder",
    "hashing": "static:HashingEmbedder",
}
"""Embedders that run locally: by name, the module in this package and the class, which is imported when it is used."""


def _load_local(name: str) -> Embedder:
    module, _, kind = _LOCAL_EMBEDDERS[name].partition(":")
    embedder: Embedder = getattr(import_module(f"{__name__}.{module}"), kind)()
    return embedder


def load_embedder(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    retry: RetryConfig | None = None,
    timeout: float = _SECONDS,
    batch: int = _BATCH,
) -> Embedder:
    """Return the embedder of this name; arguments and errors are those of `load_model`.

    `static` has its vectors inside a package (the extra `embed`), `minilm` and `multilingual` small models (the extras
    of these names), `hashing` has no model: it counts words. None of them needs a key or a network, and they ignore the
    other arguments. `timeout` is in seconds, for one request; `batch` is the maximum number of texts in one request.

    Raises:
        ModelNotFound, ModelKeyMissing, ExtraMissing: as `load_model` does.
        InvalidSetting: a limit is not above 0.
    """
    if timeout <= 0 or batch < 1:
        raise InvalidSetting("The timeout and the batch of an embedder are above 0.")
    if name in _LOCAL_EMBEDDERS:
        return _load_local(name)
    if ":" not in name:
        raise ModelNotFound(f"{name!r} names no provider: write provider:model, such as openai:text-embedding-3-small.")
    try:
        from ricordo.models.embedders.provider import connect_provider_embedder
    except ImportError as error:
        raise create_extra_error(name, error) from error
    pausing = RetryPolicy(config=retry or RetryConfig())
    return connect_provider_embedder(
        name, base_url=base_url, api_key=api_key, seconds=timeout, batch=batch, pausing=pausing
    )
