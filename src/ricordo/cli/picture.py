"""What fills the window, as a picture: one bar of cells, and a line for each section with its size and share.

A cell is the letter of its section, on a colour where a terminal shows colours, so that it is read without them too.
Every section with a token has a cell. Nothing is wider than the terminal, down to 20 columns.
"""

import shutil
import sys
from typing import TYPE_CHECKING

import typer

from ricordo.cli.render import counted, is_colourful, shown

if TYPE_CHECKING:
    from ricordo.runtime.usage import ContextReport

__all__ = ["bar", "change_lines", "usage_lines"]

_CELLS, _FEWEST_CELLS, _MOST_CELLS = 60, 10, 100
_WIDE_ROW, _WIDE_CHANGE = 56, 40
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
_DARK = frozenset({"blue", "magenta", "red", "bright_black"})
_ROOM = frozenset({"reserve", "free"})
_CONVERSATION = ("user", "assistant", "results", "summary", "injected")


def usage_lines(report: "ContextReport", *, is_new: bool = False) -> list[str]:
    """Return the picture of a report, line by line; the session of one that `is_new` has no id yet."""
    session = "a new session" if is_new else f"session {shown(report.session)}"
    return [f"{session}, model {shown(report.model)}", f"  {bar(report, indent=2)}", *_rows(report)]


def change_lines(before: "ContextReport", after: "ContextReport") -> list[str]:
    """Return the picture of a window that got smaller: the bars, and each section before and after."""
    sizes = dict(after.sections)
    rows = [(name, tokens, sizes[name]) for name, tokens in before.sections]
    rows.append(("together", before.tokens, after.tokens))
    start = "" if 0 < _columns() < _WIDE_CHANGE else "  "
    return [
        f"session {shown(before.session)}, model {shown(before.model)}",
        f"{start}before {bar(before, indent=len(start) + 7)}",
        f"{start}after  {bar(after, whole=before.tokens, indent=len(start) + 7)}",
        _change("", "before", "after"),
        *(_change(name, f"{old:,}", f"{new:,}") for name, old, new in rows if before.limit or name not in _ROOM),
        f"{before.tokens:,} tokens in {counted(before.messages, 'message')} before, "
        f"{after.tokens:,} in {after.messages:,} after",
    ]


def bar(report: "ContextReport", *, whole: int = 0, indent: int = 0) -> str:
    """Return the bar: it stands for the model's window where that is known, else for `whole` tokens or the request.

    On a terminal it ends where the line does, `indent` columns stand before it; elsewhere it has 60 cells.
    """
    missing = 0 if report.limit else max(0, whole - report.tokens)
    width = _columns()
    count = min(max(width - indent - len("[]"), _FEWEST_CELLS), _MOST_CELLS) if width else _CELLS
    *cells, rest = _cells([*(tokens for _, tokens in report.sections), missing], count)
    runs = (_cell(name, number) for (name, _), number in zip(report.sections, cells, strict=True) if number)
    return f"[{''.join(runs)}{' ' * rest}]"


def _rows(report: "ContextReport") -> list[str]:
    whole = report.limit or report.tokens
    found = []
    for name, tokens in report.sections:
        if name == _CONVERSATION[0]:
            found.append(_row("", "messages", report.conversation, whole, f"in {counted(report.messages, 'message')}"))
        inner = "  " if name in _CONVERSATION else ""
        if report.limit or name not in _ROOM:
            found.append(_row(name, f"{inner}{_SECTIONS[name][1]}", tokens, whole))
    limit = f"of {report.limit:,}" if report.limit else "of a window that is not known"
    over = f", {report.over:,} too many" if report.over else ""
    return [*found, _row("", "together", report.tokens, whole, limit + over)]


def _row(name: str, label: str, tokens: int, whole: int, more: str = "") -> str:
    width = _columns()
    if 0 < width < _WIDE_ROW:
        number = f"{tokens:,}"
        return f"{_letter(name)} {_cut(label, width - len(number) - 3)} {number}"
    share = f"{100 * tokens / whole:5.1f} %" if whole else ""
    return f"  {_letter(name)} {label:<14} {tokens:>9,} tokens  {share}  {more}".rstrip()


def _change(name: str, before: str, after: str) -> str:
    label = _SECTIONS[name][1] if name in _SECTIONS else name
    width = _columns()
    if 0 < width < _WIDE_CHANGE:
        return f"{_letter(name)} {_cut(label, max(width - 18, 1))}{before:>8}{after:>8}"
    return f"  {_letter(name)} {label:<14}{before:>10}{after:>10}"


def _cut(label: str, room: int) -> str:
    """Return a label in exactly `room` columns."""
    return f"{label[: max(room, 0)]:<{max(room, 0)}}"


def _letter(name: str) -> str:
    return _cell(name, 1) if name in _SECTIONS else " "


def _cell(name: str, count: int) -> str:
    """Return the cells of a section, which stand beside each other."""
    letter, _, colour = _SECTIONS[name]
    if colour is None or not is_colourful():
        return letter * count
    return typer.style(letter * count, fg="bright_white" if colour in _DARK else "black", bg=colour)


def _cells(sizes: list[int], count: int) -> list[int]:
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
