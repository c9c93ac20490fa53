"""The letters that a pattern needs: a cheap look at a text that tells which of many patterns can match it at all.

A pattern of cues is an alternation of phrases, and a match of it holds at least one of a few literals, such as "instead
of". A text is searched for the literals of all patterns at once; a pattern without one of its literals in the text
can't match, and is not run.

Only a part of the syntax of `re` is read: alternations, groups, classes, quantifiers, lookarounds, anchors and escapes.
A pattern of which no literal is known counts as one that can match any text. That errs on the safe side.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from itertools import chain
from typing import Generic, TypeAlias, TypeVar

from ricordo.lazy import lazy_compile

__all__ = ["LiteralIndex", "find_literals"]


_Literals: TypeAlias = frozenset[str]
_Key = TypeVar("_Key", bound=Hashable)
_GRAM = 4
"""The letters by which literals are looked up; shorter ones, as in Chinese, are few."""
_EDGE = "\0"
"""Stands at each edge of a word, in texts and literals, so that "ai" is not found in "said"."""
_START, _END = "\1", "\2"
"""A literal that begins where its group begins, and one that ends where it ends."""
_WORD_EDGE = lazy_compile(r"\b")
_QUANTIFIER = lazy_compile(r"[*+?][?+]?|\{(?P<least>\d*),?\d*\}\??")
_LETTERS = lazy_compile(r"[^\\()\[\]|.^$*+?{}]+(?![*+?{])")
_EDGE_LOOK = lazy_compile(r"\(\?(?:<!|!)\\w\)|\\b")
_GROUP = lazy_compile(r"\((?:\?(?:P<\w+>|:|(?P<looks><?[=!])))?")
_CLASS = lazy_compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_SAME_LETTERS = str.maketrans(
    "\u0131\u017f\u03c2\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5\u00b5\u1e9b\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86\u1c87",
    "is\u03c3\u03b2\u03b8\u03c6\u03c0\u03ba\u03c1\u03b5\u03bc\u1e61\u0432\u0434\u043e\u0441\u0442\u0442\u044a\u0463",
)
"""Small letters that `re.IGNORECASE` takes for others, such as the long s."""


def find_literals(source: str) -> _Literals | None:
    r"""Return literals in small letters of which each match of a pattern holds at least one; None if none is known.

    A `\0` in a literal is an edge of a word.
    """
    reader = _PatternReader(source)
    literals = reader.read_alternation()
    if literals is None or reader.position != len(source):
        return None
    return frozenset(literal.strip(_START + _END) for literal in literals)


class LiteralIndex(Generic[_Key]):
    """The keys of patterns, which ignore case, by the literals that the patterns need."""

    def __init__(self, sources: Mapping[_Key, str]) -> None:
        """Read the patterns of all keys."""
        self._always: set[_Key] = set()
        self._short: list[tuple[str, _Key]] = []
        self._long: dict[str, list[tuple[str, _Key]]] = defaultdict(list)
        for key, source in sources.items():
            literals = find_literals(source)
            if literals is None:
                self._always.add(key)
            for literal in literals or ():
                found = self._short if len(literal) < _GRAM else self._long[literal[:_GRAM]]
                found.append((literal, key))
        self._short_ascii = [(literal, key) for literal, key in self._short if literal.isascii()]

    def find_possible(self, text: str) -> set[_Key]:
        """Return the keys whose patterns can match `text`; any other pattern surely doesn't."""
        folded = _mark_edges(_fold(text))
        candidates = list(self._short_ascii if text.isascii() else self._short)
        grams = {folded[start : start + _GRAM] for start in range(len(folded) - _GRAM + 1)}
        for gram in self._long.keys() & grams:
            candidates += self._long[gram]
        return self._always | {key for literal, key in candidates if literal in folded}


def _fold(text: str) -> str:
    return text.lower() if text.isascii() else text.replace("\u0130", "i").lower().translate(_SAME_LETTERS)


def _mark_edges(text: str) -> str:
    return _WORD_EDGE.sub(_EDGE, text)


