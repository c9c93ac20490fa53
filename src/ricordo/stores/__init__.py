"""The swappable contract save / recall / preamble, bound to a scope, and its backends."""

from ricordo.stores.capabilities import Closes, Forgets, Layers, Lists, Undoes
from ricordo.stores.contract import Backend, Driver, Store
from ricordo.stores.nothing import NoMemory

__all__ = ["Backend", "Closes", "Driver", "Forgets", "Layers", "Lists", "NoMemory", "Store", "Undoes"]
