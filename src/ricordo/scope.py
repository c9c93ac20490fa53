"""Scope: the owner of a memory. Every read and write needs one.

A scope has up to six parts, from wide to narrow: tenant, user, team, project, agent, session. `encode_folder_name`
turns a part into a folder name.

Invariant: two different names never share a folder, even on a file system that ignores case.
"""

import hashlib
import re
from typing import Literal, TypeAlias, get_args
from urllib.parse import quote

from ricordo.errors import InvalidScope
from ricordo.lazy import dataclass, lazy_compile

__all__ = ["Scope", "ScopeName", "encode_folder_name", "name_digest", "owner_part", "wider_scope", "without_session"]


_MAX_PART_CHARS = 200
_UNSAFE = lazy_compile(r"-[0-9a-f]{8}$|\.$|~")
_RESERVED = lazy_compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)
_PARTS = ("tenant", "user", "team", "project", "agent", "session")
ScopeName: TypeAlias = Literal["session", "private", "project", "team", "user"]
"""Whose a memory is, as seen from an open memory: its session's, its user's in this project, all of the project's, the
team's, or its user's in all projects."""
_NAMED_PARTS: dict[str, tuple[str, ...]] = {
    "session": _PARTS,
    "private": ("tenant", "user", "project"),
    "project": ("tenant", "project"),
    "team": ("tenant", "team"),
    "user": ("tenant", "user"),
}
_NAMED_AFTER = {"private": "user"}


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The owner of a memory. At least one part is given; a part that is `None` is not bound."""

    tenant: str | None = None
    user: str | None = None
    team: str | None = None
    project: str | None = None
    agent: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        """Raises: InvalidScope for a scope without parts, or a part that is empty, too long or not printable."""
        given = self.parts()
        if not given:
            raise InvalidScope
        for name, value in given.items():
            if not isinstance(value, str):
                raise InvalidScope(f"The {name} of a scope is a text, not {value!r}: write {name}={str(value)[:40]!r}.")
            if not value.strip() or len(value) > _MAX_PART_CHARS or not value.isprintable():
                message = (
                    f"The {name} of a scope is a printable text of 1 to {_MAX_PART_CHARS} characters, "
                    f"not {value[:40]!r}."
                )
                raise InvalidScope(message)

    def parts(self) -> dict[str, str]:
        """Return the parts that are given, wide to narrow."""
        return {name: value for name in _PARTS if (value := getattr(self, name)) is not None}

    def __str__(self) -> str:
        """Return the parts for display, such as `user=me project=shop`."""
        return " ".join(f"{name}={value}" for name, value in self.parts().items())


def wider_scope(scope: Scope, name: ScopeName) -> Scope:
    """Return the scope that `name` means for what is open for `scope`; it has only parts of `scope`.

    Raises: InvalidScope for another name, or if `scope` lacks the part, such as a session.
    """
    if name not in get_args(ScopeName):
        raise InvalidScope(f"The name of a scope is one of {', '.join(get_args(ScopeName))}, not {name!r}.")
    part, parts = _NAMED_AFTER.get(name, name), scope.parts()
    if part not in parts:
        raise InvalidScope(f"This memory is open for no {part}: it has no scope {name!r}.")
    return Scope(**{each: parts[each] for each in _NAMED_PARTS[name] if each in parts})


def without_session(scope: Scope) -> Scope:
    """Return `scope` without its session, unless it has no other part."""
    others = {name: value for name, value in scope.parts().items() if name != "session"}
    return Scope(**others) if others and scope.session is not None else scope


def encode_folder_name(name: str) -> str:
    """Return a folder name for `name`: percent-encoded, at most 120 characters, different for different names.

    A name with upper-case letters, or one that is too long, gets eight hex digits of its SHA-256 as a suffix.
    """
    encoded = quote(name, safe="").replace(".", "%2E") if name.strip(".") == "" else quote(name, safe="")
    if name == name.lower() and len(encoded) <= 100:
        return encoded
    return f"{encoded[:100]}-{name_digest(name)}"


def owner_part(name: str) -> str:
    """Return the folder name for a user or a tenant, which is also safe for names chosen to collide.

    It is the name from `encode_folder_name`. A name that ends like one with a digest, or that Windows reserves or
    changes, gets a digest too: `ann-17239b6e` (the folder of `Ann` where case is ignored), `con`, `aux.txt`, `ann.`,
    `annabe~1`.
    """
    part, encoded = encode_folder_name(name), quote(name, safe="")
    is_unsafe = _RESERVED.match(part) or (part == encoded and _UNSAFE.search(part))
    return f"{encoded.replace('.', '%2E')[:100]}-{name_digest(name)}" if is_unsafe else part


def name_digest(name: str) -> str:
    """Return eight hex digits of the SHA-256 of `name`."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
