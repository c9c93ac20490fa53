"""The beginning and the end of an output of any length, in bounded memory, in whole lines.

Secrets are taken out of what is kept, and a secret that was cut in two is not known as one any more. So nothing is cut
within a line, nor within a private key of several lines.

Invariant: what is kept are whole lines of the output, or all of it.
"""

import re
from collections import deque

__all__ = ["HeadTailBuffer"]

_LINE_ENDS = (b"\n", b"\r")
_PRIVATE_KEY_BORDER = re.compile(rb"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^\r\n]*[\r\n]*")


class HeadTailBuffer:
    """Takes an output in, piece by piece."""

    def __init__(self, most: int) -> None:
        """Keep at most `most` bytes, half from the beginning and half from the end."""
        self.lines = 0
        self._half = max(most // 2, 1)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Take in the next bytes."""
        self._size += len(chunk)
        self.lines += chunk.count(b"\n")
        room = self._half - len(self._head)
        self._head += chunk[:room]
        if rest := chunk[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        # one byte more tells whether the tail begins with a line
        while self._tail and self._tail_size - len(self._tail[0]) > self._half:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """Return what is kept, with a notice in the place of what is left out.

        A line ends with a line feed or a carriage return. One that is longer than its half is left out whole.
        """
        if self._size <= 2 * self._half:
            return b"".join([bytes(self._head), *self._tail]).decode("utf-8", "replace")
        head = bytes(self._head)
        head = head[: max(head.rfind(end) for end in _LINE_ENDS) + 1]
        tail = self._whole_tail()
        left_out = self._size - len(head) - len(tail)
        long = "" if head and tail else ", a line that is too long among them"
        notice = f"[… {left_out:,} bytes left out{long} …]\n"
        border = "" if not head or head.endswith(b"\n") else "\n"
        return f"{head.decode('utf-8', 'replace')}{border}{notice}{tail.decode('utf-8', 'replace')}"

    def _whole_tail(self) -> bytes:
        """Return the lines of the last half, without the first one where it is not whole, and without half a key."""
        tail = b"".join(self._tail)[-self._half - 1 :]
        starts = [at + 1 for end in _LINE_ENDS if (at := tail.find(end)) >= 0]
        tail = tail[min(starts) :] if starts else b""
        key = _PRIVATE_KEY_BORDER.search(tail)
        return tail[key.end() :] if key and key[1] == b"END" else tail
