"""Guarded models: every request that memory makes for its own work is redacted.

Memory reads files that people write; a secret in such a file stays in the file.

Invariant: a detected secret is never sent to a model for extraction, summaries or consolidation, or to a provider's
embedder; a mark is sent instead.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.models import ChatModel, Embedder
from ricordo.models.config import OFFLINE, provider_name
from ricordo.models.spending import SpendingMeter
from ricordo.models.wrappers import ModelWrapper
from ricordo.scope import Scope
from ricordo.search.contract import Reranker
from ricordo.workspace.redaction import redact_messages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GuardedEmbedder", "GuardedModel", "GuardedReranker", "guard_embedder", "prepare_memory_model"]


_LOCAL_PROVIDERS = frozenset({"hashing", "minilm", "multilingual", "static"})


def prepare_memory_model(
    model: ChatModel,
    purpose: str,
    *,
    redactor: Redactor,
    meter: SpendingMeter | None = None,
    scope: Scope | None = None,
) -> ChatModel:
    """Return `model` for a `purpose` of memory: guarded, and counted if there is a `meter`.

    The offline model, which sends nothing, is returned unchanged.
    """
    if model.name == OFFLINE:
        return model
    guarded = GuardedModel(model=model, redactor=redactor)
    return meter.wrap(guarded, purpose, scope=scope) if meter else guarded


def guard_embedder(embedder: Embedder, redactor: Redactor) -> Embedder:
    """Return `embedder` with redaction; a local embedder, which sends nothing, is returned unchanged."""
    # one with `query_vector` is local and fast; testing its protocol would import numpy
    is_local = hasattr(embedder, "query_vector") or provider_name(embedder.model_id) in _LOCAL_PROVIDERS
    return embedder if is_local else GuardedEmbedder(embedder=embedder, redactor=redactor)


@dataclass(frozen=True, kw_only=True)
class GuardedModel(ModelWrapper):
    """A `ChatModel` whose requests have marks in place of secrets."""

    redactor: Redactor

    async def sent(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the redacted messages."""
        return await run_sync(redact_messages, messages, self.redactor)


@dataclass(frozen=True, kw_only=True)
class GuardedEmbedder:
    """An `Embedder` whose requests have marks in place of secrets."""

    embedder: Embedder
    redactor: Redactor

    @property
    def model_id(self) -> str:
        """The id of the wrapped embedder."""
        return self.embedder.model_id

    @property
    def dimension(self) -> int:
        """The length of each vector of the wrapped embedder."""
        return self.embedder.dimension

    async def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row for each redacted text; see `Embedder`."""
        return await self.embedder.embed(await run_sync(lambda: [self.redactor.clean(text) for text in texts]))


@dataclass(frozen=True, kw_only=True)
class GuardedReranker:
    """A `Reranker` whose queries have marks in place of secrets; the texts, from an index, are already redacted."""

    reranker: Reranker
    redactor: Redactor

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the scores of the wrapped reranker for the redacted query."""
        return await self.reranker.scores(self.redactor.clean(query), texts)
