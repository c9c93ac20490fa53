"""The index of one workspace: a SQLite database, with a scan of the files where the database can't be used.

Each search first compares the files with the index and indexes changes for a limited time. The remaining files, or all
files if the database can't be used, are scanned. So an index error never makes a search wrong.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Literal, TypeVar

import anyio
import anyio.to_thread

from ricordo.errors import StorageError
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.search.contract import (
    ALL_DOCUMENT_TYPES,
    MEMORY_DOCUMENT_TYPES,
    CandidateRequest,
    Candidates,
    CuratedMatches,
    DocumentType,
    Freshness,
    Match,
    Query,
    SyncReport,
)
from ricordo.search.documents import (
    CURATED_QUERY,
    MAX_CURATED,
    DocumentChanges,
    PreparedQuery,
    SearchDocument,
    classify_document,
    find_changes,
    query_words,
)
from ricordo.search.ingest import Ingester, PendingAppend, SyncProgress
from ricordo.search.memory_root import DocumentOutline, OutlineCache
from ricordo.search.tables import CacheDatabase
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
    from ricordo.search.retrieval import ChunkLocation, ChunkNeighbours, FileScanner
    from ricordo.search.segments import CorpusSearcher
    from ricordo.search.vector_search import MissingVectors, SemanticQuery

__all__ = ["AppendMixin", "FolderListing", "WorkspaceIndex"]


class AppendMixin(ABC):
    """The part of an index that handles appended data."""

    _files: FileStore
    _file: CacheDatabase
    _folder: str
    _ingest_lock: anyio.Lock
    _change_event: anyio.Event
    _change_count: int

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append to a file as `FileStore.append` does, durably; the next search finds the data.

        Raises what `FileStore.append` raises; index errors show in `freshness`.
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
        self._note_change()
        return appended

    async def index_appended(self, path: str, offset: int, data: bytes) -> None:
        """Index the block `data` that was just appended to `path` at `offset`, so that the next search finds it."""
        document = classify_document(path, self._folder)
        if document is None or not data:
            return
        async with self._ingest_lock:
            await self._file.run(lambda database: self._ingest_block(database, document, offset, data))
        self._note_change()

    def _note_change(self) -> None:
        self._change_count += 1
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
    """Lists a folder; `beside` is called first, in the same thread."""

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
    """Full-text search over one workspace, and semantic search if it has an embedder."""

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
        """Create an index from its parts; use `WorkspaceIndex.open`."""
        self._file = file
        self._files = files
        self._sync_lister = files if isinstance(files, SupportsBlockingList) else None
        self._folder = folder
        self._patience_seconds = patience_seconds
        self._index_embedder = meanings
        self._change_event = anyio.Event()
        self._change_count, self._embedded_count = 0, -1
        self._redactor = redactor
        self._file_scanner: FileScanner | None = None
        self._ingest_lock = anyio.Lock(fast_acquire=True)
        self._ingester: tuple[Database, Ingester] | None = None
        self._searcher: tuple[Database, CorpusSearcher] | None = None
        self._synced_files: tuple[tuple[FileInfo, ...], frozenset[DocumentType], int] | None = None
        self._listed_files: tuple[FileInfo, ...] = ()
        self._known_files: tuple[tuple[FileInfo, ...], dict[str, FileInfo], frozenset[DocumentType]] = (
            (),
            {},
            frozenset(),
        )
        self._pending: list[SearchDocument] = []
        self._stale_files = 0
        self._refresh_count = 0
        self._outline_cache = OutlineCache(file, files)

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
        """Open the index at `database_path` over the workspace `folder` of `files`; errors show in `freshness`.

        `busy_seconds` is how long to wait for another process, `patience_seconds` how long a search may index changes
        before it scans the remaining files. `commit` ends transactions, for tests. The vectors of an `embedder` are
        stored in a separate file next to the index; `serve` and `refresh` compute them. From `ann_vectors` vectors on,
        an approximate index is built if the extra `ann` is installed; 0 means never. `redactor` is the redactor of the
        root: no secret of a file gets into the index. Without it, a random key is used and redaction marks can't be
        compared with others.
        """
        check = files.check if isinstance(files, SupportsFolderCheck) else None
        file = CacheDatabase(database_path, commit=commit, busy_seconds=busy_seconds, check=check)
        meanings = _create_index_embedder(embedder, database_path, commit, ann_vectors, check) if embedder else None
        index = cls(
            file, files, folder=folder, patience_seconds=patience_seconds, meanings=meanings,
            redactor=redactor or Redactor(token_bytes(32)),
        )  # fmt: skip
        await index._catch_up(await files.list(folder), ALL_DOCUMENT_TYPES, seconds=0.0)
        return index

    async def search(self, query: Query | str, limit: int = 10) -> list[Match]:
        """Return at most `limit` matches, best first; empty only if no document contains a word of the query.

        Changes in the files since the last call are found, even if the index can't be used. With an embedder, chunks
        with a similar meaning are found too.
        """
        asked = Query(text=query) if isinstance(query, str) else query
        if limit < 1:
            return []
        words = query_words(asked.text)
        sense = await self._index_embedder.prepare_query(asked.text) if self._index_embedder and words.groups else None
        files = await self._files.list(self._folder)
        if self._is_up_to_date(files, asked.document_types):
            found = await self._search_database(
                PreparedQuery(query=asked, words=words, limit=limit), sense, current=True
            )
            if found is not None:
                return found
        progress = await self._catch_up(files, asked.document_types, seconds=self._patience_seconds)
        found = None
        if progress is not None:
            skipped = frozenset(document.path for document, _ in progress.unread_documents)
            found = await self._search_database(
                PreparedQuery(query=asked, words=words, limit=limit, skipped_paths=skipped), sense
            )
        if progress is None or found is None:
            unread: Sequence[tuple[SearchDocument, FileInfo]] = find_changes(
                {}, files, self._folder, asked.document_types
            ).changed
            return await self._scanner().search(unread, asked, words, limit)
        scanned = (
            await self._scanner().search(progress.unread_documents, asked, words, limit)
            if progress.unread_documents
            else []
        )
        if not scanned:
            return found
        from ricordo.search.retrieval import merge_matches

        return merge_matches(found, scanned, limit)

    async def find_candidates(
        self, requests: Sequence[CandidateRequest], *, beside: Callable[[], object] | None = None
    ) -> list[Candidates]:
        """Return the matches of `search` for each request, or what it selects, with what is needed to rank them.

        The queries have the same text and profile. At most 2,000 chunks of curated memory are returned, the newest. If
        the index can't be used, all matches are returned. If no file has changed, everything runs in one call in a
        thread, including `beside`.
        """
        text = requests[0].query.text
        words = query_words(text)
        asked = [(PreparedQuery(query=each.query, words=words, limit=each.limit), each.select) for each in requests]
        types: tuple[DocumentType, ...] = (
            "curated",
            *(name for each in requests for name in each.query.document_types),
        )
        sense = await self._index_embedder.prepare_query(text) if self._index_embedder and words.groups else None

        def find(reader: Connection, searcher: "CorpusSearcher") -> list[Candidates]:
            return searcher.find_candidates(reader, asked, sense)

        if self._sync_lister is not None and self._synced_files is not None:
            listing = FolderListing(self._sync_lister, self._folder, beside)
            found = await self._read(
                find, current=True, unless=lambda: not self._is_up_to_date(listing(), types)
            )  # fmt: skip
            if found is not None:
                return found
        files = await self._files.list(self._folder)
        settled = self._is_up_to_date(files, types)
        progress = None if settled else await self._catch_up(files, types, seconds=self._patience_seconds)
        if settled or (progress is not None and not progress.unread_documents):
            found = await self._read(find, current=settled)
            if found is not None:
                return found
        return [await self._search_candidates(each.query, each.limit) for each in requests]

    async def _search_candidates(self, query: Query, limit: int) -> Candidates:
        """Return all matches as candidates, where not all documents are indexed."""
        matches = await self.search(query, limit)
        if not any(match.chunk.entry_id for match in matches):
            return Candidates(matches=matches)
        try:
            curated = CuratedMatches(tuple(await self.search(CURATED_QUERY, MAX_CURATED)))
        except StorageError:
            # the matches do not depend on it
            curated = CuratedMatches()
        return Candidates(matches=matches, curated=curated)

    async def beside(self, spots: "Sequence[ChunkLocation]") -> "list[ChunkNeighbours | None]":
        """Return each chunk with its neighbours, in order; None for a chunk that is no longer there."""
        from ricordo.search.retrieval import find_neighbours

        found = await self._read(lambda reader, _: find_neighbours(reader, spots), current=False)
        return await self._scanner().beside(spots, self._folder) if found is None else found

    def _scanner(self) -> "FileScanner":
        # most processes scan no file
        if self._file_scanner is None:
            from ricordo.search.retrieval import FileScanner

            self._file_scanner = FileScanner(files=self._files, redactor=self._redactor)
        return self._file_scanner

    def _is_up_to_date(self, files: Sequence[FileInfo], sorts: tuple[DocumentType, ...]) -> bool:
        """Return whether these sorts were fully indexed at the last search or refresh, from exactly these files."""
        if self._synced_files is None or self._ingester is None:
            return False
        before, covered, revision = self._synced_files
        if not set(sorts) <= covered or revision != self._ingester[1].revision:
            return False
        now = tuple(files)
        if now is not before and now != before:
            # files that are not documents, such as the usage log, do not change the results
            if self._document_files(before) != self._document_files(now):
                return False
            self._synced_files, self._listed_files = (now, covered, revision), now
        return True

    def may_hold(self, document_type: DocumentType) -> bool:
        """Return whether there may be documents of this type, as of the last search or refresh."""
        return document_type in self._look_up_files()[2]

    def file_info(self, path: str) -> FileInfo | None:
        """Return the metadata of a file, as of the last search or refresh; None if there is none."""
        return self._look_up_files()[1].get(path)

    def _look_up_files(self) -> tuple[tuple[FileInfo, ...], dict[str, FileInfo], frozenset[DocumentType]]:
        files = self._listed_files
        if self._known_files[0] is not files:
            documents = (classify_document(info.path, self._folder) for info in files)
            types = frozenset(document.document_type for document in documents if document)
            self._known_files = files, {info.path: info for info in files}, types
        return self._known_files

    def _document_files(self, files: Sequence[FileInfo]) -> list[FileInfo]:
        return [info for info in files if classify_document(info.path, self._folder) is not None]

    async def _search_database(
        self, prepared: PreparedQuery, sense: "SemanticQuery | None", *, current: bool = False
    ) -> list[Match] | None:
        """Return the matches of the database, as `_read` does."""
        return await self._read(lambda reader, searcher: searcher.search(reader, prepared, sense), current=current)

    async def _read(
        self,
        act: "Callable[[Connection, CorpusSearcher], _T | None]",
        *,
        current: bool,
        unless: Callable[[], bool] | None = None,
    ) -> _T | None:
        """Return the result of `act`; None if the database can't be used, or `current` and another process wrote to it.

        Also None if `unless` returns true; it is called before anything is read, in the same thread.
        """

        # an annotation that is no text is computed at each call
        async def look(database: Database) -> "_T | None":
            if not self._is_current_database(database):
                return None
            intake = self._ingester_for(database)

            def select(reader: Connection) -> "_T | None":
                if unless is not None and unless():
                    return None
                if current and not intake.is_current(reader):
                    return None
                return act(reader, self._searcher_for(database))

            return await database.read(select)

        return await self._file.run(look)

    async def refresh(self) -> SyncReport:
        """Index all changes of the workspace and remove deleted documents.

        If there is an embedder, missing vectors are computed for at most 30 seconds.
        """
        files = await self._files.list(self._folder)
        self._refresh_count += 1
        try:
            progress = await self._catch_up(files, ALL_DOCUMENT_TYPES, seconds=None)
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

    async def embed(self, *, seconds: float, now: bool = False) -> None:
        """Compute missing vectors for at most `seconds`; does nothing without an embedder.

        With `now` an embedder is asked that failed within the last minute, too.
        """
        if self._index_embedder is not None:
            count = self._change_count
            await self._index_embedder.embed(self._missing_vectors, seconds=seconds, now=now)
            self._embedded_count = max(self._embedded_count, count)

    async def embed_new(self, *, seconds: float) -> None:
        """Compute missing vectors for at most `seconds` if anything changed since the last time.

        An index that is being rebuilt is completed first, within its patience.
        """
        if self._index_embedder is None or self._embedded_count >= self._change_count:
            return
        if self._pending:
            files = await self._files.list(self._folder)
            await self._catch_up(files, ALL_DOCUMENT_TYPES, seconds=self._patience_seconds)
        await self.embed(seconds=seconds)

    async def serve(self) -> None:
        """Compute vectors of new chunks for as long as this runs; returns at once without an embedder.

        What was left, for want of time or as the embedder failed, is tried again without a change.
        """
        while self._index_embedder is not None:
            await self.embed(seconds=_EMBED_SECONDS)
            wait = self._index_embedder.retry_seconds
            with anyio.move_on_after(math.inf if wait is None else wait):
                await self._change_event.wait()
            self._change_event = anyio.Event()

    async def _missing_vectors(self, sense: "SemanticQuery", limit: int) -> "MissingVectors | None":
        async def look(database: Database) -> "MissingVectors | None":
            if not self._is_current_database(database):
                return None
            segments = await anyio.to_thread.run_sync(self._searcher_for, database)
            found = await database.read(lambda reader: segments.missing_vectors(reader, sense, limit))
            # documents that are not indexed yet need their vectors
            return replace(found, unused=found.unused[:0]) if self._pending else found

        return await self._file.run(look)

    async def outlines(self, documents: Sequence[FileInfo]) -> list[DocumentOutline]:
        """Return the outlines of all memory documents of the workspace, in this order.

        Only changed documents are read. A document that can't be read is left out.
        """
        return await self._outline_cache.outlines(documents)

    async def note_sound(self, outline: DocumentOutline, data: bytes) -> None:
        """Remember that a check found no damage in these bytes, if they are those of the outline."""
        await self._outline_cache.note_sound(outline, data)

    def freshness(self) -> Freshness:
        """Return how far the index is behind the files, as of the last search, refresh or append."""
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
        """Close the index. Changes that are not indexed yet are indexed after it is opened again."""
        if self._searcher is not None:
            await self._compact()
        async with self._ingest_lock:
            await self._file.close()
        if self._index_embedder is not None:
            await self._index_embedder.close()

    async def _compact(self) -> None:
        """Compact the recently added rows so that they load quickly, if there are many."""

        async def fold(database: Database) -> None:
            segments = await anyio.to_thread.run_sync(self._searcher_for, database)
            await segments.compact(database)

        await self._file.run(fold)

    async def _catch_up(
        self, files: Sequence[FileInfo], sorts: tuple[DocumentType, ...], *, seconds: float | None
    ) -> SyncProgress | None:
        """Index changes for at most `seconds` (None: no limit); return None if the index can't be used."""
        progress = await self._file.run(
            lambda database: self._ingest_changes(self._ingester_for(database), files, sorts, seconds),
            patient=seconds is None,
        )
        pending = [] if progress is None else [document for document, _ in progress.pending]
        paths = {info.path for info in files} if self._pending else ()
        # a search of what was said tells nothing about memories
        unsearched = frozenset(MEMORY_DOCUMENT_TYPES).difference(sorts)
        pending += [each for each in self._pending if each.document_type in unsearched and each.path in paths]
        self._pending, self._stale_files = pending, len(files) if progress is None else len(pending)
        self._listed_files = tuple(files)
        before, self._synced_files = self._synced_files, None
        if progress is not None and progress.has_changes:
            self._note_change()
        if progress is not None and not progress.has_changes and not progress.pending and self._ingester is not None:
            now, covered, revision = self._listed_files, frozenset(sorts), self._ingester[1].revision
            if before is not None and (before[0], before[2]) == (now, revision):
                covered |= before[1]
            self._synced_files = (now, covered, revision)
        return progress

    async def _ingest_changes(
        self, intake: Ingester, files: Sequence[FileInfo], sorts: tuple[DocumentType, ...], seconds: float | None
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
        """Return whether it is the database that was synchronized; one that was recreated since is empty."""
        return self._ingester is not None and self._ingester[0] is database

    def _ingester_for(self, database: Database) -> Ingester:
        if self._ingester is None or self._ingester[0] is not database:
            self._ingester = (database, Ingester(database, self._files, self._redactor))
        return self._ingester[1]

    def _searcher_for(self, database: Database) -> "CorpusSearcher":
        """Return the in-memory rows of the database; call it outside the event loop."""
        if self._searcher is None or self._searcher[0] is not database:
            # numpy is loaded by the first search, not by importing the package
            from ricordo.search.segments import CorpusSearcher

            self._searcher = (database, CorpusSearcher())
        return self._searcher[1]


def _create_index_embedder(
    embedder: "Embedder", beside: Path, commit: Commit | None, ann_vectors: int, check: Callable[[], None] | None
) -> "IndexEmbedder":
    from ricordo.search.embedding import IndexEmbedder

    return IndexEmbedder(
        embedder, beside.with_name(f"{beside.stem}_vectors.db"), commit=commit, ann_vectors=ann_vectors, check=check
    )
