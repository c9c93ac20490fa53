"""An import: sources are read one after the other, in a worker thread, and what they give goes into a memory.

A source is never held whole: a batch is taken in when enough has been read, sessions that have ended first, so that
most are learned from at once. Nothing is opened or created before something to take in was read. What is there already
is not added again, so an import that was cut off goes on where it was when it is begun again.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import field, replace
from heapq import heappush, heapreplace

import anyio
from anyio import to_thread

from ricordo.curation.importance import usefulness
from ricordo.errors import RicordoError
from ricordo.importers.contract import ImportedMemory
from ricordo.importers.entries import make_entry, name_origin
from ricordo.importers.reader import FoundSource, read_items
from ricordo.importers.source import ImportProblem
from ricordo.language import NameKind, find_names, find_whose_names, split_words
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.codec import count_fingerprints
from ricordo.runtime.entry_import import EntryImport
from ricordo.runtime.importing import ImportRun, begin_import
from ricordo.runtime.memory import Memory
from ricordo.workspace.entry import Entry

__all__ = ["ImportReport", "MemoryOpener", "import_sources"]


MemoryOpener = Callable[[str | None], AbstractAsyncContextManager[Memory]]
"""Opens the memory of a user that a source names, or with None the memory of the person who imports."""
_BATCH_MESSAGES = 2_000
_BATCH_BYTES = 16 * 1024 * 1024
_BATCH_MEMORIES = 500
_LEARNING_SECONDS = 30.0
_PROBLEMS_KEPT = 1_000
_TELLING = 20
_CANDIDATES = 200
_NAMES = 12
_NOT_IN_NAMES = frozenset({"User", "Assistant"})


@dataclass(kw_only=True)
class ImportReport:
    """What an import did so far.

    `read` and `new` count messages, `memories` the memories of other systems: so many are new, were known, or were
    forgotten here and stay forgotten. Of the new ones `quarantined_memories` wait in quarantine, and they took the
    place of `replaced_memories` of an earlier import; `confirmed_memories` of the known ones count as confirmed now, by
    the changes `confirmations`.
    `learned` counts by kind the entries that were learned from messages. `changes` are the ids by which all of it is
    undone, by user, with None for the person who imports. With `uses_model` a model learns from what was read, and so
    many jobs are `waiting_jobs` for it. `unreadable` names the sources that can't be read and why, `empty` those with
    nothing to import in them, `ignored` those of a folder whose format is not known. `problems` are the first thousand
    of the `problem_count` records that were skipped, `notes` what was read with losses. `doubtful` counts the new
    memories about which a person may decide in a review. `cues` counts the new entries that say of a name whose it is.
    """

    sources: int = 0
    read: int = 0
    new: int = 0
    memories: int = 0
    new_memories: int = 0
    known_memories: int = 0
    forgotten_memories: int = 0
    replaced_memories: int = 0
    confirmed_memories: int = 0
    quarantined_memories: int = 0
    sessions: set[str] = field(default_factory=set)
    learned: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    cues: Counter[tuple[NameKind, str]] = field(default_factory=Counter)
    problems: list[ImportProblem] = field(default_factory=list)
    problem_count: int = 0
    notes: list[ImportProblem] = field(default_factory=list)
    on_problem: Callable[[ImportProblem, int], None] | None = None
    doubtful: int = 0
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    changes: dict[str | None, str] = field(default_factory=dict)
    confirmations: list[str] = field(default_factory=list)
    uses_model: bool = False
    waiting_jobs: int = 0
    _best: list[tuple[tuple[object, ...], int, Entry]] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read, new or known."""
        return not self.read and not self.memories

    @property
    def known_messages(self) -> int:
        """How many messages were there before."""
        return self.read - self.new

    def add_problem(self, problem: ImportProblem) -> None:
        """Count a problem, keep the first thousand, and tell `on_problem` of it with its number."""
        self.problem_count += problem.skipped
        if self.on_problem is not None:
            self.on_problem(problem, self.problem_count)
        kept = self.problems if problem.skipped else self.notes
        if len(kept) < _PROBLEMS_KEPT:
            kept.append(problem)

    def add_entries(self, entries: Iterable[Entry]) -> None:
        """Count entries that are new, and keep those that tell most; one that waits in quarantine is only counted."""
        for entry in entries:
            self._ids.add(entry.id)
            if entry.state == "quarantined":
                continue
            cues = set(find_whose_names(entry.content))
            if isinstance(project := entry.metadata.get("project"), str):
                cues.add(("project", project))
            self.cues.update(cues)
            named = {each.text for each in find_names(entry.content)} | {name for _, name in cues}
            # in a script without capitals every clause would be a name
            self.names.update(name for name in named - _NOT_IN_NAMES if name != name.casefold())
            row = (usefulness(entry), len(self._ids), entry)
            if len(self._best) < _CANDIDATES:
                heappush(self._best, row)
            elif self._best[0] < row:
                heapreplace(self._best, row)

    def add_import(self, result: EntryImport) -> None:
        """Count the memories of another system that were imported."""
        self.new_memories += len(result.entries)
        self.known_memories += result.known_count
        self.forgotten_memories += result.forgotten_count
        self.replaced_memories += len(result.replaced)
        self.quarantined_memories += sum(entry.state == "quarantined" for entry in result.entries)
        self.add_entries(result.entries)

    def add_doubtful(self, ids: Iterable[str]) -> None:
        """Count those of the doubtful memories that are new."""
        self.doubtful += len(self._ids.intersection(ids))

    def telling_entries(self) -> list[Entry]:
        """Return at most twenty new entries that tell most, the best first; of those with the same words one."""
        seen, telling = set[object](), list[Entry]()
        for _, _, entry in sorted(self._best, reverse=True):
            words = split_words(entry.content)
            if words not in seen:
                telling.append(entry)
            seen.add(words)
        return telling[:_TELLING]

    def frequent_names(self, kind: NameKind | None = None) -> list[tuple[str, int]]:
        """Return the names of persons or projects that new entries have most often, each with the number of entries.

        Without a kind it returns those of which no words around them say what they are.
        """
        names = Counter(self.names)
        for name, count in self.names.items():
            # the first word of a sentence has a capital too: in "Ask Nadia" it is no part of the name
            _, _, rest = name.partition(" ")
            if rest in names and names[rest] >= count:
                names[rest] += count
                del names[name]
        return Counter({name: count for name, count in names.items() if self._find_kind(name) == kind}).most_common(
            _NAMES
        )

    def _find_kind(self, name: str) -> NameKind | None:
        persons, projects = self.cues["person", name], self.cues["project", name]
        if persons == projects:
            return None
        return "person" if persons > projects else "project"


