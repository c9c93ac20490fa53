"""The form of an update: the JSON schema that a model's answer has, in the names of the document."""

from collections.abc import Mapping

from ricordo.messages.types import JsonValue
from ricordo.workspace.profile import CATEGORIES, HISTORY_LEVEL, USER_LEVEL

__all__ = ["UPDATE_FORM"]


def _object(properties: dict[str, JsonValue]) -> JsonValue:
    names: list[JsonValue] = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _list(row: JsonValue) -> JsonValue:
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
_NAMED: dict[str, JsonValue] = {"id": _TEXT, "reason": _TEXT}

UPDATE_FORM: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "user": _object(dict.fromkeys(USER_LEVEL, _SUMMARY)),
        "history": _object(dict.fromkeys(HISTORY_LEVEL, _SUMMARY)),
        "newFacts": _list(_FACT),
        "factsToReinforce": _list(_object({**_NAMED, **_SCOPE})),
        "factsToRemove": _list(
            _object({**_NAMED, **_SCOPE, "replacementFactIndex": {"type": ["integer", "null"]}})
        ),
        "staleFactsToRemove": _list(_object(dict(_NAMED))),
        "staleFactsToExtend": _list(_object({**_NAMED, "extend_by_days": {"type": ["integer", "null"]}})),
        "factsToConsolidate": _list(
            _object({
                "sourceIds": _list(_TEXT),
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
