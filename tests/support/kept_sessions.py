"""A session as an agent keeps it, in files of this process, with the journal of its compactions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ricordo.agent import SessionState
from ricordo.agent.compactions import Compactions
from ricordo.context import Act, Reduction, StrategyReport, Window, make_handle
from ricordo.guard import Redactor
from ricordo.messages import Message, Text, with_mark
from ricordo.testing import InMemoryFiles
from ricordo.workspace import (
    FileStateStore,
    PermissionGrants,
    Transcript,
    compactions_path,
    read_transcript,
    transcript_path,
)

__all__ = ["JOURNAL", "REDACTOR", "TRANSCRIPT", "Kept", "said"]

REDACTOR = Redactor(b"k" * 32)
JOURNAL = compactions_path("main", "s")
TRANSCRIPT = transcript_path("main", "s")


def said(text: str, *, role: str = "user") -> Message:
    return Message(role=role, parts=(Text(text=text),))  # type: ignore[arg-type]


@dataclass
class Kept:
    """A session as an agent keeps it: its files, and what is said in it."""

    files: InMemoryFiles = field(default_factory=InMemoryFiles)
    durable: bool = True
    granted: InMemoryFiles = field(default_factory=InMemoryFiles)

    async def open(self, *, writable: bool = True) -> "Kept":
        """Begin, or go on in another process; one that is not `writable` only reads."""
        states = FileStateStore(self.files, REDACTOR, PermissionGrants(self.granted, "granted"))
        transcript = Transcript(self.files, TRANSCRIPT, session="s", redactor=REDACTOR)

        async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
            return (await transcript.append(messages)).messages

        stated = await states.load("main", "s")
        logged = (await read_transcript(self.files, TRANSCRIPT)).messages
        if self.durable and writable:
            self.keeper = SessionState(
                stated.state, states=states, version=stated.version, record=record, logged=logged
            )
        else:
            self.keeper = SessionState(stated.state)
        files = self.files if self.durable else None
        self.compactions = Compactions(self.keeper, files=files, writable=writable, redactor=REDACTOR)
        return self

    @property
    def window(self) -> tuple[Message, ...]:
        return self.keeper.state.window

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.window]

    async def say(self, *texts: str) -> None:
        await self.keeper.record([said(text) for text in texts])

    async def compact(self, count: int, *, summary: str = "What was said.") -> str:
        """Put a summary in the place of the first messages and return the handle."""
        dropped = self.window[:count]
        stands = with_mark(replace(said(summary), id=f"sum-{make_handle(dropped)}"), "summary")
        return await self._reduced("compact", dropped, (stands, *self.window[count:]))

    async def slide(self, going: Callable[[Message], bool]) -> str:
        """Take messages out of the window, with nothing in their place, and return the handle."""
        dropped = [message for message in self.window if going(message)]
        return await self._reduced("slide", dropped, [message for message in self.window if not going(message)])

    async def _reduced(self, act: Act, dropped: Sequence[Message], messages: Sequence[Message]) -> str:
        handle = make_handle(dropped)
        report = StrategyReport(
            action=act, status="done", reason="asked", handle=handle, tokens_before=90, tokens_after=9
        )
        window = Window(messages=self.window, agent="main", session="s")
        reduction = Reduction(messages=tuple(messages), report=report, dropped=tuple(dropped))
        await self.compactions.record(window, reduction)
        self.keeper.replace_window(messages)
        await self.keeper.save()
        return handle

    async def rewrite(self, path: str, data: bytes) -> None:
        """Put other bytes in the place of a file."""
        await self.files.replace(path, data, expected=(await self.files.read(path)).version)
