"""What fills the window, as a picture: one bar of cells, and a line for each section with its size and share.

A cell is the letter of its section, on a colour where a terminal shows colours, so that it is read without them too.
Every section with a token has a cell. Nothing is wider than the terminal, down to 20 columns.
"""

import shutil
import sys
from typing import TYPE_CHECKING

import typer

from ricordo.cli.render import pluralize, is_colourful, escape

if TYPE_CHECKING:
    from ricordo.runtime.usage import ContextReport

__all__ = ["format_bar", "format_usage_change", "format_usage"]

_DEFAULT_CELLS, _MIN_CELLS, _MAX_CELLS = 60, 10, 100
_WIDE_ROW_COLUMNS, _WIDE_CHANGE_COLUMNS = 56, 40
_SECTIONS = {
    "system": ("s", "system", "blue"),
    "memory": ("m", "memory", "green"),
    "tools": ("t", "tools", "cyan"),
    "user": ("u", "user", "yellow"),
    "assistant": ("a", "assistant", "magenta"),
    "results": ("r", "tool results", "red"),
    "summary": ("S", "summary", "bright_green"),
    "injected": ("i", "injected", "bright_blue"),
    "reminder": ("R", "reminder", "bright_yellow"),
    "reserve": ("-", "reserve", "bright_black"),
    "free": (".", "free", None),
}
_DARK_COLOURS = frozenset({"blue", "magenta", "red", "bright_black"})
_ROOM_SECTIONS = frozenset({"reserve", "free"})
_CONVERSATION_SECTIONS = ("user", "assistant", "results", "summary", "injected")


def format_usage(report: "ContextReport", *, is_new: bool = False) -> list[str]:
    """Return the picture of a report, line by line; the session of one that `is_new` has no id yet."""
    session = "a new session" if is_new else f"session {escape(report.session)}"
    return [f"{session}, model {escape(report.model)}", f"  {format_bar(report, indent=2)}", *_format_rows(report)]


def format_usage_change(before: "ContextReport", after: "ContextReport") -> list[str]:
    """Return the picture of a window that got smaller: the bars, and each section before and after."""
    sizes = dict(after.sections)
    rows = [(name, tokens, sizes[name]) for name, tokens in before.sections]
    rows.append(("together", before.tokens, after.tokens))
    start = "" if 0 < _columns() < _WIDE_CHANGE_COLUMNS else "  "
    return [
        f"session {escape(before.session)}, model {escape(before.model)}",
        f"{start}before {format_bar(before, indent=len(start) + 7)}",
        f"{start}after  {format_bar(after, whole=before.tokens, indent=len(start) + 7)}",
        _format_change_row("", "before", "after"),
        *(
            _format_change_row(name, f"{old:,}", f"{new:,}")
            for name, old, new in rows
            if before.limit or name not in _ROOM_SECTIONS
        ),
        f"{before.tokens:,} tokens in {pluralize(before.messages, 'message')} before, "
        f"{after.tokens:,} in {after.messages:,} after",
    ]


def format_bar(report: "ContextReport", *, whole: int = 0, indent: int = 0) -> str:
    """Return the bar: it stands for the model's window where that is known, else for `whole` tokens or the request.

    On a terminal it ends where the line does, `indent` columns stand before it; elsewhere it has 60 cells.
    """
    missing = 0 if report.limit else max(0, whole - report.tokens)
    width = _columns()
    count = min(max(width - indent - len("[]"), _MIN_CELLS), _MAX_CELLS) if width else _DEFAULT_CELLS
    *cells, rest = _allocate_cells([*(tokens for _, tokens in report.sections), missing], count)
    runs = (_section_cells(name, number) for (name, _), number in zip(report.sections, cells, strict=True) if number)
    return f"[{''.join(runs)}{' ' * rest}]"


def _format_rows(report: "ContextReport") -> list[str]:
    whole = report.limit or report.tokens
    found = []
    for name, tokens in report.sections:
        if name == _CONVERSATION_SECTIONS[0]:
            found.append(
                _format_row("", "messages", report.conversation, whole, f"in {pluralize(report.messages, 'message')}")
            )
        inner = "  " if name in _CONVERSATION_SECTIONS else ""
        if report.limit or name not in _ROOM_SECTIONS:
            found.append(_format_row(name, f"{inner}{_SECTIONS[name][1]}", tokens, whole))
    limit = f"of {report.limit:,}" if report.limit else "of a window that is not known"
    over = f", {report.excess_tokens:,} too many" if report.excess_tokens else ""
    return [*found, _format_row("", "together", report.tokens, whole, limit + over)]


def _format_row(name: str, label: str, tokens: int, whole: int, more: str = "") -> str:
    width = _columns()
    if 0 < width < _WIDE_ROW_COLUMNS:
        number = f"{tokens:,}"
        return f"{_section_letter(name)} {_fit_label(label, width - len(number) - 3)} {number}"
    share = f"{100 * tokens / whole:5.1f} %" if whole else ""
    return f"  {_section_letter(name)} {label:<14} {tokens:>9,} tokens  {share}  {more}".rstrip()


def _format_change_row(name: str, before: str, after: str) -> str:
    label = _SECTIONS[name][1] if name in _SECTIONS else name
    width = _columns()
    if 0 < width < _WIDE_CHANGE_COLUMNS:
        return f"{_section_letter(name)} {_fit_label(label, max(width - 18, 1))}{before:>8}{after:>8}"
    return f"  {_section_letter(name)} {label:<14}{before:>10}{after:>10}"


def _fit_label(label: str, room: int) -> str:
    """Return a label in exactly `room` columns."""
    return f"{label[: max(room, 0)]:<{max(room, 0)}}"


def _section_letter(name: str) -> str:
    return _section_cells(name, 1) if name in _SECTIONS else " "


def _section_cells(name: str, count: int) -> str:
    """Return the cells of a section, which stand beside each other."""
    letter, _, colour = _SECTIONS[name]
    if colour is None or not is_colourful():
        return letter * count
    return typer.style(letter * count, fg="bright_white" if colour in _DARK_COLOURS else "black", bg=colour)


def _allocate_cells(sizes: list[int], count: int) -> list[int]:
    """Return the cells of each size, `count` together where there are as many; one that is not 0 has at least one."""
    whole = sum(sizes)
    if not whole:
        return [0] * len(sizes)
    cells = [max(1, round(count * size / whole)) if size else 0 for size in sizes]
    while (left := count - sum(cells)) and (left > 0 or max(cells) > 1):
        cells[cells.index(max(cells))] += left if left > 0 else -1
    return cells


def _columns() -> int:
    """Return how many columns the terminal has; 0 where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
