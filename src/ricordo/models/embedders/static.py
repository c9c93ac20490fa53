"""Embedders without a model: hashed pieces of words, and fixed vectors of tokens inside a package.

Neither needs a key or a network. The hashing embedder counts the words of a text and their three-letter pieces under
hashed numbers (feature hashing with a sign, after Weinberger et al., 2009); it is weak: texts are near when they share
words or parts of words. A static embedder has one vector for each token, and a text is the mean of its tokens' vectors.
It starts in less than a second and embeds thousands of texts per second, but ignores word order. The vectors are those
of WordLlama. Its files are read directly, because its own loader downloads files.

Only the lower-case words of a text count for the static one, without English stop words: capitals, punctuation and
function words are other tokens, which would make short texts on different subjects similar.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from anyio.to_thread import run_sync
from numpy.typing import NDArray

from ricordo.errors import ExtraMissing, install_command
from ricordo.language import is_stop_word
from ricordo.language.words import split_words
from ricordo.lazy import lazy_compile
from ricordo.messages.json_text import decode_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["HashingEmbedder", "StaticEmbedder"]


_PACKAGE = "wordllama"
_WEIGHTS = "l2_supercat_256.safetensors"
_TOKENIZER = "l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_DIMENSION = 256
_HEADER_SIZE = 8
_OTHER_WEIGHT = 0.05
_WORD = lazy_compile(r"[^\W_]+")
_KNOWN_WORDS = 16_384
_MAX_CHARACTERS = 8_000
"""Later text is ignored: a mean of more tokens says little about any of them, and a megabyte would block others."""


class StaticEmbedder:
    """An `Embedder` that uses a packaged table of vectors; `dimension` is 256."""

    model_id = f"static:{_PACKAGE}-l2-supercat-{_DIMENSION}-words"
    dimension = _DIMENSION

    def __init__(self) -> None:
        """Find the package; its files are read at the first text. Raises `ExtraMissing`."""
        self._folder = _find_package()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text; only the first 8,000 characters of a long text count."""
        return await run_sync(_embed_texts, self._folder, list(texts))

    def query_vector(self, text: str, weights: Mapping[str, float]) -> NDArray[np.float32]:
        """Return the vector of a query, of length 1, with each word weighted; it runs synchronously.

        `weights` are above 0 and keyed by lower-case words, such as {"rare": 6.2} for "How rare?". A word without a
        weight, such as a word that every sentence has, counts almost nothing.
        """
        table, words = _load_table(self._folder), " ".join(_content_words(text))
        spans = [(match.start(), match.end(), weights.get(match[0], _OTHER_WEIGHT)) for match in _WORD.finditer(words)]
        encoding = _load_tokenizer(self._folder).encode(words, add_special_tokens=False)
        if not encoding.ids:
            blank: NDArray[np.float32] = _embed_texts(self._folder, [text])[0]
            return blank
        row = np.array(_token_weights(encoding.offsets, spans), dtype=np.float32) @ table[encoding.ids]
        unit: NDArray[np.float32] = (row / np.sqrt(row @ row)).astype(np.float32)
        return unit


def _token_weights(offsets: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int, float]]) -> list[float]:
    """Return the weight of the word of each token. Anything else, such as punctuation, counts almost nothing."""
    weights, at = list[float](), 0
    for start, end in offsets:
        position = (start + end) / 2
        while at < len(spans) and spans[at][1] < position:
            at += 1
        weights.append(spans[at][2] if at < len(spans) and spans[at][0] <= position else _OTHER_WEIGHT)
    return weights


def _content_words(text: str) -> list[str]:
    """Return the words of a text that carry meaning, in lower case; if it has none, all; without words, the text."""
    truncated = text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode()
    words = _WORD.findall(truncated.lower())
    return [word for word in words if not is_stop_word(word)] or words or [truncated]


@lru_cache(maxsize=_KNOWN_WORDS)
def _find_tokens(folder: Path, word: str) -> tuple[int, ...]:
    """Return the tokens of a word, which are the same in every text."""
    return tuple(_load_tokenizer(folder).encode(word, add_special_tokens=False).ids)


def _find_package() -> Path:
    """Return the folder of the package with the vectors without importing it. Raises `ExtraMissing`."""
    spec = find_spec(_PACKAGE)
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not locations or find_spec("tokenizers") is None:
        raise ExtraMissing(
            f"The static embedder needs a package that is not installed. Install it with {install_command('embed')}."
        )
    return Path(locations[0])


@cache
def _load_table(folder: Path) -> NDArray[np.float32]:
    """Return the vectors, one row per token, from a safetensors file: header size, JSON header, numbers."""
    data = (folder / "weights" / _WEIGHTS).read_bytes()
    start = _HEADER_SIZE + int.from_bytes(data[:_HEADER_SIZE], "little")
    tensor = decode_json(data[_HEADER_SIZE:start])[_TENSOR]
    begin, end = tensor["data_offsets"]
    numbers = np.frombuffer(data[start + begin : start + end], dtype="<f2")
    table: NDArray[np.float32] = numbers.reshape(tensor["shape"]).astype(np.float32)
    return table


@cache
def _load_tokenizer(folder: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / _TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _embed_texts(folder: Path, texts: Sequence[str]) -> NDArray[np.float32]:
    table = _load_table(folder)
    rows = np.zeros((len(texts), _DIMENSION), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        tokens = [token for word in _content_words(text) for token in _find_tokens(folder, word)]
        if tokens:
            row[:] = table[tokens].mean(axis=0)
        if not row.any():
            row[0] = 1.0
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit


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
