"""The swappable contract save / recall / preamble, bound to a scope, and its backends."""

from ricordo.stores.capabilities import Forgets, LayeredMemory, Lists, Undoes
from ricordo.stores.contract import Backend, Driver, Store, StoreParts
from ricordo.stores.nothing import NoMemory

__all__ = ["Backend", "Driver", "Forgets", "LayeredMemory", "Lists", "NoMemory", "Store", "StoreParts", "Undoes"]
