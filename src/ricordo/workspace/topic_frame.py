"""The frame of topics: what consolidation writes around memories, so that it can be told from what people write.

It repeats what the memories say: the front matter of a topic as we write it, and the lines of MEMORY.md that list them.
"""

import re
from typing import Final

from ricordo.workspace.layout import TOPICS, WORKSPACE

__all__ = ["TOPIC_LIST_LINE", "TOPIC_FRONT_MATTER", "find_frame_lines"]

TOPIC_LIST_LINE: Final = re.compile(rf"\d+\. \[.*\]\({TOPICS.removeprefix(f'{WORKSPACE}/')}/[^)]*\.md\)".encode())
"""A line of MEMORY.md that we wrote to list a topic."""

TOPIC_FRONT_MATTER: Final = re.compile(r"name: \".*\"\ndescription: \".*\"\ntype: \"\w+\"\n")
"""What stands between the marks of a front matter that we wrote."""

_FRONT_MATTER_BLOCK = re.compile(rb"---\n" + TOPIC_FRONT_MATTER.pattern.encode() + rb"---\n")


def find_frame_lines(document: bytes) -> frozenset[int]:
    """Return the numbers, from 1, of the lines of a curated document that only repeat what memories say."""
    front = _FRONT_MATTER_BLOCK.match(document)
    heading = range(1, document.count(b"\n", 0, front.end()) + 1) if front else ()
    listed = (number for number, line in enumerate(document.split(b"\n"), start=1) if TOPIC_LIST_LINE.match(line))
    return frozenset((*heading, *listed))
