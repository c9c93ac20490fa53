"""The form of an update: the JSON schema that a model's answer has, in the names of the document."""

from collections.abc import Mapping

from ricordo.messages.types import JsonValue
from ricordo.workspace.profile import CATEGORIES, HISTORY_SUMMARIES, USER_SUMMARIES

__all__ = ["UPDATE_SCHEMA"]


def _object(properties: dict[str, JsonValue]) -> JsonValue:
    names: list[JsonValue] = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _array(row: JsonValue) -> JsonValue:
    return {"type": "array", "items": row}


_TEXT: JsonValue = {"type": "string"}
_SCOPE: dict[str, JsonValue] = {"scope": {"type": "string", "enum": ["user", "project", "thread"]}}
_AUTHORITY: dict[str, JsonValue] = {"authority": {"type": "string", "enum": ["descriptive", "instruction"]}}
_LABELS: dict[str, JsonValue] = {
    **_SCOPE,
    "durability": {"type": "string", "enum": ["durable", "temporary"]},
    **_AUTHORITY,
}
_SUMMARY = _object({"summary": _TEXT, "shouldUpdate": {"type": "boolean"}, **_SCOPE, **_AUTHORITY})
_CATEGORY: JsonValue = {"type": "string", "description": f"{', '.join(CATEGORIES)}, or a word of your own"}
_FACT = _object({
    "content": _TEXT,
    "category": _CATEGORY,
    "confidence": {"type": "number"},
    "expected_valid_days": {"type": ["integer", "null"]},
    "sourceError": {"type": ["string", "null"]},
    "quote": {"type": "string", "description": "the words of one message that it rests on, copied exactly"},
    **_LABELS,
})  # fmt: skip
_REFERENCE: dict[str, JsonValue] = {"id": _TEXT, "reason": _TEXT}

UPDATE_SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "user": _object(dict.fromkeys(USER_SUMMARIES, _SUMMARY)),
        "history": _object(dict.fromkeys(HISTORY_SUMMARIES, _SUMMARY)),
        "newFacts": _array(_FACT),
        "factsToReinforce": _array(_object({**_REFERENCE, **_SCOPE})),
        "factsToRemove": _array(
            _object({**_REFERENCE, **_SCOPE, "replacementFactIndex": {"type": ["integer", "null"]}})
        ),
        "staleFactsToRemove": _array(_object(dict(_REFERENCE))),
        "staleFactsToExtend": _array(_object({**_REFERENCE, "extend_by_days": {"type": ["integer", "null"]}})),
        "factsToConsolidate": _array(
            _object({
                "sourceIds": _array(_TEXT),
                "consolidated": _object({"content": _TEXT, "confidence": {"type": "number"}, **_LABELS}),
            })
        ),
    },
    "required": [
        "user", "history", "newFacts", "factsToReinforce", "factsToRemove", "staleFactsToRemove",
        "staleFactsToExtend", "factsToConsolidate",
    ],
    "additionalProperties": False,
}  # fmt: skip
"""The JSON schema of an update; `answer` reads it, and takes less than all of it as well."""
