"""Consolidate: gather what is new, propose, check, and write one change set.

Everything is decided on what was read; if any of it changed before the change set is written, the run begins anew. The
cursor moves after the change set: who dies in between reads the same entries again and finds them curated.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.consolidation.check import faults
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.cursor import Cursor, line_digests, save_cursor
from ricordo.consolidation.gather import ACT, Gathered, Gatherer
from ricordo.consolidation.plan import due, propose
from ricordo.consolidation.types import Proposal
from ricordo.errors import StorageBusy, VersionConflict
from ricordo.files import ABSENT, FileStore, version_of
from ricordo.guard.redact import Redactor
from ricordo.tasks import Progress, Report
from ricordo.workspace.changes import ChangeSets, Edit
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import LEDGERS, WORKSPACE, ledger_date
from ricordo.workspace.tombstones import read_tombstones

__all__ = ["ACT", "BUSY", "NOTHING_NEW", "REJECTED", "TOO_SOON", "WHO", "Consolidated", "Consolidator"]

WHO = "consolidation"
NOTHING_NEW = "nothing new"
TOO_SOON = "too soon after the last run"
BUSY = "another consolidation runs"

REJECTED = "rejected"

_LOCK = "consolidate"
_SUPERSEDED = b"[state:: superseded]"
_TRIES = 8
_STEPS = 4


@dataclass(frozen=True, kw_only=True)
class Consolidated:
    """What a run did: `change_id` is empty when it wrote nothing, `skipped` says why it did not even look.

    Counts are of entries: `read` were new, `kept` are curated now, `merged` are said already by another, `superseded`
    lost their place, `left` stay in the ledger only, `waiting` are for the next run. `files` are below the workspace.
    """

    change_id: str = ""
    read: int = 0
    kept: int = 0
    merged: int = 0
    superseded: int = 0
    left: int = 0
    waiting: int = 0
    files: tuple[str, ...] = ()
    skipped: str = ""


class Consolidator:
    """Makes curated memory of the ledgers of one workspace."""

    def __init__(
        self,
        *,
        files: FileStore,
        changes: ChangeSets,
        redactor: Redactor,
        clock: Clock,
        key: bytes,
        config: ConsolidationConfig | None = None,
    ) -> None:
        """Work on `files`; `key` is the root's, by which what was forgotten is recognised."""
        self._files = files
        self._changes = changes
        self._clock = clock
        self._config = config or ConsolidationConfig()
        self._gatherer = Gatherer(files=files, changes=changes, redactor=redactor, key=key, config=self._config)

    async def consolidate(
        self, *, force: bool = False, again: bool = False, report: Report | None = None
    ) -> Consolidated:
        """Curate what the ledgers hold since the last run.

        Skipped when there is nothing new, when the last run is less than `min_gap` ago, unless `force`, and while
        another process does it. With `again` all ledgers are read anew, also what a person took back by undo. `report`
        is told of each of the four steps; a cancellation before the last one leaves memory as it was.

        Raises: StorageError if curated memory can't be read or written; then neither it nor the cursor changes.
        """
        try:
            async with self._files.lock(_LOCK):
                return await self._run(force=force or again, again=again, report=report or _untold)
        except StorageBusy:
            return Consolidated(skipped=BUSY)

    async def preview(self, *, again: bool = False) -> Proposal:
        """Return what a forced run would write now; nothing is written. Raises as `consolidate`."""
        gathered = await self._gatherer.gather(again=again)
        return await run_sync(propose, gathered.material, self._config, abandon_on_cancel=True)

    async def _run(self, *, force: bool, again: bool, report: Report) -> Consolidated:
        for left in reversed(range(_TRIES)):
            report(_step(0, "gathering what is new"))
            gathered = await self._gatherer.gather(again=again)
            if not force and gathered.read and not self._due(gathered):
                return Consolidated(skipped=TOO_SOON, waiting=gathered.read + gathered.waiting)
            try:
                done, overtaken = await self._pass(gathered, report)
            except VersionConflict:
                if not left:
                    raise
                continue
            break
        if overtaken:
            # what was saved or forgotten while this was written is looked at once more, whatever comes of it
            with suppress(VersionConflict):
                await self._pass(await self._gatherer.gather(), report)
        return done

    async def _pass(self, gathered: Gathered, report: Report) -> tuple[Consolidated, bool]:
        """Propose, check and write once, and tell whether somebody wrote meanwhile.

        Raises: VersionConflict if what was read is not so any more; then nothing is written.
        """
        report(_step(1, f"placing {gathered.read} new entries"))
        proposal = await run_sync(propose, gathered.material, self._config, abandon_on_cancel=True)
        if not proposal.documents and not gathered.read:
            return Consolidated(skipped=NOTHING_NEW), False
        report(_step(2, "checking the proposal"))
        wrong = await run_sync(faults, gathered.material, proposal, self._config)
        if wrong:
            return Consolidated(read=gathered.read, skipped=f"{REJECTED}: {wrong[0]}"), False
        if await self._changed_since(gathered, {}):
            raise VersionConflict("Memory changed while it was consolidated.")
        report(_step(3, f"writing {len(proposal.documents)} files"))
        done = await self._write(gathered, proposal)
        return done, await self._changed_since(gathered, proposal.documents)

    def _due(self, gathered: Gathered) -> bool:
        return due(self._clock.now(), gathered.cursor.at, gathered.read + gathered.waiting, self._config)

    async def _write(self, gathered: Gathered, proposal: Proposal) -> Consolidated:
        """Write the documents as one change set, then the cursor. Raises `VersionConflict` if a document changed."""
        change_id = ""
        if proposal.documents:
            edits = [
                Edit(path=path, expected=gathered.versions.get(path, ABSENT), data=data)
                for path, data in sorted(proposal.documents.items())
            ]
            why = f"{len(proposal.kept)} curated, {len(proposal.merged)} merged, {len(proposal.superseded)} superseded"
            change_id = (await self._changes.apply(edits, act=ACT, who=WHO, why=why)).id
        moved = await run_sync(_moved, gathered, proposal.documents)
        await save_cursor(self._files, replace(moved, at=self._clock.now()))
        return Consolidated(
            change_id=change_id,
            read=gathered.read,
            kept=len(proposal.kept),
            merged=len(proposal.merged),
            superseded=len(proposal.superseded),
            left=len(proposal.left),
            waiting=gathered.waiting,
            files=tuple(path.removeprefix(f"{WORKSPACE}/") for path in sorted(proposal.documents)),
        )

    async def _changed_since(self, gathered: Gathered, written: Mapping[str, bytes | None]) -> bool:
        """Tell whether others wrote to a ledger, or forgot something, since it was read; `written` is our own."""
        found = {info.path: info.size for info in await self._files.list(LEDGERS) if ledger_date(info.path)}
        known = {path: len(written.get(path) or data) for path, data in gathered.material.ledgers.items()}
        if any(size != known.get(path) for path, size in found.items() if path not in gathered.unreadable):
            return True
        return (await read_tombstones(self._files)).version != gathered.stones


def _step(done: int, text: str) -> Progress:
    return Progress(done=done, total=_STEPS, text=text)


def _untold(progress: Progress) -> None:
    """Tell nobody."""


def _moved(gathered: Gathered, written: Mapping[str, bytes | None]) -> Cursor:
    """Return the cursor with the ledgers as the run itself has left them."""
    ledgers = dict(gathered.next.ledgers)
    for path, data in written.items():
        if data is None or path not in ledgers:
            continue
        bullets = [data[found.offset : found.offset + found.length] for found in parse_entries(data, path)]
        lines = ledgers[path].lines | line_digests(bullet for bullet in bullets if _SUPERSEDED in bullet)
        whole = ledgers[path].offset == len(gathered.material.ledgers[path])
        read = replace(ledgers[path], offset=len(data), digest=version_of(data), lines=lines)
        ledgers[path] = read if whole else replace(ledgers[path], lines=lines)
    return replace(gathered.next, ledgers=ledgers)
