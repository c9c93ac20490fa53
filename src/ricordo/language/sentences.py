"""Text to sentences with their places, and sentences without the fillers they open with.

A sentence ends at terminal punctuation, at a blank line, and at each list item, heading or table row. A dot inside a
number, URL, path or abbreviation ends nothing. Code, logs and quoted lines are blocks of their own kind.

Invariants: spans ascend, do not overlap, `text[s.start:s.end] == s.text`, no sentence is blank, and the time is linear
in the text. Without its opener a text is a tail of itself, and not empty unless it was.
"""

import re
from collections.abc import Iterator
from typing import Literal

from ricordo.language.packs import pack_phrases, pack_words
from ricordo.lazy import dataclass, lazy_compile

__all__ = ["Sentence", "SentenceKind", "blank_quotes", "is_cut_off", "split_sentences", "strip_lead_in", "strip_opener"]


SentenceKind = Literal["prose", "item", "heading", "quote", "code"]


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence or block; `start` and `end` are character offsets into the text it was cut from."""

    text: str
    start: int
    end: int
    kind: SentenceKind = "prose"


_LINE = lazy_compile(r"[^\n]*\n?")
_FENCE = lazy_compile(r"\s{0,3}(```|~~~)")
_ITEM = lazy_compile(r"\s*(?:[-*+•–]|\(?\d{1,3}[.)]|[a-zA-Z]\))\s+(?:\[[ xX]\]\s+)?(?=\S)")
_HEADING = lazy_compile(r"\s{0,3}#{1,6}\s+(?=\S)")
_QUOTE = lazy_compile(r"\s{0,3}>\s?")
_CODE_LINE = lazy_compile(
    r"(?:\t|\s{4,})\S"
    r"|\s*(?:\$ |>>> |\.\.\. |@@ |diff --git|\+\+\+ |--- |Traceback |File \"|at \w[\w.$]*\(|#!|//|/\*|</?\w+[\s>])"
    r"|\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    r"|\s*(?:(?:async )?(?:def|class|func|fn|function)\s+\w+\s*[(:{<]|from\s+[\w.]+\s+import\b|import\s+[\w.{]+\s*$"
    r"|(?:const|let|var|val)\s+\w+\s*[:=]|(?:SELECT|INSERT|CREATE|UPDATE|DELETE|ALTER|DROP)\s+[A-Z*])"
)
_CODE_ENDS = (";", "{", "}", "});", "},")
_END = lazy_compile(
    # Only the start of a run of marks is tried, so that a million dots cost a million steps and not their square.
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*(?=\s|$)"
    r"|[。！？｡．؟।]+[」』”’）】\"']*"
    r"|(?<![!?])[!?]++(?=[^\s!?.,)\]\"'”’»/=&\w])"
)
_ABBREVIATION = lazy_compile(r"(?:^|[\s(\[\"'„“«])([^\s(\[\"'„“«]{1,8})$")
_MONTH_FOLLOWS = lazy_compile(lambda: rf"\s+(?:{pack_phrases('ordinal_month')})", re.IGNORECASE)


def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of a text in order; empty for a blank text. List markers are left out of the spans."""
    sentences: list[Sentence] = []
    for start, end, kind in _iter_blocks(text):
        if kind in {"code", "quote"}:
            sentences.extend(_build_sentence(text, start, end, kind))
            continue
        begin = start
        for cut in _iter_cuts(text, start, end):
            sentences.extend(_build_sentence(text, begin, cut, kind))
            begin = cut
        sentences.extend(_build_sentence(text, begin, end, kind))
    return tuple(sentences)


def _build_sentence(text: str, start: int, end: int, kind: SentenceKind) -> Iterator[Sentence]:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        begin = start + len(piece) - len(piece.lstrip())
        yield Sentence(text=stripped, start=begin, end=begin + len(stripped), kind=kind)


def _iter_blocks(text: str) -> Iterator[tuple[int, int, SentenceKind]]:
    """Join lines that belong together: paragraphs, items with their wrapped lines, code, quotes."""
    start, end, kind, open_fence = 0, 0, "", ""
    for line in _LINE.finditer(text):
        row = line.group()
        fence = _FENCE.match(row)
        if open_fence or fence:
            if not open_fence and kind:
                yield start, end, _to_kind(kind)
            if not open_fence:
                start, kind = line.start(), "code"
            end = line.end()
            opening_fence = open_fence
            open_fence = open_fence or (fence[1] if fence else "")
            if opening_fence and fence and fence[1] == opening_fence:
                yield start, end, "code"
                kind, open_fence = "", ""
            continue
        here, offset = _line_kind(row, kind)
        if kind and (here != kind or offset or here in {"heading", "blank"}):
            if kind != "blank":
                yield start, end, _to_kind(kind)
            kind = ""
        if not kind:
            start, kind = line.start() + offset, here
        end = line.end()
    if kind and kind != "blank":
        yield start, end, _to_kind(kind)


