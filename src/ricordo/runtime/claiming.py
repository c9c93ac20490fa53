"""Claiming: check a root before any of it is used, or create a new root and list it as trusted.

Invariant: a root is on the user's list before its key is stored in it, so a root that was begun here is never refused.
"""

import json
import logging
from contextlib import suppress
from functools import partial
from pathlib import Path

from ricordo.clock import Clock, IdSource, format_rfc3339
from ricordo.concurrency import run_in_thread
from ricordo.errors import AlreadyExists, FileMissing, RootNotTrusted, StorageError, StorageReadOnly
from ricordo.runtime.roots import claim_root, create_root_key, digest_key, identity_from_key, load_guard_key
from ricordo.runtime.settings import Settings
from ricordo.runtime.trust import (
    IGNORE_ALL,
    is_in_data_folder,
    is_own_ignore_file,
    is_vouched_for,
    restrict_modes,
    trust_record_path,
)
from ricordo.scope import Scope
from ricordo.storage import ABSENT, FileStore, StoredFile
from ricordo.workspace.layout import GUARD_KEY, IGNORE_FILE

__all__ = ["claim_trusted_root", "read_root_identity", "trust_root", "untrust_root"]


_LOG = logging.getLogger("ricordo.trust")


async def claim_trusted_root(
    root: Path,
    files: FileStore,
    scope: Scope,
    *,
    settings: Settings,
    trust_list: FileStore,
    clock: Clock,
    ids: IdSource,
) -> tuple[Scope, bytes]:
    """Return the owner of a root and its key for digests; a folder that is not a root yet becomes one.

    `files` are those of the root, `trust_list` those of the list of trusted roots. Raises: RootNotTrusted, and then
    nothing was used or written; ScopeMismatch; DocumentInvalid; StorageError.
    """
    await run_in_thread(settings.check_trust, root)
    is_vouched = await run_in_thread(is_vouched_for, settings.trust, root)
    record_identity = partial(_add_to_list, trust_list, root, clock, required=not is_vouched)
    is_own = await run_in_thread(is_in_data_folder, root, settings.data)
    make_key = partial(load_guard_key, files, None if is_own else record_identity)
    owner = await claim_root(files, scope, clock=clock, ids=ids, begin=make_key)
    key = await make_key()
    if not is_vouched:
        await run_in_thread(restrict_modes, root)
    await _hide_from_git(root, files)
    return owner, digest_key(key)


async def read_root_identity(files: FileStore) -> str | None:
    """Return the identity of the root of `files`; None for a read-only root without a key."""
    try:
        return identity_from_key((await files.read(GUARD_KEY)).data)
    except FileMissing:
        return None


async def trust_root(root: Path, files: FileStore, *, trust_list: FileStore, clock: Clock, keeps_key: bool) -> None:
    """List a root as trusted, under a new identity.

    With `keeps_key` its key for digests stays, so that tombstones still apply; otherwise that key is new too. A
    read-only root keeps its whole key. Raises: DocumentInvalid; StorageError.
    """
    current: StoredFile | None = None
    with suppress(FileMissing):
        current = await files.read(GUARD_KEY)
    new_key = create_root_key(digest_key(current.data) if current and keeps_key else None)
    await _add_to_list(trust_list, root, clock, identity_from_key(new_key))
    try:
        await files.replace(GUARD_KEY, new_key, expected=current.version if current else ABSENT)
    except StorageReadOnly:
        if current is None:
            raise
        await _add_to_list(trust_list, root, clock, identity_from_key(current.data))
        return
    await run_in_thread(partial(restrict_modes, root, below=True))
    await _hide_from_git(root, files)


async def untrust_root(identity: str, *, trust_list: FileStore) -> None:
    """Remove a root from the list, and the permissions of its sessions. Raises `StorageError`."""
    with suppress(FileMissing):
        await trust_list.delete(trust_record_path(identity))
    for permission in await trust_list.list(f"permissions/{identity}"):
        with suppress(FileMissing):
            await trust_list.delete(permission.path)


async def _add_to_list(
    trust_list: FileStore, root: Path, clock: Clock, identity: str, *, required: bool = True
) -> None:
    """Put a root on the list; its path is recorded for people only."""
    record = {"version": 1, "path": str(root), "at": format_rfc3339(clock.now())}
    try:
        await trust_list.create(
            trust_record_path(identity), (json.dumps(record) + "\n").encode("utf-8", "surrogateescape")
        )
    except AlreadyExists:
        return
    except StorageReadOnly as error:
        if required:
            raise RootNotTrusted(
                f"{root} can't be noted as made here: {error} Let RICORDO_DATA name a folder that can be written to, "
                "or set RICORDO_TRUST to the folder of the root.",
                root=str(root),
            ) from error


async def _hide_from_git(root: Path, files: FileStore) -> None:
    """Restore the .gitignore of a root if it is not one of Ricordo's own, and log it."""
    ignore_file: StoredFile | None = None
    with suppress(FileMissing):
        ignore_file = await files.read(IGNORE_FILE)
    if ignore_file is not None and await run_in_thread(partial(is_own_ignore_file, root, ignore_file.data)):
        return
    with suppress(StorageError):
        await files.replace(IGNORE_FILE, IGNORE_ALL, expected=ignore_file.version if ignore_file else ABSENT)
        if ignore_file:
            _LOG.warning(
                "%s let git see more than Ricordo's own does: it hides the whole root again.", root / IGNORE_FILE
            )
