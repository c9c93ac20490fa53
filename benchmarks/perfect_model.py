"""A model that answers as the labels of a diary say: what Ricordo loses with it, it would lose with any model.

It reads nothing but the text of a request, finds in it the messages that say a labelled item, and answers in the form
that the request asks for. Its notes are in words of their own, because a proposal is checked for its subject, its
source and its numbers, and not for its wording.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from diary_labels import Diary, Item, Json, says
from ricordo.curation.types import MAX_PARENTS
from ricordo.extraction.answer import MAX_LESSONS
from ricordo.guard.fence import parse_fence
from ricordo.language import detect_language
from ricordo.testing import RecordedRequest, Say, ScriptedModel

__all__ = ["PerfectAnswers", "make_perfect_model"]

_KINDS = {"correction": "fact", "answer": "fact"}
_LEAD_INS: Mapping[str, Sequence[str]] = {
    "en": ("{}", "Next, {}", "Noted: {}", "It was said that {}", "To keep in mind: {}"),
    "de": ("{}", "Außerdem: {}", "Notiert: {}"),
    "fr": ("{}", "À retenir : {}", "Noté : {}"),
    "zh": ("{}", "另外，{}", "记下来：{}", "要注意：{}"),
}
_PLAIN_STARTS = (
    "the",
    "a",
    "an",
    "in",
    "on",
    "at",
    "no",
    "every",
    "each",
    "up",
    "when",
    "since",
    "from",
    "all",
    "only",
)
_POINTING = (
    "they",
    "she",
    "he",
    "it",
    "we",
    "i",
    "this",
    "that",
    "these",
    "those",
    "there",
    "its",
    "his",
    "her",
    "their",
)
_OPENING = re.compile(r"^<([a-z]+)-item ([^>\n]*)>$", re.MULTILINE)
_ATTRIBUTE = re.compile(r'([a-z]+)="([^"\n]*)"')
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_LINE_ID = re.compile(r" \^([0-9a-z]{26})$")
_FIELD = re.compile(r" \[([\w-]+):: ([^\]]*)\]")
_TAG = re.compile(r" #[\w-]+")
_PERSONS = ("user", "hand")
_LONG = 20


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """A text in a request with its attributes."""

    text: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A line of memory in a request."""

    id: str
    text: str
    fields: Mapping[str, str]


def make_perfect_model(diary: Diary) -> ScriptedModel:
    """Return a model that answers every request of extraction and consolidation as the labels of `diary` say."""
    return ScriptedModel(PerfectAnswers(diary), name="perfect")


