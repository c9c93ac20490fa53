"""The root of a memory: its location, its owner and its key.

`project.json` names the owner: one project, one team or one user. `guard.key` has 32 random bytes for keyed digests and
32 more that identify the root; the latter are replaced when a root is trusted. A root of an earlier version has only
the first 32.

What is remembered for one session alone has a place of its own, the folder `local/<session>` beside the workspace with
the session's transcript. It is made by the first such memory, has the layout of a root, and is removed as a whole. A
session ends when it is ended. It has also ended if only processes used it that have died, or if nobody has used it for
a day; the next process that opens the memory removes such a place, but for one that continues the same session.

Invariant: a root that belongs to one owner is never opened for another.
"""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

import anyio

from ricordo.clock import Clock, IdSource, format_rfc3339
from ricordo.concurrency import run_in_thread
from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, ScopeMismatch, StorageFailed, StorageReadOnly
from ricordo.lazy import dataclass, lazy_property
from ricordo.messages.json_text import decode_json
from ricordo.scope import Scope, encode_folder_name, owner_part
from ricordo.search.memory_root import SHARED_LABEL, MemoryRoot
from ricordo.storage import FileStore
from ricordo.storage.folders import find_folder_use
from ricordo.workspace.layout import GUARD_KEY, IGNORE_FILE, LEDGERS, LOCAL, PROJECT_FILE, USERS, WORKSPACE

__all__ = [
    "ENDED_PREFIX",
    "KEY_LENGTHS",
    "LAYOUT_VERSION",
    "ROOT_FOLDER",
    "SESSION_LABEL",
    "TEAM_FOLDER",
    "TEAM_LABEL",
    "USER_LABEL",
    "RootLayer",
    "VisibleRoots",
    "cache_folder",
    "claim_folder",
    "claim_root",
    "create_key",
    "create_root_key",
    "default_root",
    "digest_key",
    "find_ended_sessions",
    "find_root",
    "find_team_folder",
    "find_workspace",
    "identity_from_key",
    "list_folders_above",
    "list_root_layers",
    "load_guard_key",
    "new_root_path",
    "owning_scope",
    "parse_marker",
    "read_marker",
    "read_version",
    "remove_prepared_preambles",
    "scope_folder",
    "session_folder",
    "session_layer",
    "upgrade_version",
    "user_root_path",
]


LAYOUT_VERSION = 2
"""The version of the layout. Since version 2, each user of a shared root has a separate folder in it."""
_UNREADABLE_MARKER = (
    f"{PROJECT_FILE} can't be read: restore it from a backup, or write the scope of this root into it again."
)
_SHARED_PARTS = frozenset({"tenant", "team", "project"})
_PRIVATE_PARTS = ("user", "agent", "session")


def owning_scope(scope: Scope) -> Scope:
    """Return the part of `scope` that owns a root: its tenant, and its team and project if given.

    Without a team or project, it is the tenant and the first of user, agent and session.
    """
    parts = scope.parts()
    shared = {name: value for name, value in parts.items() if name in _SHARED_PARTS}
    if shared.keys() - {"tenant"}:
        return Scope(**shared)
    owner_part_name = next((name for name in _PRIVATE_PARTS if name in parts), None)
    return Scope(**shared | ({owner_part_name: parts[owner_part_name]} if owner_part_name else {}))


async def read_marker(files: FileStore) -> Scope | None:
    """Return the owner of this root, or None if the folder is not a root yet. Raises `DocumentInvalid`."""
    try:
        stored = await files.read(PROJECT_FILE)
    except FileMissing:
        return None
    return parse_marker(stored.data)


