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
from ricordo.workspace.profile import (
    HISTORY_SUMMARIES,
    USER_SUMMARIES,
    Fact,
    FactSource,
    Profile,
    ProfileSummary,
    create_fact_id,
)

__all__ = [
    "BrokenRecord", "ParsedProfile", "profile_to_document", "parse_facts", "parse_profile", "render_printable_profile", "profile_from_document",
    "render_profile", "dump_profile_json",
]  # fmt: skip

_SUMMARY_LEVELS = (("user", USER_SUMMARIES), ("history", HISTORY_SUMMARIES))
_TOP_KEYS = frozenset({"version", "revision", "lastUpdated", "facts"})
_FACT_KEYS = frozenset({
    "id", "content", "category", "confidence", "createdAt", "updatedAt", "source", "sourceMessages", "sourceQuote",
    "sourceError", "expected_valid_days", "lastConfirmedAt", "confirmationCount", "reviewedAt", "consolidatedFrom",
    "pinned", "revision",
})  # fmt: skip
_OTHER_CATEGORY, _EXTENSION_KEY, _SOURCE_RECORD_KEY = "other", "categoryExtension", "sourceRecord"
_PROFILE_PARTS = (*(level for level, _ in _SUMMARY_LEVELS), "facts")
_INVISIBLE = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
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
class ParsedProfile:
    """A profile as it was read, and the records of its document that could not be."""

    profile: Profile
    broken: tuple[BrokenRecord, ...] = ()


def parse_profile(data: bytes, name: str = "profile.json", *, foreign: bool = False) -> ParsedProfile:
    """Read the document `name`; of a `foreign` one it is not known that it is a profile at all.

    Raises `DocumentInvalid` for bytes that are no JSON object, with their place, and for a foreign object that has
    none of the parts of a profile.
    """
    try:
        value: JsonValue = json.loads(data.removeprefix(_BOM), parse_constant=str, parse_float=_parse_float)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"{name} can't be read as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise DocumentInvalid(f"{name} is no profile: a JSON object is needed.")
    if foreign and value.keys().isdisjoint(_PROFILE_PARTS):
        raise DocumentInvalid(f"{name} is no profile: it has none of {', '.join(_PROFILE_PARTS)}.")
    return profile_from_document(value)


def profile_from_document(document: Mapping[str, JsonValue]) -> ParsedProfile:
    """Read a profile from the value of its document."""
    fields = _FieldReader(document)
    extra = {name: value for name, value in document.items() if name not in _TOP_KEYS}
    summaries: dict[str, ProfileSummary] = {}
    broken: list[BrokenRecord] = []
    for level, names in _SUMMARY_LEVELS:
        read, rest = _parse_level(level, names, extra.pop(level, None), broken)
        summaries |= read
        extra |= {level: rest} if rest else {}
    number = document.get("version")
    version = str(number) if isinstance(number, int | float) and not isinstance(number, bool) else None
    profile = Profile(
        version=version or fields.text("version", "1.0"),
        revision=fields.whole_number("revision", 0, least=0) or 0,
        last_updated=fields.text("lastUpdated"),
        summaries=summaries,
        facts=parse_facts(document.get("facts"), broken),
        extra=extra,
    )
    wrong = [name for name in fields.invalid if name != "version" or version is None]
    told = [
        BrokenRecord(where=name, why=_describe_invalid([name]), record=document[name], is_used=True) for name in wrong
    ]
    return ParsedProfile(profile=profile, broken=(*told, *broken))


def parse_facts(value: JsonValue, broken: list[BrokenRecord]) -> tuple[Fact, ...]:
    """Read the list of facts, each with an id of its own; what can't be read is added to `broken`."""
    if not isinstance(value, list):
        if value is not None:
            broken.append(BrokenRecord(where="facts", why="a list is needed", record=value))
        return ()
    taken = {str(item.get("id")) for item in value if isinstance(item, dict)}
    seen: set[str] = set()
    found: list[Fact] = []
    for at, item in enumerate(value):
        fact = _parse_fact(item, f"facts[{at}]", seen, taken, broken)
        if fact:
            found.append(fact)
            seen.add(fact.id)
            taken.add(fact.id)
    return tuple(found)


