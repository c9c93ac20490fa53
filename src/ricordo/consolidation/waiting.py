"""A proposal that waits until somebody approves of it: what a model advised, and what it was about.

What would be written follows from the two, so the proposal is no second copy of memory. Invariant: a proposal is only
carried out on what it was made of; once anything of that changed it is of no use, and the next run makes another.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from ricordo.consolidation.types import REASONS, Advice, Merge, Retired, Superseded
from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore, version_of
from ricordo.messages.jsontext import decoded
from ricordo.workspace.layout import LEDGERS

__all__ = ["PROPOSAL", "Waiting", "basis_of", "drop_waiting", "keep_waiting", "load_waiting"]

PROPOSAL = f"{LEDGERS}/.consolidation_proposal"


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A proposal: the advice it follows, the basis it was made on, and whether it is a dream's."""

    basis: str
    advice: Advice | None = None
    deep: bool = False


def basis_of(versions: Mapping[str, str], *, deep: bool) -> str:
    """Return a digest of the documents that a run has read, by their versions."""
    return version_of(json.dumps([deep, *sorted(versions.items())]).encode("utf-8", "surrogatepass"))


async def load_waiting(files: FileStore) -> Waiting | None:
    """Return the proposal that waits; None when there is none, or when it can't be read."""
    try:
        row = decoded((await files.read(PROPOSAL)).data)
        advice = None if row["advice"] is None else _advice(row["advice"])
        return Waiting(basis=str(row["basis"]), advice=advice, deep=bool(row["deep"]))
    except (FileMissing, ValueError, TypeError, KeyError):
        return None


async def keep_waiting(files: FileStore, waiting: Waiting) -> None:
    """Let this proposal wait in place of another. Raises `VersionConflict`."""
    version = ABSENT
    with suppress(FileMissing):
        version = (await files.read(PROPOSAL)).version
    advice = waiting.advice
    told = None
    if advice:
        told = {
            "merges": [[[*merge.parents], merge.content] for merge in advice.merges],
            "superseded": [[one.old, one.new] for one in advice.superseded],
            "retired": [[one.id, one.reason] for one in advice.retired],
            "topics": dict(advice.topics),
            "note": advice.note,
        }
    row = {"basis": waiting.basis, "deep": waiting.deep, "advice": told}
    await files.replace(PROPOSAL, json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"), expected=version)


async def drop_waiting(files: FileStore) -> None:
    """Take the proposal away, if one waits."""
    with suppress(FileMissing):
        await files.delete(PROPOSAL)


def _advice(row: Mapping[str, object]) -> Advice:
    merges, superseded, retired, topics = (row[name] for name in ("merges", "superseded", "retired", "topics"))
    if not (isinstance(merges, list) and isinstance(superseded, list) and isinstance(retired, list)):
        raise TypeError("advice is made of lists")
    if not isinstance(topics, dict):
        raise TypeError("topics are named by ids")
    return Advice(
        merges=tuple(Merge(parents=tuple(map(str, parents)), content=str(content)) for parents, content in merges),
        superseded=tuple(Superseded(old=str(old), new=str(new)) for old, new in superseded),
        retired=tuple(
            Retired(id=str(name), reason=reason) for name, given in retired for reason in REASONS if reason == given
        ),
        topics={str(name): str(topic) for name, topic in topics.items()},
        note=str(row["note"]),
    )