@dataclass
class PerfectAnswers:
    """The answers of a perfect model: a script for `ScriptedModel`. `proposed` counts what it proposed, by kind."""

    diary: Diary
    proposed: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: RecordedRequest) -> Say:
        """Return the answer to a request, as JSON."""
        text = request.messages[-1].text
        parts = (request.schema or {}).get("properties")
        names = parts.keys() if isinstance(parts, dict) else set()
        if "merged" in names:
            return self._say(self._advise(text))
        if "lessons" in names:
            answer = {"lessons": self._note_lessons(text)}
            return self._say({**answer, "profile": self._update_profile(text)} if "profile" in names else answer)
        raise AssertionError(f"The request asks for {', '.join(names) or 'a text'}.")

    def _say(self, answer: Json) -> Say:
        for name, rows in {**answer, **answer.get("profile", {})}.items():
            self.proposed[name] += len(rows) if isinstance(rows, list) else 0
        return Say(json.dumps(answer, ensure_ascii=False))

    # Extraction

    def _note_lessons(self, text: str) -> list[Json]:
        known = "\n".join(shown.text for shown in _read_shown(text, "known"))
        return [
            {
                "content": paraphrase(item.text, item.id),
                "kind": _KINDS.get(item.kind, item.kind),
                "confidence": 0.9,
                "quote": _choose_quote(item, source.text),
                "message": source.attributes["id"],
                "since": item.begins,
                "until": item.ends,
                "tags": [],
                "corrects": bool(item.replaces),
            }
            for item, source in self._find_new_items(text)
            if not self._is_known(item, known)
        ][:MAX_LESSONS]

    def _update_profile(self, text: str) -> Json:
        """Return the update of the profile: the preferences, each in the place of the one that it replaces."""
        facts = [json.loads(line) for line in text.splitlines() if line.startswith('{"id": ')]
        known = "\n".join(fact["content"] for fact in facts)
        found = [(item, source) for item, source in self._find_new_items(text) if item.kind == "preference"]
        found = [(item, source) for item, source in found if not self._is_known(item, known)]
        labels = {"scope": "user", "durability": "durable", "authority": "descriptive"}
        removed = [
            {"id": fact["id"], "reason": "replaced", "scope": "user", "replacementFactIndex": index}
            for index, (item, _) in enumerate(found)
            for fact in facts
            if item.replaces and self._find_said(fact["content"]) == item.replaces
        ]
        unchanged = {"summary": "", "shouldUpdate": False, "scope": "user", "authority": "descriptive"}
        return {
            "user": dict.fromkeys(("workContext", "personalContext", "topOfMind"), unchanged),
            "history": dict.fromkeys(("recentMonths", "earlierContext", "longTermBackground"), unchanged),
            "newFacts": [
                {
                    "content": paraphrase(item.text, item.id),
                    "category": "preference",
                    "confidence": 0.9,
                    "expected_valid_days": None,
                    "sourceError": None,
                    "quote": _choose_quote(item, source.text),
                    **labels,
                }
                for item, source in found
            ],
            "factsToReinforce": [],
            "factsToRemove": removed,
            "staleFactsToRemove": [],
            "staleFactsToExtend": [],
            "factsToConsolidate": [],
        }

    def _find_new_items(self, text: str) -> Iterator[tuple[Item, _Shown]]:
        """Yield the items that the new messages of a request complete, each with the message to quote."""
        shown = self._find_places(_read_shown(text, "conversation"))
        for item in self.diary.items.values():
            sources = {place: shown[place] for place in item.at if place in shown}
            new = [source for source in sources.values() if source.attributes["kind"] == "new"]
            is_complete = says(item.keys, " ".join(source.text for source in sources.values()))
            if new and (is_complete or shown.get(item.at[-1]) in new):
                yield item, max(new, key=lambda source: _rank_source(item, source))

    def _find_places(self, shown: Sequence[_Shown]) -> dict[str, _Shown]:
        """Return the texts by the place in the diary at which they were said."""
        places: dict[str, _Shown] = {}
        for each in shown:
            lines = [_squeeze(line) for line in each.text.splitlines() if line.strip()]
            for place, message in self.diary.messages.items():
                if place not in places and _is_text_of(lines, _squeeze(message)):
                    places[place] = each
                    break
        return places

    def _is_known(self, item: Item, known: str) -> bool:
        return any(self._find_said(line) == item.id for line in known.splitlines())

    # Consolidation

    def _advise(self, text: str) -> Json:
        lines = [line for line in _read_lines(text) if line.fields.get("by") not in _PERSONS]
        said = {line.id: self._find_said(line.text) for line in lines}
        today = max((line.fields.get("at", "")[:10] for line in lines), default="")
        by_item: dict[str, list[_Line]] = {}
        for line in lines:
            by_item.setdefault(said[line.id], []).append(line)
        superseded = [
            {"old": old.id, "new": new[-1].id}
            for item in self.diary.items.values()
            if (new := self._find_newest(item, by_item))
            for old in by_item.get(item.id, ())
        ]
        old_ids = {row["old"] for row in superseded}
        merged = [
            {"parents": [line.id for line in same], "content": " ".join(line.text for line in same)}
            for name, same in by_item.items()
            if name and 1 < len(same) <= MAX_PARENTS and old_ids.isdisjoint(line.id for line in same)
        ]
        retired = [
            {"id": line.id, "reason": reason}
            for line in lines
            if (reason := self._find_reason_to_retire(said[line.id], today))
        ]
        return {"merged": merged, "superseded": superseded, "retired": retired, "topics": []}

    def _find_newest(self, item: Item, by_item: Mapping[str, list[_Line]]) -> list[_Line]:
        """Return the lines of the newest item that took the place of `item`."""
        later = [by_item[each.id] for each in self.diary.successors(item) if each.id in by_item]
        return later[-1] if later else []

    def _find_reason_to_retire(self, said: str, today: str) -> str:
        if not said:
            return "trivial"
        ends = self.diary.items[said].ends
        return "done" if ends and ends < today else ""

    def _find_said(self, text: str) -> str:
        """Return the id of the item that a line says, of several versions the newest one; empty if it says none."""
        text = _strip_fields(text)
        own = [item for item in self.diary.items.values() if _squeeze(_reorder(item.text, item.id)) in _squeeze(text)]
        said = own or [item for item in self.diary.items.values() if says(item.keys, text)]
        newest = [item for item in said if not any(later in said for later in self.diary.successors(item))]
        return max(newest, key=lambda item: len(item.keys)).id if newest else ""


