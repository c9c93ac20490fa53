"""Does `answer` know what it does not know, and does it quote the right passage?

    python benchmarks/answers.py DATA [--floor F] [--curve] [--notes]
    python benchmarks/answers.py --languages

`--languages` asks the questions of `answers_set/*.txt`, one memory per language. DATA is a JSON list of conversations
with `conversation` (sessions of turns), `qa` (questions with evidence turns and a category from 1 to 5) and two
speakers. Each conversation is written as transcripts and asked three kinds of question: its own (categories 1 to 4,
answerable), those of the next conversation with that one's names (foreign) or this one's (swapped), neither of which
was ever talked about here. Category 5, whose questions name the wrong speaker, is reported apart. The floor is chosen
on the first half of the conversations, for the best mean of answerable questions answered and never-said ones
declined (of several within half a point, the highest), and measured on the other half. Nothing of the data is kept.
"""

import argparse
import json
import re
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio

from ricordo.messages.codec import encode_message
from ricordo.messages.types import JsonValue, Message, Text
from ricordo.search.answer import answer_question
from ricordo.search.config import RecallConfig
from ricordo.search.contract import Answer, Hit, SearchSource
from ricordo.search.index import WorkspaceIndex
from ricordo.storage.in_memory import InMemoryFiles
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry import Source as Origin
from ricordo.workspace.entry_codec import render_entry
from ricordo.workspace.layout import DEFAULT_AGENT, transcript_path

__all__ = ["main"]

_NOW = datetime(2024, 1, 1, tzinfo=UTC)
_ADVERSARIAL = 5
_TOLERANCE = 0.005
_CURVE = (0.24, 0.26, 0.28, 0.29, 0.30, 0.32, 0.35, 0.40)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question put to the conversation with this number, and what came back when nothing is declined."""

    conversation: int
    kind: str
    evidence: frozenset[str]
    answer: Answer


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One thing that was said: its id, its session, and the message as a transcript keeps it."""

    session: int
    message: Message


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """The turns of one conversation, what a careful reader noted of which turn, its questions, its speakers."""

    turns: tuple[Turn, ...]
    notes: tuple[tuple[str, str], ...]
    questions: tuple[tuple[str, int, frozenset[str]], ...]
    speakers: tuple[str, str]


def read(path: Path) -> list[Conversation]:
    """Return the conversations of the file."""
    return [_conversation(sample) for sample in json.loads(path.read_text("utf-8"))]


def _conversation(sample: dict[str, JsonValue]) -> Conversation:
    talk, qa = sample["conversation"], sample["qa"]
    assert isinstance(talk, dict)
    assert isinstance(qa, list)
    questions = []
    for row in qa:
        assert isinstance(row, dict)
        turns = {f"D{int(a)}:{int(b)}" for a, b in re.findall(r"D:?(\d+):(\d+)", str(row.get("evidence", [])))}
        category = row["category"]
        assert isinstance(category, int)
        questions.append((str(row["question"]), category, frozenset(turns)))
    return Conversation(
        turns=tuple(_turns(talk)),
        notes=tuple(_notes(sample.get("observation"))),
        questions=tuple(questions),
        speakers=(str(talk["speaker_a"]), str(talk["speaker_b"])),
    )


def _turns(talk: dict[str, JsonValue]) -> Iterator[Turn]:
    numbers = sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key)))
    for number in numbers:
        turns = talk[f"session_{number}"]
        assert isinstance(turns, list)
        for turn in turns:
            assert isinstance(turn, dict)
            caption = turn.get("blip_caption")
            text = f"{turn['text']} [shared a photo: {caption}]" if caption else str(turn["text"])
            message = Message(
                role="user",
                name=str(turn["speaker"]),
                id=str(turn["dia_id"]),
                time=_parsed_time(str(talk.get(f"session_{number}_date_time", ""))),
                parts=(Text(text=text),),
            )
            yield Turn(session=number, message=message)


