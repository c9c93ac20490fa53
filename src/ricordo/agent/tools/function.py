"""Tools from functions: signature and docstring become the schema, and calls are checked by it.

    @tool
    async def weather(city: Annotated[str, "a city, such as Bergamo"], days: int = 1) -> str:
        \"\"\"Tell the weather of the coming days.\"\"\"

Invariant: the function is called with values of the annotated types, or not at all.
"""

import enum
import functools
import inspect
import re
import types
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import cast, overload

import anyio
import anyio.to_thread

from ricordo.agent.tools.contract import ToolContext, ToolEffect, ToolOutput
from ricordo.agent.tools.schema import build_shape, create_parameter_error, default_to_json
from ricordo.agent.tools.shapes import DescribedShape, Field, read_fields, record_schema
from ricordo.errors import InvalidSetting, RicordoError, ToolFailed
from ricordo.lazy import lazy_compile
from ricordo.messages import JsonValue, Media, Text, ToolSpec, Unknown

__all__ = ["FunctionTool", "split_docstring", "tool"]


_ARGUMENTS_SECTION = lazy_compile(r"(Args|Arguments|Parameters):\s*")
_ARGUMENT_LINE = lazy_compile(r"(?P<indent> +)\*{0,2}(?P<name>\w+)(?: \([^)]*\))?: ?(?P<said>.*)")


