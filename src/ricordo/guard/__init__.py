"""Two choke points: secrets leave text on its way to disk, and memory is fenced on its way to a prompt.

Nothing here reads a file, the environment or the clock: text in, text out.
"""

from ricordo.guard.cut import cut
from ricordo.guard.fence import Quoted, contains_fence, fence, unfence
from ricordo.guard.redact import Mark, Redacted, Redactor, has_secret
from ricordo.guard.trust import Trust

__all__ = [
    "Mark",
    "Quoted",
    "Redacted",
    "Redactor",
    "Trust",
    "contains_fence",
    "cut",
    "fence",
    "has_secret",
    "unfence",
]
