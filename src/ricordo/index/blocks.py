"""A block that is appended to a document whose end is known: the append itself, and the rows of what was appended.

What is durable is the file. The append is made once, before anything is written to the index, and whatever becomes of
that, the next search finds it.
"""

import time
from dataclasses import dataclass

from ricordo.database.sqlite import ExclusiveAccess
from ricordo.errors import RicordoError, StorageBusy
from ricordo.files.contract import AppendedRange, SupportsBlockingAppend, FileInfo
from ricordo.guard import Redactor
from ricordo.index.chunking import TailContext, following_terms, build_tail_rows
from ricordo.index.documents import SearchDocument
from ricordo.index.plan import DocumentFingerprint
from ricordo.index.tables import append_document, advance_tail, read_tail
from ricordo.workspace.document_text import count_line_ends

__all__ = ["PendingAppend", "AppendedBlock", "DocumentEnd", "extend_fingerprint"]

_BUSY_SECONDS = 0.05
"""How long other writers of the file are waited for while nobody else can search."""


@dataclass(frozen=True, kw_only=True)
class DocumentEnd:
    """What is known of a document, and what a block that is appended to it would follow."""

    fingerprint: DocumentFingerprint
    tail: TailContext


@dataclass(frozen=True, kw_only=True)
class AppendedBlock:
    """The bytes `data` that follow the part `base` of a document, and what is `fingerprint` of it with them.

    `tail` is what they follow, None where that is still to be asked for; `redactor` takes secrets out.
    """

    document: SearchDocument
    data: bytes
    base: DocumentFingerprint
    fingerprint: DocumentFingerprint
    redactor: Redactor
    tail: TailContext | None = None

    def write_rows(self, turn: ExclusiveAccess) -> DocumentEnd | None:
        """Write the rows of the block; None, and nothing done, when what is stored is not `base` any more."""
        tail = self.tail or turn.read(lambda connection: read_tail(connection, self.base))
        # they are cut before the transaction begins: other processes wait for its end
        rows = build_tail_rows(self.document, self.data, tail, self.redactor) if self.data else []
        following = following_terms(rows) if self.document.sort == "transcript" else ""
        if not turn.write(lambda connection: append_document(connection, self.base, self.fingerprint, rows, following)):
            return None
        return DocumentEnd(fingerprint=self.fingerprint, tail=advance_tail(rows, tail, self.fingerprint))


class PendingAppend:
    """An append that is made at most once; what comes of it is kept for whoever asked for it."""

    def __init__(self, files: SupportsBlockingAppend, path: str, data: bytes, *, header: bytes = b"") -> None:
        """Prepare to append `data` to the file at `path`, which is created with `header` if need be."""
        self.data = data
        self._files = files
        self._path = path
        self._header = header
        self._appended: AppendedRange | None = None
        self._error: RicordoError | None = None

    def execute(self) -> AppendedRange | None:
        """Append, and return where the bytes lie; None when they could not be appended. It blocks on the disk."""
        try:
            self._appended = self._files.append_blocking(
                self._path, self.data, header=self._header, busy_seconds=_BUSY_SECONDS
            )
        except RicordoError as error:
            self._error = error
        return self._appended

    def result(self) -> AppendedRange | None:
        """Return where the bytes lie, None when they are still to be appended. Raises what forbade it."""
        if self._error is not None and not isinstance(self._error, StorageBusy):
            raise self._error
        return self._appended


def extend_fingerprint(base: DocumentFingerprint, data: bytes, info: FileInfo | None) -> DocumentFingerprint:
    """Return what is known of a document with `data` at its end, which is `info` by now."""
    size = base.size + len(data)
    # when more than this block was appended, the time of a part is not that of the whole
    modified_ns = info.modified_ns if info and info.size == size else 0
    return DocumentFingerprint(
        path=base.path,
        sort=base.sort,
        size=size,
        modified_ns=modified_ns,
        checked_ns=time.time_ns(),
        checksum=base.checksum.extend(data),
        lines=base.lines + count_line_ends(data),
        changed_ns=info.changed_ns if info else 0,
    )
