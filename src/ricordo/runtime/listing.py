"""Every setting with its value and where it came from, as it may be shown: what is secret, or named so, is masked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path

from ricordo.guard import has_secret
from ricordo.messages.types import JsonValue
from ricordo.runtime.config_file import is_secret_name
from ricordo.runtime.layers import Origin
from ricordo.runtime.setting_types import duration_text, kinds_of, tables_of
from ricordo.runtime.settings import Settings, variable_of
from ricordo.tokens import Share, Tokens

__all__ = ["HIDDEN", "Listed", "listed"]

HIDDEN = "[hidden]"
"""What is shown instead of a secret."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A setting: its dotted key, its value as JSON, its environment variable, and where the value came from.

    A table has the value True or False, for being on or off. `is_off` says that the table it stands in is off: the
    value is then the one it would have.
    """

    key: str
    value: JsonValue
    variable: str
    origin: Origin
    is_table: bool = False
    is_off: bool = False


def listed(settings: Settings) -> list[Listed]:
    """Return every setting in the order of the fields, each table followed by what stands in it."""
    return list(_listed(settings, Settings, "", settings.origins, is_off=False))


def _listed(
    values: object, owner: type, prefix: str, origins: Mapping[str, Origin], *, is_off: bool
) -> Iterator[Listed]:
    plain, tables = kinds_of(owner), tables_of(owner)
    for name in (each.name for each in fields(owner)):
        key, value = f"{prefix}{name}", getattr(values, name)
        if name in plain:
            yield Listed(
                key=key, value=_shown(key, value), variable=variable_of(key), origin=_origin(key, origins),
                is_off=is_off,
            )  # fmt: skip
        elif name in tables:
            off = is_off or value is None
            yield Listed(
                key=key, value=not off, variable=variable_of(key), origin=_origin(key, origins), is_table=True,
                is_off=is_off,
            )  # fmt: skip
            made = tables[name].type() if value is None else value
            yield from _listed(made, type(made), f"{key}.", origins, is_off=off)


def _origin(key: str, origins: Mapping[str, Origin]) -> Origin:
    """Return where the value came from; for a table that nobody switched, the first setting that switched it on."""
    inner = (origin for each, origin in origins.items() if each.startswith(f"{key}."))
    return origins.get(key) or next(inner, Origin())


def _shown(key: str, value: object) -> JsonValue:
    shown = _plain(value)
    texts = [shown] if isinstance(shown, str) else shown if isinstance(shown, list) else []
    secret = any(isinstance(each, str) and (has_secret(each) or has_secret(f'{key} = "{each}"')) for each in texts)
    return HIDDEN if secret or (isinstance(shown, str) and is_secret_name(key)) else shown


def _plain(value: object) -> JsonValue:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Share):
        return f"{value.part * 100:g}%"
    if isinstance(value, Tokens):
        return value.count
    if isinstance(value, timedelta | Path):
        return duration_text(value) if isinstance(value, timedelta) else str(value)
    if isinstance(value, frozenset | tuple):
        return [str(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]
    # what only code can give, such as a model
    return type(value).__name__
