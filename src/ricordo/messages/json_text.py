"""Strict JSON text on one line, and readers of single values whose errors name their position.

Numbers are finite. A lone surrogate is written as an escape.

Invariant: the output of `dumps` is valid UTF-8 without any character at which a line reader could split, and `loads`
returns the same value from it.
"""

import json
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from ricordo.errors import InvalidMessage
from ricordo.lazy import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ricordo.messages.types import JsonValue

__all__ = [
    "decode_json",
    "dumps",
    "escape_json",
    "iterate_objects",
    "loads",
    "require_integer",
    "require_object",
    "require_objects",
    "require_text",
]


_LENIENT_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_ESCAPE_PATTERN = lazy_compile("[\ud800-\udfff\x85\u2028\u2029]")


def dumps(value: "JsonValue") -> str:
    """Return `value` as JSON on one line without spaces; keys keep their order.

    Raises: InvalidMessage if JSON can't represent `value`, or it is nested too deeply.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"This value can't be written as JSON: {error}.") from error
    except RecursionError as error:
        raise InvalidMessage("This value is nested too deeply for JSON.") from error
    return escape_json(text)


def escape_json(text: str) -> str:
    """Return JSON text with escapes for characters that UTF-8 can't encode or a line reader could split at."""
    return text if text.isascii() else _ESCAPE_PATTERN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def loads(line: str | bytes) -> "JsonValue":
    """Read one JSON value; bytes are UTF-8.

    Raises: InvalidMessage if the text is not strict JSON, the bytes are not UTF-8, or the nesting is too deep.
    """
    try:
        decoded = line if isinstance(line, str) else line.decode("utf-8")
        value: JsonValue = json.loads(decoded, parse_constant=_raise_not_json)
    except ValueError as error:
        raise InvalidMessage(f"This is not JSON: {error}.") from error
    except RecursionError as error:
        raise InvalidMessage("This JSON is nested too deeply.") from error
    return value


def decode_json(data: str | bytes) -> Any:
    """Return the JSON value of a file or a column, of any type; callers must check it.

    Raises: ValueError if it is not JSON, is nested too deeply, or has a number that is not finite. Callers that treat
    damage as a missing value need to catch only this error.
    """
    try:
        return json.loads(data, parse_constant=_raise_not_json, parse_float=_parse_finite)
    except RecursionError as error:
        raise ValueError("This JSON is nested too deeply.") from error


def require_text(value: "JsonValue", path: str) -> str:
    """Return `value` if it is a string.

    Raises: InvalidMessage for any other value; the text names `path`.
    """
    if not isinstance(value, str):
        raise InvalidMessage(f"{path}: a string is needed, not {_describe_type(value)}.")
    return value


def require_integer(value: "JsonValue", path: str) -> int:
    """Return `value` if it is a whole number.

    Raises: InvalidMessage for any other value; the text names `path`.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidMessage(f"{path}: a whole number is needed, not {_describe_type(value)}.")
    return value


def require_object(value: "JsonValue", path: str) -> "dict[str, JsonValue]":
    """Return `value` if it is an object.

    Raises: InvalidMessage for any other value; the text names `path`.
    """
    if not isinstance(value, dict):
        raise InvalidMessage(f"{path}: an object is needed, not {_describe_type(value)}.")
    return value


def require_objects(value: "JsonValue", path: str) -> "list[dict[str, JsonValue]]":
    """Return `value` if it is a list of objects.

    Raises: InvalidMessage for any other value; the text names the position below `path`.
    """
    if not isinstance(value, list):
        raise InvalidMessage(f"{path}: a list is needed, not {_describe_type(value)}.")
    return [require_object(item, f"{path}[{position}]") for position, item in enumerate(value)]


def _describe_type(value: "JsonValue") -> str:
    names = {type(None): "nothing", bool: "true or false", int: "a number", float: "a number", str: "a string"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")


def _parse_finite(number: str) -> float:
    value = float(number)
    return value if isfinite(value) else _raise_not_json(number)


_MAX_FALSE_STARTS = 200


def iterate_objects(text: str, *, nested: bool = False) -> "Iterator[dict[str, JsonValue]]":
    """Yield the JSON objects in a text that a model wrote, in order; prose and code fences are skipped.

    Only outermost objects are yielded, with `nested` also those within them. NaN and infinities are read as null.
    After 200 braces that begin no object the rest is not read, so that the time stays linear.
    """
    false_starts, start = 0, text.find("{")
    while start >= 0 and false_starts < _MAX_FALSE_STARTS:
        try:
            value, end = _LENIENT_DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            false_starts += 1
            start = text.find("{", start + 1)
            continue
        if isinstance(value, dict):
            yield value
        start = text.find("{", start + 1 if nested else end)


def _raise_not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
