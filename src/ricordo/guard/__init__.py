"""Guards for text: secrets are redacted on the way to disk, and memories are fenced on the way to a prompt.

Nothing here reads a file, the environment or the clock. All functions take text and return text.
"""

from functools import cache
from secrets import token_bytes
from typing import TYPE_CHECKING

from ricordo.errors import set_message_cleaner
from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.guard.fence import FencedItem, Trust, contains_fence, parse_fence, render_fence
    from ricordo.guard.permissions import PermissionRule, ToolPattern, render_rule
    from ricordo.guard.redact import RedactedText, Redactor, SecretMark, cut, cut_start, has_secret

__all__ = [
    "FencedItem",
    "PermissionRule",
    "RedactedText",
    "Redactor",
    "SecretMark",
    "ToolPattern",
    "Trust",
    "contains_fence",
    "cut",
    "cut_start",
    "has_secret",
    "parse_fence",
    "render_fence",
    "render_rule",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".fence": "FencedItem Trust contains_fence parse_fence render_fence",
        ".permissions": "PermissionRule ToolPattern render_rule",
        ".redact": "RedactedText Redactor SecretMark cut cut_start has_secret",
    },
)


@cache
def _message_redactor() -> "Redactor":
    """Return the redactor of error messages.

    Its marks can't be compared with those of a root, since only the root's own code has its key.
    """
    from ricordo.guard.redact import Redactor

    return Redactor(token_bytes(32))


def _clean_message(text: str) -> str:
    return _message_redactor().clean(text)


set_message_cleaner(_clean_message)
