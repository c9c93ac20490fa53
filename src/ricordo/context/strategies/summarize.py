"""Compact: a summary replaces the older messages.

The steps, in order: plan the cut, hand over the messages for extraction, wait until the transcript holds them, request
the summary, accept it or use the digest, accept its lessons, call the hook, read the latest files again.

Invariants: calls and results stay together. A summary is used only if it is not empty, not an error and smaller than
the messages it replaces; otherwise the digest is used, or nothing changes and the report says so. All dropped messages
are in `dropped`, in order. A lease is either accepted or released, never both. A cancellation changes nothing.
"""

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from ricordo.concurrency import compute, run_even_if_cancelled, unwrap_cancellation
from ricordo.context.config import CompactionConfig
from ricordo.context.contract import (
    Act,
    CompactionSummary,
    ExtractionHandover,
    ExtractionLease,
    Reduction,
    Summarizer,
    Window,
)
from ricordo.context.plan import (
    MIN_ADDED_MESSAGES,
    CompactionPlan,
    count_message_tokens,
    make_handle,
    plan_compaction,
    resolve_thresholds,
    unchanged_reduction,
)
from ricordo.context.strategies.truncate import shorten_messages
from ricordo.context.summary.digest import build_digest
from ricordo.context.summary.summarizers import find_flaw
from ricordo.context.summary_message import (
    RestoredFile,
    UserRequest,
    build_files_message,
    build_summary_message,
    count_leading_system,
    find_instructions,
    find_recent_reads,
    fit_file,
    is_carried_whole,
    is_files_message,
    select_requests,
    summary_handle,
)
from ricordo.context.tool_results import CLEARED_KEY, evicted_paths, pointer_records, restore_original
from ricordo.errors import RicordoError
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message, get_mark
from ricordo.messages.tokens.estimate import estimate_message, estimate_text

__all__ = ["Compact", "FindOriginal", "Hook", "PendingExtraction", "RereadFile", "hand_over_messages"]


@dataclass
class PendingExtraction:
    """The leased messages until the lease is settled; without a lease it does nothing."""

    notes: list[str]
    lease: ExtractionLease | None = None

    @property
    def pending_ids(self) -> Collection[str]:
        """The ids of the messages to extract from; empty if there are none."""
        return self.lease.pending_ids if self.lease else ()

    async def accept_lessons(self, summary: CompactionSummary) -> None:
        """Accept the lessons of `summary`; without usable lessons, leave the work to the workers."""
        if self.lease is None or summary.lessons is None:
            await self.release()
            return
        try:
            with unwrap_cancellation():
                await self.lease.accept(summary.lessons)
        except RicordoError as error:
            self.notes.append(f"the lessons were not kept: {type(error).__name__}")
            await self.release()
        else:
            self.lease = None

    async def release(self) -> None:
        """Return the work to the workers, once. A cancellation waits for it."""
        lease, self.lease = self.lease, None
        if lease is None:
            return
        try:
            await run_even_if_cancelled(lease.release)
        except RicordoError as error:
            self.notes.append(f"the messages to learn from were not given back: {type(error).__name__}")


@asynccontextmanager
async def hand_over_messages(
    handover: ExtractionHandover | None, messages: Sequence[Message], notes: list[str]
) -> AsyncIterator[PendingExtraction]:
    """Lease `messages` from `handover`. An unsettled lease is released at the end."""
    extraction = PendingExtraction(notes=notes)
    if handover is not None and messages:
        try:
            with unwrap_cancellation():
                extraction.lease = await handover(messages)
        except RicordoError as error:
            notes.append(f"the messages to learn from were not taken: {type(error).__name__}")
    try:
        yield extraction
    finally:
        await extraction.release()


