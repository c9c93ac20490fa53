"""Two choke points: secrets leave text on its way to disk, and memory is fenced on its way to a prompt.

Nothing here reads a file, the environment or the clock: text in, text out.
"""

from secrets import token_bytes

from ricordo.errors import set_message_cleaner
from ricordo.guard.fence import FencedItem, Trust, contains_fence, parse_fence, render_fence
from ricordo.guard.redact import RedactedText, Redactor, SecretMark, cut, cut_start, has_secret

# the marks in messages can't be compared with those of a root, whose key nothing but the root's own work has
set_message_cleaner(Redactor(token_bytes(32)).clean)

__all__ = [
    "SecretMark",
    "FencedItem",
    "RedactedText",
    "Redactor",
    "Trust",
    "contains_fence",
    "cut",
    "cut_start",
    "render_fence",
    "has_secret",
    "parse_fence",
]
