"""Layers of settings, one over the other: each adds values by dotted key, and the last to say something wins.

Within one layer an explicit off wins over the settings of the same table; over layers the later one does, so a setting
of a table that an earlier layer switched off switches it on again. Invariant: every value knows where it came from, and
a value that its configuration refuses is told with that place.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Literal, TypeVar

from ricordo.errors import InvalidSetting
from ricordo.runtime.setting_types import (
    SettingTable,
    convert_value,
    list_setting_types,
    suggest_name,
    list_setting_tables,
)

__all__ = ["SettingValue", "SettingLayers", "SettingOrigin"]

_T = TypeVar("_T")
_MAX_KEY_CHARS = 80
_ON_WORDS = frozenset({"true", "on", "yes", "1"})
_OFF_WORDS = frozenset({"false", "off", "no", "0", "none"})


@dataclass(frozen=True, kw_only=True)
class SettingOrigin:
    """Where a value came from: a file and its line (0: unknown), an environment variable, an argument, or nowhere."""

    kind: Literal["default", "file", "environment", "argument"] = "default"
    name: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Write it for people."""
        if self.kind == "file":
            return f"{self.name}:{self.line}" if self.line else self.name
        return self.name or self.kind

    @property
    def short_name(self) -> str:
        """The same with the name of the file alone."""
        return (
            str(SettingOrigin(kind="file", name=Path(self.name).name, line=self.line))
            if self.kind == "file"
            else str(self)
        )


@dataclass(frozen=True, kw_only=True)
class SettingValue:
    """A value for a dotted key; `is_text` for one that can be nothing but text."""

    key: str
    value: object
    origin: SettingOrigin
    is_text: bool = False


class SettingLayers:
    """Collects the settings of `owner`; `presets` make a whole table by name."""

    def __init__(self, *, owner: type, presets: Mapping[str, Mapping[str, Callable[[], object]]]) -> None:
        """Begin with nothing but the defaults."""
        self._kinds = list_setting_types(owner)
        self._tables = list_setting_tables(owner)
        self._presets = presets
        self._values: dict[str, tuple[object, SettingOrigin]] = {}
        self._switches: dict[str, tuple[bool, SettingOrigin]] = {}

    def add_layer(self, layer: Sequence[SettingValue]) -> None:
        """Lay the values of one layer over what is there. Raises `InvalidSetting`."""
        switched = [(given, self._parse_switch(given)) for given in layer if given.key in self._tables]
        for given, switch in switched:
            if switch is not False:
                self._turn_on(given, switch)
        for given in layer:
            if given.key not in self._tables:
                self._set_value(given)
        for given, switch in switched:
            if switch is False:
                self._turn_off(given)

    def values(self) -> dict[str, object]:
        """Return what was given, ready for the owner: plain values and whole tables, None for one that is off.

        Raises `InvalidSetting`.
        """
        top = {key: value for key, (value, _) in self._values.items() if "." not in key}
        return top | {key: self._build_table(key, table) for key, table in self._tables.items() if "." not in key}

    def origins(self) -> dict[str, SettingOrigin]:
        """Return where each value came from that was given, and each table that was switched."""
        switched = {key: origin for key, (_, origin) in self._switches.items()}
        return switched | {key: origin for key, (_, origin) in self._values.items()}

    def call_with_origins(self, prefix: str, make: Callable[[], _T]) -> _T:
        """Return what `make` makes; a refusal is told with the origins of the fields that it names."""
        try:
            return make()
        except InvalidSetting as error:
            own = {key: origin for key, (_, origin) in self._values.items() if key.rpartition(".")[0] == prefix}
            named = [key for key in own if re.search(rf"\b{re.escape(key.rpartition('.')[2])}\b", str(error))]
            where = ", ".join(f"{own[key]}: {key}" for key in named or own)
            # it may begin with the name of its field, which stands before it then
            told = str(error).removeprefix(f"{named[0].rpartition('.')[2]}: ") if len(named) == 1 else str(error)
            raise InvalidSetting(f"{where}: {told}" if where else told) from error

    def _parse_switch(self, given: SettingValue) -> object:
        """Return True, False, or the configuration that a table is to be."""
        table, value = self._tables[given.key], given.value
        presets = self._presets.get(given.key, {})
        word = value.strip().lower() if isinstance(value, str) else ""
        if word in presets:
            return presets[word]()
        if isinstance(value, bool) or (given.is_text and word in _ON_WORDS | _OFF_WORDS):
            on = value if isinstance(value, bool) else word in _ON_WORDS
            if on or table.can_be_off:
                return on
        elif is_dataclass(value) and isinstance(table.type, type) and isinstance(value, table.type):
            return value
        named = "".join(f', "{name}"' for name in presets)
        raise InvalidSetting(f"{given.origin}: {given.key} is a table of settings, or true or false{named}.")

    def _turn_on(self, given: SettingValue, switch: object) -> None:
        self._switches[given.key] = (True, given.origin)
        if switch is not True:
            self._clear(given.key)
            self._add_fields(given.key, switch, given.origin)

    def _turn_off(self, given: SettingValue) -> None:
        self._clear(given.key)
        self._switches[given.key] = (False, given.origin)

    def _clear(self, table: str) -> None:
        self._values = {key: value for key, value in self._values.items() if not key.startswith(f"{table}.")}
        self._switches = {key: value for key, value in self._switches.items() if not key.startswith(f"{table}.")}

    def _add_fields(self, prefix: str, configuration: object, origin: SettingOrigin) -> None:
        """Take over every field of a whole configuration, those that no text could give too."""
        for name in (each.name for each in fields(configuration)):  # type: ignore[arg-type]
            key, value = f"{prefix}.{name}", getattr(configuration, name)
            if key not in self._tables:
                self._values[key] = (value, origin)
            elif value is None:
                self._switches[key] = (False, origin)
            else:
                self._switches[key] = (True, origin)
                self._add_fields(key, value, origin)

    def _set_value(self, given: SettingValue) -> None:
        key = given.key
        if key not in self._kinds:
            shown = key if len(key) <= _MAX_KEY_CHARS else f"{key[:_MAX_KEY_CHARS]}…"
            raise InvalidSetting(
                f"{given.origin}: {shown} is no setting{suggest_name(key, [*self._kinds, *self._tables])}"
            )
        try:
            value = convert_value(self._kinds[key], given.value, is_text=given.is_text)
        except InvalidSetting as error:
            raise InvalidSetting(f"{given.origin}: {key} {error}") from error
        self._values[key] = (value, given.origin)
        table = key.rpartition(".")[0]
        while table:
            if not self._switches.get(table, (True, None))[0]:
                del self._switches[table]
            table = table.rpartition(".")[0]

    def _build_table(self, key: str, table: SettingTable) -> object:
        """Return the configuration of a table, None when it is off."""
        given = {each: value for each, (value, _) in self._values.items() if each.startswith(f"{key}.")}
        inner = [each for each in self._switches if each.startswith(f"{key}.")]
        on, _ = self._switches.get(key, (bool(given or inner) or table.default is not None, None))
        if not on:
            return None
        plain = {each[len(key) + 1 :]: value for each, value in given.items() if "." not in each[len(key) + 1 :]}
        nested = {
            each[len(key) + 1 :]: self._build_table(each, below)
            for each, below in self._tables.items()
            if each.rpartition(".")[0] == key
        }
        return self.call_with_origins(key, lambda: table.type(**plain, **nested))
