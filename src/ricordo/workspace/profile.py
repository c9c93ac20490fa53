"""The profile: what is known of a user, and its document `profile.json`, in the format of DeerFlow's memory.

People may edit the document, and other programs write it, so it is read record by record. Unreadable parts are reported
with their place, and the rest is used. Times are stored as they were written.

Invariants: parsing a rendered profile gives that profile. Unknown fields stay in `extra`. A document that is not a JSON
object is an error, not an empty profile.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count

from ricordo.errors import DocumentInvalid, InvalidEntry, InvalidInput
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.types import JsonValue
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.layout import CORRECTION, FACT_ID_PREFIX, HISTORY_SUMMARIES, USER_SUMMARIES

__all__ = [
    "CATEGORIES",
    "CORRECTION",
    "FACT_ID_PREFIX",
    "FACT_TAG",
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
    "fact_entry",
    "format_profile_time",
    "kind_for_category",
    "locate_facts",
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
    """Return the fact category for an entry of this kind; an unknown kind is used as the category."""
    return _CATEGORY_BY_KIND.get(kind, kind)


def kind_for_category(category: str) -> str:
    """Return the entry kind for a fact of this category; "fact" for an unknown category."""
    return _KIND_BY_CATEGORY.get(category, "fact")


FACT_TAG = "profile"
"""The tag of profile facts, where they are shown as entries."""
_NOT_SESSIONS = frozenset({"", "unknown", "manual", "import", "consolidation"})
CATEGORIES = ("preference", "knowledge", "context", "behavior", "goal", CORRECTION)
"""The predefined categories; any other one is stored unchanged."""


@dataclass(frozen=True, kw_only=True)
class ProfileSummary:
    """One of the six summaries: its text, empty if nothing is known, and the time it was written."""

    summary: str = ""
    updated_at: str = ""
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FactSource:
    """The source of a fact: a `thread` (session), or one of manual, import, consolidation, unknown.

    `messages` are the ids of its messages, `quote` words that occur in the first of them.
    """

    thread: str = "unknown"
    messages: tuple[str, ...] = ()
    quote: str = ""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One known fact. `confidence` is in 0..1, higher is surer; `confirmations` counts how often it was confirmed.

    For a correction, `source_error` says what was wrong before. `valid_days` is how long it is expected to hold from
    its last confirmation, None for no limit. `merged_from` are the ids of the facts it replaces. `revision` counts its
    changes, from 1. A fact that is `pinned` or given by a person (`source.thread` is `manual`) is never dropped
    automatically.
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
    """The profile of one user. `summaries` holds the six by their names in the document; `facts` are oldest first.

    `revision` counts the saves of the document, 0 if it was never saved.
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
        """Return the fact with this id, or None."""
        return next((fact for fact in self.facts if fact.id == fact_id), None)

    @property
    def is_empty(self) -> bool:
        """Whether it has neither facts nor summary text."""
        return not self.facts and not any(each.summary.strip() for each in self.summaries.values())


def create_profile(now: datetime) -> Profile:
    """Return a new, empty profile that shares no data with others."""
    return Profile(last_updated=format_profile_time(now))


def create_fact_id(content: str, used_ids: Collection[str]) -> str:
    """Return an id for a fact with this content: `fact_` and 8 hex digits, not among `used_ids`.

    The same content gets the same id while that is free.
    """
    data = content.encode("utf-8", "surrogatepass")
    candidates = (
        f"{FACT_ID_PREFIX}{blake2b(b'%d:' % attempt + data, digest_size=4).hexdigest()}" for attempt in count()
    )
    return next(each for each in candidates if each not in used_ids)


