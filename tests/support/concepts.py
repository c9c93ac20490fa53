"""An embedder that knows a few synonyms, and all the ways in which one can fail."""

from collections.abc import Sequence

import anyio
import numpy as np
from numpy.typing import NDArray

__all__ = ["Concepts"]

_SAME = ({"dog", "puppy", "hound"}, {"boat", "sail", "ship"}, {"bread", "loaf", "bake"}, {"doctor", "physician"})


class Concepts:
    """Texts are near when they speak of one thing. `asked` are all texts that it was given."""

    def __init__(self, model_id: str = "concepts:one", dimension: int = 8) -> None:
        self.model_id = model_id
        self.dimension = dimension
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.hangs = False
        self.no_number_for = "\0"
        self.refuses = "\0"

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text, or do what it was told to do in place of that."""
        self.asked += texts
        if self.hangs:
            await anyio.sleep_forever()
        if self.error is not None and (self.refuses == "\0" or any(self.refuses in text for text in texts)):
            raise self.error
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        rows[:, -1] = 0.1
        for row, text in zip(rows, texts, strict=True):
            words = {word.strip(".,:?[]").lower() for word in text.split()}
            for axis, same in enumerate(_SAME):
                row[axis] += len(words & same)
            if self.no_number_for in text:
                row[:] = np.nan
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit
