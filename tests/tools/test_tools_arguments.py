"""Arguments of a tool from a function: what the signature says is what the model sees, and all that gets through."""

import dataclasses
import enum
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.agent import tool
from ricordo.agent.tools.schema import build_shape, default_to_json
from ricordo.agent.tools.shapes import Field, Mismatch, read_fields
from ricordo.errors import InvalidSetting
from ricordo.messages import JsonValue

if TYPE_CHECKING:
    from ricordo.agent.tools import FunctionTool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    PAIR = (1, 2)
    NONE = ()


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Line:
    start: Point
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    children: "list[Tree]"


class Place(TypedDict):
    city: str
    zip: NotRequired[int]


CityName = NewType("CityName", str)

READ: list[tuple[object, JsonValue, object]] = [
    (str, "a", "a"),
    (int, 5, 5),
    (int, 5.0, 5),
    (int, "5", 5),
    (int, " -12 ", -12),
    (float, 1, 1.0),
    (float, "1.5e3", 1500.0),
    (bool, True, True),
    (bool, "false", False),
    (None, None, None),
    (Optional[int], None, None),  # noqa: UP045
    (Optional[int], "7", 7),  # noqa: UP045
    (Union[int, str], "7", "7"),  # noqa: UP007
    (str | int, 7, 7),
    (int | list[int], ["7"], [7]),
    (Literal["a", 1, True], True, True),
    (Literal["a", 1], "1", 1),
    (Colour, "blue", Colour.BLUE),
    (Level, 2, Level.HIGH),
    (Odd, "PAIR", Odd.PAIR),
    (list[int], ["1", 2], [1, 2]),
    (Sequence[str], [], []),
    (set[int], [1, 1], {1}),
    (frozenset[str], ["a"], frozenset(["a"])),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
    (tuple[()], [], ()),
    (list, [1, "a", None], [1, "a", None]),
    (dict[str, int], {"a": "1"}, {"a": 1}),
    (Mapping[str, object], {"a": [None]}, {"a": [None]}),
    (Place, {"city": "Bergamo"}, {"city": "Bergamo"}),
    (Place, {"city": "Bergamo", "zip": "24121"}, {"city": "Bergamo", "zip": 24121}),
    (Point, {"x": 1}, Point(1)),
    (Line, {"start": {"x": "1", "y": 2}, "tags": ["a"]}, Line(Point(1, 2), ["a"])),
    (Annotated[int, "how many"], "5", 5),
    (CityName, "Bergamo", "Bergamo"),
    (Any, {"a": 1}, {"a": 1}),
]
REFUSED: list[tuple[object, JsonValue, str]] = [
    (str, 5, "The argument `it` has to be a text, not the number 5."),
    (int, "five", 'The argument `it` has to be a whole number, not the text "five".'),
    (int, True, "The argument `it` has to be a whole number, not true."),
    (int, 1.5, "The argument `it` has to be a whole number, not the number 1.5."),
    (int, "9" * 5_000, f'The argument `it` has to be a whole number, not the text "{"9" * 60}…".'),
    (float, math.nan, "The argument `it` has to be a number, not the number nan."),
    (float, 10**400, "The argument `it` has to be a number, not the number of very many digits."),
    (float, "inf", 'The argument `it` has to be a number, not the text "inf".'),
    (bool, 1, "The argument `it` has to be true or false, not the number 1."),
    (None, "", 'The argument `it` has to be null, not the text "".'),
    (Literal["a", "b"], "c", 'The argument `it` has to be one of "a", "b", not the text "c".'),
    (Literal[1], True, "The argument `it` has to be one of 1, not true."),
    (list[int], [1, "x"], 'The argument `it[1]` has to be a whole number, not the text "x".'),
    (Optional[list[int]], [None], "The argument `it[0]` has to be a whole number, not null."),  # noqa: UP045
    (list[int], "1", 'The argument `it` has to be a list, each a whole number, not the text "1".'),
    (tuple[int, int], [1], "The argument `it` has to be a list of 2: a whole number, a whole number, not a list of 1."),
    (dict[str, int], {"a": None}, "The argument `it.a` has to be a whole number, not null."),
    (int | None, [], "The argument `it` has to be a whole number, not a list of 0."),
    (str | int, [], "The argument `it` has to be a text or a whole number, not a list of 0."),
    (
        Point,
        {"y": 1, "z": 2},
        "There is no argument `it.z`: it takes x, y. The argument `it.x` is missing: it is a whole",
    ),
    (set[str], [["a"]], "The argument `it[0]` has to be a text, not a list of 1."),
    (set[object], [[]], "The argument `it` holds a value that can't be in a set."),
    (Place, None, "The argument `it` has to be an object with city, zip, not null."),
]


@pytest.mark.parametrize(("annotation", "given_value", "meant"), READ, ids=repr)
def test_a_value_arrives_as_the_annotated_type(annotation: object, given_value: JsonValue, meant: object) -> None:
    found = build_shape(annotation, "it").read(given_value, "it", exactly=False)
    assert found == meant
    assert type(found) is type(meant)


@pytest.mark.parametrize(("annotation", "given_value", "text"), REFUSED, ids=repr)
def test_a_refusal_names_the_argument_what_was_expected_and_what_came(
    annotation: object, given_value: JsonValue, text: str
) -> None:
    with pytest.raises(Mismatch) as refused:
        build_shape(annotation, "it").read(given_value, "it", exactly=False)
    assert str(refused.value).startswith(text)


def _of(generic: Any, *arguments: Any) -> Any:
    return generic[arguments if len(arguments) > 1 else arguments[0]]


def _shaped() -> st.SearchStrategy[tuple[Any, Any]]:
    """Draw an annotation together with a value of it."""
    plain = st.one_of(
        st.tuples(st.just(str), st.text(max_size=5)),
        st.tuples(st.just(int), st.integers()),
        st.tuples(st.just(float), st.floats(allow_nan=False, allow_infinity=False)),
        st.tuples(st.just(bool), st.booleans()),
        st.tuples(st.just(None), st.none()),
        st.tuples(st.just(Colour), st.sampled_from(Colour)),
        st.tuples(st.just(Level), st.sampled_from(Level)),
        st.tuples(st.just(Point), st.builds(Point, st.integers(), st.integers())),
    )
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            inner.map(lambda pair: (_of(list, pair[0]), [pair[1], pair[1]])),
            inner.map(lambda pair: (_of(tuple, pair[0], ...), (pair[1],))),
            inner.map(lambda pair: (_of(dict, str, pair[0]), {"a": pair[1]})),
            inner.map(lambda pair: (_of(Optional, pair[0]), pair[1])),
            st.tuples(inner, inner).map(lambda two: (_of(tuple, two[0][0], two[1][0]), (two[0][1], two[1][1]))),
            inner.map(lambda pair: (_of(Annotated, pair[0], "words"), pair[1])),
        ),
        max_leaves=4,
    )


def _written(value: Any) -> JsonValue:
    match value:
        case enum.Enum():
            return _written(value.value)
        case list() | tuple():
            return [_written(item) for item in value]
        case dict():
            return {key: _written(item) for key, item in value.items()}
        case Point():
            return {"x": value.x, "y": value.y}
        case _:
            return value  # type: ignore[no-any-return]


@given(_shaped())
def test_what_a_model_writes_for_a_value_is_read_back_as_that_value(pair: tuple[Any, Any]) -> None:
    annotation, value = pair
    shape = build_shape(annotation, "it")
    for exactly in (True, False):
        assert shape.read(_written(value), "it", exactly=exactly) == value
    assert _fits(shape.schema(), _written(value))


@given(
    _shaped(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "x", "y"]), inner, max_size=2)
        ),
        max_leaves=4,
    ),
)
def test_what_is_read_exactly_is_what_the_schema_allows(pair: tuple[Any, Any], value: JsonValue) -> None:
    shape = build_shape(pair[0], "it")
    try:
        shape.read(value, "it", exactly=True)
    except Mismatch:
        # too large for a float is the one thing a schema can't say
        assert not _fits(shape.schema(), value) or "inf" in repr(value) or len(repr(value)) > 300
    else:
        assert _fits(shape.schema(), value)


def _fits(schema: Any, value: Any) -> bool:
    """Tell whether `value` is valid under the part of JSON Schema that tools use."""
    if "anyOf" in schema:
        return any(_fits(option, value) for option in schema["anyOf"])
    if "enum" in schema:
        return any(type(option) is type(value) and option == value for option in schema["enum"])
    match schema.get("type"):
        case "string":
            return isinstance(value, str)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case "number":
            return not isinstance(value, bool) and isinstance(value, int | float)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list) and _items_fit(schema, value)
        case "object":
            return isinstance(value, dict) and _properties_fit(schema, value)
    return True


def _items_fit(schema: Any, value: list[Any]) -> bool:
    if "prefixItems" in schema:
        each = zip(schema["prefixItems"], value, strict=False)
        return len(value) == schema["minItems"] == schema["maxItems"] and all(_fits(*pair) for pair in each)
    return all(_fits(schema["items"], item) for item in value)