def paraphrase(text: str, seed: str) -> str:
    """Return a statement in other words: behind a lead-in, and with the second half before the first."""
    number, statement = crc32(seed.encode()), _reorder(text, seed)
    lead_ins = _LEAD_INS.get(detect_language(text), ("{}",))
    lead_in = lead_ins[number % len(lead_ins)]
    if lead_in.endswith((": {}", "，{}", "：{}")) or lead_in == "{}":
        return lead_in.format(statement)
    continued = _continue(statement)
    return statement if continued == statement else lead_in.format(continued)


def _reorder(text: str, seed: str) -> str:
    """Return, of one text in three, "B; A." for "A; B."; one without such halves, or whose second one points back."""
    before, joint, after = text.rstrip(".").partition("; ")
    if crc32(seed.encode()) % 3 or not joint or not {*after.casefold().split()}.isdisjoint(_POINTING):
        return text
    return f"{after[:1].upper()}{after[1:]}; {_continue(before)}."


def _continue(text: str) -> str:
    """Return a text as it goes on behind other words: its first letter is small if its first word is no name."""
    return text[:1].lower() + text[1:] if text.split(maxsplit=1)[0].casefold() in _PLAIN_STARTS else text


def _read_shown(text: str, name: str) -> list[_Shown]:
    """Return the texts of all blocks of this name in a request, in order."""
    shown = []
    for block in re.findall(rf"^<{name}(?: [^>\n]*)?>\n.*?^</{name}>$", text, re.DOTALL | re.MULTILINE):
        texts = parse_fence(block) or ()
        openings = [dict(_ATTRIBUTE.findall(found[1])) for found in _OPENING.findall(block) if found[0] == name]
        shown += [_Shown(text=body, attributes=row) for body, row in zip(texts, openings, strict=True)]
    return shown


def _read_lines(text: str) -> Iterator[_Line]:
    """Yield the lines of memory with an id in a request."""
    for shown in _read_shown(text, "record"):
        bullets: list[str] = []
        for line in shown.text.splitlines():
            if line.startswith("- "):
                bullets.append(line[2:])
            elif bullets and line.startswith("  "):
                bullets[-1] += f" {line.strip()}"
        for bullet in bullets:
            if found := _LINE_ID.search(bullet):
                yield _Line(id=found[1], text=_strip_fields(bullet), fields=dict(_FIELD.findall(bullet)))


def _strip_fields(bullet: str) -> str:
    return _TAG.sub("", _FIELD.sub("", _LINE_ID.sub("", bullet.removeprefix("- "))))


def _choose_quote(item: Item, text: str) -> str:
    """Return the sentence of a message that says the most of an item, and the whole message if that is a word."""
    sentence = max(filter(str.strip, _SENTENCE_END.split(text)), key=lambda each: _count_said(item, each)).strip()
    return sentence if " " in sentence or not sentence.isascii() else text


def _rank_source(item: Item, source: _Shown) -> tuple[bool, int]:
    return source.attributes["source"].startswith("user"), _count_said(item, source.text)


def _count_said(item: Item, text: str) -> int:
    return sum(says((group,), text) for group in item.keys)


def _is_text_of(lines: Sequence[str], message: str) -> bool:
    """Tell whether these lines were shown of a message, which stands behind the name of its speaker."""
    text = " ".join(lines)
    is_whole = message.partition(": ")[2].strip() == text
    return is_whole or (len(text) >= _LONG and all(line in message for line in lines))


def _squeeze(text: str) -> str:
    return " ".join(text.split()).casefold()
