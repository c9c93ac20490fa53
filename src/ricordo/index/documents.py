"""Which files are documents, and of what sort, told by their names alone."""

import re
from dataclasses import dataclass

from ricordo.index.contract import Sort
from ricordo.workspace.layout import session_named

__all__ = ["Document", "document_of"]

_SORTS: tuple[tuple[re.Pattern[str], Sort], ...] = (
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


@dataclass(frozen=True, kw_only=True)
class Document:
    """A file of the workspace that is searched; `session` and `entry_id` are what its name says, else empty."""

    path: str
    sort: Sort
    session: str = ""
    entry_id: str = ""


def document_of(path: str, folder: str) -> Document | None:
    """Return the document at `path` of the workspace `folder` (empty: the root itself), None when it is none."""
    if folder and not path.startswith(f"{folder}/"):
        return None
    inside = path[len(folder) + 1 :] if folder else path
    for pattern, sort in _SORTS:
        match = pattern.fullmatch(inside)
        if match:
            named = match.groupdict()
            session = session_named(named.get("session") or "")
            return Document(path=path, sort=sort, session=session, entry_id=named.get("entry") or "")
    return None
