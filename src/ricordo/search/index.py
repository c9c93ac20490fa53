"""The index of one workspace: a SQLite file beside it, and the files themselves where that can't serve.

Each search first compares the files with what is known and takes in what changed, for a bounded time; the rest, and
everything when the database can't be used, is answered by a scan. So a search is never wrong because the index is.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Literal, TypeVar

import anyio
import anyio.to_thread

from ricordo.errors import StorageError
from ricordo.guard import Redactor
from ricordo.search.cache_database import CacheDatabase
from ricordo.search.contract import (
    ALL_SORTS,
    Candidates,
    CuratedMatches,
    DocumentSort,
    Freshness,
    Match,
    PruningRule,
    Query,
    SyncReport,
)
from ricordo.search.documents import DocumentChanges, PreparedQuery, SearchDocument, classify_document, find_changes
from ricordo.search.ingest import Ingester, PendingAppend, SyncProgress
from ricordo.search.retrieval import (
    CURATED_QUERY,
    MAX_CURATED,
    ChunkLocation,
    ChunkNeighbours,
    FileScanner,
    find_candidates,
    find_neighbours,
    merge_matches,
    search_database,
)
from ricordo.search.terms import query_words
from ricordo.storage.contract import (
    AppendedRange,
    FileInfo,
    FileStore,
    SupportsBlockingAppend,
    SupportsBlockingList,
    SupportsFolderCheck,
)
from ricordo.storage.sqlite import Commit, Connection, Database
from ricordo.workspace.layout import WORKSPACE

if TYPE_CHECKING:
    from ricordo.models import Embedder
    from ricordo.search.embedding import IndexEmbedder
    from ricordo.search.segments import CorpusSearcher
    from ricordo.search.vector_search import MissingVectors, SemanticQuery

__all__ = ["AppendMixin", "FolderListing", "WorkspaceIndex"]


class AppendMixin(ABC):
    """The part of an index that takes in what is appended."""

    _files: FileStore
    _file: CacheDatabase
    _folder: str
    _ingest_lock: anyio.Lock
    _change_event: anyio.Event

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append to a file as `FileStore.append` does, durably, and so that the next search finds it.

        Raises what that raises; trouble of the index shows in `freshness`.
        """
        document = classify_document(path, self._folder)
        appended, is_in = None, None
        if document is not None and data and isinstance(self._files, SupportsBlockingAppend):
            append = PendingAppend(self._files, path, data, header=header)
            async with self._ingest_lock:
                is_in = await self._file.run(lambda database: self._ingester_for(database).append(document, append))
            appended = append.result()
        if appended is None:
            appended, is_in = await self._files.append(path, data, header=header), False
        if is_in is False:
            await self.index_appended(path, appended.offset, data)
        self._change_event.set()
        return appended

    async def index_appended(self, path: str, offset: int, data: bytes) -> None:
        """Take in the block `data` that was just appended to `path` at `offset`, so that the next search finds it."""
        document = classify_document(path, self._folder)
        if document is None or not data:
            return
        async with self._ingest_lock:
            await self._file.run(lambda database: self._ingest_block(database, document, offset, data))
        self._change_event.set()

    async def _ingest_block(self, database: Database, document: SearchDocument, offset: int, data: bytes) -> None:
        intake = self._ingester_for(database)
        if not await intake.ingest_block(document, offset, data):
            info = await self._files.info(document.path)
            if info is not None:
                await intake.ingest(document, info)

    @abstractmethod
    def _ingester_for(self, database: Database) -> Ingester: ...


@dataclass(frozen=True)
class FolderListing:
    """Lists a folder, and does what else is to be done in the same thread."""

    files: SupportsBlockingList
    folder: str
    beside: Callable[[], object] | None

    def __call__(self) -> Sequence[FileInfo]:
        """Return the files."""
        if self.beside is not None:
            self.beside()
        return self.files.list_blocking(self.folder)


_T = TypeVar("_T")
_EMBED_SECONDS = 30.0


