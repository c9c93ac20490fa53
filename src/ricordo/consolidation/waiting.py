"""A proposal that waits until somebody approves of it: what a model advised, and what it was about.

What would be written follows from the two, so the proposal is no second copy of memory. Invariant: a proposal is only
carried out on what it was made of; once anything of that changed it is of no use, and the next run makes another.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from ricordo.consolidation.types import RETIREMENT_REASONS, Advice, LineMerge, Retirement, Supersession
from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore, compute_version
from ricordo.messages.jsontext import decode_json
from ricordo.workspace.layout import LEDGERS

__all__ = [
    "PROPOSAL_PATH",
    "PendingProposal",
    "compute_basis",
    "delete_pending_proposal",
    "save_pending_proposal",
    "load_pending_proposal",
]

PROPOSAL_PATH = f"{LEDGERS}/.consolidation_proposal"


@dataclass(frozen=True, kw_only=True)
class PendingProposal:
    """A proposal: the advice it follows, the basis it was made on, and whether it is a dream's."""

    basis: str
    advice: Advice | None = None
    deep: bool = False


def compute_basis(versions: Mapping[str, str], *, deep: bool) -> str:
    """Return a digest of the documents that a run has read, by their versions."""
    return compute_version(json.dumps([deep, *sorted(versions.items())]).encode("utf-8", "surrogatepass"))


async def load_pending_proposal(files: FileStore) -> PendingProposal | None:
    """Return the proposal that waits; None when there is none, or when it can't be read."""
    try:
        row = decode_json((await files.read(PROPOSAL_PATH)).data)
        advice = None if row["advice"] is None else _parse_stored_advice(row["advice"])
        return PendingProposal(basis=str(row["basis"]), advice=advice, deep=bool(row["deep"]))
    except (FileMissing, ValueError, TypeError, KeyError):
        return None


async def save_pending_proposal(files: FileStore, waiting: PendingProposal) -> None:
    """Let this proposal wait in place of another. Raises `VersionConflict`."""
    version = ABSENT
    with suppress(FileMissing):
        version = (await files.read(PROPOSAL_PATH)).version
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
    await files.replace(PROPOSAL_PATH, json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"), expected=version)


async def delete_pending_proposal(files: FileStore) -> None:
    """Take the proposal away, if one waits."""
    with suppress(FileMissing):
        await files.delete(PROPOSAL_PATH)


def _parse_stored_advice(row: Mapping[str, object]) -> Advice:
    merges, superseded, retired, topics = (row[name] for name in ("merges", "superseded", "retired", "topics"))
    if not (isinstance(merges, list) and isinstance(superseded, list) and isinstance(retired, list)):
        raise TypeError("advice is made of lists")
    if not isinstance(topics, dict):
        raise TypeError("topics are named by ids")
    return Advice(
        merges=tuple(LineMerge(parents=tuple(map(str, parents)), content=str(content)) for parents, content in merges),
        superseded=tuple(Supersession(old=str(old), new=str(new)) for old, new in superseded),
        retired=tuple(
            Retirement(id=str(name), reason=reason)
            for name, given in retired
            for reason in RETIREMENT_REASONS
            if reason == given
        ),
        topics={str(name): str(topic) for name, topic in topics.items()},
        note=str(row["note"]),
    )
