"""Embeddings without a model: the words of a text hashed into a vector, so that texts that share words are near."""

import base64
import hashlib
import math
import re
import struct
from collections.abc import Sequence

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import integer
from ricordo.testing.openai_chat import openai_error
from ricordo.testing.wire import Asked, Body, Wire, event

__all__ = ["embeddings", "hashed_vector"]

_WORD = re.compile(r"\w+")


def hashed_vector(text: str, dimension: int) -> list[float]:
    """Return a vector of length 1 that depends only on the words of `text`, without regard to case and order."""
    vector = [0.0] * dimension
    for word in _WORD.findall(text.casefold()) or [""]:
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        vector[int.from_bytes(digest[:8], "big") % dimension] += 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


def embeddings(dimension: int) -> Wire:
    """Return the path `/v1/embeddings`, with vectors of `dimension` numbers where a request asks for no other."""
    return Wire(
        read=_read,
        whole=lambda _, body: _whole(body, dimension),
        frames=lambda _answer, _body: [],
        error=openai_error,
        error_frame=lambda fail: event(openai_error(fail)),
    )


def _read(body: Body) -> Asked:
    _texts(body.get("input"))
    return Asked()


def _whole(body: Body, dimension: int) -> JsonValue:
    texts = _texts(body.get("input"))
    asked = body.get("dimensions")
    wanted = dimension if asked is None else integer(asked, "dimensions")
    is_packed = body.get("encoding_format") == "base64"
    data: list[JsonValue] = []
    for index, text in enumerate(texts):
        vector = hashed_vector(text, wanted)
        data.append({"object": "embedding", "index": index, "embedding": _packed(vector) if is_packed else [*vector]})
    used = sum(len(_WORD.findall(text)) for text in texts)
    return {
        "object": "list",
        "data": data,
        "model": body.get("model"),
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


def _texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidMessage("input: a string or a list of strings is needed.")
    return [item for item in value if isinstance(item, str)]


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
