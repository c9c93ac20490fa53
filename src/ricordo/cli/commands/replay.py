"""`replay`: an agent replays a recorded conversation with a small window. A session that the root has is skipped."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from anyio.to_thread import run_sync

from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import dim, escape, pluralize, print_json, print_line, print_note, progress_bar
from ricordo.cli.target import Target, find_target, load_scope, open_memory, run_async
from ricordo.errors import HistoryUnreadable, ReplyInvalid, ToolFailed
from ricordo.lazy import dataclass
from ricordo.messages import (
    JsonValue,
    Message,
    PartPosition,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    pair_calls,
)
from ricordo.messages.tokens import estimate_message
from ricordo.models import Reply
from ricordo.models.wrappers import WholeReplies

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.agent.tools import ToolContext, ToolOutput
    from ricordo.events import Event
    from ricordo.runtime import Settings
    from ricordo.scope import Scope

__all__ = [
    "RecordedClock",
    "RecordedModel",
    "RecordedReduction",
    "RecordedTool",
    "RecordedTurn",
    "ReplayResult",
    "SessionReplay",
    "replay",
    "replay_sessions",
    "split_turns",
    "strip_tool_results",
]


@dataclass(kw_only=True)
class RecordedTurn:
    """What was said in one turn, the replies to it in their order, and what the tools answered to each call's id.

    `messages` are all of them as they were recorded. Calls of one id are answered in the order of the calls, by None
    where the record holds no result. `stray_results` are results that no reply of a living turn asked for.
    """

    messages: list[Message] = field(default_factory=list)
    user_messages: list[Message] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)
    results: defaultdict[str, deque[ToolResult | None]] = field(default_factory=lambda: defaultdict(deque))
    stray_results: list[Message] = field(default_factory=list)

    @property
    def is_exchange(self) -> bool:
        """Whether the turn has a user message and a reply, so that it can be replayed."""
        return bool(self.user_messages and self.replies)


def split_turns(messages: Iterable[Message]) -> list[RecordedTurn]:
    """Cut one session into turns.

    Each begins with what a person said after a reply, or with a reply that nobody asked for after the last one.
    """
    dialogue = [message for message in messages if message.role != "system"]
    turns: list[RecordedTurn] = []
    turn_of: list[RecordedTurn] = []
    for message in dialogue:
        spoken = strip_tool_results(message)
        if not turns or _starts_turn(spoken, turns[-1]):
            turns.append(RecordedTurn())
        turns[-1].messages.append(message)
        turn_of.append(turns[-1])
        if message.role == "assistant":
            turns[-1].replies.append(message)
        elif message.role == "user" and spoken.parts:
            turns[-1].user_messages.append(spoken)
    _assign_results(dialogue, turn_of)
    return turns


def strip_tool_results(message: Message) -> Message:
    """Return the message without the results of tools, which some providers let a user say."""
    if message.role == "assistant":
        return message
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, ToolResult)))


def _starts_turn(message: Message, turn: RecordedTurn) -> bool:
    if message.role == "assistant":
        return bool(turn.replies) and not turn.replies[-1].tool_calls
    return message.role == "user" and bool(message.parts) and bool(turn.replies)


def _assign_results(dialogue: Sequence[Message], turn_of: Sequence[RecordedTurn]) -> None:
    """Give each call of an exchange its result; what is left of the results are strays."""
    from ricordo.agent.tool_calls import deduplicate_call_ids

    result_positions: dict[PartPosition, PartPosition] = {}
    for call, result in pair_calls(dialogue).answered:
        result_positions.setdefault(call, result)
    assigned: set[PartPosition] = set()
    for index, (message, turn) in enumerate(zip(dialogue, turn_of, strict=True)):
        if message.role == "assistant" and turn.is_exchange:
            calls = [number for number, part in enumerate(message.parts) if isinstance(part, ToolCall)]
            places = {number: result_positions.get(PartPosition(message=index, part=number)) for number in calls}
            assigned.update(place for place in places.values() if place)
            # a server may give one id twice; the loop then tells the calls apart, and so must the record
            reply, _ = deduplicate_call_ids(message)
            turn.replies = [reply if each is message else each for each in turn.replies]
            for call_, place in zip(reply.tool_calls, _order_results(message, places), strict=True):
                part = dialogue[place.message].parts[place.part] if place else None
                turn.results[call_.id].append(part if isinstance(part, ToolResult) else None)
    for index, (message, turn) in enumerate(zip(dialogue, turn_of, strict=True)):
        stray = [
            part for number, part in _tool_results(message) if PartPosition(message=index, part=number) not in assigned
        ]
        if stray and turn.is_exchange:
            turn.stray_results.append(Message(role="tool", parts=tuple(stray), time=message.time))


def _order_results(message: Message, places: Mapping[int, PartPosition | None]) -> list[PartPosition | None]:
    """Return the places of the results for each call; among calls of one id the first has the first result."""
    waiting: defaultdict[str, list[PartPosition]] = defaultdict(list)
    for call, place in zip(message.tool_calls, places.values(), strict=True):
        waiting[call.id] += [place] if place else []
    queues = {
        call_id: deque(sorted(positions, key=lambda place: (place.message, place.part)))
        for call_id, positions in waiting.items()
    }
    return [queues[call.id].popleft() if queues[call.id] else None for call in message.tool_calls]


def _tool_results(message: Message) -> list[tuple[int, ToolResult]]:
    if message.role == "assistant":
        return []
    return [(number, part) for number, part in enumerate(message.parts) if isinstance(part, ToolResult)]


class RecordedClock:
    """Shows the newest time that was recorded so far, the machine's own before the first."""

    def __init__(self) -> None:
        """Begin without a time."""
        self._time: datetime | None = None

    def advance(self, messages: Sequence[Message]) -> None:
        """Go on to the time of the last of these; time never runs backwards."""
        times = [message.time for message in messages if message.time]
        if times:
            self._time = max([*times, *([self._time] if self._time else [])])

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return (self._time or datetime.now(UTC)).astimezone(UTC)

    def today(self) -> date:
        """Return the date where the user lives."""
        return self.now().astimezone().date()


