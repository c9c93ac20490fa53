"""`config`: what is set, and who said so."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from ricordo.cli.context import located
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, dim, emit, failed, say, shown
from ricordo.errors import DocumentInvalid, InvalidSetting, StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from ricordo.messages.types import JsonValue
    from ricordo.runtime.listing import Listed
    from ricordo.runtime.settings import Settings

__all__ = ["show"]


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The settings that could be read, and what kept others from being read."""

    settings: "Settings"
    trouble: tuple[str, ...]


def show(
    *,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every setting, its value and where it came from.

    Later ones win: the root's config.toml, then the environment, then options. Secrets are masked. The exit code is 1
    if a setting can't be used; what is shown then holds without it.
    """
    from ricordo.runtime.config_file import CONFIG
    from ricordo.runtime.listing import listed

    target = located(root, user, project)
    found = _read(target.root, {"root": root.absolute() if root else None, "user": user})
    rows = listed(found.settings)
    file = target.root / CONFIG
    if as_json:
        settings: list[JsonValue] = [_document(row) for row in rows]
        place: dict[str, JsonValue] = {"root": str(target.root), "file": str(file), "exists": file.is_file()}
        emit({**place, "ok": not found.trouble, "trouble": list(found.trouble), "settings": settings})
    else:
        say(f"{shown(str(file))}{'' if file.exists() else dim(' (not there: nothing is set in it)')}\n")
        _print(rows)
        for trouble in found.trouble:
            failed(trouble)
    if found.trouble:
        raise typer.Exit(1)


def _read(root: "Path", options: dict[str, object]) -> _Found:
    """Return the settings; where the file, or the environment, can't be used, those without it."""
    from ricordo.runtime.settings import OF_THIS_MACHINE, Settings, variable_of

    places = {name: os.environ[name] for name in map(variable_of, OF_THIS_MACHINE) if name in os.environ}
    trouble: list[str] = []
    for folder, environment in ((root, os.environ), (None, os.environ), (root, places)):
        try:
            settings = Settings.load(folder, environment, options)
        except (DocumentInvalid, InvalidSetting, StorageError) as error:
            trouble += [str(error)] if str(error) not in trouble else []
        else:
            return _Found(settings=settings, trouble=tuple(trouble))
    return _Found(settings=Settings.from_environment(), trouble=tuple(trouble))


def _document(row: "Listed") -> "dict[str, JsonValue]":
    origin = row.origin
    return {
        "key": row.key,
        "value": row.value,
        "table": row.is_table,
        "off": row.is_off or (row.is_table and row.value is False),
        "variable": row.variable,
        "origin": {"kind": origin.kind, "name": origin.name or None, "line": origin.line or None},
    }


def _print(rows: "list[Listed]") -> None:
    cells = [(row, f"{'  ' * row.key.count('.')}{row.key.rpartition('.')[2]}", _value(row)) for row in rows]
    names = max(len(name) for _, name, _ in cells)
    values = max(len(value) for _, _, value in cells)
    for row, name, value in cells:
        line = f"{name:<{names}}  {value:<{min(values, 40)}}  {shown(row.origin.short)}"
        say(bold(line) if row.is_table else dim(line) if row.is_off else line)


def _value(row: "Listed") -> str:
    if row.is_table:
        return "on" if row.value else "off"
    if row.value is None:
        told = "none"
    elif isinstance(row.value, bool):
        told = str(row.value).lower()
    elif isinstance(row.value, list):
        told = ", ".join(map(str, row.value)) or "none"
    else:
        told = str(row.value)
    return f"(off: {shown(told)})" if row.is_off else shown(told)
