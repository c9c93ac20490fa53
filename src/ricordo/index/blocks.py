"""A block that is appended to a document whose end is known: the append itself, and the rows of what was appended.

What is durable is the file. The append is made once, before anything is written to the index, and whatever becomes of
that, the next search finds it.
"""

import time
from dataclasses import dataclass

from ricordo.database.sqlite import Turn
from ricordo.errors import RicordoError, StorageBusy
from ricordo.files.contract import Appended, AppendsHere, FileInfo
from ricordo.guard import Redactor
from ricordo.index.chunking import Tail, following_terms, tail_rows
from ricordo.index.documents import Document
from ricordo.index.plan import Known
from ricordo.index.tables import append_document, tail_after, tail_of
from ricordo.workspace.document_text import count_line_ends

__all__ = ["Append", "Block", "End", "with_block"]

_BUSY_SECONDS = 0.05
"""How long other writers of the file are waited for while nobody else can search."""


@dataclass(frozen=True, kw_only=True)
class End:
    """What is known of a document, and what a block that is appended to it would follow."""

    known: Known
    tail: Tail


@dataclass(frozen=True, kw_only=True)
class Block:
    """The bytes `data` that follow the part `base` of a document, and what is `known` of it with them.

    `tail` is what they follow, None where that is still to be asked for; `redactor` takes secrets out.
    """

    document: Document
    data: bytes
    base: Known
    known: Known
    redactor: Redactor
    tail: Tail | None = None

    def take_in(self, turn: Turn) -> End | None:
        """Write the rows of the block; None, and nothing done, when what is stored is not `base` any more."""
        tail = self.tail or turn.read(lambda connection: tail_of(connection, self.base))
        # they are cut before the transaction begins: other processes wait for its end
        rows = tail_rows(self.document, self.data, tail, self.redactor) if self.data else []
        following = following_terms(rows) if self.document.sort == "transcript" else ""
        if not turn.write(lambda connection: append_document(connection, self.base, self.known, rows, following)):
            return None
        return End(known=self.known, tail=tail_after(rows, tail, self.known))


class Append:
    """An append that is made at most once; what comes of it is kept for whoever asked for it."""

    def __init__(self, files: AppendsHere, path: str, data: bytes, *, header: bytes = b"") -> None:
        """Prepare to append `data` to the file at `path`, which is created with `header` if need be."""
        self.data = data
        self._files = files
        self._path = path
        self._header = header
        self._made: Appended | None = None
        self._refused: RicordoError | None = None

    def make(self) -> Appended | None:
        """Append, and return where the bytes lie; None when they could not be appended. It blocks on the disk."""
        try:
            self._made = self._files.appended(self._path, self.data, header=self._header, busy_seconds=_BUSY_SECONDS)
        except RicordoError as error:
            self._refused = error
        return self._made

    def outcome(self) -> Appended | None:
        """Return where the bytes lie, None when they are still to be appended. Raises what forbade it."""
        if self._refused is not None and not isinstance(self._refused, StorageBusy):
            raise self._refused
        return self._made


def with_block(base: Known, data: bytes, info: FileInfo | None) -> Known:
    """Return what is known of a document with `data` at its end, which is `info` by now."""
    size = base.size + len(data)
    # when more than this block was appended, the time of a part is not that of the whole
    modified_ns = info.modified_ns if info and info.size == size else 0
    return Known(
        path=base.path,
        sort=base.sort,
        size=size,
        modified_ns=modified_ns,
        checked_ns=time.time_ns(),
        checksum=base.checksum.after(data),
        lines=base.lines + count_line_ends(data),
        changed_ns=info.changed_ns if info else 0,
    )
