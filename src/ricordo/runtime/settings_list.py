"""Every setting with its value and its origin, for display; secrets are hidden."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

from ricordo.guard import has_secret
from ricordo.lazy import dataclass
from ricordo.messages.tokens import Share, Tokens
from ricordo.messages.types import JsonValue
from ricordo.runtime.config_file import is_secret_name
from ricordo.runtime.setting_layers import (
    SettingOrigin,
    format_duration,
    list_setting_groups,
    list_setting_tables,
    list_setting_types,
)
from ricordo.runtime.settings import Settings, environment_variable

__all__ = ["HIDDEN_VALUE", "SettingRow", "list_settings"]


HIDDEN_VALUE = "[hidden]"
"""The text shown instead of a secret."""


@dataclass(frozen=True, kw_only=True)
class SettingRow:
    """A setting: its dotted key, its value as JSON, its environment variable, and the origin of the value.

    A table has the value True or False for on or off. `is_off` says that its table is off: the value is then the one it
    would have.
    """

    key: str
    value: JsonValue
    variable: str
    origin: SettingOrigin
    is_table: bool = False
    is_off: bool = False


def list_settings(settings: Settings) -> list[SettingRow]:
    """Return every setting in the order of the fields, each table followed by its settings."""
    return list(_iter_rows(settings, Settings, "", settings.origins, is_off=False))


def _iter_rows(
    values: object, owner: type, prefix: str, origins: Mapping[str, SettingOrigin], *, is_off: bool
) -> Iterator[SettingRow]:
    types, tables = list_setting_types(owner), list_setting_tables(owner)
    for name, value in _list_values(values, owner):
        key = f"{prefix}{name}"
        if name in types:
            yield SettingRow(
                key=key,
                value=_mask_value(key, value),
                variable=environment_variable(key),
                origin=_find_origin(key, origins),
                is_off=is_off,
            )
        elif name in tables:
            is_table_off = is_off or value is None
            yield SettingRow(
                key=key,
                value=not is_table_off,
                variable=environment_variable(key),
                origin=_find_origin(key, origins),
                is_table=True,
                is_off=is_off,
            )
            table_values = tables[name].type() if value is None else value
            yield from _iter_rows(table_values, type(table_values), f"{key}.", origins, is_off=is_table_off)


def _list_values(values: object, owner: type) -> Iterator[tuple[str, object]]:
    """Yield the name and the value of each field, and of each item of a group; None for an item that is not set."""
    groups = list_setting_groups(owner)
    for each in fields(owner):
        value = getattr(values, each.name)
        if each.name in groups:
            yield from ((name, value.get(name)) for name in groups[each.name])
        else:
            yield each.name, value


def _find_origin(key: str, origins: Mapping[str, SettingOrigin]) -> SettingOrigin:
    """Return the origin of a value; for a table not set explicitly, that of the first setting that turned it on."""
    inner = (origin for each, origin in origins.items() if each.startswith(f"{key}."))
    return origins.get(key) or next(inner, SettingOrigin())


def _mask_value(key: str, value: object) -> JsonValue:
    json_value = _to_json(value)
    texts = [json_value] if isinstance(json_value, str) else json_value if isinstance(json_value, list) else []
    is_secret = any(isinstance(each, str) and (has_secret(each) or has_secret(f'{key} = "{each}"')) for each in texts)
    return HIDDEN_VALUE if is_secret or (isinstance(json_value, str) and is_secret_name(key)) else json_value


def _to_json(value: object) -> JsonValue:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Share):
        return f"{value.part * 100:g}%"
    if isinstance(value, Tokens):
        return value.count
    if isinstance(value, timedelta | Path):
        return format_duration(value) if isinstance(value, timedelta) else str(value)
    if isinstance(value, frozenset | tuple):
        return [str(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]
    # a value that only code can set, such as a model
    return type(value).__name__
