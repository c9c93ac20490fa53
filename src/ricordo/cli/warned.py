"""What the package warns of, on stderr: one line for each thing, printed as every failure is.

Invariant: a warning is told once, however many commands run in one another, as they do in a chat.
"""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ricordo.cli.render import print_error

__all__ = ["hide_unrecorded_warning", "print_warnings"]

_RETRY_MESSAGE = re.compile(r"Asking again in (?P<seconds>[\d.]+) s: (?P<why>.*)", re.DOTALL)
_UNRECORDED_MESSAGE = "nothing that is said now is kept"


class _WarningPrinter(logging.Handler):
    """Prints a record; who waits for another try is told for how long."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        told = record.getMessage()
        again = _RETRY_MESSAGE.fullmatch(told)
        if again:
            told = f"{again['why'].rstrip('.')}; waiting {float(again['seconds']):g} s to ask again."
        print_error(told)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print what the package warns of in the block, each warning once, as one line without a place in a file."""
    logger = logging.getLogger("ricordo")
    if any(isinstance(each, _WarningPrinter) for each in logger.handlers):
        yield
        return
    handler, told = _WarningPrinter(logging.WARNING), set[str]()

    def print_once(message: Warning | str, *place: object, **more: object) -> None:
        del place, more
        if str(message) not in told:
            told.add(str(message))
            print_error(str(message))

    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("always", category=UserWarning)
            warnings.showwarning = print_once
            yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def hide_unrecorded_warning() -> Iterator[None]:
    """Pass over, in the block, the warning that what is said is not kept: nothing is said there."""
    logger = logging.getLogger("ricordo.agent")
    logger.addFilter(_is_other_warning)
    try:
        yield
    finally:
        logger.removeFilter(_is_other_warning)


def _is_other_warning(record: logging.LogRecord) -> bool:
    return _UNRECORDED_MESSAGE not in str(record.msg)
