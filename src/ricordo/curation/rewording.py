"""Lines that a model wrote to replace several others: their checks, their mark, and their reversal. Pure.

Invariants: a line that passes says every name, number and day of its parent lines, and no other. It contradicts none of
them, adds no instruction, and can't leave a fence. When a parent line is forgotten or undone, nothing that only it said
is left in curated memory.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from hashlib import blake2b

from ricordo.curation.claims import parse_statement
from ricordo.curation.importance import MERGED_FIELD, entry_time, field_ids
from ricordo.curation.types import Refusal
from ricordo.extraction.grounding import GroundingText, contains_credential
from ricordo.guard import contains_fence
from ricordo.language import containment, content_words, find_dates, strip_lead_in
from ricordo.language.duplicates import contradicts
from ricordo.language.packs import pack_phrases
from ricordo.lazy import lazy_compile
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import collect_again, parse_entries, render_entry

__all__ = [
    "REWORDED_FIELD",
    "find_dependent_lines",
    "find_line_flaw",
    "is_reworded",
    "is_topic_name",
    "restore_own_words",
    "to_plain_line",
    "with_reworded_content",
]


REWORDED_FIELD = "reworded"
"""The field of an entry whose text in curated memory differs from its ledger: a digest of the new text."""
_MAX_LINE_CHARACTERS = 700
_MAX_NEW_DIVISOR = 3
_MIN_KEPT_SHARE = 0.5
_MIN_NEW_WORDS = 2
_ORDER_WORDS = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('order_word', edges=True)})(?!\w)|{pack_phrases('order_word', edges=False)}",
    re.IGNORECASE,
)


def to_plain_line(text: str) -> str:
    """Return a text as one line without bullet marks and without a lead-in such as "Noted:"."""
    line = " ".join(text.split())
    return strip_lead_in(re.sub(r"^[-*+] +", "", line).strip())


def find_line_flaw(content: str, parents: Sequence[Entry]) -> Refusal | None:
    """Return why a line may not replace `parents`; None if it may."""
    return next(_find_flaws(content, parents), None)


def _find_flaws(content: str, entries: Sequence[Entry]) -> Iterator[Refusal]:
    parents = [entry.content for entry in entries]
    parents_text = "\n".join(parents)
    if (
        not content
        or contains_fence(content)
        or contains_credential(content)
        or _find_orders(content) - _find_orders(parents_text)
    ):
        yield "order"
    if len(content) > min(_MAX_LINE_CHARACTERS, len(parents_text)):
        yield "too long"
    if not GroundingText(parents_text).supports(content) or _invents(content, parents_text):
        yield "invented"
    if _names_other_day(content, entries):
        yield "date"
    if _loses(content, parents):
        yield "lost"
    if any(
        contradicts(_without_dates(content), _without_dates(parent)) for parent in parents
    ) or _contradict_each_other(parents):
        yield "contradiction"
    if not _belong_together(content, parents):
        yield "unlike"


def is_topic_name(name: str, contents: Sequence[str]) -> bool:
    """Tell whether a topic of these memories may have this name: it uses their words and gives no instruction."""
    name_words, known_words = content_words(name), set(content_words("\n".join(contents)))
    return bool(name_words) and set(name_words) <= known_words and not _ORDER_WORDS.search(name)


def with_reworded_content(entry: Entry, content: str) -> Entry:
    """Return the entry with a new text for curated memory, marked as reworded."""
    rest = tuple((key, value) for key, value in entry.extra if key != REWORDED_FIELD)
    return replace(entry, content=content, extra=(*rest, (REWORDED_FIELD, _content_digest(content))))


def is_reworded(entry: Entry) -> bool:
    """Tell whether the text of a curated entry was written by a run and not edited since."""
    return any(key == REWORDED_FIELD and value == _content_digest(entry.content) for key, value in entry.extra)


def _content_digest(content: str) -> str:
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _invents(content: str, parents_text: str) -> bool:
    """Tell whether more than a third of the words of a line, and more than one, are in none of its parents.

    Days are checked for themselves, because they may stand in another form.
    """
    line_words, known_words = set(content_words(_without_dates(content))), set(content_words(parents_text))
    new = line_words - known_words
    return len(new) >= _MIN_NEW_WORDS and _MAX_NEW_DIVISOR * len(new) > len(line_words)


def _without_dates(text: str) -> str:
    for mention in reversed(find_dates(text, date(2000, 1, 1))):
        text = text[: mention.start] + text[mention.end :]
    return text


def _find_orders(text: str) -> set[str]:
    return {match.casefold() for match in _ORDER_WORDS.findall(text)}


def _loses(content: str, parents: Sequence[str]) -> bool:
    """Tell whether a line omits a name, a number, a date, or most words of one of its parents."""
    grounding, words = GroundingText(content), content_words(content)
    return any(
        not grounding.supports(parent)
        or not _absolute_dates(parent) <= _absolute_dates(content)
        or containment(content_words(parent), words) < _MIN_KEPT_SHARE
        for parent in parents
    )


def _absolute_dates(text: str) -> frozenset[str]:
    """Return the absolute dates in a text."""
    return frozenset(mention.iso for mention in find_dates(text, date(2000, 1, 1)) if not mention.relative)


def _names_other_day(content: str, parents: Sequence[Entry]) -> bool:
    """Tell whether a line names a day, month or year that none of its parents names, each seen from its own day."""
    said_on = [entry_time(parent).date() for parent in parents]
    known = {
        mention.iso for parent, day in zip(parents, said_on, strict=True) for mention in find_dates(parent.content, day)
    }
    mentions = {mention.start: mention.iso for mention in find_dates(content, said_on[0])}
    for day in said_on[1:]:
        seen = find_dates(content, day)
        mentions |= {each.start: each.iso for each in seen if any(name.startswith(each.iso) for name in known)}
    return not all(any(name.startswith(iso) for name in known) for iso in mentions.values())


def _contradict_each_other(parents: Sequence[str]) -> bool:
    """Tell whether two of the lines contradict each other, so that they can't be merged."""
    return any(contradicts(one, other) for number, one in enumerate(parents) for other in parents[number + 1 :])


