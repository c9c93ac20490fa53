"""The document of a profile: `profile.json` to a value and back, in the shape that DeerFlow's memory has.

A person may edit it, and other programs write it, so it is read record by record: one that can't be read is told with
its place and what stands there, and the rest is read. A field of the wrong type takes its default, and its record is
told as well. What has no name here is kept where it stands.

Invariants: parse(render(profile)) is that profile. A document that is no JSON object is an error and no empty profile.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ricordo.errors import DocumentInvalid, InvalidInput
from ricordo.messages.types import JsonValue
from ricordo.workspace.profile import HISTORY_LEVEL, USER_LEVEL, Fact, FactSource, Profile, Summary, fact_id

__all__ = [
    "BrokenRecord", "ReadProfile", "document_of", "facts_in", "parse_profile", "printable_profile", "profile_in",
    "render_profile", "written_json",
]  # fmt: skip

_LEVELS = (("user", USER_LEVEL), ("history", HISTORY_LEVEL))
_TOP = frozenset({"version", "revision", "lastUpdated", "facts"})
_OF_FACT = frozenset({
    "id", "content", "category", "confidence", "createdAt", "updatedAt", "source", "sourceMessages", "sourceQuote",
    "sourceError", "expected_valid_days", "lastConfirmedAt", "confirmationCount", "reviewedAt", "consolidatedFrom",
    "pinned", "revision",
})  # fmt: skip
_OTHER, _EXTENSION, _SOURCE_RECORD = "other", "categoryExtension", "sourceRecord"
_PARTS = (*(level for level, _ in _LEVELS), "facts")
_UNSEEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_LONE = re.compile("[\ud800-\udfff]")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True)
class BrokenRecord:
    """What can't be read in a document: `where` it stands, such as `facts[3]`, `why`, and the `record` as it stands.

    With `is_used` the record is used as far as it can be read.
    """

    where: str
    why: str
    record: JsonValue
    is_used: bool = False


@dataclass(frozen=True, kw_only=True)
class ReadProfile:
    """A profile as it was read, and the records of its document that could not be."""

    profile: Profile
    broken: tuple[BrokenRecord, ...] = ()


def parse_profile(data: bytes, name: str = "profile.json", *, foreign: bool = False) -> ReadProfile:
    """Read the document `name`; of a `foreign` one it is not known that it is a profile at all.

    Raises `DocumentInvalid` for bytes that are no JSON object, with their place, and for a foreign object that has
    none of the parts of a profile.
    """
    try:
        value: JsonValue = json.loads(data.removeprefix(_BOM), parse_constant=str, parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"{name} can't be read as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise DocumentInvalid(f"{name} is no profile: a JSON object is needed.")
    if foreign and value.keys().isdisjoint(_PARTS):
        raise DocumentInvalid(f"{name} is no profile: it has none of {', '.join(_PARTS)}.")
    return profile_in(value)


def profile_in(document: Mapping[str, JsonValue]) -> ReadProfile:
    """Read a profile from the value of its document."""
    fields = _Fields(document)
    extra = {name: value for name, value in document.items() if name not in _TOP}
    summaries: dict[str, Summary] = {}
    broken: list[BrokenRecord] = []
    for level, names in _LEVELS:
        read, rest = _level(level, names, extra.pop(level, None), broken)
        summaries |= read
        extra |= {level: rest} if rest else {}
    number = document.get("version")
    version = str(number) if isinstance(number, int | float) and not isinstance(number, bool) else None
    profile = Profile(
        version=version or fields.text("version", "1.0"),
        revision=fields.whole("revision", 0, least=0) or 0,
        last_updated=fields.text("lastUpdated"),
        summaries=summaries,
        facts=facts_in(document.get("facts"), broken),
        extra=extra,
    )
    wrong = [name for name in fields.wrong if name != "version" or version is None]
    told = [BrokenRecord(where=name, why=_wrong([name]), record=document[name], is_used=True) for name in wrong]
    return ReadProfile(profile=profile, broken=(*told, *broken))


def facts_in(value: JsonValue, broken: list[BrokenRecord]) -> tuple[Fact, ...]:
    """Read the list of facts, each with an id of its own; what can't be read is added to `broken`."""
    if not isinstance(value, list):
        if value is not None:
            broken.append(BrokenRecord(where="facts", why="a list is needed", record=value))
        return ()
    taken = {str(item.get("id")) for item in value if isinstance(item, dict)}
    seen: set[str] = set()
    found: list[Fact] = []
    for at, item in enumerate(value):
        fact = _fact(item, f"facts[{at}]", seen, taken, broken)
        if fact:
            found.append(fact)
            seen.add(fact.id)
            taken.add(fact.id)
    return tuple(found)


