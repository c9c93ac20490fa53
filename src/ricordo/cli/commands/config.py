"""`config`: what is set, and who said so."""

from typing import TYPE_CHECKING

import typer

from ricordo.cli.context import locate_target
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, dim, print_json, print_error, print_line, escape

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.listing import SettingRow

__all__ = ["show"]


def show(
    *,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every setting, its value and where it came from.

    Later ones win: your own config.toml, the root's, then the environment, then options. Secrets are masked. The exit
    code is 1 if a setting can't be used; what is shown then holds without it.
    """
    from ricordo.runtime.config_file import CONFIG_FILE
    from ricordo.runtime.listing import list_settings

    target = locate_target(root, user, project)
    trouble = [str(error) for error in target.setting_errors]
    rows = list_settings(target.settings)
    own, file = target.settings.data / CONFIG_FILE, target.root / CONFIG_FILE
    if as_json:
        settings: list[JsonValue] = [_setting_document(row) for row in rows]
        place: dict[str, JsonValue] = {"root": str(target.root), "file": str(file), "exists": file.is_file()}
        place |= {"own_file": str(own), "own_exists": own.is_file()}
        print_json({**place, "ok": not trouble, "trouble": list(trouble), "settings": settings})
    else:
        for each in (own, file):
            print_line(f"{escape(str(each))}{'' if each.exists() else dim(' (not there: nothing is set in it)')}")
        print_line("")
        _print_settings(rows)
        for told in trouble:
            print_error(told)
    if trouble:
        raise typer.Exit(1)


def _setting_document(row: "SettingRow") -> "dict[str, JsonValue]":
    origin = row.origin
    return {
        "key": row.key,
        "value": row.value,
        "table": row.is_table,
        "off": row.is_off or (row.is_table and row.value is False),
        "variable": row.variable,
        "origin": {"kind": origin.kind, "name": origin.name or None, "line": origin.line or None},
    }


def _print_settings(rows: "list[SettingRow]") -> None:
    cells = [(row, f"{'  ' * row.key.count('.')}{row.key.rpartition('.')[2]}", _format_value(row)) for row in rows]
    names = max(len(name) for _, name, _ in cells)
    values = max(len(value) for _, _, value in cells)
    for row, name, value in cells:
        line = f"{name:<{names}}  {value:<{min(values, 40)}}  {escape(row.origin.short_name)}"
        print_line(bold(line) if row.is_table else dim(line) if row.is_off else line)


def _format_value(row: "SettingRow") -> str:
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
    return f"(off: {escape(told)})" if row.is_off else escape(told)
