"""What a setting may be, told by the type of its field, so that a new field of a configuration needs no reader. Pure.

A setting is a field of a frozen dataclass and is called by a dotted key; a field that is a dataclass itself is a table
of further settings. Invariant: only plain values get through: switches, numbers, durations, texts, lists of texts. What
else a field can hold, such as a model object, is given in code and never read from a text.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from ricordo.errors import InvalidSetting
from ricordo.guard import has_secret
from ricordo.tokens import Share, Tokens

__all__ = [
    "SettingType",
    "SettingTable",
    "convert_value",
    "format_duration",
    "list_setting_types",
    "suggest_name",
    "list_setting_tables",
    "describe_type",
]

SettingType: TypeAlias = frozenset[object]
"""The types that a setting takes, as they stand in the annotation of its field."""

_NONE_WORD = "none"
_MAX_VALUE_CHARS = 80
_BOOLEAN_WORDS: Mapping[str, bool] = {
    "true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False,
}  # fmt: skip
_PLAIN_TYPES = frozenset({bool, int, float, str, NoneType, Share, Path, timedelta})
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, kw_only=True)
class SettingTable:
    """A group of settings under one key: its dataclass, whether it can be off, and whether it is on by default."""

    type: Callable[..., object]
    can_be_off: bool
    default: object = field(repr=False)


def list_setting_types(owner: type, prefix: str = "") -> dict[str, SettingType]:
    """Return what each plain setting of `owner` and of its tables takes, by dotted key, in the order of the fields."""
    return {key: kind for key, kind, table in _cached_settings(owner, prefix) if table is None and kind - {NoneType}}


def list_setting_tables(owner: type, prefix: str = "") -> dict[str, SettingTable]:
    """Return the tables of `owner` and the tables in them by dotted key, the outer ones first."""
    return {key: table for key, _, table in _cached_settings(owner, prefix) if table is not None}


def convert_value(kind: SettingType, value: object, *, is_text: bool = False) -> object:
    """Return the value as the setting takes it; `is_text` for one that can be nothing but text, as in the environment.

    Raises `InvalidSetting` that says what the setting takes.
    """
    given = _parse_text(kind, value.strip()) if is_text and isinstance(value, str) else value
    for reading in (_convert_none, _convert_plain, _convert_share, _convert_duration, _convert_texts, _convert_text):
        found = reading(kind, given)
        if found is not None:
            return found[0]
    told = repr(value)
    shown = "[hidden]" if has_secret(told) else told if len(told) <= _MAX_VALUE_CHARS else f"{told[:_MAX_VALUE_CHARS]}…"
    raise InvalidSetting(f"takes {describe_type(kind)}, not {shown}")


def describe_type(kind: SettingType) -> str:
    """Return what a setting takes, in words."""
    words = {
        bool: "true or false", int: "a whole number", float: "a number", Share: 'a share such as "80%"', str: "a text",
        Path: "a path", timedelta: 'a duration such as "90m", "6h" or "2d"', NoneType: '"none"',
    }  # fmt: skip
    named = [word for each, word in words.items() if each in kind]
    return " or ".join([*named, *(["a list of texts"] if _find_collection(kind) else [])])


def format_duration(value: timedelta) -> str:
    """Return the text from which a setting reads this duration, in the largest unit that it is a whole number of."""
    for unit in ("w", "d", "h", "m"):
        whole, rest = divmod(value, timedelta(**{_UNITS[unit]: 1}))
        if not rest:
            return f"{whole}{unit}"
    return f"{value.total_seconds():g}s"


def suggest_name(name: str, known: Collection[str]) -> str:
    """Return a hint at the known name that is nearest to `name`; empty when none is near."""
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


@cache
def _cached_settings(owner: type, prefix: str) -> tuple[tuple[str, SettingType, SettingTable | None], ...]:
    return tuple(_iter_settings(owner, prefix))


def _iter_settings(owner: type, prefix: str) -> Iterator[tuple[str, SettingType, SettingTable | None]]:
    hints = get_type_hints(owner)
    for each in fields(owner):
        members = _union_members(hints[each.name])
        table = next((member for member in members if is_dataclass(member) and member not in {Share, Tokens}), None)
        key = f"{prefix}{each.name}"
        if isinstance(table, type):
            yield (
                key,
                frozenset(),
                SettingTable(type=table, can_be_off=NoneType in members, default=_default_value(each)),
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
    return tuple(found for each in get_args(hint) for found in _union_members(each))


def _default_value(each: "Field[Any]") -> object:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return None if each.default is MISSING else each.default


def _parse_text(kind: SettingType, text: str) -> object:
    """Return what a text means for the setting, before its type is looked at."""
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
    nothing = value is None or (isinstance(value, str) and value.lower() == _NONE_WORD)
    return (None,) if nothing and NoneType in kind else None


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
    # a subclass of a path is what the system makes of it
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
    found = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    return (timedelta(**{_UNITS[found[2]]: float(found[1])}),) if found else None


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
