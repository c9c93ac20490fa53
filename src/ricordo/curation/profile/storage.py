"""Stores of profiles, in files and in memory, and the archive of facts that leave a profile.

A profile is one JSON document, replaced as a whole by one change set. It is cached until its file changes. A save names
the profile that it is based on, and is merged with changes that others saved meanwhile.

Invariants: a failed save leaves the file and the cache unchanged. An unreadable record is removed from the document
only by moving it to a separate file; an unreadable document is never replaced by a save. An archived entry has the id
of its fact, so archiving twice writes once.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from anyio.to_thread import run_sync

from ricordo.clock import Clock, format_rfc3339
from ricordo.curation.profile.updates import parse_confidence
from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, ScopeMismatch, VersionConflict
from ricordo.guard.redact import Redactor
from ricordo.language import split_sentences
from ricordo.lazy import dataclass
from ricordo.scope import Scope
from ricordo.storage import ABSENT, FileInfo, FileStore, compute_version
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import remove_entries
from ricordo.workspace.history.change_sets import CURATION_LOCK, ChangeSets, Edit
from ricordo.workspace.history.tombstones import Tombstone, content_digest, read_tombstones
from ricordo.workspace.layout import LEDGERS, TOMBSTONES, profile_path_for
from ricordo.workspace.ledger import append_block, find_entries, find_ledger_copies, read_entries, render_block
from ricordo.workspace.merge import has_same_content, merge_profiles, stamp_changes
from ricordo.workspace.profile import (
    BrokenRecord,
    Fact,
    Profile,
    create_profile,
    dump_profile_json,
    fact_entry,
    kind_for_category,
    parse_profile,
    parse_profile_time,
    profile_from_document,
    profile_to_document,
)

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue

__all__ = [
    "LEARNING_AUTHOR",
    "FactArchive",
    "FileProfileStore",
    "InMemoryProfileStore",
    "LedgerArchive",
    "ProfileStore",
    "ProfileStores",
    "SavedProfile",
    "archive_entry_id",
    "copy_profile",
]


LEARNING_AUTHOR = "profile"
"""The author of changes that were learned in the background."""


@dataclass(frozen=True, kw_only=True)
class SavedProfile:
    """A saved profile; `change` is the id of its change set, for an undo, None if the store has none."""

    profile: Profile
    change: str | None = None


class ProfileStore(Protocol):
    """Stores the profile of one user and agent. Every method may raise storage errors."""

    @property
    def broken_records(self) -> tuple[BrokenRecord, ...]:
        """The records that could not be read when the document was last loaded; the others are used."""
        ...

    async def load(self) -> Profile:
        """Return the profile, an empty one when none was saved. It is cached while unchanged.

        Raises: DocumentInvalid when the whole document can't be read; it is never treated as empty.
        """
        ...

    async def reload(self) -> Profile:
        """Return the current profile, bypassing the cache."""
        ...

    async def save(
        self, profile: Profile, *, base: Profile, by: str, why: str = "", forget: bool = False
    ) -> SavedProfile:
        """Save `profile`, made from `base`, durably and as a whole, as the next revision, and return it.

        If another writer saved since `base`, changes to different parts are merged; facts that both added in the same
        words are added once. Changed parts get the current time and changed facts a new revision, unless the writer set
        them. With `forget` the facts that this save removes are not learned again. If nothing changes, nothing is
        written. Raises: VersionConflict when both changed the same fact or summary; then nothing is written.
        """
        ...

    async def clear(self, *, by: str, why: str = "") -> SavedProfile:
        """Save an empty profile, even if the old one can't be read; its facts are not learned again."""
        ...

    async def load_forgotten_filter(self) -> Callable[[str], bool]:
        """Return a function that tells whether a content is forgotten now and must not be learned again."""
        ...


def copy_profile(profile: Profile) -> Profile:
    """Return a copy of the profile that shares no mutable value with it."""
    return replace(
        profile,
        summaries={name: replace(each, extra=deepcopy({**each.extra})) for name, each in profile.summaries.items()},
        facts=tuple(replace(fact, extra=deepcopy({**fact.extra})) for fact in profile.facts),
        extra=deepcopy({**profile.extra}),
    )


