"""The weights of recall. The defaults were measured; see the design notes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["HALF_LIVES", "RecallConfig"]


HALF_LIVES: Mapping[str, float] = {
    "user": 365.0,
    "preference": 365.0,
    "feedback": 180.0,
    "convention": 180.0,
    "lesson": 180.0,
    "reference": 120.0,
    "fact": 120.0,
    "decision": 120.0,
    "project": 45.0,
    "goal": 45.0,
    "session-summary": 45.0,
}
"""Days after which a memory of this kind counts half in a tie, by the types of topic files and the kinds like them."""


@dataclass(frozen=True, kw_only=True)
class RecallConfig:
    """Weights of the ranking and of the answer.

    Shares of a hit's score: `own` and `context` weigh the words of the passage alone and with its neighbours, `session`
    the best passages of its session, `company` how many of the question's words its session holds, `speaker` that
    it is by or about the one person whom the question names, `reply` that it follows a question which is near, `dates`
    that it is of a time that the question names, `expected` that it holds what a question asks for (a date, a
    number), `memory` that it is a memory and not a raw message, by its confidence, `recency` that it is new, was
    confirmed or is pinned.

    `dense` and `dense_context` weigh how near an embedder finds the passage alone and with its neighbours. They
    share the place of `own` and `context`: with such signals and without, a score means the same. `rerank` weighs what
    a reranker says of the best `reranked` hits; it is waited for `rerank_seconds`.

    `breadth` is what each further passage of one session loses where a question of few words may have its answer in
    several; such a question counts on sessions the less.

    An answer adds `coverage` of the question's words and takes off `asking` from a passage that asks itself.

    Shares that an answer loses: `absent` of the part of the question's words that memory holds nowhere, `stranger`
    where another person speaks than the one whom the question names, `thin` where the passage holds but one of the
    several words that say what is asked for, `bare` where it holds none of them,
    `uncounted` where a number is asked for and the passage holds none, `scattered` of the part of those words that no
    one sentence of an assistant or a tool holds together, as in a long list.

    `candidates` is how many matches each source gives at most. `floor` is the fitness in 0..1 below which `answer` says
    "not in memory". `near` is the difference of scores up to which the newer of two statements on one subject wins.
    `duplicate` is the similarity in 0..1 from which two hits count as one, `said` the part of a message's words from
    which a better memory that was learned from it stands for it; above 1 none does.
    """

    own: float = 0.25
    context: float = 0.40
    dense: float = 0.06
    dense_context: float = 0.06
    session: float = 0.22
    company: float = 0.05
    speaker: float = 0.10
    reply: float = 0.20
    dates: float = 0.10
    expected: float = 0.05
    memory: float = 0.10
    recency: float = 0.005
    rerank: float = 0.30
    reranked: int = 30
    rerank_seconds: float = 0.2
    breadth: float = 0.02
    half_lives: Mapping[str, float] = field(default_factory=lambda: HALF_LIVES)
    default_half_life: float = 120.0
    coverage: float = 0.2
    asking: float = 0.05
    absent: float = 0.3
    stranger: float = 0.3
    thin: float = 0.2
    bare: float = 0.5
    uncounted: float = 0.3
    scattered: float = 0.3
    candidates: int = 200
    floor: float = 0.29
    near: float = 0.08
    duplicate: float = 0.9
    said: float = 0.6
