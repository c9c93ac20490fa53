"""Facts that are planted in a conversation, each with an answer that stands nowhere else."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Literal

__all__ = ["Fact", "Where", "planted"]

Where = Literal["user", "tool", "assistant"]

_WHATS = ("build tag", "release name", "queue name", "bucket name", "fallback region", "schema name", "branch name")
_THINGS = ("parcel router", "ledger importer", "invoice printer", "search gateway", "mail sorter", "price cache",
           "stock counter", "label service",
           "map renderer", "audit exporter", "refund desk", "tariff reader")  # fmt: skip
_BIRDS = ("tern", "heron", "plover", "godwit", "curlew", "avocet", "dunlin", "knot", "ruff", "snipe")
_WORDED: dict[Where, tuple[str, ...]] = {
    "user": (
        "By the way, the {topic} is {answer}.",
        "We decided that the {topic} is {answer}.",
        "Please remember that the {topic} is {answer}.",
        "I looked it up, and the {topic} is {answer} for now.",
        "Let us use {answer} as the {topic} from now on.",
    ),
    "tool": (
        "2026-03-14T09:21:07Z INFO  config: {topic} is {answer}",
        "deploy.toml:41: # the {topic} is {answer}",
        "note: the {topic} resolved to {answer}",
    ),
    "assistant": (
        "I set the {topic} to {answer}.",
        "It failed because of the {topic}, which has to be {answer}.",
        "We agreed that the {topic} is {answer}.",
        "The tests show that the {topic} is {answer}.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What is said by whom, and the answer, which is a text of its own; `topic` are words that stand beside it."""

    where: Where
    topic: str
    answer: str
    said: str

    @property
    def question(self) -> str:
        """What somebody asks later."""
        return f"What is the {self.topic}?"


def planted(count: int, random: Random) -> list[Fact]:
    """Return `count` facts, at most 84, of the three kinds in turn."""
    topics = [f"{what} of the {thing}" for what, thing in product(_WHATS, _THINGS)]
    random.shuffle(topics)
    answers = _answers(random)
    kinds: tuple[Where, ...] = ("user", "tool", "assistant")
    found = []
    for number, topic in enumerate(topics[:count]):
        where = kinds[number % len(kinds)]
        wording = _WORDED[where][number // len(kinds) % len(_WORDED[where])]
        answer = next(answers)
        found.append(Fact(where=where, topic=topic, answer=answer, said=wording.format(topic=topic, answer=answer)))
    return found


def _answers(random: Random) -> Iterator[str]:
    for number in random.sample(range(1_000, 10_000), 1_000):
        yield f"{random.choice(_BIRDS)}-{number}"
