"""Two choke points: secrets leave text on its way to disk, and memory is fenced on its way to a prompt.

Nothing here reads a file, the environment or the clock: text in, text out.
"""

from secrets import token_bytes

from ricordo.errors import clean_messages_with
from ricordo.guard.cut import cut, cut_start
from ricordo.guard.fence import Quoted, contains_fence, fence, unfence
from ricordo.guard.redact import Mark, Redacted, Redactor, has_secret
from ricordo.guard.trust import Trust

# the marks in messages can't be compared with those of a root, whose key nothing but the root's own work has
clean_messages_with(Redactor(token_bytes(32)).clean)

__all__ = [
    "Mark",
    "Quoted",
    "Redacted",
    "Redactor",
    "Trust",
    "contains_fence",
    "cut",
    "cut_start",
    "fence",
    "has_secret",
    "unfence",
]
