"""`config` and `trust`: which settings hold and who set them, and which roots may set them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, dim, escape, join_sentences, print_error, print_json, print_line, print_note
from ricordo.cli.target import find_root_folder, locate_target, run_async
from ricordo.errors import RootNotFound, RootNotTrusted

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue
    from ricordo.runtime import Settings
    from ricordo.runtime.settings import SettingRow
    from ricordo.runtime.trust_report import TrustReport
    from ricordo.storage import FileStore

__all__ = ["show", "trust"]


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
    from ricordo.runtime.settings import list_settings

    target = locate_target(root, user, project)
    problems = [str(error) for error in target.setting_errors]
    rows = list_settings(target.settings)
    own_file, file = target.settings.data / CONFIG_FILE, target.root / CONFIG_FILE
    if as_json:
        settings: list[JsonValue] = [_setting_document(row) for row in rows]
        document: dict[str, JsonValue] = {"root": str(target.root), "file": str(file), "exists": file.is_file()}
        document |= {"own_file": str(own_file), "own_exists": own_file.is_file()}
        print_json({**document, "ok": not problems, "trouble": list(problems), "settings": settings})
    else:
        for each in (own_file, file):
            print_line(f"{escape(str(each))}{'' if each.exists() else dim(' (not there: nothing is set in it)')}")
        print_line("")
        _print_settings(rows)
        for problem in problems:
            print_error(problem)
    if problems:
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
        text = "none"
    elif isinstance(row.value, bool):
        text = str(row.value).lower()
    elif isinstance(row.value, list):
        text = ", ".join(map(str, row.value)) or "none"
    else:
        text = str(row.value)
    return f"(off: {escape(text)})" if row.is_off else escape(text)


_Place = Annotated[
    Path | None,
    typer.Argument(
        metavar="PATH", show_default=False, help="The root, or the folder that holds it; else the nearest one."
    ),
]


def trust(
    path: _Place = None,
    *,
    show: Annotated[bool, typer.Option("--show", help="Show what would come into effect, and change nothing.")] = False,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Trust the root no longer, and forget what its sessions were permitted.")
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a root be used that was not made on this machine, or before there was a list of trusted roots.

    What lies in a root decides which model is asked, what stands in the prompt and whose memory it is. Look with --show
    before you trust what somebody else made. A root that is made here is trusted from the start.
    """
    from ricordo.runtime import Settings
    from ricordo.runtime.trust_report import create_trust_report

    if show and revoke:
        raise typer.BadParameter("--show changes nothing: leave --revoke out.")
    folder, settings = find_root_folder(path or root), Settings.from_environment()
    report = create_trust_report(folder, settings)
    if not report.exists:
        raise RootNotFound(f"There is no root in {folder}. One that is made on this machine is trusted from the start.")
    if show:
        _print_report(report, as_json=as_json)
    elif revoke:
        _revoke_trust(folder, settings, as_json=as_json)
    else:
        _trust_root(report, settings, as_json=as_json)


def _print_report(report: "TrustReport", *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "root": str(report.root),
                "trusted": report.trusted,
                "reason": report.reason or None,
                "trouble": list(report.obstacles),
                "found": {name: list(lines) for name, lines in report.effects.items()},
            }
        )
        return
    print_line(f"{escape(str(report.root))}\n{_trust_message(report)}")
    for obstacle in report.obstacles:
        print_line(escape(obstacle))
    for name, lines in report.effects.items():
        print_line(f"\n{bold(name.capitalize())}")
        for line in lines:
            print_line(f"  {escape(line)}")


def _trust_message(report: "TrustReport") -> str:
    return f"It is trusted: {report.reason}." if report.trusted else "It is not trusted: nothing of it is used."


def _trust_root(report: "TrustReport", settings: "Settings", *, as_json: bool) -> None:
    from ricordo.clock import SystemClock
    from ricordo.runtime.claiming import trust_root
    from ricordo.runtime.roots import ROOT_FOLDER
    from ricordo.runtime.stores import check_no_foreign_files
    from ricordo.runtime.trust import is_vouched_for, restrict_modes
    from ricordo.runtime.workspace import root_files
    from ricordo.workspace.layout import PROJECT_FILE

    if report.obstacles:
        raise RootNotTrusted(report.obstacles[0], root=str(report.root))
    if report.root.name != ROOT_FOLDER and not (report.root / PROJECT_FILE).is_file():
        check_no_foreign_files(report.root)
    was_known = "key" in report.effects
    if not report.trusted:
        files, trust_list = root_files(report.root), _trust_list(settings)
        run_async(
            lambda: trust_root(report.root, files, trust_list=trust_list, clock=SystemClock(), keeps_key=not was_known)
        )
    elif not is_vouched_for(settings.trust, report.root):
        restrict_modes(report.root, below=True)
    if as_json:
        print_json({"root": str(report.root), "trusted": True, "was_trusted": report.trusted, "new_key": was_known})
    elif report.trusted:
        print_line(f"{escape(str(report.root))} is trusted already: {report.reason}.")
    else:
        print_line(f"{escape(str(report.root))} is trusted now. `ricordo trust --revoke` takes it back.")
        if "git" in report.effects:
            print_note(join_sentences(report.effects["git"]))
        if was_known:
            print_note(
                "Its key could be known to others, so it has a new one: what was forgotten in it can be learned again."
            )


def _revoke_trust(folder: Path, settings: "Settings", *, as_json: bool) -> None:
    from ricordo.runtime.claiming import untrust_root
    from ricordo.runtime.roots import identity_from_key
    from ricordo.runtime.trust import is_listed, read_key_file

    key = read_key_file(folder)
    was = key is not None and is_listed(identity_from_key(key), settings.data)
    if key is not None:
        run_async(lambda: untrust_root(identity_from_key(key), trust_list=_trust_list(settings)))
    if as_json:
        print_json({"root": str(folder), "trusted": False, "was_trusted": was})
    else:
        print_line(f"{escape(str(folder))} {'is no longer trusted' if was else 'was not on the list'}.")


def _trust_list(settings: "Settings") -> "FileStore":
    from ricordo.runtime.workspace import Dependencies, trust_list_files

    return trust_list_files(Dependencies.create(settings=settings))