def _line_kind(row: str, before: str) -> tuple[str, int]:
    """Return the kind of a line and the length of the marker it opens with; a line that goes on has no marker."""
    if not row.strip():
        return "blank", 0
    for kind, marker in (("heading", _HEADING), ("item", _ITEM), ("quote", _QUOTE)):
        match = marker.match(row)
        if match:
            return kind, match.end() if kind != "quote" or before != "quote" else 0
    if before == "item" and row[:1].isspace():
        return "item", 0
    if row.rstrip().endswith(_CODE_ENDS) or _CODE_LINE.match(row):
        return "code", 0
    return "prose", 0


def _to_kind(kind: str) -> SentenceKind:
    for valid_kind in ("item", "heading", "quote", "code"):
        if kind == valid_kind:
            return valid_kind
    return "prose"


def _iter_cuts(text: str, start: int, end: int) -> Iterator[int]:
    for match in _END.finditer(text, start, end):
        if match.group()[0] != "." or match.group().startswith("..") or _ends_sentence(text, match):
            yield match.end()


def _ends_sentence(text: str, dot: re.Match[str]) -> bool:
    """Say whether a single dot closes a sentence and not an abbreviation, an initial or an ordinal."""
    before = _ABBREVIATION.search(text[max(0, dot.start() - 12) : dot.start()])
    if before is None:
        return True
    word = before[1]
    follows = text[dot.end() : dot.end() + 2].strip()
    if word.casefold() in pack_words("abbreviation"):
        return word.casefold() not in pack_words("abbreviation_inside") and follows[:1].isupper()
    if len(word) == 1 and word.isalpha() and word.isupper() and word != "I":
        return not follows[:1].isupper()
    if word.isdigit() and len(word) <= 2:
        return _MONTH_FOLLOWS.match(text, dot.end()) is None
    return True


def _opener() -> str:
    filler = rf"(?:{pack_phrases('filler')})(?: (?-i:[A-Z]\w{{1,20}}))?(?:[,!.…]+| - | — )\s*"
    announcement = rf"(?:{pack_phrases('announcement_lead')})?(?:{pack_phrases('announcement')})\s*(?:: | - | — )\s*"
    return rf"^(?:{filler}|{pack_phrases('filler_clause')}|{announcement}|{pack_phrases('repetition')})+"


_OPENER = lazy_compile(_opener, re.IGNORECASE)


def strip_opener(text: str) -> str:
    """Return the text without the fillers and announcements it opens with; all of it where nothing else is left."""
    return _OPENER.sub("", text) or text


_LEAD_IN = lazy_compile(
    lambda: rf"^(?:(?:{pack_phrases('lead_in')})(?<=[^\w])\s*|(?:{pack_phrases('lead_in')})\s+)+(?=\S)", re.IGNORECASE
)


def strip_lead_in(text: str) -> str:
    """Return a note without an opening that says only that it is one, such as "Noted:" or "It was said that"."""
    match = _LEAD_IN.match(text)
    if match is None:
        return text
    rest = text[match.end() :]
    # behind a colon a sentence begins as it wants to
    return rest if match[0].rstrip().endswith((":", "：")) else rest[0].upper() + rest[1:]


_QUOTATION = lazy_compile(
    r"`[^`\n]{1,300}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|「[^」\n]{1,300}」"
)


def blank_quotes(text: str) -> str:
    """Return the text with what stands in quotation marks or backticks replaced by as many spaces."""
    return _QUOTATION.sub(lambda match: " " * len(match.group()), text)


_OMITTED = lazy_compile(
    lambda: rf"(?:[(（\[【]|…|\.\.\.)\s*(?:…|\.\.\.|\+)?\s*(?:{pack_phrases('omitted')})", re.IGNORECASE
)


def is_cut_off(text: str) -> bool:
    """Return whether a text says that part of it was left out: "ERROR at line 3 (a further six lines)"."""
    return _OMITTED.search(text) is not None
