"""Compact: a summary takes the place of the older messages.

The steps, in this order: the triggers, the cut, the prefix handed on for extraction, the transcript acknowledged, the
summary asked for, accepted or replaced by the digest, the hook before the messages go, the new window.

Invariants: calls and results stay together. A summary takes the place of history only when it is not empty, is no
error and is smaller; otherwise the digest does, and if that isn't smaller either, nothing happens and the report says
so. Everything that goes is in `dropped`, in order.
"""

import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from ricordo.compaction.acceptance import flaw
from ricordo.compaction.config import CompactionConfig
from ricordo.compaction.contract import Act, Reduction, Report, Summarize, Window
from ricordo.compaction.digest import digest
from ricordo.compaction.plan import Plan, decide, measured, thresholds
from ricordo.compaction.shorten import shortened
from ricordo.compaction.summary_message import Asked, asked, pinned, summary_message, transcript_at
from ricordo.errors import RicordoError
from ricordo.messages import Message, mark_of
from ricordo.tokens.estimate import estimate_message

__all__ = ["Compact", "Hook"]

Hook: TypeAlias = Callable[[Sequence[Message]], Awaitable[None]]
"""Called with messages in order; what it raises is told in the report, see `Compact`."""

_LEAST_BODY = 16
_NOT_SMALLER = "a summary would not be smaller"


