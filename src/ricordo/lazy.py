"""Lazy exports: a package loads each of its names at first use, so importing the package costs almost nothing."""

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import AnyStr, Generic, cast

__all__ = ["lazy_compile", "lazy_exports"]


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
