"""`Entry`: one memory with its source, its trust, and the entries that it contradicts.

Invariant: entries with a recorded contradiction contradict each other, even if only one of them records it. An entry
that is missing or not active contradicts nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import date, datetime
from typing import Literal, TypeAlias, cast, get_args

from ricordo.errors import InvalidEntry, InvalidSetting
from ricordo.guard import Trust
from ricordo.guard.fence import is_blank
from ricordo.guard.permissions import PermissionRule, parse_rule
from ricordo.lazy import dataclass, lazy_compile
from ricordo.scope import Scope
from ricordo.workspace.markdown import escape_value

__all__ = [
    "CONTRADICTS_FIELD",
    "CONTRADICTS_NEXT",
    "CONTRADICTS_PREVIOUS",
    "EDITED_FIELD",
    "EXTERNAL_TRUST_FIELD",
    "MAX_CONTENT_BYTES",
    "MERGED_FIELD",
    "OUTDATED_BY_FIELD",
    "OUTDATED_FIELD",
    "PREDEFINED_KINDS",
    "QUARANTINE_FIELD",
    "SHARED_BY_FIELD",
    "STARTS_FIELD",
    "SUCCESSOR_FIELD",
    "UNTIL_FIELD",
    "Author",
    "Entry",
    "EntryFilter",
    "EntryState",
    "Source",
    "announce_successor",
    "contradicted_ids",
    "contradiction_marker",
    "find_contradictions",
    "is_contradiction_marker",
    "is_system_field",
    "name_contradiction",
    "outdated_marker",
    "parse_memory_rule",
    "release",
    "reopen",
    "replace_fields",
    "supersede",
    "with_metadata",
    "with_validity",
]


MAX_CONTENT_BYTES = 2 * 1024 * 1024
"""The maximum size of the content of one entry, in UTF-8 bytes."""
PREDEFINED_KINDS = ("fact", "decision", "preference", "lesson", "convention", "goal", "session-summary")
"""The kinds that Ricordo itself uses; any other kind is stored unchanged."""
Author: TypeAlias = Literal["user", "agent", "flush", "import", "hand"]
EntryState: TypeAlias = Literal["active", "superseded", "retired", "quarantined"]
STARTS_FIELD, UNTIL_FIELD = "starts", "until"
"""The extra fields with the first day on which an entry holds, and with the day on which it ends."""
MERGED_FIELD = "merged"
"""The field with the ids of entries that said the same, newest last."""
SUCCESSOR_FIELD = "successor"
"""The extra field of a superseded entry with the id of the one that took its place."""
EXTERNAL_TRUST_FIELD = ("trust", Trust.EXTERNAL.value)
"""The extra field of an entry that was learned from tool output."""
QUARANTINE_FIELD = "quarantine"
"""The extra field of an entry in quarantine that says why it waits."""
SHARED_BY_FIELD = "shared-by"
"""The field of an entry of a team with the member who shared it."""
EDITED_FIELD = "edited"
"""The field of an entry of a team with digests of its earlier contents, oldest first."""
OUTDATED_BY_FIELD = "outdated-by"
"""The field of an entry with the id of a newer one that may have made it outdated."""
OUTDATED_FIELD = "maybe-outdated"
"""The field of such an entry with words about the newer one, for people."""
_SYSTEM_FIELDS = frozenset(
    {"contradicts", "merged", "quarantine", "replaced", "reworded", "seq", "starts", "successor", "until"}
    | {EXTERNAL_TRUST_FIELD[0], OUTDATED_BY_FIELD, OUTDATED_FIELD, SHARED_BY_FIELD, EDITED_FIELD}
)
"""The extra fields that Ricordo writes itself."""
_PERSON_AUTHORS: frozenset[Author] = frozenset({"user", "hand"})
_ID_PATTERN = lazy_compile(r"[0-9A-Za-z-]{1,64}")
_FIELD_NAME_PATTERN = lazy_compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_RESERVED_FIELDS = (
    frozenset(("kind", "at", "since", "confidence", "by", "from", "quote", "origin", "state", "supersedes", "pinned"))
    | frozenset(("confirmed", "reason", "long", "tag", "rule"))
    | frozenset(part.name for part in fields(Scope))
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source of an entry: messages of a session, and words that occur in them verbatim.

    Without a `quote`, the content of an extracted entry uses the words of the message itself.
    """

    session: str | None = None
    messages: tuple[str, ...] = ()
    quote: str | None = None
    origin: str | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One memory.

    `id` and `time` (when it was saved) are empty until the store sets them. `since` is when it was said or became true,
    if that differs from `time`; `confirmed` is when a person last confirmed it. `confidence` is in 0..1. `reason` says
    why it is visible beyond one project. `rule` forbids tool calls or requires asking a person, such as `deny shell(git
    push --force*)`. `extra` holds fields of other tools in their order.

    A given `id` has 1 to 64 ASCII letters, digits and dashes. The name of an extra field begins with a letter, has
    letters, digits, `_` and `-`, and is not a field name of Ricordo.
    """

    content: str
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    id: str = ""
    time: datetime | None = None
    since: datetime | None = None
    scope: Scope | None = None
    by: Author = "user"
    source: Source = field(default_factory=Source)
    confidence: float = 1.0
    state: EntryState = "active"
    supersedes: str | None = None
    pinned: bool = False
    confirmed: datetime | None = None
    reason: str | None = None
    rule: str | None = None
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def metadata(self) -> dict[str, str]:
        """The extra fields that people and programs gave it, by name; empty if there are none."""
        return {key: value for key, value in self.extra if not is_system_field(key)}

    @property
    def said_at(self) -> datetime | None:
        """The earlier of `since` and `time`, as far as they are known."""
        return min((time for time in (self.since, self.time) if time is not None), default=None)

    @property
    def valid_from(self) -> date | None:
        """The first day on which it holds: a day that it names, else the day on which it was said; None if unknown."""
        return self._day_of(STARTS_FIELD) or (self.said_at.date() if self.said_at else None)

    @property
    def valid_until(self) -> date | None:
        """The day on which it ends or ended: one that it names, else that of its successor; None while it holds."""
        return self._day_of(UNTIL_FIELD)

    @property
    def superseded_by(self) -> str:
        """The id of the entry that took its place, or takes it on the day `valid_until`; empty if none does."""
        return next((value for key, value in self.extra if key == SUCCESSOR_FIELD), "")

    @property
    def shared_by(self) -> str:
        """The member of a team who shared it; empty for any other entry."""
        return next((value for key, value in self.extra if key == SHARED_BY_FIELD), "")

    @property
    def maybe_outdated_by(self) -> str:
        """The id of a newer entry that may have made it outdated, while nobody has decided; empty if there is none."""
        fields = dict(self.extra)
        is_marked = self.state == "active" and OUTDATED_FIELD in fields
        return fields.get(OUTDATED_BY_FIELD, "") if is_marked else ""

    @property
    def confirmations(self) -> int:
        """How often it was said again, and once more if a person confirmed it."""
        merged = next((value for key, value in self.extra if key == MERGED_FIELD), "")
        return len([name for name in merged.split(",") if name]) + (self.confirmed is not None)

    def _day_of(self, name: str) -> date | None:
        value = next((value for key, value in self.extra if key == name), "")
        try:
            return date.fromisoformat(value[:10])
        except ValueError:
            return None

    @property
    def is_external(self) -> bool:
        """Whether it comes from a tool or an import, or waits in quarantine, and no person confirmed or pinned it."""
        is_outside = self.by == "import" or self.state == "quarantined" or EXTERNAL_TRUST_FIELD in self.extra
        return is_outside and self.confirmed is None and not self.pinned

    @property
    def trust(self) -> Trust:
        """The trust level: user if a person saved, wrote, confirmed or pinned it, else agent or external.

        Imported entries, and entries learned from tool output, are external.
        """
        if self.by in _PERSON_AUTHORS or self.confirmed is not None or self.pinned:
            return Trust.USER
        return Trust.EXTERNAL if self.is_external else Trust.AGENT

    @property
    def is_rule(self) -> bool:
        """Whether tool calls are checked against its rule, whatever its state.

        A person saved it, wrote it into a file, or confirmed an imported one. What an agent saved or what was learned
        from messages is never a rule.
        """
        by_person = self.by in _PERSON_AUTHORS or (self.by == "import" and self.confirmed is not None)
        return self.rule is not None and by_person

    def validate(self) -> "Entry":
        """Return this entry; raise `InvalidEntry` if its line could not be parsed back into the same entry.

        It is invalid if it lacks content, is too large or out of range, if a name in it could be read as another field,
        or if its rule is malformed, permits something, or is not a person's.
        """
        if not isinstance(self.content, str) or not isinstance(self.kind, str):
            raise InvalidEntry("The content and the kind of an entry are texts.")
        if is_blank(self.content):
            raise InvalidEntry("An entry needs content that can be seen.")
        size = len(self.content.encode("utf-8", "surrogatepass"))
        if size > MAX_CONTENT_BYTES:
            raise InvalidEntry(
                f"An entry holds at most {MAX_CONTENT_BYTES} bytes, this one has {size}: save it in parts."
            )
        if not 0.0 <= self.confidence <= 1.0:
            raise InvalidEntry(f"The confidence of an entry is between 0 and 1, not {self.confidence}.")
        if is_blank(self.kind):
            raise InvalidEntry("An entry needs a kind, such as fact or decision.")
        self._check_names()
        self._check_rule()
        return self

    def _check_names(self) -> None:
        if self.id and not _ID_PATTERN.fullmatch(self.id):
            raise InvalidEntry("The id of an entry has 1 to 64 letters, digits and dashes.")
        if self.by not in get_args(Author):
            raise InvalidEntry(f"An entry is by one of {', '.join(get_args(Author))}.")
        if self.state not in get_args(EntryState):
            raise InvalidEntry(f"The state of an entry is one of {', '.join(get_args(EntryState))}.")
        # a string is a sequence of strings too
        tags, messages = cast("object", self.tags), cast("object", self.source.messages)
        if isinstance(tags, str) or not all(isinstance(tag, str) for tag in self.tags):
            raise InvalidEntry("The tags of an entry are several texts, not one.")
        if isinstance(messages, str) or not all(self.source.messages):
            raise InvalidEntry("The source of an entry names messages by their ids, none of which is empty.")
        for key, _ in self.extra:
            if not _FIELD_NAME_PATTERN.fullmatch(key) or key in _RESERVED_FIELDS:
                raise InvalidEntry(
                    "The name of an extra field begins with a letter and is not the name of a built-in field."
                )

    def _check_rule(self) -> None:
        if self.rule is None:
            return
        parse_memory_rule(self.rule)
        if self.by not in {*_PERSON_AUTHORS, "import"}:
            raise InvalidEntry(f"Only a person makes a rule: what is saved by {self.by} can't be one.")


def release(entry: Entry) -> Entry:
    """Return an entry that a person accepted: active, if it waited in quarantine."""
    if entry.state != "quarantined":
        return entry
    return replace(entry, state="active", extra=tuple(pair for pair in entry.extra if pair[0] != QUARANTINE_FIELD))


def is_system_field(name: str) -> bool:
    """Return whether an extra field with this name belongs to Ricordo and is no metadata."""
    return name in _SYSTEM_FIELDS or name in _RESERVED_FIELDS


def with_metadata(entry: Entry, metadata: Mapping[str, str]) -> Entry:
    """Return the entry with exactly this metadata, in this order, after the fields of Ricordo.

    Raises: InvalidEntry for a name that Ricordo uses or that does not begin with a letter, or for a value that is not
    a text.
    """
    for key, value in metadata.items():
        if not isinstance(key, str) or not _FIELD_NAME_PATTERN.fullmatch(key) or is_system_field(key):
            raise InvalidEntry(
                f"The name {key!r} can't be used in metadata: it begins with a letter, has letters, digits, _ and -, "
                "and is no name of Ricordo such as kind, until or team."
            )
        if not isinstance(value, str):
            raise InvalidEntry(f"The metadata {key} is a text, not {value!r}.")
    own = tuple((key, value) for key, value in entry.extra if is_system_field(key))
    return replace(entry, extra=(*own, *metadata.items()))


@dataclass(frozen=True, kw_only=True)
class EntryFilter:
    """Which entries are wanted; an empty filter matches every entry.

    An entry matches if it has one of `kinds`, one of `tags`, one of `states`, was saved or said from `since` up to
    `until`, which is exclusive, and has, for each name in `metadata`, one of the values given there.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    metadata: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def matches(self, entry: Entry) -> bool:
        """Return whether `entry` is wanted."""
        time = entry.said_at
        return (
            (not self.kinds or entry.kind in self.kinds)
            and (not self.tags or not set(self.tags).isdisjoint(entry.tags))
            and (not self.states or entry.state in self.states)
            and (self.since is None or (time is not None and time >= self.since))
            and (self.until is None or (time is not None and time < self.until))
            and all(entry.metadata.get(name) in values for name, values in self.metadata.items())
        )


