"""Safe paths, and quarantine of documents that can't be read.

`safe_path` checks only the text: names that a file system or a reader could misinterpret are refused, not repaired. A
leading slash means the root.

Invariants: a safe path does not leave the root. When `quarantine_document` returns, the bytes are durable under the new
name, and the document itself is unchanged.
"""

import unicodedata

from ricordo.errors import AlreadyExists, PathRefused
from ricordo.storage.contract import FileStore, StoredFile

__all__ = ["quarantine_document", "safe_path"]


_MAX_NAME_BYTES = 255
_MAX_PATH_LENGTH = 1000


def safe_path(path: str) -> str:
    """Return `path` relative to the root, without empty or `.` parts; `""` is the root itself.

    Raises: PathRefused if it has a `..` part or a character that is not allowed, or is too long for file systems.
    """
    if not _is_printable(path) or "\\" in path:
        raise PathRefused(f"The path {path[:80]!r} holds a control character or a backslash.")
    parts = [_safe_name(part, path) for part in path.split("/") if part not in {"", "."}]
    joined = "/".join(parts)
    if len(joined) > _MAX_PATH_LENGTH:
        raise PathRefused(f"A path has at most {_MAX_PATH_LENGTH} characters, this one has {len(joined)}.")
    return joined


def _is_printable(path: str) -> bool:
    """Return whether `path` has no control or format character and no line separator."""
    if path.isascii():
        return path.isprintable()
    return not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in path)


def _safe_name(part: str, path: str) -> str:
    folded = unicodedata.normalize("NFKC", part).strip()
    if folded in {"", ".", ".."} or "/" in folded or "\\" in folded:
        raise PathRefused(f"The path {path[:80]!r} leaves the workspace.")
    if len(part.encode()) > _MAX_NAME_BYTES:
        raise PathRefused(f"A file name has at most {_MAX_NAME_BYTES} bytes: {part[:40]!r}….")
    return part


async def quarantine_document(files: FileStore, path: str, stored: StoredFile) -> str:
    """Copy the bytes of the document at `path` to `<path>.broken-<n>`, once, and return that name.

    Raises: StorageError, such as StorageReadOnly, and then nothing was copied.
    """
    number = 1
    while True:
        name = f"{path}.broken-{number}"
        try:
            await files.create(name, stored.data)
        except AlreadyExists:
            # another process, or one that was killed afterwards, may have copied it already
            if (await files.read(name)).data == stored.data:
                return name
            number += 1
        else:
            return name
