"""What an importer reads: a file, a folder, an archive, or a file in an archive. Nothing in it is ever changed.

A source is opened when it is read, as often as it is read. A file in an archive is read in place and never unpacked to
the disk, so its name can't lead anywhere.
"""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from ricordo.errors import FileMissing, HistoryUnreadable, RicordoError, StorageFailed
from ricordo.importers.json_stream import JsonRecord
from ricordo.importers.records import FileLine, JsonContent, as_utf8, examine_content, read_lines
from ricordo.lazy import dataclass

__all__ = ["ImportProblem", "ImportSource", "ProblemHandler"]


@dataclass(frozen=True, kw_only=True)
class ImportProblem:
    """A problem with a record: its line (from 1) and the reason, without quoting the record.

    The record was `skipped`, or else it was read with the change that the reason describes. `path` is the name of the
    source. `record` is the number of the record in its list, from 1; 0 if it is in none.
    """

    path: str
    line: int
    reason: str
    skipped: bool = True
    record: int = 0

    @property
    def place(self) -> str:
        """Where it is, for people: the source with the line, and with the number of the record if that tells more."""
        return f"{self.path}:{self.line}" + (f" (record {self.record:,})" if self.record else "")


ProblemHandler = Callable[[ImportProblem], None]
_FIRST_RECORDS = 1_000
_FIRST_BYTES = 1024 * 1024
_BUFFER = 256 * 1024
_ARCHIVE_MARK = b"PK\x03\x04"
# text packs to a tenth or twentieth of its size; a thousandth is the most that the format can do
_LARGEST_RATIO = 200
_LARGEST_UNCHECKED = 64 * 1024 * 1024
_OTHER_FOLDERS = frozenset({".git", ".ricordo", ".venv", "node_modules"})


def _ignore_progress(_: int) -> None:
    return None


def _ignore_problem(_: ImportProblem) -> None:
    return None


def _ignore_record(line: int, reason: str, *, skipped: bool = True, record: int = 0) -> None:
    del line, reason, skipped


@contextmanager
def _explain_damage(name: str) -> Iterator[None]:
    """Raise HistoryUnreadable for what an archive raises that is damaged or encrypted."""
    try:
        yield
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise HistoryUnreadable(f"{name} can't be unpacked: {error}.") from error


class _MemberReader(RawIOBase):
    """The bytes of a file in an archive; damage that is met on the way is raised as HistoryUnreadable."""

    def __init__(self, member: IO[bytes], name: str) -> None:
        self._member, self._name = member, name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # BufferedReader gives a memoryview
        with _explain_damage(self._name):
            data = self._member.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        with _explain_damage(self._name):
            return self._member.seek(offset, whence)

    def tell(self) -> int:
        return self._member.tell()

    def close(self) -> None:
        self._member.close()
        super().close()