def render_profile(profile: Profile) -> bytes:
    """Write the document. Raises `InvalidInput` for a summary with a name that it has no place for."""
    return written_json(document_of(profile))


def printable_profile(profile: Profile) -> str:
    """Return the document as text whose control and format characters are escapes; it says the same.

    Raises `InvalidInput` as `render_profile` does.
    """
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", render_profile(profile).decode())


def document_of(profile: Profile) -> dict[str, JsonValue]:
    """Return the value of the document. Raises `InvalidInput` as `render_profile` does."""
    unknown = profile.summaries.keys() - {*USER_LEVEL, *HISTORY_LEVEL}
    if unknown:
        raise InvalidInput(f"A profile has no summary {sorted(unknown)[0]!r}.")
    document: dict[str, JsonValue] = {"version": profile.version}
    if profile.revision:
        document["revision"] = profile.revision
    document["lastUpdated"] = profile.last_updated
    for level, names in _LEVELS:
        rest = profile.extra.get(level)
        sections: dict[str, JsonValue] = {name: _section(profile.summaries.get(name, Summary())) for name in names}
        document[level] = sections | (rest if isinstance(rest, dict) else {})
    document["facts"] = [_record(fact) for fact in profile.facts]
    known = _TOP | {level for level, _ in _LEVELS}
    return document | {name: value for name, value in profile.extra.items() if name not in known}


