"""Parts of a log: its first and its last messages, without reading what lies between.

Invariant: only whole lines are taken, and a line that holds no message hides no other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anyio.to_thread import run_sync

from ricordo.errors import InvalidMessage
from ricordo.files import FileInfo, FileStore
from ricordo.messages import Message, decode_message, get_mark

__all__ = ["MessagePage", "read_first_messages", "is_dialogue", "read_last_messages", "read_newest_messages"]

_FIRST_READ_BYTES = 8_192
_PAGE_BYTES = 65_536


@dataclass(frozen=True, kw_only=True)
class MessagePage:
    """Messages in the order in which they were said, and whether there are older ones."""

    messages: tuple[Message, ...] = ()
    older: bool = False


def is_dialogue(message: Message) -> bool:
    """Tell whether somebody said this: no summary, no recalled memory, no notice."""
    return get_mark(message) in {None, "cut"}


async def read_first_messages(
    files: FileStore, file: FileInfo, enough: Callable[[Sequence[Message]], bool]
) -> tuple[Message, ...]:
    """Return messages from the beginning on, as many as are `enough`, all if they never are. Raises `StorageError`."""
    length = _FIRST_READ_BYTES
    while True:
        data = await files.read_from(file.path, 0, length)
        whole = len(data) < length
        found = await run_sync(_decode_messages, data if whole else data[: data.rfind(b"\n") + 1])
        if whole or enough(found):
            return found
        length *= 4


async def read_last_messages(
    files: FileStore, file: FileInfo, enough: Callable[[Sequence[Message]], bool], *, length: int = _FIRST_READ_BYTES
) -> tuple[tuple[Message, ...], bool]:
    """Return messages up to the end, as many as are `enough`, and whether these are all. Raises `StorageError`."""
    while True:
        start = max(0, file.size - length)
        data = await files.read_from(file.path, start)
        found = await run_sync(_decode_messages, data[data.find(b"\n") + 1 or len(data) :] if start else data)
        if not start or enough(found):
            return found, not start
        length *= 4


async def read_newest_messages(files: FileStore, file: FileInfo, count: int, *, before: str = "") -> MessagePage | None:
    """Return the newest `count` messages that were said, of those before the message with the id `before` if given.

    None when there is no such message. Raises `StorageError`.
    """

    def end_in(messages: Sequence[Message]) -> int | None:
        if not before:
            return len(messages)
        return next((at for at in reversed(range(len(messages))) if messages[at].id == before), None)

    def is_enough(messages: Sequence[Message]) -> bool:
        end = end_in(messages)
        return end is not None and sum(map(is_dialogue, messages[:end])) > count

    found, _ = await read_last_messages(files, file, is_enough, length=_PAGE_BYTES)
    end = end_in(found)
    if end is None:
        return None
    said = [message for message in found[:end] if is_dialogue(message)]
    return MessagePage(messages=tuple(said[-count:]), older=len(said) > count)


def _decode_messages(data: bytes) -> tuple[Message, ...]:
    found = []
    for line in data.split(b"\n"):
        if line.startswith(b"{"):
            try:
                found.append(decode_message(line))
            except InvalidMessage:
                continue
    return tuple(found)
