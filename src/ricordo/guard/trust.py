"""Trust: who stands behind a piece of text. Ordered, so that a decision can ask for a least trust."""

import enum
import functools

__all__ = ["Trust"]


@functools.total_ordering
class Trust(enum.Enum):
    """USER was said or saved by the person, AGENT was concluded by the agent, EXTERNAL came from a tool, the web or
    an import. USER is the highest, EXTERNAL the lowest: `trust >= Trust.AGENT` leaves out what came from outside.
    """

    USER = "user"
    AGENT = "agent"
    EXTERNAL = "external"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Trust):
            return NotImplemented
        return _TRUST_ORDER[self] < _TRUST_ORDER[other]


_TRUST_ORDER = {Trust.EXTERNAL: 0, Trust.AGENT: 1, Trust.USER: 2}
