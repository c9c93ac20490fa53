"""The secret of a root: 32 random bytes for keyed digests, made once and kept beside the workspace."""

import secrets
from contextlib import suppress

from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, StorageReadOnly
from ricordo.files import FileStore
from ricordo.workspace.layout import GUARD_KEY

__all__ = ["guard_key", "new_key"]

_KEY_BYTES = 32


def new_key() -> bytes:
    """Return a secret for what has no root to keep one in."""
    return secrets.token_bytes(_KEY_BYTES)


async def guard_key(files: FileStore) -> bytes:
    """Return a root's secret, which is made when there is none. Raises `DocumentInvalid`, `StorageFull`."""
    try:
        key = (await files.read(GUARD_KEY)).data
    except FileMissing:
        key = await _stored_key(files)
    if len(key) != _KEY_BYTES:
        raise DocumentInvalid(
            f"{GUARD_KEY} is damaged: restore it from a backup, or delete it, which lets what was forgotten come back."
        )
    return key


async def _stored_key(files: FileStore) -> bytes:
    """Store a new secret and return it, or the one that another process stored meanwhile.

    In a root that can only be read it holds for this process: nothing is written that would need it later.
    """
    key = new_key()
    with suppress(StorageReadOnly):
        try:
            await files.create(GUARD_KEY, key)
        except AlreadyExists:
            return (await files.read(GUARD_KEY)).data
    return key
