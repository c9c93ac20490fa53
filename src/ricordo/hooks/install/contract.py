"""What is installed for a host, as data: our part of each of its files, and what a person has to know."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, Protocol

from ricordo.lazy import dataclass

__all__ = [
    "HOOKED_EFFECTS",
    "ConfigChange",
    "ConfigPart",
    "InstallOptions",
    "InstallScope",
    "Installer",
    "Machine",
    "Original",
]

InstallScope = Literal["user", "project"]
"""Whether a host is connected for all projects of this user, or for one project and everybody who works in it."""
HOOKED_EFFECTS = (
    "Each session begins with what is remembered, and a prompt brings the memories that fit it.",
    "What is said is kept and learned from, in plain files on this machine.",
)
"""What happens from now on with a host that has hooks for all of it."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where hosts can have their settings: the platform as `sys.platform` names it, the home of the user, the folder of
    the project here, and the environment.
    """

    platform: str
    home: str
    project: str
    environment: Mapping[str, str]


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
    """What the parts depend on.

    `program` is what hosts start, `version` that of Ricordo, and `folder` the host's folder, whose own files are called
    `files`. `root` is the memory of a host that does not say in which project it works.
    """

    program: str
    version: str
    folder: str
    scope: InstallScope
    platform: str
    root: str
    files: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Installer:
    """How one host is connected: a further host is a further value in a file of its own, and one line of the registry.

    `find_folder` returns the host's folder in a scope, empty for a scope that it does not have; `list_parts` returns
    our parts of the files below it. `effects` are the lines that say what happens from now on, in which `{root}` stands
    for the root of the options; with `learns` that is also learning from what is said. `confirmations` says for a scope
    what the person has to do or confirm in the host. `programs` and the folders of `list_signs` are there
    where the host is. The host sets `session_variables` for everything that its agent starts.
    """

    name: str
    title: str
    find_folder: Callable[[InstallScope, Machine], str]
    list_parts: Callable[[InstallOptions], tuple[ConfigPart, ...]]
    list_signs: Callable[[Machine], tuple[str, ...]]
    programs: tuple[str, ...]
    effects: tuple[str, ...]
    learns: bool = False
    confirmations: Mapping[InstallScope, str] = field(default_factory=dict)
    session_variables: tuple[str, ...] = ()


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
