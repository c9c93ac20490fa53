"""What the package warns of, on stderr: one line for each thing, printed as every failure is.

Invariant: a warning is told once, however many commands run in one another, as they do in a chat.
"""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ricordo.cli.render import failed

__all__ = ["nothing_said", "told_in_lines"]

_AGAIN = re.compile(r"Asking again in (?P<seconds>[\d.]+) s: (?P<why>.*)", re.DOTALL)
_NOT_KEPT = "nothing that is said now is kept"


class _OneLine(logging.Handler):
    """Prints a record; who waits for another try is told for how long."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        told = record.getMessage()
        again = _AGAIN.fullmatch(told)
        if again:
            told = f"{again['why'].rstrip('.')}; waiting {float(again['seconds']):g} s to ask again."
        failed(told)


@contextmanager
def told_in_lines() -> Iterator[None]:
    """Print what the package warns of in the block, each warning once, as one line without a place in a file."""
    logger = logging.getLogger("ricordo")
    if any(isinstance(each, _OneLine) for each in logger.handlers):
        yield
        return
    handler, told = _OneLine(logging.WARNING), set[str]()

    def show(message: Warning | str, *place: object, **more: object) -> None:
        del place, more
        if str(message) not in told:
            told.add(str(message))
            failed(str(message))

    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("always", category=UserWarning)
            warnings.showwarning = show
            yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def nothing_said() -> Iterator[None]:
    """Pass over, in the block, the warning that what is said is not kept: nothing is said there."""
    logger = logging.getLogger("ricordo.agent")
    logger.addFilter(_is_news)
    try:
        yield
    finally:
        logger.removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return _NOT_KEPT not in str(record.msg)
