"""What a store still says of a memory that was forgotten."""

from anyio.to_thread import run_sync

from ricordo.stores.contract import LayeredMemory, Lists, Store
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.remaining import Remaining, remaining_entries, remaining_in

__all__ = ["remaining", "remaining_in_layers"]


async def remaining(store: Store, gone: Entry) -> list[Remaining]:
    """Return what in `store` still says what was forgotten, with secrets replaced by marks.

    Of a store that has no places only the entries are looked at; empty for one that can't list them. Raises:
    StorageError.
    """
    if layers := store.offers(LayeredMemory):
        return await remaining_in_layers(layers, gone)
    lists = store.offers(Lists)
    return await run_sync(remaining_entries, await lists.entries(), gone) if lists else []


async def remaining_in_layers(layers: LayeredMemory, gone: Entry) -> list[Remaining]:
    """Return what of the visible places still says what was forgotten, the narrowest place first."""
    return [each for place in await layers.places() for each in await remaining_in(place.files, gone, place.redactor)]
