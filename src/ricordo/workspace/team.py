"""The memory of a team: its members and their roles, and the healing of documents that git merged.

A team's memory is a folder that git can carry. `members.txt` has a line for each member, such as `writer ann`, and a
ledger has a line for each memory, so changes by different people are merged line by line. `.gitattributes` makes git
keep the lines of both sides where it can't decide. Then a line can stand there twice, in two versions, or although it
was forgotten. `heal_document` makes the document whole again, in the same way in every clone:

- of two equal statements with one id, one stays;
- a line that another one with its id was edited from goes: an edited line lists digests of its earlier contents;
- lines with one id that were edited at the same time both stay: one gets an id of its own, and each names the other;
- a line with a tombstone goes.

Invariant: whom `members.txt` does not name reads and writes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias, get_args

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, InvalidEntry, MembershipRequired, StorageReadOnly
from ricordo.lazy import dataclass, lazy_compile
from ricordo.storage import FileInfo, FileStore
from ricordo.workspace.entry import CONTRADICTS_FIELD, EDITED_FIELD, SHARED_BY_FIELD, Entry, contradicted_ids
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry
from ricordo.workspace.history.change_sets import CURATION_LOCK, ChangeSets, Edit
from ricordo.workspace.history.tombstones import Tombstones, content_digest, read_tombstones
from ricordo.workspace.layout import LEDGERS, is_ledger
from ricordo.workspace.markdown import has_any_id

__all__ = [
    "MEMBERS_FILE",
    "Role",
    "TeamAccess",
    "heal_document",
    "note_edit",
    "parse_members",
    "render_members",
]


MEMBERS_FILE = "members.txt"
Role: TypeAlias = Literal["reader", "writer", "curator"]
"""What a member may do: read; also save, and change what they saved; also change everything, and the members."""
_ROLES: tuple[Role, ...] = get_args(Role)
_DIGEST_CHARS = 12
_ID_LINE = lazy_compile(rb"\^([0-9A-Za-z-]+)[ \t]*\r?$")


def parse_members(data: bytes) -> dict[str, Role]:
    """Return the role of each member; of two lines about one member the lesser role holds.

    Raises: DocumentInvalid for a line that names no role.
    """
    members: dict[str, Role] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        role, _, user = line.strip().partition(" ")
        if not role or role.startswith("#"):
            continue
        if role not in _ROLES or not user.strip():
            raise DocumentInvalid(
                f"{MEMBERS_FILE} can't be read: each line is a role, {', '.join(_ROLES)}, and the name of a member."
            )
        known = members.get(user.strip(), _ROLES[-1])
        members[user.strip()] = min(_ROLES[_ROLES.index(role)], known, key=_ROLES.index)
    return members


def render_members(members: Mapping[str, Role]) -> bytes:
    """Return the document with a line for each member, sorted by name."""
    lines = (f"{role} {user}\n" for user, role in sorted(members.items()))
    return f"# The members of this team: a role and a name in each line.\n{''.join(lines)}".encode()


@dataclass(frozen=True, kw_only=True)
class TeamAccess:
    """What `user` may do in the memory of a team; `key` is the same in every clone, for digests."""

    files: FileStore
    changes: ChangeSets
    team: str
    user: str
    key: bytes

    async def members(self) -> dict[str, Role]:
        """Return the role of each member. Raises: MembershipRequired if nothing says who they are; DocumentInvalid."""
        try:
            return parse_members((await self.files.read(MEMBERS_FILE)).data)
        except FileMissing:
            raise MembershipRequired(
                f"{MEMBERS_FILE} of the team {self.team} is missing: nobody is a member."
            ) from None

    async def require(self, role: Role) -> Role:
        """Return the role of the user, at least `role`. Raises: MembershipRequired."""
        own = (await self.members()).get(self.user) if self.user else None
        if own is None:
            who = self.user or "A scope without a user"
            raise MembershipRequired(f"{who} is no member of the team {self.team}.")
        if _ROLES.index(own) < _ROLES.index(role):
            raise MembershipRequired(f"{self.user} is a {own} of the team {self.team}: this needs a {role}.")
        return own

    async def require_change_of(self, entries: Iterable[Entry]) -> None:
        """Check that the user may change these memories: a writer only their own. Raises: MembershipRequired."""
        own = await self.require("writer")
        if own != "curator" and any(entry.shared_by != self.user for entry in entries):
            raise MembershipRequired(
                f"{self.user} is a writer of the team {self.team}: what another member shared is changed by a curator."
            )

    def sign(self, entry: Entry) -> Entry:
        """Return the entry as its line says who shared it, which is this user for a new one."""
        if entry.shared_by:
            return entry
        return replace(entry, extra=(*entry.extra, (SHARED_BY_FIELD, self.user)))

    async def may_change(self, entries: Iterable[Entry]) -> bool:
        """Return whether there are memories to change, which the user may. Raises: MembershipRequired if not."""
        changed = list(entries)
        if changed:
            await self.require_change_of(changed)
        return bool(changed)

    async def require_save_of(self, entries: Iterable[Entry]) -> None:
        """Check that the user may save these memories. Raises: MembershipRequired; InvalidEntry for several lines."""
        await self.require("writer")
        for entry in entries:
            if len(entry.content.splitlines()) > 1:
                raise InvalidEntry("What a team shares is one line, so that git can merge it: save it in parts.")

    async def set_member(self, user: str, role: Role | None) -> None:
        """Give a member this role; None removes them. Raises: MembershipRequired unless the user is a curator, or if
        no curator would be left.
        """
        await self.require("curator")
        stored = await self.files.read(MEMBERS_FILE)
        members = {name: each for name, each in (parse_members(stored.data) | {user: role}).items() if each}
        if "curator" not in members.values():
            raise MembershipRequired(f"The team {self.team} needs a curator: name another one first.")
        await self.files.replace(MEMBERS_FILE, render_members(members), expected=stored.version)

    async def heal(self, seen: Sequence[FileInfo]) -> Sequence[FileInfo]:
        """Heal the ledgers for a member, unless they are as in the listing `seen`; return their listing now.

        A folder that can only be read stays as it is. Raises: MembershipRequired.
        """
        await self.require("reader")
        listing = [info for info in await self.files.list(LEDGERS) if is_ledger(info.path)]
        if listing == seen:
            return listing
        with suppress(StorageReadOnly):
            if await self._plan_healing(listing):
                async with self.files.lock(CURATION_LOCK):
                    await self.changes.rebase(partial(self._plan_healing, listing), act="merge", who="git")
                return [info for info in await self.files.list(LEDGERS) if is_ledger(info.path)]
        return listing

    async def _plan_healing(self, listing: Sequence[FileInfo]) -> list[Edit]:
        tombstones, edits = await read_tombstones(self.files), list[Edit]()
        for info in listing:
            with suppress(FileMissing):
                stored = await self.files.read(info.path)
                data = await run_sync(heal_document, stored.data, info.path, tombstones, self.key)
                if data != stored.data:
                    edits.append(Edit(path=info.path, expected_hash=stored.version, data=data))
        return edits


def heal_document(data: bytes, path: str, tombstones: Tombstones, key: bytes) -> bytes:
    """Return the ledger without what a merge left twice or brought back; the same bytes if it is whole."""
    ids = [match[1].decode() for line in data.splitlines() if (match := _ID_LINE.search(line))]
    doubled = {name for name in ids if ids.count(name) > 1} if len(set(ids)) < len(ids) else set[str]()
    if not doubled and tombstones.ids.isdisjoint(ids):
        return data
    located = parse_entries(data, path, only=has_any_id(doubled | (tombstones.ids & {*ids})))
    replaced = dict[int, bytes]()
    for name in dict.fromkeys(each.entry.id for each in located):
        same = [each for each in located if each.entry.id == name]
        if name in tombstones.ids:
            replaced |= {each.offset: b"" for each in same}
        elif name in doubled:
            replaced |= _merge_versions(same, key)
    result, end = bytearray(), 0
    for each in sorted(located, key=lambda one: one.offset):
        if each.offset in replaced:
            result += data[end : each.offset] + replaced[each.offset]
            end = each.offset + each.length
    return bytes(result + data[end:])


def _merge_versions(same: Sequence[LocatedEntry], key: bytes) -> dict[int, bytes]:
    """Return the new bytes of lines with one id, by their offset."""
    versions: dict[str, LocatedEntry] = {}
    for each in sorted(same, key=lambda one: (len(edited_digests(one.entry)), render_entry(one.entry))):
        versions[short_digest(each.entry.content, key)] = each
    chains = {digest: edited_digests(each.entry) for digest, each in versions.items()}
    versions = {
        digest: each
        for digest, each in versions.items()
        if not any(_comes_before(digest, other, chains) for other in chains)
    }
    names = {digest: each.entry.id for digest, each in versions.items()}
    for digest in sorted(names)[1:]:
        names[digest] = f"{names[digest][:50]}-{digest}"
    result = {each.offset: b"" for each in same}
    for digest, each in versions.items():
        others = [name for name in names.values() if name != names[digest]]
        result[each.offset] = render_entry(_contradicting(replace(each.entry, id=names[digest]), others)).encode()
    return result


def _comes_before(digest: str, other: str, chains: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the version `other` was edited from the version `digest`; of two in a circle, the longer chain."""
    if digest == other or digest not in chains[other]:
        return False
    return other not in chains[digest] or (len(chains[digest]), digest) < (len(chains[other]), other)