class ImportSource:
    """A file, folder, archive, or file in an archive, with its JSON records and the problems found in them."""

    def __init__(
        self,
        path: Path,
        *,
        name: str = "",
        on_problem: ProblemHandler = _ignore_problem,
        on_bytes: Callable[[int], None] = _ignore_progress,
        member: ZipInfo | None = None,
        part: str = "",
    ) -> None:
        """Name the file or folder at `path`; `name` is what people call it, by default its path.

        `on_problem` gets what `report` is given, `on_bytes` how many bytes more have been read. With `member` it is
        that file in the archive at `path`. With a `part` only that part of it is meant, as its importer names parts.
        """
        self.path = path
        self.name = name or str(path)
        self.part = part
        self._on_problem, self._on_bytes, self._member = on_problem, on_bytes, member
        self._record = 0

    def watched(
        self, *, on_problem: ProblemHandler | None = None, on_bytes: Callable[[int], None] | None = None
    ) -> "ImportSource":
        """Return the same source with other handlers; a handler that is not given stays."""
        return ImportSource(
            self.path,
            name=self.name,
            on_problem=on_problem or self._on_problem,
            on_bytes=on_bytes or self._on_bytes,
            member=self._member,
            part=self.part,
        )

    def release(self) -> None:
        """Let go of what was read of it; it is read again when it is asked for."""
        # what was read refers to this source, so it would stay until the next collection of garbage
        for name in ("first_records", "_content"):
            vars(self).pop(name, None)

    @property
    def filename(self) -> str:
        """The last part of its name, such as `conversations.json`."""
        return self.path.name if self._member is None else PurePosixPath(self._member.filename).name

    @cached_property
    def size(self) -> int:
        """How many bytes are read of it: of a file as UTF-8, of a folder or an archive those of all its children.

        A child that can't be read has none. Raises the errors of `open` for a file.
        """
        if self.is_container:
            return sum(_find_size(child) for child in _find_children(self))
        if self._member is not None:
            return self._member.file_size
        with self.open() as file:
            return file.seek(0, 2)

    @cached_property
    def is_container(self) -> bool:
        """Whether it is a folder or an archive, and so has `children`."""
        return self._member is None and (self.path.is_dir() or self._is_archive)

    @cached_property
    def _is_archive(self) -> bool:
        try:
            with self.path.open("rb") as file:
                return file.read(len(_ARCHIVE_MARK)) == _ARCHIVE_MARK
        except OSError:
            return False

    def children(self) -> "Iterator[ImportSource]":
        """Give the files and folders directly in a folder, or all files in an archive, by name; none for a file.

        Links to folders are not followed, and folders that hold programs, such as `node_modules`, are left out. Raises:
        HistoryUnreadable for a broken archive; StorageFailed.
        """
        if not self.is_container:
            return
        if self._is_archive:
            yield from self._list_members()
            return
        try:
            paths = sorted(self.path.iterdir())
        except OSError as error:
            raise StorageFailed(f"{self.name} can't be listed: {type(error).__name__}.") from error
        for path in paths:
            if path.is_file() or (path.is_dir() and not path.is_symlink() and path.name not in _OTHER_FOLDERS):
                yield self._make_child(path, f"{self.name.rstrip('/')}/{path.name}")

    def _make_child(self, path: Path, name: str, member: ZipInfo | None = None) -> "ImportSource":
        return ImportSource(path, name=name, on_problem=self._on_problem, on_bytes=self._on_bytes, member=member)

    def _list_members(self) -> "Iterator[ImportSource]":
        with self._open_archive() as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
        for member in sorted(members, key=lambda each: each.filename):
            yield self._make_child(self.path, f"{self.name}/{member.filename}", member)

    def open(self) -> BinaryIO:
        """Open a file for reading its bytes, as UTF-8 even if it has the byte order mark of UTF-16.

        Raises: FileMissing if there is no such file; HistoryUnreadable for a folder, or a file in an archive that is
        broken, encrypted, or packed beyond belief; StorageFailed if the system refuses to open it.
        """
        if self._member is not None:
            return self._open_member(self._member)
        try:
            return as_utf8(self.path.open("rb"))
        except FileNotFoundError as error:
            raise FileMissing(f"There is no file {self.name}.") from error
        except IsADirectoryError as error:
            raise HistoryUnreadable(f"{self.name} is a folder; name the file that holds the conversation.") from error
        except (OSError, ValueError) as error:
            raise StorageFailed(f"{self.name} can't be opened: {type(error).__name__}.") from error

    def _open_member(self, member: ZipInfo) -> BinaryIO:
        ratio = member.file_size / max(member.compress_size, 1)
        if member.file_size > _LARGEST_UNCHECKED and ratio > _LARGEST_RATIO:
            raise HistoryUnreadable(f"{self.name} is {ratio:,.0f} times as large as in the archive, and was not read.")
        with self._open_archive() as archive, _explain_damage(self.name):
            # the member stays open when the archive is closed
            return as_utf8(BufferedReader(_MemberReader(archive.open(member), self.name), _BUFFER))

    def _open_archive(self) -> ZipFile:
        try:
            return ZipFile(self.path)
        except FileNotFoundError as error:
            raise FileMissing(f"There is no file {self.path}.") from error
        except OSError as error:
            raise StorageFailed(f"{self.path} can't be opened: {type(error).__name__}.") from error
        except (BadZipFile, ValueError, NotImplementedError) as error:
            raise HistoryUnreadable(f"{self.path} is a broken archive: {error}.") from error

    def lines(self) -> Iterator[FileLine]:
        """Give the non-blank lines of a file. Raises the errors of `open`."""
        return read_lines(self.open)

    @cached_property
    def first_records(self) -> tuple[JsonRecord, ...]:
        """The first JSON records, at most 1,000 and from about 1 MiB; empty for a folder, and without any record.

        Raises the errors of `open`.
        """
        if self.is_container or self._content is None:
            return ()
        read = 0

        def count(bytes_read: int) -> None:
            nonlocal read
            read = bytes_read

        records = []
        for record in self._content.records(_ignore_record, count):
            records.append(record)
            if len(records) == _FIRST_RECORDS or read > _FIRST_BYTES:
                break
        return tuple(records)

    def records(self, *, quiet: bool = False, progress: tuple[float, float] = (0.0, 1.0)) -> Iterator[JsonRecord]:
        """Give the JSON records of a file in order: its lines, the elements of its list, or its one document.

        A broken one is reported, unless `quiet`. A format that reads a source twice says with `progress` from which to
        which share of the work one reading counts. Raises the errors of `open`; HistoryUnreadable if it is empty.
        """
        if self._content is None:
            raise HistoryUnreadable(f"{self.name} is empty.")
        start, end = progress
        counted = 0

        def count(bytes_read: int) -> None:
            nonlocal counted
            done = int(min(bytes_read, self.size) * (end - start))
            self._on_bytes(done - counted)
            counted = done

        for record in self._content.records(_ignore_record if quiet else self.report, count):
            self._record = record.number
            yield record
        self._record = 0
        count(self.size)

    @cached_property
    def _content(self) -> JsonContent | None:
        return examine_content(self.open, self.size)

    def add_progress(self, more: int) -> None:
        """Report that so many bytes more have been read; for who reads with `open` or `lines`."""
        self._on_bytes(more)

    def report(self, line: int, reason: str, *, skipped: bool = True, record: int = 0) -> None:
        """Report that the record in a line was skipped, or read with the change that `reason` describes.

        `record` is its number in its list, by default that of the record that `records` gave last.
        """
        number = record or self._record
        self._on_problem(ImportProblem(path=self.name, line=line, reason=reason, skipped=skipped, record=number))


def _find_children(source: ImportSource) -> list[ImportSource]:
    try:
        return list(source.children())
    except RicordoError:
        return []


def _find_size(source: ImportSource) -> int:
    try:
        return source.size
    except RicordoError:
        return 0
