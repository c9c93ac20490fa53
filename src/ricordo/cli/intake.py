"""Taking in histories: files in, bounded batches of one session each out, and a tally of what came of them.

A file is read in a worker thread and never held whole: a batch is given on when enough has been read, sessions that
have ended first, so that most are learned from at once. Nothing is opened or created before a first message was read.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, open_memory
from ricordo.errors import RicordoError

if TYPE_CHECKING:
    from ricordo.importers import ImportedMessage, ImportProblem
    from ricordo.memory import Memory
    from ricordo.messages import Message

__all__ = ["ImportFile", "ImportTotals", "import_files"]

_BATCH_MESSAGES = 2_000
_BATCH_BYTES = 16 * 1024 * 1024
_LEARNING_SECONDS = 30.0
"""How long a model is waited for; what waits then is learned by whoever opens memory next."""


@dataclass(kw_only=True)
class ImportTotals:
    """What taking in did; `unreadable` names the files without a conversation and why.

    `notes` are what was read with losses, `understood` the forms that are, once a file had none of them. `change` is
    the id by which all that was learned is undone. With `uses_model` a model learns from what was read, and so many jobs are
    `waiting_jobs` for it.
    """

    files: int = 0
    read: int = 0
    new: int = 0
    sessions: set[str] = field(default_factory=set)
    learned: Counter[str] = field(default_factory=Counter)
    problems: "list[ImportProblem]" = field(default_factory=list)
    notes: "list[ImportProblem]" = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    understood: str = ""
    change: str = ""
    uses_model: bool = False
    waiting_jobs: int = 0

    @property
    def known_messages(self) -> int:
        """How many messages were there before."""
        return self.read - self.new


@dataclass(kw_only=True)
class ImportFile:
    """One file on its way in; `session` gathers all its messages in one session, `name` is what people call it."""

    path: Path
    name: str
    on_problem: "Callable[[ImportProblem], None]"
    on_bytes: Callable[[int, int], None]
    session: str | None = None
    done: int = 0

    def batches(self) -> "Iterator[tuple[str, list[Message]]]":
        """Give messages of one session at a time. Raises what `read_history` raises."""
        waiting: defaultdict[str, list[Message]] = defaultdict(list)
        mark = count = 0
        for imported in self._read_messages():
            waiting[imported.session].append(imported.message)
            count += 1
            if count >= _BATCH_MESSAGES or self.done - mark >= _BATCH_BYTES:
                ended = [name for name in waiting if name != imported.session] or list(waiting)
                yield from [(name, waiting.pop(name)) for name in ended]
                count, mark = sum(map(len, waiting.values())), self.done
        yield from waiting.items()

    def _read_messages(self) -> "Iterator[ImportedMessage]":
        from ricordo.importers import read_history

        found = read_history(self.path, on_problem=self._report_problem, on_progress=self._report_progress)
        if self.session is None:
            yield from found
            return
        ids: set[str] = set()
        for imported in found:
            # ids are unique in a session of the file, and several of them become one here
            message = imported.message if imported.message.id not in ids else replace(imported.message, id="")
            ids.add(imported.message.id)
            yield replace(imported, session=self.session, message=message)

    def _report_problem(self, problem: "ImportProblem") -> None:
        self.on_problem(replace(problem, path=self.name))

    def _report_progress(self, done: int, total: int) -> None:
        self.done = done
        self.on_bytes(done, total)


async def import_files(target: Target, readings: Sequence[ImportFile], tally: ImportTotals) -> None:
    """Take in the files, one after the other, and count what came of it in `totals`.

    A file that can't be read is tallied and the next one read.
    """
    async with AsyncExitStack() as stack:
        memory: Memory | None = None
        for reading in readings:
            batches = reading.batches()
            known: defaultdict[str, Counter[str]] = defaultdict(Counter)
            while (batch := await _next_batch(batches, reading, tally)) is not None:
                if memory is None:
                    memory = await stack.enter_async_context(open_memory(target))
                await _ingest_batch(memory, *batch, known[batch[0]], tally)
            tally.files += 1
        if memory is not None and tally.uses_model:
            tally.waiting_jobs = await memory.drain(seconds=_LEARNING_SECONDS)


async def _next_batch(
    batches: "Iterator[tuple[str, list[Message]]]", reading: ImportFile, tally: ImportTotals
) -> "tuple[str, list[Message]] | None":
    from anyio import to_thread

    from ricordo.importers import SUPPORTED_FORMATS

    try:
        return await to_thread.run_sync(next, batches, None)
    except RicordoError as error:
        message = str(error).replace(str(reading.path), reading.name)
        if message.endswith(SUPPORTED_FORMATS):
            tally.understood = SUPPORTED_FORMATS
        tally.unreadable.append((reading.name, message.removesuffix(SUPPORTED_FORMATS).strip()))
        return None


async def _ingest_batch(
    memory: "Memory", session: str, messages: "list[Message]", known: "Counter[str]", tally: ImportTotals
) -> None:
    from ricordo.messages.identity import count_fingerprints

    done = await memory.ingest(messages, session=session, known=known, part_of=tally.change)
    tally.change = tally.change or done.change_id
    known.update(count_fingerprints(done.messages))
    tally.sessions.add(session)
    tally.read += len(messages)
    tally.new += done.added_count
    tally.uses_model = tally.uses_model or done.is_queued
    tally.learned.update(entry.kind for entry in done.entries)
