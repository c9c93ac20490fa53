"""Opening a store by an address: one line says which backend, and where it keeps what it is given.

    sessions:./.harness      jsonl:./notes      kv:/var/lib/notes      ring:?capacity=500      fanout:jsonl:a,kv:b

A path without a scheme opens session files. Invariant: an address is read back from its text as what it is.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ricordo.files import FileStore
from ricordo.models import Embedder
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, StoreParts

__all__ = ["DEFAULT_SCHEME", "Address", "Opening", "StoreFactory", "parse_address"]

DEFAULT_SCHEME = "sessions"


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a store is: `scheme` names the backend, `place` is what stands after it, `options` what stands after `?`."""

    scheme: str
    place: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What a backend is opened with.

    `files` returns the files of a folder, claimed for `scope`: a folder that is somebody else's is a `ScopeMismatch`.
    `folder` is where the address points, absolute; None for a backend without a place. `another` opens a further
    address, for backends that stand on others. `embedder` is there where one is configured.
    """

    address: Address
    scope: Scope
    parts: StoreParts
    files: Callable[[Path], AbstractAsyncContextManager[FileStore]]
    another: Callable[[str], AbstractAsyncContextManager[Backend]]
    folder: Path | None = None
    embedder: Embedder | None = None


StoreFactory: TypeAlias = Callable[[Opening], AbstractAsyncContextManager[Backend]]
"""Opens a backend and closes it at the end of the block."""


def parse_address(text: str) -> Address:
    """Return the address that a text says. Raises: InvalidSetting, which says how one looks."""
    raise NotImplementedError
