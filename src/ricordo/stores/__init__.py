"""The swappable contract save / recall / preamble, bound to a scope, and its backends."""

from ricordo.stores.capabilities import Forgets, Layers, Lists, Undoes
from ricordo.stores.contract import Backend, Driver, Store, StoreParts
from ricordo.stores.nothing import NoMemory

__all__ = ["Backend", "Driver", "Forgets", "Layers", "Lists", "NoMemory", "Store", "StoreParts", "Undoes"]
