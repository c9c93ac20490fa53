"""The loop of a chat: line after line, each recorded before it is answered, until somebody ends it.

The root is made by the first thing that is said, and opened before when it is there; where it can't be opened there is
no chat. At the end, what was said is learned from, within a limit that a key press cuts short.

Invariant: whatever ends the chat, but for a kill, the session is closed in order; and a kill loses nothing said.
"""

import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio

from ricordo.cli.agents import INCOGNITO_NOTICE, ChatOptions, apply_incognito, build_agent
from ricordo.cli.chat_input import (
    ApprovalAnswer,
    ChatInput,
    SlashCommand,
    cli_arguments,
    parse_line,
    print_help,
    run_command,
    unknown_command_message,
)
from ricordo.cli.chat_session_commands import (
    NO_UNDO_MESSAGE,
    STATE_COMMANDS,
    format_ended_tasks,
    format_stopped_tasks,
    has_session_state,
    load_store_entries,
    permanent_rule,
    run_memory_command,
    run_state_command,
    starts_session,
)
from ricordo.cli.chat_terminal import MainThreadRunner, ReadInterrupted, TurnPrinter
from ricordo.cli.chat_window import WINDOW_COMMANDS, run_window_command
from ricordo.cli.render import bold, dim, escape, pluralize, print_error, print_line, print_note
from ricordo.cli.task_output import is_active
from ricordo.clock import SystemClock
from ricordo.concurrency import background_task
from ricordo.errors import InvalidInput, ModelRateLimited, RicordoError
from ricordo.lazy import dataclass
from ricordo.models.offline import is_question

if TYPE_CHECKING:
    from datetime import datetime

    from ricordo.agent import HarnessAgent
    from ricordo.agent.contract import TurnResult
    from ricordo.agent.tools import Approval
    from ricordo.jobs.tasks import Task
    from ricordo.workspace.entry import Entry

__all__ = ["Chat"]


_OFFLINE_SECONDS, _MODEL_SECONDS = 2.0, 10.0
_ANNOUNCE_AFTER_SECONDS = 0.3
_EXIT_USAGE = 2
_EXIT_INTERRUPTED = 128 + signal.SIGINT


