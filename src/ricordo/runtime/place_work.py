"""Place work: what works in one place, put together: its inbox, what it learns, and how it is kept up."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ricordo.files import FileStore
from ricordo.files.contract import Held
from ricordo.flush.backlog import backlog
from ricordo.index.contract import MEMORY_SORTS, Query
from ricordo.maintenance.session_flush import SessionFlush
from ricordo.maintenance.turns import TurnsAtWork
from ricordo.maintenance.worker import Worker
from ricordo.profile.storage import Profiles
from ricordo.queue import Job
from ricordo.queue.inbox import Inbox
from ricordo.runtime.guarded_models import guarded_embedder
from ricordo.runtime.learning import learning_from
from ricordo.runtime.parts import Parts
from ricordo.runtime.profile_section import profile_sections
from ricordo.runtime.roots import cache_folder
from ricordo.runtime.upkeep import Upkeep, kept_up
from ricordo.scopes import Scope
from ricordo.spending import Meter
from ricordo.stores.place import Place
from ricordo.workspace.layout import QUEUE

__all__ = ["Work", "inbox_of", "work_in", "writable"]

_NEAREST = 5


@dataclass(frozen=True, kw_only=True)
class Work:
    """What works in one place."""

    inbox: Inbox
    meter: Meter
    profiles: Profiles
    flush: SessionFlush
    upkeep: Upkeep
    worker: Worker


def work_in(place: Place, scope: Scope, parts: Parts, turns: TurnsAtWork, opened: Sequence[Place]) -> Work:
    """Return what works in `place`, for `scope`, giving way to `turns`.

    `opened` are the places from which memories may be shown, also those that are added to it later.
    """
    inbox = inbox_of(Path(place.folder), place.files, parts)
    embedder = None if isinstance(parts.embedder, str | None) else guarded_embedder(parts.embedder, place.redactor)
    meter = Meter(place.files, parts.settings.spending, parts.clock)
    profiles = _profiles(place)
    flush = learning_from(
        place, scope, parts.settings, model=parts.model, meter=meter, inbox=inbox, ids=parts.ids,
        emitter=parts.emitter, sections=profile_sections(place, profiles, parts.settings, embedder),
        remembered=partial(_nearest, opened),
    )  # fmt: skip
    upkeep = kept_up(place, scope, parts.settings, parts.emitter, turns=turns, model=parts.model, meter=meter)
    worker = _worker(inbox, flush, upkeep, parts, scope)
    return Work(inbox=inbox, meter=meter, profiles=profiles, flush=flush, upkeep=upkeep, worker=worker)


async def _nearest(places: Sequence[Place], text: str) -> list[str]:
    """Return the memories of `places` that are nearest to a text."""
    query = Query(text=text, sorts=MEMORY_SORTS)
    found = [await place.index.search(query, limit=_NEAREST) for place in [*places]]
    return [match.content for matches in found for match in matches]


def _worker(inbox: Inbox, flush: SessionFlush, upkeep: Upkeep, parts: Parts, scope: Scope) -> Worker:
    return Worker(
        inbox,
        flush=flush,
        consolidate=upkeep.curation,
        maintain=upkeep.cycle,
        interval=upkeep.interval,
        tidy=upkeep.tidy,
        due=upkeep.due,
        emitter=parts.emitter,
        clock=parts.clock,
        scope=scope,
        workers=parts.settings.inbox.workers,
    )


def _profiles(place: Place) -> Profiles:
    return Profiles(
        place.files, place.changes, owner=place.scope, redactor=place.redactor, key=place.key, clock=place.clock
    )


def inbox_of(root: Path, files: FileStore, parts: Parts) -> Inbox:
    """Return the inbox of the place in a folder, which is in the cache where that can only be read."""

    async def lost() -> Sequence[Job]:
        return [Job(kind="flush", agent=agent, session=session) for agent, session in await backlog(files)]

    path = writable(root, parts) / QUEUE
    check = files.check if isinstance(files, Held) else None
    return Inbox(path, clock=parts.clock, ids=parts.ids, commit=parts.disk.commit, lost=lost, check=check)


def writable(root: Path, parts: Parts) -> Path:
    """Return the root, or its folder in the cache if it can't be written to."""
    return root if os.access(root, os.W_OK) else cache_folder(parts.settings.cache, root)