def render_profile(profile: Profile) -> bytes:
    """Write the document. Raises `InvalidInput` for a summary with a name that it has no place for."""
    return dump_profile_json(profile_to_document(profile))


def render_printable_profile(profile: Profile) -> str:
    """Return the document as text whose control and format characters are escapes; it says the same.

    Raises `InvalidInput` as `render_profile` does.
    """
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", render_profile(profile).decode())


def profile_to_document(profile: Profile) -> dict[str, JsonValue]:
    """Return the value of the document. Raises `InvalidInput` as `render_profile` does."""
    unknown = profile.summaries.keys() - {*USER_SUMMARIES, *HISTORY_SUMMARIES}
    if unknown:
        raise InvalidInput(f"A profile has no summary {sorted(unknown)[0]!r}.")
    document: dict[str, JsonValue] = {"version": profile.version}
    if profile.revision:
        document["revision"] = profile.revision
    document["lastUpdated"] = profile.last_updated
    for level, names in _SUMMARY_LEVELS:
        rest = profile.extra.get(level)
        sections: dict[str, JsonValue] = {
            name: _render_summary(profile.summaries.get(name, ProfileSummary())) for name in names
        }
        document[level] = sections | (rest if isinstance(rest, dict) else {})
    document["facts"] = [_render_fact(fact) for fact in profile.facts]
    known = _TOP_KEYS | {level for level, _ in _SUMMARY_LEVELS}
    return document | {name: value for name, value in profile.extra.items() if name not in known}


