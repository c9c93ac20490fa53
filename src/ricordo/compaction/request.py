"""The request for a summary, as text: the prompt, the conversation as data, and what is asked for beside it.

Pure. Invariant: what was said, the earlier summary and the focus stand in blocks that they can't leave, and no text of
them is taken for a place of the prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ricordo.compaction.config import MESSAGES
from ricordo.compaction.prompts import AGAIN, DELTA, EARLIER, FOCUS, LESSONS, LIMIT, LINES, SUMMARY
from ricordo.compaction.rendering import as_block, fitting
from ricordo.compaction.sections import labelled, loosely
from ricordo.flush.lessons import MOST_LESSONS
from ricordo.guard import Quoted, Trust, fence
from ricordo.tokens import estimate_text

__all__ = ["Request"]

_LEAST_SHARE = 3
_LONGEST_FOCUS = 2_000
_LEAST_EXTRACT = 500


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked: a summary of `items` in about `limit` tokens.

    `prompt` is somebody's own, None for the built-in one. `earlier` is the summary so far. `lessons` asks for those
    too, and `flaw` says what was wrong with the answer before this request.
    """

    prompt: str | None
    limit: int
    items: Sequence[Quoted] = ()
    earlier: str = ""
    focus: str = ""
    lessons: bool = False
    flaw: str = ""

    @property
    def text(self) -> str:
        """The text of the request."""
        # the blocks go in last, so that nothing in them is taken for a place of the prompt
        parts = (self.prompt or SUMMARY).replace(LIMIT, str(self._allowance)).split(MESSAGES)
        before = [self._extract] if self.earlier else []
        return as_block([*before, *self.items]).join(parts) + self._beside

    @property
    def frame(self) -> int:
        """What the request takes without its items and the summary so far, in tokens."""
        return estimate_text(replace(self, items=(), earlier="").text + DELTA)

    @property
    def extract_room(self) -> int:
        """What the summary so far may take, in tokens; the middle of a longer one is not shown."""
        return max(_LEAST_EXTRACT, 2 * self.limit)

    @property
    def _beside(self) -> str:
        found = DELTA if self.earlier and self.prompt is None else ""
        if self.focus.strip():
            wish = Quoted(text=self.focus.strip()[:_LONGEST_FOCUS], source="the person", trust=Trust.USER)
            found += f"{FOCUS}{fence([wish], name='focus')}\n"
        if self.lessons:
            found += LESSONS.format(most=MOST_LESSONS)
        return found + (AGAIN.format(flaw=self.flaw) if self.flaw else "")

    @property
    def _extract(self) -> Quoted:
        if self.prompt is not None:
            return fitting(Quoted(text=self.earlier, source=EARLIER, trust=Trust.AGENT), self.extract_room)
        lines = labelled(loosely(self.earlier))
        return fitting(Quoted(text=lines, source=LINES, trust=Trust.AGENT), self.extract_room)

    @property
    def _allowance(self) -> int:
        """What the answer may take: what the earlier lines leave, but a third at least, for which old ones go."""
        taken = estimate_text(self.earlier) if self.earlier and self.prompt is None else 0
        return max(1, self.limit // _LEAST_SHARE, self.limit - taken)
