"""JSON text as this room writes and reads it: strict, on one line, for any string.

Invariant: what `dumps` gives is valid UTF-8 without any character that a line reader could split at, and `loads` of
it is the same value. Strict means that a number is finite: NaN and the infinities are no JSON and are refused in both
directions. A lone surrogate travels as an escape; a high one directly followed by a low one is, as everywhere in JSON,
the character that the two stand for.
"""

import json
import re
from typing import NoReturn

from ricordo.errors import InvalidMessage
from ricordo.messages.types import JsonValue

__all__ = ["dumps", "loads"]

_ESCAPED = re.compile("[\ud800-\udfff\x85\u2028\u2029]")


def dumps(value: JsonValue, *, sort_keys: bool = False) -> str:
    """Write `value` without spaces on one line; keys keep their order unless `sort_keys`.

    Raises:
        InvalidMessage: `value` holds something that JSON can't say, or is nested too deeply.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"This value can't be written as JSON: {error}.") from error
    except RecursionError as error:
        raise InvalidMessage("This value is nested too deeply for JSON.") from error
    return text if text.isascii() else _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def loads(text: str | bytes) -> JsonValue:
    """Read one JSON value; bytes are UTF-8.

    Raises:
        InvalidMessage: the text is not strict JSON, the bytes are not UTF-8, or the nesting is too deep.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        value: JsonValue = json.loads(decoded, parse_constant=_refuse)
    except ValueError as error:
        raise InvalidMessage(f"This is not JSON: {error}.") from error
    except RecursionError as error:
        raise InvalidMessage("This JSON is nested too deeply.") from error
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
