"""Session files in a folder, opened by hands that a test holds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.scope import Scope
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.stores import Closes, Forgets, KeepsSessions, Lists, SessionNotes, Store, StoreFolder, StoreParts
from ricordo.stores.session_files import SessionFilesStore

__all__ = ["SHOP", "backend", "closes", "forgets", "keeps", "lists", "notes", "opened"]

SHOP = Scope(user="me", project="shop")


def backend(
    root: Path, clock: HandClock | None = None, *, disk: Disk | None = None, last: int = 5, home: Scope = SHOP
) -> SessionFilesStore:
    clock = clock or HandClock()
    parts = StoreParts(redactor=Redactor(bytes(32)), clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock, ()))
    return SessionFilesStore(parts, StoreFolder(files=LocalFiles(root, disk=disk), scope=home), last=last)


@asynccontextmanager
async def opened(
    root: Path, clock: HandClock | None = None, *, session: str = "", last: int = 5
) -> AsyncIterator[Store]:
    """Open a store of a session, and write at the end what it left."""
    store = backend(root, clock, last=last)
    try:
        yield store.bind(Scope(user="me", project="shop", session=session or None))
    finally:
        await store.close()


def keeps(store: Store) -> KeepsSessions:
    found = store.offers(KeepsSessions)
    assert found is not None
    return found


def lists(store: Store) -> Lists:
    found = store.offers(Lists)
    assert found is not None
    return found


def forgets(store: Store) -> Forgets:
    found = store.offers(Forgets)
    assert found is not None
    return found


def closes(store: Store) -> Closes:
    found = store.offers(Closes)
    assert found is not None
    return found


def notes(session: str, summary: str, *tags: str, started: datetime | None = None, minutes: int = 12) -> SessionNotes:
    began = started or HandClock().now()
    return SessionNotes(
        session=session, started=began, ended=began + timedelta(minutes=minutes), turns=3, summary=summary, tags=tags
    )