def _parsed_time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def _notes(observations: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield the notes of a reader with the turn each rests on."""
    for speakers in observations.values() if isinstance(observations, dict) else ():
        for rows in speakers.values() if isinstance(speakers, dict) else ():
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, list) and isinstance(row[1], str):
                    yield str(row[0]), row[1]


def _ledger(conversation: Conversation) -> bytes:
    """Return the notes as entries that rest on their turns and have their times."""
    times = {turn.message.id: turn.message.time for turn in conversation.turns}
    entries = (
        Entry(
            content=text,
            id=f"01jd{number:022d}",
            time=times.get(turn),
            by="flush",
            source=Origin(session="noted", messages=(turn,)),
        )
        for number, (text, turn) in enumerate(conversation.notes)
    )
    return "".join(map(render_entry, entries)).encode()


def _put_to(conversations: Sequence[Conversation], number: int) -> Iterator[tuple[str, str, frozenset[str]]]:
    here, there = conversations[number], conversations[(number + 1) % len(conversations)]
    for text, category, evidence in here.questions:
        yield "adversarial" if category == _ADVERSARIAL else "own", text, evidence
    for text, category, _ in there.questions:
        if category != _ADVERSARIAL:
            yield "foreign", text, frozenset()
            yield "swapped", _swapped(text, dict(zip(there.speakers, here.speakers, strict=True))), frozenset()


def _swapped(text: str, names: Mapping[str, str]) -> str:
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, names))})\b", lambda found: names[found[0]], text)


async def ask_all(conversations: Sequence[Conversation], *, notes: bool) -> list[Asked]:
    """Put every question to its conversation, declining nothing; with `notes`, its memories are there too."""
    config = replace(RecallConfig(), min_fitness=0.0)
    asked = []
    with tempfile.TemporaryDirectory() as folder:
        for number, conversation in enumerate(conversations):
            files = InMemoryFiles()
            for turn in conversation.turns:
                await files.append(transcript_path(DEFAULT_AGENT, f"S{turn.session}"), encode_message(turn.message))
            if notes:
                await files.append("workspace/memory/2024-01-01.md", _ledger(conversation))
            index = await WorkspaceIndex.open(Path(folder, f"{number}.db"), files)
            sources = [SearchSource(label="project", index=index)]
            for kind, text, evidence in _put_to(conversations, number):
                found = await answer_question(sources, text, now=_NOW, config=config)
                asked.append(Asked(conversation=number, kind=kind, evidence=evidence, answer=found))
            await index.close()
    return asked


_LANGUAGE_SET = Path(__file__).parent / "answers_set"
_NEVER_SAID = "- "


@dataclass(frozen=True, kw_only=True)
class Told:
    """A question in one language, the text of its right answer (empty if nobody said it), and what was answered."""

    question: str
    expected: str
    answer: Answer

    @property
    def is_right(self) -> bool:
        """Return whether the answer has the text, or says that nobody said it."""
        return self.expected.casefold() in self.answer.text.casefold() if self.expected else not self.answer.found


async def ask_language(code: str) -> list[Told]:
    """Put every question of one language of the set to the memory of that language."""
    lines = [line for line in (_LANGUAGE_SET / f"{code}.txt").read_text("utf-8").splitlines() if line[:1] not in "#"]
    rows = [line.split(" | ") for line in lines if not line.startswith(_NEVER_SAID)]
    entries = [
        Entry(content=statement, id=f"01jd{number:022d}", time=_NOW, by="user")
        for number, (statement, _, _) in enumerate(rows)
    ]
    questions = [(question, expected) for _, question, expected in rows]
    questions += [(line.removeprefix(_NEVER_SAID), "") for line in lines if line.startswith(_NEVER_SAID)]
    files = InMemoryFiles()
    await files.append("workspace/memory/2024-01-01.md", "".join(map(render_entry, entries)).encode())
    with tempfile.TemporaryDirectory() as folder:
        index = await WorkspaceIndex.open(Path(folder, "index.db"), files)
        sources = [SearchSource(label="project", index=index)]
        answers = [await answer_question(sources, question, now=_NOW) for question, _ in questions]
        await index.close()
    return [
        Told(question=question, expected=expected, answer=answer)
        for (question, expected), answer in zip(questions, answers, strict=True)
    ]


def share_right(told: Sequence[Told], *, said: bool) -> float:
    """Return the share of right answers to questions about what was said, or about what nobody said."""
    return statistics.fmean(row.is_right for row in told if bool(row.expected) == said)


def _print_languages() -> None:
    for path in sorted(_LANGUAGE_SET.glob("*.txt")):
        told = anyio.run(ask_language, path.stem)
        print(f"{path.stem}: right {share_right(told, said=True):.2f}, declined {share_right(told, said=False):.2f}")
        for row in told:
            if not row.is_right:
                print(
                    f"   {row.question} ({row.expected or 'nobody said it'}): {row.answer.score:.2f} {row.answer.text}"
                )


def chosen_floor(asked: Sequence[Asked]) -> float:
    """Return the highest floor whose balanced accuracy is within half a point: false answers cost more."""
    floors = sorted({round(row.answer.score, 2) for row in asked})
    best = max(_balanced(asked, floor) for floor in floors)
    return max(floor for floor in floors if _balanced(asked, floor) >= best - _TOLERANCE)


def _balanced(asked: Sequence[Asked], floor: float) -> float:
    return (_answered(asked, ("own",), floor) + 1 - _answered(asked, ("foreign", "swapped"), floor)) / 2


def _answered(asked: Sequence[Asked], kinds: Sequence[str], floor: float) -> float:
    return statistics.fmean(row.answer.score >= floor for row in asked if row.kind in kinds)


def _turn_of(hit: Hit) -> str:
    return hit.entry.source.messages[0] if hit.entry.source.messages else ""


def report(asked: Sequence[Asked], floor: float) -> dict[str, float]:
    """Return the shares that say how good the answers are at this floor."""
    own = [row for row in asked if row.kind == "own" and row.evidence]
    first = [row.answer.hit is not None and _turn_of(row.answer.hit) in row.evidence for row in own]
    hits = [[*filter(None, (row.answer.hit,)), *row.answer.others] for row in own]
    among = [any(_turn_of(hit) in row.evidence for hit in found) for row, found in zip(own, hits, strict=True)]
    given = [row.answer.score >= floor for row in own]
    right = [hit for hit, answered in zip(first, given, strict=True) if answered]
    return {
        "balanced accuracy": _balanced(asked, floor),
        "own answered": _answered(asked, ("own",), floor),
        "foreign answered": _answered(asked, ("foreign",), floor),
        "swapped answered": _answered(asked, ("swapped",), floor),
        "adversarial answered": _answered(asked, ("adversarial",), floor),
        "evidence quoted, of all own": statistics.fmean(first),
        "evidence quoted, of those answered": statistics.fmean(right),
        "any@5": statistics.fmean(among),
    }


def main() -> None:
    """Choose the floor on the first half, and print both halves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--languages", action="store_true", help="ask the questions of answers_set instead of DATA")
    parser.add_argument("--floor", type=float, action="append", help="measure at this floor instead of choosing one")
    parser.add_argument("--curve", action="store_true", help="measure at several floors")
    parser.add_argument("--notes", action="store_true", help="remember what readers noted (`observation`) besides")
    arguments = parser.parse_args()
    if arguments.languages or arguments.data is None:
        _print_languages()
        return
    conversations = read(arguments.data)
    asked = anyio.run(partial(ask_all, conversations, notes=arguments.notes))
    half = len(conversations) // 2
    chosen = [row for row in asked if row.conversation < half]
    held_out = [row for row in asked if row.conversation >= half]
    for floor in arguments.floor or (_CURVE if arguments.curve else [chosen_floor(chosen)]):
        print(f"floor {floor:.3f}")
        for name, rows in (("chosen on", chosen), ("held out", held_out)):
            print(name, {key: round(value, 3) for key, value in report(rows, floor).items()})


if __name__ == "__main__":
    main()
