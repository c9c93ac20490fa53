"""Reading a history: whatever form it has, its messages and memories, one after the other.

A session's own id is kept when it is safe as a folder name, and made safe otherwise.

Invariant: nothing in a file ends the reading but its end. The one error is a source with nothing to import in it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath

from ricordo.errors import FileMissing, HistoryUnreadable, StorageFailed
from ricordo.importers.contract import ImportedItem, ImportedMessage
from ricordo.importers.registry import ImportFormat, describe_formats, find_format, list_formats
from ricordo.importers.sessions import safe_session_id
from ricordo.importers.source import ImportSource, ProblemHandler
from ricordo.lazy import dataclass

__all__ = ["FoundSource", "find_sources", "read_history", "read_items"]


_SUFFIXES = frozenset({".db", ".json", ".jsonl", ".md", ".ndjson", ".zip"})


def read_history(
    path: Path, *, on_problem: ProblemHandler, on_progress: Callable[[int, int], None] | None = None
) -> Iterator[ImportedMessage]:
    """Give the messages of the history in `path`, in the order of the file, as they are read.

    `path` is a file, an archive or a folder. Memories in it are left out: `read_items` gives them as well.
    `on_problem` gets each record that had to be skipped, and what was read with losses.
    `on_progress` gets the bytes read and the bytes to read. Messages keep the ids of the file where it has them and
    they are unique in their session; the others have an empty id.

    Raises:
        FileMissing: there is no such file; raised at once. HistoryUnreadable: it is empty, or (at its end) no record of
        it was a message; the text names the forms that are. StorageFailed: the system refuses to read it.
    """
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if on_progress is not None:
            on_progress(done, source.size)

    source = ImportSource(path, on_problem=on_problem, on_bytes=count)
    _ = source.size
    return _read_messages(source)


def _read_messages(source: ImportSource) -> Iterator[ImportedMessage]:
    empty = True
    for found in find_sources(source):
        for item in read_items(found.source, found.form) if found.form else ():
            if isinstance(item, ImportedMessage):
                empty = False
                yield item
    if empty:
        raise HistoryUnreadable(f"{source.name} holds no conversation. {describe_formats()}")


@dataclass(frozen=True, kw_only=True)
class FoundSource:
    """A source and its format; without one `reason` says why it can't be imported, empty if no format is its own.

    `folder` is the folder in which a program worked when it wrote the source, None if unknown. With `everywhere` its
    memories are about the person and hold for all projects.
    """

    source: ImportSource
    form: ImportFormat | None
    reason: str = ""
    folder: Path | None = None
    everywhere: bool = False


def find_sources(source: ImportSource) -> Iterator[FoundSource]:
    """Give what can be imported of `source`; of a folder or an archive each file or folder in it that has a format.

    Files of a folder are given by name, and those with another ending than .db, .json, .jsonl, .md, .ndjson or .zip are
    left out. Below a folder, a file that can't be read is given with the reason. A single file
    with an unknown format is read as a chat, which tells what is wrong with it. Raises: the errors of `ImportSource`.
    """
    formats = list_formats()
    if not source.is_container:
        yield FoundSource(source=source, form=find_format(source, formats) or formats[-1])
        return
    waiting = [source]
    while waiting:
        each = waiting.pop()
        try:
            form = find_format(each, formats)
            children = [] if form else [child for child in each.children() if _may_hold_history(child)]
        except (FileMissing, HistoryUnreadable, StorageFailed) as error:
            yield FoundSource(source=each, form=None, reason=str(error))
            continue
        finally:
            # a folder may hold thousands, and the beginning of each was read
            each.release()
        if form is not None or not each.is_container:
            yield FoundSource(source=each, form=form)
        waiting += reversed(children)


def _may_hold_history(source: ImportSource) -> bool:
    return source.path.is_dir() or PurePath(source.filename).suffix.lower() in _SUFFIXES


def read_items(source: ImportSource, form: ImportFormat) -> Iterator[ImportedItem]:
    """Give the messages and memories of a source that has this format, as they are read.

    Session ids are safe as folder names. An id that was there before in its session is emptied: the transcript gives
    that message one of its own. Raises the errors of `ImportSource.open`.
    """
    seen: dict[str, set[str]] = {}
    for item in form.load().read(source):
        if not isinstance(item, ImportedMessage):
            yield item
            continue
        session = safe_session_id(item.session)
        ids = seen.setdefault(session, set())
        message = replace(item.message, id="") if item.message.id in ids else item.message
        ids.add(item.message.id)
        yield replace(item, session=session, message=message)
