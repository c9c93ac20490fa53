"""Work of an import that waits for its first use: the names of a package, patterns, and the methods of dataclasses.

A process that runs one command uses few of them, so importing costs almost nothing.
"""

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, AnyStr, Generic, TypeVar, cast

if TYPE_CHECKING:
    from dataclasses import dataclass

__all__ = ["copy_with", "dataclass", "lazy_compile", "lazy_exports", "lazy_property"]


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for `package` that loads each name at its first use (PEP 562).

    `modules` maps a module, relative to the package, to the names it defines, separated by spaces.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(homes[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


class _LazyPattern(Generic[AnyStr]):
    """A pattern that is compiled at its first use and then has the methods of the compiled pattern."""

    def __init__(self, pattern: AnyStr | Callable[[], AnyStr], flags: int) -> None:
        self._source: tuple[AnyStr | Callable[[], AnyStr], int] = pattern, flags

    def __getattr__(self, name: str) -> object:
        pattern, flags = self._source
        compiled: object = re.compile(pattern() if callable(pattern) else pattern, flags)
        # attributes of the instance are found without `__getattr__`
        vars(self).update((each, getattr(compiled, each)) for each in _PATTERN_MEMBERS)
        return getattr(compiled, name)


_PATTERN_MEMBERS = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))


def lazy_compile(pattern: AnyStr | Callable[[], AnyStr], flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled at its first use, since most processes use few of the hundreds of patterns.

    A function that returns the pattern is called then too. The result has the methods of a compiled pattern, but can't
    be passed to the functions of `re`. Raises at the first use: `re.error`.
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


_T = TypeVar("_T")

if TYPE_CHECKING:
    lazy_property = property
else:

    class lazy_property(Generic[_T]):  # noqa: N801 - it is used like `property`
        """A property that is computed at its first use, without the lock that `cached_property` takes in Python 3.11.

        Two threads that use it at the same time may both compute it.
        """

        def __init__(self, compute: Callable[[Any], _T]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


def copy_with(value: _T, **fields: object) -> _T:
    """Return a copy of a dataclass with other fields, as `dataclasses.replace` does, in a fifth of its time.

    The class has no slots, and its `__post_init__` is not called. Raises: TypeError for an unknown field.
    """
    state, names = value.__dict__, type(value).__dataclass_fields__  # type: ignore[attr-defined]
    if not fields.keys() <= names.keys():
        raise TypeError(f"{type(value).__name__} has no field {', '.join(fields.keys() - names.keys())}")
    copied = object.__new__(type(value))
    # what was computed from other fields is not copied
    copied.__dict__.update({name: state[name] for name in names}, **fields)
    return copied


if not TYPE_CHECKING:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, kw_only: bool = False, **others: bool) -> Any:
        """Make a class a dataclass as `dataclasses.dataclass` does, but compile its methods at their first use.

        Compiling the methods takes ten times as long as the rest, and a process uses few of the hundreds of classes
        that it loads. With `others`, such as `order` or `slots`, it is a standard one. `InitVar` can't be used.
        """
        import dataclasses

        if others:
            return dataclasses.dataclass(frozen=frozen, kw_only=kw_only, **others)
        if cls is None:
            return partial(dataclass, frozen=frozen, kw_only=kw_only)
        # without a docstring the standard decorator writes one with the signature, which would compile `__init__`
        cls.__doc__ = cls.__doc__ or cls.__name__
        # a class and its base must agree on `frozen`; without such a base, nothing needs to be compiled for it
        is_derived = any(map(dataclasses.is_dataclass, cls.__bases__))
        dataclasses.dataclass(init=False, repr=False, eq=False, frozen=frozen and is_derived, kw_only=kw_only)(cls)
        cls.__dataclass_params__.frozen = frozen
        if frozen and not is_derived:
            cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
        for name in ("__init__", "__repr__", "__eq__"):
            if name not in vars(cls):
                setattr(cls, name, _LazyMethod(cls, name))
        if vars(cls).get("__hash__") is None:
            cls.__hash__ = _LazyMethod(cls, "__hash__") if frozen else None
        return cls


class _LazyMethod:
    """A method of a dataclass that is compiled at its first use, and then gives way to what was compiled."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> object:
        compile_method = _compile_init if self._name == "__init__" else partial(_compile_method, name=self._name)
        method = compile_method(self._owner)
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _compile_init(cls: Any) -> Callable[..., object]:
    """Return the `__init__` of the standard decorator, which would compile two more methods of a frozen class."""
    from dataclasses import MISSING, fields

    known: dict[str, object] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    by_position, by_name, lines = ["self"], ["*"], ["pass"]
    for each in fields(cls):
        name, value, default = each.name, each.name, ""
        if each.default_factory is not MISSING:
            known[f"_make_{name}"], default = each.default_factory, " = _FACTORY"
            value = f"_make_{name}() if {name} is _FACTORY else {name}" if each.init else f"_make_{name}()"
        elif each.default is not MISSING:
            known[f"_default_{name}"], default = each.default, f" = _default_{name}"
        if each.init:
            (by_name if each.kw_only else by_position).append(name + default)
        if each.init or each.default_factory is not MISSING:
            lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(by_position + (by_name if len(by_name) > 1 else []))
    body = "\n  ".join(lines)
    made: dict[str, Any] = {}
    code = f"def make({', '.join(known)}):\n def __init__({parameters}):\n  {body}\n return __init__"
    exec(code, vars(sys.modules[cls.__module__]), made)  # noqa: S102  # as the standard decorator does
    init: Any = made["make"](**known)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in fields(cls) if each.init} | {"return": None}
    return cast("Callable[..., object]", init)


def _compile_method(cls: Any, name: str) -> Callable[..., object]:
    """Return the method called `name` of a standard dataclass with the fields of `cls`."""
    from copy import copy
    from dataclasses import dataclass as standard_dataclass
    from dataclasses import fields

    members: dict[str, object] = {each.name: copy(each) for each in fields(cls)}
    members["__annotations__"] = {each.name: each.type for each in fields(cls)}
    bare = type(cls.__name__, (), {"__qualname__": cls.__qualname__, "__doc__": cls.__doc__, **members})
    decorate = standard_dataclass(
        init=False, repr=name == "__repr__", eq=name == "__eq__", unsafe_hash=name == "__hash__"
    )
    method: Callable[..., object] = vars(decorate(bare))[name]
    return method


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    _check_is_open(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    _check_is_open(self, name, "delete")
    object.__delattr__(self, name)


def _check_is_open(value: Any, name: str, act: str) -> None:
    """Raise `FrozenInstanceError` for a field, and for any attribute of a dataclass that has no subclass between."""
    from dataclasses import FrozenInstanceError

    if "__dataclass_fields__" in vars(type(value)) or name in value.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {act} field {name!r}")
