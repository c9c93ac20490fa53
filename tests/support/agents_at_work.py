"""Agents of tests: one scope, one root, and a look at what they left behind."""

from collections.abc import Sequence
from pathlib import Path

from places import place_of
from ricordo import FlushConfig, Scope
from ricordo.curation import ConsolidationConfig
from ricordo.messages import Message, Text, pair_calls
from ricordo.models import OFFLINE
from ricordo.runtime import Settings
from ricordo.storage.local import LocalFiles
from ricordo.testing import RecordedRequest
from ricordo.workspace import DEFAULT_AGENT, read_transcript, transcript_path

__all__ = ["SCOPE", "is_valid", "ledgers", "said", "settings", "spoken", "system", "transcript"]

SCOPE = Scope(user="me", project="shop")


def settings(root: Path, *, consolidates: bool = False) -> Settings:
    """Return settings that keep everything beside the root; curated memory is made where a test is about it.

    What is said is learned by rules, so that a script holds only what the agent itself asks its model, and closing
    learns for as long as it takes on a busy machine.
    """
    return Settings(
        root=None,
        user="me",
        data=root.parent / "data",
        cache=root.parent / "cache",
        consolidation=ConsolidationConfig(model=OFFLINE) if consolidates else None,
        flush=FlushConfig(model=OFFLINE, closing_seconds=40.0),
    )


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def spoken(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return the role and the text of each message, that of results included."""
    return [(each.role, each.text or "".join(result.text for result in each.tool_results)) for each in messages]


def is_valid(window: Sequence[Message]) -> bool:
    """Tell whether no result lacks its call, no call is abandoned, and no message stands twice."""
    pairing = pair_calls(window)
    ids = [message.id for message in window]
    return not pairing.orphans and not pairing.abandoned and len(set(ids)) == len(ids)


def system(request: RecordedRequest) -> str:
    """Return the system prompt of a request."""
    return "\n".join(message.text for message in request.messages if message.role == "system")


async def transcript(root: Path, session: str = "s") -> tuple[Message, ...]:
    """Return what the transcript of a session holds."""
    return (await read_transcript(LocalFiles(place_of(root)), transcript_path(DEFAULT_AGENT, session))).messages


def ledgers(root: Path) -> str:
    """Return the text of all ledgers."""
    found = sorted((place_of(root) / "workspace" / "memory").glob("*.md"))
    return "\n".join(path.read_text(encoding="utf-8") for path in found)
