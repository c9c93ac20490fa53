"""Permission rules from memories: what remembered rules forbid of tool calls, or ask a person about.

They are read from every document of every visible root, so a rule holds as long as one document has it. Only forgetting
the memory, or undoing its save, switches it off.

Invariant: a document that is there and can't be read is never taken for one without rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageFailed
from ricordo.guard.permissions import PermissionRule
from ricordo.storage import FileInfo, FileStore
from ricordo.workspace.entry import Entry, parse_memory_rule
from ricordo.workspace.entry_codec import RULE_FIELD_START, LocatedEntry, parse_entries, preview_line
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, is_memory

__all__ = ["ListsRuleSources", "MemoryRules", "RuleSource"]


_MAX_TRIES = 5


class RuleSource(Protocol):
    """A place of memories, as far as their rules are read in it: its `files`, under a `label` of its own."""

    @property
    def label(self) -> str:
        """What tells it from the others."""
        ...

    @property
    def files(self) -> FileStore:
        """Where its documents are."""
        ...


class ListsRuleSources(Protocol):
    """Whose memory it is: what `Layers` offers of its places is one."""

    async def places(self) -> Sequence[RuleSource]:
        """Return the visible places, the narrowest first."""
        ...


@dataclass(frozen=True, kw_only=True)
class _SourceRules:
    """What was read of one place: the documents as they were listed, and the rules of each by its path."""

    listing: tuple[FileInfo, ...] = ()
    rules: Mapping[str, tuple[PermissionRule, ...]] = field(default_factory=dict)


class MemoryRules:
    """Returns the rules of what is remembered in the places of one scope."""

    def __init__(self, layers: ListsRuleSources) -> None:
        """Read the places of `layers`, each document again only when its size or its time of modification changed."""
        self._layers = layers
        self._cache: dict[str, _SourceRules] = {}

    async def __call__(self) -> tuple[PermissionRule, ...]:
        """Return the rules of all visible places, the narrowest place first, each rule of a memory once.

        `why` is the first line of the memory, `source` is `memory <id>`. Raises: StorageError if a document or a folder
        of memory is there and can't be read: then its rules are not known.
        """
        places = await self._layers.places()
        return _deduplicate([rule for place in places for rule in await self._read_rules(place)])

    async def _read_rules(self, place: RuleSource) -> list[PermissionRule]:
        """Return the rules of one place, those of MEMORY.md first, then by path."""
        read = self._cache.get(place.label, _SourceRules())
        for _ in range(_MAX_TRIES):
            # after reading it is listed once more, so that a document that is just being moved is not missed
            listing = await _list_documents(place.files)
            if read.listing == listing:
                break
            read = await _read_changed(place.files, listing, read)
        self._cache[place.label] = read
        return [rule for info in read.listing for rule in read.rules[info.path]]


async def _list_documents(files: FileStore) -> tuple[FileInfo, ...]:
    """Return the documents that can hold entries, MEMORY.md first."""
    memory = await files.info(MEMORY_PATH)
    listed = [info for info in await files.list(LEDGERS) if is_memory(info.path)]
    # the file of a long entry is its content and nothing else: what looks like a rule in it is none
    entries = [info for info in listed if not info.path.startswith(f"{LEDGERS}/long/")]
    return (*([memory] if memory else []), *entries)


async def _read_changed(files: FileStore, listing: Sequence[FileInfo], before: _SourceRules) -> _SourceRules:
    """Return what the documents of `listing` hold; those that are as they were `before` are not read again."""
    closed = await files.list_unreadable(LEDGERS)
    if closed:
        raise StorageFailed(f"The folder {closed[0]} can't be read, so the rules in it are not known.")
    known = set(before.listing)
    rules: dict[str, tuple[PermissionRule, ...]] = {}
    for info in listing:
        if info in known:
            rules[info.path] = before.rules[info.path]
            continue
        try:
            data = (await files.read(info.path)).data
        except FileMissing:
            data = b""
        rules[info.path] = await run_sync(_parse_rules, info.path, data)
    return _SourceRules(listing=tuple(listing), rules=rules)


def _parse_rules(path: str, data: bytes) -> tuple[PermissionRule, ...]:
    if RULE_FIELD_START not in data:
        return ()
    found = parse_entries(data, path, only=lambda bullet: RULE_FIELD_START in bullet)
    if not all(_has_own_id(one, data) for one in found):
        # the id of a bullet that has none depends on all bullets before it
        found = parse_entries(data, path)
    return tuple(_to_rule(one.entry, one.entry.rule) for one in found if one.entry.rule and one.entry.is_rule)


def _has_own_id(found: LocatedEntry, data: bytes) -> bool:
    return f"^{found.entry.id}".encode() in data[found.offset : found.offset + found.length]


def _to_rule(entry: Entry, text: str) -> PermissionRule:
    return parse_memory_rule(text, why=preview_line(entry.content), source=f"memory {entry.id}")


def _deduplicate(rules: Iterable[PermissionRule]) -> tuple[PermissionRule, ...]:
    found: dict[PermissionRule, PermissionRule] = {}
    for rule in rules:
        found.setdefault(replace(rule, why=""), rule)
    return tuple(found.values())
