"""Labelled diaries: the messages of sessions, and what a careful reader would keep of them. See `diaries/README.md`."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

__all__ = [
    "CLASSES",
    "Diary",
    "Item",
    "Json",
    "Mention",
    "Question",
    "find_problems",
    "plain_text",
    "read_diary",
    "says",
]

Json = dict[str, Any]

CLASSES = ("fact", "decision", "preference", "correction", "lesson", "answer")
KINDS = (
    "single",
    "paraphrase",
    "updated",
    "as-of",
    "procedural",
    "multi-hop",
    "preference use",
    "cross-language",
    "negative",
)


@dataclass(frozen=True, kw_only=True)
class Mention:
    """Something said in a diary: noise, or an instruction planted in what a tool returned.

    `keys` are groups of which a text must hold all: of each group one of the terms between its bars. `at` are the
    messages, as `session:line`.
    """

    id: str
    kind: str
    keys: tuple[str, ...]
    at: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Item(Mention):
    """What a careful reader would keep: `kind` is one of `CLASSES`, `text` a statement of it that stands alone.

    `replaces` is the id of the item whose place it took, `begins` the day from which it holds if that is not the day
    on which it was said, `ends` the day after which nobody needs it.
    """

    text: str
    replaces: str = ""
    begins: str = ""
    ends: str = ""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question of one of the `KINDS`; `gold` are the items that answer it, none for a negative one."""

    id: str
    kind: str
    query: str
    gold: tuple[str, ...]
    as_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Diary:
    """A diary with its labels; `messages` are texts, with the tool calls, by `session:line`."""

    name: str
    folder: Path
    items: Mapping[str, Item]
    noise: tuple[Mention, ...]
    planted: tuple[Mention, ...]
    questions: tuple[Question, ...]
    messages: Mapping[str, str]
    held_out: bool = False

    def successors(self, item: Item) -> Iterator[Item]:
        """Yield the items that took the place of `item`, the next one first."""
        for later in self.items.values():
            if later.replaces == item.id:
                yield later
                yield from self.successors(later)

    def other_versions(self, item: Item) -> list[Item]:
        """Return the other items of the chain of replacements in which `item` is."""
        earlier, first = [], item
        while first.replaces:
            first = self.items[first.replaces]
            earlier.append(first)
        return [*earlier, *self.successors(item)]

    def is_current(self, item: Item) -> bool:
        """Return whether an item is needed after the last session."""
        return not item.ends and not any(self.successors(item))

    def said_on(self, item: Item) -> date:
        """Return the day from which an item holds."""
        if item.begins:
            return date.fromisoformat(item.begins)
        rows = (self.folder / "sessions" / f"{item.at[0].split(':')[0]}.jsonl").read_text("utf-8").splitlines()
        return datetime.fromisoformat(json.loads(rows[0])["time"]).date()


def read_diary(folder: Path) -> Diary:
    """Return the diary in a folder. Raises: OSError, KeyError or ValueError for labels of another shape."""
    labels = json.loads((folder / "labels.json").read_text("utf-8"))
    messages = {}
    for file in sorted((folder / "sessions").glob("*.jsonl")):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            row = json.loads(line)
            calls = " ".join(call["function"]["arguments"] for call in row.get("tool_calls", ()))
            messages[f"{file.stem}:{number}"] = f"{row.get('name', '')}: {row['content']} {calls}"
    items = [
        Item(**_mention(row, "class"), text=row["text"], replaces=row.get("replaces", ""),
             begins=row.get("from", ""), ends=row.get("until", ""))
        for row in labels["items"]
    ]  # fmt: skip
    return Diary(
        name=folder.name,
        folder=folder,
        items={item.id: item for item in items},
        noise=tuple(Mention(**_mention(row, "kind")) for row in labels["noise"]),
        planted=tuple(Mention(**_mention(row, "kind")) for row in labels["planted"]),
        questions=tuple(Question(**{**row, "gold": tuple(row["gold"])}) for row in labels["questions"]),
        messages=messages,
        held_out=bool(labels.get("held_out")),
    )


def _mention(row: Json, kind: str) -> Json:
    return {"id": row["id"], "kind": row[kind], "keys": tuple(row["keys"]), "at": tuple(row["at"] or ())}


