"""Dreams: when all curated memory is read anew, and what is known of the last time.

Invariant: only a run that ended well counts as one; what is known of it is lost with its file, and then it is time.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b

from ricordo.clock import format_rfc3339
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore
from ricordo.messages.jsontext import decode_json
from ricordo.workspace.layout import LEDGERS, WORKSPACE, parse_transcript_path

__all__ = [
    "DREAM_STATE_PATH",
    "DreamState",
    "find_reason_to_wait",
    "load_dream_state",
    "save_dream_state",
    "session_fingerprints",
]

DREAM_STATE_PATH = f"{LEDGERS}/.dream_state"
_DIGEST_LENGTH = 8
_AGENTS_FOLDER = f"{WORKSPACE}/agents"


@dataclass(frozen=True, kw_only=True)
class DreamState:
    """The last dream that ended well: when it was, and a mark of each session as it was then.

    `refused` counts the runs in a row since then whose answers from a model were of no use.
    """

    at: datetime | None = None
    sessions: frozenset[str] = frozenset()
    refused: int = 0
    version: str = ABSENT


def find_reason_to_wait(
    last: DreamState, *, now: datetime, changed: int, quiet: float, config: ConsolidationConfig
) -> str:
    """Return why it is no time for a dream; empty when it is.

    `changed` are the other sessions that changed since the last one, `quiet` the seconds since anybody said anything.
    """
    if last.at is not None and timedelta(0) <= now - last.at < timedelta(hours=config.dream_hours):
        return "the last dream is not long ago"
    if changed < config.dream_sessions:
        return "few sessions changed"
    return "a session is at work" if quiet < config.idle_seconds else ""


async def load_dream_state(files: FileStore) -> DreamState:
    """Return what is known of the last dream; nothing where its file is missing or damaged."""
    try:
        stored = await files.read(DREAM_STATE_PATH)
    except FileMissing:
        return DreamState()
    try:
        row = decode_json(stored.data)
        at, marks = row["at"], str(row["sessions"])
        return DreamState(
            at=datetime.fromisoformat(at) if at else None,
            sessions=frozenset(marks[start : start + _DIGEST_LENGTH] for start in range(0, len(marks), _DIGEST_LENGTH)),
            refused=int(row["refused"]),
            version=stored.version,
        )
    except (ValueError, TypeError, KeyError):
        return DreamState(version=stored.version)


async def save_dream_state(files: FileStore, dreams: DreamState) -> None:
    """Replace what is known durably. Raises `VersionConflict`."""
    row = {
        "at": format_rfc3339(dreams.at) if dreams.at else None,
        "sessions": "".join(sorted(dreams.sessions)),
        "refused": dreams.refused,
    }
    await files.replace(DREAM_STATE_PATH, json.dumps(row).encode() + b"\n", expected=dreams.version)


async def session_fingerprints(files: FileStore, *, without: Collection[str] = ()) -> frozenset[str]:
    """Return a mark of each session, which is another one after it grew; those named in `without` are left out."""
    return frozenset(
        blake2b(
            f"{info.path} {info.size}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST_LENGTH // 2
        ).hexdigest()
        for info in await files.list(_AGENTS_FOLDER)
        if (named := parse_transcript_path(info.path)) is not None and named[1] not in without
    )