def _belong_together(content: str, parents: Sequence[str]) -> bool:
    """Tell whether each line shares a subject word with another, and with the merged line."""
    subjects = [parse_statement(parent).subject for parent in parents]
    line = parse_statement(content).subject
    return all(
        mine & line and any(mine & other for at, other in enumerate(subjects) if at != number)
        for number, mine in enumerate(subjects)
    )


def find_dependent_lines(document: bytes, path: str, removed_ids: Collection[str]) -> frozenset[str]:
    """Return the ids of reworded lines that include content of one of `removed_ids`."""
    if not any(name.encode() in document for name in removed_ids):
        return frozenset()
    return frozenset(
        located.entry.id for located in parse_entries(document, path) if _depends_on(located.entry, removed_ids)
    )


def restore_own_words(document: bytes, path: str, removed_ids: Collection[str], originals: Mapping[str, str]) -> bytes:
    """Return the document with the ledger text (`originals`, by id) in lines that depend on `removed_ids`, or without
    them.
    """
    for located in reversed(parse_entries(document, path)):
        entry = located.entry
        if not _depends_on(entry, removed_ids):
            continue
        bullet = b""
        if entry.id in originals:
            others = ",".join(name for name in field_ids(entry, MERGED_FIELD) if name not in removed_ids)
            rest = tuple((key, value) for key, value in entry.extra if key not in {MERGED_FIELD, REWORDED_FIELD})
            restored = replace(
                entry, content=originals[entry.id], extra=(*rest, *([(MERGED_FIELD, others)] if others else []))
            )
            bullet = render_entry(restored, long=located.long_path).encode("utf-8", "surrogatepass")
        document = document[: located.offset] + bullet + document[located.offset + located.length :]
    return collect_again(document)


def _depends_on(entry: Entry, removed_ids: Collection[str]) -> bool:
    return bool(field_ids(entry, REWORDED_FIELD)) and any(
        name in removed_ids for name in field_ids(entry, MERGED_FIELD)
    )