def says(keys: Sequence[str], text: str) -> bool:
    """Return whether a text holds, of each group of terms, one.

    Case and white space make no difference. A term that begins or ends with a Latin letter or a digit is a whole word
    on that side, except at a `*`; a Chinese term may stand anywhere.
    """
    plain = plain_text(text)
    return all(any(_pattern(term).search(plain) for term in group.split("|")) for group in keys)


def plain_text(text: str) -> str:
    """Return a text as it is compared with terms: folded case, single spaces, without emphasis."""
    text = unicodedata.normalize("NFC", text).casefold().replace("’", "'")
    return re.sub(r"\s+", " ", re.sub(r"[`*]", "", text))


@cache
def _pattern(term: str) -> re.Pattern[str]:
    core = plain_text(term)
    before = r"(?<![a-zà-ÿ0-9_])(?<!\d[.,:])" if re.match(r"[a-zà-ÿ0-9]", core) else ""
    after = r"(?![a-zà-ÿ0-9_])(?![.,:]\d)" if re.search(r"[a-zà-ÿ0-9]$", core) and not term.endswith("*") else ""
    return re.compile(before + re.escape(core) + after)


def find_problems(diary: Diary) -> list[str]:
    """Return what is wrong with the labels of a diary, as sentences; empty if they are sound.

    Keys match their own messages and their own statement, and no statement of another item; those of an item match no
    message of noise. Every replaced item exists. Every question has gold that exists and that its own words do not
    give away.
    """
    problems = [*_find_key_problems(diary)]
    for item in diary.items.values():
        if item.kind not in CLASSES:
            problems.append(f"{item.id}: no class {item.kind}")
        if item.replaces and item.replaces not in diary.items:
            problems.append(f"{item.id}: replaces {item.replaces}, which is no item")
    for question in () if problems else diary.questions:
        problems += [f"{question.id}: {problem}" for problem in _find_question_problems(diary, question)]
    return problems


def _find_key_problems(diary: Diary) -> Iterator[str]:
    for each in (*diary.items.values(), *diary.noise, *diary.planted):
        missing = [place for place in each.at if place not in diary.messages]
        if missing or not each.at:
            yield f"{each.id}: no message {', '.join(missing)}"
        elif not says(each.keys, " ".join(diary.messages[place] for place in each.at)):
            yield f"{each.id}: its keys do not match its messages"
        for other in diary.items.values():
            if other not in _itself_and_later(diary, each) and says(each.keys, other.text):
                yield f"{each.id}: its keys match the statement of {other.id}"
    for item in diary.items.values():
        if not says(item.keys, item.text):
            yield f"{item.id}: its keys do not match its statement"
        for noise in diary.noise:
            if says(item.keys, " ".join(diary.messages.get(place, "") for place in noise.at)):
                yield f"{item.id}: its keys match the noise {noise.id}"


def _itself_and_later(diary: Diary, each: Mention) -> list[Mention]:
    """Return `each` and its successors, whose statements may name what they replaced."""
    return [each, *(diary.successors(each) if isinstance(each, Item) else ())]


def _find_question_problems(diary: Diary, question: Question) -> Iterator[str]:
    if question.kind not in KINDS:
        yield f"no kind {question.kind}"
    unknown = [name for name in question.gold if name not in diary.items]
    if unknown:
        yield f"no item {', '.join(unknown)}"
        return
    gold = [diary.items[name] for name in question.gold]
    if (question.kind == "negative") == bool(gold):
        yield "a negative question has no gold, any other has some"
    if (question.kind == "multi-hop") != (len(gold) > 1):
        yield "a question of several hops has several gold items, any other has one"
    if any(says(item.keys, question.query) for item in gold):
        yield "its own words match its gold"
    if question.kind == "as-of" and gold:
        moment, item = date.fromisoformat(question.as_of), gold[0]
        if not diary.said_on(item) <= moment or any(diary.said_on(each) <= moment for each in diary.successors(item)):
            yield f"{item.id} does not hold on {moment}"
    elif not all(diary.is_current(item) for item in gold):
        yield "its gold is not current"
    if question.kind == "updated" and gold and not gold[0].replaces:
        yield f"{gold[0].id} replaces nothing"
