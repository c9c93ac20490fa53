"""Extraction on chats between a developer and an agent: what is worth keeping of them, and what passes with the day.

The dialogues stand in `agent_chats/`: one half the rules were developed on, the other was written first and not looked
at while they were tuned. A finding answers an expectation when the expected phrase stands in it; what answers none is
noise.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import pytest

from ricordo.extraction import Finding, RuleExtractionConfig, Utterance, extract_from_utterances

SAID = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)
CHATS = Path(__file__).parent / "agent_chats"
_LINE = re.compile(r"(?P<mark>U|A|@\w+|=>):? (?P<rest>.*)")


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A finding to expect: its possible kinds, a phrase in it, and whether it replaces something or is optional."""

    kinds: tuple[str, ...]
    phrase: str
    corrects: bool
    optional: bool


@dataclass(frozen=True, kw_only=True)
class Chat:
    """One labelled dialogue."""

    utterances: tuple[Utterance, ...]
    expected: tuple[Expected, ...]

    @property
    def title(self) -> str:
        """The first words said."""
        return self.utterances[0].text[:50]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was found in one dialogue: pairs that answer each other, and what is left over on both sides."""

    matched: tuple[tuple[Finding, Expected], ...]
    extra: tuple[Finding, ...]
    missed: tuple[Expected, ...]


def _expected(line: str) -> Expected:
    kinds, _, phrase = line.partition(" ~ ")
    return Expected(
        kinds=tuple(kinds.lstrip("!?").split("|")),
        phrase=phrase,
        corrects=kinds.startswith("!"),
        optional=kinds.startswith("?"),
    )


def _chat(block: str) -> Chat:
    said: list[tuple[str, str]] = []
    expected = []
    for line in block.split("\n"):
        match = _LINE.match(line)
        if match and match["mark"] == "=>":
            expected.append(_expected(match["rest"]))
        elif match:
            said.append((match["mark"], match["rest"]))
        else:
            said[-1] = (said[-1][0], f"{said[-1][1]}\n{line}")
    utterances = tuple(
        Utterance(
            message_id=f"m{at}",
            role="assistant" if mark == "A" else "user",
            speaker=mark[1:] or None,
            text=text,
            time=SAID,
        )
        for at, (mark, text) in enumerate(said)
    )
    return Chat(utterances=utterances, expected=tuple(expected))


def _blocks(text: str) -> list[str]:
    """Cut at each blank line that a new dialogue follows; an assistant's message may hold blank lines of its own."""
    body = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    return [block.strip() for block in re.split(r"\n\n(?=(?:U|A|@\w+): )", body) if block.strip()]


@lru_cache
def chats(half: str) -> tuple[Chat, ...]:
    """The dialogues of one half, in the order of the file."""
    return tuple(_chat(block) for block in _blocks((CHATS / f"{half}.txt").read_text("utf8")))


@lru_cache
def outcome(chat: Chat) -> Outcome:
    """Match the findings of a dialogue with what is expected of it, each at most once."""
    left = list(extract_from_utterances(chat.utterances, RuleExtractionConfig()))
    matched, missed = [], []
    for wanted in chat.expected:
        answer = next((finding for finding in left if wanted.phrase.casefold() in finding.content.casefold()), None)
        if answer is not None:
            left.remove(answer)
            matched.append((answer, wanted))
        elif not wanted.optional:
            missed.append(wanted)
    return Outcome(matched=tuple(matched), extra=tuple(left), missed=tuple(missed))


def scores(half: str) -> tuple[float, float, float, float]:
    """Precision, recall, the share of right kinds, and the share of right corrections among what was found."""
    outcomes = [outcome(chat) for chat in chats(half)]
    matched = [pair for found in outcomes for pair in found.matched]
    required = [pair for pair in matched if not pair[1].optional]
    extra = sum(len(found.extra) for found in outcomes)
    missed = sum(len(found.missed) for found in outcomes)
    return (
        len(matched) / (len(matched) + extra),
        len(required) / (len(required) + missed),
        sum(finding.kind in wanted.kinds for finding, wanted in matched) / len(matched),
        sum(finding.corrects == wanted.corrects for finding, wanted in matched) / len(matched),
    )


# Precision, recall, right kinds, right correction marks.
FLOORS = {"developed_on": (0.95, 0.95, 0.97, 0.97), "held_out": (0.86, 0.88, 0.95, 0.95)}


@pytest.mark.parametrize("half", FLOORS)
def test_agent_chats_are_noted_with_high_precision_and_recall_and_the_right_kinds(half: str) -> None:
    reached = scores(half)
    assert all(score >= floor for score, floor in zip(reached, FLOORS[half], strict=True)), reached


@pytest.mark.parametrize(
    "chat", [chat for chat in chats("developed_on") if not chat.expected], ids=lambda chat: chat.title
)
def test_nothing_is_noted_of_errands_reports_and_one_off_requests(chat: Chat) -> None:
    assert outcome(chat).extra == ()
