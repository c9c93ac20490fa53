"""The key of a root, in `guard.key`: 32 random bytes for keyed digests, and 32 more by which the root is known.

The second half is made anew when a root is trusted, so that a key that somebody else knows is never one of a trusted
root. A root of an earlier version has the first half only.
"""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256

from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, StorageReadOnly
from ricordo.files import FileStore
from ricordo.workspace.layout import GUARD_KEY

__all__ = ["KEY_LENGTHS", "digest_key", "load_guard_key", "identity_from_key", "create_key", "create_root_key"]

_HALF_BYTES = 32

KEY_LENGTHS = frozenset({_HALF_BYTES, 2 * _HALF_BYTES})
"""How many bytes the file of a key may have."""


def create_key() -> bytes:
    """Return a secret for what has no root to keep one in."""
    return secrets.token_bytes(_HALF_BYTES)


def create_root_key(digests: bytes | None = None) -> bytes:
    """Return a new key of a root, for which the half for digests may be given."""
    return (digests or create_key()) + create_key()


def identity_from_key(stored: bytes) -> str:
    """Return by what a root with this key is known."""
    return sha256(b"ricordo root\0" + stored).hexdigest()


def digest_key(stored: bytes) -> bytes:
    """Return the secret for keyed digests of a root with this key."""
    return stored[:_HALF_BYTES]


async def load_guard_key(files: FileStore, note: Callable[[str], Awaitable[None]] | None = None) -> bytes:
    """Return the key of a root, which is made when there is none.

    Before a new key is stored, `note` is called with the identity of the root, so that what is stored was noted.
    Raises: DocumentInvalid; StorageFull; what `note` raises.
    """
    try:
        key = (await files.read(GUARD_KEY)).data
    except FileMissing:
        key = await _store_new_key(files, note)
    if len(key) not in KEY_LENGTHS:
        raise DocumentInvalid(
            f"{GUARD_KEY} is damaged: restore it from a backup, or delete it and run `ricordo trust`, which lets what "
            "was forgotten come back."
        )
    return key


async def _store_new_key(files: FileStore, note: Callable[[str], Awaitable[None]] | None) -> bytes:
    """Store a new key and return it, or the one that another process stored meanwhile.

    In a root that can only be read it holds for this process: nothing is written that would need it later.
    """
    key = create_root_key()
    if note:
        await note(identity_from_key(key))
    with suppress(StorageReadOnly):
        try:
            await files.create(GUARD_KEY, key)
        except AlreadyExists:
            return (await files.read(GUARD_KEY)).data
    return key
