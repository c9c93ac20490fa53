"""Shapes that are made of others: lists, mappings, records, unions, and the arguments of a function as a whole.

Invariant: of a record all that is wrong is told at once, so that a model can put it right in one step.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ricordo.messages import JsonValue
from ricordo.tools.shapes import Mismatch, Null, Shape, create_mismatch

__all__ = [
    "DescribedShape",
    "Field",
    "ListOf",
    "MapOf",
    "OneOf",
    "RecordOf",
    "TupleOf",
    "read_fields",
    "record_schema",
]


@dataclass(frozen=True, kw_only=True)
class ListOf:
    """Any number of values of one shape, given to the function as what `make` makes of them."""

    item: Shape
    make: Callable[[Iterable[object]], object] = list
    unique: bool = False

    @property
    def label(self) -> str:
        """A list of what."""
        return f"a list, each {self.item.label}"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an array."""
        more: dict[str, JsonValue] = {"uniqueItems": True} if self.unique else {}
        return {"type": "array", "items": self.item.schema(), **more}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the values."""
        if not isinstance(value, list):
            raise create_mismatch(self, value, where)
        items = [self.item.read(item, f"{where}[{place}]", exactly=exactly) for place, item in enumerate(value)]
        try:
            made = self.make(items)
        except TypeError as error:
            raise Mismatch(f"The argument `{where}` holds a value that can't be in a set.") from error
        if self.unique and exactly and isinstance(made, set | frozenset) and len(made) < len(items):
            raise Mismatch(f"The argument `{where}` has to be a list without repetitions.")
        return made


@dataclass(frozen=True, kw_only=True)
class TupleOf:
    """So many values, each of its own shape."""

    items: tuple[Shape, ...]

    @property
    def label(self) -> str:
        """How many of what."""
        return f"a list of {len(self.items)}: {', '.join(item.label for item in self.items)}"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an array of this length."""
        count = len(self.items)
        each: dict[str, JsonValue] = {"prefixItems": [item.schema() for item in self.items]} if count else {}
        return {"type": "array", **each, "minItems": count, "maxItems": count}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the values as a tuple."""
        if not isinstance(value, list) or len(value) != len(self.items):
            raise create_mismatch(self, value, where)
        pairs = enumerate(zip(self.items, value, strict=True))
        return tuple(shape.read(item, f"{where}[{place}]", exactly=exactly) for place, (shape, item) in pairs)


@dataclass(frozen=True, kw_only=True)
class MapOf:
    """Values of one shape under names of the model's choice."""

    item: Shape

    @property
    def label(self) -> str:
        """An object of what."""
        return f"an object, each value {self.item.label}"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an object with any keys."""
        return {"type": "object", "additionalProperties": self.item.schema()}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the values in a dictionary."""
        if not isinstance(value, dict):
            raise create_mismatch(self, value, where)
        return {key: self.item.read(item, f"{where}.{key}", exactly=exactly) for key, item in value.items()}


@dataclass(frozen=True, kw_only=True)
class Field:
    """A named value of a record, or an argument of a function; `default` is what the schema shows, when it can."""

    name: str
    shape: Shape
    required: bool = True
    default: JsonValue = None


@dataclass(frozen=True, kw_only=True)
class RecordOf:
    """Named values, given to the function as what `make` makes of them."""

    name: str
    fields: tuple[Field, ...]
    make: Callable[..., object] = dict

    @property
    def label(self) -> str:
        """An object with which fields."""
        return f"an object with {', '.join(field.name for field in self.fields) or 'no fields'}"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an object with these fields and no others."""
        return record_schema(self.fields)

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the record."""
        if not isinstance(value, dict):
            raise create_mismatch(self, value, where)
        values, problems = read_fields(self.fields, value, f"{where}.", exactly=exactly)
        if problems:
            raise Mismatch(" ".join(problems))
        try:
            return self.make(**values)
        except (TypeError, ValueError) as error:
            raise Mismatch(f"The argument `{where}` is no {self.name}: {error}.") from error


@dataclass(frozen=True, kw_only=True)
class OneOf:
    """A value of any of several shapes, the first that fits."""

    options: tuple[Shape, ...]

    @property
    def label(self) -> str:
        """What the options are."""
        return " or ".join(option.label for option in self.options)

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema that allows each option."""
        return {"anyOf": [option.schema() for option in self.options]}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the value as the first option reads it."""
        for strict in (True,) if exactly else (True, False):
            for option in self.options:
                with suppress(Mismatch):
                    return option.read(value, where, exactly=strict)
        meant = [option for option in self.options if not isinstance(option, Null)]
        if len(meant) == 1 and value is not None:
            # its own text tells more, such as which item of a list is wrong
            return meant[0].read(value, where, exactly=exactly)
        raise create_mismatch(self, value, where)


@dataclass(frozen=True, kw_only=True)
class DescribedShape:
    """A shape with words about it for the model."""

    shape: Shape
    description: str

    @property
    def label(self) -> str:
        """What is expected."""
        return self.shape.label

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema with the description."""
        return {**self.shape.schema(), "description": self.description}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the value as the shape reads it."""
        return self.shape.read(value, where, exactly=exactly)


def record_schema(fields: Sequence[Field]) -> dict[str, JsonValue]:
    """Return the schema of an object with these fields and no others."""
    properties: dict[str, JsonValue] = {
        field.name: {**field.shape.schema(), **({} if field.default is None else {"default": field.default})}
        for field in fields
    }
    required: list[JsonValue] = [field.name for field in fields if field.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def read_fields(
    fields: Sequence[Field], given: Mapping[str, JsonValue], where: str = "", *, exactly: bool = False
) -> tuple[dict[str, object], list[str]]:
    """Return the values of the fields that are given, and all that is wrong with `given`, a sentence each."""
    names = [field.name for field in fields]
    taken = f"it takes {', '.join(names)}" if names else "it takes none"
    problems = [f"There is no argument `{where}{name[:60]}`: {taken}." for name in given if name not in names]
    values: dict[str, object] = {}
    for field in fields:
        if field.name in given:
            try:
                values[field.name] = field.shape.read(given[field.name], where + field.name, exactly=exactly)
            except Mismatch as error:
                problems.append(str(error))
        elif field.required:
            problems.append(f"The argument `{where}{field.name}` is missing: it is {field.shape.label}.")
    return values, problems