def written_json(document: JsonValue) -> bytes:
    """Write JSON for people: indented, in their own letters, with a line end. Raises `InvalidInput`."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The profile can't be written as JSON: {error}.") from error
    return (_LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n").encode()


class _Fields:
    """The fields of one record; those of a wrong type are listed in `wrong`, and null is as good as no field."""

    def __init__(self, record: Mapping[str, JsonValue]) -> None:
        self._record = record
        self.wrong: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        found = self._record.get(name)
        if found is None or isinstance(found, str):
            return default if found is None else found
        self.wrong.append(name)
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._record.get(name)
        items = found if isinstance(found, list) else []
        if (found is not None and not isinstance(found, list)) or not all(isinstance(item, str) for item in items):
            self.wrong.append(name)
        return tuple(item for item in items if isinstance(item, str))

    def whole(self, name: str, default: int | None, *, least: int | None = None) -> int | None:
        found = _as_number(self._record.get(name))
        if found is None or (least is not None and found < least):
            if self._record.get(name) is not None:
                self.wrong.append(name)
            return default
        return int(found)

    def share(self, name: str, default: float) -> float:
        found = _as_number(self._record.get(name))
        if self._record.get(name) is not None and (found is None or not 0 <= found <= 1):
            self.wrong.append(name)
        return default if found is None else float(min(max(found, 0.0), 1.0))

    def truth(self, name: str) -> bool:
        found = self._record.get(name)
        if found is not None and not isinstance(found, bool):
            self.wrong.append(name)
        return found is True


def _level(
    level: str, names: tuple[str, ...], value: JsonValue, broken: list[BrokenRecord]
) -> tuple[dict[str, Summary], dict[str, JsonValue]]:
    """Return the summaries of one level, and what else stands there."""
    if value is not None and not isinstance(value, dict):
        broken.append(BrokenRecord(where=level, why="an object is needed", record=value))
    sections = value if isinstance(value, dict) else {}
    read = {name: _summary(sections.get(name), f"{level}.{name}", broken) for name in names}
    return read, {name: each for name, each in sections.items() if name not in names}


def _summary(value: JsonValue, where: str, broken: list[BrokenRecord]) -> Summary:
    """Return a section; a bare text is taken for its summary."""
    if isinstance(value, str):
        return Summary(summary=value)
    if not isinstance(value, dict):
        if value is not None:
            broken.append(BrokenRecord(where=where, why="an object with a summary is needed", record=value))
        return Summary()
    fields = _Fields(value)
    rest = {name: each for name, each in value.items() if name not in {"summary", "updatedAt"}}
    summary = Summary(summary=fields.text("summary"), updated_at=fields.text("updatedAt"), extra=rest)
    if fields.wrong:
        is_used = "summary" not in fields.wrong
        broken.append(BrokenRecord(where=where, why=_wrong(fields.wrong), record=value, is_used=is_used))
    return summary


def _section(summary: Summary) -> JsonValue:
    section: dict[str, JsonValue] = {"summary": summary.summary, "updatedAt": summary.updated_at}
    return section | {name: value for name, value in summary.extra.items() if name not in section}


def _fact(value: JsonValue, where: str, seen: set[str], taken: set[str], broken: list[BrokenRecord]) -> Fact | None:
    if not isinstance(value, dict):
        broken.append(BrokenRecord(where=where, why="an object is needed", record=value))
        return None
    fields = _Fields(value)
    content = fields.text("content")
    if fields.wrong:
        broken.append(BrokenRecord(where=where, why=_wrong(fields.wrong), record=value))
        return None
    named = fields.text("id")
    if named in seen:
        fields.wrong.append("id")
    own = named if named and named not in seen else fact_id(content, taken)
    extra = {name: each for name, each in value.items() if name not in _OF_FACT}
    fact = Fact(
        id=own,
        content=content,
        category=_category(fields, extra),
        confidence=fields.share("confidence", 0.5),
        created_at=fields.text("createdAt"),
        updated_at=fields.text("updatedAt"),
        source=_source(value, fields, extra),
        source_error=fields.text("sourceError") if isinstance(value.get("sourceError"), str) else None,
        valid_days=fields.whole("expected_valid_days", None),
        confirmed_at=fields.text("lastConfirmedAt"),
        confirmations=fields.whole("confirmationCount", 1, least=1) or 1,
        reviewed_at=fields.text("reviewedAt"),
        merged_from=fields.texts("consolidatedFrom"),
        pinned=fields.truth("pinned"),
        revision=fields.whole("revision", 1, least=1) or 1,
        extra=extra,
    )
    if not isinstance(value.get("sourceError"), str | None):
        fields.wrong.append("sourceError")
    if fields.wrong:
        broken.append(BrokenRecord(where=where, why=_wrong(fields.wrong), record=value, is_used=True))
    return fact


def _category(fields: _Fields, extra: dict[str, JsonValue]) -> str:
    """Return the category; what another program files as `other` has its own name beside it."""
    category = fields.text("category", "context")
    named = extra.get(_EXTENSION)
    if category == _OTHER and isinstance(named, str) and named.strip():
        del extra[_EXTENSION]
        return named
    return category


def _source(value: Mapping[str, JsonValue], fields: _Fields, extra: dict[str, JsonValue]) -> FactSource:
    """Return where a fact comes from; a source with fields of its own is kept whole beside the fact."""
    thread = value.get("source")
    if isinstance(thread, dict):
        kind, session = thread.get("type"), thread.get("threadId")
        if session or thread.keys() - {"type", "threadId"}:
            extra[_SOURCE_RECORD] = thread
        named = next((each for each in (session, kind) if isinstance(each, str) and each.strip()), "unknown")
    else:
        named = fields.text("source", "unknown")
    return FactSource(thread=named, messages=fields.texts("sourceMessages"), quote=fields.text("sourceQuote"))


def _record(fact: Fact) -> dict[str, JsonValue]:
    """Return the record of a fact, without what says nothing."""
    said: dict[str, tuple[JsonValue, JsonValue]] = {
        "updatedAt": (fact.updated_at, ""),
        "sourceMessages": ([*fact.source.messages], []),
        "sourceQuote": (fact.source.quote, ""),
        "sourceError": (fact.source_error, None),
        "expected_valid_days": (fact.valid_days, None),
        "lastConfirmedAt": (fact.confirmed_at, ""),
        "confirmationCount": (fact.confirmations, 1),
        "reviewedAt": (fact.reviewed_at, ""),
        "consolidatedFrom": ([*fact.merged_from], []),
        "pinned": (fact.pinned, False),
        "revision": (fact.revision, 1),
    }
    record: dict[str, JsonValue] = {
        "id": fact.id,
        "content": fact.content,
        "category": fact.category,
        "confidence": fact.confidence,
        "createdAt": fact.created_at,
        "source": fact.source.thread,
    }
    record |= {name: value for name, (value, default) in said.items() if value != default}
    return record | {name: value for name, value in fact.extra.items() if name not in _OF_FACT}


def _as_number(value: JsonValue) -> int | float | None:
    """Return a finite number, also one that is written as text; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def _number(text: str) -> float | str:
    """Return a number; one that no float can hold stays the text that it is."""
    value = float(text)
    return value if math.isfinite(value) else text


def _wrong(names: list[str]) -> str:
    return f"{' and '.join(names)} can't be read"
