"""Folding: a list of topics that is too long for MEMORY.md goes on in a topic that lists the rest. Pure.

MEMORY.md lists the topics of most use, and last the one whose file lists all others, a line for each as MEMORY.md does.
Invariant: each topic is listed in one of the two, and what a person wrote into either stays.
"""

from collections.abc import Mapping, Sequence

from ricordo.consolidation.sheet import MemoryDocument, parse_memory_document
from ricordo.consolidation.topics import (
    TOPIC_LIST_LINE,
    Topic,
    is_generated,
    linked_files,
    render_topic_list,
    read_topic,
)
from ricordo.consolidation.worth import usefulness
from ricordo.workspace.layout import TOPICS

__all__ = ["FURTHER_TOPICS", "select_listed_topics", "update_further_topics"]

FURTHER_TOPICS = f"{TOPICS}/further_topics.md"
"""The topic that lists those for which MEMORY.md has no room. No topic that memories name has an underscore."""

_FURTHER_NAME = "Further topics"
_FURTHER_HEAD = f"""---
name: "{_FURTHER_NAME}"
description: "Topics for which MEMORY.md has no room"
type: "reference"
---
# {_FURTHER_NAME}
""".encode()


def select_listed_topics(
    topics: Sequence[Topic], sheets: Mapping[str, MemoryDocument], by_hand: bytes, most: int
) -> list[Topic]:
    """Return the topics that MEMORY.md is to list, at most `most`, by what they hold: `sheets` by path.

    What people link to themselves, in `by_hand`, is none of them.
    """
    linked = linked_files(by_hand)
    told = [topic for topic in topics if topic.file not in linked and topic.path != FURTHER_TOPICS]
    if len(told) <= most:
        return told + [
            topic for topic in topics if topic.path == FURTHER_TOPICS and _has_other_content(sheets[FURTHER_TOPICS])
        ]
    ranked = sorted(told, key=lambda topic: _topic_rank(sheets[topic.path]), reverse=True)
    kept = max(most - 1, 0)
    return [*ranked[:kept], Topic(path=FURTHER_TOPICS, name=_FURTHER_NAME, description=f"{len(ranked) - kept:,} more")]


def update_further_topics(memory: bytes, sheets: Mapping[str, MemoryDocument]) -> dict[str, MemoryDocument]:
    """Return the topics with the one that lists what `memory` does not; without it where that is nothing.

    What a person wrote into it stays, and keeps it.
    """
    found = sheets.get(FURTHER_TOPICS, MemoryDocument())
    rest = {path: sheet for path, sheet in sheets.items() if path != FURTHER_TOPICS}
    linked = linked_files(memory)
    told = [read_topic(path, sheet.data) for path, sheet in rest.items()]
    lines = render_topic_list([topic for topic in told if topic.file not in linked], b"")
    if not lines and not _has_other_content(found):
        return rest
    text = b"".join(part.data for part in found.parts if not TOPIC_LIST_LINE.match(part.data)) or _FURTHER_HEAD
    return {
        **rest,
        FURTHER_TOPICS: parse_memory_document(text.rstrip(b"\n") + b"\n\n" + b"".join(lines), FURTHER_TOPICS),
    }


def _has_other_content(sheet: MemoryDocument) -> bool:
    """Tell whether the list of further topics holds what somebody wrote into it."""
    rest = [part for part in sheet.parts if not TOPIC_LIST_LINE.match(part.data)]
    return any(part.entry or not (part.fenced or part.is_blank or part.data.startswith(b"# ")) for part in rest)


def _topic_rank(topic: MemoryDocument) -> tuple[bool, tuple[object, ...]]:
    """Return what orders topics: what people wrote themselves first, then by what is of most use in them."""
    ranks = [usefulness(entry) for entry in topic.entries if entry.state == "active"]
    return not is_generated(topic.data), max(ranks) if ranks else ()
