"""What is installed for a host, as data: our part of each of its files, and what a person has to know."""

from collections.abc import Callable
from typing import Literal, Protocol

from ricordo.lazy import dataclass

__all__ = ["ConfigChange", "ConfigPart", "InstallOptions", "InstallScope", "Installer", "Original"]

InstallScope = Literal["user", "project"]
"""Whether a host is connected for all projects of this user, or for one project and everybody who works in it."""


class ConfigPart(Protocol):
    """Our part of one file of a host.

    Both methods return None for a file that is not there. They raise DocumentInvalid for a file that can't be changed
    safely.
    """

    @property
    def path(self) -> str:
        """The file, below the host's folder, with slashes."""
        ...

    def add(self, text: str | None) -> str:
        """Return the file with our part in it, which replaces an older one; adding it again changes nothing."""
        ...

    def remove(self, text: str) -> str | None:
        """Return the file without our part; None if nothing else was in it."""
        ...


@dataclass(frozen=True, kw_only=True)
class InstallOptions:
    """What the parts depend on: the program that hosts start, its version, and the host's folder."""

    program: str
    version: str
    folder: str


@dataclass(frozen=True, kw_only=True)
class Installer:
    """How one host is connected: a further host is a further value in a file of its own, and one line of the registry.

    `folder` is the host's folder in the home of the user and in a project; the environment variable `folder_variable`
    replaces the first. `list_parts` returns our parts. `confirmation` says what the person has to confirm in the host,
    empty for nothing. The host sets `session_variables` for everything that its agent starts.
    """

    name: str
    folder: str
    folder_variable: str
    list_parts: Callable[[InstallOptions], tuple[ConfigPart, ...]]
    confirmation: str
    session_variables: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ConfigChange:
    """One file, below the host's folder, before and after; None means that it is not there."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, kw_only=True)
class Original:
    """What a file was before it was changed, None for not there, and the digest of what was written into it."""

    before: bytes | None
    digest: str
