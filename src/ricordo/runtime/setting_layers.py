"""Layers of settings over one another, and the conversion of values to the types of their fields. Pure.

A setting is a field of a frozen dataclass, addressed by a dotted key; a field that is a dataclass is a table. A field
that is a TypedDict is a group: each of its items has a key of its own, without the name of the group, and is in the
group only if it was set. Within one layer a table that is off overrides settings in it; a later layer can turn it on
again.

Invariants: only plain values are read from text: booleans, numbers, durations, texts, lists of texts. Every value has
an origin, and an error names it.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from ricordo.errors import InvalidSetting
from ricordo.guard import has_secret
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.tokens import Share, Tokens

__all__ = [
    "SettingLayers",
    "SettingOrigin",
    "SettingTable",
    "SettingType",
    "SettingValue",
    "convert_value",
    "describe_type",
    "format_duration",
    "list_setting_groups",
    "list_setting_tables",
    "list_setting_types",
    "suggest_name",
]


SettingType: TypeAlias = frozenset[object]
"""The types that a setting accepts, from the annotation of its field."""
_NONE_WORD = "none"
_MAX_VALUE_CHARS = 80
_BOOLEAN_WORDS: Mapping[str, bool] = {
    "true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False,
}  # fmt: skip
_PLAIN_TYPES = frozenset({bool, int, float, str, NoneType, Share, Path, timedelta})
_DURATION = lazy_compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, kw_only=True)
class SettingTable:
    """A group of settings under one key: its dataclass, whether it can be off, and whether it is on by default."""

    type: Callable[..., object]
    can_be_off: bool
    default: object = field(repr=False)


def list_setting_types(owner: type, prefix: str = "") -> dict[str, SettingType]:
    """Return the accepted types of each plain setting in `owner` and its tables, by dotted key, in field order."""
    return {key: kind for key, kind, table in _cached_settings(owner, prefix) if table is None and kind - {NoneType}}


def list_setting_tables(owner: type, prefix: str = "") -> dict[str, SettingTable]:
    """Return the tables of `owner` and the tables in them by dotted key, the outer ones first."""
    return {key: table for key, _, table in _cached_settings(owner, prefix) if table is not None}


def list_setting_groups(owner: type) -> dict[str, tuple[str, ...]]:
    """Return the keys of the settings in each group of `owner`."""
    return {
        name: tuple(hint.__annotations__)
        for name, hint in get_type_hints(owner, localns=_UNSETTABLE).items()
        if is_typeddict(hint)
    }


def convert_value(kind: SettingType, value: object, *, is_text: bool = False) -> object:
    """Convert a value to the setting's type; `is_text` if it can only be text, as in the environment.

    Raises `InvalidSetting`, which says what the setting accepts.
    """
    parsed = _parse_text(kind, value.strip()) if is_text and isinstance(value, str) else value
    for convert in (_convert_none, _convert_plain, _convert_share, _convert_duration, _convert_texts, _convert_text):
        converted = convert(kind, parsed)
        if converted is not None:
            return converted[0]
    text = repr(value)
    displayed = (
        "[hidden]" if has_secret(text) else text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}…"
    )
    raise InvalidSetting(f"takes {describe_type(kind)}, not {displayed}")


def describe_type(kind: SettingType) -> str:
    """Return what a setting accepts, in words."""
    words = {
        bool: "true or false", int: "a whole number", float: "a number", Share: 'a share such as "80%"', str: "a text",
        Path: "a path", timedelta: 'a duration such as "90m", "6h" or "2d"', NoneType: '"none"',
    }  # fmt: skip
    accepted = [word for each, word in words.items() if each in kind]
    return " or ".join([*accepted, *(["a list of texts"] if _find_collection(kind) else [])])


def format_duration(value: timedelta) -> str:
    """Return the text that parses to this duration, in the largest unit that divides it."""
    for unit in ("w", "d", "h", "m"):
        count, remainder = divmod(value, timedelta(**{_UNITS[unit]: 1}))
        if not remainder:
            return f"{count}{unit}"
    return f"{value.total_seconds():g}s"


def suggest_name(name: str, names: Collection[str]) -> str:
    """Return a hint with the known name nearest to `name`; empty if none is similar."""
    matches = get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean {matches[0]}?" if matches else ""


_UNSETTABLE = {"ChatModel": object}
"""The types of fields that no text can set; they are not loaded for it."""


@cache
def _cached_settings(owner: type, prefix: str) -> tuple[tuple[str, SettingType, SettingTable | None], ...]:
    return tuple(_iter_settings(owner, prefix))


def _iter_settings(owner: type, prefix: str) -> Iterator[tuple[str, SettingType, SettingTable | None]]:
    defaults = {each.name: _default_value(each) for each in fields(owner)} if is_dataclass(owner) else {}
    for name, hint in get_type_hints(owner, localns=_UNSETTABLE).items():
        members = _union_members(hint)
        table = next((member for member in members if is_dataclass(member) and member not in {Share, Tokens}), None)
        key = f"{prefix}{name}"
        if is_typeddict(hint):
            yield from _iter_settings(hint, prefix)
        elif isinstance(table, type):
            yield (
                key,
                frozenset(),
                SettingTable(type=table, can_be_off=NoneType in members, default=defaults.get(name)),
            )
            yield from _iter_settings(table, f"{key}.")
        else:
            yield (
                key,
                frozenset(member for member in members if member in _PLAIN_TYPES or _is_text_collection(member)),
                None,
            )


def _union_members(hint: Any) -> tuple[object, ...]:
    if get_origin(hint) not in {Union, UnionType}:
        return (hint,)
    return tuple(member for each in get_args(hint) for member in _union_members(each))


def _default_value(each: "Field[Any]") -> object:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return None if each.default is MISSING else each.default


def _parse_text(kind: SettingType, text: str) -> object:
    """Return the meaning of a text for the setting, before its type is checked."""
    if bool in kind and text.lower() in _BOOLEAN_WORDS:
        return _BOOLEAN_WORDS[text.lower()]
    for number in (int, float):
        try:
            if number in kind or (number is float and Share in kind):
                return number(text)
        except ValueError:
            continue
    if _find_collection(kind):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _convert_none(kind: SettingType, value: object) -> tuple[object] | None:
    is_none = value is None or (isinstance(value, str) and value.lower() == _NONE_WORD)
    return (None,) if is_none and NoneType in kind else None


def _convert_plain(kind: SettingType, value: object) -> tuple[object] | None:
    if isinstance(value, bool):
        return (value,) if bool in kind else None
    if isinstance(value, int) and int not in kind and float in kind:
        return (float(value),)
    is_plain = (
        isinstance(value, int | float | Share | timedelta)
        and type(value) in kind
        and not (isinstance(value, float) and not math.isfinite(value))
    )
    # a path has a platform-specific subclass of Path
    return (value,) if is_plain or (isinstance(value, Path) and Path in kind) else None


def _convert_share(kind: SettingType, value: object) -> tuple[object] | None:
    if Share not in kind:
        return None
    try:
        if isinstance(value, str) and value.endswith("%"):
            return (Share(float(value[:-1]) / 100),)
        return (Share(value),) if isinstance(value, float) else None
    except ValueError:
        return None


def _convert_duration(kind: SettingType, value: object) -> tuple[object] | None:
    if timedelta not in kind:
        return None
    match = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    return (timedelta(**{_UNITS[match[2]]: float(match[1])}),) if match else None


def _convert_texts(kind: SettingType, value: object) -> tuple[object] | None:
    collection = _find_collection(kind)
    if collection is None or not isinstance(value, list | tuple | frozenset | set):
        return None
    return (collection(value),) if all(isinstance(each, str) for each in value) else None


def _convert_text(kind: SettingType, value: object) -> tuple[object] | None:
    if not isinstance(value, str):
        return None
    if str in kind:
        return (value,)
    return (Path(value),) if Path in kind and value else None


def _is_text_collection(member: object) -> bool:
    return get_origin(member) in {frozenset, tuple} and str in get_args(member)


def _find_collection(kind: SettingType) -> Callable[[Collection[object]], Collection[object]] | None:
    origins = {get_origin(member) for member in kind}
    return frozenset if frozenset in origins else tuple if tuple in origins else None


_T = TypeVar("_T")
_MAX_KEY_CHARS = 80
_ON_WORDS = frozenset({"true", "on", "yes", "1"})
_OFF_WORDS = frozenset({"false", "off", "no", "0", "none"})


@dataclass(frozen=True, kw_only=True)
class SettingOrigin:
    """The origin of a value: a file and its line (0: unknown), an environment variable, an argument, or the default."""

    kind: Literal["default", "file", "environment", "argument"] = "default"
    name: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Return the origin as text for people."""
        if self.kind == "file":
            return f"{self.name}:{self.line}" if self.line else self.name
        return self.name or self.kind

    @property
    def short_name(self) -> str:
        """The same text, with only the name of the file."""
        return (
            str(SettingOrigin(kind="file", name=Path(self.name).name, line=self.line))
            if self.kind == "file"
            else str(self)
        )