def _contradicting(entry: Entry, others: Sequence[str]) -> Entry:
    if not others:
        return entry
    linked = dict.fromkeys([*contradicted_ids(entry), *others])
    rest = tuple(pair for pair in entry.extra if pair[0] != CONTRADICTS_FIELD)
    # who confirmed one version did not know the other
    return replace(entry, extra=(*rest, (CONTRADICTS_FIELD, ",".join(linked))), confirmed=None)


def short_digest(content: str, key: bytes) -> str:
    """Return the digest of a content that an edited line lists."""
    return content_digest(content, key)[:_DIGEST_CHARS]


def edited_digests(entry: Entry) -> list[str]:
    """Return the digests of the earlier contents of an entry, oldest first."""
    return [each for name, value in entry.extra if name == EDITED_FIELD for each in value.split(",") if each]


_MAX_EARLIER = 32


def note_edit(old: Entry, new: Entry, key: bytes) -> Entry:
    """Return the edited entry with the digest of its earlier content, so that a merge knows which came first."""
    if new.content == old.content:
        return new
    digests = [*edited_digests(old), short_digest(old.content, key)][-_MAX_EARLIER:]
    rest = tuple(pair for pair in new.extra if pair[0] != EDITED_FIELD)
    return replace(new, extra=(*rest, (EDITED_FIELD, ",".join(digests))))
