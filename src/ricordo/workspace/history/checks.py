"""Checks of files of a root: damaged documents, profiles and change sets. Nothing is changed.

A person may write any text, so only this counts as damage: bytes that are not text, a field that is not closed or can't
be read, and an end in the middle of a sentence.
"""

from collections.abc import Sequence

from anyio.to_thread import run_sync

from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.guard import has_secret
from ricordo.lazy import dataclass, lazy_compile
from ricordo.storage import FileStore
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.history.change_sets import ChangeSets
from ricordo.workspace.layout import WORKSPACE, is_profile
from ricordo.workspace.markdown import unescape

__all__ = ["Check", "check_history", "find_broken_profiles", "find_damage"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of one check: whether it passed, the number of findings, and what to do if it failed."""

    name: str
    ok: bool
    count: int
    detail: str


_UNCLOSED_FIELD = lazy_compile(rb"\[[A-Za-z][\w-]*::(?: [^\]]*)?\Z")
_DERIVED_PREFIX = "h"
_STRICT_FIELDS = frozenset({"at", "since", "confidence"})
"""Fields with values of a fixed format; other unreadable fields may belong to another tool."""
_SENTENCE_ENDS = (b".", b"!", b"?", b":", b")", b"]", b"`", b'"', b"*", b"_", b"\xe2\x80\xa6", b"\xe3\x80\x82")


def find_damage(data: bytes, located: Sequence[LocatedEntry]) -> tuple[str, ...]:
    """Return the damage in a document, a few words with the line for each; `located` are its entries."""
    damage = [*_find_binary(data)]
    for one in located:
        block = data[one.offset : one.offset + one.length].rstrip()
        if one.entry.id.startswith(_DERIVED_PREFIX) and _UNCLOSED_FIELD.match(block, block.rfind(b"[")):
            damage.append(f"line {one.end_line}: a field is cut off")
        damage += [
            f"line {one.end_line}: the field {key} can't be read" for key, _ in one.entry.extra if key in _STRICT_FIELDS
        ]
    return (*damage, *_find_truncation(data, located))


def _find_binary(data: bytes) -> list[str]:
    try:
        data.decode("utf-8")
        at = data.find(b"\0")
    except UnicodeDecodeError as error:
        at = error.start
    line = data.count(b"\n", 0, max(at, 0)) + 1
    return [f"line {line}: bytes that are no text"] if at >= 0 else []


def _find_truncation(data: bytes, located: Sequence[LocatedEntry]) -> list[str]:
    """Return a last bullet that ends inside a sentence or an id, if the bullets before it have ids."""
    last = located[-1] if located else None
    ids = [len(one.entry.id) for one in located[:-1] if not one.entry.id.startswith(_DERIVED_PREFIX)]
    if last is None or not ids or data.endswith(b"\n") or last.offset + last.length < len(data):
        return []
    if last.entry.id.startswith(_DERIVED_PREFIX):
        cut_field = _UNCLOSED_FIELD.match(data, data.rfind(b"[")) is not None
        is_complete = cut_field or (data.endswith(_SENTENCE_ENDS) and last.entry.time is None)
    else:
        is_complete = len(last.entry.id) >= min(ids)
    return [] if is_complete else [f"line {last.end_line}: it ends in the middle of a line"]


_SET_ASIDE_PROFILE = lazy_compile(r"(?:.*/)?profile\.broken-\d+\.json")


async def find_broken_profiles(files: FileStore) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what can't be read, a few words for each, and the profile files set aside."""
    paths = [info.path for info in await files.list(WORKSPACE)]
    profiles = [path for path in paths if is_profile(path)]
    problems = [each for path in profiles for each in await _find_broken_records(files, path)]
    return tuple(problems), tuple(path for path in paths if _SET_ASIDE_PROFILE.fullmatch(path))


async def _find_broken_records(files: FileStore, path: str) -> list[str]:
    from ricordo.workspace.profile import parse_profile

    try:
        read = await run_sync(parse_profile, (await files.read(path)).data, path)
    except FileMissing:
        return []
    except DocumentInvalid as error:
        return [str(error).rstrip(".")]
    except StorageError:
        return [f"{path} can't be read"]
    return [f"{path}: {each.location}: {each.reason}" for each in read.broken]


_MAX_PLACES = 3


async def check_history(files: FileStore) -> list[Check]:
    """Check the records of changes and the contents that they refer to, and search these for secrets.

    The check for secrets is included only if some were found.
    """

    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    damaged = [f"{name} (its record)" for name in await changes.list_unreadable()]
    checker = _ContentChecker(changes)
    for change in await changes.list_changes():
        readable = [
            await checker.is_readable(file.path, version)
            for file in change.files
            for version in (file.before, file.after)
        ]
        if not all(readable):
            damaged.append(f"{change.id} (what it replaced)")
    detail = "changes whose record or contents are damaged, which can't be undone"
    history = Check(name="history", ok=not damaged, count=len(damaged), detail=_list_places(detail, damaged))
    return [history, *([_secrets_check(checker.secret_counts)] if checker.secret_counts else [])]


class _ContentChecker:
    """Checks each content once; `secret_counts` has the number of contents with a secret by file."""

    def __init__(self, changes: ChangeSets) -> None:
        self.secret_counts: dict[str, int] = {}
        self._changes = changes
        self._results: dict[str, bool] = {}
        self._line_results: dict[bytes, bool] = {}

    async def is_readable(self, path: str, version: str) -> bool:
        """Return whether a content can be read; erased content is missing on purpose and counts as readable."""
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
        """Return whether a content has a secret; lines already checked in other contents are not checked again."""
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
    listing = ", ".join(places[:_MAX_PLACES]) + (", and more" if places[_MAX_PLACES:] else "")
    return f"{detail}: {listing}" if places else detail