class RecordedModel(WholeReplies):
    """A model that gives the recorded replies. `start_turn` sets the turn to replay.

    `largest_tokens` are the estimated tokens of the largest window it was sent.
    """

    def __init__(self, clock: RecordedClock, *, on_window: Callable[[Sequence[Message]], None] | None = None) -> None:
        """Advance `clock` to the time of each reply; `on_window` gets each window that is sent."""
        self.name = "recorded"
        self.window: int | None = None
        self.largest_tokens = 0
        self._clock = clock
        self._on_window = on_window
        self._replies: Iterator[Message] = iter(())

    def start_turn(self, turn: RecordedTurn) -> None:
        """Reply with what was replied in this turn."""
        self._replies = iter(turn.replies)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the next reply. Raises `ReplyInvalid` when the record of the turn ends without one."""
        del tools, schema
        if self._on_window:
            self._on_window(messages)
        self.largest_tokens = max(self.largest_tokens, await run_sync(_window_tokens, messages))
        message = next(self._replies, None)
        if message is None:
            raise ReplyInvalid("The record ends here: nothing was replied.")
        self._clock.advance([message])
        parts = message.parts or (Text(text=""),)
        return Reply(message=replace(message, parts=parts), stop="tools" if message.tool_calls else "end")


def _window_tokens(messages: Sequence[Message]) -> int:
    return sum(estimate_message(message) for message in messages if message.role != "system")


class RecordedTool:
    """A tool that answers again what it answered."""

    def __init__(self, name: str) -> None:
        """Stand for the tool `name`; `start_turn` hands it the results of a turn."""
        description = f"{name}, as it was recorded"
        self.spec = ToolSpec(name=name, description=description, parameters={"type": "object"})
        self._results: Mapping[str, deque[ToolResult | None]] = {}

    def start_turn(self, turn: RecordedTurn) -> None:
        """Answer the calls of this turn."""
        self._results = turn.results

    async def __call__(self, arguments: Mapping[str, JsonValue], context: "ToolContext") -> "ToolOutput":
        """Return the recorded result of the call. Raises `ToolFailed` for a recorded error or without a result."""
        del arguments
        waiting = self._results.get(context.call_id)
        result = waiting.popleft() if waiting else None
        if result is None:
            raise ToolFailed("The record holds no result of this call.")
        if result.is_error:
            raise ToolFailed(result.text)
        return list(result.parts)


_DRAIN_SECONDS = 60.0
_REDUCTIONS = ("evict", "truncate", "compact")
_KEPT_DIVISOR = 4
"""A quarter of the budget stays when a window is compacted."""
_MIN_INJECTED_TOKENS = 100


@dataclass(kw_only=True)
class RecordedReduction:
    """What made a window smaller, and the summary that the window then began with, if any."""

    event: "Event"
    summary: str = ""
    is_sent: bool = False


@dataclass(kw_only=True)
class SessionReplay:
    """One session: `conversation_tokens` are the tokens of all its messages, `largest_tokens` those of the largest
    window that was sent. `window` is what was left of it at the end.
    """

    session: str
    turns: int = 0
    messages: int = 0
    conversation_tokens: int = 0
    largest_tokens: int = 0
    window: "tuple[Message, ...]" = ()
    left_tokens: int = 0
    reductions: list[RecordedReduction] = field(default_factory=list)

    def record_window(self, messages: "Sequence[Message]") -> None:
        """Take in a window as it is sent: it is what the newest reductions left."""
        from ricordo.messages import get_mark

        summary = next((message.text for message in messages if get_mark(message) == "summary"), "")
        for reduction in reversed(self.reductions):
            if reduction.is_sent:
                break
            reduction.is_sent, reduction.summary = True, summary if reduction.event.stage == "compact" else ""


@dataclass(kw_only=True)
class ReplayResult:
    """The replayed sessions, and the numbers of learned and curated entries; `skipped_sessions` existed before."""

    sessions: list[SessionReplay] = field(default_factory=list)
    skipped_sessions: list[str] = field(default_factory=list)
    learned: Counter[str] = field(default_factory=Counter)
    curated: Counter[str] = field(default_factory=Counter)


async def replay_sessions(
    target: Target, sessions: "dict[str, list[Message]]", *, budget: int, on_turn: Callable[[int], None]
) -> ReplayResult:
    """Let an agent replay `sessions`, one after the other, with a window of about `budget` tokens.

    `on_turn` gets the number of messages of each turn. A session that the root has is skipped.
    """
    async with open_memory(target) as memory:
        known_sessions = {info.session for info in await memory.sessions()}
        before = {entry.id for entry in await memory.entries()}
    replayer = _Replayer(target=target, scope=await load_scope(target), budget=budget, on_turn=on_turn)
    result = replayer.result
    for session, messages in sessions.items():
        if session in known_sessions:
            result.skipped_sessions.append(session)
            on_turn(len(messages))
        else:
            result.sessions.append(await replayer.replay_session(session, messages))
    async with open_memory(target) as memory:
        result.learned.update(entry.kind for entry in await memory.entries() if entry.id not in before)
    return result


@dataclass(frozen=True, kw_only=True)
class _Replayer:
    """Replays one session after the other, and adds up."""

    target: Target
    scope: "Scope"
    budget: int
    on_turn: Callable[[int], None]
    result: ReplayResult = field(default_factory=ReplayResult)

    async def replay_session(self, session: str, messages: "Sequence[Message]") -> SessionReplay:
        """Replay one session."""
        from anyio.to_thread import run_sync

        clock = RecordedClock()
        replay = SessionReplay(session=session, conversation_tokens=await run_sync(_message_tokens, messages))
        model = RecordedModel(clock, on_window=replay.record_window)
        tools = {call.name: RecordedTool(call.name) for message in messages for call in message.tool_calls}
        async with self._build_agent(replay, model, clock, list(tools.values()), len(messages) + 1) as agent:
            for turn in split_turns(messages):
                clock.advance(turn.messages[:1])
                model.start_turn(turn)
                for tool in tools.values():
                    tool.start_turn(turn)
                await _replay_turn(agent, turn)
                self._count_turn(replay, len(turn.messages))
            clock.advance(messages)
            await agent.drain(seconds=_DRAIN_SECONDS)
            await agent.consolidate()
            replay.largest_tokens, replay.window = model.largest_tokens, agent.window
            replay.record_window(agent.window)
            replay.left_tokens = await run_sync(_message_tokens, agent.window)
        return replay

    def _count_turn(self, replay: SessionReplay, messages: int) -> None:
        replay.turns += 1
        replay.messages += messages
        self.on_turn(messages)

    def _build_agent(
        self,
        replay: SessionReplay,
        model: RecordedModel,
        clock: RecordedClock,
        tools: list[RecordedTool],
        max_iters: int,
    ) -> "HarnessAgent":
        from ricordo.agent import BuiltinTools, HarnessAgent, MemoryConfig, TurnLimits
        from ricordo.context.config import CompactionConfig, ToolResultEvictionConfig
        from ricordo.extraction.config import FlushConfig

        budget, keep_tokens = self.budget, self.budget // _KEPT_DIVISOR
        return HarnessAgent(
            model,
            tools,
            scope=self.scope,
            # the record plays the model, and a record can't be asked
            memory=MemoryConfig(root=self.target.root, store="layered", flush=FlushConfig(model="offline")),
            session=replay.session,
            instructions="",
            builtin_tools=BuiltinTools(memory=False),
            limits=TurnLimits(max_iters=max_iters),
            compaction=CompactionConfig(
                trigger_messages=0,
                trigger_tokens=budget,
                keep_tokens=keep_tokens,
                summary_tokens=keep_tokens,
                carry_tokens=keep_tokens // 2,
                model="offline",
            ),
            tool_result_eviction=ToolResultEvictionConfig(max_result_chars=budget, preview_chars=keep_tokens // 2),
            on_event=partial(self._on_event, replay),
            settings=self._fit_settings(),
            clock=clock,
        )

    def _fit_settings(self) -> "Settings":
        """Return the settings for a replay: the record plays the model, so consolidation runs without a model.

        No more memory is in the prompt than half of the window, and of the profile a tenth of it.
        """
        settings, curates, injection = self.target.settings, self.target.settings.consolidation, None
        if settings.injection is not None:
            max_tokens = max(_MIN_INJECTED_TOKENS, min(settings.injection.max_injection_tokens, self.budget // 10))
            injection = replace(settings.injection, max_injection_tokens=max_tokens)
        return replace(
            settings,
            preamble_tokens=min(settings.preamble_tokens, self.budget // 2),
            injection=injection,
            consolidation=replace(curates, model="offline") if curates else None,
        )

    def _on_event(self, replay: SessionReplay, event: "Event") -> None:
        if event.stage in _REDUCTIONS and event.status == "finished":
            replay.reductions.append(RecordedReduction(event=event))
        if event.stage == "consolidate" and event.status == "finished":
            self.result.curated.update(event.counts)


async def _replay_turn(agent: "HarnessAgent", turn: RecordedTurn) -> None:
    """Replay one turn; a turn without a user message or without a reply is only recorded."""
    if not turn.is_exchange:
        await agent.record(turn.messages)
        return
    if turn.stray_results:
        await agent.record(turn.stray_results)
    with suppress(ReplyInvalid):
        # a record may end before the model does
        await agent.send(turn.user_messages)


def _message_tokens(messages: "Sequence[Message]") -> int:
    from ricordo.messages.tokens import estimate_message

    return sum(estimate_message(message) for message in messages)


_BUDGET = 8_000
_MIN_BUDGET = 500


def replay(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A conversation, in any form that `import` takes.")],
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", min=_MIN_BUDGET, help="How large the window may get.")
    ] = _BUDGET,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let an agent replay a recorded conversation.

    The replies and the results of tools are those of the record. Everything else happens as it would have: the window
    is kept in the budget, what is worth remembering is learned, and memory is consolidated after each session. A
    session that the root already has is skipped. A root is created when there is none.
    """
    target = find_target(root, user, project, strict=True)
    sessions, problems = _read_sessions(file)
    total = sum(map(len, sessions.values()))
    with progress_bar(total, "messages") as on_turn:
        replay_result = run_async(lambda: replay_sessions(target, sessions, budget=budget, on_turn=on_turn))
    if as_json:
        print_json(_result_document(replay_result, target, budget, problems))
        return
    _print_result(replay_result, target)


