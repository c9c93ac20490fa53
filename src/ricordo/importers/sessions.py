"""Names of sessions: a source's own id where it is safe as a folder name, and otherwise a stable name made for it."""

import re
from collections import Counter
from hashlib import blake2b

from ricordo.lazy import lazy_compile
from ricordo.messages.codec import fingerprint
from ricordo.messages.types import Message

__all__ = ["SessionNames", "safe_session_id"]


_SAFE_NAME = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_UNSAFE_RUN = lazy_compile(r"[^A-Za-z0-9_]+", re.ASCII)
_SLUG_LENGTH = 60


def safe_session_id(raw: str) -> str:
    """Return `raw` if it is safe as a folder name, else its slug and eight hexadecimal digits of its digest."""
    if _SAFE_NAME.fullmatch(raw) and not raw.endswith("."):
        return raw
    digest = blake2b(raw.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_slugify(raw)}-{digest}"


def _slugify(raw: str) -> str:
    return _UNSAFE_RUN.sub("-", raw).strip("-_")[:_SLUG_LENGTH].strip("-_").lower() or "session"


class SessionNames:
    """Names the conversations of one file; two without ids that begin alike get different names, in their order."""

    def __init__(self, stem: str) -> None:
        """Name after `stem`, the name of the file without its ending."""
        self._slug = _slugify(stem)
        self._given: Counter[str] = Counter()

    def derive(self, first: Message) -> str:
        """Return the name of one more conversation without an id that begins with `first`."""
        name = f"{self._slug}-{fingerprint(first)[:8]}"
        self._given[name] += 1
        return name if self._given[name] == 1 else f"{name}-{self._given[name]}"
