"""Migration: save every entry of one store in another, each once, and verify the result.

The source is only listed. Entries are saved oldest first, so their order stays the same, and with their ids, so that a
second run finds them. Invariant: an entry counts as moved only if it was read back unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ricordo.clock import truncate_to_milliseconds
from ricordo.errors import InvalidInput, RicordoError, StorageError
from ricordo.guard import has_secret
from ricordo.lazy import dataclass
from ricordo.stores.contract import KeepsTombstones, Store, entries_as_stored
from ricordo.workspace.entry import Entry

__all__ = [
    "Migration",
    "MigrationFailure",
    "list_entries",
    "migrate",
    "plan_migration",
    "skip_forgotten",
    "verify_migration",
]


_LOST = "it was saved, and can't be read back"
_OTHER = "another memory has this id"
_CHANGED = "it was read back with another "


@dataclass(frozen=True, kw_only=True)
class MigrationFailure:
    """An entry that could not be moved, or changed on the way, and the reason."""

    id: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Migration:
    """The plan or the result of a migration.

    `pending` are the entries to save, oldest first; `already_there` existed already. `forgotten` counts entries that
    were forgotten in the target and are not saved again. `redacted` counts entries with a secret that was replaced by
    its mark.
    """

    total: int
    pending: tuple[Entry, ...] = ()
    already_there: int = 0
    copied: tuple[Entry, ...] = ()
    redacted: int = 0
    forgotten: int = 0
    failed: tuple[MigrationFailure, ...] = ()


async def list_entries(store: Store, name: str) -> list[Entry]:
    """Return all entries of a store, newest first; `name` is for the error. Raises: InvalidInput if it can't list."""
    entries = await entries_as_stored(store)
    if entries is None:
        raise InvalidInput(f"The store {name} can't list what it keeps, so nothing can be moved from or to it.")
    return entries


def plan_migration(source: Sequence[Entry], target: Sequence[Entry]) -> Migration:
    """Return the entries to save so that `target` has all of `source`; both are newest first.

    Duplicates in the source count once. Of two different entries with the same id, the newer one is used.
    """
    target_by_id = {entry.id: entry for entry in target}
    newest = _newest_by_id(source)
    older_versions = [entry for entry in source if _first_difference(newest[entry.id], entry)]
    present = [entry for entry in newest.values() if entry.id in target_by_id]
    different = [entry for entry in present if _first_difference(entry, target_by_id[entry.id])] + older_versions
    return Migration(
        total=len(newest) + len(older_versions),
        pending=tuple(entry for entry in reversed(newest.values()) if entry.id not in target_by_id),
        already_there=len(present) + len(older_versions) - len(different),
        failed=tuple(MigrationFailure(id=entry.id, reason=_OTHER) for entry in different),
    )


async def skip_forgotten(plan: Migration, target: Store) -> Migration:
    """Return the plan without entries that were forgotten in the target. Raises `StorageError`."""
    keeps = target.offers(KeepsTombstones)
    if keeps is None or not await keeps.tombstones():
        return plan
    waiting = tuple([entry for entry in plan.pending if await keeps.tombstone_of(entry) is None])
    return replace(plan, pending=waiting, forgotten=len(plan.pending) - len(waiting))


async def migrate(plan: Migration, target: Store, on_progress: Callable[[int], None]) -> Migration:
    """Save the pending entries in `target`; `on_progress` is called after every entry.

    An entry that the store refuses is skipped and reported. After a storage failure, no further entry is tried.
    """
    moved: list[Entry] = []
    failed = list(plan.failed)
    for place, entry in enumerate(plan.pending):
        try:
            moved.append(await target.save(entry))
        except StorageError as error:
            failed += [MigrationFailure(id=unsaved.id, reason=str(error)) for unsaved in plan.pending[place:]]
            on_progress(len(plan.pending) - place)
            break
        except RicordoError as error:
            failed.append(MigrationFailure(id=entry.id, reason=str(error)))
        on_progress(1)
    contents = {entry.id: entry.content for entry in plan.pending}
    redacted = sum(entry.content != contents[entry.id] for entry in moved)
    return replace(plan, copied=tuple(moved), redacted=redacted, failed=tuple(failed))


def verify_migration(migration: Migration, source: Sequence[Entry], target: Sequence[Entry]) -> Migration:
    """Return the migration with entries as failed that the reopened `target` does not hold unchanged."""
    target_by_id: dict[str, list[Entry]] = {}
    for entry in target:
        target_by_id.setdefault(entry.id, []).append(entry)
    before, moved_ids = _newest_by_id(source), {entry.id for entry in migration.copied}
    failed = [
        MigrationFailure(id=entry_id, reason=reason)
        for entry_id, entry in before.items()
        if entry_id in moved_ids and (reason := _explain_failure(entry, target_by_id.get(entry_id, [])))
    ]
    wrong = {each.id for each in failed}
    return replace(
        migration,
        copied=tuple(entry for entry in migration.copied if entry.id not in wrong),
        failed=(*migration.failed, *failed),
    )


def _newest_by_id(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Return the first entry with each id, in order."""
    newest: dict[str, Entry] = {}
    for entry in entries:
        newest.setdefault(entry.id, entry)
    return newest


def _explain_failure(entry: Entry, stored: Sequence[Entry]) -> str:
    if not stored:
        return _LOST
    if len(stored) > 1:
        return f"it is there {len(stored)} times"
    different = _first_difference(entry, stored[0])
    return f"{_CHANGED}{different}" if different else ""


def _first_difference(entry: Entry, stored: Entry) -> str:
    """Return the first difference from the saved entry; empty if there is none except for redacted secrets."""
    expected, actual = _comparable_fields(entry), _comparable_fields(stored)
    return next((name for name, value in expected.items() if actual[name] != value and not has_secret(str(value))), "")


def _comparable_fields(entry: Entry) -> Mapping[str, object]:
    return {
        "content": entry.content, "kind": entry.kind, "tags": entry.tags, "state": entry.state, "author": entry.by,
        "time": truncate_to_milliseconds(entry.time) if entry.time else None,
        "time of being said": truncate_to_milliseconds(entry.since) if entry.since else None,
        "source": entry.source, "confidence": entry.confidence, "predecessor": entry.supersedes,
        "pin": entry.pinned, "confirmation": truncate_to_milliseconds(entry.confirmed) if entry.confirmed else None,
        "reason": entry.reason, "rule": entry.rule, "further field": entry.extra,
    }  # fmt: skip