class InMemoryProfileStore:
    """The same contract as with files, except for durability."""

    def __init__(self, clock: Clock) -> None:
        """Start with an empty profile."""
        self._forgotten_digests: frozenset[str] = frozenset()
        self._clock = clock
        self._profile: Profile | None = None

    @property
    def broken_records(self) -> tuple[BrokenRecord, ...]:
        """Always empty: values in memory can be read."""
        return ()

    async def load(self) -> Profile:
        """Return the profile, an empty one when none was saved."""
        return copy_profile(self._profile) if self._profile else create_profile(self._clock.now())

    async def reload(self) -> Profile:
        """Return the profile."""
        return await self.load()

    async def save(
        self, profile: Profile, *, base: Profile, by: str, why: str = "", forget: bool = False
    ) -> SavedProfile:
        """Save `profile`, made from `base`. Raises: VersionConflict, InvalidInput."""
        del by, why
        current = await self.load()
        merged = merge_profiles(base, profile, current)
        if self._profile is None or not has_same_content(merged, current):
            self._store(merged, current, forget=forget)
        return SavedProfile(profile=await self.load())

    async def clear(self, *, by: str, why: str = "") -> SavedProfile:
        """Save an empty profile."""
        del by, why
        self._store(create_profile(self._clock.now()), await self.load(), forget=True)
        return SavedProfile(profile=await self.load())

    async def load_forgotten_filter(self) -> Callable[[str], bool]:
        """Return a function that tells whether a content is forgotten and must not be learned."""
        digests = self._forgotten_digests
        return lambda content: content_digest(content, b"") in digests

    def _store(self, profile: Profile, before: Profile, *, forget: bool) -> None:
        saved = stamp_changes(profile, before, self._clock.now())
        profile_to_document(saved)
        if forget:
            removed = (fact.content for fact in before.facts if saved.find_fact(fact.id) is None)
            self._forgotten_digests |= {content_digest(content, b"") for content in removed}
        self._profile = copy_profile(saved)


FactArchive: TypeAlias = Callable[[Sequence[Fact]], Awaitable[None]]
"""Stores facts that leave a profile; if it raises a storage error, they stay in the profile."""
_ARCHIVE_TAG = "profile"
_ARCHIVE_LOCK = "profile-archive"


def archive_entry_id(fact: Fact) -> str:
    """Return the id of a fact's entry in the archive."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in fact.id)[:64]


@dataclass(frozen=True, kw_only=True)
class LedgerArchive:
    """Archives facts in the ledgers of a workspace; `scope` names their owner."""

    files: FileStore
    clock: Clock
    redactor: Redactor
    scope: Scope | None = None

    async def __call__(self, facts: Sequence[Fact]) -> None:
        """Append the facts that are missing in today's archive, durably. Raises: StorageError."""
        day = self.clock.today()
        path = f"{LEDGERS}/archive/{day.isoformat()}.md"
        async with self.files.lock(_ARCHIVE_LOCK):
            try:
                archived = {(each.entry.id, each.entry.content) for each in await read_entries(self.files, path)}
            except FileMissing:
                archived = set()
            entries = [self._to_entry(fact) for fact in facts if fact.content.strip()]
            new_entries = [entry for entry in entries if (entry.id, self.redactor.clean(entry.content)) not in archived]
            if new_entries:
                block = await render_block(self.files, day, new_entries, self.redactor)
                await append_block(self.files, replace(block, path=path))

    def _to_entry(self, fact: Fact) -> Entry:
        has_source = fact.source.thread not in {"", "unknown", "manual", "import", "consolidation"}
        return Entry(
            id=archive_entry_id(fact),
            time=self.clock.now(),
            since=parse_profile_time(fact.created_at),
            content=fact.content,
            kind=kind_for_category(fact.category),
            tags=(_ARCHIVE_TAG,),
            scope=self.scope,
            by="flush",
            confidence=parse_confidence(fact.confidence) or 0.0,
            source=Source(
                session=fact.source.thread if has_source else None,
                messages=tuple(filter(None, fact.source.messages)) if has_source else (),
                quote=(fact.source.quote or None) if has_source else None,
            ),
        )


