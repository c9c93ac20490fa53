"""Noting: a store is told that its hits are shown, where it keeps a record of that. It waits for nothing."""

from collections.abc import Sequence

from ricordo.recall.hits import Hit
from ricordo.stores.capabilities import NotesUse
from ricordo.stores.contract import Store

__all__ = ["note_shown"]


def note_shown(store: Store, hits: Sequence[Hit], *, how: str, session: str = "") -> None:
    """Note that the memories among `hits` are shown; `how` is one word, such as `recall`."""
    notes = store.offers(NotesUse) if hits else None
    if notes:
        for source in dict.fromkeys(hit.source for hit in hits):
            ids = [hit.entry.id for hit in hits if hit.source == source]
            notes.note_use("shown", ids, how=how, source=source, session=session)
