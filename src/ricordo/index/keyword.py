"""The keyword index: one SQLite file beside the workspace, and the files themselves where it can't serve.

Each search first compares the files with what is known and takes in what changed, for a bounded time; what is left
over, and everything when the database is locked, read-only or gone, is answered by a scan. A damaged database is put
aside and made anew. So a search is never wrong because the index is, and no trouble of the database reaches the
caller.
"""

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Literal, TypeVar

import anyio
import anyio.to_thread

from ricordo.database.sqlite import Commit, Connection, Database
from ricordo.errors import StorageError
from ricordo.files.contract import FileInfo, FileStore, Held, ListsHere
from ricordo.guard import Redactor
from ricordo.index.appending import Appending
from ricordo.index.beside import Beside, Spot, beside
from ricordo.index.contract import (
    EVERYTHING,
    Candidates,
    Curated,
    Cut,
    Freshness,
    Match,
    Query,
    Sort,
    SyncReport,
)
from ricordo.index.documents import Document, document_of
from ricordo.index.index_file import IndexFile
from ricordo.index.listing import Listing
from ricordo.index.plan import Asked, Changes, changes
from ricordo.index.scan import Scan, merged
from ricordo.index.selecting import ALL_CURATED, MOST_CURATED, candidates, select
from ricordo.index.sync import Intake, Progress
from ricordo.index.terms import query_words
from ricordo.workspace.layout import WORKSPACE

if TYPE_CHECKING:
    from ricordo.index.dense import Lacking, Sense
    from ricordo.index.meanings import Meanings
    from ricordo.index.segments import Segments
    from ricordo.models import Embedder

__all__ = ["KeywordIndex"]

_T = TypeVar("_T")

_EMBEDDING_SECONDS = 30.0


