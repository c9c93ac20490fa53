"""Import of profiles: the changes by a document, and profiles of DeerFlow and of older versions.

A foreign profile is one document, or the folder of a user: a document with the summaries and a Markdown file for each
fact. The source is never written to.

Invariant: an exported profile is imported unchanged, except for the revision and the time of its last save.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, InvalidInput
from ricordo.lazy import lazy_compile
from ricordo.messages.types import JsonValue
from ricordo.storage import FileStore
from ricordo.workspace.history.tombstones import content_digest
from ricordo.workspace.merge import has_same_content
from ricordo.workspace.profile import (
    BrokenRecord,
    Fact,
    ParsedProfile,
    Profile,
    ProfileSummary,
    dump_profile_json,
    parse_facts,
    parse_profile,
)

__all__ = [
    "PROFILE_VERSION",
    "BackupStore",
    "ForeignProfile",
    "ImportMode",
    "ImportPreference",
    "ProfileImport",
    "ProfileMigration",
    "plan_import",
    "plan_parsed_import",
    "read_foreign_profile",
]


ImportMode: TypeAlias = Literal["merge", "replace"]
ImportPreference: TypeAlias = Literal["document", "profile"]


@dataclass(frozen=True, kw_only=True)
class ProfileImport:
    """The changes of an import, already made if `is_saved`; `profile` is the profile with them.

    `added`, `changed` and `removed` are ids of facts, `summaries` the names of changed summaries. `known` counts the
    facts that the profile already has in the same words. `conflicts` are ids and names with different content in the
    document and the profile; without a preference those of the profile win. `mended` are places of the document where
    an unreadable field got its default.
    """

    profile: Profile
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    known: int = 0
    conflicts: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    changes_something: bool = False
    is_saved: bool = False


def plan_import(
    profile: Profile, document: str | bytes, *, mode: ImportMode = "merge", prefer: ImportPreference | None = None
) -> ProfileImport:
    """Return the changes that importing `document` makes to `profile`. Raises `DocumentInvalid` if it can't be read."""
    data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
    return plan_parsed_import(profile, parse_profile(data, "The document", foreign=True), mode=mode, prefer=prefer)


def plan_parsed_import(
    profile: Profile, read: ParsedProfile, *, mode: ImportMode = "merge", prefer: ImportPreference | None = None
) -> ProfileImport:
    """Return the changes that importing a parsed profile makes. Raises `DocumentInvalid` if a record is unreadable."""
    lost = [each for each in read.broken if not each.is_used]
    if lost:
        told = "; ".join(f"{each.where}: {each.why}" for each in lost)
        raise DocumentInvalid(f"Nothing was taken in, for not all of it can be read: {told}.")
    found = (
        _plan_replacement(profile, read.profile) if mode == "replace" else _plan_merge(profile, read.profile, prefer)
    )
    mended = tuple(each.where for each in read.broken)
    return replace(found, mended=mended, changes_something=not has_same_content(found.profile, profile))


def _plan_replacement(profile: Profile, given: Profile) -> ProfileImport:
    """Return the import that replaces the profile with the given one."""
    old, new = ({fact.id: fact for fact in side.facts} for side in (profile, given))
    return ProfileImport(
        profile=replace(given, revision=profile.revision, last_updated=profile.last_updated),
        added=tuple(name for name in new if name not in old),
        changed=tuple(name for name, fact in new.items() if name in old and old[name] != fact),
        removed=tuple(name for name in old if name not in new),
        summaries=tuple(name for name, each in given.summaries.items() if each != _get_summary(profile, name)),
        known=sum(old.get(name) == fact for name, fact in new.items()),
    )


def _plan_merge(profile: Profile, given: Profile, prefer: ImportPreference | None) -> ProfileImport:
    """Return the import that adds what is missing in the profile."""
    telling = [fact for fact in given.facts if fact.content.strip()]
    facts, added, changed, differing, known = _merge_facts(profile.facts, telling, prefer)
    summaries, written, apart = _merge_summaries(profile, given, prefer)
    merged = replace(profile, facts=facts, summaries=summaries, extra={**given.extra, **profile.extra})
    return ProfileImport(
        profile=merged, added=added, changed=changed, summaries=written, known=known, conflicts=(*differing, *apart)
    )


def _merge_facts(
    ours: Sequence[Fact], given: Sequence[Fact], prefer: ImportPreference | None
) -> tuple[tuple[Fact, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], int]:
    """Return all facts, the ids of the new, changed and conflicting ones, and the number of known ones."""
    held = {fact.id: fact for fact in ours}
    said = {_statement_digest(fact) for fact in ours}
    added: list[str] = []
    changed: list[str] = []
    conflicts: list[str] = []
    known = 0
    for fact in given:
        if held.get(fact.id) == fact or (fact.id not in held and _statement_digest(fact) in said):
            known += 1
        elif fact.id not in held:
            held[fact.id] = fact
            said.add(_statement_digest(fact))
            added.append(fact.id)
        else:
            conflicts.append(fact.id)
            if prefer == "document":
                held[fact.id] = fact
                changed.append(fact.id)
    return tuple(held.values()), tuple(added), tuple(changed), tuple(conflicts), known


