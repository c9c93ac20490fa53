"""What goes into a consolidation and what it comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ricordo.workspace.entry import Entry

__all__ = ["Fresh", "Proposal", "Settled", "Superseded"]


@dataclass(frozen=True, kw_only=True)
class Fresh:
    """An entry of a ledger that no run has read yet; `long` is the path of the file of a long one.

    `edited` tells that a run has read its line, which says something else since.
    """

    entry: Entry
    long: str | None = None
    edited: bool = False


@dataclass(frozen=True, kw_only=True)
class Superseded:
    """The entry `old` whose place `new` has taken, by their ids."""

    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What was decided about the entries, before anything is placed.

    `active` holds by id what is to be curated, `changed` names those of them that were curated already and read
    otherwise now. `merged` are ids of entries that another one says already, `left` those that stay in the ledger only.
    """

    active: Mapping[str, Fresh]
    changed: frozenset[str]
    merged: tuple[str, ...]
    superseded: tuple[Superseded, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a run would write: `documents` are new contents by path, None for a file that goes.

    `kept`, `merged` and `left` are ids of new entries: curated, said already by another, staying in the ledger only.
    """

    documents: Mapping[str, bytes | None] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    superseded: tuple[Superseded, ...] = ()
    left: tuple[str, ...] = ()
