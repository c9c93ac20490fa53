"""What fills the window, as a picture: one bar of cells, and a line for each section with its size and share.

Where a terminal shows colours a section is a coloured cell, else a letter. Every section with a token has a cell.
"""

import sys
from typing import TYPE_CHECKING

import typer

from ricordo.cli.render import counted, is_colourful, shown

if TYPE_CHECKING:
    from ricordo.runtime.usage import ContextReport

__all__ = ["bar", "change_lines", "usage_lines"]

_CELLS = 60
_BLOCK = "\u2588"
_SECTIONS = {
    "system": ("s", "system", "blue"),
    "memory": ("m", "memory", "green"),
    "tools": ("t", "tools", "cyan"),
    "user": ("u", "user", "yellow"),
    "assistant": ("a", "assistant", "magenta"),
    "results": ("r", "tool results", "red"),
    "summary": ("S", "summary", "bright_green"),
    "injected": ("i", "injected", "bright_blue"),
    "reserve": ("-", "reserve", "bright_black"),
    "free": (".", "free", None),
}
_ROOM = frozenset({"reserve", "free"})
_CONVERSATION = ("user", "assistant", "results", "summary", "injected")


def usage_lines(report: "ContextReport") -> list[str]:
    """Return the picture of a report, line by line."""
    return [f"session {shown(report.session)}, model {shown(report.model)}", f"  {bar(report)}", *_rows(report)]


def change_lines(before: "ContextReport", after: "ContextReport") -> list[str]:
    """Return the picture of a window that got smaller: the bars, and each section before and after."""
    sizes = dict(after.sections)
    rows = [(name, tokens, sizes[name]) for name, tokens in before.sections]
    rows.append(("together", before.tokens, after.tokens))
    return [
        f"session {shown(before.session)}, model {shown(before.model)}",
        f"  before {bar(before)}",
        f"  after  {bar(after, whole=before.tokens)}",
        f"  {'':<16}{'before':>10}{'after':>10}",
        *(f"  {_labelled(name)}{old:>10,}{new:>10,}" for name, old, new in rows if before.limit or name not in _ROOM),
        f"{before.tokens:,} tokens in {counted(before.messages, 'message')} before, "
        f"{after.tokens:,} in {after.messages:,} after",
    ]


def bar(report: "ContextReport", *, whole: int = 0) -> str:
    """Return the bar: it stands for the model's window where that is known, else for `whole` tokens or the request."""
    missing = 0 if report.limit else max(0, whole - report.tokens)
    *cells, rest = _cells([*(tokens for _, tokens in report.sections), missing])
    return (
        "["
        + "".join(_cell(name) * count for (name, _), count in zip(report.sections, cells, strict=True))
        + " " * rest
        + "]"
    )


def _rows(report: "ContextReport") -> list[str]:
    whole = report.limit or report.tokens
    found = []
    for name, tokens in report.sections:
        if name == _CONVERSATION[0]:
            found.append(_row(" ", "messages", report.conversation, whole, f"in {counted(report.messages, 'message')}"))
        inner = "  " if name in _CONVERSATION else ""
        if report.limit or name not in _ROOM:
            found.append(_row(_cell(name), f"{inner}{_SECTIONS[name][1]}", tokens, whole))
    limit = f"of {report.limit:,}" if report.limit else "of a window that is not known"
    over = f", {report.over:,} too many" if report.over else ""
    return [*found, _row(" ", "together", report.tokens, whole, limit + over)]


def _row(cell: str, label: str, tokens: int, whole: int, more: str = "") -> str:
    share = f"{100 * tokens / whole:5.1f} %" if whole else ""
    return f"  {cell} {label:<14} {tokens:>9,} tokens  {share}  {more}".rstrip()


def _labelled(name: str) -> str:
    return f"{_cell(name)} {_SECTIONS[name][1]:<14}" if name in _SECTIONS else f"  {name:<14}"


def _cell(name: str) -> str:
    letter, _, colour = _SECTIONS[name]
    if colour is None or not (is_colourful() and _is_encodable()):
        return letter
    return typer.style(_BLOCK, fg=colour)


def _cells(sizes: list[int]) -> list[int]:
    """Return the cells of each size; one that is not 0 has at least one."""
    whole = sum(sizes)
    if not whole:
        return [0] * len(sizes)
    cells = [max(1, round(_CELLS * size / whole)) if size else 0 for size in sizes]
    cells[cells.index(max(cells))] += _CELLS - sum(cells)
    return cells


def _is_encodable() -> bool:
    try:
        _BLOCK.encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
