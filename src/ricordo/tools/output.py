"""Output: the type that a turn is to answer with, as a JSON schema for the model and as a check of what it said.

A type is a dataclass, a TypedDict, a plain type such as `list[str]`, or a model of pydantic, which is known by its
methods, so that nothing of that package is imported. What is no object in JSON travels in one under `value`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from ricordo.errors import InvalidSetting
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import dumps
from ricordo.tools.schema import build_shape
from ricordo.tools.shapes import Mismatch, Shape

__all__ = ["OutputType", "create_output_type"]

_OUTPUT_NAME = "answer"
_WRAPPER_KEY = "value"


@dataclass(frozen=True, kw_only=True)
class OutputType:
    """What a turn is to answer with; `make` makes the value of an answer in the form of `schema`, or raises."""

    schema: Mapping[str, JsonValue]
    make: Callable[[JsonValue], object]

    def read(self, value: JsonValue) -> object:
        """Return the value of an answer. Raises: ValueError, which says what does not fit; also for None."""
        if value is None:
            raise Mismatch("It is no JSON object with the keys that are required.")
        return self.make(value)


@runtime_checkable
class _PydanticModel(Protocol):
    """A model of pydantic, which is a class."""

    def model_json_schema(self) -> dict[str, JsonValue]: ...

    def model_validate_json(self, text: str, /) -> object: ...


def create_output_type(kind: object) -> OutputType:
    """Return what asks for a value of this type. Raises: InvalidSetting for one that a JSON schema can't say."""
    if isinstance(kind, type) and isinstance(kind, _PydanticModel):
        model = cast("Any", kind)
        return OutputType(schema=model.model_json_schema(), make=lambda value: model.model_validate_json(dumps(value)))
    try:
        shape = build_shape(kind, _OUTPUT_NAME)
    except InvalidSetting as error:
        why = str(error).partition("model: ")[2] or str(error)
        raise InvalidSetting(f"output_type is a type that a model can answer with, and this is none: {why}") from error
    schema = shape.schema()
    if schema.get("type") == "object":
        return OutputType(schema=schema, make=lambda value: shape.read(value, _OUTPUT_NAME, exactly=False))
    wrapped: dict[str, JsonValue] = {
        "type": "object",
        "properties": {_WRAPPER_KEY: schema},
        "required": [_WRAPPER_KEY],
        "additionalProperties": False,
    }
    return OutputType(schema=wrapped, make=lambda value: _read_wrapped(shape, value))


def _read_wrapped(shape: Shape, value: JsonValue) -> object:
    inside = value.get(_WRAPPER_KEY) if isinstance(value, Mapping) else value
    return shape.read(inside, _OUTPUT_NAME, exactly=False)
