"""Compact: a summary takes the place of the older messages.

The steps, in this order: the triggers, the cut, the prefix handed on to be learned from, the transcript acknowledged,
the summary asked for, accepted or replaced by the digest, what it learned accepted, the hook before the messages go,
the new window.

Invariants: calls and results stay together. A summary takes the place of history only when it is not empty, is no
error and is smaller; otherwise the digest does, and if that isn't smaller either, nothing happens and the report says
so. Everything that goes is in `dropped`, in order. A cancellation, however it is wrapped, leaves all as it was.
"""

import warnings
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from ricordo.compaction.acceptance import flaw
from ricordo.compaction.cancelled import unwrapped
from ricordo.compaction.config import CompactionConfig
from ricordo.compaction.contract import Act, Handover, Reduction, Summarize, Summary, Window
from ricordo.compaction.digest import digest
from ricordo.compaction.handles import handle_of
from ricordo.compaction.learning import Learning, learning
from ricordo.compaction.plan import LEAST_ADDED, Plan, decide, measured, thresholds
from ricordo.compaction.reports import unchanged
from ricordo.compaction.restored_files import Restored, files_message, fitted_file, is_files, recent_reads
from ricordo.compaction.results import CLEARED, files_of, records, restored
from ricordo.compaction.shorten import shortened
from ricordo.compaction.summary_message import (
    Asked,
    asked,
    carried,
    handle_in,
    instructions,
    leading,
    summary_message,
)
from ricordo.errors import RicordoError
from ricordo.messages import JsonValue, Message, mark_of
from ricordo.tokens.estimate import estimate_message, estimate_text
from ricordo.uncut import compute

__all__ = ["Compact", "Hook", "Original", "Reread"]

Hook: TypeAlias = Callable[[Sequence[Message]], Awaitable[None]]
"""Called with messages in order; what it raises is told in the report, see `Compact`."""

Original: TypeAlias = Callable[[str], Message | None]
"""Gives the message with this id as it was recorded; None where that is not at hand."""

Reread: TypeAlias = Callable[[Mapping[str, JsonValue]], Awaitable[str]]
"""Reads a file again with these arguments and returns what the tool for it shows; empty where that is not possible."""

_AT_ONCE = 200
"""So many messages are planned for in some milliseconds."""
_LEAST_BODY = 16
_LEAST_FILE = 50
_NOT_SMALLER = "a summary would not be smaller"