def _properties_fit(schema: Any, value: dict[str, Any]) -> bool:
    properties, more = schema.get("properties", {}), schema["additionalProperties"]
    return all(name in value for name in schema.get("required", [])) and all(
        _fits(properties[name], item) if name in properties else more is not False and _fits(more, item)
        for name, item in value.items()
    )


def test_the_schema_says_types_defaults_choices_and_descriptions() -> None:
    def search(
        query: Annotated[str, "what to look for"],
        limit: int = 5,
        order: Literal["new", "old"] = "new",
        near: Point | None = None,
        level: Level = Level.LOW,
        tags: tuple[str, ...] = (),
    ) -> str:
        """Search everything.

        It takes a while.

        Args:
            query: not shown, the annotation says it
            limit (int): how many at most,
                over two lines
            tags: any of these

        Returns:
            What was found.
        """
        return f"{query}{limit}{order}{near}{level}{tags}"

    spec = tool(search).spec
    assert spec.name == "search"
    assert spec.description == "Search everything.\n\nIt takes a while.\n\nReturns:\n    What was found."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for"},
            "limit": {"type": "integer", "description": "how many at most, over two lines", "default": 5},
            "order": {"type": "string", "enum": ["new", "old"], "default": "new"},
            "near": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                        "required": ["x"],
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ]
            },
            "level": {"type": "integer", "enum": [1, 2], "default": 1},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "any of these", "default": []},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def _unannotated(thing) -> object:  # type: ignore[no-untyped-def]
    return str(thing)


def _starred(*thing: int) -> int:
    return len(thing)


def _double_starred(**thing: int) -> int:
    return len(thing)


def _positional(thing: int, /) -> int:
    return thing


def _bytes(thing: bytes) -> int:
    return len(thing)


def _nested(thing: list[dict[int, str]]) -> int:
    return len(thing)


def _recursive(thing: Tree) -> int:
    return len(thing.children)


def _unknown_name(thing: "Missing") -> int:  # type: ignore[name-defined]  # noqa: F821
    return len(thing)


def _value(thing: 5) -> object:  # type: ignore[valid-type]
    return thing


@pytest.mark.parametrize(
    "function",
    [
        _unannotated,
        _starred,
        _double_starred,
        _positional,
        _bytes,
        _nested,
        _recursive,
        _unknown_name,
        _value,
    ],
)
def test_a_signature_that_no_schema_can_say_is_refused_when_the_tool_is_built(function: Any) -> None:
    with pytest.raises(InvalidSetting, match="`thing"):
        tool(function)


def test_a_name_that_providers_refuse_is_refused_here() -> None:
    with pytest.raises(InvalidSetting, match="pass `name`"):
        tool(lambda: 1)
    with pytest.raises(InvalidSetting, match="name"):
        tool(_recursive, name="two words")
    with pytest.raises(InvalidSetting, match="timeout"):
        tool(_bytes, timeout=0)
    assert tool(lambda: 1, name="one").spec.name == "one"


def test_partials_methods_and_objects_that_are_called_are_tools_too() -> None:
    class Counter:
        """Counts."""

        def __call__(self, by: int) -> int:
            """Count on."""
            return by

        def add(self, by: "int") -> int:
            """Add."""
            return by

    def power(base: int, exponent: int) -> int:
        """Raise."""
        return int(base**exponent)

    made: dict[str, FunctionTool] = {
        "__call__": tool(Counter(), name="count"),
        "add": tool(Counter().add),
        "power": tool(functools.partial(power, exponent=2)),
    }
    assert [each.spec.name for each in made.values()] == ["count", "add", "power"]
    assert [each.spec.description for each in made.values()] == ["Count on.", "Add.", "Raise."]
    assert [[*each.spec.parameters["properties"]] for each in made.values()] == [["by"], ["by"], ["base", "exponent"]]  # type: ignore[misc]


def test_all_that_is_wrong_with_a_call_is_told_at_once() -> None:
    fields = [
        Field(name="path", shape=build_shape(str, "path")),
        Field(name="limit", shape=build_shape(int, "limit"), required=False, default=default_to_json(5)),
    ]
    _, problems = read_fields(fields, {"file": "a", "limit": "many"})
    assert problems == [
        "There is no argument `file`: it takes path, limit.",
        "The argument `path` is missing: it is a text.",
        'The argument `limit` has to be a whole number, not the text "many".',
    ]
