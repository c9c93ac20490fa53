"""Shapes of arguments: a JSON schema for the model, and a check of the values it sent.

A value is first read exactly; then common mistakes are corrected, such as a number given as text. A union tries all
options exactly before it corrects anything. All problems of a record are reported at once.

Invariant: the schema allows every JSON value that is read exactly.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue

__all__ = [
    "AnyValue",
    "Boolean",
    "Choice",
    "DescribedShape",
    "Field",
    "Integer",
    "ListOf",
    "MapOf",
    "Mismatch",
    "Null",
    "Number",
    "OneOf",
    "RecordOf",
    "Shape",
    "String",
    "TupleOf",
    "create_mismatch",
    "read_fields",
    "record_schema",
]


_WHOLE = lazy_compile(r"[+-]?[0-9]{1,100}")
_DECIMAL = lazy_compile(r"[+-]?(?:[0-9]{1,100}(?:\.[0-9]{0,100})?|\.[0-9]{1,100})(?:[eE][+-]?[0-9]{1,4})?")
_MAX_QUOTED_CHARS = 60


class Mismatch(ValueError):
    """A value that does not match; the text names the argument, the expected shape and the value."""


class Shape(Protocol):
    """The expected form of a value."""

    @property
    def label(self) -> str:
        """The expected form in words, such as `a whole number`."""
        ...

    def schema(self) -> dict[str, JsonValue]:
        """Return the JSON schema."""
        ...

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Convert `value` for the function. Raises: Mismatch, which names `location`."""
        ...


@dataclass(frozen=True, kw_only=True)
class AnyValue:
    """Any JSON value, unchanged."""

    label: str = "any value"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema that allows everything."""
        return {}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return `value`."""
        del location, exactly
        return value


@dataclass(frozen=True, kw_only=True)
class Null:
    """None."""

    label: str = "null"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of null."""
        return {"type": "null"}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> None:
        """Return None."""
        del exactly
        if value is not None:
            raise create_mismatch(self, value, location)


@dataclass(frozen=True, kw_only=True)
class String:
    """A text."""

    label: str = "a text"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of a text."""
        return {"type": "string"}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the text."""
        del exactly
        if not isinstance(value, str):
            raise create_mismatch(self, value, location)
        return value


@dataclass(frozen=True, kw_only=True)
class Boolean:
    """A boolean; the texts "true" and "false" are corrected."""

    label: str = "true or false"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of a boolean."""
        return {"type": "boolean"}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return True or False."""
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and not exactly and value.strip().lower() in {"true", "false"}:
            return value.strip().lower() == "true"
        raise create_mismatch(self, value, location)


@dataclass(frozen=True, kw_only=True)
class Integer:
    """An integer; a float with a zero fraction counts as one, and a text is corrected."""

    label: str = "a whole number"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an integer."""
        return {"type": "integer"}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the integer."""
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and not exactly and _WHOLE.fullmatch(value.strip()):
            return int(value)
        raise create_mismatch(self, value, location)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A finite number, as a float; a text is corrected."""

    label: str = "a number"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of a number."""
        return {"type": "number"}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the number."""
        number = math.nan
        is_text = isinstance(value, str) and not exactly and _DECIMAL.fullmatch(value.strip())
        if is_text or (isinstance(value, int | float) and not isinstance(value, bool)):
            try:
                number = float(value)  # type: ignore[arg-type]
            except OverflowError:
                number = math.inf
        if not math.isfinite(number):
            raise create_mismatch(self, value, location)
        return number


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of several values, as pairs of what the model writes and what the function receives."""

    options: tuple[tuple[str | int | float | bool | None, object], ...]

    @property
    def label(self) -> str:
        """The values in words."""
        return "one of " + ", ".join(_quote_value(written) for written, _ in self.options)

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema that lists the values, with their type if all are texts or all are integers."""
        written = [written for written, _ in self.options]
        names = {"string": str, "integer": int}
        common = [name for name, kind in names.items() if all(type(value) is kind for value in written)]
        return {"type": common[0], "enum": [*written]} if common else {"enum": [*written]}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the function's value for the chosen option."""
        for written, meant in self.options:
            if type(written) is type(value) and written == value:
                return meant
        if not exactly and isinstance(value, str):
            for written, meant in self.options:
                if not isinstance(written, str) and _quote_value(written) == value.strip():
                    return meant
        raise create_mismatch(self, value, location)


def create_mismatch(shape: Shape, value: JsonValue, location: str) -> Mismatch:
    """Return the error for a value that does not match this shape."""
    return Mismatch(f"The argument `{location}` has to be {shape.label}, not {_describe_value(value)}.")


def _describe_value(value: JsonValue) -> str:
    match value:
        case None | bool():
            return _quote_value(value)
        case str():
            return f"the text {_quote_value(value)}"
        case int() | float():
            return f"the number {_quote_value(value)}"
        case list():
            return f"a list of {len(value)}"
        case _:
            return "an object"


def _quote_value(value: str | int | float | bool | None) -> str:  # noqa: FBT001  (a value, not a switch)
    if isinstance(value, str):
        cut = value if len(value) <= _MAX_QUOTED_CHARS else f"{value[:_MAX_QUOTED_CHARS]}…"
        return '"' + cut.replace("\n", " ") + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # A number with very many digits can't be printed and would say nothing.
    return str(value) if isinstance(value, float) or abs(value) < 10**_MAX_QUOTED_CHARS else "of very many digits"


