"""`trust`: which roots may be used, and what one would bring with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import root_folder, run
from ricordo.cli.options import JsonOption, RootOption
from ricordo.cli.render import bold, emit, note, say, sentences, shown
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
    from ricordo.runtime.trust_report import trust_report

    if show and revoke:
        raise typer.BadParameter("--show changes nothing: leave --revoke out.")
    folder, settings = root_folder(path or root), Settings.from_environment()
    report = trust_report(folder, settings)
    if not report.exists:
        raise RootNotFound(f"There is no root in {folder}. One that is made on this machine is trusted from the start.")
    if show:
        _show(report, as_json=as_json)
    elif revoke:
        _revoke(folder, settings, as_json=as_json)
    else:
        _trust(report, settings, as_json=as_json)


def _show(report: "TrustReport", *, as_json: bool) -> None:
    if as_json:
        emit(
            {
                "root": str(report.root),
                "trusted": report.trusted,
                "why": report.why or None,
                "trouble": list(report.trouble),
                "found": {name: list(lines) for name, lines in report.found.items()},
            }
        )
        return
    say(f"{shown(str(report.root))}\n{_verdict(report)}")
    for told in report.trouble:
        say(shown(told))
    for name, lines in report.found.items():
        say(f"\n{bold(name.capitalize())}")
        for line in lines:
            say(f"  {shown(line)}")


def _verdict(report: "TrustReport") -> str:
    return f"It is trusted: {report.why}." if report.trusted else "It is not trusted: nothing of it is used."


def _trust(report: "TrustReport", settings: "Settings", *, as_json: bool) -> None:
    from ricordo.clock import SystemClock
    from ricordo.runtime.assembly import files_of
    from ricordo.runtime.claiming import trust_root
    from ricordo.runtime.roots import FOLDER
    from ricordo.runtime.store_folders import refuse_foreign
    from ricordo.runtime.trust import narrow_modes, vouches_for
    from ricordo.workspace.layout import PROJECT

    if report.trouble:
        raise RootNotTrusted(report.trouble[0], root=str(report.root))
    if report.root.name != FOLDER and not (report.root / PROJECT).is_file():
        refuse_foreign(report.root)
    was_known = "key" in report.found
    if not report.trusted:
        files, listed = files_of(report.root), _list_of(settings)
        run(lambda: trust_root(report.root, files, listed=listed, clock=SystemClock(), keeps_key=not was_known))
    elif not vouches_for(settings.trust, report.root):
        narrow_modes(report.root, below=True)
    if as_json:
        emit({"root": str(report.root), "trusted": True, "was_trusted": report.trusted, "new_key": was_known})
    elif report.trusted:
        say(f"{shown(str(report.root))} is trusted already: {report.why}.")
    else:
        say(f"{shown(str(report.root))} is trusted now. `ricordo trust --revoke` takes it back.")
        if "git" in report.found:
            note(sentences(report.found["git"]))
        if was_known:
            note(
                "Its key could be known to others, so it has a new one: what was forgotten in it can be learned again."
            )


def _revoke(folder: Path, settings: "Settings", *, as_json: bool) -> None:
    from ricordo.runtime.claiming import untrust_root
    from ricordo.runtime.guard_key import identity_of
    from ricordo.runtime.trust import is_listed, stored_key

    key = stored_key(folder)
    was = key is not None and is_listed(identity_of(key), settings.data)
    if key is not None:
        run(lambda: untrust_root(identity_of(key), listed=_list_of(settings)))
    if as_json:
        emit({"root": str(folder), "trusted": False, "was_trusted": was})
    else:
        say(f"{shown(str(folder))} {'is no longer trusted' if was else 'was not on the list'}.")


def _list_of(settings: "Settings") -> "FileStore":
    from ricordo.runtime.assembly import Parts, trusted_files

    return trusted_files(Parts.standard(settings=settings))
