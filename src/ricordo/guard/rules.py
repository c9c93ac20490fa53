"""All rules in one place, and the one search over them.

The search costs little on clean text: a text without a long run of key characters skips every provider rule, and the
others wait for a literal. Invariant: spans come sorted and do not overlap; where two rules overlap the union is taken,
so that no part of either secret stays.
"""

import re
from collections.abc import Iterable, Iterator

from ricordo.guard.disguise import undisguised
from ricordo.guard.named import find_named
from ricordo.guard.rule import RUN_CHARACTERS, SHORTEST, Rule, Span
from ricordo.guard.rules_cloud import CLOUD_RULES
from ricordo.guard.rules_models import MODEL_RULES
from ricordo.guard.rules_more import MORE_RULES
from ricordo.guard.rules_services import SERVICE_RULES
from ricordo.guard.structured import STRUCTURED_RULES
from ricordo.guard.values import is_placeholder

__all__ = ["KEY_RULES", "MARK", "find_secrets"]

KEY_RULES: tuple[Rule, ...] = MODEL_RULES + CLOUD_RULES + SERVICE_RULES + MORE_RULES

_TYPES = {rule.type for rule in KEY_RULES} | {rule.type for rule in STRUCTURED_RULES} | {"password", "credential"}
# A mark that redaction left. Only known types count, so that nothing hides behind the look of one.
MARK = re.compile(r"\[secret:(?:" + "|".join(sorted(_TYPES)) + r"):[0-9a-f]{8}\]")

_RULES_OF_RUNS = tuple(rule for rule in STRUCTURED_RULES if rule.needs_runs)
# What stands in the hints of many rules: a text without it skips them all after one search.
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
_RUN = b"r" * SHORTEST
_TO_RUNS = bytes(ord("r") if chr(code) in RUN_CHARACTERS else ord(" ") for code in range(256))
_IN_WORDS = b"abcdefghijklmnopqrstuvwxyz_-.+/=~:$"
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
    found = _searched(text)
    if (plain := undisguised(text)) is not None:
        found += map(plain.origin, _searched(plain.text))
    return _united(found)


def _searched(text: str) -> list[Span]:
    view = text.encode("ascii", "replace")
    low = view.lower()
    found: list[Span] = []
    runs = _long_runs(view)
    if runs:
        found.extend(_find_keys(text, runs))
        low_runs = runs.lower()
        for rule in _RULES_OF_RUNS:
            if rule.hint in (low_runs if rule.in_runs else low) and (rule.gate is None or rule.gate.search(runs)):
                found.extend(rule.find(text))
    for gate, rules in _OTHER_RULES:
        for rule in rules if gate in low else ():
            if rule.hint in low:
                found.extend(rule.find(text))
    found.extend(find_named(text, low))
    return found


def _as_line_ends(mark: re.Match[str]) -> str:
    return "\n" * (mark.end() - mark.start())


def _find_keys(text: str, runs: bytes) -> Iterator[Span]:
    for mark, rules in _KEYS_BY_MARK.items():
        if mark not in runs:
            continue
        for rule in rules:
            if rule.start in runs:
                for match in rule.find(text):
                    if not _is_sample(match.group(), rule.prefix):
                        yield Span(start=match.start(), end=match.end(), type=rule.type)


def _by_mark(rules: Iterable[Rule]) -> dict[bytes, list[Rule]]:
    """Rules by a mark that their prefix has, "" for none: a long run of Base64 has none of these marks."""
    grouped: dict[bytes, list[Rule]] = {}
    for rule in rules:
        mark = next((mark for mark in (b"_", b"-", b".", b"~", b":") if mark in rule.start), b"")
        grouped.setdefault(mark, []).append(rule)
    return grouped


_KEYS_BY_MARK = _by_mark(KEY_RULES)


def _is_sample(key: str, prefix: str) -> bool:
    """Whether a key is one from a manual: a handful of different characters, or a placeholder's words."""
    return len(set(key[len(prefix) :])) < _FEWEST_DIFFERENT or is_placeholder(key)


def _long_runs(view: bytes) -> bytes:
    """The runs of key characters that are long enough to hold a key and have a digit or a capital, as random ones
    do, joined by spaces."""
    marked = view.translate(_TO_RUNS)
    parts: list[bytes] = []
    start = marked.find(_RUN)
    while start >= 0:
        end = marked.find(b" ", start)
        end = len(view) if end < 0 else end
        run = view[start:end]
        if run.translate(None, _IN_WORDS):
            parts.append(run)
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
