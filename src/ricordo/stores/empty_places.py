"""Empty places: the wider places of a scope in which nothing can be found, which a search passes over."""

from collections.abc import Sequence

from ricordo.stores.place import MemoryRoot

__all__ = ["EmptyRoots"]


class EmptyRoots:
    """Knows which places were empty at the last look; one that was not is not looked at again."""

    def __init__(self) -> None:
        """Know of none."""
        self._empty: frozenset[str] = frozenset()
        self._nonempty: set[str] = set()

    def exclude_empty(self, places: Sequence[MemoryRoot]) -> list[MemoryRoot]:
        """Return the places to search: the first, and those of the others that were not empty."""
        return [place for number, place in enumerate(places) if number == 0 or place.label not in self._empty]

    def refresh(self, places: Sequence[MemoryRoot]) -> bool:
        """Look which are empty now; tell whether one is not that was. It blocks on the disk."""
        before, wider = self._empty, [place for place in places[1:] if place.label not in self._nonempty]
        self._empty = frozenset(place.label for place in wider if not place.has_documents())
        self._nonempty |= {place.label for place in wider} - self._empty
        return not before <= self._empty
