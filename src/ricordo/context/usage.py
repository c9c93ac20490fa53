"""Context usage: the tokens of the next request by section, which add up exactly. Pure functions.

Invariants: the sections add up to the whole request. If the window is known, the sections, the reserve for the reply
and the free tokens add up to the window, unless the request alone is larger.
"""

from collections.abc import Sequence
from math import floor

from ricordo.lazy import dataclass
from ricordo.messages import Message, get_mark
from ricordo.messages.tokens import RequestEstimate
from ricordo.messages.tokens.estimate import estimate_message

__all__ = ["ContextReport", "apportion", "build_context_report"]


_CONVERSATION_SECTIONS = ("user", "assistant", "results", "summary", "injected")
_INJECTED_MARKS = frozenset({"memory", "notice"})


@dataclass(frozen=True, kw_only=True)
class ContextReport:
    """The tokens of the next request by section, before the provider counts them.

    `user`, `assistant` and `results` (of tools) are the conversation, `summary` replaces dropped messages, and
    `injected` is recalled memory and notices that are not the assistant's. `reminder` is the agent's state (plan,
    todos, tasks), which is sent with each request. `reserve` is kept for the reply, `free` is left; both are 0 if the
    model's window, `limit`, is unknown. `ratio` is the correction learned from the provider's counts; every number
    includes it.
    """

    session: str
    model: str
    messages: int
    system: int = 0
    memory: int = 0
    tools: int = 0
    user: int = 0
    assistant: int = 0
    results: int = 0
    summary: int = 0
    injected: int = 0
    reminder: int = 0
    reserve: int = 0
    free: int = 0
    ratio: float = 1.0
    limit: int | None = None

    @property
    def conversation(self) -> int:
        """Tokens of all messages."""
        return self.user + self.assistant + self.results + self.summary + self.injected

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        return self.system + self.memory + self.tools + self.conversation + self.reminder

    @property
    def excess_tokens(self) -> int:
        """By how many tokens the request exceeds the model's window; 0 if it fits or the window is unknown."""
        return max(0, self.tokens - self.limit) if self.limit else 0

    @property
    def sections(self) -> tuple[tuple[str, int], ...]:
        """Every section with its tokens, in the order of the request, then the reserve and the free tokens."""
        names = ("system", "memory", "tools", *_CONVERSATION_SECTIONS, "reminder", "reserve", "free")
        return tuple((name, getattr(self, name)) for name in names)


def build_context_report(
    messages: Sequence[Message],
    estimate: RequestEstimate,
    *,
    session: str,
    model: str,
    total: int,
    ratio: float = 1.0,
    limit: int | None = None,
    ceiling: int | None = None,
) -> ContextReport:
    """Return the report of a request with these `messages`.

    `estimate` is the estimate of the request, `total` the corrected total, and `ceiling` the maximum tokens of a
    request before compaction; None if it may use all of `limit`.
    """
    conversation = dict.fromkeys(_CONVERSATION_SECTIONS, 0)
    for message in messages:
        conversation[_section_of(message)] += estimate_message(message)
    raw = {
        "system": estimate.system,
        "memory": estimate.memory,
        "tools": estimate.tools,
        **conversation,
        "reminder": estimate.reminder,
    }
    tokens = dict(zip(raw, apportion(tuple(raw.values()), total), strict=True))
    remaining = 0 if limit is None else max(0, limit - total)
    reserve = 0 if limit is None or ceiling is None else min(max(0, limit - ceiling), remaining)
    return ContextReport(
        session=session,
        model=model,
        messages=len(messages),
        reserve=reserve,
        free=remaining - reserve,
        ratio=ratio,
        limit=limit,
        **tokens,
    )


def apportion(parts: Sequence[int], total: int) -> tuple[int, ...]:
    """Return integers in the proportions of `parts` that add up to `total`; the largest remainders get the rest.

    If all parts are 0, the result is all 0.
    """
    parts_total = sum(parts)
    if not parts_total:
        return (0,) * len(parts)
    exact = [part * total / parts_total for part in parts]
    shares = [floor(each) for each in exact]
    by_remainder = sorted(range(len(parts)), key=lambda index: (shares[index] - exact[index], index))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return tuple(shares)


def _section_of(message: Message) -> str:
    mark = get_mark(message)
    if mark == "summary":
        return "summary"
    # Replies of an agent without a model are quotations from memory, but still count as the assistant's.
    if message.role == "assistant" and not message.tool_results:
        return "assistant"
    if mark in _INJECTED_MARKS or message.role == "system":
        return "injected"
    if message.role == "tool" or message.tool_results:
        return "results"
    return "user"
