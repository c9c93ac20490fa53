"""Shapes from type annotations, and the output type of a turn.

An output type is a dataclass, a TypedDict, a plain type such as `list[str]`, or a pydantic model, which is recognized
by its methods without importing pydantic. A type without a JSON schema is refused when the tool is built.
"""

import dataclasses
import enum
import types
import typing
from collections import abc
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast, runtime_checkable

from ricordo.agent.tools.shapes import (
    AnyValue,
    Boolean,
    Choice,
    DescribedShape,
    Field,
    Integer,
    ListOf,
    MapOf,
    Mismatch,
    Null,
    Number,
    OneOf,
    RecordOf,
    Shape,
    String,
    TupleOf,
)
from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue
from ricordo.messages.json_text import dumps

__all__ = ["OutputType", "build_shape", "create_output_type", "create_parameter_error", "default_to_json"]


_PLAIN: Mapping[object, Shape] = {
    str: String(),
    int: Integer(),
    float: Number(),
    bool: Boolean(),
    None: Null(),
    types.NoneType: Null(),
    object: AnyValue(),
    typing.Any: AnyValue(),
}
_LISTS = frozenset([list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable])
_SETS = frozenset([set, abc.Set, abc.MutableSet])
_MAPS = frozenset([dict, abc.Mapping, abc.MutableMapping])
_UNIONS = frozenset([typing.Union, types.UnionType])
_WRAPPERS = frozenset([typing.Required, typing.NotRequired])


def build_shape(annotation: object, location: str, inside: tuple[object, ...] = ()) -> Shape:
    """Return the shape for an annotation; `location` names the parameter in an error.

    `inside` are the records that contain this annotation. Raises: InvalidSetting for a type without a JSON schema.
    """
    annotation = _unwrap_annotation(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _described_shape(arguments, location, inside)
    if origin in _UNIONS:
        return OneOf(options=tuple(build_shape(option, location, inside) for option in arguments))
    if origin is typing.Literal:
        return _choice_shape([(value, value) for value in arguments], location)
    if not isinstance(annotation, abc.Hashable):
        raise create_parameter_error(location, f"{annotation!r} is no type")
    plain = _PLAIN.get(annotation)
    return (
        plain
        or _container_shape(origin or annotation, arguments, location, inside)
        or _record_or_enum_shape(annotation, location, inside)
    )


def default_to_json(value: object) -> JsonValue:
    """Return a default value for the schema; None if it is not a plain value."""
    if isinstance(value, enum.Enum):
        return default_to_json(value.value) if _is_plain(value.value) else value.name
    if isinstance(value, list | tuple) and all(map(_is_plain, value)):
        return [*value]
    return value if _is_plain(value) else None  # type: ignore[return-value]


def _unwrap_annotation(annotation: object) -> object:
    """Return the type behind a new type, an alias, or a field marker such as `Required`."""
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = getattr(annotation, "__value__", None)
        elif typing.get_origin(annotation) in _WRAPPERS:
            annotation = typing.get_args(annotation)[0]
        else:
            return annotation


def _described_shape(arguments: tuple[object, ...], location: str, inside: tuple[object, ...]) -> Shape:
    shape = build_shape(arguments[0], location, inside)
    words = [text for text in arguments[1:] if isinstance(text, str)]
    return DescribedShape(shape=shape, description=" ".join(words)) if words else shape


def _container_shape(
    kind: object, arguments: tuple[object, ...], location: str, inside: tuple[object, ...]
) -> ListOf | TupleOf | MapOf | None:
    """Return the shape of a list, set, tuple or mapping; None for anything else."""
    if kind in _MAPS:
        key, item = arguments or (str, object)
        if key is not str:
            raise create_parameter_error(location, "the keys of a mapping are texts")
        return MapOf(item=build_shape(item, location, inside))
    if kind is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis) and arguments:
        items = () if arguments == ((),) else arguments
        return TupleOf(items=tuple(build_shape(item, location, inside) for item in items))
    item = build_shape(arguments[0], location, inside) if arguments else AnyValue()
    if kind is tuple:
        return ListOf(item=item, make=tuple)
    if kind is frozenset or kind in _SETS:
        return ListOf(item=item, make=frozenset if kind is frozenset else set, unique=True)
    return ListOf(item=item) if kind in _LISTS else None


