"""The options that several commands share, and how times are written on the command line.

Invariant: `--root`, `--user`, `--project` and `--json` mean the same before and after the name of a command; the one
that stands last wins.
"""

import os
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, TypeVar, cast

import typer

from ricordo.errors import InvalidInput
from ricordo.lazy import lazy_compile

__all__ = [
    "AsOfOption",
    "EntryId",
    "JsonOption",
    "KindOption",
    "LimitOption",
    "MetadataOption",
    "OptionalEntryId",
    "ProjectOption",
    "RootOption",
    "SessionOption",
    "SharedOption",
    "SinceOption",
    "TagOption",
    "UntilOption",
    "UserOption",
    "WhyOption",
    "YesOption",
    "decode_argument",
    "given_options",
    "last_values",
    "parse_metadata",
    "parse_time",
    "record_json_flag",
    "wants_json",
]

_T = TypeVar("_T")
_AGE_PATTERN = lazy_compile(r"(\d{1,6})\s*([mhdw])", re.ASCII)
_SURROGATES = lazy_compile("[\ud800-\udfff]")
_AGE_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _inherit_value(context: typer.Context, parameter: typer.CallbackParam, value: _T) -> _T:
    """Keep what is given for the commands below, and take what was given above when nothing is given here."""
    key = f"ricordo.{parameter.name}"
    value = decode_argument(value, parameter.opts[0])
    if value:
        context.meta[key] = value
        return value
    inherited: _T = context.meta.get(key, value)
    return inherited


def record_json_flag(context: typer.Context, arguments: Sequence[str]) -> None:
    """Remember that `--json` is among the arguments, for a failure that comes before they are read."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    context.meta["ricordo.expects_json"] = "--json" in options


def wants_json(context: typer.Context) -> bool:
    """Return whether `--json` was given before or after the name of the command."""
    return bool(context.meta.get("ricordo.as_json") or context.meta.get("ricordo.expects_json"))


def decode_argument(value: _T, name: str) -> _T:
    """Return a text, or the texts of a list, as UTF-8 where the locale could not decode it; other values as they are.

    Raises: InvalidInput for bytes that are not UTF-8; `name` says which argument holds them.
    """
    if isinstance(value, list):
        return cast("_T", [decode_argument(each, name) for each in value])
    if not isinstance(value, str) or not _SURROGATES.search(value):
        return value
    try:
        return cast("_T", os.fsencode(value).decode("utf-8"))
    except UnicodeError as error:
        raise InvalidInput(f"{name} holds bytes that are not UTF-8: give the text in UTF-8.") from error


def parse_time(text: str) -> datetime:
    """Read a time: `2026-11-22`, `2026-11-22T08:00`, with an offset or in local time, an age such as `7d`, or a day.

    A day in words, such as `yesterday`, `last monday` or `2 weeks ago`, is the local midnight at which it begins.
    """
    text = text.strip()
    ago = _AGE_PATTERN.fullmatch(text)
    try:
        if ago:
            return datetime.now(UTC) - timedelta(**{_AGE_UNITS[ago[2]]: int(ago[1])})
        day = _parse_day(text)
        return (datetime.fromisoformat(text) if day is None else datetime.combine(day, time.min)).astimezone()
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is no time: write 2026-11-22, 2026-11-22T08:00, an age such as 12h, 7d or 2w, "
            "or a day such as yesterday or 'last monday'."
        ) from error


def _parse_day(text: str) -> date | None:
    from ricordo.language import find_dates

    dates = find_dates(text, datetime.now().astimezone().date())
    return dates[0].first if dates and dates[0].text == text else None


def parse_metadata(pairs: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the values of options such as `area=office` by name. Raises: InvalidInput for another form."""
    values_by_name: dict[str, list[str]] = {}
    for each in pairs or ():
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise InvalidInput(f"{each!r} is no metadata: write a name and a value, such as area=office.")
        values_by_name.setdefault(name, []).append(value)
    return values_by_name


def last_values(pairs: Sequence[str] | None) -> dict[str, str]:
    """Return the last value of each name in options such as `area=office`. Raises: InvalidInput for another form."""
    return {name: values[-1] for name, values in parse_metadata(pairs).items()}


RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="PATH",
        callback=_inherit_value,
        show_default=False,
        help="The root to use, a folder such as .ricordo; else RICORDO_ROOT, else the nearest one at or above here.",
    ),
]
SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session", metavar="NAME", show_default=False, help="With what is remembered for this session alone."
    ),
]
SharedOption = Annotated[
    bool,
    typer.Option("--shared", help="For what the project shares with all of its users, not for what is yours in it."),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        callback=_inherit_value,
        show_default=False,
        help="Whose memory it is; else RICORDO_USER, else the login name.",
    ),
]
ProjectOption = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="NAME",
        callback=_inherit_value,
        show_default=False,
        help="The project; else the one the root belongs to. A new root belongs to the project named after its folder.",
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", is_eager=True, callback=_inherit_value, help="Print one JSON document, for errors too."),
]
MetadataOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata", "-m", metavar="NAME=VALUE", help="Further data, such as area=office; more than one may be given."
    ),
]
WhyOption = Annotated[
    bool,
    typer.Option("--why", help="Show what each signal gave to each score, and the best that was left out, and why."),
]
AroundOption = Annotated[
    bool, typer.Option("--around", "-a", help="Show what stands right before and after each one too.")
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
AsOfOption = Annotated[
    datetime | None,
    typer.Option(
        "--as-of", parser=parse_time, metavar="TIME", show_default=False, help="As it was then: 2026-11-22, or 7d ago."
    ),
]
SinceOption = Annotated[
    datetime | None,
    typer.Option(
        "--since",
        parser=parse_time,
        metavar="TIME",
        help="Only what was saved or said since: 2026-11-22, or 7d for an age.",
    ),
]
UntilOption = Annotated[
    datetime | None,
    typer.Option("--until", parser=parse_time, metavar="TIME", help="Only what was saved or said before this time."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_ENTRY_ID_HELP = (
    "The id of a memory as `ricordo memory list` shows it, or six characters or more of its beginning or its end that "
    "no other has."
)
EntryId = Annotated[str, typer.Argument(metavar="ID", help=_ENTRY_ID_HELP)]
OptionalEntryId = Annotated[str, typer.Argument(metavar="[ID]", help=_ENTRY_ID_HELP)]


def given_options(root: Path | None, user: str | None, project: str | None) -> list[str]:
    """Return the options with which another command works on the same root, as far as they were given to this one."""
    options = {"--root": root, "--user": user, "--project": project}
    return [each for name, value in options.items() if value is not None for each in (name, str(value))]
