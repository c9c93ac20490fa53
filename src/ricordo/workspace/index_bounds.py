"""Bounds of MEMORY.md, the index that every prompt begins with: how much of it may be there, and who keeps it so.

Consolidation keeps the file within them, every other writer of ours is refused what would go beyond them, and a prompt
shows no more than they allow of a file that a person let grow. Pure.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ricordo.errors import IndexTooLarge
from ricordo.tokens import estimate_text
from ricordo.workspace.entry_codec import render_prompt_lines

__all__ = ["BoundName", "IndexBounds"]

BoundName: TypeAlias = Literal["lines", "bytes", "tokens"]
"""What an index can have too much of."""

_BOUND_NAMES: tuple[BoundName, ...] = ("lines", "bytes", "tokens")


@dataclass(frozen=True, kw_only=True)
class IndexBounds:
    """The most that MEMORY.md may have; tokens are those of the prompt, without the fields of entries.

    The defaults of lines and bytes are those that Claude Code keeps to when it reads a file of this name.
    """

    max_lines: int = 200
    max_bytes: int = 25_000
    max_tokens: int = 4_000

    def find_exceeded(self, document: bytes) -> BoundName | None:
        """Return the first bound that a document is beyond, lines before bytes before tokens; None for none."""
        return next((cap for cap in _BOUND_NAMES if self.measure(document, cap) > self.limit(cap)), None)

    def measure(self, document: bytes, cap: BoundName) -> int:
        """Return how much a document has of what one of the bounds counts."""
        if cap == "lines":
            return document.count(b"\n") + (not document.endswith(b"\n"))
        return len(document) if cap == "bytes" else estimate_text("\n".join(render_prompt_lines(document)))

    def limit(self, cap: BoundName) -> int:
        """Return one of the bounds."""
        return {"lines": self.max_lines, "bytes": self.max_bytes, "tokens": self.max_tokens}[cap]

    def find_growth(self, before: bytes, after: bytes) -> BoundName | None:
        """Return the first bound that `after` is beyond, and further beyond than `before`; None for none."""
        over = (cap for cap in _BOUND_NAMES if self.measure(after, cap) > self.limit(cap))
        return next((cap for cap in over if self.measure(after, cap) > self.measure(before, cap)), None)

    def check(self, before: bytes, after: bytes, *, advice: str = "") -> None:
        """Refuse a write that makes MEMORY.md larger than it may be; to make one shorter that is too large is free.

        Raises: IndexTooLarge, which names the bound and says what to do, by default in general words.
        """
        cap = self.find_growth(before, after)
        if cap is not None:
            raise IndexTooLarge(
                f"MEMORY.md would have {self.measure(after, cap):,} {cap}, and may have {self.limit(cap):,}, as every"
                f" prompt begins with it: nothing was written. {advice or _DEFAULT_ADVICE}",
                cap=cap,
            )


_DEFAULT_ADVICE = (
    "Put what is longer into a topic such as memory/topics/NAME.md, and let MEMORY.md name that in a line."
)
