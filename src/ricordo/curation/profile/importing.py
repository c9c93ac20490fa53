"""Import of profiles: the changes by a document, and profiles of DeerFlow and of older versions.

A foreign profile is one document, or the folder of a user: a document with the summaries and a Markdown file for each
fact. The source is never written to.

Invariant: an exported profile is imported unchanged, except for the revision and the time of its last save.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, InvalidInput
from ricordo.lazy import dataclass, lazy_compile
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
    document and the profile; without a preference those of the profile win. `repaired` are places of the document where
    an unreadable field got its default.
    """

    profile: Profile
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    known: int = 0
    conflicts: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    changes_something: bool = False
    is_saved: bool = False


def plan_import(
    profile: Profile, document: str | bytes, *, mode: ImportMode = "merge", prefer: ImportPreference | None = None
) -> ProfileImport:
    """Return the changes that importing `document` makes to `profile`. Raises `DocumentInvalid` if it can't be read."""
    data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
    return plan_parsed_import(profile, parse_profile(data, "The document", foreign=True), mode=mode, prefer=prefer)


def plan_parsed_import(
    profile: Profile, parsed: ParsedProfile, *, mode: ImportMode = "merge", prefer: ImportPreference | None = None
) -> ProfileImport:
    """Return the changes that importing a parsed profile makes. Raises `DocumentInvalid` if a record is unreadable."""
    unreadable = [each for each in parsed.broken if not each.is_used]
    if unreadable:
        details = "; ".join(f"{each.location}: {each.reason}" for each in unreadable)
        raise DocumentInvalid(f"Nothing was taken in, for not all of it can be read: {details}.")
    plan = (
        _plan_replacement(profile, parsed.profile)
        if mode == "replace"
        else _plan_merge(profile, parsed.profile, prefer)
    )
    mended = tuple(each.location for each in parsed.broken)
    return replace(plan, repaired=mended, changes_something=not has_same_content(plan.profile, profile))


def _plan_replacement(profile: Profile, imported: Profile) -> ProfileImport:
    """Return the import that replaces the profile with the given one."""
    old, new = ({fact.id: fact for fact in side.facts} for side in (profile, imported))
    return ProfileImport(
        profile=replace(imported, revision=profile.revision, last_updated=profile.last_updated),
        added=tuple(name for name in new if name not in old),
        changed=tuple(name for name, fact in new.items() if name in old and old[name] != fact),
        removed=tuple(name for name in old if name not in new),
        summaries=tuple(name for name, each in imported.summaries.items() if each != _get_summary(profile, name)),
        known=sum(old.get(name) == fact for name, fact in new.items()),
    )


def _plan_merge(profile: Profile, imported: Profile, prefer: ImportPreference | None) -> ProfileImport:
    """Return the import that adds what is missing in the profile."""
    nonblank_facts = [fact for fact in imported.facts if fact.content.strip()]
    facts, added, changed, fact_conflicts, known_count = _merge_facts(profile.facts, nonblank_facts, prefer)
    summaries, changed_summaries, summary_conflicts = _merge_summaries(profile, imported, prefer)
    merged = replace(profile, facts=facts, summaries=summaries, extra={**imported.extra, **profile.extra})
    return ProfileImport(
        profile=merged,
        added=added,
        changed=changed,
        summaries=changed_summaries,
        known=known_count,
        conflicts=(*fact_conflicts, *summary_conflicts),
    )


def _merge_facts(
    existing: Sequence[Fact], imported: Sequence[Fact], prefer: ImportPreference | None
) -> tuple[tuple[Fact, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], int]:
    """Return all facts, the ids of the new, changed and conflicting ones, and the number of known ones."""
    facts_by_id = {fact.id: fact for fact in existing}
    digests = {_statement_digest(fact) for fact in existing}
    added: list[str] = []
    changed: list[str] = []
    conflicts: list[str] = []
    known_count = 0
    for fact in imported:
        if facts_by_id.get(fact.id) == fact or (fact.id not in facts_by_id and _statement_digest(fact) in digests):
            known_count += 1
        elif fact.id not in facts_by_id:
            facts_by_id[fact.id] = fact
            digests.add(_statement_digest(fact))
            added.append(fact.id)
        else:
            conflicts.append(fact.id)
            if prefer == "document":
                facts_by_id[fact.id] = fact
                changed.append(fact.id)
    return tuple(facts_by_id.values()), tuple(added), tuple(changed), tuple(conflicts), known_count


def _merge_summaries(
    profile: Profile, imported: Profile, prefer: ImportPreference | None
) -> tuple[dict[str, ProfileSummary], tuple[str, ...], tuple[str, ...]]:
    """Return all summaries, and the names of the changed and of the conflicting ones."""
    summaries = {**profile.summaries}
    changed: list[str] = []
    conflicts: list[str] = []
    for name, summary in imported.summaries.items():
        existing = _get_summary(profile, name)
        if not summary.summary.strip() or summary.summary == existing.summary:
            continue
        if existing.summary.strip():
            conflicts.append(name)
        if not existing.summary.strip() or prefer == "document":
            summaries[name] = summary
            changed.append(name)
    return summaries, tuple(changed), tuple(conflicts)


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
    documents = {path: (await files.read(path)).data for path in [manifest, *_find_fact_files(paths, agent)]}
    backup_data = dump_profile_json({path: data.decode("utf-8", "replace") for path, data in documents.items()})
    return ForeignProfile(read=await run_sync(_parse_folder, manifest, documents), data=backup_data)


def _find_fact_files(paths: list[str], agent: str) -> list[str]:
    """Return the paths of the fact files of one agent."""
    agents: dict[str, list[str]] = {}
    for path in paths:
        match = _FACT_PATH.fullmatch(path)
        if match:
            agents.setdefault(match["agent"], []).append(path)
    if not agents:
        return []
    selected_agent = agent or (
        _DEFAULT_AGENT if _DEFAULT_AGENT in agents else next(iter(agents)) if len(agents) == 1 else ""
    )
    if selected_agent not in agents:
        raise InvalidInput(f"The folder has the facts of {', '.join(sorted(agents))}: name one of these agents.")
    return sorted(agents[selected_agent])


def _parse_folder(manifest: str, documents: dict[str, bytes]) -> ParsedProfile:
    """Return the profile of a folder."""
    parsed = parse_profile(documents[manifest], manifest)
    broken: list[BrokenRecord] = []
    records: list[JsonValue] = []
    for path, data in documents.items():
        record = None if path == manifest else _parse_fact_file(data)
        if record is not None:
            records.append(record)
        elif path != manifest:
            text = data.decode("utf-8", "replace")
            broken.append(BrokenRecord(location=path, reason="front matter and content are needed", record=text))
    facts = parse_facts(records, broken)
    profile = replace(parsed.profile, version=PROFILE_VERSION, facts=(*parsed.profile.facts, *facts))
    return ParsedProfile(profile=profile, broken=(*parsed.broken, *broken))


def _parse_fact_file(data: bytes) -> dict[str, JsonValue] | None:
    """Return the record of a fact from its Markdown file; None for an invalid file."""
    import yaml

    try:
        match = _FRONT_MATTER.fullmatch(data.decode("utf-8-sig")) if len(data) <= _MAX_FACT_BYTES else None
        front_matter = yaml.safe_load(match["matter"]) if match else None
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if match is None or not isinstance(front_matter, dict):
        return None
    content = _HEADING.sub("", match["body"], count=1).strip()
    record = {str(name): _to_json_value(value) for name, value in front_matter.items()}
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