_LOG = logging.getLogger(__name__)
_STORE_LOCK = "profiles"
_SAVE_ACT = "profile"
_MAX_TRIES = 8
_MAX_OPEN = 64


@dataclass(frozen=True, kw_only=True)
class _LoadedProfile:
    """A profile as it was read, with the version of its file and the fingerprint that detects changes."""

    profile: Profile
    version: str
    fingerprint: tuple[int, int, str] | None
    broken: tuple[BrokenRecord, ...] = ()


class _ForgottenMeanwhile(VersionConflict):
    """Content to save was forgotten since it was learned: it must be learned again."""


class FileProfileStore:
    """The profile at `path`. Several stores may be open on one file, in this process and in others."""

    def __init__(
        self, files: FileStore, changes: ChangeSets, *, path: str, redactor: Redactor, key: bytes, clock: Clock,
        user: str = "",
    ) -> None:  # fmt: skip
        """Read from `files` and write `user`'s changes; `key` is the root's secret for forgotten content."""
        self.path = path
        self._user = user
        self._files = files
        self._changes = changes
        self._redactor = redactor
        self._key = key
        self._clock = clock
        self._loaded: _LoadedProfile | None = None

    @property
    def broken_records(self) -> tuple[BrokenRecord, ...]:
        """The records that could not be read when the document was last loaded."""
        return self._loaded.broken if self._loaded else ()

    async def load(self) -> Profile:
        """Return the profile, an empty one when none was saved. An unchanged file is not read again.

        Raises: DocumentInvalid for a document that can't be read; it says what to do.
        """
        return copy_profile((await self._load_current()).profile)

    async def reload(self) -> Profile:
        """Return the profile from the current file. Raises the same errors as `load`."""
        self._loaded = None
        return await self.load()

    async def save(
        self, profile: Profile, *, base: Profile, by: str, why: str = "", forget: bool = False
    ) -> SavedProfile:
        """Save `profile`, made from `base`, as one change set by `by`; nothing is written if nothing changes.

        With `forget` the facts that this save removes are not learned again. Raises: VersionConflict if another writer
        changed the same fact or summary since `base`; DocumentInvalid; StorageFull and its siblings.
        """
        async with self._files.lock(_STORE_LOCK):
            for _ in range(_MAX_TRIES):
                current = await self._load_current()
                merged = merge_profiles(base, profile, current.profile)
                if current.version != ABSENT and not current.broken and has_same_content(merged, current.profile):
                    return SavedProfile(profile=copy_profile(current.profile))
                try:
                    return await self._write(merged, current, by=by, why=why, forget=forget)
                except _ForgottenMeanwhile:
                    raise
                except VersionConflict:
                    # a person or another program wrote the file without the lock
                    self._loaded = None
        raise VersionConflict(f"{self.path} is being changed again and again: repeat the edit.")

    async def clear(self, *, by: str, why: str = "") -> SavedProfile:
        """Save an empty profile; its facts are not learned again. An unreadable document is moved to another file."""
        async with self._files.lock(_STORE_LOCK):
            try:
                current = await self._load_current()
            except DocumentInvalid:
                current = await self._move_aside(by)
            return await self._write(create_profile(self._clock.now()), current, by=by, why=why, forget=True)

    async def load_forgotten_filter(self) -> Callable[[str], bool]:
        """Return a function that tells whether a content is forgotten and must not be learned again."""
        digests = (await read_tombstones(self._files)).digests
        return lambda content: content_digest(content, self._key) in digests

    async def read_document(self) -> bytes | None:
        """Return the bytes of the document; None when there is none."""
        try:
            return (await self._files.read(self.path)).data
        except FileMissing:
            return None

    async def back_up(self, data: bytes) -> str:
        """Save these bytes permanently next to the document, without secrets, and return the path, named by digest.

        Raises: AlreadyExists if the file exists with other bytes.
        """
        text = data.decode("utf-8", "surrogateescape")
        data = (await run_sync(self._redactor.clean, text)).encode("utf-8", "surrogateescape")
        path = f"{self.path.removesuffix('.json')}.backup-{compute_version(data)[:12]}.json"
        try:
            await self._files.create(path, data)
        except AlreadyExists:
            if (await self._files.read(path)).data != data:
                raise
        return path

    async def _load_current(self) -> _LoadedProfile:
        """Return the profile in the file, from the cache if the file did not change."""
        info = await self._files.info(self.path)
        if self._loaded is None or self._loaded.fingerprint != _file_fingerprint(info):
            self._loaded = await self._read(info)
        return self._loaded

    async def _read(self, info: FileInfo | None) -> _LoadedProfile:
        try:
            stored = await self._files.read(self.path)
        except FileMissing:
            return _LoadedProfile(profile=create_profile(self._clock.now()), version=ABSENT, fingerprint=None)
        try:
            parsed = await run_sync(parse_profile, stored.data, self.path)
        except DocumentInvalid as error:
            raise DocumentInvalid(
                f"{error} Mend the file, take its last change back with `ricordo undo`, or begin anew with "
                "`ricordo profile clear`, which keeps it beside the new one."
            ) from error
        if parsed.broken:
            places = ", ".join(each.location for each in parsed.broken)
            _LOG.warning("%s: what can't be read is left out, and kept when it is saved: %s", self.path, places)
        # a person may have written a secret into the file: it stays there, and is not shown
        profile = await run_sync(self._redact, parsed.profile)
        return _LoadedProfile(
            profile=profile, version=stored.version, fingerprint=_file_fingerprint(info), broken=parsed.broken
        )

    async def _write(
        self, profile: Profile, current: _LoadedProfile, *, by: str, why: str, forget: bool
    ) -> SavedProfile:
        saved = await run_sync(self._redact, stamp_changes(profile, current.profile, self._clock.now()))
        data = await run_sync(lambda: dump_profile_json(profile_to_document(saved)))
        edits = [Edit(path=self.path, expected_hash=current.version, data=data)]
        if current.broken:
            edits.append(await self._broken_records_edit(current.broken))
        removed = [fact for fact in current.profile.facts if saved.find_fact(fact.id) is None] if forget else []
        if removed:
            edits.append(await self._tombstones_edit(removed, saved))
        # the lock prevents a forget between this check and the write
        async with self._files.lock(CURATION_LOCK):
            if by == LEARNING_AUTHOR and await self._says_forgotten(saved, current.profile):
                raise _ForgottenMeanwhile(f"{self.path} would say again what was forgotten meanwhile.")
            edits += await self._ledger_edits(removed)
            change = await self._changes.apply(
                edits, act=_SAVE_ACT, who=by, why=self._redactor.clean(why), user=self._user
            )
        # the file is read again, so that no outdated profile is returned
        self._loaded = None
        return SavedProfile(profile=copy_profile(saved), change=change.id)

    async def _says_forgotten(self, saved: Profile, current: Profile) -> bool:
        """Tell whether `saved` adds forgotten content to `current`."""
        is_forgotten = await self.load_forgotten_filter()
        known_contents = {fact.content for fact in current.facts}
        added = [fact.content for fact in saved.facts if fact.content not in known_contents]
        for name, each in saved.summaries.items():
            if each.summary != current.summaries[name].summary:
                added += [sentence.text for sentence in split_sentences(each.summary)]
        return any(map(is_forgotten, added))

    def _redact(self, profile: Profile) -> Profile:
        """Return a profile with marks instead of secrets, in all of its texts."""
        document = profile_to_document(profile)
        redacted = self._redactor.clean_json(cast("JsonValue", document))
        return (
            profile_from_document(redacted).profile if redacted != document and isinstance(redacted, dict) else profile
        )

    async def _broken_records_edit(self, broken: Sequence[BrokenRecord]) -> Edit:
        """Return the edit that saves unreadable records in a separate file."""
        records: list[JsonValue] = [
            {"where": each.location, "why": each.reason, "record": each.record} for each in broken
        ]
        document = {
            "from": self.path,
            "at": format_rfc3339(self._clock.now()),
            "records": self._redactor.clean_json(records),
        }
        return Edit(path=await self._free_path(), expected_hash=ABSENT, data=dump_profile_json(document))

    async def _tombstones_edit(self, removed: Sequence[Fact], saved: Profile) -> Edit:
        """Return the edit that adds tombstones for the facts `removed`."""
        tombstones = await read_tombstones(self._files)
        remaining_digests = {content_digest(fact.content, self._key) for fact in saved.facts}
        new = [
            Tombstone(id=fact.id, digest=digest, session=fact.source.thread if fact.source.messages else "",
                      message=fact.source.messages[0] if fact.source.messages else "")
            for fact in removed
            if (digest := content_digest(fact.content, self._key)) not in remaining_digests
        ]  # fmt: skip
        return Edit(path=TOMBSTONES, expected_hash=tombstones.version, data=tombstones.render_with(new))

    async def _ledger_edits(self, removed: Sequence[Fact]) -> list[Edit]:
        """Return the edits that remove the entries of ledgers for which the facts `removed` stood."""
        copies = await find_ledger_copies(self._files, [fact_entry(fact) for fact in removed]) if removed else {}
        located = [one for name in copies for one in await find_entries(self._files, name)]
        edits = []
        for path in dict.fromkeys(one.path for one in located):
            stored = await self._files.read(path)
            rest = await run_sync(remove_entries, stored.data, path, {*copies})
            edits.append(Edit(path=path, expected_hash=stored.version, data=rest))
        return edits

    async def _move_aside(self, author: str) -> _LoadedProfile:
        """Rename an unreadable document, in its own change set."""
        stored = await self._files.read(self.path)
        edits = [
            Edit(path=await self._free_path(), expected_hash=ABSENT, data=stored.data),
            Edit(path=self.path, expected_hash=stored.version, data=None),
        ]
        await self._changes.apply(
            edits, act=_SAVE_ACT, who=author, why="the document could not be read", user=self._user
        )
        return _LoadedProfile(profile=create_profile(self._clock.now()), version=ABSENT, fingerprint=None)

    async def _free_path(self) -> str:
        """Return an unused path for unreadable content."""
        stem, number = self.path.removesuffix(".json"), 1
        while await self._files.info(f"{stem}.broken-{number}.json") is not None:
            number += 1
        return f"{stem}.broken-{number}.json"


class ProfileStores:
    """The profiles of one root, one for each user and agent; the same scope gets the same store."""

    def __init__(
        self, files: FileStore, changes: ChangeSets, *, owner: Scope, redactor: Redactor, key: bytes, clock: Clock
    ) -> None:
        """Store them in the root of `owner`, whose own profile needs no name."""
        self._owner = owner
        self._make = partial(FileProfileStore, files, changes, redactor=redactor, key=key, clock=clock)
        self._open_stores: dict[str, FileProfileStore] = {}

    def open_store(self, scope: Scope) -> FileProfileStore:
        """Return the store for the user and agent of `scope`. Raises: ScopeMismatch for a scope of another root."""
        path = profile_path_for(self._owner, scope)
        if not path:
            raise ScopeMismatch(f"This root belongs to {self._owner}; it holds no profile for {scope}.")
        store = self._open_stores.pop(path, None) or self._make(path=path, user=scope.user or "")
        while len(self._open_stores) >= _MAX_OPEN:
            del self._open_stores[next(iter(self._open_stores))]
        self._open_stores[path] = store
        return store


def _file_fingerprint(info: FileInfo | None) -> tuple[int, int, str] | None:
    return (info.size, info.modified_ns, info.stamp) if info else None
