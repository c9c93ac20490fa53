"""The frame of topics: what consolidation writes around memories, so that it can be told from what people write.

It repeats what the memories say: the front matter of a topic as we write it, and the lines of MEMORY.md that list them.
"""

import re
from typing import Final

from ricordo.workspace.layout import TOPICS, WORKSPACE

__all__ = ["LISTED", "OUR_FRONT", "framing_lines"]

LISTED: Final = re.compile(rf"\d+\. \[.*\]\({TOPICS.removeprefix(f'{WORKSPACE}/')}/[^)]*\.md\)".encode())
"""A line of MEMORY.md that we wrote to list a topic."""

OUR_FRONT: Final = re.compile(r"name: \".*\"\ndescription: \".*\"\ntype: \"\w+\"\n")
"""What stands between the marks of a front matter that we wrote."""

_FRAMED = re.compile(rb"---\n" + OUR_FRONT.pattern.encode() + rb"---\n")


def framing_lines(document: bytes) -> frozenset[int]:
    """Return the numbers, from 1, of the lines of a curated document that only repeat what memories say."""
    front = _FRAMED.match(document)
    heading = range(1, document.count(b"\n", 0, front.end()) + 1) if front else ()
    listed = (number for number, line in enumerate(document.split(b"\n"), start=1) if LISTED.match(line))
    return frozenset((*heading, *listed))
