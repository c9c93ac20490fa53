"""Structured answers: request an object of a JSON schema and check the answer."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ricordo.errors import InvalidMessage, ReplyInvalid
from ricordo.lazy import lazy_compile
from ricordo.messages import JsonValue
from ricordo.messages.json_text import loads
from ricordo.models.contract import Reply

__all__ = ["ANSWER_TOOL", "parse_structured_answer", "split_type_unions", "with_parsed"]


ANSWER_TOOL = "give_answer"
"""The tool whose arguments are the answer, for providers without native structured output."""
_CODE_FENCE = lazy_compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL | re.IGNORECASE)


def split_type_unions(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a JSON schema in which no part has several types: each type becomes an `anyOf` option.

    One provider's package does not accept a list of types.
    """
    types = schema.get("type")
    several = types if isinstance(types, list) else []
    rest = {key: _split_inner(value) for key, value in schema.items() if key != "type" or not several}
    return {**rest, "anyOf": [{"type": each} for each in several]} if several else rest


def _split_inner(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_split_inner(each) for each in value]
    return split_type_unions(value) if isinstance(value, dict) else value


def parse_structured_answer(
    text: str, schema: Mapping[str, JsonValue], *, cut_off: bool = False
) -> dict[str, JsonValue]:
    """Return the object in `text`, with or without a code fence. `cut_off` says that the text is incomplete.

    Raises:
        ReplyInvalid: `text` is not a JSON object, or lacks a key that `schema` requires; the error holds `text`.
    """
    invalid = partial(ReplyInvalid, said=text, cut_off=cut_off)
    fenced = _CODE_FENCE.fullmatch(text)
    try:
        value = loads(fenced[1] if fenced else text)
    except InvalidMessage as error:
        raise invalid("The model was asked for JSON and answered with something else.") from error
    if not isinstance(value, dict):
        raise invalid("The model was asked for a JSON object and answered with another value.")
    required = schema.get("required")
    missing = [key for key in required if key not in value] if isinstance(required, list) else []
    if missing:
        raise invalid(f"The model's answer lacks {', '.join(map(str, missing))}.")
    return value


def with_parsed(reply: Reply, schema: Mapping[str, JsonValue]) -> Reply:
    """Return `reply` with its text parsed as an object.

    Raises: ReplyInvalid as `parse_structured_answer` does, with the reply.
    """
    try:
        parsed = parse_structured_answer(reply.message.text, schema, cut_off=reply.stop in ("length", "window"))
    except ReplyInvalid as error:
        error.reply = reply
        raise
    return replace(reply, parsed=parsed)