def parse_marker(marker: bytes) -> Scope:
    """Return the owner named by a root's marker. Raises `DocumentInvalid`."""
    try:
        return Scope(**decode_json(marker)["scope"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DocumentInvalid(_UNREADABLE_MARKER) from error


async def read_team_key(files: FileStore) -> bytes:
    """Return the key for digests in the memory of a team, which is the same in every clone of it.

    It is no secret from those who can read the folder, and they can read the memories too. Raises: DocumentInvalid.
    """
    try:
        name = str(decode_json((await files.read(PROJECT_FILE)).data)["id"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DocumentInvalid(_UNREADABLE_MARKER) from error
    return sha256(b"ricordo team\0" + name.encode("utf-8", "surrogatepass")).digest()


async def read_version(files: FileStore) -> int:
    """Return the layout version named by the marker, or the newest version for a folder without a marker."""
    try:
        version = decode_json((await files.read(PROJECT_FILE)).data).get("version", 1)
    except FileMissing:
        return LAYOUT_VERSION
    except (ValueError, AttributeError, RecursionError) as error:
        raise DocumentInvalid(_UNREADABLE_MARKER) from error
    return version if isinstance(version, int) else 1


async def upgrade_version(files: FileStore) -> None:
    """Write the newest layout version into the marker. Raises: FileMissing, StorageReadOnly."""
    stored = await files.read(PROJECT_FILE)
    marker = decode_json(stored.data) | {"version": LAYOUT_VERSION}
    await files.replace(PROJECT_FILE, _encode_marker(marker), expected=stored.version)


async def claim_root(
    files: FileStore,
    scope: Scope,
    *,
    clock: Clock,
    ids: IdSource,
    begin: Callable[[], Awaitable[object]] | None = None,
) -> Scope:
    """Return the owner of this root; if it has none, call `begin` and assign the root to `scope` first.

    Raises: ScopeMismatch if it belongs to another tenant, team, project or user.
    """
    return await claim_folder(files, owning_scope(scope), clock=clock, ids=ids, begin=begin)


async def claim_folder(
    files: FileStore,
    scope: Scope,
    *,
    clock: Clock,
    ids: IdSource,
    begin: Callable[[], Awaitable[object]] | None = None,
) -> Scope:
    """Return the owner of this folder, which becomes `scope` if it has none. Otherwise like `claim_root`."""
    owner = await read_marker(files)
    if owner is None:
        kind = "user" if scope.user else next(reversed(scope.parts()))
        marker = {
            "version": LAYOUT_VERSION,
            "id": ids.new(),
            "kind": kind,
            "scope": scope.parts(),
            "created": format_rfc3339(clock.now()),
        }
        if begin:
            await begin()
        with suppress(AlreadyExists):
            await files.create(IGNORE_FILE, b"*\n")
        with suppress(AlreadyExists):
            await files.create(PROJECT_FILE, _encode_marker(marker))
        owner = await read_marker(files)
    if owner != scope:
        raise ScopeMismatch(f"This root belongs to {owner}; it can't be opened for {scope}.")
    return scope


def _encode_marker(marker: Mapping[str, object]) -> bytes:
    return (json.dumps(marker, indent=1, ensure_ascii=False) + "\n").encode()


ROOT_FOLDER = ".ricordo"
"""The directory name of a project's root, at the top of its git work tree."""


def list_folders_above(start: Path, worktrees: str = "share") -> list[Path]:
    """Return `start` and the folders above it in which its root is looked for, nearest first.

    A linked work tree of a git repository is followed by the main one and the folders above that; with `worktrees`
    being "separate", by nothing. A work tree whose main one is gone stands for itself.
    """
    folders = [start.absolute(), *start.absolute().parents]
    for number, folder in enumerate(folders):
        if main := _find_main_tree(folder):
            return folders[: number + 1] + ([main, *main.parents] if worktrees == "share" else [])
        if (folder / ".git").is_dir():
            break
    return folders


def _find_main_tree(folder: Path) -> Path | None:
    """Return the main work tree if `folder` is a linked one of git, else None; it blocks on the disk."""
    try:
        kind, _, link = (folder / ".git").read_text("utf-8", "surrogateescape").partition(": ")
        data = folder / link.rstrip("\n")
        common = (data / (data / "commondir").read_text("utf-8", "surrogateescape").rstrip("\n")).resolve()
    except (OSError, ValueError):
        return None
    return common.parent if kind == "gitdir" and common.name == ".git" and common.is_dir() else None


def find_root(start: Path, worktrees: str = "share") -> Path | None:
    """Return the nearest root at or above `start`, recognised by its marker, or None.

    `worktrees` is that of `list_folders_above`. Raises `StorageFailed` for a directory of that name that can't be read.
    """
    for folder in list_folders_above(start, worktrees):
        try:
            if (folder / ROOT_FOLDER / PROJECT_FILE).is_file():
                return folder / ROOT_FOLDER
        except PermissionError as error:
            raise StorageFailed(f"{folder / ROOT_FOLDER} can't be read: {error.strerror}.") from error
    return None


def new_root_path(start: Path, worktrees: str = "share") -> Path:
    """Return the path of a new root for `start`: at the top of its git work tree, else in `start` itself.

    For a linked work tree that is the top of the main one, unless `worktrees` is "separate".
    """
    for folder in list_folders_above(start, worktrees):
        if (folder / ".git").exists():
            main = _find_main_tree(folder) if worktrees == "share" else None
            return (main or folder) / ROOT_FOLDER
    return start.absolute() / ROOT_FOLDER


def default_root(worktrees: str = "share") -> Path:
    """Return the nearest root at or above the working directory, or the path of a new one."""
    folder = Path.cwd()
    return find_root(folder, worktrees) or new_root_path(folder, worktrees)


def scope_folder(root: Path, scope: Scope) -> Path:
    """Return the folder for the entries of `scope` in `root`: the user's if it has a user and a project or team."""
    is_shared = scope.project is not None or scope.team is not None
    return _existing([root / USERS], scope.user) if is_shared and scope.user is not None else root


def find_workspace(folder: Path, scope: Scope) -> Path | None:
    """Return the workspace for the entries of `scope`, or None if `folder` is not a Ricordo root."""
    is_root = (folder / WORKSPACE).is_dir() or (folder / USERS).is_dir()
    return scope_folder(folder, scope) / WORKSPACE if is_root else None


def user_root_path(data: Path, user: str, tenant: str | None = None) -> Path:
    """Return the root for entries that this user, of this tenant, sees in every project."""
    tenants = [data / "tenants" / name(tenant) for name in (owner_part, encode_folder_name)] if tenant else [data]
    return _existing([above / "users" for above in tenants], user, tenant)


def _existing(folders: Sequence[Path], user: str, tenant: str | None = None) -> Path:
    """Return the folder of a user below one of `folders`; a new one goes below the first.

    Earlier versions used some user names as folder names unchanged. Such a folder stays in use; its marker
    distinguishes it from that of another user whose name is the same if case is ignored.
    """
    new_folder = folders[0] / owner_part(user)
    candidates = {folder / name: None for folder in folders for name in (owner_part(user), encode_folder_name(user))}
    if len(candidates) == 1 or os.path.lexists(new_folder / PROJECT_FILE):
        return new_folder
    return next((folder for folder in candidates if _is_of(folder, user, tenant)), new_folder)


def _is_of(folder: Path, user: str, tenant: str | None) -> bool:
    """Return whether the marker of a folder names this user, and this tenant if one is given."""
    try:
        scope = parse_marker((folder / PROJECT_FILE).read_bytes())
    except (OSError, DocumentInvalid):
        return False
    return scope.user == user and tenant in {None, scope.tenant}


def cache_folder(cache: Path, root: Path) -> Path:
    """Return the folder below `cache` for the index of a root that does not contain its index."""
    digest = hashlib.sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return cache / "roots" / digest[:24]


_HALF_BYTES = 32
KEY_LENGTHS = frozenset({_HALF_BYTES, 2 * _HALF_BYTES})
"""The valid lengths of a key file, in bytes."""


def create_key() -> bytes:
    """Return a new secret for use without a root."""
    return secrets.token_bytes(_HALF_BYTES)


def create_root_key(digests: bytes | None = None) -> bytes:
    """Return a new root key; its half for digests may be given."""
    return (digests or create_key()) + create_key()


def identity_from_key(stored: bytes) -> str:
    """Return the identity of a root with this key."""
    return sha256(b"ricordo root\0" + stored).hexdigest()


def digest_key(stored: bytes) -> bytes:
    """Return the secret for keyed digests of a root with this key."""
    return stored[:_HALF_BYTES]


async def load_guard_key(files: FileStore, note: Callable[[str], Awaitable[None]] | None = None) -> bytes:
    """Return the key of a root, which is created if it has none.

    Before a new key is stored, `note` is called with the identity of the root, so that every stored key is on record.
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
    """Store and return a new key, or return the one that another process stored in the meantime.

    In a read-only root the key is valid for this process only, as nothing that needs it later is written.
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


USER_LABEL = "user"
"""The label of a user's own root, if it is not the narrowest."""
TEAM_LABEL = "team"
"""The label of the memory of a team, beside that of a project."""
TEAM_FOLDER = ".ricordo-team"
"""The folder of the memory of a team beside the root of a project, which git can carry."""
SESSION_LABEL = "session"
"""The label of the place with what is remembered for the session alone."""


@dataclass(frozen=True, kw_only=True)
class RootLayer:
    """A root that a scope sees: its label, its folder, which may not exist yet, and its owner."""

    label: str
    folder: Path
    scope: Scope

    @lazy_property
    def marker(self) -> str:
        """The path of the file that says whose folder it is."""
        return str(self.folder / PROJECT_FILE)


def find_team_folder(root: Path, scope: Scope, team: Path | None = None) -> Path | None:
    """Return the folder of the memory of the scope's team, beside the project's `root` or at `team`; None for none.

    It blocks on the disk if the scope has a team and a project. With a team alone, `root` itself is the team's.
    """
    if scope.team is None or scope.project is None:
        return None
    folder = team or root.parent / TEAM_FOLDER
    return folder if os.path.lexists(folder / PROJECT_FILE) else None


def list_root_layers(root: Path, scope: Scope, data: Path, team: Path | None = None) -> tuple[RootLayer, ...]:
    """Return the layers of `scope` in `root`, narrowest first; `data` holds the users' own roots.

    `team` is the folder of its team, if it is not beside the root. It blocks on the disk.
    """
    folder = find_team_folder(root, scope, team)
    layers = _list_layers(root, replace(scope, team=None) if folder else scope, data)
    if folder is None:
        return layers
    layer = RootLayer(label=TEAM_LABEL, folder=folder, scope=Scope(team=scope.team, tenant=scope.tenant))
    return (*layers[:2], layer, *layers[2:])


def _list_layers(root: Path, scope: Scope, data: Path) -> tuple[RootLayer, ...]:
    owner, folder = owning_scope(scope), scope_folder(root, scope)
    label = "project" if scope.project is not None else "own"
    if folder == root or scope.user is None:
        return (RootLayer(label=label, folder=root, scope=owner),)
    return (
        RootLayer(label=label, folder=folder, scope=Scope(**owner.parts() | {"user": scope.user})),
        RootLayer(label=SHARED_LABEL, folder=root, scope=owner),
        RootLayer(
            label=USER_LABEL,
            folder=user_root_path(data, scope.user, scope.tenant),
            scope=Scope(user=scope.user, tenant=scope.tenant),
        ),
    )


_IDLE = timedelta(days=1)
ENDED_PREFIX = ".ended-"
"""The beginning of the name of a session's place that is being removed."""


def session_layer(layer: RootLayer, scope: Scope) -> RootLayer | None:
    """Return the place for the session of `scope` alone in the place `layer`; None without a session."""
    if scope.session is None or layer.scope.session is not None:
        return None
    return RootLayer(
        label=SESSION_LABEL,
        folder=session_folder(layer.folder, scope.session),
        scope=Scope(**layer.scope.parts() | {"session": scope.session}),
    )


def session_folder(folder: Path, session: str) -> Path:
    """Return the folder of a session's place in the place at `folder`."""
    return folder / LOCAL / owner_part(session)


def find_ended_sessions(folder: Path, continued: RootLayer | None, now: datetime) -> list[Path]:
    """Return the folders of sessions that have ended in the place at `folder`; the session of `continued` goes on.

    It blocks on the disk. A place without memories of sessions costs one look.
    """
    try:
        places = sorted((folder / LOCAL).iterdir())
    except OSError:
        return []
    own = continued.folder if continued else None
    return [place for place in places if _has_ended(place, now, is_continued=place == own)]


def _has_ended(place: Path, now: datetime, *, is_continued: bool) -> bool:
    if place.name.startswith(ENDED_PREFIX):
        return True
    use = find_folder_use(place)
    if use == "unused":
        return now - _last_use(place, now) > _IDLE
    return use == "abandoned" and not is_continued


def _last_use(place: Path, now: datetime) -> datetime:
    """Return when a document was last written or its folder was made; `now` if that can't be read."""
    try:
        times = [path.stat().st_mtime for path in (place / PROJECT_FILE, *(place / LEDGERS).glob("*.md"))]
    except OSError:
        return now
    return datetime.fromtimestamp(max(times), tz=now.tzinfo)


class VisibleRoots:
    """The roots of one scope, opened with `open_place`, whose owner closes them."""

    def __init__(
        self,
        layers: Sequence[RootLayer],
        narrowest: MemoryRoot,
        open_place: Callable[[RootLayer], Awaitable[MemoryRoot]],
        close_place: Callable[[MemoryRoot], Awaitable[object]],
    ) -> None:
        """Start with only `narrowest` open, the narrowest root that is not of a session alone."""
        self._layers = {layer.label: layer for layer in layers}
        self._open_root = open_place
        self._close_root = close_place
        self._roots = {narrowest.label: narrowest}
        self._open_lock = anyio.Lock()
        self.narrowest = narrowest

    @property
    def open_roots(self) -> list[MemoryRoot]:
        """The open roots, narrowest first."""
        return [self._roots[label] for label in self._layers if label in self._roots]

    @property
    def may_change(self) -> bool:
        """Whether a root is open that another process can end, or where the user's role can end."""
        return SESSION_LABEL in self._roots or TEAM_LABEL in self._layers

    async def close_session_root(self) -> None:
        """Close the root of the session if it is open; it is opened again if it exists at the next read."""
        async with self._open_lock:
            if place := self._roots.pop(SESSION_LABEL, None):
                await self._close_root(place)

    def has_unopened(self) -> bool:
        """Return whether an existing root is not open yet. It blocks on the disk."""
        return any(_exists(layer) for label, layer in self._layers.items() if label not in self._roots)

    async def open_existing(self) -> list[MemoryRoot]:
        """Return the roots that exist, narrowest first."""
        for label, layer in self._layers.items():
            is_open = label in self._roots
            if is_open and label != SESSION_LABEL:
                continue
            exists = await run_in_thread(_exists, layer)
            if exists and not is_open:
                await self._open_layer(layer)
            elif is_open and not exists:
                await self.close_session_root()
        return self.open_roots

    async def root_for(self, scope: Scope) -> MemoryRoot:
        """Return the root for entries of `scope`, which is created if it does not exist.

        Raises: ScopeMismatch if it is none of the visible roots.
        """
        parts = scope.parts()
        for layer in self._layers.values():
            if _covers(layer.scope.parts(), parts):
                return await self._open_layer(layer)
        raise ScopeMismatch(
            f"What is saved for {scope} belongs to another place than those of {self.narrowest.scope}: open a memory "
            "for that scope."
        )

    async def _open_layer(self, layer: RootLayer) -> MemoryRoot:
        async with self._open_lock:
            if layer.label not in self._roots:
                self._roots[layer.label] = await self._open_root(layer)
        return self._roots[layer.label]


def _exists(layer: RootLayer) -> bool:
    return os.path.lexists(layer.marker)


def _covers(owner: Mapping[str, str], parts: Mapping[str, str]) -> bool:
    """Return whether `parts` has all parts of an owner but the tenant and a project's team, which the root names.

    A shared root does not cover a scope with a user, and only the root of a session one with a session.
    """
    if "session" in parts and "session" not in owner:
        return False
    if "user" in parts and "user" not in owner and not {"project", "team"}.isdisjoint(owner):
        return False
    implied = {"tenant"} | ({"team"} if "project" in owner else set())
    return all(parts.get(name) == value for name, value in owner.items() if name not in implied or len(owner) == 1)


_PREPARED_PREAMBLES = ("hooks", "prepared")


def remove_prepared_preambles(data: Path) -> None:
    """Remove the preambles that were prepared for hooks, of all roots; hooks then read the memory itself."""
    shutil.rmtree(data.joinpath(*_PREPARED_PREAMBLES), ignore_errors=True)
