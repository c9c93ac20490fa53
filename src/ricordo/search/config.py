"""The weights of recall, and how memories fade. The defaults were measured; see the design notes."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from functools import cached_property

from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass
from ricordo.workspace.entry import Entry

__all__ = [
    "DEFAULT_DECAY",
    "DEFAULT_OPENING_MEMORIES",
    "DEFAULT_RECALL",
    "Decay",
    "DecayConfig",
    "RecallConfig",
    "measure_decay",
]


DEFAULT_OPENING_MEMORIES = 5
"""How many memories are loaded for the first message of a session by default."""
_DAYS_RANGE = (1.0, 36_500.0)
_MAX_CONFIRMATIONS = 100
_FRESH, _FADED = 0.5, 0.125


@dataclass(frozen=True, kw_only=True)
class DecayConfig:
    """How memories fade.

    A memory counts half after the half-life of its kind, in days from 1 to 36,500, and again after each further one.
    The kinds and the types of topic files have their own; `other` is for any other kind. The days count from when it
    was said or last confirmed. Each confirmation adds as many days, for at most `confirmations` of them. A memory
    whose weight is below `archive_below` (0..1, 0 for never) leaves MEMORY.md for the archive.
    """

    user: float = 365.0
    preference: float = 365.0
    feedback: float = 180.0
    convention: float = 180.0
    lesson: float = 180.0
    reference: float = 120.0
    fact: float = 120.0
    decision: float = 120.0
    project: float = 45.0
    goal: float = 45.0
    session_summary: float = 45.0
    other: float = 120.0
    confirmations: int = 3
    archive_below: float = _FADED

    def __post_init__(self) -> None:
        """Raise InvalidSetting for days, confirmations or a weight out of range."""
        least, most = _DAYS_RANGE
        for name in (*_KIND_FIELDS.values(), "other"):
            value = getattr(self, name)
            if not least <= value <= most:
                raise InvalidSetting(f"{name} is a number of days from {least:g} to {most:,.0f}, not {value!r}.")
        if not 0 <= self.confirmations <= _MAX_CONFIRMATIONS:
            raise InvalidSetting(
                f"confirmations is a whole number from 0 to {_MAX_CONFIRMATIONS}, not {self.confirmations!r}."
            )
        if not 0 <= self.archive_below <= 1:
            raise InvalidSetting(f"archive_below is a weight from 0 to 1, not {self.archive_below!r}.")

    @cached_property
    def half_lives(self) -> Mapping[str, float]:
        """The half-life of each kind that has its own, in days."""
        return {kind: getattr(self, name) for kind, name in _KIND_FIELDS.items()}

    def half_life(self, kind: str, confirmations: int = 0) -> float:
        """Return after how many days a memory of this kind counts half, if it was confirmed so many times."""
        return self.half_lives.get(kind, self.other) * (1 + min(confirmations, self.confirmations))


_KIND_FIELDS: Mapping[str, str] = {
    "session-summary" if each.name == "session_summary" else each.name: each.name
    for each in fields(DecayConfig)
    if each.name not in {"other", "confirmations", "archive_below"}
}
DEFAULT_DECAY = DecayConfig()


@dataclass(frozen=True, kw_only=True)
class RecallConfig:
    """Weights of the ranking and of the answer.

    Shares of a hit's score: `passage` and `context` weigh the words of the passage alone and with its neighbours,
    `session` the best passages of its session, `session_coverage` how many of the question's words its session
    contains, `speaker` whether it is by or about the one person whom the question names, `reply` whether it follows a
    question that is similar to the query, `dates` whether its time is one that the question names, `answer_type`
    whether it contains the type of answer that the question expects (a date, a number), `form` how much a message says
    by its form (long ones gain, short ones, mere questions and calls of tools lose), `memory` whether it is a memory
    and not a raw message, by its confidence, `recency` whether it is new, confirmed or pinned.

    `dense` and `dense_context` weigh the semantic similarity of the passage alone and with its neighbours. Their shares
    are taken from `passage` and `context`, so scores with and without these signals are comparable. `rerank` weighs the
    reranker's score of the best `reranked` hits; recall waits `rerank_seconds` for it.

    `breadth` is the penalty of each further passage of the same session if a question of few words may have its answer
    in several sessions; the session share counts less for such a question.

    An answer adds `coverage` of the question's words and `meaning` times the nearness in meaning beyond the usual one,
    and subtracts `asking` if the passage is a question itself.

    Penalties of an answer: `missing_words` times the share of the question's words that memory does not contain,
    `other_speaker` if the speaker is not the person whom the question names, `one_word` if the passage contains only
    one of several core words, `no_word` if it contains none, `no_number` if the question asks for a number and the
    passage has none, `scattered_words` times the share of the core words that no single sentence of an assistant or a
    tool contains together, as in a long list, `unnamed` if the passage neither contains a name of the question nor was
    said by the one who is named, `call` if it is the call of a tool.

    An answer quotes a further passage if its fitness is at least `further` times that of the best one.

    `candidates` is the maximum number of matches from each source. `min_fitness` is the fitness in 0..1 below which the
    answer is "not in memory". `tie_margin` is the score difference up to which the newer of two statements on one
    subject wins. `duplicate` is the similarity in 0..1 from which two hits count as one. `repetition` is the share of a
    message's words from which a better memory that was learned from the message replaces it; a value above 1 turns this
    off.

    A message of a session is a hit of recall if it has the share `said_coverage` of the question's words, and goes
    before a memory if its score is higher by `said_margin`.
    """

    passage: float = 0.25
    context: float = 0.40
    dense: float = 0.06
    dense_context: float = 0.10
    session: float = 0.22
    session_coverage: float = 0.05
    speaker: float = 0.10
    reply: float = 0.20
    dates: float = 0.10
    answer_type: float = 0.05
    form: float = 0.04
    memory: float = 0.10
    recency: float = 0.005
    rerank: float = 0.30
    reranked: int = 30
    rerank_seconds: float = 0.2
    breadth: float = 0.02
    decay: DecayConfig = DEFAULT_DECAY
    coverage: float = 0.2
    meaning: float = 0.2
    asking: float = 0.05
    missing_words: float = 0.3
    other_speaker: float = 0.3
    one_word: float = 0.2
    no_word: float = 0.5
    no_number: float = 0.3
    scattered_words: float = 0.3
    unnamed: float = 0.5
    call: float = 0.3
    further: float = 0.5
    candidates: int = 200
    min_fitness: float = 0.29
    tie_margin: float = 0.08
    duplicate: float = 0.9
    repetition: float = 0.6
    said_coverage: float = 0.25
    said_margin: float = 0.05


DEFAULT_RECALL = RecallConfig()


@dataclass(frozen=True, kw_only=True)
class Decay:
    """How far a memory has faded: its `weight` is 1 when it is new, and halved every `half_life` days after `since`.

    `since` is when it was said or last confirmed, None if that is unknown or does not matter. `state` is `fresh` above
    a weight of 0.5, `faded` below one of 0.125, `fading` between; `pinned`; `ended` after its last day; or the state of
    an entry that is not active. Nothing is removed for its decay.
    """

    state: str
    weight: float
    half_life: float
    since: datetime | None = None

    @property
    def explanation(self) -> str:
        """What the state means, and what changes it."""
        if self.state == "pinned":
            return "pinned: it does not fade; `ricordo pin --off` lets it"
        if self.since is None:
            return f"{self.state}: its age does not count"
        half = self.since + timedelta(days=self.half_life)
        return (
            f"{self.state}, weight {self.weight:.2f}: of equal memories the fresher goes first; it counts half "
            f"{self.half_life:,.0f} days after {self.since:%Y-%m-%d}, which is {half:%Y-%m-%d}; `ricordo confirm` "
            "makes it new and lets it fade slower, `ricordo pin` keeps it"
        )


def measure_decay(entry: Entry, now: datetime, config: DecayConfig = DEFAULT_DECAY) -> Decay:
    """Return how far a memory has faded at the time `now`; being shown or used does not matter."""
    half_life = config.half_life(entry.kind, entry.confirmations)
    since = max(filter(None, (entry.since or entry.time, entry.confirmed)), default=None)
    if entry.state != "active" or since is None:
        return Decay(state=entry.state, weight=0.0, half_life=half_life)
    if entry.pinned:
        return Decay(state="pinned", weight=1.0, half_life=half_life)
    if entry.valid_until is not None and entry.valid_until <= now.date():
        return Decay(state="ended", weight=0.0, half_life=half_life)
    weight = 0.5 ** (max((now - since).total_seconds(), 0.0) / 86_400 / half_life)
    state = "fresh" if weight > _FRESH else "faded" if weight < _FADED else "fading"
    return Decay(state=state, weight=weight, half_life=half_life, since=since)