def parse_memory_rule(text: str, *, why: str = "", source: str = "") -> PermissionRule:
    """Return the rule of an entry. Raises: InvalidEntry for a text that is not a rule, or a rule that permits."""
    form = "write `deny shell(git push --force*)` or `ask write_file(src/*)`"
    try:
        rule = parse_rule(text, reason=why, source=source)
    except InvalidSetting as error:
        raise InvalidEntry(f"{text!r} is no rule of a memory: {form}.") from error
    if rule.decision == "allow":
        raise InvalidEntry(f"A memory forbids or asks, and permits nothing: {form}, not {text!r}.")
    return rule


CONTRADICTS_FIELD = "contradicts"
"""The field of a curated entry with the ids of the entries that it contradicts, until a person decides."""
CONTRADICTS_NEXT = "(contradicts the next: not decided)"
CONTRADICTS_PREVIOUS = "(contradicts the one before: not decided)"
_MARKER_START, _MARKER_END = "(contradicts ", ": not decided)"


def contradicted_ids(entry: Entry) -> tuple[str, ...]:
    """Return the ids that an entry's line lists as contradicting it, whether or not they still exist."""
    return tuple(part for key, value in entry.extra if key == CONTRADICTS_FIELD for part in value.split(",") if part)


def find_contradictions(
    entries: Iterable[Entry], *, elsewhere: Collection[str] | None = ()
) -> dict[str, tuple[str, ...]]:
    """Return by id which active entries contradict each other, in both directions.

    `elsewhere` are ids of further active entries; None treats every id that is not among `entries` as active.
    """
    all_entries = list(entries)
    active_ids = {entry.id for entry in all_entries if entry.state == "active"}
    known_ids = {entry.id for entry in all_entries}
    contradictions: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for entry in all_entries:
        if entry.id not in active_ids:
            continue
        for other in contradicted_ids(entry):
            if other in active_ids and other != entry.id:
                contradictions[entry.id][other] = None
                contradictions[other][entry.id] = None
            elif other not in known_ids and (elsewhere is None or other in elsewhere):
                contradictions[entry.id][other] = None
    return {name: tuple(others) for name, others in contradictions.items()}


