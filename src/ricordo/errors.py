"""Every error that Ricordo raises, in one tree.

Catch `RicordoError` for every error, a branch for a group of errors, or a leaf for one cause. The first line of a
class docstring is the default message. Backends translate the errors of their drivers and keep the cause.

    RicordoError
    ├── ScopeError                the scope is missing or wrong
    │   ├── ScopeRequired
    │   ├── ScopeMismatch
    │   ├── MembershipRequired
    │   ├── RootNotTrusted
    │   └── ReasonRequired
    ├── InvalidInput              the caller's value can't be used
    │   ├── InvalidEntry
    │   ├── InvalidFact
    │   ├── DuplicateFact
    │   ├── InvalidScope
    │   ├── InvalidMessage
    │   ├── InvalidSetting
    │   ├── InvalidQuery
    │   └── Unsupported           the backend can't do what was asked
    ├── NotFound
    │   ├── RootNotFound
    │   ├── FileMissing
    │   ├── EntryNotFound
    │   ├── FactNotFound
    │   ├── SessionNotFound
    │   ├── ChangeNotFound
    │   ├── CompactionNotFound
    │   ├── MessageNotFound
    │   └── TaskNotFound
    ├── StorageError              the disk, or a file on it
    │   ├── PathRefused
    │   ├── AlreadyExists
    │   ├── VersionConflict
    │   ├── EditRefused
    │   ├── IndexTooLarge
    │   ├── StorageFull
    │   ├── StorageReadOnly
    │   ├── StorageBusy
    │   ├── StorageFailed
    │   ├── RootMoved
    │   ├── EraseIncomplete
    │   └── DocumentInvalid
    ├── UndoRefused
    ├── LegalHold                 a rule of the settings forbids that something is deleted
    ├── HistoryUnreadable         a conversation that can't be ingested
    ├── IndexUnavailable
    ├── MemoryClosed
    ├── ModelError                the model was not reached, or its answer can't be used
    │   ├── ModelNotFound
    │   ├── ModelKeyMissing
    │   ├── ModelRefused
    │   ├── ModelOverflow
    │   ├── ModelRateLimited
    │   ├── ModelUnavailable
    │   ├── ModelTimeout
    │   ├── SpendingLimitReached
    │   └── ReplyInvalid
    │       └── OutputInvalid
    ├── TaskCancelled
    ├── ToolFailed                raised by a tool: the model receives its message
    ├── LeaseLost
    └── ExtraMissing              an optional dependency is not installed
"""

from collections.abc import Callable

__all__ = [
    "AlreadyExists", "ChangeNotFound", "CompactionNotFound", "DocumentInvalid", "DuplicateFact", "EditRefused",
    "EntryNotFound", "EraseIncomplete", "ExtraMissing", "FactNotFound", "FileMissing", "HistoryUnreadable",
    "IndexTooLarge", "IndexUnavailable", "InvalidEntry", "InvalidFact", "InvalidInput", "InvalidMessage",
    "InvalidQuery", "InvalidScope", "InvalidSetting", "LeaseLost", "LegalHold", "MembershipRequired", "MemoryClosed",
    "MessageNotFound", "ModelError",
    "ModelKeyMissing", "ModelNotFound", "ModelOverflow", "ModelRateLimited", "ModelRefused", "ModelTimeout",
    "ModelUnavailable", "NotFound", "OutputInvalid", "PathRefused", "PoolExhausted", "ReasonRequired", "ReplyInvalid",
    "RicordoError", "RootMoved", "RootNotFound", "RootNotTrusted", "ScopeError", "ScopeMismatch", "ScopeRequired",
    "ServiceError",
    "SessionNotFound", "SpendingLimitReached", "StorageBusy", "StorageError", "StorageFailed", "StorageFull",
    "StorageReadOnly", "TaskCancelled", "TaskNotFound", "ToolFailed", "UndoRefused", "Unsupported", "VersionConflict",
    "set_message_cleaner",
]  # fmt: skip

_cleaners: list[Callable[[str], str]] = []


def set_message_cleaner(clean: Callable[[str], str]) -> None:
    """Set `clean` as the function that removes secrets from the messages of all errors created from now on.

    Messages quote users, models and files, and appear in logs, prompts and terminals.
    """
    _cleaners[:] = [clean]


