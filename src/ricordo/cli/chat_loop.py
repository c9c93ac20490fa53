"""The chat: line after line, each recorded before it is answered, until somebody ends it.

The root is made by the first thing that is said, and opened before when it is there; where it can't be opened there is
no chat. At the end, what was said is learned from, within a limit that a key press cuts short.

Invariant: whatever ends the chat, but for a kill, the session is closed in order; and a kill loses nothing said.
"""

import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio

from ricordo.beside import beside
from ricordo.cli.chat_agent import INCOGNITO, Wishes, described, incognito
from ricordo.cli.chat_commands import Slash, cli_arguments, parsed, print_help, run_command, unknown
from ricordo.cli.chat_foreground import Foreground, Interrupted
from ricordo.cli.chat_input import Answer, Input
from ricordo.cli.chat_standing import STANDING_COMMANDS, always, begins, ended_line, has_standing, stands, stopped_line
from ricordo.cli.chat_store import NOTHING_TAKEN_BACK, remembered
from ricordo.cli.chat_turn import Screen
from ricordo.cli.chat_window import WINDOW_COMMANDS, obeyed
from ricordo.cli.render import bold, counted, dim, failed, note, say, shown
from ricordo.cli.task_lines import is_going
from ricordo.clock import SystemClock
from ricordo.errors import InvalidInput, ModelRateLimited, RicordoError
from ricordo.harness.wording import asks

if TYPE_CHECKING:
    from datetime import datetime

    from ricordo.agent import HarnessAgent
    from ricordo.middleware import TurnResult
    from ricordo.tasks import Task
    from ricordo.tools import Approval

__all__ = ["Chat"]

_OFFLINE_SECONDS, _MODEL_SECONDS = 2.0, 10.0
_SILENT_SECONDS = 0.3
_MISUSED = 2
_INTERRUPTED = 128 + signal.SIGINT


