"""Printing: text for people, JSON for programs, failures on stderr, progress on a terminal.

Invariant: nothing that memory holds reaches a terminal as a control sequence; colour is only for terminals, and not
when NO_COLOR is set.
"""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

import typer

from ricordo.lazy import lazy_compile
from ricordo.messages.types import JsonValue

__all__ = [
    "bold",
    "dim",
    "escape",
    "format_age",
    "format_size",
    "highlight",
    "is_colourful",
    "join_sentences",
    "pluralize",
    "print_error",
    "print_json",
    "print_line",
    "print_note",
    "progress_bar",
    "wrap",
]


_CONTROL_CHARACTERS = lazy_compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_Y_ENDING = lazy_compile(r"[bcdfghj-np-tvwxz]y$", re.IGNORECASE)
_SIBILANT_ENDING = lazy_compile(r"(s|x|z|ch|sh)$", re.IGNORECASE)
_MAX_COLUMNS = 100
_AGE_UNITS = ((60, "s"), (60, "min"), (24, "h"), (365, "d"))
_SIZE_STEP = 1024


def print_line(text: str = "") -> None:
    """Print a line for people."""
    typer.echo(text)


def print_note(text: str) -> None:
    """Print a line on stderr that is no failure."""
    typer.echo(text, err=True)


def print_error(message: str) -> None:
    """Print what went wrong as one line on stderr."""
    typer.echo(f"ricordo: {' '.join(escape(message).split())}", err=True)


def print_json(document: Mapping[str, JsonValue]) -> None:
    """Print one JSON document; it is ASCII, so every terminal and pipe can carry it."""
    typer.echo(json.dumps(document, indent=1))


def escape(text: str) -> str:
    """Return `text` with its control characters written out, such as `\\x1b`."""
    return _CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def join_sentences(statements: Iterable[object]) -> str:
    """Return what each of `statements` says as one text, every sentence with its end."""
    texts = (str(each).rstrip() for each in statements)
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in texts if text)


def wrap(text: str, indent: str = "", *, first: str | None = None) -> str:
    """Return `text` indented, and broken to the width of the terminal when there is one; `first` starts it."""
    width = min(shutil.get_terminal_size().columns, _MAX_COLUMNS) if sys.stdout.isatty() else 0
    lines: list[str] = []
    for line in escape(text).split("\n"):
        starts = indent if lines or first is None else first
        if width and len(line) + len(starts) > width:
            lines += textwrap.wrap(line, width, initial_indent=starts, subsequent_indent=indent, break_long_words=False)
        else:
            lines.append(f"{starts}{line}".rstrip())
    return "\n".join(lines)


def bold(text: str) -> str:
    """Return `text` in bold on a terminal."""
    return typer.style(text, bold=True) if is_colourful() else text


def highlight(text: str, phrases: Iterable[str]) -> str:
    """Return `text` with each of the phrases in bold on a terminal, whatever their capitals and the space in them."""
    patterns = [r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases if phrase.split()]
    if not patterns or not is_colourful():
        return text
    pattern = "|".join(sorted(patterns, key=len, reverse=True))
    return re.sub(pattern, lambda match: bold(match[0]), text, flags=re.IGNORECASE)


def dim(text: str) -> str:
    """Return `text` in the background on a terminal."""
    return typer.style(text, dim=True) if is_colourful() else text


def pluralize(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, such as `1 session`, `2 sessions` or `2 entries`; `many` is for irregular ones."""
    return f"{count:,} {one if count == 1 else many or _plural_of(one)}"


def format_age(time: datetime | None) -> str:
    """Return how long ago `time` was in its largest unit, such as `3 d`; `-` for none."""
    if time is None:
        return "-"
    age = max((datetime.now(UTC) - time).total_seconds(), 0.0)
    for step, unit in _AGE_UNITS:
        if age < step:
            return f"{int(age)} {unit}"
        age /= step
    return f"{int(age)} y"


def format_size(count: int) -> str:
    """Return a number of bytes for people, such as `2.4 MB`; a unit has 1,024 of the one before."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < _SIZE_STEP or unit == "GB":
            break
        size /= _SIZE_STEP
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def _plural_of(noun: str) -> str:
    if _Y_ENDING.search(noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if _SIBILANT_ENDING.search(noun) else f"{noun}s"


def is_colourful() -> bool:
    """Return whether colours may be printed: to a terminal that supports them, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def progress_bar(total: int, label: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that adds progress towards `total`; nothing is shown without a terminal."""
    if not sys.stderr.isatty():
        yield lambda more: None
        return
    with typer.progressbar(length=max(total, 1), label=label, file=sys.stderr) as bar:
        yield bar.update
