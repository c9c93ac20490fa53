"""The request for a summary, as text: the prompt, the conversation as data, and what is asked for beside it.

Pure. Invariant: what was said, the earlier summary and the focus stand in blocks that they can't leave, and no text of
them is taken for a place of the prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ricordo.compaction.config import MESSAGES_PLACEHOLDER
from ricordo.compaction.prompts import (
    RETRY_PROMPT,
    DELTA_PROMPT,
    EARLIER_SUMMARY_SOURCE,
    FOCUS_PROMPT,
    LESSONS_PROMPT,
    LIMIT_PLACEHOLDER,
    EARLIER_LINES_SOURCE,
    SUMMARY_PROMPT,
)
from ricordo.compaction.rendering import render_block, fit_item
from ricordo.compaction.sections import label_lines, parse_leniently
from ricordo.flush.lessons import MAX_LESSONS
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.tokens import estimate_text

__all__ = ["SummaryRequest"]

_MIN_ANSWER_DIVISOR = 3
_MAX_FOCUS_CHARS = 2_000
_MIN_EARLIER_TOKENS = 500


@dataclass(frozen=True, kw_only=True)
class SummaryRequest:
    """What is asked: a summary of `items` in about `limit` tokens.

    `prompt` is somebody's own, None for the built-in one. `earlier` is the summary so far. `lessons` asks for those
    too, and `flaw` says what was wrong with the answer before this request.
    """

    prompt: str | None
    limit: int
    items: Sequence[FencedItem] = ()
    earlier: str = ""
    focus: str = ""
    lessons: bool = False
    flaw: str = ""

    @property
    def text(self) -> str:
        """The text of the request."""
        # the blocks go in last, so that nothing in them is taken for a place of the prompt
        parts = (
            (self.prompt or SUMMARY_PROMPT)
            .replace(LIMIT_PLACEHOLDER, str(self._max_answer_tokens))
            .split(MESSAGES_PLACEHOLDER)
        )
        before = [self._earlier_item] if self.earlier else []
        return render_block([*before, *self.items]).join(parts) + self._additions

    @property
    def frame_tokens(self) -> int:
        """What the request takes without its items and the summary so far, in tokens."""
        return estimate_text(replace(self, items=(), earlier="").text + DELTA_PROMPT)

    @property
    def max_earlier_tokens(self) -> int:
        """What the summary so far may take, in tokens; the middle of a longer one is not shown."""
        return max(_MIN_EARLIER_TOKENS, 2 * self.limit)

    @property
    def _additions(self) -> str:
        found = DELTA_PROMPT if self.earlier and self.prompt is None else ""
        if self.focus.strip():
            wish = FencedItem(text=self.focus.strip()[:_MAX_FOCUS_CHARS], source="the person", trust=Trust.USER)
            found += f"{FOCUS_PROMPT}{render_fence([wish], name='focus')}\n"
        if self.lessons:
            found += LESSONS_PROMPT.format(most=MAX_LESSONS)
        return found + (RETRY_PROMPT.format(flaw=self.flaw) if self.flaw else "")

    @property
    def _earlier_item(self) -> FencedItem:
        if self.prompt is not None:
            return fit_item(
                FencedItem(text=self.earlier, source=EARLIER_SUMMARY_SOURCE, trust=Trust.AGENT), self.max_earlier_tokens
            )
        lines = label_lines(parse_leniently(self.earlier))
        return fit_item(FencedItem(text=lines, source=EARLIER_LINES_SOURCE, trust=Trust.AGENT), self.max_earlier_tokens)

    @property
    def _max_answer_tokens(self) -> int:
        """What the answer may take: what the earlier lines leave, but a third at least, for which old ones go."""
        taken = estimate_text(self.earlier) if self.earlier and self.prompt is None else 0
        return max(1, self.limit // _MIN_ANSWER_DIVISOR, self.limit - taken)
