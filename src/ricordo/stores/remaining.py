"""Search a store for text that still repeats a forgotten memory."""

from anyio.to_thread import run_sync

from ricordo.stores.contract import LayeredMemory, Lists, Store
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.remaining import Remaining, remaining_entries, remaining_in

__all__ = ["remaining", "remaining_in_layers"]


async def remaining(store: Store, forgotten: Entry) -> list[Remaining]:
    """Return the places in `store` that still contain forgotten text, with secrets replaced by marks.

    For a store without places only the entries are checked; the result is empty if it can't list them. Raises:
    StorageError.
    """
    if layers := store.offers(LayeredMemory):
        return await remaining_in_layers(layers, forgotten)
    lists = store.offers(Lists)
    return await run_sync(remaining_entries, await lists.entries(), forgotten) if lists else []


async def remaining_in_layers(layers: LayeredMemory, forgotten: Entry) -> list[Remaining]:
    """Return where the visible places still contain forgotten text, narrowest place first."""
    return [
        each for place in await layers.places() for each in await remaining_in(place.files, forgotten, place.redactor)
    ]
