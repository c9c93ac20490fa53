"""How alike the meanings of facts are, where an embedder is there to tell; each text is embedded once.

Invariant: nothing depends on it. An embedder that can't be reached tells nothing, and the words decide alone.
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ricordo.errors import ModelError
from ricordo.models.contract import Embedder
from ricordo.profile.merging import SimilarityFunction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FactSimilarity"]

_LOG = logging.getLogger(__name__)
_MAX_VECTORS = 1_000


class FactSimilarity:
    """The vectors of the texts that were asked about last, at most 1,000."""

    def __init__(self, embedder: Embedder) -> None:
        """Ask `embedder`."""
        self._embedder = embedder
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    async def make_similarity(self, texts: Sequence[str]) -> SimilarityFunction | None:
        """Return what tells of two of `texts`, whatever their white space, how alike they are; None when nobody can."""
        wanted = list(dict.fromkeys(_collapse_spaces(text) for text in texts if text.strip()))
        missing = [text for text in wanted if text not in self._vectors]
        if missing:
            try:
                rows = await self._embedder.embed(missing)
            except ModelError as error:
                _LOG.warning("What says the same is told by words alone: %s", error)
                return None
            self._vectors.update(zip(missing, rows, strict=True))
        known = {text: self._vectors[text] for text in wanted}
        for text in wanted:
            self._vectors.move_to_end(text)
        while len(self._vectors) > _MAX_VECTORS:
            self._vectors.popitem(last=False)

        def similarity(one: str, other: str) -> float:
            left, right = known.get(_collapse_spaces(one)), known.get(_collapse_spaces(other))
            return 0.0 if left is None or right is None else float(left @ right)

        return similarity


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())
