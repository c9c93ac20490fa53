"""Entries as JSON objects, for backends that keep them so: `from_json(to_json(entry)) == entry` for any entry.

Fields that are not ours are kept in `Entry.extra`, a value that is no text as its JSON, and written back as they were.
"""

from collections.abc import Mapping

from ricordo.messages import JsonValue
from ricordo.workspace.entry import Entry

__all__ = ["from_json", "to_json"]


def to_json(entry: Entry) -> dict[str, JsonValue]:
    """Return the object of an entry; what is at its default is left out."""
    raise NotImplementedError


def from_json(record: Mapping[str, JsonValue]) -> Entry:
    """Return the entry of an object. Raises: DocumentInvalid if it is none."""
    raise NotImplementedError