Hook: TypeAlias = Callable[[Sequence[Message]], Awaitable[None]]
"""Called with messages in order. Its errors are noted in the report, see `Compact`."""
FindOriginal: TypeAlias = Callable[[str], Message | None]
"""Returns the recorded message with this id; None if it is not available."""
RereadFile: TypeAlias = Callable[[Mapping[str, JsonValue]], Awaitable[str]]
"""Reads a file again with these arguments and returns the output of the read tool; empty if that is not possible."""
_AT_ONCE = 200
"""Number of messages that are planned within a few milliseconds."""
_MIN_BODY_TOKENS = 16
_MIN_FILE_TOKENS = 50
_NOT_SMALLER_REASON = "a summary would not be smaller"


class _NotInTranscriptError(Exception):
    """The transcript does not hold the messages to be dropped."""


class Compact:
    """Summarizes older messages. See the module docstring."""

    action: Act = "compact"

    def __init__(
        self,
        config: CompactionConfig,
        summarizer: Summarizer,
        before_drop: Hook | None = None,
        *,
        before_summary: Hook | None = None,
        offload: Hook | None = None,
        handover: ExtractionHandover | None = None,
        is_recorded: bool = True,
        find_original: FindOriginal | None = None,
        reread: RereadFile | None = None,
    ) -> None:
        """Request the summary from `summarizer`, once; cleared results are restored through `find_original` for it.

        With `flush_before_compact`, lessons are extracted from the dropped messages of people and the assistant: with
        `combined`, `handover` leases them and the lessons of the summary are accepted; otherwise `before_summary`
        receives them. With `offload_before_compact`, `offload` receives all dropped messages and returns when the
        transcript holds them; `is_recorded` says that another component records them. `before_drop` receives them once
        a summary is accepted. `reread` reads the latest files again. A `RicordoError` of `offload` leaves the window
        unchanged; errors of the others do not stop the compaction.
        """
        combined = config.combined and handover is not None
        self._config = config
        self._summarizer = summarizer
        self._before_drop = before_drop
        self._handover = handover if config.flush_before_compact and combined else None
        self._before_summary = before_summary if config.flush_before_compact and not combined else None
        self._offload = offload if config.offload_before_compact else None
        self._is_recorded = is_recorded or self._offload is not None
        self._find_original = find_original
        self._reread = reread
        self._has_warned = False
        self._unused_summary_at = ""
        """The last message id of the window whose summary was unusable; empty if the last summary was used."""

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with a summary in place of its older messages, if a trigger is met."""
        await checkpoint()
        self._warn_if_clamped(window)
        size = len(window.messages)
        plan, dropped, hindrance, total = await compute(
            partial(_planned, window, self._config), size=size, at_once=_AT_ONCE
        )
        head = count_leading_system(window.messages)
        hindrance = hindrance or self._retry_hindrance(window, plan)
        if hindrance:
            finish = partial(
                self._shorten_rest, window, plan, unchanged_reduction(self.action, window, hindrance, total)
            )
            return await compute(finish, size=size, at_once=_AT_ONCE)
        notes: list[str] = []
        try:
            summary = await self._summarize_prefix(window, plan, dropped, notes)
        except _NotInTranscriptError as error:
            unchanged = unchanged_reduction(self.action, window, str(error), total)
            return replace(unchanged, report=replace(unchanged.report, status="failed"))
        self._unused_summary_at = "" if summary else window.messages[-1].id
        if summary is None:
            reason, note = f"{plan.reason}, but {_NOT_SMALLER_REASON}", "; ".join(notes)
            finish = partial(
                self._shorten_rest, window, plan, unchanged_reduction(self.action, window, reason, total, note=note)
            )
            return await compute(finish, size=size, at_once=_AT_ONCE)
        handle = summary_handle(summary)
        if not self._is_recorded:
            notes.append("this can't be undone, as nothing keeps these messages")
        if self._before_drop:
            await _call_hook(self._before_drop, dropped, notes)
        files = await self._restore_files(window, plan, dropped, summary)
        messages = (*window.messages[:head], summary, *files, *window.messages[plan.cut :])
        report = replace(
            unchanged_reduction(self.action, window, plan.reason, total).report,
            status="done",
            note="; ".join(notes),
            handle=handle,
            trigger=plan.trigger,
        )
        reduction = Reduction(messages=messages, report=report, dropped=dropped)
        return await compute(partial(self._shorten_rest, window, plan, reduction), size=size, at_once=_AT_ONCE)

    async def _summarize_prefix(
        self, window: Window, plan: CompactionPlan, dropped: tuple[Message, ...], notes: list[str]
    ) -> Message | None:
        """Return the summary message, including all steps around its request; None if there is none.

        Raises: _NotInTranscriptError.
        """
        to_extract = [message for message in dropped if get_mark(message) in {None, "cut"} and message.role != "system"]
        async with hand_over_messages(self._handover, to_extract, notes) as extraction:
            if self._before_summary and to_extract:
                await _call_hook(self._before_summary, to_extract, notes)
            await self._offload_messages(dropped)
            return await self._build_summary(window, plan, dropped, extraction)

    async def _restore_files(
        self, window: Window, plan: CompactionPlan, dropped: tuple[Message, ...], summary: Message
    ) -> tuple[Message, ...]:
        """Return the message with the most recently read files of `dropped`, read again; empty if none fits."""
        config, remaining_messages = self._config, window.messages[plan.cut :]
        if self._reread is None or not config.restore_files:
            return ()
        saved_tokens = sum(map(estimate_message, dropped)) - estimate_message(summary)
        remaining_tokens = min(
            config.restore_tokens,
            saved_tokens // 2,
            *self._file_budgets(window, plan, sum(map(estimate_message, (summary, *remaining_messages)))),
        )
        restored: list[RestoredFile] = []
        for arguments in find_recent_reads(dropped, remaining_messages):
            if len(restored) == config.restore_files or remaining_tokens < _MIN_FILE_TOKENS:
                break
            text = fit_file(
                await self._reread(arguments),
                remaining_tokens if not restored else max(_MIN_FILE_TOKENS, remaining_tokens // 2),
            )
            if text:
                restored.append(RestoredFile(arguments=arguments, text=text))
                remaining_tokens -= estimate_text(text) + _MIN_FILE_TOKENS
        return (build_files_message(restored, session=window.session),) if restored else ()

    def _file_budgets(self, window: Window, plan: CompactionPlan, used_tokens: int) -> Iterator[int]:
        """Yield the estimated tokens that each limit of the window leaves for files beside `used_tokens`."""
        limits = resolve_thresholds(self._config, window.limit)
        for bound in (limits.tokens, limits.max_request_tokens):
            if bound:
                yield (int((bound - window.overhead) / window.ratio) - used_tokens) // 2
        if plan.max_tokens is not None:
            yield (int(plan.max_tokens / window.ratio) - used_tokens) // 2

    async def _offload_messages(self, dropped: Sequence[Message]) -> None:
        if self._offload is None:
            return
        try:
            with unwrap_cancellation():
                await self._offload(dropped)
        except RicordoError as error:
            raise _NotInTranscriptError(f"the transcript does not hold these messages: {error}") from error

    async def _build_summary(
        self, window: Window, plan: CompactionPlan, dropped: tuple[Message, ...], extraction: PendingExtraction
    ) -> Message | None:
        """Return the message that replaces `dropped` and is smaller than it; None if there is none."""
        make_frame = partial(self._frame, window, plan, dropped, extraction.pending_ids)
        frame = await compute(make_frame, size=len(dropped), at_once=_AT_ONCE)
        summary = await self._request_summary(frame, window.focus, extraction)
        fit_summary = partial(frame.fitted, summary.text)
        message = await compute(fit_summary, size=len(dropped), at_once=_AT_ONCE) if summary.text else None
        if summary.text and message is None:
            extraction.notes.append("a summary was not used: it is not smaller than what it stands for")
        await extraction.accept_lessons(summary)
        if message is not None:
            return message
        for max_tokens in (frame.limit, max(_MIN_BODY_TOKENS, frame.limit // 3), _MIN_BODY_TOKENS):
            body = await run_sync(partial(build_digest, frame.given, limit_tokens=max_tokens))
            message = await run_sync(frame.fitted, body) if body else None
            if message is not None:
                extraction.notes.append("the digest took its place")
                return message
        return None

    def _frame(
        self, window: Window, plan: CompactionPlan, dropped: tuple[Message, ...], pending: Collection[str]
    ) -> "_Frame":
        """Return the frame for a summary of `dropped`; lessons are extracted from the messages in `pending`."""
        size = sum(map(estimate_message, dropped))
        requests = select_requests(dropped, min(self._config.carry_tokens, size // 4))
        build = partial(
            build_summary_message,
            dropped=dropped,
            session=window.session,
            kept_count=len(window.messages) - plan.cut,
            instructions=find_instructions(dropped),
            handle=make_handle(dropped) if self._is_recorded else "",
        )
        target_size = size - int(plan.min_gain / window.ratio)
        frame_size = estimate_message(build("", requests=requests, lead=True))
        min_frame_size = min(map(estimate_message, _message_forms(partial(build, ""), requests)))
        limit = max(_MIN_BODY_TOKENS, min(self._summary_limit(window, plan), target_size - frame_size))
        # Messages that are carried over whole are not summarized, unless they have calls or are pending extraction.
        to_summarize = tuple(
            self._restore_cleared(message)
            for message in dropped
            if not is_files_message(message)
            and (not is_carried_whole(message) or message.tool_calls or message.id in pending)
        )
        max_tokens = max(limit, size - 1 - min_frame_size)
        return _Frame(
            build=build,
            requests=requests,
            size=size,
            wanted=target_size,
            limit=limit,
            max_tokens=max_tokens,
            given=to_summarize,
        )

    def _restore_cleared(self, message: Message) -> Message:
        """Return a message with its cleared results restored, unless they were too large to begin with."""
        cleared = pointer_records(message, CLEARED_KEY)
        if self._find_original is None or not cleared or any(evicted_paths(message, part) for part in cleared):
            return message
        original = self._find_original(message.id)
        return message if original is None else restore_original(message, original)

    async def _request_summary(self, frame: "_Frame", focus: str, extraction: PendingExtraction) -> CompactionSummary:
        """Return the summarizer's result; its text is empty if it is not a usable summary."""
        try:
            with unwrap_cancellation():
                summary = await self._summarizer(
                    frame.given,
                    limit_tokens=frame.limit,
                    most_tokens=frame.max_tokens,
                    focus=focus,
                    pending=extraction.pending_ids,
                )
        except (RicordoError, TimeoutError) as error:
            extraction.notes.append(f"a summary was not used: {type(error).__name__}")
            return CompactionSummary(text="")
        extraction.notes.extend(summary.notes)
        if flaw := find_flaw(summary.text):
            extraction.notes.append(f"a summary was not used: {flaw}")
            return replace(summary, text="")
        return replace(summary, text=summary.text.strip())

    def _summary_limit(self, window: Window, plan: CompactionPlan) -> int:
        """Return the maximum tokens of a summary: an eighth of a limited room, so that the kept messages still fit."""
        if plan.max_tokens is None:
            return self._config.summary_tokens
        return max(_MIN_BODY_TOKENS, min(self._config.summary_tokens, int(plan.max_tokens / window.ratio) // 8))

    def _shorten_rest(self, window: Window, plan: CompactionPlan, reduction: Reduction) -> Reduction:
        """Shorten single large messages if the window must shrink and is still too large; complete the report."""
        messages = reduction.messages
        is_unchanged = messages is window.messages
        tokens = reduction.report.tokens_before if is_unchanged else sum(count_message_tokens(messages, window.ratio))
        report = replace(reduction.report, messages_after=len(messages), tokens_after=tokens)
        if plan.max_tokens is None or tokens <= plan.max_tokens:
            return replace(reduction, report=report)
        messages = shorten_messages(messages, plan.max_tokens, ratio=window.ratio)
        if all(new is old for new, old in zip(messages, reduction.messages, strict=True)):
            return replace(reduction, report=report)
        note = "; ".join(filter(None, (report.note, "messages that were too long were shortened")))
        report = replace(
            report, status="done", note=note, tokens_after=sum(count_message_tokens(messages, window.ratio))
        )
        return replace(reduction, messages=messages, report=report)

    def _retry_hindrance(self, window: Window, plan: CompactionPlan) -> str:
        """Return why no new summary is requested after an unusable one; empty if one is requested."""
        ids = [message.id for message in window.messages]
        if plan.must_shrink or not self._unused_summary_at or self._unused_summary_at not in ids[-MIN_ADDED_MESSAGES:]:
            return ""
        return f"{plan.reason}, but fewer than {MIN_ADDED_MESSAGES} messages since a summary that was not smaller"

    def _warn_if_clamped(self, window: Window) -> None:
        if not self._has_warned and resolve_thresholds(self._config, window.limit).is_clamped:
            self._has_warned = True
            warnings.warn(
                f"reserved ({self._config.reserved} tokens) is not smaller than the model's window: "
                "compaction starts at half the window.",
                stacklevel=3,
            )


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """The parts of a summary message other than its body, and its limits in tokens.

    `size` is the size of the replaced messages, `wanted` the maximum size of the summary message, `limit` the target
    size of its body and `max_tokens` the maximum size of its body. `given` are the messages to summarize.
    """

    build: Callable[..., Message]
    requests: Sequence[UserRequest]
    size: int
    wanted: int
    limit: int
    max_tokens: int
    given: tuple[Message, ...]

    def fitted(self, body: str) -> Message | None:
        """Return the message with this body if it is smaller than the messages it replaces; else None."""
        return _choose_form(_message_forms(partial(self.build, body), self.requests), self.size, self.wanted)


def _planned(window: Window, config: CompactionConfig) -> tuple[CompactionPlan, tuple[Message, ...], str, int]:
    """Return the plan, the messages it drops, the reason against it, and the tokens of the window."""
    tokens = count_message_tokens(window.messages, window.ratio)
    plan = plan_compaction(window, config, tokens)
    dropped = window.messages[count_leading_system(window.messages) : plan.cut]
    return plan, dropped, _find_hindrance(window, plan, dropped), sum(tokens)


def _find_hindrance(window: Window, plan: CompactionPlan, dropped: tuple[Message, ...]) -> str:
    """Return why nothing is summarized; empty if a summary is worth it."""
    if not plan.cut:
        return plan.reason
    return "" if _is_worthwhile(dropped, window) else f"{plan.reason}, but {_NOT_SMALLER_REASON}"


def _is_worthwhile(dropped: tuple[Message, ...], window: Window) -> bool:
    """Return whether the shortest summary would be smaller than the replaced messages, before any request."""
    build = partial(
        build_summary_message,
        "None.",
        dropped,
        session=window.session,
        kept_count=0,
        instructions=find_instructions(dropped),
        handle=make_handle(dropped),
    )
    return (
        _choose_form(_message_forms(build, select_requests(dropped, 0)), sum(map(estimate_message, dropped)))
        is not None
    )


def _message_forms(build: Callable[..., Message], requests: Sequence[UserRequest]) -> Iterator[Message]:
    """Yield the summary message from the fullest to the shortest form."""
    first_and_last = (requests[0], requests[-1]) if len(requests) > 1 else requests
    for lead in (True, False):
        yield build(requests=requests, lead=lead)
        if len(first_and_last) < len(requests):
            yield build(requests=first_and_last, lead=lead)


def _choose_form(forms: Iterator[Message], size: int, target_size: int = 0) -> Message | None:
    """Return the fullest form of at most `target_size` tokens, else the shortest one smaller than `size`; else None."""
    shortest = None
    for message in forms:
        if (form_size := estimate_message(message)) < min(size, target_size + 1):
            return message
        shortest = message if form_size < size else shortest
    return shortest


async def _call_hook(hook: Hook, messages: Sequence[Message], notes: list[str]) -> None:
    try:
        with unwrap_cancellation():
            await hook(messages)
    except Exception as error:  # noqa: BLE001  (a hook of somebody else may raise anything, and stops nothing)
        notes.append(f"a hook failed: {type(error).__name__}")
