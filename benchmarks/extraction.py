"""How well offline extraction finds what a careful reader would note: `python benchmarks/extraction.py [PATH]`.

Without PATH it reads the project's own labelled conversations through the whole pipeline: processing, rules, tools.
PATH is a LoCoMo file: conversations with observations, each a fact about a speaker with the turns it rests on. An
observation is carried when one entry that rests on one of its turns holds at least a share (0.4, 0.5, 0.6) of its
distinct content words; an entry is supported when it carries at least one observation. Precision is supported entries
over entries, recall carried observations over observations. Extraction runs once for each session, as a flush does.
Beside it stand every sentence as an entry, the first sentence of each message, and each whole message, with and
without the speaker's name; pictures count by their captions everywhere."""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline_chats import chats, outcomes, scores
from ricordo.extraction.preprocessing import process_messages
from ricordo.extraction.rules import extract
from ricordo.language import content_words, split_sentences
from ricordo.messages.types import Media, Message, Text

THRESHOLDS = (0.4, 0.5, 0.6)
DEVELOPED_ON = 2


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An extracted text and the turns it rests on."""

    text: str
    turns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """The sessions of one conversation and what its annotators observed."""

    name: str
    sessions: tuple[tuple[Message, ...], ...]
    observations: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Numerators and denominators of precision and recall; they add up over conversations."""

    entries: int = 0
    supported: int = 0
    observations: int = 0
    carried: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        """Return the sums."""
        return Counts(
            entries=self.entries + other.entries,
            supported=self.supported + other.supported,
            observations=self.observations + other.observations,
            carried=self.carried + other.carried,
        )

    @property
    def row(self) -> str:
        """Precision, recall, F1 and the number of entries as one table row."""
        precision = self.supported / max(1, self.entries)
        recall = self.carried / max(1, self.observations)
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return f"P {precision:.3f}  R {recall:.3f}  F1 {f1:.3f}  ({self.entries} entries)"


def main() -> None:
    """Print the table for the conversations of a file: first half, second half, all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?")
    path = parser.parse_args().path
    labelled()
    if path is not None:
        observed(path)


def labelled() -> None:
    """Print precision and recall on the project's own conversations, and what went wrong."""
    precision, recall = scores()
    said = sum(chat.said for chat in chats())
    bare = sum(chat.said for chat in chats() if not chat.expected)
    sys.stdout.write(f"{len(chats())} conversations, {said} messages, {bare} in those with nothing to note\n")
    sys.stdout.write(f"  P {precision:.3f}  R {recall:.3f}\n")
    for outcome in outcomes():
        for finding in outcome.extra:
            sys.stdout.write(f"  too many: {finding.kind}: {finding.content}\n")
        for expected in outcome.missed:
            sys.stdout.write(f"  missed: {'|'.join(expected.kinds)}: {expected.phrase}\n")


def observed(path: Path) -> None:
    """Print the table for the conversations of a file."""
    conversations = [_conversation(sample) for sample in json.loads(path.read_text("utf8"))]
    systems: dict[str, Callable[[Conversation], list[Entry]]] = {
        "ricordo": extracted,
        "every sentence, named": lambda talk: sentences(talk, named=True),
        "every sentence": lambda talk: sentences(talk, named=False),
        "first sentence, named": lambda talk: sentences(talk, named=True, first=True),
        "first sentence": lambda talk: sentences(talk, named=False, first=True),
        "whole message, named": whole_messages,
    }
    for name, system in systems.items():
        began = time.perf_counter()
        entries = [system(talk) for talk in conversations]
        seconds = time.perf_counter() - began
        length = sum(len(entry.text) for found in entries for entry in found) / max(1, sum(map(len, entries)))
        sys.stdout.write(f"\n{name}  ({seconds:.2f} s, {length:.0f} characters an entry)\n")
        for threshold in THRESHOLDS:
            counts = [score(found, talk, threshold) for found, talk in zip(entries, conversations, strict=True)]
            halves = {"developed on": counts[:DEVELOPED_ON], "held out": counts[DEVELOPED_ON:], "all": counts}
            for half, part in halves.items():
                sys.stdout.write(f"  {threshold}  {half:13}{sum(part, Counts()).row}\n")


def extracted(talk: Conversation) -> list[Entry]:
    """The findings of our extraction, after processing."""
    found = [finding for session in talk.sessions for finding in extract(process_messages(session).messages)]
    return [Entry(text=finding.content, turns=finding.message_ids) for finding in found]


def sentences(talk: Conversation, *, named: bool, first: bool = False) -> list[Entry]:
    """Every sentence, or the first one of each message, as an entry."""
    entries = []
    for message in _messages(talk):
        for sentence in split_sentences(_with_captions(message))[: 1 if first else None]:
            text = f"{message.name}: {sentence.text}" if named else sentence.text
            entries.append(Entry(text=text, turns=(message.id,)))
    return entries


def whole_messages(talk: Conversation) -> list[Entry]:
    """Every message as an entry."""
    return [
        Entry(text=f"{message.name}: {_with_captions(message)}", turns=(message.id,)) for message in _messages(talk)
    ]


def score(entries: list[Entry], talk: Conversation, threshold: float) -> Counts:
    """Match entries with observations by the turns they share and the observation's content words."""
    by_turn: dict[str, list[int]] = {}
    for at, entry in enumerate(entries):
        for turn in entry.turns:
            by_turn.setdefault(turn, []).append(at)
    held = [set(content_words(entry.text, "en")) for entry in entries]
    supported: set[int] = set()
    carried = 0
    for observation in talk.observations:
        wanted = set(content_words(observation.text, "en"))
        candidates = {at for turn in observation.turns for at in by_turn.get(turn, ())}
        carriers = {at for at in candidates if len(wanted & held[at]) >= threshold * len(wanted)}
        supported |= carriers
        carried += bool(carriers)
    return Counts(entries=len(entries), supported=len(supported), observations=len(talk.observations), carried=carried)


def _messages(talk: Conversation) -> Iterator[Message]:
    for session in talk.sessions:
        yield from session


def _with_captions(message: Message) -> str:
    shown = [part.description for part in message.parts if isinstance(part, Media)]
    return " ".join([message.text, *(f"[shared a photo: {caption}]" for caption in shown)])


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk = sample["conversation"]
    numbers = sorted(int(match[1]) for key in talk if (match := re.fullmatch(r"session_(\d+)", key)))
    rows = [row for by_speaker in sample["observation"].values() for listed in by_speaker.values() for row in listed]
    return Conversation(
        name=sample["sample_id"],
        sessions=tuple(_session(talk[f"session_{n}"], talk[f"session_{n}_date_time"]) for n in numbers),
        observations=tuple(Entry(text=text, turns=tuple(re.findall(r"D\d+:\d+", str(turns)))) for text, turns in rows),
    )


def _session(turns: list[dict[str, Any]], when: str) -> tuple[Message, ...]:
    said = datetime.strptime(when, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return tuple(
        Message(role="user", id=turn["dia_id"], name=turn["speaker"], time=said, parts=tuple(_parts(turn)))
        for turn in turns
    )


def _parts(turn: dict[str, Any]) -> Iterator[Text | Media]:
    yield Text(text=turn["text"])
    if turn.get("blip_caption"):
        yield Media(media_type="image/jpeg", uri="", description=turn["blip_caption"])


if __name__ == "__main__":
    main()