class _PatternReader:
    """Reads a pattern once, from left to right."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0

    def read_alternation(self) -> _Literals | None:
        """Return the literals of one of which a match of the alternatives from here to `)` or the end holds one."""
        options = [self._read_sequence()]
        while self.source.startswith("|", self.position):
            self.position += 1
            options.append(self._read_sequence())
        known = [option for option in options if option]
        return frozenset(chain.from_iterable(known)) if len(known) == len(options) else None

    def _read_sequence(self) -> _Literals | None:
        """Return the most telling literals of a sequence: those whose shortest one is the longest."""
        parts: list[str | _Literals | None] = [_START]
        while self.position < len(self.source) and self.source[self.position] not in "|)":
            _append_part(parts, self._read_part())
        _append_part(parts, _END)
        return max(_list_literals(parts), key=_telling, default=None)

    def _read_part(self) -> str | _Literals | None:
        """Return the letters of a part, or the literals of which a match of it holds one; None if neither is known."""
        letters = _LETTERS.match(self.source, self.position)
        if letters is not None:
            self.position = letters.end()
            return _fold(letters[0])
        edge = _EDGE_LOOK.match(self.source, self.position)
        if edge is not None:
            self.position = edge.end()
            return _EDGE
        part = self._read_atom()
        quantifier = _QUANTIFIER.match(self.source, self.position)
        if quantifier is None:
            return part
        self.position = quantifier.end()
        if quantifier[0][0] in "*?" or (quantifier["least"] is not None and int(quantifier["least"] or 0) == 0):
            return None
        # what can come twice ends a run of letters, but one time at least it is there
        return frozenset([part]) if isinstance(part, str) else part and frozenset(_strip_ends(part))

    def _read_atom(self) -> str | _Literals | None:
        char = self.source[self.position]
        if char == "(":
            return self._read_group()
        if char == "[":
            found = _CLASS.match(self.source, self.position)
            self.position = found.end() if found else len(self.source) + 1
            return None
        if char == "\\":
            escaped = self.source[self.position + 1 : self.position + 2]
            self.position += 2
            return None if escaped.isalnum() else escaped
        self.position += 1
        return None if char in ".^$" else _fold(char)

    def _read_group(self) -> _Literals | None:
        opening = _GROUP.match(self.source, self.position)
        if opening is None or self.source.startswith("?", opening.end()):
            self.position = len(self.source) + 1  # a kind of group that is not known here
            return None
        self.position = opening.end()
        literals = self.read_alternation()
        self.position += 1
        return None if opening["looks"] else literals


def _append_part(parts: list[str | _Literals | None], part: str | _Literals | None) -> None:
    if isinstance(part, str) and isinstance(parts[-1], str):
        parts[-1] += part
    else:
        parts.append(part)


def _list_literals(parts: list[str | _Literals | None]) -> Iterable[_Literals]:
    """Yield the literals of each part; those of a group go on in the letters beside it."""
    for before, part, after in zip([None, *parts], parts, [*parts[1:], None], strict=False):
        if isinstance(part, str):
            if part.strip(_START + _END + _EDGE):
                yield frozenset([_place_edges(part)])
        elif part:
            start, end = before if isinstance(before, str) else "", after if isinstance(after, str) else ""
            yield frozenset(_place_edges(literal.replace(_START, start).replace(_END, end)) for literal in part)


def _place_edges(literal: str) -> str:
    """Return a literal with a mark at each edge of a word inside it, and with the marks at its ends that are sure."""
    inner = literal.strip(_START + _END + _EDGE)
    start, _, end = literal.partition(inner)
    marked = _mark_edges(inner.replace(_EDGE, "")).strip(_EDGE)
    return f"{_choose_mark(start, _START, marked[0])}{marked}{_choose_mark(end, _END, marked[-1])}"


def _choose_mark(marks: str, end: str, letter: str) -> str:
    """Return the mark at an end of a literal: where no letter may stand beside one, an edge of a word is there."""
    if _EDGE in marks:
        return _EDGE if letter.isalnum() or letter == "_" else ""
    return end if end in marks else ""


def _strip_ends(literals: _Literals) -> Iterable[str]:
    return (literal.strip(_START + _END) for literal in literals)


def _telling(literals: _Literals) -> tuple[int, int]:
    return min(map(len, literals)), -len(literals)
