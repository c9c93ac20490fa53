"""Loads an embedder by its name: `static`, `minilm`, `hashing`, or `provider:model`.

An example of the latter is `openai:text-embedding-3-small`. Invariant: no vendor's package and no numpy is imported
before an embedder is loaded.
"""

from collections.abc import Callable, Mapping

from ricordo.errors import InvalidSetting, ModelNotFound
from ricordo.models.config import RetryConfig
from ricordo.models.contract import Embedder
from ricordo.models.errors import create_extra_error
from ricordo.models.wrappers import RetryPolicy

__all__ = ["load_embedder"]


_SECONDS = 60.0
_BATCH = 64


def _load_static() -> Embedder:
    from ricordo.models.embedders.static import StaticEmbedder

    return StaticEmbedder()


def _load_hashing() -> Embedder:
    from ricordo.models.embedders.hashing import HashingEmbedder

    return HashingEmbedder()


def _load_minilm() -> Embedder:
    from ricordo.models.embedders.minilm import MiniLMEmbedder

    return MiniLMEmbedder()


_LOCAL_EMBEDDERS: Mapping[str, Callable[[], Embedder]] = {
    "static": _load_static,
    "minilm": _load_minilm,
    "hashing": _load_hashing,
}
"""Embedders that run locally."""


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

    `static` has its vectors inside a package (the extra `embed`), `minilm` a small model (the extra `minilm`),
    `hashing` has no model: it counts words. None of them needs a key or a network, and they ignore the other arguments.
    `timeout` is in seconds, for one request; `batch` is the maximum number of texts in one request.

    Raises:
        ModelNotFound, ModelKeyMissing, ExtraMissing: as `load_model` does.
        InvalidSetting: a limit is not above 0.
    """
    if timeout <= 0 or batch < 1:
        raise InvalidSetting("The timeout and the batch of an embedder are above 0.")
    if name in _LOCAL_EMBEDDERS:
        return _LOCAL_EMBEDDERS[name]()
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