@dataclass(kw_only=True)
class Chat:
    """One chat, on one terminal or pipe; `is_recorded` says whether its messages are stored."""

    options: ChatOptions
    main_thread: MainThreadRunner
    input: ChatInput
    code: int = 0
    is_recorded: bool = True
    seen_messages: set[str] = field(default_factory=set)
    ended_tasks: set[str] = field(default_factory=set)
    agent: "HarnessAgent | None" = None
    previous_session: str | None = None
    started_at: "datetime" = field(default_factory=lambda: SystemClock().now())
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def run(self) -> int:
        """Go on until the input ends; return the exit code."""
        async with self._agent_lifetime():
            if self.options.target.exists:
                await self._ensure_agent()
            await self._call(self._print_greeting)
            while not self.main_thread.end_signal and await self._handle_next_line():
                pass
            await self._learn_and_close(announce=True)
        return 128 + self.main_thread.end_signal if self.main_thread.end_signal else self.code

    async def run_once(self, text: str, *, quiet: bool) -> "tuple[TurnResult | None, str]":
        """Send `text` and return the result, None if it was stopped, and the session. Raises what `stream` raises.

        `code` is 1 afterwards when something was to be kept and is not.
        """
        async with self._agent_lifetime():
            agent = await self._ensure_agent()
            try:
                result = await self._run_turn(agent, text, quiet=quiet)
            finally:
                await self._learn_and_close(announce=False)
            return result, agent.session

    @asynccontextmanager
    async def _agent_lifetime(self) -> AsyncIterator[None]:
        """Let the agent that is opened in the block be closed with it."""
        with anyio.CancelScope() as self._scope:
            async with self._stack:
                yield

    async def _ensure_agent(self) -> "HarnessAgent":
        """Return the agent, which is opened, and the root made, at the first call."""
        if self.agent is None:
            agent = await build_agent(self.options, self._approve if self.input.is_terminal else None)
            self.agent = await self._stack.enter_async_context(agent)
            self.is_recorded = self.agent.is_recorded
            self._note_seen_messages()
            await self._newly_ended_tasks()
        return self.agent

    def _note_seen_messages(self) -> None:
        """Keep in mind which messages this chat has seen, to know later what they taught."""
        window = self.agent.window if self.agent else ()
        self.seen_messages.update(message.id for message in window if message.id)

    async def _call(self, act: Callable[[], None]) -> None:
        await self.main_thread.call(act)

    def _print_greeting(self) -> None:
        if not self.input.is_terminal:
            return
        target = self.options.target
        root = escape(str(target.root))
        if self.options.incognito:
            print_line(INCOGNITO_NOTICE)
        print_line(f"Memory in {root}." if target.exists else f"The first thing you say begins a memory in {root}.")
        if self.agent is not None and self.agent.window:
            messages = pluralize(len(self.agent.window), "message")
            print_line(f"Going on with session {escape(self.agent.session)}: {messages} in the window.")
        if self.agent is not None and self.agent.state.work_state.plan.active:
            print_line("Plan mode is on: /plan shows the plan, /plan off ends it.")
        print_line(dim("/help lists the commands; Ctrl-D ends the chat."))

    async def _handle_next_line(self) -> bool:
        """Take one line and do what it asks for; False at the end of the input, or of the chat."""
        await self._print_ended_tasks()
        try:
            line = parse_line(await self.main_thread.call(self._read_line, reads=True))
        except EOFError:
            if self.input.is_terminal:
                await self._call(print_line)
            return False
        except ReadInterrupted:
            return await self._handle_interrupt()
        if isinstance(line, str) and line:
            # where nothing can be kept, nothing is said
            await self._ensure_agent()
        try:
            if isinstance(line, SlashCommand):
                return await self._run_slash_command(line)
            if line:
                await self._answer(line)
        except RicordoError as error:
            self.code = 0 if self.input.is_terminal else 1
            await self._call(partial(print_error, str(error)))
        return self.code != _EXIT_INTERRUPTED

    def _read_line(self) -> str:
        try:
            return self.input.read_line()
        except EOFError:
            # nothing is asked any more that a task in the background wants to know
            self.main_thread.is_closing = True
            raise

    async def _newly_ended_tasks(self) -> "list[Task]":
        """Return the tasks of this session that have ended since this was asked last, oldest first."""
        tasks: list[Task] = []
        if self.agent is not None:
            with suppress(RicordoError):
                tasks = [task for task in await self.agent.tasks.all() if task.session == self.agent.session]
        new = [
            task
            for task in reversed(tasks)
            if not is_active(task) and f"{task.id} {task.state}" not in self.ended_tasks
        ]
        self.ended_tasks.update(f"{task.id} {task.state}" for task in new)
        return new

    async def _print_ended_tasks(self) -> None:
        if self.input.is_terminal and (ended_tasks := await self._newly_ended_tasks()):
            await self._call(lambda: print_line(dim(format_ended_tasks(ended_tasks))))

    async def _handle_interrupt(self) -> bool:
        if not self.input.is_terminal:
            self.code = _EXIT_INTERRUPTED
        elif not self.main_thread.end_signal:
            await self._call(lambda: print_line(dim("\nCtrl-D or /quit ends the chat.")))
        return self.input.is_terminal

    async def _answer(self, text: str) -> None:
        result = await self._run_turn(await self._ensure_agent(), text)
        if result is None and not self.input.is_terminal:
            self.code = _EXIT_INTERRUPTED

    async def _run_turn(self, agent: "HarnessAgent", text: str, *, quiet: bool = False) -> "TurnResult | None":
        """Say `text` and show the reply as it comes; None when it was stopped."""
        if self.main_thread.end_signal:
            return None
        verbose = self.options.verbose
        screen = None if quiet else TurnPrinter(tools=self.input.is_terminal or verbose, thinking=verbose)
        result: TurnResult | None = None
        try:
            result = await self._stream_turn(agent, text, screen)
        except ModelRateLimited as error:
            if error.retry_after is None:
                raise
            error_message = str(error).replace("asks to wait", f"asks to wait {error.retry_after:g} s", 1)
            raise ModelRateLimited(error_message, retry_after=error.retry_after) from error
        finally:
            self._note_seen_messages()
            if screen is not None:
                await self._call(partial(screen.finish, result))
        if result is None and self.input.is_terminal:
            has_reply = self.is_recorded and bool(agent.window) and agent.window[-1].role != "user"
            await self._call(
                lambda: print_line(dim(f"Stopped.{' What came of the reply is kept.' if has_reply else ''}"))
            )
        if not (self.is_recorded or self.input.is_terminal or self.options.incognito or is_question(text)):
            self.code = self.code or 1
        return result

    async def _stream_turn(self, agent: "HarnessAgent", text: str, screen: TurnPrinter | None) -> "TurnResult | None":
        result: TurnResult | None = None
        with self.main_thread.cancel_on_signal():
            async with agent.stream(text) as events:
                async for event in events:
                    if screen is not None:
                        await self._call(partial(screen.print_event, event))
            result = events.result
        return result  # noqa: RET504  (None when it was stopped)

    async def _approve(self, approval: "Approval") -> bool:
        agent = await self._ensure_agent()
        rule = permanent_rule(approval, agent.permissions.rules)
        try:
            answer = await self.main_thread.call(partial(self._ask_approval, approval, rule), reads=True)
        except EOFError:
            return False
        except ReadInterrupted:
            self.main_thread.cancel_innermost()
            return False
        if answer == "always":
            await self._allow_rule(agent, rule)
        return answer != "no"

    def _ask_approval(self, approval: "Approval", rule: str) -> ApprovalAnswer:
        return "no" if self.main_thread.is_closing else self.input.ask_approval(approval, always=bool(rule))

    async def _allow_rule(self, agent: "HarnessAgent", rule: str) -> None:
        """Ask no more for calls of this kind in this session; where that can't be kept, only this once."""
        try:
            await agent.permissions.allow(rule)
        except RicordoError as error:
            await self._call(partial(print_error, f"{error} It is let through this once."))
            return
        notice = f"From now on in this session: {bold(escape(f'allow {rule}'))} (/permissions lists the rules)"
        await self._call(lambda: print_line(notice))

    async def _run_slash_command(self, slash: SlashCommand) -> bool:
        match slash.name:
            case "quit" | "exit":
                return False
            case "help":
                await self._call(print_help)
            case name if name in WINDOW_COMMANDS:
                await self._run_window_command(slash)
            case name if name in STATE_COMMANDS:
                await self._run_state_command(slash)
            case "incognito":
                await self._toggle_incognito(slash)
            case "memory" if await self._has_other_store():
                await self._run_store_command(slash)
            case "undo" if not slash.arguments.strip() and await self._has_other_store():
                raise InvalidInput(NO_UNDO_MESSAGE)
            case _:
                await self._run_cli_command(slash)
        return True

    async def _toggle_incognito(self, slash: SlashCommand) -> None:
        """End this session and begin an incognito one, or end that and go on with the one before."""
        options_before = self.options
        changed = apply_incognito(options_before, slash)
        if changed.incognito != options_before.incognito:
            before = self.agent.session if self.agent else options_before.session
            self.agent = None
            await self._stack.aclose()
            self.options = changed if changed.incognito else replace(changed, session=self.previous_session)
            self.previous_session, self.is_recorded = before, True
        notice = INCOGNITO_NOTICE if self.options.incognito else "This chat is kept again."
        await self._call(lambda: print_line(notice))

    async def _has_other_store(self) -> bool:
        """Return whether the agent's memory is in another store than the root that the commands show."""
        if self.options.incognito:
            return False
        if self.agent is None and (self.options.settings.store == "layered" or not self.options.target.exists):
            return False
        return (await self._ensure_agent()).memory is None

    async def _run_store_command(self, slash: SlashCommand) -> None:
        agent = await self._ensure_agent()
        with self.main_thread.cancel_on_signal():
            entries = await load_store_entries(agent, slash)
        if entries is not None:
            await self._run_cli_command(slash, entries=entries)
            return
        with self.main_thread.cancel_on_signal():
            lines = await run_memory_command(agent, slash, self._confirm if self.input.is_terminal else None)
            await self._call(lambda: print_line("\n".join(lines)))

    async def _confirm(self, approval: "Approval") -> bool:
        try:
            return (
                await self.main_thread.call(partial(self.input.ask_approval, approval, always=False), reads=True)
                == "yes"
            )
        except (EOFError, ReadInterrupted):
            return False

    async def _run_cli_command(self, slash: SlashCommand, *, entries: "Sequence[Entry] | None" = None) -> None:
        """Run what the command line has a command for; what it changed is in the next request.

        With `entries`, `memory list` lists these and not those of the root.
        """
        arguments = cli_arguments(slash)
        if arguments is None:
            await self._call(partial(print_error, unknown_command_message(slash)))
            self.code = self.code or (0 if self.input.is_terminal else _EXIT_USAGE)
            return
        act = partial(run_command, self.options.command_group, self.options.target, arguments, entries=entries)
        try:
            code = await self.main_thread.call(act, reads=True)
        except ReadInterrupted:
            code = _EXIT_INTERRUPTED
        if arguments[0] in {"forget", "undo"} and self.agent is not None:
            await self.agent.system_prompt(rebuild=True)
        if not self.input.is_terminal:
            self.code = self.code or code

    async def _run_window_command(self, slash: SlashCommand) -> None:
        if self.agent is None and not self.options.target.exists:
            await self._call(lambda: print_line("Nothing was said yet."))
            return
        agent = await self._ensure_agent()
        with self.main_thread.cancel_on_signal() as scope:
            lines = await run_window_command(agent, slash, self.options.settings)
            await self._call(lambda: print_line("\n".join(lines)))
        if scope.cancelled_caught:
            await self._call(lambda: print_line(dim("Stopped; the window is as it was.")))

    async def _run_state_command(self, slash: SlashCommand) -> None:
        if self.agent is None and not self.options.target.exists and not starts_session(slash):
            await self._call(lambda: print_line("Nothing was said yet."))
            return
        agent, has_model = await self._ensure_agent(), self.options.model is not None
        with self.main_thread.cancel_on_signal():
            lines = await run_state_command(agent, slash, self.options.target, has_model=has_model)
            if slash.name == "tasks":
                # what was just shown is not told again
                await self._newly_ended_tasks()
            await self._call(lambda: print_line("\n".join(lines)))

    async def _learn_and_close(self, *, announce: bool) -> None:
        """Learn from what was said, within the limit, and tell what that came to."""
        agent = self.agent
        if agent is None:
            return
        flush, min_seconds = (
            self.options.settings.flush,
            _OFFLINE_SECONDS if self.options.model is None else _MODEL_SECONDS,
        )
        seconds = max(min_seconds, flush.closing_seconds) if flush else min_seconds
        remaining = -1 if self.is_recorded else 0
        self.main_thread.is_closing = True
        with self.main_thread.cancel_on_signal():
            async with background_task(partial(self._announce_later, "Learning from what was said; Ctrl-C skips it.")):
                if self.is_recorded:
                    remaining = await agent.drain(seconds=seconds)
        with self.main_thread.cancel_on_signal():
            async with background_task(partial(self._announce_later, "Summarizing this session; Ctrl-C skips it.")):
                await agent.summarize()
        if remaining:
            # the limit is over: closing works off nothing more
            self._scope.cancel()
        if running := agent.tasks.running_count:
            await self._call(
                partial(print_line if self.input.is_terminal else print_note, format_stopped_tasks(running))
            )
        if announce and (self.seen_messages or has_session_state(agent)):
            with anyio.CancelScope(shield=True):
                notice = await self._closing_message(agent, remaining)
                await self._call(partial(print_line if self.input.is_terminal else print_note, notice))

    async def _announce_later(self, notice: str) -> None:
        await anyio.sleep(_ANNOUNCE_AFTER_SECONDS)
        if self.input.is_terminal:
            await self._call(lambda: print_line(dim(notice)))

    async def _closing_message(self, agent: "HarnessAgent", remaining: int) -> str:
        location = escape(str(self.options.target.root))
        if self.options.incognito:
            return "Nothing of this session is kept: it was incognito."
        if not self.is_recorded:
            return f"Nothing of this chat is kept: the memory in {location} can only be read."
        kinds: Counter[str] = Counter()
        with suppress(RicordoError):
            for entry in await agent.memory.entries() if agent.memory else ():
                is_new = entry.time is not None and entry.time >= self.started_at
                kinds[entry.kind] += is_new and bool(self.seen_messages.intersection(entry.source.messages))
        summary = ", ".join(pluralize(count, escape(kind)) for kind, count in kinds.most_common() if count)
        waits = "; the rest is learned when it is opened next" if remaining else ""
        named_root = self.options.named_root
        root = f" --root {escape(str(named_root))}" if named_root else ""
        return (
            f"Learned {summary or 'nothing new'}{waits}. It is in {location}; "
            f"go on with: ricordo chat{root} --session {escape(agent.session)}"
        )