def fact_entry(fact: Fact) -> Entry:
    """Return a fact as an entry with the same id; only the id, the text and the author of one that is no valid entry.

    A fact that a person edited may be no valid entry.
    """
    plain = Entry(
        content=fact.content.strip(), tags=(FACT_TAG,), by="user" if fact.is_protected else "flush", pinned=fact.pinned
    )
    has_session = fact.source.thread not in _NOT_SESSIONS
    entry = replace(
        plain,
        kind=kind_for_category(fact.category),
        time=parse_profile_time(fact.updated_at) or parse_profile_time(fact.created_at),
        confidence=fact.confidence,
        confirmed=parse_profile_time(fact.confirmed_at),
        source=Source(
            session=fact.source.thread if has_session else None,
            messages=tuple(filter(None, fact.source.messages)) if has_session else (),
            quote=(fact.source.quote or None) if has_session else None,
        ),
    )
    try:
        return replace(entry.validate(), id=fact.id)
    except InvalidEntry:
        return replace(plain, id=fact.id)


def locate_facts(data: bytes, path: str) -> list[LocatedEntry]:
    """Return the facts with content of the profile at `path` as entries, with their lines; none if it can't be read."""
    try:
        facts = parse_profile(data, path).profile.facts
    except DocumentInvalid:
        return []
    text, at, line = data.decode("utf-8", "replace"), 0, 1
    located = []
    for fact in facts:
        if fact.content.strip():
            found = _find_content(text, fact.content, at)
            line, at = line + text.count("\n", at, found), found
            located.append(
                LocatedEntry(entry=fact_entry(fact), path=path, line=line, end_line=line, offset=0, length=0)
            )
    return located


def _find_content(text: str, content: str, start: int) -> int:
    """Return the offset of the content from `start` on; `start` if it is encoded in another way."""
    written = (json.dumps(content, ensure_ascii=ascii_only) for ascii_only in (False, True))
    return next((at for each in written if (at := text.find(each, start)) >= 0), start)


def parse_profile_time(written_time: str) -> datetime | None:
    """Parse a time into UTC; without a zone it counts as UTC. None if it can't be parsed."""
    try:
        parsed = datetime.fromisoformat(written_time.strip())
    except ValueError:
        return None
    try:
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except OverflowError:
        return None


def format_profile_time(moment: datetime) -> str:
    """Return a time in the document's format: UTC, ISO 8601 with a trailing Z."""
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
    """An unreadable part of a document: `location` it is, such as `facts[3]`, `reason`, and the `record` unchanged.

    With `is_used` the readable parts of the record are used.
    """

    location: str
    reason: str
    record: JsonValue
    is_used: bool = False


@dataclass(frozen=True, kw_only=True)
class ParsedProfile:
    """A parsed profile, and the unreadable records of its document."""

    profile: Profile
    broken: tuple[BrokenRecord, ...] = ()


