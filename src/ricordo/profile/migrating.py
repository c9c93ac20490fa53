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
from ricordo.profile.importing import Imported
from ricordo.workspace.profile import Profile
from ricordo.workspace.profile_codec import BrokenRecord, ReadProfile, facts_in, parse_profile, written_json

__all__ = ["VERSION", "KeepsBackups", "Migrated", "Source", "read_source"]

VERSION = Profile().version
"""The version of our documents."""

_FACT = re.compile(r"(?:agents/)?(?P<agent>[^/]+)/facts/(?:[^/]+/)?[^/]+\.md")
_MATTER = re.compile(r"---\r?\n(?P<matter>.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(?P<body>.*)", re.DOTALL)
_HEADING = re.compile(r"\s*#[^\n]*(?:\n|\Z)")
_USUAL = "__default__"
_LARGEST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Source:
    """A profile of another system as it was read, and `data`, the bytes that it was read from, for a backup."""

    read: ReadProfile
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Migrated:
    """What a migration changes, or has changed; `backup` is where the source is kept, empty where nothing is."""

    imported: Imported
    backup: str = ""


@runtime_checkable
class KeepsBackups(Protocol):
    """A keeper of profiles that can keep the bytes of another one beside them."""

    async def document(self) -> bytes | None:
        """Return the document as it stands; None when there is none."""
        ...

    async def back_up(self, data: bytes) -> str:
        """Keep these bytes for good, once, and return where. Raises `AlreadyExists` if others stand there."""
        ...


async def read_source(files: FileStore, name: str = "", *, agent: str = "") -> Source:
    """Read the document `name` in `files`; without a name the folder itself, with the facts of this `agent`.

    Raises: FileMissing, DocumentInvalid; InvalidInput for a folder that has no such agent, or several and none named.
    """
    if name:
        data = (await files.read(name)).data
        return Source(read=await run_sync(parse_profile, data, name), data=data)
    paths = [info.path for info in await files.list()]
    manifest = next((path for path in paths if path in {"memory.json", "user.json", "profile.json"}), None)
    if manifest is None:
        raise FileMissing("There is no memory.json in this folder: name the folder of one user.")
    held = {path: (await files.read(path)).data for path in [manifest, *_facts_of(paths, agent)]}
    kept = written_json({path: data.decode("utf-8", "replace") for path, data in held.items()})
    return Source(read=await run_sync(_folder, manifest, held), data=kept)


def _facts_of(paths: list[str], agent: str) -> list[str]:
    """Return the files of the facts of one agent."""
    found: dict[str, list[str]] = {}
    for path in paths:
        match = _FACT.fullmatch(path)
        if match:
            found.setdefault(match["agent"], []).append(path)
    if not found:
        return []
    chosen = agent or (_USUAL if _USUAL in found else next(iter(found)) if len(found) == 1 else "")
    if chosen not in found:
        raise InvalidInput(f"The folder has the facts of {', '.join(sorted(found))}: name one of these agents.")
    return sorted(found[chosen])


def _folder(manifest: str, held: dict[str, bytes]) -> ReadProfile:
    """Return the profile of a folder."""
    read = parse_profile(held[manifest], manifest)
    broken: list[BrokenRecord] = []
    records: list[JsonValue] = []
    for path, data in held.items():
        record = None if path == manifest else _record(data)
        if record is not None:
            records.append(record)
        elif path != manifest:
            told = data.decode("utf-8", "replace")
            broken.append(BrokenRecord(where=path, why="front matter and content are needed", record=told))
    facts = facts_in(records, broken)
    profile = replace(read.profile, version=VERSION, facts=(*read.profile.facts, *facts))
    return ReadProfile(profile=profile, broken=(*read.broken, *broken))


def _record(data: bytes) -> dict[str, JsonValue] | None:
    """Return the record of a fact from its Markdown file; None for a file that is none."""
    import yaml

    try:
        found = _MATTER.fullmatch(data.decode("utf-8-sig")) if len(data) <= _LARGEST else None
        matter = yaml.safe_load(found["matter"]) if found else None
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if found is None or not isinstance(matter, dict):
        return None
    content = _HEADING.sub("", found["body"], count=1).strip()
    record = {str(name): _plain(value) for name, value in matter.items()}
    return record | ({} if record.get("content") else {"content": content})


def _plain(value: object) -> JsonValue:
    """Return what front matter says as JSON; times become the text that they are."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()).replace("+00:00", "Z") if isoformat else str(value)
