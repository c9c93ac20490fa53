"""A session as an agent keeps it, in files of this process, with the journal of its compactions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ricordo.compaction import Act, Reduction, Report, Window
from ricordo.compaction.handles import handle_of
from ricordo.files.in_memory import InMemoryFiles
from ricordo.guard import Redactor
from ricordo.harness.compactions import Compactions
from ricordo.harness.conversation import Keeper
from ricordo.messages import Message, Text, marked
from ricordo.state.files import FileStates
from ricordo.state.grants import Grants
from ricordo.workspace.layout import compactions_path, transcript_path
from ricordo.workspace.transcript import Transcript, read_log

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
        states = FileStates(self.files, REDACTOR, Grants(self.granted, "granted"))
        transcript = Transcript(self.files, TRANSCRIPT, session="s", redactor=REDACTOR)

        async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
            return (await transcript.append(messages)).messages

        stated = await states.load("main", "s")
        logged = (await read_log(self.files, TRANSCRIPT)).messages
        if self.durable and writable:
            self.keeper = Keeper(stated.state, states=states, version=stated.version, record=record, logged=logged)
        else:
            self.keeper = Keeper(stated.state)
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
        stands = marked(replace(said(summary), id=f"sum-{handle_of(dropped)}"), "summary")
        return await self._reduced("compact", dropped, (stands, *self.window[count:]))

    async def slide(self, going: Callable[[Message], bool]) -> str:
        """Take messages out of the window, with nothing in their place, and return the handle."""
        dropped = [message for message in self.window if going(message)]
        return await self._reduced("slide", dropped, [message for message in self.window if not going(message)])

    async def _reduced(self, act: Act, dropped: Sequence[Message], messages: Sequence[Message]) -> str:
        handle = handle_of(dropped)
        report = Report(act=act, status="done", reason="asked", handle=handle, tokens_before=90, tokens_after=9)
        window = Window(messages=self.window, agent="main", session="s")
        reduction = Reduction(messages=tuple(messages), report=report, dropped=tuple(dropped))
        await self.compactions.note(window, reduction)
        self.keeper.go_on(messages)
        await self.keeper.save()
        return handle

    async def rewrite(self, path: str, data: bytes) -> None:
        """Put other bytes in the place of a file."""
        await self.files.replace(path, data, expected=(await self.files.read(path)).version)
