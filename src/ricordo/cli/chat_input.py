"""What is typed into a chat: lines of a terminal, edited and recalled, or of a pipe, as they are.

Invariant: the lines that are recalled with the arrow keys are kept in mind only. On disk they would be what was said,
with its secrets.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

from ricordo.cli.chat_commands import NAMES
from ricordo.cli.options import decoded
from ricordo.cli.render import bold, say, shown

if TYPE_CHECKING:
    from types import ModuleType

    from ricordo.tools import Approval

__all__ = ["Answer", "Input"]

Answer: TypeAlias = Literal["no", "yes", "always"]
"""What a person says to a question."""

_PROMPT = "> "
_ANSWERS: dict[str, Answer] = {"y": "yes", "yes": "yes", "a": "always", "always": "always"}


class Input:
    """Where lines come from; `is_terminal` tells whether a person sits there."""

    def __init__(self) -> None:
        """Look at standard input and output."""
        self.is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._readline: ModuleType | None = None

    def prepare(self) -> None:
        """Switch editing and recalling on, for a terminal."""
        if not self.is_terminal:
            return
        if hasattr(sys.stdin, "reconfigure"):
            # what the locale can't decode is decoded later, rather than refused
            sys.stdin.reconfigure(errors="surrogateescape")
        with suppress(ImportError):
            import readline

            readline.set_completer(_completed)
            readline.set_completer_delims(" ")
            readline.parse_and_bind("tab: complete")
            self._readline = readline

    def line(self) -> str:
        """Return the next line without its end. Raises `EOFError` after the last."""
        if self.is_terminal:
            return decoded(_typed(_PROMPT))
        line = sys.stdin.buffer.readline()
        if not line:
            raise EOFError
        return line.decode("utf-8", "replace").rstrip("\r\n")

    def answered(self, asked: "Approval", *, always: bool) -> Answer:
        """Show a change and ask whether it may be made, with `always` also for good; anything but yes is no."""
        say(bold(f"{shown(asked.act)} {shown(asked.target)}"))
        if asked.change:
            say(shown(asked.change.rstrip("\n")))
        with self._unrecalled():
            answer = _ANSWERS.get(_typed(f"May it? [y/N{'/a' if always else ''}] ").strip().lower(), "no")
        return "no" if answer == "always" and not always else answer

    @contextmanager
    def _unrecalled(self) -> Iterator[None]:
        if self._readline is None:
            yield
            return
        self._readline.set_auto_history(False)
        try:
            yield
        finally:
            self._readline.set_auto_history(True)


def _typed(prompt: str) -> str:
    try:
        return input(prompt)
    except OSError as error:
        # a terminal that is gone
        raise EOFError from error


def _completed(text: str, state: int) -> str | None:
    found = [f"/{name} " for name in NAMES if text and f"/{name}".startswith(text)]
    return found[state] if state < len(found) else None
