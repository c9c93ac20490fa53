"""The calendar: which session takes place on which day, between whom and memory. Pure; the same seed, the same year.

Sessions are conversations that were had elsewhere, given a new day, and made-up ones where those do not suffice. What
is planted is spread over the first two thirds of the days, so that it has time to be lost.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from random import Random

from long_talk.talk import remarks
from retrieval_sets import Haystack, Question, Turn
from simulated.plants import ASIDES, CHANGES, FACTS, RESTATED, Change, Paraphrase, Plant

__all__ = [
    "OWN",
    "SMALL",
    "START",
    "USERS",
    "Calendar",
    "Changed",
    "Planted",
    "Restated",
    "Visit",
    "made",
    "own_session",
]

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
USERS = ("asta", "bodil", "casper", "ditte", "emil")
SMALL, OWN = "small", "own"
"""What the names of sessions begin with that are small talk, and in which something is planted."""

_TALKED = 4
_REMARKS = 3
_PERSONAL = "-personal"


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One session: on which day (0 is the first), whose, what is said, and whether a person talks with an agent.

    A session that is not `talked` is taken in as it was recorded.
    """

    day: int
    user: str
    session: str
    items: tuple[Turn, ...]
    talked: bool


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A plant and the day on which it is said."""

    plant: Plant
    day: int


@dataclass(frozen=True, kw_only=True)
class Changed:
    """What is so from the day `first` on, and otherwise from the day `second` on."""

    change: Change
    first: int
    second: int


@dataclass(frozen=True, kw_only=True)
class Restated:
    """What is said on the day `first`, and in other words on the day `second`."""

    what: Paraphrase
    first: int
    second: int


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """A year, or a week of one."""

    days: int
    visits: Mapping[int, Sequence[Visit]]
    facts: tuple[Planted, ...]
    asides: tuple[Planted, ...]
    changes: tuple[Changed, ...]
    restated: tuple[Restated, ...]
    questions: Mapping[str, Sequence[Question]]
    """By session, the labelled questions whose last evidence stands in it."""


def made(haystacks: Sequence[Haystack], *, days: int, sessions: int, seed: int = 7) -> Calendar:
    """Return a calendar of so many days and sessions over what is said in `haystacks`."""
    random = Random(seed)
    told = [(_named(hay.id, name), items) for hay in haystacks for name, items in _sessions(hay)]
    random.shuffle(told)
    told = told[:sessions]
    told += [(f"{SMALL}-{number}", _small(number)) for number in range(sessions - len(told))]
    order = sorted(random.choices(range(days), k=sessions))
    random.shuffle(told)
    visits = [
        Visit(day=day, user=USERS[number % len(USERS)], session=name, items=items, talked=number % _TALKED == 0)
        for number, (day, (name, items)) in enumerate(zip(order, told, strict=True))
    ]
    late = max(days * 2 // 3, 2)
    facts = [Planted(plant=plant, day=random.randrange(late)) for plant in FACTS]
    asides = [Planted(plant=plant, day=random.randrange(late)) for plant in ASIDES]
    changes, restated = [], []
    for change in CHANGES:
        first, second = sorted(random.sample(range(late), 2))
        changes.append(Changed(change=change, first=first, second=second))
    for what in RESTATED:
        first, second = sorted(random.sample(range(late), 2))
        restated.append(Restated(what=what, first=first, second=second))
    said = [(each.day, each.plant.said) for each in (*facts, *asides)]
    said += [
        row for each in changes for row in ((each.first, each.change.old.said), (each.second, each.change.new.said))
    ]
    said += [row for each in restated for row in ((each.first, each.what.one), (each.second, each.what.other))]
    visits += _own(said, random)
    by_day: defaultdict[int, list[Visit]] = defaultdict(list)
    for visit in visits:
        by_day[visit.day].append(_timed(visit, len(by_day[visit.day])))
    held = {visit.session for visit in visits}
    return Calendar(
        days=days,
        visits=dict(by_day),
        facts=tuple(facts),
        asides=tuple(asides),
        changes=tuple(changes),
        restated=tuple(restated),
        questions=_questions(haystacks, held),
    )


def own_session(day: int, said: str) -> str:
    """Return the name of the session in which something is said on a day; what is said of oneself is one person's."""
    personal = any(word in {"i", "my", "ich"} for word in said.casefold().split())
    return f"{OWN}-{day}{_PERSONAL if personal else ''}"


def _own(said: Sequence[tuple[int, str]], random: Random) -> list[Visit]:
    """Return the sessions in which something is planted: one a day, between remarks."""
    found = []
    placed = sorted((day, own_session(day, text), text) for day, text in said)
    for number, ((day, session), rows) in enumerate(groupby(placed, key=lambda row: row[:2])):
        texts = [text for *_, text in rows]
        around = remarks(_REMARKS, seed=random.randrange(10**6))
        items = _items(session, [*around, *texts])
        talked = number % 2 == 0
        user = USERS[0] if session.endswith(_PERSONAL) else USERS[number % len(USERS)]
        visit = Visit(day=day, user=user, session=session, items=items, talked=talked)
        found.append(visit)
    return found


def _small(number: int) -> tuple[Turn, ...]:
    return _items(f"{SMALL}-{number}", remarks(_REMARKS, seed=number))


def _items(session: str, texts: Sequence[str]) -> tuple[Turn, ...]:
    return tuple(
        Turn(id=f"{session}.{place}", text=text, speaker="user", time="", session=session)
        for place, text in enumerate(texts)
    )


def _sessions(haystack: Haystack) -> list[tuple[str, tuple[Turn, ...]]]:
    return [
        (name, tuple(replace(item, id=f"{haystack.id}/{item.id}") for item in items))
        for name, items in groupby(haystack.items, key=lambda item: item.session)
    ]


def _timed(visit: Visit, place: int) -> Visit:
    """Return a session with the times of its new day: an hour for each, a message every 20 seconds."""
    begun = START + timedelta(days=visit.day, hours=place % 10)
    items = [
        replace(item, time=(begun + timedelta(seconds=20 * number)).isoformat())
        for number, item in enumerate(visit.items)
    ]
    return replace(visit, items=tuple(items))


def _questions(haystacks: Sequence[Haystack], held: set[str]) -> dict[str, list[Question]]:
    found: defaultdict[str, list[Question]] = defaultdict(list)
    for hay in haystacks:
        where = {item.id: _named(hay.id, item.session) for item in hay.items}
        for asked in hay.questions:
            sessions = [where[label] for label in asked.evidence if label in where]
            if len(sessions) == 1 and sessions[0] in held:
                evidence = tuple(f"{hay.id}/{label}" for label in asked.evidence)
                found[sessions[0]].append(replace(asked, evidence=evidence))
    return dict(found)


def _named(haystack: str, session: str) -> str:
    return f"{haystack}-{session}".replace(" ", "-")
