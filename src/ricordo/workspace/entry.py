"""Entry: one memory, with where it came from and how far it can be trusted."""

import re
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Literal, TypeAlias, cast, get_args

from ricordo.errors import InvalidEntry, InvalidSetting
from ricordo.guard import Trust
from ricordo.guard.permissions import PermissionRule, parse_rule
from ricordo.guard.tags import is_blank
from ricordo.scopes import Scope

__all__ = [
    "EXTERNAL_TRUST_FIELD",
    "MAX_CONTENT_BYTES",
    "PREDEFINED_KINDS",
    "Author",
    "Entry",
    "Source",
    "EntryState",
    "parse_memory_rule",
]

MAX_CONTENT_BYTES = 2 * 1024 * 1024
"""The most UTF-8 bytes that the content of one entry may have."""

PREDEFINED_KINDS = ("fact", "decision", "preference", "lesson", "convention", "goal", "session-summary")
"""The kinds that Ricordo itself uses; any other kind is kept as it is."""

Author: TypeAlias = Literal["user", "agent", "flush", "import", "hand"]
EntryState: TypeAlias = Literal["active", "superseded", "retired"]

EXTERNAL_TRUST_FIELD = ("trust", Trust.EXTERNAL.value)
"""The further field of an entry that was learned from what a tool printed."""

_PERSON_AUTHORS: frozenset[Author] = frozenset({"user", "hand"})

_ID_PATTERN = re.compile(r"[0-9A-Za-z-]{1,64}")
_FIELD_NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_RESERVED_FIELDS = (
    frozenset(("kind", "at", "since", "confidence", "by", "from", "quote", "origin", "state", "supersedes", "pinned"))
    | frozenset(("confirmed", "reason", "long", "tag", "rule"))
    | frozenset(part.name for part in fields(Scope))
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where an entry comes from: the messages of a session it rests on, and words that occur in them verbatim.

    Without a `quote` the content of an extracted entry is in the words of the message itself.
    """

    session: str | None = None
    messages: tuple[str, ...] = ()
    quote: str | None = None
    origin: str | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One memory.

    `id` and `time` (when it was saved) are empty until the store gives them. `since` is when it was said or became
    true, where that is not the time of saving; `confirmed` is when a person last said that it holds. `confidence`
    is in 0..1. `reason` says why it is visible beyond one project. `rule` is what it forbids of tool calls, or asks a
    person about, such as `deny shell(git push --force*)`. `extra` holds fields of other tools in their order.

    A given `id` has 1 to 64 ASCII letters, digits and dashes; the name of an extra field begins with a letter, has
    letters, digits, `_` and `-`, and is none of our own.
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
    def said_at(self) -> datetime | None:
        """When it was said, as far as that is known to be before it was saved; else when it was saved."""
        return min((time for time in (self.since, self.time) if time is not None), default=None)

    @property
    def is_external(self) -> bool:
        """Whether it was learned from what a tool printed, and no person has confirmed or pinned it since."""
        return EXTERNAL_TRUST_FIELD in self.extra and self.confirmed is None and not self.pinned

    @property
    def trust(self) -> Trust:
        """Who stands behind it: a person who saved, wrote, confirmed or pinned it, else the agent, else one outside.

        What was imported, and what was learned from words that a tool printed, is from outside.
        """
        if self.by in _PERSON_AUTHORS or self.confirmed is not None or self.pinned:
            return Trust.USER
        return Trust.EXTERNAL if self.by == "import" or self.is_external else Trust.AGENT

    @property
    def is_rule(self) -> bool:
        """Whether tool calls are checked against its rule, which is so in any state.

        A person saved it, or wrote it into a file, or confirmed what was imported. What an agent saved, or what was
        learned from messages, is never a rule.
        """
        by_person = self.by in _PERSON_AUTHORS or (self.by == "import" and self.confirmed is not None)
        return self.rule is not None and by_person

    def validate(self) -> "Entry":
        """Return this entry; raise `InvalidEntry` when its line could not be read back as what it is.

        That is when it lacks content, is too large or out of range, when a name in it could be taken for another field,
        or when its rule is none, permits something, or is not a person's.
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
        # a text is a sequence of texts too, and not what is meant
        tags, messages = cast("object", self.tags), cast("object", self.source.messages)
        if isinstance(tags, str) or not all(isinstance(tag, str) for tag in self.tags):
            raise InvalidEntry("The tags of an entry are several texts, not one.")
        if isinstance(messages, str) or not all(self.source.messages):
            raise InvalidEntry("The source of an entry names messages by their ids, none of which is empty.")
        for key, _ in self.extra:
            if not _FIELD_NAME_PATTERN.fullmatch(key) or key in _RESERVED_FIELDS:
                raise InvalidEntry("A further field of an entry has a name of letters that is none of our own.")

    def _check_rule(self) -> None:
        if self.rule is None:
            return
        parse_memory_rule(self.rule)
        if self.by not in {*_PERSON_AUTHORS, "import"}:
            raise InvalidEntry(f"Only a person makes a rule: what is saved by {self.by} can't be one.")


def parse_memory_rule(text: str, *, why: str = "", source: str = "") -> PermissionRule:
    """Return the rule of a memory. Raises: InvalidEntry for a text that is none, and for one that permits something."""
    form = "write `deny shell(git push --force*)` or `ask write_file(src/*)`"
    try:
        rule = parse_rule(text, why=why, source=source)
    except InvalidSetting as error:
        raise InvalidEntry(f"{text!r} is no rule of a memory: {form}.") from error
    if rule.decision == "allow":
        raise InvalidEntry(f"A memory forbids or asks, and permits nothing: {form}, not {text!r}.")
    return rule
