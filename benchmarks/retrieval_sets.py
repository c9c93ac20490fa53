"""Labelled sets for retrieval: sessions of turns, and questions with the ids of the turns that answer them.

The project's own set lies in `retrieval_set/`, one file for each theme, written for it and free to use. It is plain
text:

    # theme | script | split
    what it is about

    == 2026-02-03 09:12
    user: what somebody says
    user [port]: a turn that has a name, so that questions can point to it
    call: shell pytest -q
    tool: what the call gave
      a line that goes on is set in by two spaces

    ?? category | the question | names of the turns that answer it | a text that each of them holds

`never` is the category of what nobody said: it has no evidence and counts in no mean of recall. Other files are read
from where the caller has them: LoCoMo, LongMemEval, BEAM, and lines of JSON in the form of `to_json`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

__all__ = ["NEVER", "OWN_SET", "Haystack", "Json", "Question", "Turn", "evidence_of", "load", "load_own", "parsed_time"]

Json: TypeAlias = Any  # files of other people: what is in them shows when they are read
OWN_SET = Path(__file__).parent / "retrieval_set"
NEVER = "never"
_TURN = re.compile(r"(?P<speaker>[^\s:\[|][^:\[|]{0,29}?)(?: \[(?P<name>\w+)\])?: (?P<text>.*)")
_FORMS = ("%I:%M %p on %d %B, %Y", "%B-%d-%Y", "%Y/%m/%d (%a) %H:%M")
_LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One thing that was said; `time` as the set has it, `speaker` a role (user, assistant, call, tool) or a name."""

    id: str
    text: str
    speaker: str
    time: str
    session: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, and the ids of the turns (or sessions) that answer it; `has` are texts that these turns hold."""

    id: str
    query: str
    category: str
    evidence: tuple[str, ...]
    now: str
    script: str = ""
    has: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Haystack:
    """What is searched as one memory, and what is asked of it. `split` is `dev`, `held out` or empty."""

    id: str
    items: tuple[Turn, ...]
    questions: tuple[Question, ...]
    split: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the form in which scorers of JSON lines read it."""
        return asdict(self)


def load(paths: Iterable[Path]) -> list[Haystack]:
    """Read files and folders of any known form.

    Raises: SystemExit for a form that is not known.
    """
    found: list[Haystack] = []
    for path in paths:
        if path.is_dir():
            found += [_beam(chat) for chat in sorted(path.rglob("chat.json"), key=lambda p: (len(str(p)), str(p)))]
        elif path.suffix == ".jsonl":
            found += [_plain(json.loads(line)) for line in path.read_text("utf-8").splitlines() if line.strip()]
        else:
            found += list(_samples(path))
    return found


def load_own(folder: Path = OWN_SET) -> list[Haystack]:
    """Return the project's own set: one memory for each split, with all its themes."""
    halves: dict[str, list[Haystack]] = {}
    for path in sorted(folder.glob("*.txt")):
        theme = _theme(path.stem, path.read_text("utf-8"))
        halves.setdefault(theme.split, []).append(theme)
    return [_joined(split, themes) for split, themes in sorted(halves.items())]


def evidence_of(haystack: Haystack, question: Question) -> tuple[Turn, ...]:
    """Return the turns that answer the question, in the order of its labels."""
    turns = {turn.id: turn for turn in haystack.items}
    return tuple(turns[label] for label in question.evidence if label in turns)


def parsed_time(text: str) -> datetime | None:
    """Read ISO 8601, or a time such as `1:56 pm on 8 May, 2023`; None for another form."""
    readers: tuple[Callable[[str], datetime], ...] = (
        datetime.fromisoformat, *(partial(_read, form) for form in _FORMS)
    )  # fmt: skip
    for read in readers:
        try:
            time = read(text)
        except ValueError:
            continue
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return None


def _read(form: str, text: str) -> datetime:
    return datetime.strptime(text, form).replace(tzinfo=UTC)


def _joined(split: str, themes: Sequence[Haystack]) -> Haystack:
    items = [turn for theme in themes for turn in theme.items]
    begun: dict[str, str] = {}
    for turn in items:
        begun.setdefault(turn.session, turn.time)
    items.sort(key=lambda turn: (begun[turn.session], turn.session))
    questions = tuple(question for theme in themes for question in theme.questions)
    return Haystack(id=split, items=tuple(items), questions=questions, split=split)


def _theme(name: str, text: str) -> Haystack:
    head, *blocks = re.split(r"(?m)^== ", text)
    _, script, split = (part.strip() for part in head.splitlines()[0].removeprefix("# ").split("|"))
    *_, last = blocks
    labels: dict[str, str] = {}
    turns = [turn for number, block in enumerate(blocks, 1) for turn in _session(name, number, block, labels)]
    asked = [line.removeprefix("?? ") for line in last.splitlines() if line.startswith("?? ")]
    now = datetime.fromisoformat(turns[-1].time) + timedelta(days=2)
    questions = tuple(
        _question(f"{name}/{number}", row, labels, script=script, now=now.isoformat())
        for number, row in enumerate(asked, 1)
    )
    return Haystack(id=name, items=tuple(turns), questions=questions, split=split)