def contradiction_marker(others: Sequence[str], *, before: str = "", after: str = "") -> str:
    """Return the marker to show with an entry that contradicts `others`; empty if there are none.

    `before` and `after` are the ids of the entries shown right before and after it.
    """
    if not others:
        return ""
    return (
        CONTRADICTS_NEXT
        if after in others
        else CONTRADICTS_PREVIOUS
        if before in others
        else name_contradiction(others[0])
    )


def name_contradiction(other: str) -> str:
    """Return the marker for a contradicted entry that is not shown right before or after."""
    return f"{_MARKER_START}{other}{_MARKER_END}"


def is_contradiction_marker(line: str) -> bool:
    """Return whether a displayed line is a contradiction marker rather than an entry."""
    stripped = line.strip()
    return stripped.startswith(_MARKER_START) and stripped.endswith(_MARKER_END)


def outdated_marker(entry: Entry) -> str:
    """Return the marker to show with an entry that may be outdated; empty for any other."""
    return f"(maybe outdated: {dict(entry.extra)[OUTDATED_FIELD]})" if entry.maybe_outdated_by else ""


def replace_fields(bullet: bytes, entry: Entry, names: Collection[str], values: Iterable[tuple[str, str]]) -> bytes:
    """Return an entry's bullet with `values` as its only extra fields of these names; all other bytes stay.

    The bullet contains the id. `OUTDATED_BY_FIELD` goes before the other extra fields, because only there
    the comment of a document takes it.
    """
    result = bullet
    for key, value in entry.extra:
        written = f" [{key}:: {escape_value(value)}]".encode("utf-8", "surrogatepass")
        before, field, after = result.rpartition(written)
        result = before + after if key in names and field else result
    for key, value in values:
        others = [pair for pair in entry.extra if pair[0] not in names]
        first = f"[{others[0][0]}:: {escape_value(others[0][1])}]" if others and key == OUTDATED_BY_FIELD else ""
        place = (first or f"^{entry.id}").encode("utf-8", "surrogatepass")
        before, name, after = result.rpartition(place)
        added = f"[{key}:: {escape_value(value)}] ".encode("utf-8", "surrogatepass")
        result = before + added + name + after if name else result
    return result


