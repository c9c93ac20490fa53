"""The stores that commands name: where they are, whose they are, and what is there before anything is opened."""

from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, load_scope
from ricordo.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ricordo.scopes import Scope
    from ricordo.stores import Store
    from ricordo.stores.opening import Address

__all__ = ["store_exists", "open_store_at", "resolve_address", "load_store_scope"]


def resolve_address(text: str, target: Target) -> "Address":
    """Return the address, with the root for `layered` without a place. Raises `InvalidSetting`."""
    from ricordo.stores.opening import parse_address

    address = parse_address(text)
    if address.scheme == "layered" and not address.place:
        return replace(address, place=str(target.root))
    return address


def store_exists(address: "Address") -> bool:
    """Tell whether opening the store would create nothing: each of the folders that it names exists."""
    from ricordo.runtime.store_folders import expand_home
    from ricordo.stores.opening import SCHEMES, parse_address, split_addresses

    if address.scheme == "fanout":
        return all(store_exists(parse_address(each)) for each in split_addresses(address.place))
    if address.scheme not in SCHEMES or not address.place:
        return True
    return _path_exists(expand_home(address.place))


def _path_exists(path: Path) -> bool:
    """Tell whether it is there; what can't even be looked at is not, and says so when it is opened."""
    try:
        return path.exists()
    except OSError:
        return False


async def load_store_scope(addresses: "Sequence[Address]", target: Target) -> "Scope":
    """Return whose stores these are: by the marker of the first folder that has one, else as for a command's root.

    The user is that of this machine, who sees in a root what is for all of their projects too.
    """
    from ricordo.runtime.assembly import root_files
    from ricordo.runtime.marker import read_marker
    from ricordo.scopes import Scope

    for folder in _existing_folders(addresses):
        owner = await read_marker(root_files(folder))
        if owner:
            return Scope(**{"user": target.user} | owner.parts())
    return await load_scope(target)


def _existing_folders(addresses: "Sequence[Address]") -> list[Path]:
    from ricordo.runtime.store_folders import expand_home

    places = [expand_home(address.place).absolute() for address in addresses if address.place]
    return [place for place in places if _path_exists(place) and place.is_dir()]


@asynccontextmanager
async def open_store_at(address: "Address", scope: "Scope", target: Target) -> "AsyncIterator[Store]":
    """Open the store; of a root nothing is consolidated meanwhile. Raises: InvalidInput if it can't be opened."""
    from ricordo.runtime.stores import open_store

    if address.scheme == "none":
        raise InvalidInput("The store none keeps nothing.")
    settings = replace(target.settings, consolidation=None)
    async with open_store(str(address), scope=scope, settings=settings) as store:
        yield store
