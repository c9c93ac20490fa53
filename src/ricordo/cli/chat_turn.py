"""A turn on the screen: the reply as it comes, what tools do, and how it ended.

Invariant: nothing that a model or a tool says reaches a terminal as a control sequence, however it was cut into pieces.
"""

import sys
from typing import TYPE_CHECKING

from ricordo.cli.render import dim, note, say, shown

if TYPE_CHECKING:
    from ricordo.messages import ToolCall, ToolResult
    from ricordo.middleware import TurnEvent, TurnResult

__all__ = ["Screen"]

_LONGEST = 100
_HIGH = ("\ud800", "\udbff")
_ENDINGS = {
    "length": "The reply ends here because it reached the model's limit of output.",
    "refused": "The model refused to go on.",
    "window": "The reply ends here because the model's window is full: /compact makes room.",
}


class Screen:
    """Prints one turn. Without `tools` only the reply is printed; `thinking` is shown where asked."""

    def __init__(self, *, tools: bool, thinking: bool) -> None:
        """Begin at the start of a line."""
        self._tools = tools
        self._thinking = thinking
        self._half = ""
        self._within = ""
        self._said = False
        self._ends_line = True

    def show(self, event: "TurnEvent") -> None:
        """Print what happened."""
        from ricordo.middleware import ToolFinished, ToolStarted
        from ricordo.models import TextDelta, ThinkingDelta

        match event:
            case TextDelta(text=text):
                self._go_on("text", text)
                self._said = self._said or bool(text.strip())
            case ThinkingDelta(text=text) if self._thinking:
                self._go_on("thinking", text)
            case ToolStarted(call=call) if self._tools:
                self._line(f"· {call.name}{_arguments(call)}")
            case ToolFinished(result=result) if self._tools:
                self._line(f"  {result.name or 'tool'}: {_outcome(result)}")

    def end(self, result: "TurnResult | None") -> None:
        """Go to a new line; say what the stream did not, and why the reply ended where it did."""
        if result is not None and not self._said and result.message.text.strip():
            self._go_on("text", result.message.text)
        elif result is not None and result.ending in {"max_iters", "limit"}:
            self._line(result.message.text)
        self._break()
        if result is not None and result.ending in _ENDINGS:
            note(_ENDINGS[result.ending])

    def _go_on(self, kind: str, text: str) -> None:
        if self._within not in {"", kind}:
            self._break()
        self._within = kind
        text, self._half = self._half + text, ""
        if text and _HIGH[0] <= text[-1] <= _HIGH[1]:
            # the other half of this character comes with the next piece
            text, self._half = text[:-1], text[-1]
        if text:
            whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            self._write(dim(shown(whole)) if kind == "thinking" else shown(whole))
            self._ends_line = whole.endswith("\n")

    def _line(self, text: str) -> None:
        self._break()
        say(dim(shown(text)))

    def _break(self) -> None:
        if self._half:
            self._write(shown(self._half))
            self._half, self._ends_line = "", False
        if not self._ends_line:
            self._write("\n")
        self._within, self._ends_line = "", True

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _arguments(call: "ToolCall") -> str:
    told = " ".join(call.arguments.split())
    return "" if told in {"", "{}"} else f" {told}" if len(told) <= _LONGEST else f" {told[: _LONGEST - 1]}…"


def _outcome(result: "ToolResult") -> str:
    if not result.is_error:
        return "done"
    first = " ".join(result.text.split())
    return f"failed: {first if len(first) <= _LONGEST else f'{first[: _LONGEST - 1]}…'}"
