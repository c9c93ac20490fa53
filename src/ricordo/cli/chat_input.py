"""What is typed into a chat: lines of a terminal, edited and recalled, or of a pipe, as they are.

Invariants: the lines that are recalled with the arrow keys are kept in mind only, on disk they would be what was said,
with its secrets; and nothing that was typed before a question was shown answers it, in whole or in part.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

from ricordo.cli.chat_commands import COMMAND_NAMES
from ricordo.cli.render import bold, dim, print_line, escape

if TYPE_CHECKING:
    from types import ModuleType

    from ricordo.tools import Approval

__all__ = ["ApprovalAnswer", "ChatInput"]

ApprovalAnswer: TypeAlias = Literal["no", "yes", "always"]
"""What a person says to a question."""

_PROMPT = "> "
_LINE_ENDS = bytes.maketrans(b"\r\0\x04", b"\n\n\n")
"""What ends a line as it is typed: the key for it, and the end of the input, in its two shapes."""

_APPROVAL_ANSWERS: dict[str, ApprovalAnswer] = {"y": "yes", "yes": "yes", "a": "always", "always": "always"}


class ChatInput:
    """Where lines come from; `is_terminal` tells whether a person sits there."""

    def __init__(self) -> None:
        """Look at standard input and output."""
        self.is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._readline: ModuleType | None = None

    def enable_editing(self) -> None:
        """Switch editing and recalling on, for a terminal."""
        if not self.is_terminal:
            return
        if hasattr(sys.stdin, "reconfigure"):
            # what the locale can't decode is decoded later, rather than refused
            sys.stdin.reconfigure(errors="surrogateescape")
        with suppress(ImportError):
            import readline

            readline.set_completer(_complete)
            readline.set_completer_delims(" ")
            readline.parse_and_bind("tab: complete")
            self._readline = readline

    def read_line(self) -> str:
        """Return the next line without its end. Raises `EOFError` after the last."""
        if self.is_terminal:
            return os.fsencode(_input_line(_PROMPT)).decode("utf-8", "replace")
        line = sys.stdin.buffer.readline()
        if not line:
            raise EOFError
        return line.decode("utf-8", "replace").rstrip("\r\n")

    def ask_approval(self, asked: "Approval", *, always: bool) -> ApprovalAnswer:
        """Show a change and ask whether it may be made, with `always` also for good; anything but yes is no.

        What was typed before is dropped, and so is the rest of a line that had been begun.
        """
        who = f"{escape(asked.agent)} wants to: " if asked.agent else ""
        # a reply that still comes, or what was typed meanwhile, may stand on the line
        print_line(f"\n{bold(f'{who}{escape(asked.act)} {escape(asked.target)}')}")
        if asked.change:
            print_line(escape(asked.change.rstrip("\n")))
        begun = self._discard_typed()
        with self._without_history():
            line = self._read_answer(always=always)
            if begun:
                print_line(dim("That line was begun before the question was asked, so it is no answer."))
                line = self._read_answer(always=always)
        answer = _APPROVAL_ANSWERS.get(line, "no")
        return "no" if answer == "always" and not always else answer

    def _read_answer(self, *, always: bool) -> str:
        return _input_line(f"May it? [y/N{'/a' if always else ''}] ").strip().lower()

    def _discard_typed(self) -> bool:
        """Take away what was typed and not read yet, say so, and tell whether its last line was only begun."""
        typed = _read_pending() if self.is_terminal else b""
        if typed.strip():
            print_line(dim("What was typed before this question is dropped."))
        return bool(typed) and not typed.endswith(b"\n")

    @contextmanager
    def _without_history(self) -> Iterator[None]:
        if self._readline is None:
            yield
            return
        self._readline.set_auto_history(False)
        try:
            yield
        finally:
            self._readline.set_auto_history(True)


def _read_pending() -> bytes:
    """Return, and take away, what was typed at the terminal and not read yet, a line that is not ended included."""
    try:
        import termios
    except ImportError:
        return b""
    number, found = sys.stdin.fileno(), b""
    try:
        before = termios.tcgetattr(number)
        keys = [*before[:6], [*before[6]]]
        # as single keys, without waiting for one: a line that is not ended can be read in no other way
        keys[3] &= ~termios.ICANON
        keys[6][termios.VMIN], keys[6][termios.VTIME] = 0, 0
        termios.tcsetattr(number, termios.TCSANOW, keys)
        try:
            while piece := os.read(number, 4096):
                found += piece
        finally:
            termios.tcsetattr(number, termios.TCSANOW, before)
    except (OSError, termios.error):
        # a terminal that is gone
        return found
    return found.translate(_LINE_ENDS)


def _input_line(prompt: str) -> str:
    try:
        return input(prompt)
    except OSError as error:
        # a terminal that is gone
        raise EOFError from error


def _complete(text: str, state: int) -> str | None:
    found = [f"/{name} " for name in COMMAND_NAMES if text and f"/{name}".startswith(text)]
    return found[state] if state < len(found) else None