class KeywordIndex(Appending):
    """Full-text search over one workspace, and search by meaning where it has an embedder."""

    def __init__(
        self,
        file: IndexFile,
        files: FileStore,
        *,
        folder: str,
        patience_seconds: float,
        redactor: Redactor,
        meanings: "Meanings | None" = None,
    ) -> None:
        """Put an index together from its parts; use `KeywordIndex.open`."""
        self._file = file
        self._files = files
        self._lists_here = files if isinstance(files, ListsHere) else None
        self._folder = folder
        self._patience_seconds = patience_seconds
        self._meanings = meanings
        self._changed = anyio.Event()
        self._redactor = redactor
        self._scan = Scan(files=files, redactor=redactor)
        self._taking = anyio.Lock(fast_acquire=True)
        self._intake: tuple[Database, Intake] | None = None
        self._segments: tuple[Database, Segments | None] | None = None
        self._settled: tuple[tuple[FileInfo, ...], frozenset[Sort], int] | None = None
        self._stale_files = 0
        self._refreshing = 0

    @classmethod
    async def open(
        cls,
        database_path: Path,
        files: FileStore,
        *,
        folder: str = WORKSPACE,
        commit: Commit | None = None,
        busy_seconds: float = 5.0,
        patience_seconds: float = 2.0,
        embedder: "Embedder | None" = None,
        ann_vectors: int = 0,
        redactor: Redactor | None = None,
    ) -> "KeywordIndex":
        """Open the index at `database_path` over the workspace `folder` of `files`; its trouble shows in `freshness`.

        `busy_seconds` is how long another process is waited for, `patience_seconds` how long a search spends on taking
        in what changed before it reads the rest from the files. `commit` ends transactions, for tests. The vectors of
        an `embedder` lie in a file of their own beside the index; `serve` and `refresh` make them. From `ann_vectors`
        of them on an approximate index is made, where the extra `ann` is installed; 0 is never. `redactor` is the
        root's own: no secret of a file comes into the index; without it the marks can't be compared with others.
        """
        check = files.check if isinstance(files, Held) else None
        file = IndexFile(database_path, commit=commit, busy_seconds=busy_seconds, check=check)
        meanings = _meanings(embedder, database_path, commit, ann_vectors, check) if embedder else None
        index = cls(
            file, files, folder=folder, patience_seconds=patience_seconds, meanings=meanings,
            redactor=redactor or Redactor(token_bytes(32)),
        )  # fmt: skip
        await index._catch_up(await files.list(folder), EVERYTHING, seconds=0.0)
        return index

    async def search(self, query: Query | str, limit: int = 10) -> list[Match]:
        """Return at most `limit` matches, best first; empty only when no document holds a word of the query.

        What changed in the files since the last call is found, also when the index can't be used. With an embedder,
        what is near in meaning is found too.
        """
        asked = Query(text=query) if isinstance(query, str) else query
        if limit < 1:
            return []
        words = query_words(asked.text)
        sense = await self._meanings.sense(asked.text) if self._meanings and words.groups else None
        files = await self._files.list(self._folder)
        if self._is_settled(files, asked.sorts):
            found = await self._look(Asked(query=asked, words=words, limit=limit), sense, current=True)
            if found is not None:
                return found
        progress = await self._catch_up(files, asked.sorts, seconds=self._patience_seconds)
        found = None
        if progress is not None:
            skipped = frozenset(document.path for document, _ in progress.unread)
            found = await self._look(Asked(query=asked, words=words, limit=limit, skipped=skipped), sense)
        if progress is None or found is None:
            unread: Sequence[tuple[Document, FileInfo]] = changes({}, files, self._folder, asked.sorts).changed
            return await self._scan.search(unread, asked, words, limit)
        scanned = await self._scan.search(progress.unread, asked, words, limit) if progress.unread else []
        return merged(found, scanned, limit) if scanned else found

    async def candidates(
        self, query: Query, limit: int, cut: Cut | None = None, *, beside: Callable[[], object] | None = None
    ) -> Candidates:
        """Return the matches of `search` in one step with what is needed to rank them, without what `cut` leaves out.

        At most 2,000 chunks of curated memory are returned, the newest. Where the index can't tell, all is returned.
        Where nothing has changed, all is done in one trip to a thread, `beside` too.
        """
        asked = Asked(query=query, words=query_words(query.text), limit=limit)
        sorts: tuple[Sort, ...] = (*query.sorts, "curated")
        sense = await self._meanings.sense(query.text) if self._meanings and asked.words.groups else None
        if self._lists_here is not None and self._settled is not None:
            listing = Listing(self._lists_here, self._folder, beside)
            found = await self._use(
                lambda reader, held: candidates(reader, held, asked, sense, cut), current=True,
                unless=lambda: not self._is_settled(listing(), sorts),
            )  # fmt: skip
            if found is not None:
                return found
        files = await self._files.list(self._folder)
        settled = self._is_settled(files, sorts)
        progress = None if settled else await self._catch_up(files, sorts, seconds=self._patience_seconds)
        if settled or (progress is not None and not progress.unread):
            found = await self._use(lambda reader, held: candidates(reader, held, asked, sense, cut), current=settled)
            if found is not None:
                return found
        matches = await self.search(query, limit)
        if not any(match.chunk.entry_id for match in matches):
            return Candidates(matches=matches)
        try:
            curated = Curated(tuple(await self.search(ALL_CURATED, MOST_CURATED)))
        except StorageError:
            # that takes nothing from what was found
            curated = Curated()
        return Candidates(matches=matches, curated=curated)

    async def beside(self, spots: Sequence[Spot]) -> list[Beside | None]:
        """Return what stands at and beside each of these, in their order; None for one that stands there no more."""
        found = await self._use(lambda reader, _: beside(reader, spots), current=False)
        return await self._scan.beside(spots, self._folder) if found is None else found

    def _is_settled(self, files: Sequence[FileInfo], sorts: tuple[Sort, ...]) -> bool:
        """Tell whether everything of these sorts was taken in when the last search or refresh had these very files."""
        if self._settled is None or self._intake is None:
            return False
        before, covered, revision = self._settled
        if not set(sorts) <= covered or revision != self._intake[1].revision:
            return False
        now = tuple(files)
        if before != now:
            # what is noted beside the documents, as what was shown, changes nothing that is found
            if self._documents(before) != self._documents(now):
                return False
            self._settled = (now, covered, revision)
        return True

    def _documents(self, files: Sequence[FileInfo]) -> list[FileInfo]:
        return [info for info in files if document_of(info.path, self._folder) is not None]

    async def _look(self, asked: Asked, sense: "Sense | None", *, current: bool = False) -> list[Match] | None:
        """Return what the database holds, as `_use` does."""
        return await self._use(lambda reader, segments: select(reader, segments, asked, sense), current=current)

    async def _use(
        self,
        act: "Callable[[Connection, Segments | None], _T | None]",
        *,
        current: bool,
        unless: Callable[[], bool] | None = None,
    ) -> _T | None:
        """Return what `act` reads, None when it can't be used, or `current` and another process wrote to it.

        So it is where `unless` says so, which is asked before anything is read, in the same thread.
        """

        async def look(database: Database) -> _T | None:
            if not self._is_known(database):
                return None
            intake = self._intake_of(database)

            def select(reader: Connection) -> _T | None:
                if unless is not None and unless():
                    return None
                if current and not intake.is_current(reader):
                    return None
                return act(reader, self._segments_of(database))

            return await database.read(select)

        return await self._file.use(look)

    async def refresh(self) -> SyncReport:
        """Take in everything that changed in the workspace, and forget what is gone.

        What has no vector is embedded for at most half a minute, where there is an embedder.
        """
        files = await self._files.list(self._folder)
        self._refreshing += 1
        try:
            progress = await self._catch_up(files, EVERYTHING, seconds=None)
            if progress is not None:
                await self._fold()
                await self.embed(seconds=_EMBEDDING_SECONDS)
        finally:
            self._refreshing -= 1
        if progress is None:
            return SyncReport(failed={"": self._file.trouble}, quarantined=self._file.quarantined())
        return SyncReport(
            indexed=tuple(sorted(progress.indexed)),
            removed=progress.gone,
            failed=progress.failed,
            unchanged=progress.unchanged,
            quarantined=self._file.quarantined(),
        )

    async def embed(self, *, seconds: float) -> None:
        """Give vectors to what has none, for at most `seconds`; without an embedder there is nothing to do."""
        if self._meanings is not None:
            await self._meanings.embed(self._lacking, seconds=seconds)

    async def serve(self) -> None:
        """Embed what is added for as long as this runs; without an embedder there is nothing to do."""
        while self._meanings is not None:
            await self.embed(seconds=_EMBEDDING_SECONDS)
            await self._changed.wait()
            self._changed = anyio.Event()

    async def _lacking(self, sense: "Sense", limit: int) -> "Lacking | None":
        async def look(database: Database) -> "Lacking | None":
            if not self._is_known(database):
                return None
            segments = await anyio.to_thread.run_sync(self._segments_of, database)
            if segments is None:
                return None
            return await database.read(lambda reader: segments.not_embedded(reader, sense, limit))

        return await self._file.use(look)

    def freshness(self) -> Freshness:
        """Tell how far the index follows the files, as of the last search, refresh or append."""
        behind, trouble = self._stale_files, ""
        lacking = 0
        if self._meanings is not None:
            lacking, trouble = self._meanings.lacking, self._meanings.trouble
        if self._file.trouble:
            return Freshness(state="broken", stale_files=behind, reason=self._file.trouble, not_embedded=lacking)
        state: Literal["building", "stale", "fresh"] = (
            "building" if self._refreshing else "stale" if behind else "fresh"
        )
        return Freshness(state=state, stale_files=behind, not_embedded=lacking, embedder=trouble)

    async def close(self) -> None:
        """Let the index go; what is not taken in yet is taken in by the next one to open it."""
        if self._segments is not None:
            await self._fold()
        async with self._taking:
            await self._file.close()
        if self._meanings is not None:
            await self._meanings.close()

    async def _fold(self) -> None:
        """Make what was taken in lately quick to load, where it is much."""

        async def fold(database: Database) -> None:
            segments = await anyio.to_thread.run_sync(self._segments_of, database)
            if segments is not None:
                await segments.fold(database)

        await self._file.use(fold)

    async def _catch_up(
        self, files: Sequence[FileInfo], sorts: tuple[Sort, ...], *, seconds: float | None
    ) -> Progress | None:
        """Take in what changed for at most `seconds` (None: all of it); None when the index can't be used."""
        progress = await self._file.use(
            lambda database: self._take_changes(self._intake_of(database), files, sorts, seconds),
            patient=seconds is None,
        )
        self._stale_files = len(files) if progress is None else len(progress.pending)
        self._settled = None
        if progress is not None and progress.unsettled:
            self._changed.set()
        if progress is not None and not progress.unsettled and not progress.pending and self._intake is not None:
            self._settled = (tuple(files), frozenset(sorts), self._intake[1].revision)
        return progress

    async def _take_changes(
        self, intake: Intake, files: Sequence[FileInfo], sorts: tuple[Sort, ...], seconds: float | None
    ) -> Progress:
        todo = changes(await intake.known(), files, self._folder, sorts)
        progress = Progress(gone=todo.gone, unchanged=todo.unchanged, unsettled=bool(todo.changed or todo.gone))
        await self._forget(intake, todo)
        deadline = None if seconds is None else time.monotonic() + seconds
        for document, info in todo.changed:
            if deadline is not None and time.monotonic() >= deadline:
                progress.pending.append((document, info))
            else:
                await self._take(intake, document, info, progress)
        return progress

    async def _forget(self, intake: Intake, todo: Changes) -> None:
        if todo.gone:
            async with self._taking:
                await intake.forget(todo.gone)

    async def _take(self, intake: Intake, document: Document, info: FileInfo, progress: Progress) -> None:
        async with self._taking:
            outcome = await intake.take(document, info)
        if outcome.failed:
            progress.failed[document.path] = outcome.failed
            progress.pending.append((document, info))
        elif outcome.changed:
            progress.indexed.append(document.path)
        else:
            progress.unchanged += 1

    def _is_known(self, database: Database) -> bool:
        """Tell whether it is the one that was caught up with: one made anew meanwhile holds nothing yet."""
        return self._intake is not None and self._intake[0] is database

    def _intake_of(self, database: Database) -> Intake:
        if self._intake is None or self._intake[0] is not database:
            self._intake = (database, Intake(database, self._files, self._redactor))
        return self._intake[1]

    def _segments_of(self, database: Database) -> "Segments | None":
        """Return the rows of the database in memory, None where there is no numpy; to be called off the event loop."""
        if self._segments is None or self._segments[0] is not database:
            try:
                # numpy is loaded by the first search, not by whoever imports the package
                made: Segments | None = import_module("ricordo.index.segments").Segments()
            except ImportError:
                made = None
            self._segments = (database, made)
        return self._segments[1]


def _meanings(
    embedder: "Embedder", beside: Path, commit: Commit | None, ann_vectors: int, check: Callable[[], None] | None
) -> "Meanings | None":
    """Return what makes and keeps vectors; None where there is no numpy, which is loaded where it is needed."""
    try:
        meanings = import_module("ricordo.index.meanings")
    except ImportError:
        return None
    made: Meanings = meanings.Meanings(
        embedder, beside.with_name(f"{beside.stem}_vectors.db"), commit=commit, ann_vectors=ann_vectors, check=check
    )
    return made