class RicordoError(Exception):
    """Something in Ricordo could not be done. Its message holds no secret."""

    def __init__(self, message: str | None = None) -> None:
        """Use `message`, or the first line of the class docstring if it is empty or None."""
        doc = (type(self).__doc__ or "").strip().splitlines()
        told = message or (doc[0] if doc else type(self).__name__)
        for clean in _cleaners:
            told = clean(told)
        super().__init__(told)


class ScopeError(RicordoError):
    """The scope of this operation is missing or wrong."""


class ScopeRequired(ScopeError):
    """Every read and write needs a scope: pass `scope=Scope(user=..., project=...)`."""


class ScopeMismatch(ScopeError):
    """This root belongs to another tenant or project."""


class MembershipRequired(ScopeError):
    """Only members of a team, with a role that allows it, read and write the team's memory."""


class RootNotTrusted(ScopeError):
    """The root was not made or trusted on this machine, so nothing of it is used: `ricordo trust PATH` trusts it.

    `root` is the folder of the root; empty if unknown.
    """

    def __init__(self, message: str | None = None, *, root: str = "") -> None:
        """Store the folder of the root."""
        super().__init__(message)
        self.root = root


class ReasonRequired(ScopeError):
    """A memory visible beyond one project needs a reason: pass `reason="..."`."""


class InvalidInput(RicordoError, ValueError):
    """The value can't be used."""


class InvalidEntry(InvalidInput):
    """An entry needs content of at most 2 MiB."""


class InvalidFact(InvalidInput):
    """A fact needs content, a category and a confidence between 0 and 1."""


class DuplicateFact(InvalidInput):
    """The profile holds this fact already."""


class InvalidScope(InvalidInput):
    """A scope needs at least one part, each a non-empty text of at most 200 characters."""


class InvalidMessage(InvalidInput):
    """The message has a shape that is not understood."""


class InvalidSetting(InvalidInput):
    """A setting has a value out of its range."""


class InvalidQuery(InvalidInput):
    """The query can't be used."""


class Unsupported(InvalidInput):
    """This store can't do what was asked."""


class NotFound(RicordoError, LookupError):
    """What was asked for is not there."""


class RootNotFound(NotFound):
    """There is no Ricordo root here or above: `ricordo remember` or `ricordo import` creates one."""


class FileMissing(NotFound):
    """The file does not exist."""


class EntryNotFound(NotFound):
    """No memory has this id: `ricordo memory list` shows the ids."""


class FactNotFound(NotFound):
    """The profile has no fact with this id: `ricordo profile show` shows the ids."""


class SessionNotFound(NotFound):
    """No session has this id: `ricordo session list` shows the ids."""


class ChangeNotFound(NotFound):
    """No change has this id: `ricordo history` shows the ids."""


class CompactionNotFound(NotFound):
    """No compaction has this handle: `ricordo compact --list` shows them."""


class MessageNotFound(NotFound):
    """No message of this session has this id."""


class TaskNotFound(NotFound):
    """No task has this id: `ricordo tasks` shows them."""


class StorageError(RicordoError):
    """Reading or writing failed."""


class PathRefused(StorageError):
    """The path leaves the workspace or has a form that is not allowed."""


class AlreadyExists(StorageError):
    """The file exists already and was left unchanged."""


class VersionConflict(StorageError):
    """The file changed since it was read: read it again and repeat the edit."""


class EditRefused(StorageError):
    """The text to replace must occur exactly once: quote more of it, or ask for all occurrences."""


class IndexTooLarge(StorageError):
    """MEMORY.md would be larger than it may be: put what is longer into a topic; nothing was written.

    `cap` is the name of the limit: `lines`, `bytes` or `tokens`.
    """

    def __init__(self, message: str | None = None, *, cap: str = "lines") -> None:
        """Store the name of the limit that would be exceeded."""
        super().__init__(message)
        self.cap = cap


class StorageFull(StorageError):
    """The disk is full: nothing was written, and everything saved before can still be read."""


class StorageReadOnly(StorageError):
    """The root can't be written to: reading goes on, saving needs a writable root."""


