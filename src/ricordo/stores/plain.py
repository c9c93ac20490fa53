"""Plain stores: what the thin backends have in common, so that each of them says only how it keeps entries.

Invariants: everybody's entries lie in a folder of their own, so no backend can mix them; the newest entry is the one
that was saved last, whatever the clocks said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ricordo.files import FileStore
from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry

__all__ = ["Home", "found", "kept_text"]


@dataclass(frozen=True, kw_only=True)
class Home:
    """The folder of a plain store: its files, and whose folder it is."""

    files: FileStore
    scope: Scope

    def folder(self, scope: Scope) -> str:
        """Return the folder of `scope` below this one, with a slash at its end; empty where it is this one.

        A folder serves one project, or one user where no project is named; others get one below it, such as
        `tenants/t/users/u/projects/p/`. Who of a project's users saved an entry stands in the entry.
        """
        raise NotImplementedError


def found(entries: Iterable[Entry], query: Query, limit: int, *, path: str = "") -> list[Hit]:
    """Return at most `limit` hits among `entries`, which come newest first, in that order.

    An entry is found when its content or its tags hold the query, or each of its words, by Unicode case folding; all
    are, for a query without words. The filters of the query count as they do everywhere.
    """
    raise NotImplementedError


def kept_text(entries: Sequence[Entry], budget: Tokens | None, *, note: str = "") -> str:
    """Return the preamble of `entries`, newest first: fenced, whole entries within `budget`, with a notice of the rest."""
    raise NotImplementedError