@dataclass(kw_only=True)
class Chat:
    """One chat, on one terminal or pipe; `keeps` tells whether what is said is kept."""

    wishes: Wishes
    foreground: Foreground
    input: Input
    code: int = 0
    keeps: bool = True
    seen: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    agent: "HarnessAgent | None" = None
    before: str | None = None
    begun: "datetime" = field(default_factory=lambda: SystemClock().now())
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def talk(self) -> int:
        """Go on until the input ends; return the exit code."""
        async with self._open_to_the_end():
            if self.wishes.target.exists:
                await self._opened()
            await self._do(self._greet)
            while not self.foreground.ended and await self._next():
                pass
            await self._end(tells=True)
        return 128 + self.foreground.ended if self.foreground.ended else self.code

    async def once(self, text: str, *, quiet: bool) -> "tuple[TurnResult | None, str]":
        """Say `text` and return what came of it, None when it was stopped, and the session. Raises as `stream` does.

        `code` is 1 afterwards when something was to be kept and is not.
        """
        async with self._open_to_the_end():
            agent = await self._opened()
            try:
                result = await self._turn(agent, text, quiet=quiet)
            finally:
                await self._end(tells=False)
            return result, agent.session

    @asynccontextmanager
    async def _open_to_the_end(self) -> AsyncIterator[None]:
        """Let the agent that is opened in the block be closed with it."""
        with anyio.CancelScope() as self._whole:
            async with self._stack:
                yield

    async def _opened(self) -> "HarnessAgent":
        """Return the agent, which is opened, and the root made, at the first call."""
        if self.agent is None:
            agent = await described(self.wishes, self._approve if self.input.is_terminal else None)
            self.agent = await self._stack.enter_async_context(agent)
            self.keeps = self.agent.keeps
            self._look()
            await self._newly_ended()
        return self.agent

    def _look(self) -> None:
        """Keep in mind which messages this chat has seen, to know later what they taught."""
        window = self.agent.window if self.agent else ()
        self.seen.update(message.id for message in window if message.id)

    async def _do(self, act: Callable[[], None]) -> None:
        await self.foreground.do(act)

    def _greet(self) -> None:
        if not self.input.is_terminal:
            return
        target = self.wishes.target
        root = shown(str(target.root))
        if self.wishes.incognito:
            say(INCOGNITO)
        say(f"Memory in {root}." if target.exists else f"The first thing you say begins a memory in {root}.")
        if self.agent is not None and self.agent.window:
            messages = counted(len(self.agent.window), "message")
            say(f"Going on with session {shown(self.agent.session)}: {messages} in the window.")
        if self.agent is not None and self.agent.state.standing.plan.active:
            say("Plan mode is on: /plan shows the plan, /plan off ends it.")
        say(dim("/help lists the commands; Ctrl-D ends the chat."))

    async def _next(self) -> bool:
        """Take one line and do what it asks for; False at the end of the input, or of the chat."""
        await self._tell_ended()
        try:
            line = parsed(await self.foreground.do(self._line, reads=True))
        except EOFError:
            if self.input.is_terminal:
                await self._do(say)
            return False
        except Interrupted:
            return await self._left_alone()
        if isinstance(line, str) and line:
            # where nothing can be kept, nothing is said
            await self._opened()
        try:
            if isinstance(line, Slash):
                return await self._obey(line)
            if line:
                await self._answer(line)
        except RicordoError as error:
            self.code = 0 if self.input.is_terminal else 1
            await self._do(partial(failed, str(error)))
        return self.code != _INTERRUPTED

    def _line(self) -> str:
        try:
            return self.input.line()
        except EOFError:
            # nothing is asked any more that a task in the background wants to know
            self.foreground.closing = True
            raise

    async def _newly_ended(self) -> "list[Task]":
        """Return the tasks of this session that have ended since this was asked last, oldest first."""
        found: list[Task] = []
        if self.agent is not None:
            with suppress(RicordoError):
                found = [task for task in await self.agent.tasks.all() if task.session == self.agent.session]
        new = [task for task in reversed(found) if not is_going(task) and f"{task.id} {task.state}" not in self.ended]
        self.ended.update(f"{task.id} {task.state}" for task in new)
        return new

    async def _tell_ended(self) -> None:
        if self.input.is_terminal and (ended := await self._newly_ended()):
            await self._do(lambda: say(dim(ended_line(ended))))

    async def _left_alone(self) -> bool:
        if not self.input.is_terminal:
            self.code = _INTERRUPTED
        elif not self.foreground.ended:
            await self._do(lambda: say(dim("\nCtrl-D or /quit ends the chat.")))
        return self.input.is_terminal

    async def _answer(self, text: str) -> None:
        result = await self._turn(await self._opened(), text)
        if result is None and not self.input.is_terminal:
            self.code = _INTERRUPTED

    async def _turn(self, agent: "HarnessAgent", text: str, *, quiet: bool = False) -> "TurnResult | None":
        """Say `text` and show the reply as it comes; None when it was stopped."""
        if self.foreground.ended:
            return None
        verbose = self.wishes.verbose
        screen = None if quiet else Screen(tools=self.input.is_terminal or verbose, thinking=verbose)
        result: TurnResult | None = None
        try:
            result = await self._streamed(agent, text, screen)
        except ModelRateLimited as error:
            if error.retry_after is None:
                raise
            told = str(error).replace("asks to wait", f"asks to wait {error.retry_after:g} s", 1)
            raise ModelRateLimited(told, retry_after=error.retry_after) from error
        finally:
            self._look()
            if screen is not None:
                await self._do(partial(screen.end, result))
        if result is None and self.input.is_terminal:
            came = self.keeps and bool(agent.window) and agent.window[-1].role != "user"
            await self._do(lambda: say(dim(f"Stopped.{' What came of the reply is kept.' if came else ''}")))
        if not (self.keeps or self.input.is_terminal or self.wishes.incognito or asks(text)):
            self.code = self.code or 1
        return result

    async def _streamed(self, agent: "HarnessAgent", text: str, screen: Screen | None) -> "TurnResult | None":
        result: TurnResult | None = None
        with self.foreground.stopping():
            async with agent.stream(text) as events:
                async for event in events:
                    if screen is not None:
                        await self._do(partial(screen.show, event))
            result = events.result
        return result  # noqa: RET504  (None when it was stopped)

    async def _approve(self, asked: "Approval") -> bool:
        agent = await self._opened()
        rule = always(asked, agent.permissions.rules)
        try:
            answer = await self.foreground.do(partial(self._asked, asked, rule), reads=True)
        except EOFError:
            return False
        except Interrupted:
            self.foreground.stop()
            return False
        if answer == "always":
            await self._let(agent, rule)
        return answer != "no"

    def _asked(self, asked: "Approval", rule: str) -> Answer:
        return "no" if self.foreground.closing else self.input.answered(asked, always=bool(rule))

    async def _let(self, agent: "HarnessAgent", rule: str) -> None:
        """Ask no more for calls of this kind in this session; where that can't be kept, only this once."""
        try:
            await agent.permissions.allow(rule)
        except RicordoError as error:
            await self._do(partial(failed, f"{error} It is let through this once."))
            return
        told = f"From now on in this session: {bold(shown(f'allow {rule}'))} (/permissions lists the rules)"
        await self._do(lambda: say(told))

    async def _obey(self, slash: Slash) -> bool:
        match slash.name:
            case "quit" | "exit":
                return False
            case "help":
                await self._do(print_help)
            case name if name in WINDOW_COMMANDS:
                await self._look_at_window(slash)
            case name if name in STANDING_COMMANDS:
                await self._look_at_standing(slash)
            case "incognito":
                await self._hide(slash)
            case "memory" if await self._has_other_store():
                await self._look_at_store(slash)
            case "undo" if not slash.rest.strip() and await self._has_other_store():
                raise InvalidInput(NOTHING_TAKEN_BACK)
            case _:
                await self._run(slash)
        return True

    async def _hide(self, slash: Slash) -> None:
        """End this session and begin an incognito one, or end that and go on with the one before."""
        wishes = self.wishes
        changed = incognito(wishes, slash)
        if changed.incognito != wishes.incognito:
            before = self.agent.session if self.agent else wishes.session
            self.agent = None
            await self._stack.aclose()
            self.wishes = changed if changed.incognito else replace(changed, session=self.before)
            self.before, self.keeps = before, True
        told = INCOGNITO if self.wishes.incognito else "This chat is kept again."
        await self._do(lambda: say(told))

    async def _has_other_store(self) -> bool:
        """Tell whether the agent remembers elsewhere than in the root, which the command line's own commands show."""
        if self.wishes.incognito:
            return False
        if self.agent is None and (self.wishes.settings.store == "layered" or not self.wishes.target.exists):
            return False
        return (await self._opened()).memory is None

    async def _look_at_store(self, slash: Slash) -> None:
        agent = await self._opened()
        with self.foreground.stopping():
            lines = await remembered(agent, slash, self._sure if self.input.is_terminal else None)
            await self._do(lambda: say("\n".join(lines)))

    async def _sure(self, asked: "Approval") -> bool:
        try:
            return await self.foreground.do(partial(self.input.answered, asked, always=False), reads=True) == "yes"
        except (EOFError, Interrupted):
            return False

    async def _run(self, slash: Slash) -> None:
        """Run what the command line has a command for; what it changed is in the next request."""
        arguments = cli_arguments(slash)
        if arguments is None:
            await self._do(partial(failed, unknown(slash)))
            self.code = self.code or (0 if self.input.is_terminal else _MISUSED)
            return
        act = partial(run_command, self.wishes.group, self.wishes.target, arguments)
        try:
            code = await self.foreground.do(act, reads=True)
        except Interrupted:
            code = _INTERRUPTED
        if arguments[0] in {"forget", "undo"} and self.agent is not None:
            await self.agent.system_prompt(anew=True)
        if not self.input.is_terminal:
            self.code = self.code or code

    async def _look_at_window(self, slash: Slash) -> None:
        if self.agent is None and not self.wishes.target.exists:
            await self._do(lambda: say("Nothing was said yet."))
            return
        agent = await self._opened()
        with self.foreground.stopping() as scope:
            lines = await obeyed(agent, slash, self.wishes.settings)
            await self._do(lambda: say("\n".join(lines)))
        if scope.cancelled_caught:
            await self._do(lambda: say(dim("Stopped; the window is as it was.")))

    async def _look_at_standing(self, slash: Slash) -> None:
        if self.agent is None and not self.wishes.target.exists and not begins(slash):
            await self._do(lambda: say("Nothing was said yet."))
            return
        agent, has_model = await self._opened(), self.wishes.model is not None
        with self.foreground.stopping():
            lines = await stands(agent, slash, self.wishes.target, has_model=has_model)
            if slash.name == "tasks":
                # what was just shown is not told again
                await self._newly_ended()
            await self._do(lambda: say("\n".join(lines)))

    async def _end(self, *, tells: bool) -> None:
        """Learn from what was said, within the limit, and tell what that came to."""
        agent = self.agent
        if agent is None:
            return
        flush, least = self.wishes.settings.flush, _OFFLINE_SECONDS if self.wishes.model is None else _MODEL_SECONDS
        seconds = max(least, flush.closing_seconds) if flush else least
        left = -1 if self.keeps else 0
        self.foreground.closing = True
        with self.foreground.stopping():
            async with beside(partial(self._announce, "Learning from what was said; Ctrl-C skips it.")):
                if self.keeps:
                    left = await agent.settle(seconds=seconds)
        with self.foreground.stopping():
            async with beside(partial(self._announce, "Summarizing this session; Ctrl-C skips it.")):
                await agent.sum_up()
        if left:
            # the limit is over: closing works off nothing more
            self._whole.cancel()
        if running := agent.tasks.running:
            await self._do(partial(say if self.input.is_terminal else note, stopped_line(running)))
        if tells and (self.seen or has_standing(agent)):
            with anyio.CancelScope(shield=True):
                told = await self._told(agent, left)
                await self._do(partial(say if self.input.is_terminal else note, told))

    async def _announce(self, what: str) -> None:
        await anyio.sleep(_SILENT_SECONDS)
        if self.input.is_terminal:
            await self._do(lambda: say(dim(what)))

    async def _told(self, agent: "HarnessAgent", left: int) -> str:
        place = shown(str(self.wishes.target.root))
        if self.wishes.incognito:
            return "Nothing of this session is kept: it was incognito."
        if not self.keeps:
            return f"Nothing of this chat is kept: the memory in {place} can only be read."
        kinds: Counter[str] = Counter()
        with suppress(RicordoError):
            for entry in await agent.memory.entries() if agent.memory else ():
                is_new = entry.time is not None and entry.time >= self.begun
                kinds[entry.kind] += is_new and bool(self.seen.intersection(entry.source.messages))
        learned = ", ".join(counted(count, shown(kind)) for kind, count in kinds.most_common() if count)
        waits = "; the rest is learned when it is opened next" if left else ""
        named = self.wishes.named_root
        root = f" --root {shown(str(named))}" if named else ""
        return (
            f"Learned {learned or 'nothing new'}{waits}. It is in {place}; "
            f"go on with: ricordo chat{root} --session {shown(agent.session)}"
        )
