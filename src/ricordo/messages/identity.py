"""Stable ids for messages without an id, and the link from each message to the one before it.

Invariant: an id depends only on the session, on the content of the message (role, name, parts, time) and on how many
equal messages came before it. So a conversation read twice gets the same ids, and appended messages change no earlier
id. The digest uses the encoding of version 1, which is part of this contract.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from ricordo.clock import encode_id
from ricordo.messages.codec import encode_message
from ricordo.messages.types import Message

__all__ = ["count_fingerprints", "find_overlap", "fingerprint", "with_ids", "with_parents"]


_ID_BYTES = 16


def fingerprint(message: Message) -> str:
    """Return a digest (32 hexadecimal digits) of the role, name, parts and time of `message`."""
    return blake2b(encode_message(_without_identity(message)), digest_size=_ID_BYTES).hexdigest()


def count_fingerprints(messages: Iterable[Message]) -> dict[str, int]:
    """Count the messages by fingerprint; the result is the `known` of a later batch."""
    return dict(Counter(map(fingerprint, messages)))


def with_ids(messages: Iterable[Message], *, session: str, known: Mapping[str, int] | None = None) -> list[Message]:
    """Return the messages, with a stable id of 26 characters for each one without an id.

    `known` counts the earlier messages of this session by fingerprint (see `count_fingerprints`); None if `messages`
    starts at the beginning of the session. A conversation read in batches gets the same ids as one read at once.
    """
    seen = Counter(known or {})
    result = []
    for message in messages:
        said = fingerprint(message)
        result.append(message if message.id else replace(message, id=_stable_id(session, said, seen[said])))
        seen[said] += 1
    return result


def find_overlap(held: Sequence[str], given: Sequence[str | None]) -> range:
    """Return where in `held`, fingerprints in their order, the beginning of `given` stands already; empty for nowhere.

    That is where `held` ends, or where it holds all of `given`: a conversation may be given again from its beginning,
    or from somewhere in it. One message alone may as well have been said again, so it counts only if it is all of
    `held`. None in `given` is a message that stands nowhere.
    """
    borders, run = [0] * len(given), 0
    for at in range(1, len(given)):
        while run and given[at] != given[run]:
            run = borders[run - 1]
        run += given[at] == given[run]
        borders[at] = run
    run, whole = 0, range(0)
    for at, said in enumerate(held if given else ()):
        while run and (run == len(given) or said != given[run]):
            run = borders[run - 1]
        run += said == given[run]
        if run == len(given) > 1:
            whole = range(at + 1 - run, at + 1)
    if run > 1 or run == len(held):
        return range(len(held) - run, len(held))
    return whole


def with_parents(messages: Iterable[Message], *, after: str | None = None) -> list[Message]:
    """Let each message without a parent follow the one before it, the first one `after`; parents that are there stay.

    A message whose predecessor has no id keeps None.
    """
    previous = after
    result = []
    for message in messages:
        result.append(replace(message, parent=previous or None) if message.parent is None else message)
        previous = message.id
    return result


def _without_identity(message: Message) -> Message:
    return Message(role=message.role, parts=message.parts, time=message.time, name=message.name)


def _stable_id(session: str, said: str, earlier: int) -> str:
    seed = f"{said} {earlier} {session}".encode("utf-8", "surrogatepass")
    return encode_id(int.from_bytes(blake2b(seed, digest_size=_ID_BYTES).digest()))