class WorkspaceIndex(AppendMixin):
    """Full-text search over one workspace, and search by meaning where it has an embedder."""

    def __init__(
        self,
        file: CacheDatabase,
        files: FileStore,
        *,
        folder: str,
        patience_seconds: float,
        redactor: Redactor,
        meanings: "IndexEmbedder | None" = None,
    ) -> None:
        """Put an index together from its parts; use `WorkspaceIndex.open`."""
        self._file = file
        self._files = files
        self._sync_lister = files if isinstance(files, SupportsBlockingList) else None
        self._folder = folder
        self._patience_seconds = patience_seconds
        self._index_embedder = meanings
        self._change_event = anyio.Event()
        self._redactor = redactor
        self._scan = FileScanner(files=files, redactor=redactor)
        self._ingest_lock = anyio.Lock(fast_acquire=True)
        self._ingester: tuple[Database, Ingester] | None = None
        self._searcher: tuple[Database, CorpusSearcher | None] | None = None
        self._synced_files: tuple[tuple[FileInfo, ...], frozenset[DocumentSort], int] | None = None
        self._stale_files = 0
        self._refresh_count = 0

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
    ) -> "WorkspaceIndex":
        """Open the index at `database_path` over the workspace `folder` of `files`; its trouble shows in `freshness`.

        `busy_seconds` is how long another process is waited for, `patience_seconds` how long a search spends on taking
        in what changed before it reads the rest from the files. `commit` ends transactions, for tests. The vectors of
        an `embedder` lie in a file of their own beside the index; `serve` and `refresh` make them. From `ann_vectors`
        of them on an approximate index is made, where the extra `ann` is installed; 0 is never. `redactor` is the
        root's own: no secret of a file comes into the index; without it the marks can't be compared with others.
        """
        check = files.check if isinstance(files, SupportsFolderCheck) else None
        file = CacheDatabase(database_path, commit=commit, busy_seconds=busy_seconds, check=check)
        meanings = _create_index_embedder(embedder, database_path, commit, ann_vectors, check) if embedder else None
        index = cls(
            file, files, folder=folder, patience_seconds=patience_seconds, meanings=meanings,
            redactor=redactor or Redactor(token_bytes(32)),
        )  # fmt: skip
        await index._catch_up(await files.list(folder), ALL_SORTS, seconds=0.0)
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
        sense = await self._index_embedder.prepare_query(asked.text) if self._index_embedder and words.groups else None
        files = await self._files.list(self._folder)
        if self._is_up_to_date(files, asked.sorts):
            found = await self._search_database(
                PreparedQuery(query=asked, words=words, limit=limit), sense, current=True
            )
            if found is not None:
                return found
        progress = await self._catch_up(files, asked.sorts, seconds=self._patience_seconds)
        found = None
        if progress is not None:
            skipped = frozenset(document.path for document, _ in progress.unread_documents)
            found = await self._search_database(
                PreparedQuery(query=asked, words=words, limit=limit, skipped_paths=skipped), sense
            )
        if progress is None or found is None:
            unread: Sequence[tuple[SearchDocument, FileInfo]] = find_changes(
                {}, files, self._folder, asked.sorts
            ).changed
            return await self._scan.search(unread, asked, words, limit)
        scanned = (
            await self._scan.search(progress.unread_documents, asked, words, limit) if progress.unread_documents else []
        )
        return merge_matches(found, scanned, limit) if scanned else found

    async def find_candidates(
        self, query: Query, limit: int, cut: PruningRule | None = None, *, beside: Callable[[], object] | None = None
    ) -> Candidates:
        """Return the matches of `search` in one step with what is needed to rank them, without what `cut` leaves out.

        At most 2,000 chunks of curated memory are returned, the newest. Where the index can't tell, all is returned.
        Where nothing has changed, all is done in one trip to a thread, `beside` too.
        """
        asked = PreparedQuery(query=query, words=query_words(query.text), limit=limit)
        sorts: tuple[DocumentSort, ...] = (*query.sorts, "curated")
        sense = (
            await self._index_embedder.prepare_query(query.text)
            if self._index_embedder and asked.words.groups
            else None
        )
        if self._sync_lister is not None and self._synced_files is not None:
            listing = FolderListing(self._sync_lister, self._folder, beside)
            found = await self._read(
                lambda reader, held: find_candidates(reader, held, asked, sense, cut), current=True,
                unless=lambda: not self._is_up_to_date(listing(), sorts),
            )  # fmt: skip
            if found is not None:
                return found
        files = await self._files.list(self._folder)
        settled = self._is_up_to_date(files, sorts)
        progress = None if settled else await self._catch_up(files, sorts, seconds=self._patience_seconds)
        if settled or (progress is not None and not progress.unread_documents):
            found = await self._read(
                lambda reader, held: find_candidates(reader, held, asked, sense, cut), current=settled
            )
            if found is not None:
                return found
        matches = await self.search(query, limit)
        if not any(match.chunk.entry_id for match in matches):
            return Candidates(matches=matches)
        try:
            curated = CuratedMatches(tuple(await self.search(CURATED_QUERY, MAX_CURATED)))
        except StorageError:
            # that takes nothing from what was found
            curated = CuratedMatches()
        return Candidates(matches=matches, curated=curated)

    async def beside(self, spots: Sequence[ChunkLocation]) -> list[ChunkNeighbours | None]:
        """Return what stands at and beside each of these, in their order; None for one that stands there no more."""
        found = await self._read(lambda reader, _: find_neighbours(reader, spots), current=False)
        return await self._scan.beside(spots, self._folder) if found is None else found

    def _is_up_to_date(self, files: Sequence[FileInfo], sorts: tuple[DocumentSort, ...]) -> bool:
        """Tell whether everything of these sorts was taken in when the last search or refresh had these very files."""
        if self._synced_files is None or self._ingester is None:
            return False
        before, covered, revision = self._synced_files
        if not set(sorts) <= covered or revision != self._ingester[1].revision:
            return False
        now = tuple(files)
        if before != now:
            # what is noted beside the documents, as what was shown, changes nothing that is found
            if self._document_files(before) != self._document_files(now):
                return False
            self._synced_files = (now, covered, revision)
        return True

    def _document_files(self, files: Sequence[FileInfo]) -> list[FileInfo]:
        return [info for info in files if classify_document(info.path, self._folder) is not None]

    async def _search_database(
        self, asked: PreparedQuery, sense: "SemanticQuery | None", *, current: bool = False
    ) -> list[Match] | None:
        """Return what the database holds, as `_read` does."""
        return await self._read(
            lambda reader, segments: search_database(reader, segments, asked, sense), current=current
        )

    async def _read(
        self,
        act: "Callable[[Connection, CorpusSearcher | None], _T | None]",
        *,
        current: bool,
        unless: Callable[[], bool] | None = None,
    ) -> _T | None:
        """Return what `act` reads, None when it can't be used, or `current` and another process wrote to it.

        So it is where `unless` says so, which is asked before anything is read, in the same thread.
        """

        async def look(database: Database) -> _T | None:
            if not self._is_current_database(database):
                return None
            intake = self._ingester_for(database)

            def select(reader: Connection) -> _T | None:
                if unless is not None and unless():
                    return None
                if current and not intake.is_current(reader):
                    return None
                return act(reader, self._searcher_for(database))

            return await database.read(select)

        return await self._file.run(look)

    async def refresh(self) -> SyncReport:
        """Take in everything that changed in the workspace, and forget what is gone.

        What has no vector is embedded for at most half a minute, where there is an embedder.
        """
        files = await self._files.list(self._folder)
        self._refresh_count += 1
        try:
            progress = await self._catch_up(files, ALL_SORTS, seconds=None)
            if progress is not None:
                await self._compact()
                await self.embed(seconds=_EMBED_SECONDS)
        finally:
            self._refresh_count -= 1
        if progress is None:
            return SyncReport(failed={"": self._file.error}, quarantined=self._file.pop_quarantined())
        return SyncReport(
            indexed=tuple(sorted(progress.indexed)),
            removed=progress.removed,
            failed=progress.failed,
            unchanged=progress.unchanged,
            quarantined=self._file.pop_quarantined(),
        )

    async def embed(self, *, seconds: float) -> None:
        """Give vectors to what has none, for at most `seconds`; without an embedder there is nothing to do."""
        if self._index_embedder is not None:
            await self._index_embedder.embed(self._missing_vectors, seconds=seconds)

    async def serve(self) -> None:
        """Embed what is added for as long as this runs; without an embedder there is nothing to do."""
        while self._index_embedder is not None:
            await self.embed(seconds=_EMBED_SECONDS)
            await self._change_event.wait()
            self._change_event = anyio.Event()

    async def _missing_vectors(self, sense: "SemanticQuery", limit: int) -> "MissingVectors | None":
        async def look(database: Database) -> "MissingVectors | None":
            if not self._is_current_database(database):
                return None
            segments = await anyio.to_thread.run_sync(self._searcher_for, database)
            if segments is None:
                return None
            return await database.read(lambda reader: segments.missing_vectors(reader, sense, limit))

        return await self._file.run(look)

    def freshness(self) -> Freshness:
        """Tell how far the index follows the files, as of the last search, refresh or append."""
        behind, trouble = self._stale_files, ""
        lacking = 0
        if self._index_embedder is not None:
            lacking, trouble = self._index_embedder.missing_count, self._index_embedder.error
        if self._file.error:
            return Freshness(state="broken", stale_files=behind, reason=self._file.error, not_embedded=lacking)
        state: Literal["building", "stale", "fresh"] = (
            "building" if self._refresh_count else "stale" if behind else "fresh"
        )
        return Freshness(state=state, stale_files=behind, not_embedded=lacking, embedding_error=trouble)

    async def close(self) -> None:
        """Let the index go; what is not taken in yet is taken in by the next one to open it."""
        if self._searcher is not None:
            await self._compact()
        async with self._ingest_lock:
            await self._file.close()
        if self._index_embedder is not None:
            await self._index_embedder.close()

    async def _compact(self) -> None:
        """Make what was taken in lately quick to load, where it is much."""

        async def fold(database: Database) -> None:
            segments = await anyio.to_thread.run_sync(self._searcher_for, database)
            if segments is not None:
                await segments.compact(database)

        await self._file.run(fold)

    async def _catch_up(
        self, files: Sequence[FileInfo], sorts: tuple[DocumentSort, ...], *, seconds: float | None
    ) -> SyncProgress | None:
        """Take in what changed for at most `seconds` (None: all of it); None when the index can't be used."""
        progress = await self._file.run(
            lambda database: self._ingest_changes(self._ingester_for(database), files, sorts, seconds),
            patient=seconds is None,
        )
        self._stale_files = len(files) if progress is None else len(progress.pending)
        self._synced_files = None
        if progress is not None and progress.has_changes:
            self._change_event.set()
        if progress is not None and not progress.has_changes and not progress.pending and self._ingester is not None:
            self._synced_files = (tuple(files), frozenset(sorts), self._ingester[1].revision)
        return progress

    async def _ingest_changes(
        self, intake: Ingester, files: Sequence[FileInfo], sorts: tuple[DocumentSort, ...], seconds: float | None
    ) -> SyncProgress:
        todo = find_changes(await intake.load_fingerprints(), files, self._folder, sorts)
        progress = SyncProgress(
            removed=todo.removed, unchanged=todo.unchanged, has_changes=bool(todo.changed or todo.removed)
        )
        await self._remove_documents(intake, todo)
        deadline = None if seconds is None else time.monotonic() + seconds
        for document, info in todo.changed:
            if deadline is not None and time.monotonic() >= deadline:
                progress.pending.append((document, info))
            else:
                await self._ingest_document(intake, document, info, progress)
        return progress

    async def _remove_documents(self, intake: Ingester, todo: DocumentChanges) -> None:
        if todo.removed:
            async with self._ingest_lock:
                await intake.forget(todo.removed)

    async def _ingest_document(
        self, intake: Ingester, document: SearchDocument, info: FileInfo, progress: SyncProgress
    ) -> None:
        async with self._ingest_lock:
            outcome = await intake.ingest(document, info)
        if outcome.failed:
            progress.failed[document.path] = outcome.failed
            progress.pending.append((document, info))
        elif outcome.changed:
            progress.indexed.append(document.path)
        else:
            progress.unchanged += 1

    def _is_current_database(self, database: Database) -> bool:
        """Tell whether it is the one that was caught up with: one made anew meanwhile holds nothing yet."""
        return self._ingester is not None and self._ingester[0] is database

    def _ingester_for(self, database: Database) -> Ingester:
        if self._ingester is None or self._ingester[0] is not database:
            self._ingester = (database, Ingester(database, self._files, self._redactor))
        return self._ingester[1]

    def _searcher_for(self, database: Database) -> "CorpusSearcher | None":
        """Return the rows of the database in memory, None where there is no numpy; to be called off the event loop."""
        if self._searcher is None or self._searcher[0] is not database:
            try:
                # numpy is loaded by the first search, not by whoever imports the package
                made: CorpusSearcher | None = import_module("ricordo.search.segments").CorpusSearcher()
            except ImportError:
                made = None
            self._searcher = (database, made)
        return self._searcher[1]


def _create_index_embedder(
    embedder: "Embedder", beside: Path, commit: Commit | None, ann_vectors: int, check: Callable[[], None] | None
) -> "IndexEmbedder | None":
    """Return what makes and keeps vectors; None where there is no numpy, which is loaded where it is needed."""
    try:
        meanings = import_module("ricordo.search.embedding")
    except ImportError:
        return None
    made: IndexEmbedder = meanings.IndexEmbedder(
        embedder, beside.with_name(f"{beside.stem}_vectors.db"), commit=commit, ann_vectors=ann_vectors, check=check
    )
    return made
