"""Noting: a store is told that its hits are shown, where it keeps a record of that. It waits for nothing."""

from collections.abc import Sequence

from ricordo.recall.hits import Hit
from ricordo.stores.capabilities import RecordsUsage
from ricordo.stores.contract import Store

__all__ = ["record_shown"]


def record_shown(store: Store, hits: Sequence[Hit], *, how: str, session: str = "") -> None:
    """Note that the memories among `hits` are shown; `how` is one word, such as `recall`."""
    notes = store.offers(RecordsUsage) if hits else None
    if notes:
        for source in dict.fromkeys(hit.source for hit in hits):
            ids = [hit.entry.id for hit in hits if hit.source == source]
            notes.record_use("shown", ids, how=how, source=source, session=session)
