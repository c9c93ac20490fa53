"""Permission rules from memories: rules that forbid tool calls or ask a person for approval.

They are read from every document of every visible root, so a rule holds as long as one document contains it. Only
forgetting the memory, or undoing its save, removes it.

Invariant: a document that exists but can't be read is never treated as one without rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageFailed
from ricordo.guard.permissions import PermissionRule
from ricordo.lazy import dataclass
from ricordo.storage import FileInfo, FileStore
from ricordo.workspace.entry import Entry, parse_memory_rule
from ricordo.workspace.entry_codec import RULE_FIELD_START, LocatedEntry, parse_entries, preview_line
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, is_memory

__all__ = ["ListsRuleSources", "MemoryRules", "RuleSource"]


_MAX_TRIES = 5


class RuleSource(Protocol):
    """A place of memories with rules: its `files`, under a unique `label`."""

    @property
    def label(self) -> str:
        """The unique name of the place."""
        ...

    @property
    def files(self) -> FileStore:
        """The files with its documents."""
        ...


class ListsRuleSources(Protocol):
    """Provides places with rules; `LayeredMemory` is one."""

    async def places(self) -> Sequence[RuleSource]:
        """Return the visible places, narrowest first."""
        ...


@dataclass(frozen=True, kw_only=True)
class _SourceRules:
    """The documents of one place as listed, and the rules of each by path."""

    listing: tuple[FileInfo, ...] = ()
    rules: Mapping[str, tuple[PermissionRule, ...]] = field(default_factory=dict)


class MemoryRules:
    """Reads the rules from memories in the places of one scope."""

    def __init__(self, layers: ListsRuleSources) -> None:
        """Read the places of `layers`; a document is read again only if its size or modification time changed."""
        self._layers = layers
        self._cache: dict[str, _SourceRules] = {}

    async def __call__(self) -> tuple[PermissionRule, ...]:
        """Return the rules of all visible places, narrowest place first, each memory's rule once.

        `why` is the first line of the memory, `source` is `memory <id>`. Raises: StorageError if a document or folder
        of memory exists but can't be read, because its rules are then unknown.
        """
        places = await self._layers.places()
        return _deduplicate([rule for place in places for rule in await self._read_rules(place)])

    async def _read_rules(self, place: RuleSource) -> list[PermissionRule]:
        """Return the rules of one place, those of MEMORY.md first, then by path."""
        cached = self._cache.get(place.label, _SourceRules())
        for _ in range(_MAX_TRIES):
            # List again after reading, so that a document that is being moved is not missed.
            listing = await _list_documents(place.files)
            if cached.listing == listing:
                break
            cached = await _read_changed(place.files, listing, cached)
        self._cache[place.label] = cached
        return [rule for info in cached.listing for rule in cached.rules[info.path]]


async def _list_documents(files: FileStore) -> tuple[FileInfo, ...]:
    """Return the documents that can hold entries, MEMORY.md first."""
    memory = await files.info(MEMORY_PATH)
    infos = [info for info in await files.list(LEDGERS) if is_memory(info.path)]
    # The file of a long entry is only its content: text in it that looks like a rule is not one.
    entries = [info for info in infos if not info.path.startswith(f"{LEDGERS}/long/")]
    return (*([memory] if memory else []), *entries)


async def _read_changed(files: FileStore, listing: Sequence[FileInfo], previous: _SourceRules) -> _SourceRules:
    """Return the rules in the documents of `listing`; documents unchanged since `previous` are not read again."""
    unreadable = await files.list_unreadable(LEDGERS)
    if unreadable:
        raise StorageFailed(f"The folder {unreadable[0]} can't be read, so the rules in it are not known.")
    unchanged = set(previous.listing)
    rules: dict[str, tuple[PermissionRule, ...]] = {}
    for info in listing:
        if info in unchanged:
            rules[info.path] = previous.rules[info.path]
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
    located_entries = parse_entries(data, path, only=lambda bullet: RULE_FIELD_START in bullet)
    if not all(_has_own_id(one, data) for one in located_entries):
        # The id of a bullet without its own depends on all bullets before it.
        located_entries = parse_entries(data, path)
    return tuple(_to_rule(one.entry, one.entry.rule) for one in located_entries if one.entry.rule and one.entry.is_rule)


def _has_own_id(located: LocatedEntry, data: bytes) -> bool:
    return f"^{located.entry.id}".encode() in data[located.offset : located.offset + located.length]


def _to_rule(entry: Entry, text: str) -> PermissionRule:
    return parse_memory_rule(text, why=preview_line(entry.content), source=f"memory {entry.id}")


def _deduplicate(rules: Iterable[PermissionRule]) -> tuple[PermissionRule, ...]:
    unique: dict[PermissionRule, PermissionRule] = {}
    for rule in rules:
        unique.setdefault(replace(rule, why=""), rule)
    return tuple(unique.values())
