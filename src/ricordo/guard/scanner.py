"""The search for secrets: all rules applied to a text, and to the text without disguises.

Disguises are invisible characters, look-alikes of plain letters, and loose accents. A text without a long run of key
characters skips every provider rule, and the other rules require a literal.

Invariants: linear in the text. Spans are sorted and do not overlap; overlapping matches are merged.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ricordo.guard.heuristics import is_placeholder
from ricordo.guard.key_rules import (
    CLOUD_RULES,
    MIN_RUN,
    MODEL_RULES,
    MORE_RULES,
    RUN_CHARACTERS,
    SERVICE_RULES,
    KeyRule,
    SecretSpan,
)
from ricordo.guard.keyword_secrets import find_keyword_secrets
from ricordo.guard.structured import STRUCTURED_RULES
from ricordo.lazy import dataclass, lazy_compile

__all__ = ["KEY_RULES", "SECRET_MARK", "UndisguisedText", "find_secrets", "remove_disguises"]


_HIDDEN_CHARACTERS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_ACCENTS = "\u0300-\u036f"
_STYLED_LETTERS = "\u24b6-\u24e9\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff"
# Letters of other scripts that look like plain ones, when they are next to plain ones.
_LOOKALIKE = dict(
    zip(
        "асеорхуіјѕһԁӏαορνικАВЕКМНОРСТХУІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡԛԝѵкսցհօϲυ",
        "aceopxyijshdlaopvikABEKMHOPCTXYIJSABEZHIKMNOPTYXagqwvkughocu",
        strict=True,
    )
)
_LOOKALIKES = "".join(_LOOKALIKE)
_TO_PLAIN = str.maketrans(_LOOKALIKE)
_LOOKALIKES_IN_WORDS = (
    f"[{_LOOKALIKES}]{{1,8}}(?:(?=[A-Za-z])" + "".join(f"|(?<=[A-Za-z].{{{count}}})" for count in range(1, 9)) + ")"
)
_DISGUISE = lazy_compile(f"[{_HIDDEN_CHARACTERS}{_ACCENTS}{_STYLED_LETTERS}]|{_LOOKALIKES_IN_WORDS}")
# Full-width punctuation is not a disguise by itself; next to such letters it is replaced by its plain form.
_DISGUISED_PART = lazy_compile(
    f"(?P<hidden>[{_HIDDEN_CHARACTERS}]+)|(?P<alike>{_LOOKALIKES_IN_WORDS})|[\u3000\uff01-\uff5e{_STYLED_LETTERS}]+|[^\\W\\d_][{_ACCENTS}]{{1,4}}"
)


@dataclass(frozen=True, kw_only=True)
class UndisguisedText:
    """A text without disguises.

    `starts` are positions in it, in order; `origins` are the start and end of the same part in the disguised text.
    """

    text: str
    starts: tuple[int, ...]
    origins: tuple[tuple[int, int], ...]

    def original_span(self, span: SecretSpan) -> SecretSpan:
        """Return the span in the disguised text, including all characters hidden inside it."""
        return replace(span, start=self._original_position(span.start)[0], end=self._original_position(span.end - 1)[1])

    def _original_position(self, position: int) -> tuple[int, int]:
        """Return the start and end of the character at `position` in the disguised text."""
        number = bisect_right(self.starts, position) - 1
        start, end = self.origins[number]
        following = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        if following - self.starts[number] != end - start:
            return start, end
        original = start + position - self.starts[number]
        return original, original + 1


def remove_disguises(text: str) -> UndisguisedText | None:
    """Return the text without disguises; None if it has none."""
    if text.isascii() or (_is_latin1(text) and "\u00ad" not in text) or _DISGUISE.search(text) is None:
        return None
    parts: list[str] = []
    starts: list[int] = []
    origins: list[tuple[int, int]] = []
    length = position = 0
    for match in _DISGUISED_PART.finditer(text):
        if match["alike"]:
            plain = match["alike"].translate(_TO_PLAIN)
        else:
            plain = "" if match["hidden"] else unicodedata.normalize("NFKC", match.group())
        for start, end, piece in ((position, match.start(), text[position : match.start()]), (*match.span(), plain)):
            if piece:
                parts.append(piece)
                starts.append(length)
                origins.append((start, end))
                length += len(piece)
        position = match.end()
    if position < len(text):
        parts.append(text[position:])
        starts.append(length)
        origins.append((position, len(text)))
    return UndisguisedText(text="".join(parts), starts=tuple(starts), origins=tuple(origins))


def _is_latin1(text: str) -> bool:
    """Return whether all characters are Latin-1, which has one hidden character; faster than the full search."""
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


KEY_RULES: tuple[KeyRule, ...] = MODEL_RULES + CLOUD_RULES + SERVICE_RULES + MORE_RULES
_SECRET_TYPES = (
    {rule.type for rule in KEY_RULES} | {rule.type for rule in STRUCTURED_RULES} | {"password", "credential"}
)
# A mark from redaction. Only known types count, so no secret can hide by looking like a mark.
SECRET_MARK = lazy_compile(r"\[secret:(?:" + "|".join(sorted(_SECRET_TYPES)) + r"):[0-9a-f]{8}\]")
_RUN_RULES = tuple(rule for rule in STRUCTURED_RULES if rule.needs_runs)
# A text without any of the characters that many hints contain skips all those rules after one search.
_GATES = (b" -", b"|", b"pass", b"")
_OTHER_RULES = tuple(
    (
        gate,
        tuple(
            rule
            for rule in STRUCTURED_RULES
            if not rule.needs_runs and gate == next(each for each in _GATES if each in rule.hint)
        ),
    )
    for gate in _GATES
)
_MIN_RUN_BYTES = b"r" * MIN_RUN
_TO_RUNS = bytes(ord("r") if chr(code) in RUN_CHARACTERS else ord(" ") for code in range(256))
_WORD_BYTES = b"abcdefghijklmnopqrstuvwxyz_-.+/=~:$"
_MIN_DISTINCT = 5
# Texts without secrets: names and kinds come with every entry, a text is checked more than once on its way to the disk,
# and each hit of a recall is checked before it is shown. Texts with a secret are not cached.
_CLEAN_TEXTS: set[str] = set()
_MAX_CLEAN_TEXTS = 4_096
_MAX_CLEAN_CHARS = 1_000


def find_secrets(text: str) -> list[SecretSpan]:
    """Return the secrets in `text`, left to right, without overlaps; empty for clean text.

    Marks are never part of a value: every rule treats them as ends of lines.
    """
    if text in _CLEAN_TEXTS:
        return []
    spans = _find_spans(text)
    if not spans and len(text) <= _MAX_CLEAN_CHARS:
        if len(_CLEAN_TEXTS) >= _MAX_CLEAN_TEXTS:
            _CLEAN_TEXTS.clear()
        _CLEAN_TEXTS.add(text)
    return spans


def _find_spans(text: str) -> list[SecretSpan]:
    if "[secret:" in text:
        text = SECRET_MARK.sub(_blank_mark, text)
    spans = _search_rules(text)
    if (plain := remove_disguises(text)) is not None:
        spans += map(plain.original_span, _search_rules(plain.text))
    return _merge_spans(spans)


def _search_rules(text: str) -> list[SecretSpan]:
    view = text.encode("ascii", "replace")
    lower = view.lower()
    spans: list[SecretSpan] = []
    runs = _long_runs(view)
    if runs:
        spans.extend(_find_keys(text, runs))
        lower_runs = runs.lower()
        for rule in _RUN_RULES:
            if rule.hint in (lower_runs if rule.in_runs else lower) and (rule.gate is None or rule.gate.search(runs)):
                spans.extend(rule.find(text))
    for gate, rules in _OTHER_RULES:
        for rule in rules if gate in lower else ():
            if rule.hint in lower:
                spans.extend(rule.find(text))
    spans.extend(find_keyword_secrets(text, lower))
    return spans


def _blank_mark(mark: re.Match[str]) -> str:
    return "\n" * (mark.end() - mark.start())


def _find_keys(text: str, runs: bytes) -> Iterator[SecretSpan]:
    for mark, rules in _KEYS_BY_MARK.items():
        if mark not in runs:
            continue
        for rule in rules:
            if rule.prefix_bytes in runs:
                for match in rule.find(text):
                    if not _is_sample(match.group(), rule.prefix):
                        yield SecretSpan(start=match.start(), end=match.end(), type=rule.type)


def _group_by_mark(rules: Iterable[KeyRule]) -> dict[bytes, list[KeyRule]]:
    """Return the rules by a character of their prefix that a long run of Base64 does not have, "" for none."""
    grouped: dict[bytes, list[KeyRule]] = {}
    for rule in rules:
        mark = next((mark for mark in (b"_", b"-", b".", b"~", b":") if mark in rule.prefix_bytes), b"")
        grouped.setdefault(mark, []).append(rule)
    return grouped


_KEYS_BY_MARK = _group_by_mark(KEY_RULES)


def _is_sample(key: str, prefix: str) -> bool:
    """Return whether a key is a sample from a manual: few different characters, or the words of a placeholder."""
    return len(set(key[len(prefix) :])) < _MIN_DISTINCT or is_placeholder(key)


def _long_runs(view: bytes) -> bytes:
    """Return the runs of key characters that are long enough for a key, joined by spaces.

    Like random runs, they have a digit or a capital.
    """
    marked = view.translate(_TO_RUNS)
    parts: list[bytes] = []
    start = marked.find(_MIN_RUN_BYTES)
    while start >= 0:
        end = marked.find(b" ", start)
        end = len(view) if end < 0 else end
        run = view[start:end]
        if run.translate(None, _WORD_BYTES):
            parts.append(run)
        start = marked.find(_MIN_RUN_BYTES, end)
    return b" ".join(parts)


def _merge_spans(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Return the spans with overlaps merged, under the type of the longest, then of the most specific span."""
    united: list[SecretSpan] = []
    best_length = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end, -span.rank)):
        length = span.end - span.start
        if united and span.start < united[-1].end:
            last = united[-1]
            is_better = (length, span.rank) > (best_length, last.rank)
            leader = span if is_better else last
            best_length = max(best_length, length)
            united[-1] = SecretSpan(start=last.start, end=max(last.end, span.end), type=leader.type, rank=leader.rank)
        else:
            united.append(span)
            best_length = length
    return united