def dump_profile_json(document: JsonValue) -> bytes:
    """Write JSON for people: indented, in their own letters, with a line end. Raises `InvalidInput`."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The profile can't be written as JSON: {error}.") from error
    return (_LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n").encode()


class _FieldReader:
    """The fields of one record; those of a wrong type are listed in `invalid`, and null is as good as no field."""

    def __init__(self, record: Mapping[str, JsonValue]) -> None:
        self._record = record
        self.invalid: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        found = self._record.get(name)
        if found is None or isinstance(found, str):
            return default if found is None else found
        self.invalid.append(name)
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._record.get(name)
        items = found if isinstance(found, list) else []
        if (found is not None and not isinstance(found, list)) or not all(isinstance(item, str) for item in items):
            self.invalid.append(name)
        return tuple(item for item in items if isinstance(item, str))

    def whole_number(self, name: str, default: int | None, *, least: int | None = None) -> int | None:
        found = _to_number(self._record.get(name))
        if found is None or (least is not None and found < least):
            if self._record.get(name) is not None:
                self.invalid.append(name)
            return default
        return int(found)

    def fraction(self, name: str, default: float) -> float:
        found = _to_number(self._record.get(name))
        if self._record.get(name) is not None and (found is None or not 0 <= found <= 1):
            self.invalid.append(name)
        return default if found is None else float(min(max(found, 0.0), 1.0))

    def boolean(self, name: str) -> bool:
        found = self._record.get(name)
        if found is not None and not isinstance(found, bool):
            self.invalid.append(name)
        return found is True


def _parse_level(
    level: str, names: tuple[str, ...], value: JsonValue, broken: list[BrokenRecord]
) -> tuple[dict[str, ProfileSummary], dict[str, JsonValue]]:
    """Return the summaries of one level, and what else stands there."""
    if value is not None and not isinstance(value, dict):
        broken.append(BrokenRecord(where=level, why="an object is needed", record=value))
    sections = value if isinstance(value, dict) else {}
    read = {name: _parse_summary(sections.get(name), f"{level}.{name}", broken) for name in names}
    return read, {name: each for name, each in sections.items() if name not in names}


def _parse_summary(value: JsonValue, where: str, broken: list[BrokenRecord]) -> ProfileSummary:
    """Return a section; a bare text is taken for its summary."""
    if isinstance(value, str):
        return ProfileSummary(summary=value)
    if not isinstance(value, dict):
        if value is not None:
            broken.append(BrokenRecord(where=where, why="an object with a summary is needed", record=value))
        return ProfileSummary()
    fields = _FieldReader(value)
    rest = {name: each for name, each in value.items() if name not in {"summary", "updatedAt"}}
    summary = ProfileSummary(summary=fields.text("summary"), updated_at=fields.text("updatedAt"), extra=rest)
    if fields.invalid:
        is_used = "summary" not in fields.invalid
        broken.append(BrokenRecord(where=where, why=_describe_invalid(fields.invalid), record=value, is_used=is_used))
    return summary


def _render_summary(summary: ProfileSummary) -> JsonValue:
    section: dict[str, JsonValue] = {"summary": summary.summary, "updatedAt": summary.updated_at}
    return section | {name: value for name, value in summary.extra.items() if name not in section}


def _parse_fact(
    value: JsonValue, where: str, seen: set[str], taken: set[str], broken: list[BrokenRecord]
) -> Fact | None:
    if not isinstance(value, dict):
        broken.append(BrokenRecord(where=where, why="an object is needed", record=value))
        return None
    fields = _FieldReader(value)
    content = fields.text("content")
    if fields.invalid:
        broken.append(BrokenRecord(where=where, why=_describe_invalid(fields.invalid), record=value))
        return None
    named = fields.text("id")
    if named in seen:
        fields.invalid.append("id")
    own = named if named and named not in seen else create_fact_id(content, taken)
    extra = {name: each for name, each in value.items() if name not in _FACT_KEYS}
    fact = Fact(
        id=own,
        content=content,
        category=_parse_category(fields, extra),
        confidence=fields.fraction("confidence", 0.5),
        created_at=fields.text("createdAt"),
        updated_at=fields.text("updatedAt"),
        source=_parse_source(value, fields, extra),
        source_error=fields.text("sourceError") if isinstance(value.get("sourceError"), str) else None,
        valid_days=fields.whole_number("expected_valid_days", None),
        confirmed_at=fields.text("lastConfirmedAt"),
        confirmations=fields.whole_number("confirmationCount", 1, least=1) or 1,
        reviewed_at=fields.text("reviewedAt"),
        merged_from=fields.texts("consolidatedFrom"),
        pinned=fields.boolean("pinned"),
        revision=fields.whole_number("revision", 1, least=1) or 1,
        extra=extra,
    )
    if not isinstance(value.get("sourceError"), str | None):
        fields.invalid.append("sourceError")
    if fields.invalid:
        broken.append(BrokenRecord(where=where, why=_describe_invalid(fields.invalid), record=value, is_used=True))
    return fact


def _parse_category(fields: _FieldReader, extra: dict[str, JsonValue]) -> str:
    """Return the category; what another program files as `other` has its own name beside it."""
    category = fields.text("category", "context")
    named = extra.get(_EXTENSION_KEY)
    if category == _OTHER_CATEGORY and isinstance(named, str) and named.strip():
        del extra[_EXTENSION_KEY]
        return named
    return category


def _parse_source(value: Mapping[str, JsonValue], fields: _FieldReader, extra: dict[str, JsonValue]) -> FactSource:
    """Return where a fact comes from; a source with fields of its own is kept whole beside the fact."""
    thread = value.get("source")
    if isinstance(thread, dict):
        kind, session = thread.get("type"), thread.get("threadId")
        if session or thread.keys() - {"type", "threadId"}:
            extra[_SOURCE_RECORD_KEY] = thread
        named = next((each for each in (session, kind) if isinstance(each, str) and each.strip()), "unknown")
    else:
        named = fields.text("source", "unknown")
    return FactSource(thread=named, messages=fields.texts("sourceMessages"), quote=fields.text("sourceQuote"))


def _render_fact(fact: Fact) -> dict[str, JsonValue]:
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
    return record | {name: value for name, value in fact.extra.items() if name not in _FACT_KEYS}


def _to_number(value: JsonValue) -> int | float | None:
    """Return a finite number, also one that is written as text; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def _parse_float(text: str) -> float | str:
    """Return a number; one that no float can hold stays the text that it is."""
    value = float(text)
    return value if math.isfinite(value) else text


def _describe_invalid(names: list[str]) -> str:
    return f"{' and '.join(names)} can't be read"