def _record_or_enum_shape(annotation: object, location: str, inside: tuple[object, ...]) -> Shape:
    """Return the shape of an enumeration, a dataclass or a TypedDict."""
    if annotation in inside:
        raise create_parameter_error(location, f"{_type_name(annotation)} is a part of itself")
    if isinstance(annotation, enum.EnumMeta):
        members: list[enum.Enum] = list(annotation)
        plain = all(_is_plain(member.value) for member in members)
        return _choice_shape([(member.value if plain else member.name, member) for member in members], location)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return _dataclass_shape(annotation, location, inside)
    if typing.is_typeddict(annotation):
        return _typed_dict_shape(typing.cast("type", annotation), location, inside)
    raise create_parameter_error(location, f"{_type_name(annotation)} can't be said in a JSON schema")


def _dataclass_shape(annotation: type, location: str, inside: tuple[object, ...]) -> RecordOf:
    hints = _type_hints(annotation, location)
    missing = dataclasses.MISSING
    fields = tuple(
        Field(
            name=field.name,
            shape=build_shape(hints[field.name], f"{location}.{field.name}", (*inside, annotation)),
            required=field.default is missing and field.default_factory is missing,
            default=None if field.default is missing else default_to_json(field.default),
        )
        for field in dataclasses.fields(annotation)
        if field.init
    )
    return RecordOf(name=annotation.__name__, fields=fields, make=annotation)


def _typed_dict_shape(annotation: type, location: str, inside: tuple[object, ...]) -> RecordOf:
    required: frozenset[str] = getattr(annotation, "__required_keys__", frozenset())
    fields = tuple(
        Field(
            name=name,
            shape=build_shape(hint, f"{location}.{name}", (*inside, annotation)),
            # With postponed annotations the required keys don't reflect the markers of a field.
            required=typing.get_origin(hint) is not typing.NotRequired
            and (name in required or typing.get_origin(hint) is typing.Required),
        )
        for name, hint in _type_hints(annotation, location).items()
    )
    return RecordOf(name=annotation.__name__, fields=fields)


def _type_hints(annotation: type, location: str) -> dict[str, object]:
    hints: Callable[..., dict[str, object]] = typing.get_type_hints
    try:
        return hints(annotation, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise create_parameter_error(
            location, f"the annotations of {annotation.__name__} can't be read: {error}"
        ) from error


def _choice_shape(options: list[tuple[object, object]], location: str) -> Choice:
    choices = []
    for written, meant in options:
        if isinstance(written, enum.Enum) or not _is_plain(written):
            raise create_parameter_error(location, f"{written!r} is no value that a model can write")
        choices.append((typing.cast("str | int | float | bool | None", written), meant))
    if not choices:
        raise create_parameter_error(location, "there is nothing to choose from")
    return Choice(options=tuple(choices))


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _type_name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def create_parameter_error(location: str, reason: str) -> InvalidSetting:
    """Return the error for a parameter that can't be offered to a model; `location` names it."""
    return InvalidSetting(f"The parameter `{location}` of a tool can't be offered to a model: {reason}.")


_OUTPUT_NAME = "answer"
_WRAPPER_KEY = "value"


@dataclass(frozen=True, kw_only=True)
class OutputType:
    """The type of a turn's answer; `make` converts an answer that matches `schema` to a value, or raises."""

    schema: Mapping[str, JsonValue]
    make: Callable[[JsonValue], object]

    def read(self, value: JsonValue) -> object:
        """Return the value of an answer. Raises: ValueError with what does not match, also for None."""
        if value is None:
            raise Mismatch("It is no JSON object with the keys that are required.")
        return self.make(value)


@runtime_checkable
class _PydanticModel(Protocol):
    """The class of a pydantic model."""

    def model_json_schema(self) -> dict[str, JsonValue]: ...

    def model_validate_json(self, text: str, /) -> object: ...


def create_output_type(kind: object) -> OutputType:
    """Return the output type for a Python type. Raises: InvalidSetting for a type without a JSON schema."""
    if isinstance(kind, type) and isinstance(kind, _PydanticModel):
        model = cast("Any", kind)
        return OutputType(schema=model.model_json_schema(), make=lambda value: model.model_validate_json(dumps(value)))
    try:
        shape = build_shape(kind, _OUTPUT_NAME)
    except InvalidSetting as error:
        reason = str(error).partition("model: ")[2] or str(error)
        raise InvalidSetting(
            f"output_type is a type that a model can answer with, and this is none: {reason}"
        ) from error
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
