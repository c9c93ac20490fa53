"""Folding: a list of topics that is too long for MEMORY.md goes on in a topic that lists the rest. Pure.

MEMORY.md lists the topics of most use, and last the one whose file lists all others, a line for each as MEMORY.md does.
Invariant: each topic is listed in one of the two, and what a person wrote into either stays.
"""

from collections.abc import Mapping, Sequence

from ricordo.consolidation.sheet import Sheet, parse_sheet
from ricordo.consolidation.topics import LISTED, Topic, is_ours, linked_files, listing, read_topic
from ricordo.consolidation.worth import usefulness
from ricordo.workspace.layout import TOPICS

__all__ = ["FURTHER", "folded", "with_further"]

FURTHER = f"{TOPICS}/further_topics.md"
"""The topic that lists those for which MEMORY.md has no room. No topic that memories name has an underscore."""

_NAME = "Further topics"
_HEAD = f"""---
name: "{_NAME}"
description: "Topics for which MEMORY.md has no room"
type: "reference"
---
# {_NAME}
""".encode()


def folded(topics: Sequence[Topic], sheets: Mapping[str, Sheet], by_hand: bytes, most: int) -> list[Topic]:
    """Return the topics that MEMORY.md is to list, at most `most`, by what they hold: `sheets` by path.

    What people link to themselves, in `by_hand`, is none of them.
    """
    linked = linked_files(by_hand)
    told = [topic for topic in topics if topic.file not in linked and topic.path != FURTHER]
    if len(told) <= most:
        return told + [topic for topic in topics if topic.path == FURTHER and _holds_more(sheets[FURTHER])]
    ranked = sorted(told, key=lambda topic: _worth(sheets[topic.path]), reverse=True)
    kept = max(most - 1, 0)
    return [*ranked[:kept], Topic(path=FURTHER, name=_NAME, description=f"{len(ranked) - kept:,} more")]


def with_further(memory: bytes, sheets: Mapping[str, Sheet]) -> dict[str, Sheet]:
    """Return the topics with the one that lists what `memory` does not; without it where that is nothing.

    What a person wrote into it stays, and keeps it.
    """
    found = sheets.get(FURTHER, Sheet())
    rest = {path: sheet for path, sheet in sheets.items() if path != FURTHER}
    linked = linked_files(memory)
    told = [read_topic(path, sheet.data) for path, sheet in rest.items()]
    lines = listing([topic for topic in told if topic.file not in linked], b"")
    if not lines and not _holds_more(found):
        return rest
    text = b"".join(part.data for part in found.parts if not LISTED.match(part.data)) or _HEAD
    return {**rest, FURTHER: parse_sheet(text.rstrip(b"\n") + b"\n\n" + b"".join(lines), FURTHER)}


def _holds_more(sheet: Sheet) -> bool:
    """Tell whether the list of further topics holds what somebody wrote into it."""
    rest = [part for part in sheet.parts if not LISTED.match(part.data)]
    return any(part.entry or not (part.fenced or part.is_blank or part.data.startswith(b"# ")) for part in rest)


def _worth(topic: Sheet) -> tuple[bool, tuple[object, ...]]:
    """Return what orders topics: what people wrote themselves first, then by what is of most use in them."""
    ranks = [usefulness(entry) for entry in topic.entries if entry.state == "active"]
    return not is_ours(topic.data), max(ranks) if ranks else ()
