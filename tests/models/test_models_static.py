"""The static embedder: vectors from inside a package, the same everywhere, near for texts that mean alike."""

import sys
from importlib import util

import numpy as np
import pytest

from ricordo.errors import ExtraMissing
from ricordo.models import load_embedder
from ricordo.models.embedders.static import StaticEmbedder

pytestmark = pytest.mark.anyio


async def test_texts_that_mean_alike_are_nearer_than_those_that_do_not() -> None:
    embedder = load_embedder("static")
    rows = await embedder.embed(
        ["The doctor looked at my knee.", "A physician examined the leg.", "The invoice is due in March."]
    )
    assert rows.shape == (3, embedder.dimension) == (3, 256)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert float(rows[0] @ rows[1]) > float(rows[0] @ rows[2]) + 0.1


async def test_capitals_punctuation_and_function_words_say_nothing_about_a_subject() -> None:
    rows = await load_embedder("static").embed(["Release builds: how do we SHIP them?!", "release builds ship"])
    assert np.allclose(rows[0], rows[1], atol=1e-5)


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800 alone", "東京で会いましょう", "x" * 100_000])
async def test_any_text_has_a_vector_of_length_one(text: str) -> None:
    rows = await load_embedder("static").embed([text])
    assert np.isclose(np.linalg.norm(rows[0]), 1.0, atol=1e-5)
    assert np.array_equal(rows, await load_embedder("static").embed([text]))


async def test_no_text_gives_no_row() -> None:
    assert (await load_embedder("static").embed([])).shape == (0, 256)


async def test_the_model_of_the_vectors_is_named_and_its_package_is_not_imported() -> None:
    embedder = load_embedder("static")
    await embedder.embed(["one"])
    assert embedder.model_id == "static:wordllama-l2-supercat-256-words"
    assert "wordllama" not in sys.modules


@pytest.mark.parametrize("missing", ["wordllama", "tokenizers"])
async def test_without_its_packages_the_error_names_the_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = util.find_spec
    monkeypatch.setattr(
        "ricordo.models.embedders.static.find_spec", lambda name: None if name == missing else found(name)
    )
    with pytest.raises(ExtraMissing, match=r"pip install '\.\[embed\]'"):
        load_embedder("static")


async def test_the_words_of_a_query_count_by_their_weights() -> None:
    embedder = StaticEmbedder()
    doctor, invoice = await embedder.embed(["The doctor looked at my knee.", "The invoice is due in March."])
    text = "Which doctor wrote the invoice?"
    of_doctor = embedder.query_vector(text, {"doctor": 6.0, "invoice": 0.1})
    of_invoice = embedder.query_vector(text, {"doctor": 0.1, "invoice": 6.0})
    assert np.isclose(np.linalg.norm(of_doctor), 1.0, atol=1e-5)
    assert of_doctor @ doctor > of_doctor @ invoice
    assert of_invoice @ invoice > of_invoice @ doctor


@pytest.mark.parametrize("text", ["", "?!", "\ud800", "ß" * 9_000])
async def test_any_query_has_a_vector_of_length_one(text: str) -> None:
    assert np.isclose(np.linalg.norm(StaticEmbedder().query_vector(text, {})), 1.0, atol=1e-5)
