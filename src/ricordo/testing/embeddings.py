"""Embeddings without a model: the words of a text hashed into a vector, so that texts that share words are near."""

import base64
import hashlib
import math
import re
import struct
from collections.abc import Sequence

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import require_integer
from ricordo.testing.openai_chat import openai_error_body
from ricordo.testing.wire import ParsedRequest, RequestBody, WireProtocol, make_event_frame

__all__ = ["embeddings_protocol", "hash_to_vector"]

_WORD = re.compile(r"\w+")


def hash_to_vector(text: str, dimension: int) -> list[float]:
    """Return a vector of length 1 that depends only on the words of `text`, without regard to case and order."""
    vector = [0.0] * dimension
    for word in _WORD.findall(text.casefold()) or [""]:
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        vector[int.from_bytes(digest[:8], "big") % dimension] += 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


def embeddings_protocol(dimension: int) -> WireProtocol:
    """Return the path `/v1/embeddings`, with vectors of `dimension` numbers where a request asks for no other."""
    return WireProtocol(
        read=_read_embedding_request,
        whole=lambda _, body: _write_embeddings(body, dimension),
        frames=lambda _answer, _body: [],
        error=openai_error_body,
        error_frame=lambda fail: make_event_frame(openai_error_body(fail)),
    )


def _read_embedding_request(body: RequestBody) -> ParsedRequest:
    _read_texts(body.get("input"))
    return ParsedRequest()


def _write_embeddings(body: RequestBody, dimension: int) -> JsonValue:
    texts = _read_texts(body.get("input"))
    asked = body.get("dimensions")
    wanted = dimension if asked is None else require_integer(asked, "dimensions")
    is_packed = body.get("encoding_format") == "base64"
    data: list[JsonValue] = []
    for index, text in enumerate(texts):
        vector = hash_to_vector(text, wanted)
        data.append(
            {"object": "embedding", "index": index, "embedding": _pack_base64(vector) if is_packed else [*vector]}
        )
    used = sum(len(_WORD.findall(text)) for text in texts)
    return {
        "object": "list",
        "data": data,
        "model": body.get("model"),
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


def _read_texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidMessage("input: a string or a list of strings is needed.")
    return [item for item in value if isinstance(item, str)]


def _pack_base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
