"""`trust`: which roots may be used, and what one would bring with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import find_root_folder, run_async
from ricordo.cli.options import JsonOption, RootOption
from ricordo.cli.render import bold, print_json, print_note, print_line, join_sentences, escape
from ricordo.errors import RootNotFound, RootNotTrusted

if TYPE_CHECKING:
    from ricordo.files import FileStore
    from ricordo.runtime import Settings
    from ricordo.runtime.trust_report import TrustReport

__all__ = ["trust"]

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
                "why": report.reason or None,
                "trouble": list(report.obstacles),
                "found": {name: list(lines) for name, lines in report.effects.items()},
            }
        )
        return
    print_line(f"{escape(str(report.root))}\n{_trust_message(report)}")
    for told in report.obstacles:
        print_line(escape(told))
    for name, lines in report.effects.items():
        print_line(f"\n{bold(name.capitalize())}")
        for line in lines:
            print_line(f"  {escape(line)}")


def _trust_message(report: "TrustReport") -> str:
    return f"It is trusted: {report.reason}." if report.trusted else "It is not trusted: nothing of it is used."


def _trust_root(report: "TrustReport", settings: "Settings", *, as_json: bool) -> None:
    from ricordo.clock import SystemClock
    from ricordo.runtime.assembly import root_files
    from ricordo.runtime.claiming import trust_root
    from ricordo.runtime.roots import ROOT_FOLDER
    from ricordo.runtime.store_folders import check_no_foreign_files
    from ricordo.runtime.trust import restrict_modes, is_vouched_for
    from ricordo.workspace.layout import PROJECT_FILE

    if report.obstacles:
        raise RootNotTrusted(report.obstacles[0], root=str(report.root))
    if report.root.name != ROOT_FOLDER and not (report.root / PROJECT_FILE).is_file():
        check_no_foreign_files(report.root)
    was_known = "key" in report.effects
    if not report.trusted:
        files, listed = root_files(report.root), _trust_list(settings)
        run_async(lambda: trust_root(report.root, files, listed=listed, clock=SystemClock(), keeps_key=not was_known))
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
    from ricordo.runtime.guard_key import identity_from_key
    from ricordo.runtime.trust import is_listed, read_key_file

    key = read_key_file(folder)
    was = key is not None and is_listed(identity_from_key(key), settings.data)
    if key is not None:
        run_async(lambda: untrust_root(identity_from_key(key), listed=_trust_list(settings)))
    if as_json:
        print_json({"root": str(folder), "trusted": False, "was_trusted": was})
    else:
        print_line(f"{escape(str(folder))} {'is no longer trusted' if was else 'was not on the list'}.")


def _trust_list(settings: "Settings") -> "FileStore":
    from ricordo.runtime.assembly import Dependencies, trust_list_files

    return trust_list_files(Dependencies.create(settings=settings))
