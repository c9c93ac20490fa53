"""What taking in a history gives: messages with their session, and what could not be read.

Invariant: a broken record is one `ImportProblem` and never the end of the reading; everything else in the file still arrives.
"""

from dataclasses import dataclass

from ricordo.messages.types import Message

__all__ = ["ImportedMessage", "ImportProblem"]


@dataclass(frozen=True, kw_only=True)
class ImportedMessage:
    """One message of a history.

    `session` is safe as a folder name (ASCII letters, digits, `-`, `_`, `.`) and the same each time the file is read,
    also after the file has grown at its end. `line` counts from 1 and is the line of the message, or of the record it
    stands in.
    """

    session: str
    message: Message
    line: int


@dataclass(frozen=True, kw_only=True)
class ImportProblem:
    """Something to know about a record: where it stands (`line` counts from 1) and why, without quoting what it says.

    It was `skipped`, or else it was read with what the reason tells.
    """

    path: str
    line: int
    reason: str
    skipped: bool = True
