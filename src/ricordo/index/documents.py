"""Which files are documents, and of what sort, told by their names alone."""

import re
from dataclasses import dataclass
from functools import lru_cache

from ricordo.guard import has_secret
from ricordo.index.contract import DocumentSort
from ricordo.workspace.layout import session_from_stem

__all__ = ["SearchDocument", "classify_document"]

_PATH_SORTS: tuple[tuple[re.Pattern[str], DocumentSort], ...] = (
    (re.compile(r"MEMORY\.md"), "curated"),
    (re.compile(r"memory/topics/.+\.md"), "curated"),
    (re.compile(r"memory/(?:archive/)?\d{4}-\d\d-\d\d\.md"), "ledger"),
    (re.compile(r"memory/long/(?P<entry>[^/]+)\.md"), "long"),
    (re.compile(r"sessions/(?P<session>[^/]+)\.md"), "session"),
    (re.compile(r"agents/[^/]+/sessions/(?P<session>[^/]+)\.log\.jsonl"), "transcript"),
    (re.compile(r"large_tool_results/(?:(?P<session>[^/]+)/)?.+"), "result"),
    (re.compile(r"(?:.*/)?[^./][^/]*\.md"), "note"),
    (re.compile(r"(?:users/[^/]+/)?(?:agents/[^/]+/)?profile\.json"), "profile"),
)


_MAY_BE_SECRET = re.compile(r"\w{16}|[=:]")
"""What no name of a secret lacks, and few other names have: the guard looks at these."""


@dataclass(frozen=True, kw_only=True)
class SearchDocument:
    """A file of the workspace that is searched; `session` and `entry_id` are what its name says, else empty."""

    path: str
    sort: DocumentSort
    session: str = ""
    entry_id: str = ""


def classify_document(path: str, folder: str) -> SearchDocument | None:
    """Return the document at `path` of the workspace `folder` (empty: the root itself), None when it is none.

    A file whose name holds a secret is none, as the index and what is found would hold it too.
    """
    if folder and not path.startswith(f"{folder}/"):
        return None
    inside = path[len(folder) + 1 :] if folder else path
    if _MAY_BE_SECRET.search(inside) and _has_secret_cached(inside):
        return None
    for pattern, sort in _PATH_SORTS:
        match = pattern.fullmatch(inside)
        if match:
            named = match.groupdict()
            session = session_from_stem(named.get("session") or "")
            return SearchDocument(path=path, sort=sort, session=session, entry_id=named.get("entry") or "")
    return None


@lru_cache(maxsize=65_536)
def _has_secret_cached(path: str) -> bool:
    return has_secret(path)
