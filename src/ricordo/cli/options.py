"""The options that several commands share, and how times are written on the command line.

Invariant: `--root`, `--user`, `--project` and `--json` mean the same before and after the name of a command; the one
that stands last wins.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypeVar

import typer

__all__ = [
    "EntryId",
    "JsonOption",
    "KindOption",
    "LimitOption",
    "ProjectOption",
    "RootOption",
    "TagOption",
    "UserOption",
    "YesOption",
    "moment",
    "wants_json",
]

_T = TypeVar("_T")
_AGO = re.compile(r"(\d{1,6})\s*([mhdw])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _inherited(context: typer.Context, parameter: typer.CallbackParam, value: _T) -> _T:
    """Keep what is given for the commands below, and take what was given above when nothing is given here."""
    key = f"ricordo.{parameter.name}"
    if value:
        context.meta[key] = value
        return value
    inherited: _T = context.meta.get(key, value)
    return inherited


def wants_json(context: typer.Context) -> bool:
    """Tell whether `--json` was given before or after the name of the command."""
    return bool(context.meta.get("ricordo.as_json"))


def moment(text: str) -> datetime:
    """Read a time: `2026-11-22`, `2026-11-22T08:00`, with an offset or in local time, or an age such as `7d`."""
    ago = _AGO.fullmatch(text.strip())
    try:
        if ago:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is no time: write 2026-11-22, 2026-11-22T08:00, or an age such as 12h, 7d or 2w."
        ) from error


RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="PATH",
        callback=_inherited,
        show_default=False,
        help="The root to use, a folder such as .ricordo; else RICORDO_ROOT, else the nearest one at or above here.",
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        callback=_inherited,
        show_default=False,
        help="Whose memory it is; else RICORDO_USER, else the login name.",
    ),
]
ProjectOption = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="NAME",
        callback=_inherited,
        show_default=False,
        help="The project; else the one the root belongs to. A new root belongs to the project named after its folder.",
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", is_eager=True, callback=_inherited, help="Print one JSON document, for errors too."),
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many to show at most.")]
KindOption = Annotated[
    list[str] | None,
    typer.Option("--kind", "-k", metavar="KIND", help="Only this kind, such as decision; more than one may be given."),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option("--tag", "-t", metavar="TAG", help="Only with this tag; more than one may be given."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
EntryId = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory, or the first six characters or more.")]
