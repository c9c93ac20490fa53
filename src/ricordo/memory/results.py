"""What the façade gives back where no room below has a value for it."""

from dataclasses import dataclass

from ricordo.audit import Remaining
from ricordo.messages import Message
from ricordo.sessions import SessionInfo
from ricordo.workspace.entry import Entry
from ricordo.workspace.transcript import BrokenLine

__all__ = ["ForgetResult", "IngestReport", "RecordedSession"]


@dataclass(frozen=True, kw_only=True)
class ForgetResult:
    """The entry that was forgotten, and what still says its words, nearest place first.

    `remaining` are longer memories that contain these words, facts of the profile, and plans, notes, rules and todos in
    nearly the same words. They are not forgotten with it.
    """

    entry: Entry
    remaining: tuple[Remaining, ...] = ()


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """What taking in messages of a session did: how many were given and new, and the entries that rules learned.

    `messages` are the given ones as they are stored, with their ids. `change_id` is the id by which `undo` takes back what
    rules learned, empty where that is nothing. With `is_queued` a model learns from the messages in the background.
    """

    session: str
    messages: tuple[Message, ...] = ()
    added_count: int = 0
    entries: tuple[Entry, ...] = ()
    change_id: str = ""
    is_queued: bool = False


@dataclass(frozen=True, kw_only=True)
class RecordedSession:
    """A session: its messages in order, the 1-based line of each in the transcript, and the broken lines."""

    info: SessionInfo
    messages: tuple[Message, ...]
    lines: tuple[int, ...]
    broken_lines: tuple[BrokenLine, ...]