def _merge_summaries(
    profile: Profile, given: Profile, prefer: ImportPreference | None
) -> tuple[dict[str, ProfileSummary], tuple[str, ...], tuple[str, ...]]:
    """Return all summaries, and the names of the changed and of the conflicting ones."""
    found = {**profile.summaries}
    written: list[str] = []
    conflicts: list[str] = []
    for name, each in given.summaries.items():
        ours = _get_summary(profile, name)
        if not each.summary.strip() or each.summary == ours.summary:
            continue
        if ours.summary.strip():
            conflicts.append(name)
        if not ours.summary.strip() or prefer == "document":
            found[name] = each
            written.append(name)
    return found, tuple(written), tuple(conflicts)


def _get_summary(profile: Profile, name: str) -> ProfileSummary:
    return profile.summaries.get(name) or ProfileSummary()


def _statement_digest(fact: Fact) -> str:
    return content_digest(fact.content, b"")


PROFILE_VERSION = Profile().version
"""The current version of profile documents."""
_FACT_PATH = lazy_compile(r"(?:agents/)?(?P<agent>[^/]+)/facts/(?:[^/]+/)?[^/]+\.md")
_FRONT_MATTER = lazy_compile(r"---\r?\n(?P<matter>.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(?P<body>.*)", re.DOTALL)
_HEADING = lazy_compile(r"\s*#[^\n]*(?:\n|\Z)")
_DEFAULT_AGENT = "__default__"
_MAX_FACT_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ForeignProfile:
    """A parsed profile of another system, and `data`, the bytes of its source, for a backup."""

    read: ParsedProfile
    data: bytes


@dataclass(frozen=True, kw_only=True)
class ProfileMigration:
    """The changes of a migration, planned or saved; `backup` is the path of the backup, empty without one."""

    imported: ProfileImport
    backup: str = ""


@runtime_checkable
class BackupStore(Protocol):
    """A store of profiles that can back up other documents."""

    async def read_document(self) -> bytes | None:
        """Return the bytes of the document; None when there is none."""
        ...

    async def back_up(self, data: bytes) -> str:
        """Save these bytes permanently, once, and return the path. Raises `AlreadyExists` if it has other bytes."""
        ...


async def read_foreign_profile(files: FileStore, name: str = "", *, agent: str = "") -> ForeignProfile:
    """Read the document `name` in `files`; without a name the whole folder, with the facts of `agent`.

    Raises: FileMissing, DocumentInvalid; InvalidInput for a folder without this agent, or with several if none is
    named.
    """
    if name:
        data = (await files.read(name)).data
        return ForeignProfile(read=await run_sync(parse_profile, data, name), data=data)
    paths = [info.path for info in await files.list()]
    manifest = next((path for path in paths if path in {"memory.json", "user.json", "profile.json"}), None)
    if manifest is None:
        raise FileMissing("There is no memory.json in this folder: name the folder of one user.")
    held = {path: (await files.read(path)).data for path in [manifest, *_find_fact_files(paths, agent)]}
    kept = dump_profile_json({path: data.decode("utf-8", "replace") for path, data in held.items()})
    return ForeignProfile(read=await run_sync(_parse_folder, manifest, held), data=kept)


def _find_fact_files(paths: list[str], agent: str) -> list[str]:
    """Return the paths of the fact files of one agent."""
    found: dict[str, list[str]] = {}
    for path in paths:
        match = _FACT_PATH.fullmatch(path)
        if match:
            found.setdefault(match["agent"], []).append(path)
    if not found:
        return []
    chosen = agent or (_DEFAULT_AGENT if _DEFAULT_AGENT in found else next(iter(found)) if len(found) == 1 else "")
    if chosen not in found:
        raise InvalidInput(f"The folder has the facts of {', '.join(sorted(found))}: name one of these agents.")
    return sorted(found[chosen])


def _parse_folder(manifest: str, held: dict[str, bytes]) -> ParsedProfile:
    """Return the profile of a folder."""
    read = parse_profile(held[manifest], manifest)
    broken: list[BrokenRecord] = []
    records: list[JsonValue] = []
    for path, data in held.items():
        record = None if path == manifest else _parse_fact_file(data)
        if record is not None:
            records.append(record)
        elif path != manifest:
            told = data.decode("utf-8", "replace")
            broken.append(BrokenRecord(where=path, why="front matter and content are needed", record=told))
    facts = parse_facts(records, broken)
    profile = replace(read.profile, version=PROFILE_VERSION, facts=(*read.profile.facts, *facts))
    return ParsedProfile(profile=profile, broken=(*read.broken, *broken))


def _parse_fact_file(data: bytes) -> dict[str, JsonValue] | None:
    """Return the record of a fact from its Markdown file; None for an invalid file."""
    import yaml

    try:
        found = _FRONT_MATTER.fullmatch(data.decode("utf-8-sig")) if len(data) <= _MAX_FACT_BYTES else None
        matter = yaml.safe_load(found["matter"]) if found else None
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if found is None or not isinstance(matter, dict):
        return None
    content = _HEADING.sub("", found["body"], count=1).strip()
    record = {str(name): _to_json_value(value) for name, value in matter.items()}
    return record | ({} if record.get("content") else {"content": content})


def _to_json_value(value: object) -> JsonValue:
    """Return a front matter value as JSON; times become text."""
    if isinstance(value, dict):
        return {str(name): _to_json_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_to_json_value(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()).replace("+00:00", "Z") if isoformat else str(value)