def split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text without its arguments section, and the description of each argument by name."""
    text_lines: list[str] = []
    descriptions: dict[str, list[str]] = {}
    inside, indent, name = False, 0, ""
    for line in inspect.cleandoc(docstring).splitlines():
        if _ARGUMENTS_SECTION.fullmatch(line):
            inside, indent = True, 0
        elif inside and (not line.strip() or line.startswith(" ")):
            argument = _ARGUMENT_LINE.fullmatch(line)
            if argument and (not indent or len(argument["indent"]) == indent):
                name, indent = argument["name"], len(argument["indent"])
                descriptions[name] = [argument["said"]]
            elif name:
                descriptions[name].append(line.strip())
        else:
            inside = False
            text_lines.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(text_lines)).strip()
    return text, {each: " ".join(filter(None, words)) for each, words in descriptions.items()}


_NAME = lazy_compile(r"[A-Za-z0-9_-]{1,64}")
_NAMED_KINDS = frozenset([inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY])


class FunctionTool:
    """A function as a tool. Use `tool` to create one."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        effect: ToolEffect = "acts",
    ) -> None:
        """Read the signature of `function`; see `tool`. Raises `InvalidSetting`."""
        target = _annotated_target(function)
        function_name = str(getattr(target, "__name__", ""))
        tool_name = name or ("" if function_name == "__call__" else function_name)
        if not _NAME.fullmatch(tool_name):
            raise InvalidSetting(
                f"The name of a tool has 1 to 64 letters, digits, underscores and dashes, not {tool_name!r}: "
                "pass `name`."
            )
        if timeout is not None and timeout <= 0:
            raise InvalidSetting(f"The timeout of a tool is a number of seconds above 0, not {timeout:g}.")
        text, descriptions = split_docstring(inspect.getdoc(target) or "")
        self._function = function
        self._timeout = timeout
        self.effect = effect
        self._fields, self._context = _parameters(function, descriptions)
        self.spec = ToolSpec(
            name=tool_name,
            description=text if description is None else description,
            parameters=record_schema(self._fields),
        )

    async def __call__(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolOutput:
        """Check and convert the arguments, call the function, and return its result.

        Raises: ToolFailed if the arguments don't match, the timeout has passed, or the function raised a RicordoError.
        Other errors of the function are not converted.
        """
        values, problems = read_fields(self._fields, arguments)
        if problems:
            raise ToolFailed(" ".join(problems))
        if self._context:
            values[self._context] = context
        with anyio.move_on_after(self._timeout) as scope:
            try:
                return _to_output(await self._call(values))
            except ToolFailed:
                raise
            except RicordoError as error:
                raise ToolFailed(str(error)) from error
        assert scope.cancelled_caught
        raise ToolFailed(f"{self.spec.name} did not end within {self._timeout:g} seconds.")

    async def _call(self, values: Mapping[str, object]) -> object:
        call = functools.partial(self._function, **values)
        if inspect.iscoroutinefunction(_annotated_target(self._function)):
            return await cast("Awaitable[object]", call())
        # A thread can't be stopped: with a timeout it is abandoned, without one a cancellation waits for it.
        result = await anyio.to_thread.run_sync(call, abandon_on_cancel=self._timeout is not None)
        return await result if inspect.isawaitable(result) else result


@overload
def tool(
    function: Callable[..., object],
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    effect: ToolEffect = "acts",
) -> FunctionTool: ...


@overload
def tool(
    function: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    effect: ToolEffect = "acts",
) -> Callable[[Callable[..., object]], FunctionTool]: ...


def tool(
    function: Callable[..., object] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    effect: ToolEffect = "acts",
) -> FunctionTool | Callable[[Callable[..., object]], FunctionTool]:
    """Create a tool from a function, as a decorator with or without options, or by a call.

    Name and description default to the function's own, without the docstring's arguments section. Arguments are
    described by `Annotated[T, "..."]`, or else by that section. A parameter annotated `ToolContext` receives the
    context of the call and is hidden from the model. A plain function runs in a worker thread. A call fails after
    `timeout` seconds (None: never); the thread of a plain function runs on, and its result is ignored. `effect` says
    what a call changes: a tool that only `reads` also runs in plan mode.

    Raises: InvalidSetting with the name of the parameter, for a signature that has no JSON schema.
    """
    make = functools.partial(FunctionTool, name=name, description=description, timeout=timeout, effect=effect)
    return make if function is None else make(function)


def _annotated_target(function: Callable[..., object]) -> Callable[..., object]:
    """Return the callable with the annotations: the one inside partials, or `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, types.FunctionType | types.MethodType | types.BuiltinFunctionType | type):
        return function
    return cast("Callable[..., object]", function.__call__)  # type: ignore[operator]


def _parameters(function: Callable[..., object], descriptions: Mapping[str, str]) -> tuple[tuple[Field, ...], str]:
    """Return the parameters for the model, and the name of the parameter for the context, empty if there is none."""
    tool_fields: list[Field] = []
    context = ""
    for parameter in _signature(function).parameters.values():
        if parameter.kind not in _NAMED_KINDS:
            raise create_parameter_error(parameter.name, "every parameter of a tool can be given by its name")
        annotation = _annotation(parameter, function)
        if annotation is ToolContext:
            context = parameter.name
        else:
            tool_fields.append(_field(parameter, annotation, descriptions.get(parameter.name, "")))
    return tuple(tool_fields), context


def _field(parameter: inspect.Parameter, annotation: object, description: str) -> Field:
    shape = build_shape(annotation, parameter.name)
    if description and not isinstance(shape, DescribedShape):
        shape = DescribedShape(shape=shape, description=description)
    required = parameter.default is inspect.Parameter.empty
    return Field(
        name=parameter.name,
        shape=shape,
        required=required,
        default=None if required else default_to_json(parameter.default),
    )


def _signature(function: Callable[..., object]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise InvalidSetting(f"The signature of {function!r} can't be read: {error}.") from error


def _annotation(parameter: inspect.Parameter, function: Callable[..., object]) -> object:
    """Return the annotation as an object, also if it was written as a string."""
    if parameter.annotation is inspect.Parameter.empty:
        raise create_parameter_error(parameter.name, "it has no annotation")
    names = getattr(inspect.unwrap(_annotated_target(function)), "__globals__", {})
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    hints: Callable[..., dict[str, object]] = typing.get_type_hints
    try:
        return hints(holder, globalns=names, include_extras=True)[parameter.name]
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise create_parameter_error(parameter.name, f"its annotation can't be read: {error}") from error


def _to_output(value: object) -> ToolOutput:
    """Return the function's result as a tool output; parts and bytes are returned unchanged."""
    if isinstance(value, Text | Media | Unknown):
        return [value]
    if isinstance(value, Sequence) and value and all(isinstance(part, Text | Media | Unknown) for part in value):
        return cast("Sequence[Text | Media | Unknown]", value)
    return value if isinstance(value, bytes) else _to_json(value)


def _to_json(value: object) -> JsonValue:
    match value:
        case enum.Enum():
            return _to_json(value.value)
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): _to_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_to_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: _to_json(getattr(value, field.name)) for field in fields(value)}
        case _:
            return str(value)
