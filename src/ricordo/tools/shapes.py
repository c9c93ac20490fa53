"""Shapes: what one argument may look like, as a JSON schema for the model and as a check of what the model sent.

A shape reads twice: exactly, then with what models commonly get wrong put right, such as a number given as text. A
union tries all its options exactly before it puts anything right, so `int | str` keeps the text "5" as it is.

Invariant: every JSON value that `read` accepts exactly is one that `schema` allows. Nothing here looks at annotations,
`ricordo.tools.schema` does.
"""

import math
import re
from dataclasses import dataclass
from typing import Protocol

from ricordo.messages import JsonValue

__all__ = [
    "AnyValue",
    "Choice",
    "Mismatch",
    "Null",
    "Number",
    "Shape",
    "String",
    "Boolean",
    "Integer",
    "create_mismatch",
]

_WHOLE = re.compile(r"[+-]?[0-9]{1,100}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,100}(?:\.[0-9]{0,100})?|\.[0-9]{1,100})(?:[eE][+-]?[0-9]{1,4})?")
_MAX_QUOTED_CHARS = 60


class Mismatch(ValueError):
    """A value does not fit; the text names the argument, what was expected and what came."""


class Shape(Protocol):
    """What a value may look like."""

    @property
    def label(self) -> str:
        """What is expected, such as `a whole number`."""
        ...

    def schema(self) -> dict[str, JsonValue]:
        """Return the JSON schema."""
        ...

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return `value` as the function takes it. Raises: Mismatch, which names `where`."""
        ...


@dataclass(frozen=True, kw_only=True)
class AnyValue:
    """Any JSON value, as it is."""

    label: str = "any value"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema that allows everything."""
        return {}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return `value`."""
        del where, exactly
        return value


@dataclass(frozen=True, kw_only=True)
class Null:
    """None."""

    label: str = "null"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of null."""
        return {"type": "null"}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> None:
        """Return None."""
        del exactly
        if value is not None:
            raise create_mismatch(self, value, where)


@dataclass(frozen=True, kw_only=True)
class String:
    """A text."""

    label: str = "a text"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of a text."""
        return {"type": "string"}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the text."""
        del exactly
        if not isinstance(value, str):
            raise create_mismatch(self, value, where)
        return value


@dataclass(frozen=True, kw_only=True)
class Boolean:
    """A truth value; "true" and "false" as texts are put right."""

    label: str = "true or false"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of a truth value."""
        return {"type": "boolean"}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return True or False."""
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and not exactly and value.strip().lower() in {"true", "false"}:
            return value.strip().lower() == "true"
        raise create_mismatch(self, value, where)


@dataclass(frozen=True, kw_only=True)
class Integer:
    """An integer; one with a zero fraction is one in JSON too, and one as a text is put right."""

    label: str = "a whole number"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of an integer."""
        return {"type": "integer"}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the integer."""
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and not exactly and _WHOLE.fullmatch(value.strip()):
            return int(value)
        raise create_mismatch(self, value, where)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A finite number, as a float; one as a text is put right."""

    label: str = "a number"

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema of a number."""
        return {"type": "number"}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return the number."""
        number = math.nan
        is_text = isinstance(value, str) and not exactly and _DECIMAL.fullmatch(value.strip())
        if is_text or (isinstance(value, int | float) and not isinstance(value, bool)):
            try:
                number = float(value)  # type: ignore[arg-type]
            except OverflowError:
                number = math.inf
        if not math.isfinite(number):
            raise create_mismatch(self, value, where)
        return number


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of several values: pairs of what the model writes and what the function takes."""

    options: tuple[tuple[str | int | float | bool | None, object], ...]

    @property
    def label(self) -> str:
        """The values."""
        return "one of " + ", ".join(_quote_value(written) for written, _ in self.options)

    def schema(self) -> dict[str, JsonValue]:
        """Return the schema that lists the values, with their type where they are all texts or all integers."""
        written = [written for written, _ in self.options]
        names = {"string": str, "integer": int}
        common = [name for name, kind in names.items() if all(type(value) is kind for value in written)]
        return {"type": common[0], "enum": [*written]} if common else {"enum": [*written]}

    def read(self, value: JsonValue, where: str, *, exactly: bool) -> object:
        """Return what the chosen value stands for."""
        for written, meant in self.options:
            if type(written) is type(value) and written == value:
                return meant
        if not exactly and isinstance(value, str):
            for written, meant in self.options:
                if not isinstance(written, str) and _quote_value(written) == value.strip():
                    return meant
        raise create_mismatch(self, value, where)


def create_mismatch(shape: Shape, value: JsonValue, where: str) -> Mismatch:
    """Return the error for a value that is not of this shape."""
    return Mismatch(f"The argument `{where}` has to be {shape.label}, not {_describe_value(value)}.")


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
    # a number of very many digits can't be written, and says nothing
    return str(value) if isinstance(value, float) or abs(value) < 10**_MAX_QUOTED_CHARS else "of very many digits"
