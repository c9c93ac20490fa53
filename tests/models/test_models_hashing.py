"""Vectors without a model: near when words are shared, the same everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.models.embedders.static import HashingEmbedder

pytestmark = pytest.mark.anyio


async def cosine(one: str, other: str) -> float:
    rows = await HashingEmbedder().embed([one, other])
    return float(rows[0] @ rows[1])


async def test_texts_are_near_by_the_words_and_parts_of_words_that_they_share() -> None:
    text = "We deploy only from the main branch."
    same, shared, part, nothing = [
        await cosine(text, other)
        for other in ("we DEPLOY only from the main branch", "the main branch", "deployment", "Zürich 你好")
    ]
    assert same == pytest.approx(1.0)
    assert same > shared > part > 0.1 > abs(nothing)
    assert await cosine("部署只从主分支", "主分支") > 0.3


async def test_a_vector_is_the_same_everywhere_and_always() -> None:
    embedder = HashingEmbedder(8)
    (row,) = await embedder.embed(["Deploy"])
    assert embedder.model_id == "hashing:8"
    assert [round(float(number), 4) for number in row] == [0.3094, 0.0, -0.722, 0.6189, 0.0, 0.0, 0.0, 0.0]
    assert (await embedder.embed([])).shape == (0, 8)


@given(st.lists(st.text(), max_size=4))
def test_each_text_has_a_row_of_length_one(texts: list[str]) -> None:
    rows = HashingEmbedder(64)._embed_texts(texts)
    assert rows.shape == (len(texts), 64)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
