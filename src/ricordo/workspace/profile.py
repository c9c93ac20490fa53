"""The profile: what is known of a user, as one value, and its document `profile.json`, in the shape of DeerFlow's
memory.

A person may edit the document, and other programs write it, so it is read record by record. What can't be read is
reported with its place, and the rest is used. Times are kept as they were written.

Invariants: parsing a rendered profile gives that profile. What has no name here stays in `extra`. A document that is no
JSON object is an error and no empty profile.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count

from ricordo.errors import DocumentInvalid, InvalidInput
from ricordo.lazy import lazy_compile
from ricordo.messages.types import JsonValue

__all__ = [
    "CATEGORIES",
    "CORRECTION",
    "FACT_ID_PREFIX",
    "HISTORY_SUMMARIES",
    "USER_SUMMARIES",
    "BrokenRecord",
    "Fact",
    "FactSource",
    "ParsedProfile",
    "Profile",
    "ProfileSummary",
    "category_for_kind",
    "create_fact_id",
    "create_profile",
    "dump_profile_json",
    "format_profile_time",
    "kind_for_category",
    "parse_facts",
    "parse_profile",
    "parse_profile_time",
    "profile_from_document",
    "profile_to_document",
    "render_printable_profile",
    "render_profile",
]


_CATEGORY_BY_KIND: Mapping[str, str] = {
    "fact": "context",
    "decision": "context",
    "preference": "preference",
    "lesson": "knowledge",
    "convention": "behavior",
    "goal": "goal",
}
_KIND_BY_CATEGORY: Mapping[str, str] = {
    "preference": "preference",
    "knowledge": "fact",
    "context": "fact",
    "behavior": "convention",
    "goal": "goal",
    "correction": "fact",
}


def category_for_kind(kind: str) -> str:
    """Return the category of a fact that was a memory of this kind; an unknown kind is its own category."""
    return _CATEGORY_BY_KIND.get(kind, kind)


def kind_for_category(category: str) -> str:
    """Return the kind of a memory that was a fact of this category; an unknown category is a plain fact."""
    return _KIND_BY_CATEGORY.get(category, "fact")


FACT_ID_PREFIX = "fact_"
"""How the id of a fact begins."""
USER_SUMMARIES = ("workContext", "personalContext", "topOfMind")
"""The summaries of the user level, by their names in the document."""
HISTORY_SUMMARIES = ("recentMonths", "earlierContext", "longTermBackground")
"""The summaries of the history level, by their names in the document."""
CORRECTION = "correction"
"""The category of what a user set right."""
CATEGORIES = ("preference", "knowledge", "context", "behavior", "goal", CORRECTION)
"""The categories that have a name; any other one is kept as it is."""


@dataclass(frozen=True, kw_only=True)
class ProfileSummary:
    """One of the six summaries: its text, empty when nothing is known, and when it was written."""

    summary: str = ""
    updated_at: str = ""
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FactSource:
    """Where a fact comes from: a `thread` (session), or who gave it: manual, import, consolidation, unknown.

    `messages` are the ids of the messages it rests on, `quote` words that stand in the first of them.
    """

    thread: str = "unknown"
    messages: tuple[str, ...] = ()
    quote: str = ""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that is known. `confidence` is in 0..1, higher is surer; it counts as confirmed `confirmations` times.

    `source_error` says what was wrong before, for a correction. `valid_days` is how long it is expected to hold from
    its last confirmation on, None for no end of its own. `merged_from` are the ids of the facts it stands for.
    `revision` counts its changes, from 1 on. A `pinned` one and one that a person gave (`source.thread` is `manual`)
    is never dropped by itself.
    """

    id: str
    content: str = ""
    category: str = "context"
    confidence: float = 0.5
    created_at: str = ""
    updated_at: str = ""
    source: FactSource = field(default_factory=FactSource)
    source_error: str | None = None
    valid_days: int | None = None
    confirmed_at: str = ""
    confirmations: int = 1
    reviewed_at: str = ""
    merged_from: tuple[str, ...] = ()
    pinned: bool = False
    revision: int = 1
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def is_protected(self) -> bool:
        """Whether only a person may remove it."""
        return self.pinned or self.source.thread == "manual"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What is known of one user. `summaries` holds the six by their names in the document; `facts` are oldest first.

    `revision` counts the saves of the document, 0 for one that was never saved.
    """

    version: str = "1.0"
    revision: int = 0
    last_updated: str = ""
    summaries: Mapping[str, ProfileSummary] = field(
        default_factory=lambda: {name: ProfileSummary() for name in (*USER_SUMMARIES, *HISTORY_SUMMARIES)}
    )
    facts: tuple[Fact, ...] = ()
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    def find_fact(self, fact_id: str) -> Fact | None:
        """Return the fact with this id; None when there is none."""
        return next((fact for fact in self.facts if fact.id == fact_id), None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is known."""
        return not self.facts and not any(each.summary.strip() for each in self.summaries.values())


def create_profile(now: datetime) -> Profile:
    """Return the profile of somebody of whom nothing is known yet; it shares nothing with another one."""
    return Profile(last_updated=format_profile_time(now))


def create_fact_id(content: str, taken: Collection[str]) -> str:
    """Return an id for a fact that says this: `fact_` and 8 hex digits, none of those that are `taken`.

    The same content gets the same id as long as that is free.
    """
    said = content.encode("utf-8", "surrogatepass")
    found = (f"{FACT_ID_PREFIX}{blake2b(b'%d:' % attempt + said, digest_size=4).hexdigest()}" for attempt in count())
    return next(each for each in found if each not in taken)


def parse_profile_time(written_time: str) -> datetime | None:
    """Return a time as it was written, in UTC; one without a zone is UTC, and None is what can't be read."""
    try:
        found = datetime.fromisoformat(written_time.strip())
    except ValueError:
        return None
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        return None


def format_profile_time(moment: datetime) -> str:
    """Return a time as the document has it: UTC, ISO 8601 with a Z at its end."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_SUMMARY_LEVELS = (("user", USER_SUMMARIES), ("history", HISTORY_SUMMARIES))
_TOP_KEYS = frozenset({"version", "revision", "lastUpdated", "facts"})
_FACT_KEYS = frozenset({
    "id", "content", "category", "confidence", "createdAt", "updatedAt", "source", "sourceMessages", "sourceQuote",
    "sourceError", "expected_valid_days", "lastConfirmedAt", "confirmationCount", "reviewedAt", "consolidatedFrom",
    "pinned", "revision",
})  # fmt: skip
_OTHER_CATEGORY, _EXTENSION_KEY, _SOURCE_RECORD_KEY = "other", "categoryExtension", "sourceRecord"
_PROFILE_PARTS = (*(level for level, _ in _SUMMARY_LEVELS), "facts")
_INVISIBLE = lazy_compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_LONE_SURROGATE = lazy_compile("[\ud800-\udfff]")
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
