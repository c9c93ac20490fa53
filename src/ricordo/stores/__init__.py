"""The swappable contract save / recall / preamble, bound to a scope, and its backends."""

from ricordo.stores.contract import Backend, Closes, Driver, Forgets, Lists, Store
from ricordo.stores.nothing import NoMemory

__all__ = ["Backend", "Closes", "Driver", "Forgets", "Lists", "NoMemory", "Store"]
