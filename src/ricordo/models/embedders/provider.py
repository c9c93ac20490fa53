"""The adapter to the embedders of every provider, based on pydantic-ai's embedding models.

Invariant: each text has its row, in order, and each row has length 1. Any other reply is an error.
"""

from collections.abc import Sequence
from dataclasses import field

import anyio
import numpy as np
from numpy.typing import NDArray
from pydantic_ai.embeddings import EmbeddingModel

from ricordo.errors import ModelTimeout, ReplyInvalid
from ricordo.lazy import dataclass
from ricordo.models.adapter import package_error_types
from ricordo.models.connect import connect_embedder
from ricordo.models.errors import raise_translated
from ricordo.models.wrappers import RetryPolicy

__all__ = ["ProviderEmbedder", "connect_provider_embedder"]


@dataclass(kw_only=True)
class ProviderEmbedder:
    """An `Embedder` at a provider; `dimension` is 0 until the first vectors arrive."""

    model_id: str
    model: EmbeddingModel
    keys: tuple[str, ...] = field(default=(), repr=False)
    seconds: float = 60.0
    batch: int = 64
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    dimension: int = 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text; see `Embedder`. A blank text is sent as one space, as providers reject it."""
        inputs = [text if text.strip() else " " for text in texts]
        vectors: list[NDArray[np.float32]] = []
        for start in range(0, len(inputs), self.batch):
            part = inputs[start : start + self.batch]
            vectors.append(await self.retry_policy.run(lambda part=part: self._request_vectors(part)))  # type: ignore[misc]
        return np.concatenate(vectors) if vectors else np.zeros((0, self.dimension), dtype=np.float32)

    async def _request_vectors(self, texts: list[str]) -> NDArray[np.float32]:
        try:
            with anyio.fail_after(self.seconds):
                result = await self.model.embed(texts, input_type="document")
            rows = np.asarray(result.embeddings, dtype=np.float32)
        except TimeoutError as error:
            raise ModelTimeout(f"{self.model_id} did not answer within {self.seconds:g} s.") from error
        except package_error_types() as error:
            raise_translated(error, model=self.model_id, keys=self.keys)
        if rows.ndim != 2 or len(rows) != len(texts) or self.dimension not in (0, rows.shape[1]):
            raise ReplyInvalid(f"{self.model_id} gave vectors of another number or length than was asked for.")
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
            raise ReplyInvalid(f"{self.model_id} gave a vector without a length.")
        self.dimension = int(rows.shape[1])
        unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
        return unit


def connect_provider_embedder(
    name: str, *, base_url: str | None, api_key: str | None, seconds: float, batch: int, pausing: RetryPolicy
) -> ProviderEmbedder:
    """Return the embedder of this name; see `load_embedder`."""
    model, keys = connect_embedder(name, base_url=base_url, api_key=api_key, seconds=seconds)
    return ProviderEmbedder(model_id=name, model=model, keys=keys, seconds=seconds, batch=batch, retry_policy=pausing)