def _print_result(replay_result: ReplayResult, target: Target) -> None:
    for replay in replay_result.sessions:
        _print_session(replay)
    if replay_result.skipped_sessions:
        print_line(
            f"{pluralize(len(replay_result.skipped_sessions), 'session')} skipped: the root has a session of that name."
        )
    root_path = escape(str(target.root))
    print_line(f"{'Memory is in' if target.exists else 'Created a memory in'} {root_path}.")
    kinds_text = ", ".join(pluralize(count, escape(kind)) for kind, count in replay_result.learned.items())
    print_line(f"learned {pluralize(replay_result.learned.total(), 'entry')}{f': {kinds_text}' if kinds_text else ''}")
    curated_count, superseded = replay_result.curated["kept"], replay_result.curated["superseded"]
    older = f", {superseded:,} of them in the place of {'an older one' if superseded == 1 else 'older ones'}"
    print_line(f"curated {curated_count:,}{older if superseded else ''}")


def _read_sessions(file: Path) -> "tuple[dict[str, list[Message]], int]":
    """Return the messages of each session in their order, and how many records were skipped.

    Raises: HistoryUnreadable, FileMissing.
    """
    from ricordo.importers import read_history

    sessions: dict[str, list[Message]] = {}
    problems: list[str] = []
    for imported in read_history(file, on_problem=lambda problem: problems.append(problem.reason)):
        sessions.setdefault(imported.session, []).append(imported.message)
    if not sessions:
        raise HistoryUnreadable(f"{file} holds no messages.")
    if problems:
        print_note(f"{pluralize(len(problems), 'record')} skipped: {escape(problems[0])}")
    return sessions, len(problems)


