"""An embedder without a model: it counts the words of a text and their three-letter pieces under hashed numbers.

It is weak: texts are near when they share words or parts of words. It needs no key and no network, and gives the same
vector everywhere. The idea is feature hashing with a sign, after Weinberger et al. (2009).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np
from anyio.to_thread import run_sync
from numpy.typing import NDArray

from ricordo.language.words import split_words

__all__ = ["HashingEmbedder"]


_WORD_WEIGHT, _PIECE_WEIGHT = 1.0, 0.3
_PIECE = 3
_SIGN = 1 << 31


class HashingEmbedder:
    """An `Embedder` that counts words; `dimension` is the length of its vectors."""

    def __init__(self, dimension: int = 1_024) -> None:
        """Use vectors of `dimension` numbers. A smaller dimension makes more words share a number."""
        self.dimension = dimension
        self.model_id = f"hashing:{dimension}"

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text; all texts without words have the same row."""
        return await run_sync(self._embed_texts, texts)

    def _embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _feature_weights(text):
                hashed = crc32(feature.encode("utf-8", "surrogatepass"))
                row[hashed % self.dimension] += -weight if hashed & _SIGN else weight
            if not row.any():
                row[0] = 1.0
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
        return unit


def _feature_weights(text: str) -> Iterator[tuple[str, float]]:
    """Yield the features of a text and their weights. The weight grows with the square root of the count."""
    word_counts = Counter(split_words(text))
    pieces: Counter[str] = Counter()
    for word, count in word_counts.items():
        yield word, _WORD_WEIGHT * count**0.5
        padded = f"<{word}>"
        pieces.update({padded[at : at + _PIECE]: count for at in range(len(padded) - _PIECE + 1)})
    for piece, count in pieces.items():
        yield f"{piece}*", _PIECE_WEIGHT * count**0.5
