"""Contents: what of a memory is worth nothing, told from its entries alone. Pure, and linear in their number.

Junk is what nobody would ask for: acknowledgements, text that memory itself had shown and that was learned again, and
what has no word that means something. A duplicate says the same as another, in the same words or in like ones. What is
stale is past its half-life, or past a date that it names itself, and was never used, confirmed or pinned.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ricordo.audit.usage import MemoryUsage
from ricordo.guard import contains_fence, has_secret
from ricordo.language import content_words
from ricordo.language.duplicates import is_same_statement, statement_key
from ricordo.language.signals.acknowledgements import is_acknowledgement
from ricordo.recall.config import RecallConfig
from ricordo.workspace.entry import Entry

__all__ = ["find_duplicates", "is_junk", "is_stale", "count_secrets", "find_sourceless"]

_MAX_POSTINGS = 100
_MAX_COMPARED = 24
_MIN_SHARED = 0.4
_RARE_WORD_SHARE = 0.4
_END_FIELDS = frozenset({"until", "expires", "valid-until", "valid_until"})
_DEFAULT_CONFIG = RecallConfig()
_RENDERED_ITEM = re.compile(r'<[a-z][a-z0-9_-]*-item source="[^"\n]*" trust="[a-z]+"')


def is_junk(entry: Entry) -> bool:
    """Tell whether an entry is worth nothing to anybody; a rule for tool calls never is junk."""
    if entry.rule is not None:
        return False
    return is_acknowledgement(entry.content) or _is_rendered_memory(entry.content) or not content_words(entry.content)


def is_stale(entry: Entry, usage: MemoryUsage | None, now: datetime, config: RecallConfig = _DEFAULT_CONFIG) -> bool:
    """Tell whether an entry is past its time and nobody has used it.

    What is pinned or holds a rule never is, nor what was superseded or retired, which is past its time by right.
    """
    if entry.pinned or entry.rule is not None or entry.state != "active":
        return False
    if any(end is not None and end < now for end in map(_parse_end, entry.extra)):
        return True
    if entry.confirmed is None and entry.time is None:
        return False
    if usage and (usage.used.count or usage.confirmed.count):
        return False
    last = max(filter(None, (entry.confirmed, entry.time)))
    return now - last > timedelta(days=config.half_lives.get(entry.kind, config.default_half_life))


def find_duplicates(entries: Sequence[Entry], *, merged: Collection[str] = ()) -> set[str]:
    """Return the ids of the entries that say the same as one before them, those that were `merged` left out.

    Each is compared with those only that share one of its rarest words, and with a few dozen of these at most.
    """
    first: dict[str, str] = {}
    found: set[str] = set()
    texts: list[tuple[str, str]] = []
    for entry in {each.id: each for each in entries if each.id not in merged}.values():
        key = statement_key(entry.content)
        if key in first:
            found.add(entry.id)
        else:
            first[key] = entry.id
            texts.append((entry.id, entry.content))
    return found | _find_similar(texts)


def count_secrets(entries: Iterable[Entry]) -> int:
    """Return how many entries hold a secret in their text."""
    return sum(has_secret(entry.content) for entry in entries)


def find_sourceless(entries: Iterable[Entry], sessions: Collection[str]) -> set[str]:
    """Return the ids of what was learned from a conversation that is none of `sessions`."""
    learned = (entry for entry in entries if entry.by == "flush" and entry.source.session)
    return {entry.id for entry in learned if entry.source.session not in sessions}


def _is_rendered_memory(text: str) -> bool:
    return contains_fence(text) or _RENDERED_ITEM.search(text) is not None


def _parse_end(field: tuple[str, str]) -> datetime | None:
    name, value = field
    if name not in _END_FIELDS:
        return None
    try:
        end = datetime.fromisoformat(value)
    except ValueError:
        return None
    return end if end.tzinfo else end.replace(tzinfo=UTC)


def _find_similar(texts: Sequence[tuple[str, str]]) -> set[str]:
    """Return the ids of the texts that are like one before them."""
    words = [frozenset(content_words(text)) for _, text in texts]
    counted = Counter(word for each in words for word in each)
    seen: dict[str, list[int]] = {}
    found: set[str] = set()
    for number, (entry_id, text) in enumerate(texts):
        near = _rarest_words(words[number], counted)
        posted = dict.fromkeys(other for word in near for other in seen.get(word, ())[-_MAX_POSTINGS:])
        candidates = [other for other in posted if _jaccard(words[number], words[other]) >= _MIN_SHARED]
        if any(is_same_statement(text, texts[other][1]) for other in candidates[:_MAX_COMPARED]):
            found.add(entry_id)
            continue
        for word in near:
            seen.setdefault(word, []).append(number)
    return found


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _rarest_words(words: Collection[str], counted: Mapping[str, int]) -> list[str]:
    """Return so many of the rarest words that two alike statements share one of them."""
    most = int(len(words) * _RARE_WORD_SHARE) + 2
    return sorted(words, key=lambda word: (counted[word], word))[:most]