@dataclass(frozen=True, kw_only=True)
class SettingValue:
    """A value for a dotted key; `is_text` if it can only be text."""

    key: str
    value: object
    origin: SettingOrigin
    is_text: bool = False


class SettingLayers:
    """Collects the settings of `owner` layer by layer; `presets` create a whole table by name."""

    def __init__(self, *, owner: type, presets: Mapping[str, Mapping[str, Callable[[], object]]]) -> None:
        """Start with the defaults only."""
        self._kinds = list_setting_types(owner)
        self._tables = list_setting_tables(owner)
        self._groups = list_setting_groups(owner)
        self._presets = presets
        self._values: dict[str, tuple[object, SettingOrigin]] = {}
        self._switches: dict[str, tuple[bool, SettingOrigin]] = {}

    def add_layer(self, layer: Sequence[SettingValue]) -> None:
        """Apply a layer over the earlier ones. Raises `InvalidSetting`."""
        switches = [(setting, self._parse_switch(setting)) for setting in layer if setting.key in self._tables]
        for setting, switch in switches:
            if switch is not False:
                self._turn_on(setting, switch)
        for setting in layer:
            if setting.key not in self._tables:
                self._set_value(setting)
        for setting, switch in switches:
            if switch is False:
                self._turn_off(setting)

    def values(self) -> dict[str, object]:
        """Return the given values for the owner: plain values, whole tables and groups; None for a table that is off.

        Raises `InvalidSetting`.
        """
        values = {key: value for key, (value, _) in self._values.items() if "." not in key}
        values |= {key: self._build_table(key, table) for key, table in self._tables.items() if "." not in key}
        for group, keys in self._groups.items():
            items = {key: values.pop(key) for key in keys}
            values[group] = {key: value for key, value in items.items() if value is not None or key in self._switches}
        return values

    def origins(self) -> dict[str, SettingOrigin]:
        """Return the origin of each given value, and of each table that was switched."""
        switches = {key: origin for key, (_, origin) in self._switches.items()}
        return switches | {key: origin for key, (_, origin) in self._values.items()}

    def call_with_origins(self, prefix: str, make: Callable[[], _T]) -> _T:
        """Return what `make` returns; prefix its InvalidSetting with the origins of the fields it names."""
        try:
            return make()
        except InvalidSetting as error:
            origins = {key: origin for key, (_, origin) in self._values.items() if key.rpartition(".")[0] == prefix}
            named_keys = [key for key in origins if re.search(rf"\b{re.escape(key.rpartition('.')[2])}\b", str(error))]
            location = ", ".join(f"{origins[key]}: {key}" for key in named_keys or origins)
            # it may begin with the name of its field, which the prefix already has
            message = (
                str(error).removeprefix(f"{named_keys[0].rpartition('.')[2]}: ") if len(named_keys) == 1 else str(error)
            )
            raise InvalidSetting(f"{location}: {message}" if location else message) from error

    def _parse_switch(self, setting: SettingValue) -> object:
        """Return True, False, or the configuration given for a table."""
        table, value = self._tables[setting.key], setting.value
        presets = self._presets.get(setting.key, {})
        word = value.strip().lower() if isinstance(value, str) else ""
        if word in presets:
            return presets[word]()
        if isinstance(value, bool) or (setting.is_text and word in _ON_WORDS | _OFF_WORDS):
            is_on = value if isinstance(value, bool) else word in _ON_WORDS
            if is_on or table.can_be_off:
                return is_on
        elif is_dataclass(value) and isinstance(table.type, type) and isinstance(value, table.type):
            return value
        preset_names = "".join(f', "{name}"' for name in presets)
        raise InvalidSetting(f"{setting.origin}: {setting.key} is a table of settings, or true or false{preset_names}.")

    def _turn_on(self, setting: SettingValue, switch: object) -> None:
        self._switches[setting.key] = (True, setting.origin)
        if switch is not True:
            self._clear(setting.key)
            self._add_fields(setting.key, switch, setting.origin)

    def _turn_off(self, setting: SettingValue) -> None:
        self._clear(setting.key)
        self._switches[setting.key] = (False, setting.origin)

    def _clear(self, table: str) -> None:
        self._values = {key: value for key, value in self._values.items() if not key.startswith(f"{table}.")}
        self._switches = {key: value for key, value in self._switches.items() if not key.startswith(f"{table}.")}

    def _add_fields(self, prefix: str, configuration: object, origin: SettingOrigin) -> None:
        """Set every field of a whole configuration, including those that no text could give."""
        for name in (each.name for each in fields(configuration)):  # type: ignore[arg-type]
            key, value = f"{prefix}.{name}", getattr(configuration, name)
            if key not in self._tables:
                self._values[key] = (value, origin)
            elif value is None:
                self._switches[key] = (False, origin)
            else:
                self._switches[key] = (True, origin)
                self._add_fields(key, value, origin)

    def _set_value(self, setting: SettingValue) -> None:
        key = setting.key
        if key not in self._kinds:
            displayed_key = key if len(key) <= _MAX_KEY_CHARS else f"{key[:_MAX_KEY_CHARS]}…"
            raise InvalidSetting(
                f"{setting.origin}: {displayed_key} is no setting{suggest_name(key, [*self._kinds, *self._tables])}"
            )
        try:
            value = convert_value(self._kinds[key], setting.value, is_text=setting.is_text)
        except InvalidSetting as error:
            raise InvalidSetting(f"{setting.origin}: {key} {error}") from error
        self._values[key] = (value, setting.origin)
        table = key.rpartition(".")[0]
        while table:
            if not self._switches.get(table, (True, None))[0]:
                del self._switches[table]
            table = table.rpartition(".")[0]

    def _build_table(self, key: str, table: SettingTable) -> object:
        """Return the configuration of a table, None if it is off."""
        field_values = {each: value for each, (value, _) in self._values.items() if each.startswith(f"{key}.")}
        inner = [each for each in self._switches if each.startswith(f"{key}.")]
        on, _ = self._switches.get(key, (bool(field_values or inner) or table.default is not None, None))
        if not on:
            return None
        plain = {each[len(key) + 1 :]: value for each, value in field_values.items() if "." not in each[len(key) + 1 :]}
        nested = {
            each[len(key) + 1 :]: self._build_table(each, below)
            for each, below in self._tables.items()
            if each.rpartition(".")[0] == key
        }
        return self.call_with_origins(key, lambda: table.type(**plain, **nested))