def parse_profile(data: bytes, name: str = "profile.json", *, foreign: bool = False) -> ParsedProfile:
    """Parse the document `name`; a `foreign` one might not be a profile at all.

    Raises `DocumentInvalid` for bytes that are not a JSON object, with their place, and for a foreign object that has
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
    """Read a profile from the decoded JSON of its document."""
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
        revision=fields.whole_number("revision", 0, minimum=0) or 0,
        last_updated=fields.text("lastUpdated"),
        summaries=summaries,
        facts=parse_facts(document.get("facts"), broken),
        extra=extra,
    )
    invalid_names = [name for name in fields.invalid if name != "version" or version is None]
    repaired = [
        BrokenRecord(location=name, reason=_describe_invalid([name]), record=document[name], is_used=True)
        for name in invalid_names
    ]
    return ParsedProfile(profile=profile, broken=(*repaired, *broken))


def parse_facts(value: JsonValue, broken: list[BrokenRecord]) -> tuple[Fact, ...]:
    """Read the list of facts, each with a unique id; unreadable records are added to `broken`."""
    if not isinstance(value, list):
        if value is not None:
            broken.append(BrokenRecord(location="facts", reason="a list is needed", record=value))
        return ()
    used_ids = {str(item.get("id")) for item in value if isinstance(item, dict)}
    seen: set[str] = set()
    facts: list[Fact] = []
    for index, item in enumerate(value):
        fact = _parse_fact(item, f"facts[{index}]", seen, used_ids, broken)
        if fact:
            facts.append(fact)
            seen.add(fact.id)
            used_ids.add(fact.id)
    return tuple(facts)


def render_profile(profile: Profile) -> bytes:
    """Write the document. Raises `InvalidInput` for a summary with an unknown name."""
    return dump_profile_json(profile_to_document(profile))


def render_printable_profile(profile: Profile) -> str:
    """Return the document as text in which control and format characters are JSON escapes.

    Raises `InvalidInput` as `render_profile` does.
    """
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", render_profile(profile).decode())


def profile_to_document(profile: Profile) -> dict[str, JsonValue]:
    """Return the document as a JSON value. Raises `InvalidInput` as `render_profile` does."""
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
    known_names = _TOP_KEYS | {level for level, _ in _SUMMARY_LEVELS}
    return document | {name: value for name, value in profile.extra.items() if name not in known_names}


def dump_profile_json(document: JsonValue) -> bytes:
    """Write human-readable JSON: indented, unescaped, with a final newline. Raises `InvalidInput`."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The profile can't be written as JSON: {error}.") from error
    return (_LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n").encode()


class _FieldReader:
    """The fields of one record; fields of a wrong type are listed in `invalid`, and null counts as missing."""

    def __init__(self, record: Mapping[str, JsonValue]) -> None:
        self._record = record
        self.invalid: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        value = self._record.get(name)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self.invalid.append(name)
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._record.get(name)
        items = value if isinstance(value, list) else []
        if (value is not None and not isinstance(value, list)) or not all(isinstance(item, str) for item in items):
            self.invalid.append(name)
        return tuple(item for item in items if isinstance(item, str))

    def whole_number(self, name: str, default: int | None, *, minimum: int | None = None) -> int | None:
        value = _to_number(self._record.get(name))
        if value is None or (minimum is not None and value < minimum):
            if self._record.get(name) is not None:
                self.invalid.append(name)
            return default
        return int(value)

    def fraction(self, name: str, default: float) -> float:
        value = _to_number(self._record.get(name))
        if self._record.get(name) is not None and (value is None or not 0 <= value <= 1):
            self.invalid.append(name)
        return default if value is None else float(min(max(value, 0.0), 1.0))

    def boolean(self, name: str) -> bool:
        value = self._record.get(name)
        if value is not None and not isinstance(value, bool):
            self.invalid.append(name)
        return value is True


def _parse_level(
    level: str, names: tuple[str, ...], value: JsonValue, broken: list[BrokenRecord]
) -> tuple[dict[str, ProfileSummary], dict[str, JsonValue]]:
    """Return the summaries of one level, and its other fields."""
    if value is not None and not isinstance(value, dict):
        broken.append(BrokenRecord(location=level, reason="an object is needed", record=value))
    sections = value if isinstance(value, dict) else {}
    read = {name: _parse_summary(sections.get(name), f"{level}.{name}", broken) for name in names}
    return read, {name: each for name, each in sections.items() if name not in names}


def _parse_summary(value: JsonValue, path: str, broken: list[BrokenRecord]) -> ProfileSummary:
    """Return a summary; a bare text becomes its text."""
    if isinstance(value, str):
        return ProfileSummary(summary=value)
    if not isinstance(value, dict):
        if value is not None:
            broken.append(BrokenRecord(location=path, reason="an object with a summary is needed", record=value))
        return ProfileSummary()
    fields = _FieldReader(value)
    rest = {name: each for name, each in value.items() if name not in {"summary", "updatedAt"}}
    summary = ProfileSummary(summary=fields.text("summary"), updated_at=fields.text("updatedAt"), extra=rest)
    if fields.invalid:
        is_used = "summary" not in fields.invalid
        broken.append(
            BrokenRecord(location=path, reason=_describe_invalid(fields.invalid), record=value, is_used=is_used)
        )
    return summary


def _render_summary(summary: ProfileSummary) -> JsonValue:
    section: dict[str, JsonValue] = {"summary": summary.summary, "updatedAt": summary.updated_at}
    return section | {name: value for name, value in summary.extra.items() if name not in section}


def _parse_fact(
    value: JsonValue, path: str, seen: set[str], used_ids: set[str], broken: list[BrokenRecord]
) -> Fact | None:
    if not isinstance(value, dict):
        broken.append(BrokenRecord(location=path, reason="an object is needed", record=value))
        return None
    fields = _FieldReader(value)
    content = fields.text("content")
    if fields.invalid:
        broken.append(BrokenRecord(location=path, reason=_describe_invalid(fields.invalid), record=value))
        return None
    fact_id = fields.text("id")
    if fact_id in seen:
        fields.invalid.append("id")
    unique_id = fact_id if fact_id and fact_id not in seen else create_fact_id(content, used_ids)
    extra = {name: each for name, each in value.items() if name not in _FACT_KEYS}
    fact = Fact(
        id=unique_id,
        content=content,
        category=_parse_category(fields, extra),
        confidence=fields.fraction("confidence", 0.5),
        created_at=fields.text("createdAt"),
        updated_at=fields.text("updatedAt"),
        source=_parse_source(value, fields, extra),
        source_error=fields.text("sourceError") if isinstance(value.get("sourceError"), str) else None,
        valid_days=fields.whole_number("expected_valid_days", None),
        confirmed_at=fields.text("lastConfirmedAt"),
        confirmations=fields.whole_number("confirmationCount", 1, minimum=1) or 1,
        reviewed_at=fields.text("reviewedAt"),
        merged_from=fields.texts("consolidatedFrom"),
        pinned=fields.boolean("pinned"),
        revision=fields.whole_number("revision", 1, minimum=1) or 1,
        extra=extra,
    )
    if not isinstance(value.get("sourceError"), str | None):
        fields.invalid.append("sourceError")
    if fields.invalid:
        broken.append(BrokenRecord(location=path, reason=_describe_invalid(fields.invalid), record=value, is_used=True))
    return fact


def _parse_category(fields: _FieldReader, extra: dict[str, JsonValue]) -> str:
    """Return the category; other programs store a custom category as `other` with its name in another field."""
    category = fields.text("category", "context")
    custom_name = extra.get(_EXTENSION_KEY)
    if category == _OTHER_CATEGORY and isinstance(custom_name, str) and custom_name.strip():
        del extra[_EXTENSION_KEY]
        return custom_name
    return category


def _parse_source(value: Mapping[str, JsonValue], fields: _FieldReader, extra: dict[str, JsonValue]) -> FactSource:
    """Return the source of a fact; a source object with extra fields is preserved with the fact."""
    thread = value.get("source")
    if isinstance(thread, dict):
        kind, session = thread.get("type"), thread.get("threadId")
        if session or thread.keys() - {"type", "threadId"}:
            extra[_SOURCE_RECORD_KEY] = thread
        thread_id = next((each for each in (session, kind) if isinstance(each, str) and each.strip()), "unknown")
    else:
        thread_id = fields.text("source", "unknown")
    return FactSource(thread=thread_id, messages=fields.texts("sourceMessages"), quote=fields.text("sourceQuote"))


def _render_fact(fact: Fact) -> dict[str, JsonValue]:
    """Return the record of a fact without fields at their default."""
    optional_fields: dict[str, tuple[JsonValue, JsonValue]] = {
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
    record |= {name: value for name, (value, default) in optional_fields.items() if value != default}
    return record | {name: value for name, value in fact.extra.items() if name not in _FACT_KEYS}


def _to_number(value: JsonValue) -> int | float | None:
    """Return a finite number, which may be written as text; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def _parse_float(text: str) -> float | str:
    """Return a number, or the text itself if a float can't represent it."""
    value = float(text)
    return value if math.isfinite(value) else text


def _describe_invalid(names: list[str]) -> str:
    return f"{' and '.join(names)} can't be read"