class _NotHeldError(Exception):
    """The transcript does not hold what is about to go."""


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
        handover: Handover | None = None,
        recorded: bool = True,
        original: Original | None = None,
        reread: Reread | None = None,
    ) -> None:
        """Ask `summarize` for the summary, once; it is shown what was cleared meanwhile as `original` gives it back.

        With `flush_before_compact`, what people and the assistant said in the messages that go is learned from:
        `combined`, `handover` takes them, and what the summary brings along is accepted; else `before_summary` gets
        them. `offload` gets all that goes and returns when the transcript holds them, if `offload_before_compact`;
        `recorded` says that somebody else records them. `before_drop` gets them all once a summary is accepted. A
        `reread` reads again what was read last. A
        `RicordoError` of `offload` leaves the window as it is; what the others raise stops nothing.
        """
        combined = config.combined and handover is not None
        self._config = config
        self._summarize = summarize
        self._before_drop = before_drop
        self._handover = handover if config.flush_before_compact and combined else None
        self._before_summary = before_summary if config.flush_before_compact and not combined else None
        self._offload = offload if config.offload_before_compact else None
        self._recorded = recorded or self._offload is not None
        self._original = original
        self._reread = reread
        self._warned = False
        self._unused = ""
        """The last message of the window whose summary could not be used; empty where it could."""

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with a summary in the place of its older messages, when a trigger says so."""
        await checkpoint()
        self._warn(window)
        size = len(window.messages)
        plan, dropped, hindrance, total = await compute(
            partial(_planned, window, self._config), size=size, at_once=_AT_ONCE
        )
        head = leading(window.messages)
        hindrance = hindrance or self._too_soon(window, plan)
        if hindrance:
            idle = partial(self._shortened, window, plan, unchanged(self.act, window, hindrance, total))
            return await compute(idle, size=size, at_once=_AT_ONCE)
        notes: list[str] = []
        try:
            found = await self._replaced(window, plan, dropped, notes)
        except _NotHeldError as error:
            same = unchanged(self.act, window, str(error), total)
            return replace(same, report=replace(same.report, status="failed"))
        self._unused = "" if found else window.messages[-1].id
        if found is None:
            reason, note = f"{plan.reason}, but {_NOT_SMALLER}", "; ".join(notes)
            idle = partial(self._shortened, window, plan, unchanged(self.act, window, reason, total, note=note))
            return await compute(idle, size=size, at_once=_AT_ONCE)
        handle = handle_in(found)
        if not self._recorded:
            notes.append("this can't be undone, as nothing keeps these messages")
        if self._before_drop:
            await _told(self._before_drop, dropped, notes)
        files = await self._files(window, plan, dropped, found)
        messages = (*window.messages[:head], found, *files, *window.messages[plan.cut :])
        report = replace(
            unchanged(self.act, window, plan.reason, total).report,
            status="done",
            note="; ".join(notes),
            handle=handle,
            due=plan.by,
        )
        found_shorter = Reduction(messages=messages, report=report, dropped=dropped)
        return await compute(partial(self._shortened, window, plan, found_shorter), size=size, at_once=_AT_ONCE)

    async def _replaced(
        self, window: Window, plan: Plan, dropped: tuple[Message, ...], notes: list[str]
    ) -> Message | None:
        """Return the summary's message, with all that comes before and after its request; None when there is none.

        Raises: _NotHeldError.
        """
        said = [message for message in dropped if mark_of(message) in {None, "cut"} and message.role != "system"]
        async with learning(self._handover, said, notes) as learned:
            if self._before_summary and said:
                await _told(self._before_summary, said, notes)
            await self._offloaded(dropped)
            return await self._summary(window, plan, dropped, learned)

    async def _files(
        self, window: Window, plan: Plan, dropped: tuple[Message, ...], found: Message
    ) -> tuple[Message, ...]:
        """Return the message with the files that were read last among `dropped`, read anew; empty where none fits."""
        config, kept = self._config, window.messages[plan.cut :]
        if self._reread is None or not config.restore_files:
            return ()
        saved = sum(map(estimate_message, dropped)) - estimate_message(found)
        room = min(
            config.restore_tokens, saved // 2, *self._left(window, plan, sum(map(estimate_message, (found, *kept))))
        )
        restored: list[Restored] = []
        for arguments in recent_reads(dropped, kept):
            if len(restored) == config.restore_files or room < _LEAST_FILE:
                break
            text = fitted_file(await self._reread(arguments), room if not restored else max(_LEAST_FILE, room // 2))
            if text:
                restored.append(Restored(arguments=arguments, text=text))
                room -= estimate_text(text) + _LEAST_FILE
        return (files_message(restored, session=window.session),) if restored else ()

    def _left(self, window: Window, plan: Plan, taken: int) -> Iterator[int]:
        """Yield what the bounds of the window leave to files, by the estimate, where the messages take `taken`."""
        limits = thresholds(self._config, window.limit)
        for bound in (limits.tokens, limits.ceiling):
            if bound:
                yield (int((bound - window.overhead) / window.ratio) - taken) // 2
        if plan.room is not None:
            yield (int(plan.room / window.ratio) - taken) // 2

    async def _offloaded(self, dropped: Sequence[Message]) -> None:
        if self._offload is None:
            return
        try:
            with unwrapped():
                await self._offload(dropped)
        except RicordoError as error:
            raise _NotHeldError(f"the transcript does not hold these messages: {error}") from error

    async def _summary(
        self, window: Window, plan: Plan, dropped: tuple[Message, ...], learned: Learning
    ) -> Message | None:
        """Return the message that takes the place of `dropped`, smaller than they are; None when there is none."""
        framing = partial(self._frame, window, plan, dropped, learned.pending)
        frame = await compute(framing, size=len(dropped), at_once=_AT_ONCE)
        found = await self._written(frame, window.focus, learned)
        fitting = partial(frame.fitted, found.text)
        message = await compute(fitting, size=len(dropped), at_once=_AT_ONCE) if found.text else None
        if found.text and message is None:
            learned.notes.append("a summary was not used: it is not smaller than what it stands for")
        await learned.settle(found)
        if message is not None:
            return message
        for most in (frame.limit, max(_LEAST_BODY, frame.limit // 3), _LEAST_BODY):
            body = await run_sync(partial(digest, frame.told, limit_tokens=most))
            message = await run_sync(frame.fitted, body) if body else None
            if message is not None:
                learned.notes.append("the digest took its place")
                return message
        return None

    def _frame(self, window: Window, plan: Plan, dropped: tuple[Message, ...], pending: Collection[str]) -> "_Frame":
        """Return what a summary of `dropped` stands in; what is in `pending` is to be learned from as well."""
        size = sum(map(estimate_message, dropped))
        requests = asked(dropped, min(self._config.carry_tokens, size // 4))
        build = partial(
            summary_message,
            dropped=dropped,
            session=window.session,
            kept=len(window.messages) - plan.cut,
            standing=instructions(dropped),
            handle=handle_of(dropped) if self._recorded else "",
        )
        wanted = size - int(plan.gain / window.ratio)
        around = estimate_message(build("", requests=requests, lead=True))
        barest = min(map(estimate_message, _forms(partial(build, ""), requests)))
        limit = max(_LEAST_BODY, min(self._limit(window, plan), wanted - around))
        # what is carried whole is not condensed, unless there is more to it, or it is to be learned from as well
        told = tuple(
            self._whole(message)
            for message in dropped
            if not is_files(message) and (not carried(message) or message.tool_calls or message.id in pending)
        )
        most = max(limit, size - 1 - barest)
        return _Frame(build=build, requests=requests, size=size, wanted=wanted, limit=limit, most=most, told=told)

    def _whole(self, message: Message) -> Message:
        """Return a message with the results that were cleared in it, but for those that were too wide to begin with."""
        cleared = records(message, CLEARED)
        if self._original is None or not cleared or any(files_of(message, part) for part in cleared):
            return message
        original = self._original(message.id)
        return message if original is None else restored(message, original)

    async def _written(self, frame: "_Frame", focus: str, learned: Learning) -> Summary:
        """Return what `summarize` wrote; without a text where that is no summary."""
        try:
            with unwrapped():
                found = await self._summarize(
                    frame.told, limit_tokens=frame.limit, most_tokens=frame.most, focus=focus, pending=learned.pending
                )
        except (RicordoError, TimeoutError) as error:
            learned.notes.append(f"a summary was not used: {type(error).__name__}")
            return Summary(text="")
        learned.notes.extend(found.notes)
        if wrong := flaw(found.text):
            learned.notes.append(f"a summary was not used: {wrong}")
            return replace(found, text="")
        return replace(found, text=found.text.strip())

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
        messages = shortened(messages, plan.room, ratio=window.ratio)
        if all(new is old for new, old in zip(messages, found.messages, strict=True)):
            return replace(found, report=report)
        note = "; ".join(filter(None, (report.note, "messages that were too long were shortened")))
        report = replace(report, status="done", note=note, tokens_after=sum(measured(messages, window.ratio)))
        return replace(found, messages=messages, report=report)

    def _too_soon(self, window: Window, plan: Plan) -> str:
        """Say why no summary is asked for again, as the last one could not be used; empty when one is."""
        ids = [message.id for message in window.messages]
        if plan.pressed or not self._unused or self._unused not in ids[-LEAST_ADDED:]:
            return ""
        return f"{plan.reason}, but fewer than {LEAST_ADDED} messages since a summary that was not smaller"

    def _warn(self, window: Window) -> None:
        if not self._warned and thresholds(self._config, window.limit).clamped:
            self._warned = True
            warnings.warn(
                f"reserved ({self._config.reserved} tokens) is not smaller than the model's window: "
                "compaction starts at half the window.",
                stacklevel=3,
            )


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """What a summary stands in: how its message is made, and how many tokens it may take.

    `size` is what it takes the place of, `wanted` what it may take at most, `limit` what its body should take and
    `most` what it may. `told` are the messages that it is made of.
    """

    build: Callable[..., Message]
    requests: Sequence[Asked]
    size: int
    wanted: int
    limit: int
    most: int
    told: tuple[Message, ...]

    def fitted(self, body: str) -> Message | None:
        """Return the message with this body, smaller than what it stands for; None when there is none."""
        return _smaller(_forms(partial(self.build, body), self.requests), self.size, self.wanted)


def _planned(window: Window, config: CompactionConfig) -> tuple[Plan, tuple[Message, ...], str, int]:
    """Return what to do with the window, which messages that drops, what stands against it, and its tokens."""
    tokens = measured(window.messages, window.ratio)
    plan = decide(window, config, tokens)
    dropped = window.messages[leading(window.messages) : plan.cut]
    return plan, dropped, _hindrance(window, plan, dropped), sum(tokens)


def _hindrance(window: Window, plan: Plan, dropped: tuple[Message, ...]) -> str:
    """Say why nothing is summed up; empty when something is."""
    if not plan.cut:
        return plan.reason
    return "" if _worth(dropped, window) else f"{plan.reason}, but {_NOT_SMALLER}"


def _worth(dropped: tuple[Message, ...], window: Window) -> bool:
    """Tell whether the barest summary would be smaller than what it stands for, before anybody is asked for one."""
    build = partial(
        summary_message,
        "None.",
        dropped,
        session=window.session,
        kept=0,
        standing=instructions(dropped),
        handle=handle_of(dropped),
    )
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
        with unwrapped():
            await hook(messages)
    except Exception as error:  # noqa: BLE001  (a hook of somebody else may raise anything, and stops nothing)
        notes.append(f"a hook failed: {type(error).__name__}")
