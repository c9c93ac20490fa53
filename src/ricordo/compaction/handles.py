"""Handles: short names of what a compaction took away, made of the messages themselves, so that doing it again after a
kill gives the same name."""

from collections.abc import Sequence
from hashlib import blake2b

from ricordo.messages import Message

__all__ = ["make_handle"]

_HANDLE_BYTES = 5


def make_handle(dropped: Sequence[Message]) -> str:
    """Return the handle of these messages, by their ids and order: `c` and ten hexadecimal digits; empty for none."""
    if not dropped:
        return ""
    named = "\0".join(message.id or message.text for message in dropped)
    return "c" + blake2b(named.encode("utf-8", "surrogatepass"), digest_size=_HANDLE_BYTES).hexdigest()