def _session(name: str, number: int, block: str, labels: dict[str, str]) -> Iterator[Turn]:
    first, *lines = block.splitlines()
    begun = datetime.fromisoformat(first.strip()).replace(tzinfo=UTC)
    said: list[tuple[str, str, list[str]]] = []
    for line in lines:
        if line.startswith("  "):
            said[-1][2].append(line[2:])
        elif (match := _TURN.fullmatch(line)) and not line.startswith("?? "):
            said.append((match["speaker"], match["name"] or "", [match["text"]]))
        elif line.strip() and not line.startswith("?? "):
            raise ValueError(f"{name}, session {number}: this is no turn: {line}")
    for place, (speaker, label, texts) in enumerate(said, 1):
        turn = f"{name}-{number}.{place}"
        if labels.setdefault(label or turn, turn) != turn:
            raise ValueError(f"{name}: two turns are called {label}.")
        time = (begun + timedelta(minutes=place - 1)).isoformat()
        yield Turn(id=turn, text="\n".join(texts), speaker=speaker, time=time, session=f"{name}-{number}")


def _question(number: str, row: str, labels: Mapping[str, str], *, script: str, now: str) -> Question:
    category, query, names, *has = (part.strip() for part in row.split("|"))
    evidence = tuple(labels[name] for name in names.split())
    texts = tuple(text for text in has if text)
    return Question(
        id=number, query=query, category=category, evidence=evidence, now=now, script=script, has=texts
    )  # fmt: skip


def _plain(row: Json) -> Haystack:
    items = tuple(Turn(**{key: str(item.get(key, "")) for key in Turn.__annotations__}) for item in row["items"])
    questions = tuple(
        Question(
            id=str(asked["id"]), query=asked["query"], category=asked.get("category", ""),
            evidence=tuple(map(str, asked["evidence"])), now=asked.get("now") or "",
        )
        for asked in row["questions"]
    )  # fmt: skip
    return Haystack(id=str(row["id"]), items=items, questions=questions)


def _samples(path: Path) -> Iterator[Haystack]:
    data = json.loads(path.read_text("utf-8"))
    for sample in data if isinstance(data, list) else [data]:
        if "conversation" in sample:
            yield _locomo(sample)
        elif "haystack_sessions" in sample:
            yield _longmemeval(sample)
        else:
            raise SystemExit(f"{path.name}: its form is not known.")


def _locomo(sample: Json) -> Haystack:
    talk = sample["conversation"]
    numbers = sorted(int(key.removeprefix("session_")) for key in talk if re.fullmatch(r"session_\d+", key))
    items = [
        Turn(
            id=said["dia_id"], text=_with_caption(said), speaker=said["speaker"],
            time=talk.get(f"session_{number}_date_time", ""), session=f"S{number}",
        )
        for number in numbers
        for said in talk[f"session_{number}"]
    ]  # fmt: skip
    known = {turn.id for turn in items}
    questions = []
    for number, asked in enumerate(sample["qa"]):
        # The file has slips in its labels, such as "D8:6; D9:17" and "D:11:26".
        pairs = re.findall(r"D:?(\d+):(\d+)", " ".join(map(str, asked.get("evidence", []))))
        ids = dict.fromkeys(f"D{int(session)}:{int(turn)}" for session, turn in pairs)
        questions.append(
            Question(
                id=f"{sample['sample_id']}/{number}", query=asked["question"], category=_LOCOMO[asked["category"]],
                evidence=tuple(label for label in ids if label in known), now=items[-1].time,
            )
        )  # fmt: skip
    return Haystack(id=sample["sample_id"], items=tuple(items), questions=tuple(questions))


def _with_caption(said: Json) -> str:
    caption = said.get("blip_caption")
    return f"{said['text']} [shared a photo: {caption}]" if caption else str(said["text"])


def _longmemeval(asked: Json) -> Haystack:
    sessions = zip(asked["haystack_dates"], asked["haystack_session_ids"], asked["haystack_sessions"], strict=True)
    items, holding = [], []
    for time, session, said in sorted(sessions, key=lambda row: row[0]):
        for place, turn in enumerate(said):
            label = f"{session}#{place}"
            items.append(Turn(id=label, text=turn["content"], speaker=turn["role"], time=time, session=session))
            holding += [label] if turn.get("has_answer") else []
    absent = asked["question_id"].endswith("_abs")
    question = Question(
        id=asked["question_id"], query=asked["question"], category=asked["question_type"],
        evidence=() if absent else (*holding, *asked["answer_session_ids"]), now=asked.get("question_date") or "",
    )  # fmt: skip
    return Haystack(id=asked["question_id"], items=tuple(items), questions=(question,))


def _beam(chat: Path) -> Haystack:
    items: list[Turn] = []
    time = ""
    for batch in json.loads(chat.read_text("utf-8")):
        for said in (said for group in batch["turns"] for said in group):
            time = said.get("time_anchor") or time
            text = re.sub(r"\s*->->.*$", "", said["content"], flags=re.DOTALL)  # a label of the plan it was made by
            session = f"B{batch['batch_number']}"
            items.append(Turn(id=str(said["id"]), text=text, speaker=said["role"], time=time, session=session))
    probes = json.loads((chat.parent / "probing_questions" / "probing_questions.json").read_text("utf-8"))
    known = {turn.id for turn in items}
    questions = tuple(
        Question(
            id=f"{chat.parent.name}/{category}/{number}", query=row["question"], category=category,
            evidence=tuple(label for label in dict.fromkeys(_numbers(row.get("source_chat_ids"))) if label in known),
            now=items[-1].time,
        )
        for category, rows in probes.items()
        for number, row in enumerate(rows)
    )  # fmt: skip
    return Haystack(id=chat.parent.name, items=tuple(items), questions=questions)


def _numbers(found: Json) -> Iterator[str]:
    if isinstance(found, int):
        yield str(found)
    elif isinstance(found, (dict, list)):
        for part in found.values() if isinstance(found, dict) else found:
            yield from _numbers(part)