def with_validity(entry: Entry, *, start: date | None = None, end: date | None = None) -> Entry:
    """Return the entry with the days from which and until which it holds, where it has none of its own."""
    known = {key for key, _ in entry.extra}
    days = [(name, day.isoformat()) for name, day in ((STARTS_FIELD, start), (UNTIL_FIELD, end)) if day]
    return replace(entry, extra=(*entry.extra, *(pair for pair in days if pair[0] not in known)))


def supersede(entry: Entry, successor: str, *, end: date | None = None) -> Entry:
    """Return the entry as superseded by the one with the id `successor`, and ended on the day `end` if it names none.

    A day that comes from the successor stands after it, so `reopen` takes back no day that the entry itself names.
    """
    return replace(announce_successor(entry, successor, end=end), state="superseded")


def announce_successor(entry: Entry, successor: str, *, end: date | None) -> Entry:
    """Return the entry, in its state, with the successor that takes its place on the day `end`."""
    link = ((SUCCESSOR_FIELD, successor),) if successor else ()
    own = reopen(entry) if entry.superseded_by else entry
    return with_validity(replace(own, state=entry.state, extra=(*own.extra, *link)), end=end)


def reopen(entry: Entry) -> Entry:
    """Return an entry as it was before: active, without its successor and the end that came from it."""
    names = [key for key, _ in entry.extra]
    own = names.index(SUCCESSOR_FIELD) if SUCCESSOR_FIELD in names else len(names)
    later = (pair for pair in entry.extra[own:] if pair[0] not in {SUCCESSOR_FIELD, UNTIL_FIELD})
    return replace(entry, state="active", extra=(*entry.extra[:own], *later))
