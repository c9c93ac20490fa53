"""Context usage: the tokens of the next request by section, which add up exactly. Pure.

Invariants: the sections together are all of the request. With a known window they, the reserve for the reply and what
is free are all of it, unless the request alone is larger.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from ricordo.messages import Message, get_mark
from ricordo.messages.tokens import RequestEstimate
from ricordo.messages.tokens.estimate import estimate_message

__all__ = ["ContextReport", "apportion", "build_context_report"]


_CONVERSATION_SECTIONS = ("user", "assistant", "results", "summary", "injected")
_INJECTED_MARKS = frozenset({"memory", "notice"})


@dataclass(frozen=True, kw_only=True)
class ContextReport:
    """What the next request is made of, in tokens, as far as they are known before the provider counts them.

    `user`, `assistant` and `results` (of tools) are what was said, `summary` stands for what went, `injected` is what
    nobody said: recalled memory and notices that are not the assistant's. `reminder` is where the agent stands: plan,
    todos, tasks, which is sent anew with each request. `reserve` is kept for the reply, `free` is left; both are 0
    where the model's window, `limit`, is not known. `ratio` is what the provider's counts have taught, and in every
    number.
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
        """All messages."""
        return self.user + self.assistant + self.results + self.summary + self.injected

    @property
    def tokens(self) -> int:
        """All of the request."""
        return self.system + self.memory + self.tools + self.conversation + self.reminder

    @property
    def excess_tokens(self) -> int:
        """By how much the request is larger than the model's window; 0 when it fits, or that is not known."""
        return max(0, self.tokens - self.limit) if self.limit else 0

    @property
    def sections(self) -> tuple[tuple[str, int], ...]:
        """Every section with its tokens, in the order of the request, then the reserve and what is free."""
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

    `estimate` is that of the request, `total` the same corrected, and `max_request_tokens` what compaction lets a
    request take; None where it lets it take all of `limit`.
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
    left = 0 if limit is None else max(0, limit - total)
    reserve = 0 if limit is None or ceiling is None else min(max(0, limit - ceiling), left)
    return ContextReport(
        session=session,
        model=model,
        messages=len(messages),
        reserve=reserve,
        free=left - reserve,
        ratio=ratio,
        limit=limit,
        **tokens,
    )


def apportion(parts: Sequence[int], total: int) -> tuple[int, ...]:
    """Return whole numbers in the proportions of `parts` that add up to `total`: the largest remainders get the rest.

    Without any part all is 0.
    """
    whole = sum(parts)
    if not whole:
        return (0,) * len(parts)
    exact = [part * total / whole for part in parts]
    found = [floor(each) for each in exact]
    most = sorted(range(len(parts)), key=lambda at: (found[at] - exact[at], at))
    for at in most[: total - sum(found)]:
        found[at] += 1
    return tuple(found)


def _section_of(message: Message) -> str:
    mark = get_mark(message)
    if mark == "summary":
        return "summary"
    # what an agent without a model says is quoted from memory, and is what it says all the same
    if message.role == "assistant" and not message.tool_results:
        return "assistant"
    if mark in _INJECTED_MARKS or message.role == "system":
        return "injected"
    if message.role == "tool" or message.tool_results:
        return "results"
    return "user"
