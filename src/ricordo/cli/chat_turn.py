"""A turn on the screen: the reply as it comes, what tools do, and how it ended.

Invariant: nothing that a model or a tool says reaches a terminal as a control sequence, however it was cut into pieces.
"""

import sys
from typing import TYPE_CHECKING

from ricordo.cli.render import dim, print_note, print_line, escape

if TYPE_CHECKING:
    from ricordo.messages import ToolCall, ToolResult
    from ricordo.middleware import TurnEvent, TurnResult

__all__ = ["TurnPrinter"]

_MAX_LINE_CHARS = 100
_HIGH_SURROGATES = ("\ud800", "\udbff")
_ENDING_NOTES = {
    "length": "The reply ends here because it reached the model's limit of output.",
    "refused": "The model refused to go on.",
    "window": "The reply ends here because the model's window is full: /compact makes room.",
}


class TurnPrinter:
    """Prints one turn. Without `tools` only the reply is printed; `thinking` is shown where asked."""

    def __init__(self, *, tools: bool, thinking: bool) -> None:
        """Begin at the start of a line."""
        self._tools = tools
        self._thinking = thinking
        self._half_character = ""
        self._block_kind = ""
        self._has_text = False
        self._at_line_start = True

    def print_event(self, event: "TurnEvent") -> None:
        """Print what happened."""
        from ricordo.middleware import ToolFinished, ToolStarted
        from ricordo.models import TextDelta, ThinkingDelta

        match event:
            case TextDelta(text=text):
                self._write_piece("text", text)
                self._has_text = self._has_text or bool(text.strip())
            case ThinkingDelta(text=text) if self._thinking:
                self._write_piece("thinking", text)
            case ToolStarted(call=call) if self._tools:
                self._write_line(f"· {call.name}{_format_arguments(call)}")
            case ToolFinished(result=result) if self._tools:
                self._write_line(f"  {result.name or 'tool'}: {_format_outcome(result)}")

    def finish(self, result: "TurnResult | None") -> None:
        """Go to a new line; say what the stream did not, and why the reply ended where it did."""
        if result is not None and not self._has_text and result.message.text.strip():
            self._write_piece("text", result.message.text)
        elif result is not None and result.ending in {"max_iters", "limit"}:
            self._write_line(result.message.text)
        self._end_line()
        if result is not None and result.ending in _ENDING_NOTES:
            print_note(_ENDING_NOTES[result.ending])

    def _write_piece(self, kind: str, text: str) -> None:
        if self._block_kind not in {"", kind}:
            self._end_line()
        self._block_kind = kind
        text, self._half_character = self._half_character + text, ""
        if text and _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            # the other half of this character comes with the next piece
            text, self._half_character = text[:-1], text[-1]
        if text:
            whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            self._write(dim(escape(whole)) if kind == "thinking" else escape(whole))
            self._at_line_start = whole.endswith("\n")

    def _write_line(self, text: str) -> None:
        self._end_line()
        print_line(dim(escape(text)))

    def _end_line(self) -> None:
        if self._half_character:
            self._write(escape(self._half_character))
            self._half_character, self._at_line_start = "", False
        if not self._at_line_start:
            self._write("\n")
        self._block_kind, self._at_line_start = "", True

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _format_arguments(call: "ToolCall") -> str:
    told = " ".join(call.arguments.split())
    return (
        "" if told in {"", "{}"} else f" {told}" if len(told) <= _MAX_LINE_CHARS else f" {told[: _MAX_LINE_CHARS - 1]}…"
    )


def _format_outcome(result: "ToolResult") -> str:
    if not result.is_error:
        return "done"
    first = " ".join(result.text.split())
    return f"failed: {first if len(first) <= _MAX_LINE_CHARS else f'{first[: _MAX_LINE_CHARS - 1]}…'}"