class StorageBusy(StorageError):
    """Another process holds the lock for too long."""


class StorageFailed(StorageError):
    """The disk reported an error."""


class RootMoved(StorageError):
    """The folder of an open memory was moved, removed or replaced: bring it back, or open the memory again."""


class EraseIncomplete(StorageError):
    """Something of what was to be erased is left: end what writes to the named files and erase it again."""


class DocumentInvalid(StorageError):
    """The document can't be parsed."""


class UndoRefused(RicordoError):
    """The change can't be undone: what it wrote was changed again since."""


class LegalHold(RicordoError):
    """A legal hold keeps it."""


class HistoryUnreadable(RicordoError):
    """The file holds no conversation in a form that is understood."""


class IndexUnavailable(RicordoError):
    """The search index can't be used: `ricordo doctor` says why, and searching reads the files meanwhile."""


class MemoryClosed(RicordoError):
    """This memory is closed: open it again, best in an `async with` block."""


class PoolExhausted(RicordoError):
    """All memories that a pool may open at a time are in use, and none was free in time."""


class ModelError(RicordoError):
    """The model could not be asked, or its answer can't be used."""


class ModelNotFound(ModelError):
    """No provider knows this model: name one such as `anthropic:claude-sonnet-5`, or `offline`."""


class ModelKeyMissing(ModelError):
    """The provider of this model needs a key."""


class ModelRefused(ModelError):
    """The provider refused the request."""


class ModelOverflow(ModelError):
    """The request is larger than the model's window.

    `window` is the window of the model and `size` the size of the prompt, in tokens; None if the provider did not say.
    `messages` is the largest number of messages in a request, if it was exceeded; else None.
    """

    def __init__(
        self, message: str | None = None, *, window: int | None = None, size: int | None = None,
        messages: int | None = None,
    ) -> None:  # fmt: skip
        """Store the sizes that the provider reported, in tokens and in messages."""
        super().__init__(message)
        self.window, self.size, self.messages = window, size, messages


class ModelRateLimited(ModelError):
    """The provider asks to wait: too many requests or tokens, or the quota is used up.

    `retry_after` is the wait in seconds; None if the provider did not say.
    """

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        """Store how long the provider asks to wait, in seconds."""
        super().__init__(message)
        self.retry_after = retry_after


class ModelUnavailable(ModelError):
    """The provider can't be reached, is overloaded or has failed."""


class ModelTimeout(ModelError):
    """The provider did not answer in time."""


class SpendingLimitReached(ModelError):
    """The daily limit for the requests of memory is reached, and it goes on by rules: `ricordo spending` shows it."""


class ReplyInvalid(ModelError):
    """The model's reply is empty, cut off or in a form that is not understood.

    `said` is the text of a reply in the wrong form, for callers that can use it; the error message never shows it.
    `cut_off` means that the text is incomplete. `reply` is the whole reply; None if unknown.
    """

    def __init__(self, message: str | None = None, *, said: str = "", cut_off: bool = False) -> None:
        """Store the text of the model."""
        super().__init__(message)
        self.said = said
        self.cut_off = cut_off
        self.reply: object = None


class OutputInvalid(ReplyInvalid):
    """The answer of a turn is not of the type that was asked for, also after it was asked for once more.

    `said` is the text of the last reply. The replies are recorded, and the next turn continues from them.
    """


class TaskCancelled(RicordoError):
    """The task was cancelled before it ended."""


class ToolFailed(RicordoError):
    """The tool could not do what it was asked."""


class LeaseLost(RicordoError):
    """The lease of this job ran out, and somebody else may have taken it."""


class ServiceError(RicordoError):
    """The service of a remote memory can't be reached, or its answer is not understood.

    `status` is that of its answer, 0 for none.
    """

    def __init__(self, message: str | None = None, *, status: int = 0) -> None:
        """Store the status."""
        super().__init__(message)
        self.status = status


class ExtraMissing(RicordoError):
    """An optional part is not installed."""


def install_command(extra: str) -> str:
    """Return the command that installs an extra of Ricordo, and where to run it.

    It names the source folder and no package index: Ricordo is not published there yet.
    """
    return f"`pip install '.[{extra}]'` in the source folder of Ricordo"