async def import_sources(
    open_memory: MemoryOpener,
    sources: Sequence[FoundSource],
    report: ImportReport,
    *,
    session: str | None = None,
    trusted: bool = False,
    open_personal: MemoryOpener | None = None,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> None:
    """Take in `sources`, one after the other, and add what happened to `report`.

    `session` gathers all messages in one session. What holds for all projects of a person goes into the memory that
    `open_personal` opens, if it is given. Memories of other systems stay external until a person confirms them, but
    with `trusted` they count as confirmed. A source that can't be read is noted in the report and the next one read.
    After an error of the disk, or a cancellation, everything that was taken in before is kept and recorded.
    Raises: StorageError.
    """
    async with AsyncExitStack() as stack:
        act = _Act(
            open_memory=open_memory,
            open_personal=open_personal or open_memory,
            stack=stack,
            report=report,
            trusted=trusted,
            reason=_describe(sources),
        )
        try:
            for found in sources:
                source = found.source.watched(on_problem=report.add_problem, on_bytes=on_bytes)
                await act.take(replace(found, source=source), session)
                report.sources += 1
        finally:
            with anyio.CancelScope(shield=True):
                await act.finish()
        await act.learn()


def _describe(sources: Sequence[FoundSource]) -> str:
    """Return what is imported, for the history."""
    forms = Counter(found.form.name for found in sources if found.form)
    others = len(sources) - 1
    more = f" and {others:,} more" if others > 0 else ""
    return f"{', '.join(forms)}: {sources[0].source.name}{more}" if sources else ""


@dataclass(frozen=True, kw_only=True)
class _MessageBatch:
    """Messages of one session, in their order."""

    session: str
    messages: list[Message]


@dataclass(kw_only=True)
class _Act:
    """The runs of one import, one for each user whose memory it writes to, and the report on them."""

    open_memory: MemoryOpener
    open_personal: MemoryOpener
    stack: AsyncExitStack
    report: ImportReport
    trusted: bool
    reason: str
    runs: dict[str | None, ImportRun] = field(default_factory=dict)
    memories: dict[str | None, Memory] = field(default_factory=dict)
    personal_memories: dict[str | None, Memory] = field(default_factory=dict)
    persons: dict[str, str] = field(default_factory=dict)
    """The user who is taken to be the person who imports, by format: the only one of the first source that has one."""

    async def take(self, found: FoundSource, session: str | None) -> None:
        """Take in one source."""
        if found.form is None:
            if found.reason:
                self.report.unreadable.append((found.source.name, found.reason))
            else:
                self.report.ignored.append(found.source.name)
            return
        origin = name_origin(found)
        users: frozenset[str] | None = None
        batches = _iterate_batches(found, session)
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        is_empty = True
        while (batch := await self._next_batch(batches, found)) is not None:
            is_empty = False
            if isinstance(batch, _MessageBatch):
                await self._ingest(batch, origin, counts[batch.session])
            else:
                if users is None and any(memory.user is not None for memory in batch):
                    users = await to_thread.run_sync(_find_users, found)
                await self._remember(batch, found, users or frozenset())
        if is_empty and not any(name == found.source.name for name, _ in self.report.unreadable):
            self.report.empty.append(found.source.name)

    async def learn(self) -> None:
        """Wait a while for a model that learns, and index what is new."""
        for memory in self.memories.values():
            if self.report.uses_model:
                self.report.waiting_jobs += await memory.drain(seconds=_LEARNING_SECONDS)
            if not all(run.is_empty for run in self.runs.values()):
                await memory.index()
                self.report.add_doubtful([doubt.id for doubt in await memory.review()])

    async def finish(self) -> None:
        """Record what was learned, also where the import was cut off. Raises: StorageError."""
        for user, run in self.runs.items():
            await run.finish()
            self.report.confirmed_memories += run.confirmed_count
            self.report.confirmations += run.confirmation_ids
            if run.is_empty:
                self.report.changes.pop(user, None)

    async def _next_batch(
        self, batches: "Iterator[_MessageBatch | list[ImportedMemory]]", found: FoundSource
    ) -> "_MessageBatch | list[ImportedMemory] | None":
        try:
            return await to_thread.run_sync(next, batches, None)
        except RicordoError as error:
            self.report.unreadable.append((found.source.name, str(error)))
            return None

    async def _find_run(self, user: str | None) -> ImportRun:
        if user not in self.runs:
            memory = await self.stack.enter_async_context(self.open_memory(user))
            self.memories[user] = memory
            self.runs[user] = await begin_import(memory, self.reason, trusted=self.trusted)
            self.report.changes[user] = self.runs[user].id
        return self.runs[user]

    async def _ingest(self, batch: _MessageBatch, origin: str, counts: "Counter[str]") -> None:
        run = await self._find_run(None)
        result = await run.ingest(batch.messages, session=batch.session, origin=origin, known=counts)
        if not all(message.id for message in batch.messages):
            # messages without an id are told apart by how often the same was said before
            counts.update(count_fingerprints(result.messages))
        self.report.sessions.add(batch.session)
        self.report.read += len(batch.messages)
        self.report.new += result.added_count
        self.report.uses_model = self.report.uses_model or result.is_queued
        self.report.learned.update(entry.kind for entry in result.entries)
        await to_thread.run_sync(self.report.add_entries, result.entries)

    async def _remember(self, batch: list[ImportedMemory], found: FoundSource, users: frozenset[str]) -> None:
        """Save memories, each in the memory of its user; `users` are all that the source names."""
        form = found.form.name if found.form else ""
        if len(users) == 1:
            (only,) = users
            self.persons.setdefault(form, only)
        by_user: defaultdict[str | None, list[ImportedMemory]] = defaultdict(list)
        for each in batch:
            by_user[None if each.user == self.persons.get(form) else each.user].append(each)
        for user, memories in by_user.items():
            run = await self._find_run(user)
            entries = [make_entry(each, found) for each in memories]
            memory = await self._find_personal(user) if found.everywhere else self.memories[user]
            result = await run.import_entries(entries, memory)
            self.report.memories += len(memories)
            for refusal in result.refused:
                found.source.report(memories[refusal.position].line, refusal.reason)
            await to_thread.run_sync(self.report.add_import, result)

    async def _find_personal(self, user: str | None) -> Memory:
        """Return the memory of a user for all projects; it is that of the project if nothing else was given."""
        if self.open_personal is self.open_memory:
            return self.memories[user]
        if user not in self.personal_memories:
            self.personal_memories[user] = await self.stack.enter_async_context(self.open_personal(user))
        return self.personal_memories[user]


def _iterate_batches(found: FoundSource, session: str | None) -> Iterator[_MessageBatch | list[ImportedMemory]]:
    """Give messages of one session at a time, and memories, as much of them at once as is worth a write."""
    assert found.form is not None
    waiting: defaultdict[str, list[Message]] = defaultdict(list)
    memories: list[ImportedMemory] = []
    read = count = 0

    def add_bytes(more: int) -> None:
        nonlocal read
        read += more
        found.source.add_progress(more)

    ids: set[str] = set()
    source = found.source.watched(on_bytes=add_bytes)
    for item in read_items(source, found.form):
        if isinstance(item, ImportedMemory):
            memories.append(item)
            if len(memories) >= _BATCH_MEMORIES:
                yield memories
                memories = []
            continue
        name, message = (session, _with_new_id(item.message, ids)) if session else (item.session, item.message)
        waiting[name].append(message)
        count += 1
        if count >= _BATCH_MESSAGES or read >= _BATCH_BYTES:
            ended_sessions = [each for each in waiting if each != name] or list(waiting)
            yield from [_MessageBatch(session=each, messages=waiting.pop(each)) for each in ended_sessions]
            count, read = sum(map(len, waiting.values())), 0
    yield from [_MessageBatch(session=each, messages=messages) for each, messages in waiting.items()]
    if memories:
        yield memories


def _with_new_id(message: Message, ids: set[str]) -> Message:
    """Return the message, without its id if that was there before: ids are unique in a session of a source only."""
    renamed = message if message.id not in ids else replace(message, id="")
    ids.add(message.id)
    return renamed


def _find_users(found: FoundSource) -> frozenset[str]:
    """Return the users whose memories a source holds."""
    source = found.source.watched(on_problem=lambda _: None, on_bytes=lambda _: None)
    items = read_items(source, found.form) if found.form else ()
    return frozenset(item.user for item in items if isinstance(item, ImportedMemory) and item.user is not None)