def _print_session(replay: SessionReplay) -> None:
    print_line(f"{escape(replay.session)}: {pluralize(replay.turns, 'turn')}, {pluralize(replay.messages, 'message')}")
    print_line(
        f"   said {replay.conversation_tokens:,} tokens, the largest window sent had {replay.largest_tokens:,}, "
        f"{replay.left_tokens:,} are left"
    )
    for event in (reduction.event for reduction in replay.reductions):
        before, after = event.counts.get("tokens_before", 0), event.counts.get("tokens_after", 0)
        print_line(dim(f"   {event.stage}: {before:,} → {after:,} tokens ({event.reason})"))


def _result_document(replay_result: ReplayResult, target: Target, budget: int, problems: int) -> "dict[str, JsonValue]":
    return {
        "root": str(target.root),
        "created": not target.exists,
        "budget": budget,
        "sessions": [_session_document(replay) for replay in replay_result.sessions],
        "known": list(replay_result.skipped_sessions),
        "learned": dict(replay_result.learned),
        "curated": dict(replay_result.curated),
        "problems": problems,
    }


def _session_document(replay: SessionReplay) -> "JsonValue":
    return {
        "session": replay.session,
        "turns": replay.turns,
        "messages": replay.messages,
        "said_tokens": replay.conversation_tokens,
        "largest_tokens": replay.largest_tokens,
        "left_tokens": replay.left_tokens,
        "window": [{"role": message.role, "text": message.text} for message in replay.window],
        "reductions": [_reduction_document(reduction) for reduction in replay.reductions],
    }


def _reduction_document(reduction: RecordedReduction) -> "JsonValue":
    event = reduction.event
    return {"action": event.stage, "reason": event.reason, **dict(event.counts), "summary": reduction.summary or None}
