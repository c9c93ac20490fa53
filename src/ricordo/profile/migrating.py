"""Profiles of other systems and older versions: read from where they lie, which is never written to.

A document is one of DeerFlow's, in its first shape or as exported by its second one, or one of ours. A folder is that
of a user of DeerFlow's second shape: a document with the summaries, and a Markdown file for each fact of an agent.
"""

import re
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidInput
from ricordo.files import FileStore
from ricordo.messages.types import JsonValue
from ricordo.profile.importing import ProfileImport
from ricordo.workspace.profile import Profile
from ricordo.workspace.profile_codec import BrokenRecord, ParsedProfile, parse_facts, parse_profile, dump_profile_json

__all__ = ["PROFILE_VERSION", "BackupStore", "ProfileMigration", "ForeignProfile", "read_foreign_profile"]

PROFILE_VERSION = Profile().version
"""The version of our documents."""

_FACT_PATH = re.compile(r"(?:agents/)?(?P<agent>[^/]+)/facts/(?:[^/]+/)?[^/]+\.md")
_FRONT_MATTER = re.compile(r"---\r?\n(?P<matter>.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(?P<body>.*)", re.DOTALL)
_HEADING = re.compile(r"\s*#[^\n]*(?:\n|\Z)")
_DEFAULT_AGENT = "__default__"
_MAX_FACT_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ForeignProfile:
    """A profile of another system as it was read, and `data`, the bytes that it was read from, for a backup."""

    read: ParsedProfile
    data: bytes


@dataclass(frozen=True, kw_only=True)
class ProfileMigration:
    """What a migration changes, or has changed; `backup` is where the source is kept, empty where nothing is."""

    imported: ProfileImport
    backup: str = ""


@runtime_checkable
class BackupStore(Protocol):
    """A keeper of profiles that can keep the bytes of another one beside them."""

    async def read_document(self) -> bytes | None:
        """Return the document as it stands; None when there is none."""
        ...

    async def back_up(self, data: bytes) -> str:
        """Keep these bytes for good, once, and return where. Raises `AlreadyExists` if others stand there."""
        ...


async def read_foreign_profile(files: FileStore, name: str = "", *, agent: str = "") -> ForeignProfile:
    """Read the document `name` in `files`; without a name the folder itself, with the facts of this `agent`.

    Raises: FileMissing, DocumentInvalid; InvalidInput for a folder that has no such agent, or several and none named.
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
    """Return the files of the facts of one agent."""
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
    """Return the record of a fact from its Markdown file; None for a file that is none."""
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
    """Return what front matter says as JSON; times become the text that they are."""
    if isinstance(value, dict):
        return {str(name): _to_json_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_to_json_value(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()).replace("+00:00", "Z") if isoformat else str(value)