@dataclass(frozen=True, kw_only=True)
class ListOf:
    """Any number of values of one shape, converted with `make` for the function."""

    item: Shape
    make: Callable[[Iterable[object]], object] = list
    unique: bool = False

    @property
    def label(self) -> str:
        """A list and the form of its items."""
        return f"a list, each {self.item.label}"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an array."""
        more: dict[str, JsonValue] = {"uniqueItems": True} if self.unique else {}
        return {"type": "array", "items": self.item.schema(), **more}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the values."""
        if not isinstance(value, list):
            raise create_mismatch(self, value, location)
        items = [self.item.read(item, f"{location}[{place}]", exactly=exactly) for place, item in enumerate(value)]
        try:
            made = self.make(items)
        except TypeError as error:
            raise Mismatch(f"The argument `{location}` holds a value that can't be in a set.") from error
        if self.unique and exactly and isinstance(made, set | frozenset) and len(made) < len(items):
            raise Mismatch(f"The argument `{location}` has to be a list without repetitions.")
        return made


@dataclass(frozen=True, kw_only=True)
class TupleOf:
    """A fixed number of values, each of its own shape."""

    items: tuple[Shape, ...]

    @property
    def label(self) -> str:
        """The number of items and their forms."""
        return f"a list of {len(self.items)}: {', '.join(item.label for item in self.items)}"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an array of this length."""
        count = len(self.items)
        each: dict[str, JsonValue] = {"prefixItems": [item.schema() for item in self.items]} if count else {}
        return {"type": "array", **each, "minItems": count, "maxItems": count}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the values as a tuple."""
        if not isinstance(value, list) or len(value) != len(self.items):
            raise create_mismatch(self, value, location)
        pairs = enumerate(zip(self.items, value, strict=True))
        return tuple(shape.read(item, f"{location}[{place}]", exactly=exactly) for place, (shape, item) in pairs)


@dataclass(frozen=True, kw_only=True)
class MapOf:
    """Values of one shape under any keys."""

    item: Shape

    @property
    def label(self) -> str:
        """An object and the form of its values."""
        return f"an object, each value {self.item.label}"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an object with any keys."""
        return {"type": "object", "additionalProperties": self.item.schema()}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the values in a dictionary."""
        if not isinstance(value, dict):
            raise create_mismatch(self, value, location)
        return {key: self.item.read(item, f"{location}.{key}", exactly=exactly) for key, item in value.items()}


@dataclass(frozen=True, kw_only=True)
class Field:
    """A named value of a record, or an argument of a function; `default` is shown in the schema if possible."""

    name: str
    shape: Shape
    required: bool = True
    default: JsonValue = None


@dataclass(frozen=True, kw_only=True)
class RecordOf:
    """Named values, converted with `make` for the function."""

    name: str
    fields: tuple[Field, ...]
    make: Callable[..., object] = dict

    @property
    def label(self) -> str:
        """An object and its field names."""
        return f"an object with {', '.join(field.name for field in self.fields) or 'no fields'}"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an object with these fields and no others."""
        return record_schema(self.fields)

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the record."""
        if not isinstance(value, dict):
            raise create_mismatch(self, value, location)
        values, problems = read_fields(self.fields, value, f"{location}.", exactly=exactly)
        if problems:
            raise Mismatch(" ".join(problems))
        try:
            return self.make(**values)
        except (TypeError, ValueError) as error:
            raise Mismatch(f"The argument `{location}` is no {self.name}: {error}.") from error


@dataclass(frozen=True, kw_only=True)
class OneOf:
    """A value of one of several shapes; the first match counts."""

    options: tuple[Shape, ...]

    @property
    def label(self) -> str:
        """The forms of the options."""
        return " or ".join(option.label for option in self.options)

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema that allows each option."""
        return {"anyOf": [option.schema() for option in self.options]}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the value as read by the first matching option."""
        for strict in (True,) if exactly else (True, False):
            for option in self.options:
                with suppress(Mismatch):
                    return option.read(value, location, exactly=strict)
        meant = [option for option in self.options if not isinstance(option, Null)]
        if len(meant) == 1 and value is not None:
            # The error of the only option says more, such as which item of a list is wrong.
            return meant[0].read(value, location, exactly=exactly)
        raise create_mismatch(self, value, location)


@dataclass(frozen=True, kw_only=True)
class DescribedShape:
    """A shape with a description for the model."""

    shape: Shape
    description: str

    @property
    def label(self) -> str:
        """The expected form in words."""
        return self.shape.label

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema with the description."""
        return {**self.shape.schema(), "description": self.description}

    def read(self, value: JsonValue, location: str, *, exactly: bool) -> object:
        """Return the value as read by the shape."""
        return self.shape.read(value, location, exactly=exactly)


def record_schema(fields: Sequence[Field]) -> dict[str, JsonValue]:
    """Return the schema of an object with these fields and no others."""
    properties: dict[str, JsonValue] = {
        field.name: {**field.shape.schema(), **({} if field.default is None else {"default": field.default})}
        for field in fields
    }
    required: list[JsonValue] = [field.name for field in fields if field.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def read_fields(
    fields: Sequence[Field], arguments: Mapping[str, JsonValue], location: str = "", *, exactly: bool = False
) -> tuple[dict[str, object], list[str]]:
    """Return the values of the given fields, and all problems of `arguments`, one sentence each."""
    names = [field.name for field in fields]
    expected = f"it takes {', '.join(names)}" if names else "it takes none"
    problems = [f"There is no argument `{location}{name[:60]}`: {expected}." for name in arguments if name not in names]
    values: dict[str, object] = {}
    for field in fields:
        if field.name in arguments:
            try:
                values[field.name] = field.shape.read(arguments[field.name], location + field.name, exactly=exactly)
            except Mismatch as error:
                problems.append(str(error))
        elif field.required:
            problems.append(f"The argument `{location}{field.name}` is missing: it is {field.shape.label}.")
    return values, problems
