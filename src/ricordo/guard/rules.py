"""All rules in one place, and the one search over them.

The search costs little on clean text: a text without a long run of key characters skips every provider rule, and the
others wait for a literal. Invariant: spans come sorted and do not overlap; where two rules overlap the union is taken,
so that no part of either secret stays.
"""

import re
from collections.abc import Iterable, Iterator

from ricordo.guard.named import find_named
from ricordo.guard.rule import RUN_CHARACTERS, SHORTEST, Rule, Span
from ricordo.guard.rules_cloud import CLOUD_RULES
from ricordo.guard.rules_models import MODEL_RULES
from ricordo.guard.rules_services import SERVICE_RULES
from ricordo.guard.structured import STRUCTURED_RULES
from ricordo.guard.values import is_placeholder

__all__ = ["KEY_RULES", "MARK", "find_secrets"]

KEY_RULES: tuple[Rule, ...] = MODEL_RULES + CLOUD_RULES + SERVICE_RULES

_TYPES = {rule.type for rule in KEY_RULES} | {rule.type for rule in STRUCTURED_RULES} | {"password", "credential"}
# A mark that redaction left. Only known types count, so that nothing hides behind the look of one.
MARK = re.compile(r"\[secret:(?:" + "|".join(sorted(_TYPES)) + r"):[0-9a-f]{8}\]")

_RUN = b"r" * SHORTEST
_TO_RUNS = bytes(ord("r") if chr(code) in RUN_CHARACTERS else ord(" ") for code in range(256))
_FEWEST_DIFFERENT = 5

# Texts in which nothing was found: names and kinds come with every entry, and a text passes the guard more than once
# on its way to the disk. What holds a secret is not kept.
_CLEAN: set[str] = set()
_MOST_CLEAN = 512
_LONGEST_CLEAN = 1_000


def find_secrets(text: str) -> list[Span]:
    """The secrets in `text`, left to right, without overlaps; empty for clean text. Marks are never part of a value:
    to every rule they look like ends of lines."""
    if text in _CLEAN:
        return []
    found = _found(text)
    if not found and len(text) <= _LONGEST_CLEAN:
        if len(_CLEAN) >= _MOST_CLEAN:
            _CLEAN.clear()
        _CLEAN.add(text)
    return found


def _found(text: str) -> list[Span]:
    if "[secret:" in text:
        text = MARK.sub(_as_line_ends, text)
    view = text.encode("ascii", "replace")
    low = view.lower()
    found: list[Span] = []
    runs = _long_runs(view)
    if runs:
        found.extend(_find_keys(text, runs))
    for rule in STRUCTURED_RULES:
        if rule.hint in low and (rule.gate is None or rule.gate.search(runs)):
            found.extend(rule.find(text))
    found.extend(find_named(text, low))
    return _united(found)


def _as_line_ends(mark: re.Match[str]) -> str:
    return "\n" * (mark.end() - mark.start())


def _find_keys(text: str, runs: bytes) -> Iterator[Span]:
    for rule in KEY_RULES:
        if rule.prefix.encode() in runs:
            for match in rule.find(text):
                if not _is_sample(match.group(), rule.prefix):
                    yield Span(start=match.start(), end=match.end(), type=rule.type)


def _is_sample(key: str, prefix: str) -> bool:
    """Whether a key is one from a manual: a handful of different characters, or a placeholder's words."""
    return len(set(key[len(prefix) :])) < _FEWEST_DIFFERENT or is_placeholder(key)


def _long_runs(view: bytes) -> bytes:
    """The runs of key characters that are long enough to hold a key, joined by spaces."""
    marked = view.translate(_TO_RUNS)
    parts: list[bytes] = []
    start = marked.find(_RUN)
    while start >= 0:
        end = marked.find(b" ", start)
        end = len(view) if end < 0 else end
        parts.append(view[start:end])
        start = marked.find(_RUN, end)
    return b" ".join(parts)


def _united(spans: Iterable[Span]) -> list[Span]:
    """Overlapping spans as one, under the type of the longest, then of the most specific."""
    united: list[Span] = []
    leading = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end, -span.rank)):
        length = span.end - span.start
        if united and span.start < united[-1].end:
            last = united[-1]
            wins = (length, span.rank) > (leading, last.rank)
            leader = span if wins else last
            leading = max(leading, length)
            united[-1] = Span(start=last.start, end=max(last.end, span.end), type=leader.type, rank=leader.rank)
        else:
            united.append(span)
            leading = length
    return united
