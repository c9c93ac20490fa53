"""Safe names: a path given by a model or a person can't lead out of the root.

`safe_path` decides on the text alone and is pure; the local backend checks symbolic links besides. A leading slash
means the root. Names that a file system or a reader could take for something else are refused rather than repaired:
parent segments, NUL and control characters, backslashes, and characters that compatibility normalisation turns into
a dot or a slash.
"""

import unicodedata

from ricordo.errors import PathRefused

__all__ = ["safe_path"]

_MAX_NAME_BYTES = 255
_MAX_PATH_LENGTH = 1000


def safe_path(path: str) -> str:
    """Return `path` relative to the root, without empty or `.` parts; `""` is the root itself.

    Raises: PathRefused if it has a `..` part or a character that is not allowed, or is longer than file systems take.
    """
    if not _is_printable(path) or "\\" in path:
        raise PathRefused(f"The path {path[:80]!r} holds a control character or a backslash.")
    parts = [_safe_name(part, path) for part in path.split("/") if part not in {"", "."}]
    joined = "/".join(parts)
    if len(joined) > _MAX_PATH_LENGTH:
        raise PathRefused(f"A path has at most {_MAX_PATH_LENGTH} characters, this one has {len(joined)}.")
    return joined


def _is_printable(path: str) -> bool:
    """Tell whether no character of `path` is a control or a format character, or ends a line."""
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