class Compact:
    """Sums up older messages; see the module."""

    act: Act = "compact"

    def __init__(
        self,
        config: CompactionConfig,
        summarize: Summarize,
        before_drop: Hook | None = None,
        *,
        before_summary: Hook | None = None,
        offload: Hook | None = None,
    ) -> None:
        """Ask `summarize` for the summary.

        `before_summary` gets what people and the assistant said in the messages that go, if `flush_before_compact`;
        `offload` gets them all and returns when the transcript holds them, if `offload_before_compact`; `before_drop`
        gets them all once a summary is accepted. A `RicordoError` of `offload` leaves the window as it is; what
        `before_summary` and `before_drop` raise stops nothing.
        """
        self._config = config
        self._summarize = summarize
        self._before_drop = before_drop
        self._before_summary = before_summary if config.flush_before_compact else None
        self._offload = offload if config.offload_before_compact else None
        self._warned = False

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with a summary in the place of its older messages, when a trigger says so."""
        await checkpoint()
        self._warn(window)
        tokens = measured(window.messages, window.ratio)
        plan = decide(window, self._config, tokens)
        if not plan.cut:
            return self._shortened(window, plan, _unchanged(window, plan.reason, tokens))
        prefix = window.messages[: plan.cut]
        dropped = tuple(message for message in prefix if not pinned(message))
        if not _worth(dropped, window):
            return self._shortened(window, plan, _unchanged(window, f"{plan.reason}, but {_NOT_SMALLER}", tokens))
        notes: list[str] = []
        failed = await self._handed_on(dropped, notes)
        if failed:
            unchanged = _unchanged(window, failed, tokens)
            return replace(unchanged, report=replace(unchanged.report, status="failed"))
        summary = await self._summary(window, plan, dropped, notes)
        if summary is None:
            return self._shortened(window, plan, _unchanged(window, f"{plan.reason}, but {_NOT_SMALLER}", tokens))
        if self._before_drop:
            await _told(self._before_drop, dropped, notes)
        kept = tuple(message for message in prefix if pinned(message))
        messages = (*kept, summary, *window.messages[plan.cut :])
        report = replace(_skipped(window, plan.reason, tokens), status="done", note="; ".join(notes))
        return self._shortened(window, plan, Reduction(messages=messages, report=report, dropped=dropped))

    async def _handed_on(self, dropped: Sequence[Message], notes: list[str]) -> str:
        """Hand on what is about to go; return why it may not go, empty when it may."""
        said = [message for message in dropped if mark_of(message) in {None, "cut"}]
        if self._before_summary and said:
            await _told(self._before_summary, said, notes)
        if self._offload:
            try:
                await self._offload(dropped)
            except RicordoError as error:
                return f"the transcript does not hold these messages: {error}"
        return ""

    async def _summary(
        self, window: Window, plan: Plan, dropped: tuple[Message, ...], notes: list[str]
    ) -> Message | None:
        """Return the message that takes the place of `dropped`, smaller than they are; None when there is none."""
        size = sum(map(estimate_message, dropped))
        requests = asked(dropped, min(self._config.carry_tokens, size // 4))
        kept = len(window.messages) - plan.cut
        built = partial(summary_message, dropped=dropped, agent=window.agent, session=window.session, kept=kept)
        wanted = size - int(plan.gain / window.ratio)
        frame = estimate_message(built("", requests=requests, lead=True))
        limit = max(_LEAST_BODY, min(self._limit(window, plan), wanted - frame))
        body, found = await self._written(dropped, limit)
        message = None if found else _smaller(_forms(partial(built, body), requests), size, wanted)
        if message is not None:
            return message
        notes.append(f"a summary was not used: {found or 'it is not smaller than what it stands for'}")
        for most in (limit, max(_LEAST_BODY, limit // 3), _LEAST_BODY):
            body = await run_sync(partial(digest, dropped, limit_tokens=most))
            message = _smaller(_forms(partial(built, body), requests), size, wanted) if body else None
            if message is not None:
                notes.append("the digest took its place")
                return message
        return None

    async def _written(self, dropped: Sequence[Message], limit: int) -> tuple[str, str]:
        """Return what `summarize` wrote, and what is wrong with it; empty when nothing is."""
        try:
            body = (await self._summarize(dropped, limit_tokens=limit)).text
        except (RicordoError, TimeoutError) as error:
            return "", f"{type(error).__name__}"
        return body.strip(), flaw(body)

    def _limit(self, window: Window, plan: Plan) -> int:
        """How long a summary may be: a quarter of a small room, so that what stays still fits beside it."""
        if plan.room is None:
            return self._config.summary_tokens
        return max(_LEAST_BODY, min(self._config.summary_tokens, int(plan.room / window.ratio) // 8))

    def _shortened(self, window: Window, plan: Plan, found: Reduction) -> Reduction:
        """Shorten what alone is too large, when the window must get smaller and still is not; fill in the report."""
        messages = found.messages
        same = messages is window.messages
        tokens = found.report.tokens_before if same else sum(measured(messages, window.ratio))
        report = replace(found.report, messages_after=len(messages), tokens_after=tokens)
        if plan.room is None or tokens <= plan.room:
            return replace(found, report=report)
        path = transcript_at(window.agent, window.session)
        messages = shortened(messages, plan.room, ratio=window.ratio, path=path)
        if all(new is old for new, old in zip(messages, found.messages, strict=True)):
            return replace(found, report=report)
        note = "; ".join(filter(None, (report.note, "messages that were too long were shortened")))
        report = replace(report, status="done", note=note, tokens_after=sum(measured(messages, window.ratio)))
        return replace(found, messages=messages, report=report)

    def _warn(self, window: Window) -> None:
        if not self._warned and thresholds(self._config, window.limit).clamped:
            self._warned = True
            warnings.warn(
                f"reserved ({self._config.reserved} tokens) is not smaller than the model's window: "
                "compaction starts at half the window.",
                stacklevel=3,
            )


def _skipped(window: Window, reason: str, tokens: Sequence[int]) -> Report:
    count = len(window.messages)
    total = sum(tokens)
    return Report(
        act="compact",
        status="skipped",
        reason=reason,
        messages_before=count,
        messages_after=count,
        tokens_before=total,
        tokens_after=total,
    )


def _unchanged(window: Window, reason: str, tokens: Sequence[int]) -> Reduction:
    return Reduction(messages=window.messages, report=_skipped(window, reason, tokens))


def _worth(dropped: tuple[Message, ...], window: Window) -> bool:
    """Tell whether the barest summary would be smaller than what it stands for, before anybody is asked for one."""
    build = partial(summary_message, "None.", dropped, agent=window.agent, session=window.session, kept=0)
    return _smaller(_forms(build, asked(dropped, 0)), sum(map(estimate_message, dropped))) is not None


def _forms(build: Callable[..., Message], requests: Sequence[Asked]) -> Iterator[Message]:
    """Yield the summary's message from the full form to the barest."""
    few = (requests[0], requests[-1]) if len(requests) > 1 else requests
    for lead in (True, False):
        yield build(requests=requests, lead=lead)
        if len(few) < len(requests):
            yield build(requests=few, lead=lead)


def _smaller(forms: Iterator[Message], size: int, wanted: int = 0) -> Message | None:
    """Return the fullest form of at most `wanted` tokens, else the barest that is smaller than `size`; None if none
    is."""
    barest = None
    for message in forms:
        if (found := estimate_message(message)) < min(size, wanted + 1):
            return message
        barest = message if found < size else barest
    return barest


async def _told(hook: Hook, messages: Sequence[Message], notes: list[str]) -> None:
    try:
        await hook(messages)
    except Exception as error:  # noqa: BLE001  (a hook of somebody else may raise anything, and stops nothing)
        notes.append(f"a hook failed: {type(error).__name__}")
