"""How far long work has come, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(total: int, label: str) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how much more of `total` was done; it shows nothing when nobody can see it."""
    if not sys.stderr.isatty():
        yield lambda more: None
        return
    with typer.progressbar(length=max(total, 1), label=label, file=sys.stderr) as bar:
        yield bar.update
