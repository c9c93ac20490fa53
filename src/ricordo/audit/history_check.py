"""The checks of history: whether each change can still be told of and taken back, and whether it keeps a secret."""

from anyio.to_thread import run_sync

from ricordo.audit.check import Check
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.guard import has_secret
from ricordo.workspace.changes import ChangeSets
from ricordo.workspace.escapes import unescape

__all__ = ["check_history"]

_MAX_PLACES = 3


async def check_history(files: FileStore) -> list[Check]:
    """Return the check of the records of changes and of the contents that they name, and that of secrets in these.

    The latter is there only where something was found.
    """
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    damaged = [f"{name} (its record)" for name in await changes.list_unreadable()]
    look = _ContentChecker(changes)
    for change in await changes.list_changes():
        whole = [
            await look.is_readable(file.path, version) for file in change.files for version in (file.before, file.after)
        ]
        if not all(whole):
            damaged.append(f"{change.id} (what it replaced)")
    detail = "changes whose record or contents are damaged, which can't be undone"
    history = Check(name="history", ok=not damaged, count=len(damaged), detail=_list_places(detail, damaged))
    return [history, *([_secrets_check(look.secret_counts)] if look.secret_counts else [])]


class _ContentChecker:
    """Looks at each content once; `secret_counts` are the files of which one holds a secret, with how many do."""

    def __init__(self, changes: ChangeSets) -> None:
        self.secret_counts: dict[str, int] = {}
        self._changes = changes
        self._results: dict[str, bool] = {}
        self._line_results: dict[bytes, bool] = {}

    async def is_readable(self, path: str, version: str) -> bool:
        """Tell whether a content can be read; what was erased is gone, and so it is to be."""
        if version not in self._results:
            self._results[version] = True
            try:
                data = await self._changes.read_content(version)
            except FileMissing:
                return True
            except StorageError:
                self._results[version] = False
                return False
            holds = await run_sync(self._holds_secret, data) if data else False
            if holds:
                self.secret_counts[path] = self.secret_counts.get(path, 0) + 1
        return self._results[version]

    def _holds_secret(self, data: bytes) -> bool:
        """Tell whether a content holds a secret; most of its lines stand in an earlier one too, and are known."""
        lines = data.split(b"\n")
        if any(self._line_results.get(line) for line in lines):
            return True
        new = [line for line in lines if line not in self._line_results]
        holds = has_secret(unescape(b"\n".join(new).decode("utf-8", "replace")))
        for line in new:
            self._line_results[line] = holds and has_secret(unescape(line.decode("utf-8", "replace")))
        return holds


def _secrets_check(holding: dict[str, int]) -> Check:
    detail = "contents that history keeps with a secret in them, for `ricordo undo`; no model is shown them: "
    detail += "`ricordo erase --text` takes a text out of them too, and the secret is to be changed"
    places = [f"{path} ({count:,})" for path, count in sorted(holding.items())]
    return Check(name="secrets in history", ok=False, count=sum(holding.values()), detail=_list_places(detail, places))


def _list_places(detail: str, places: list[str]) -> str:
    shown = ", ".join(places[:_MAX_PLACES]) + (", and more" if places[_MAX_PLACES:] else "")
    return f"{detail}: {shown}" if places else detail
