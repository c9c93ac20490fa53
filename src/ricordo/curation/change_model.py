"""Whether a later statement changes an earlier one: a linear model over features of the two. Pure.

The rules of `conflicts.py` need a pattern; most changes come without one ("The price is 14.99", "it's seven now"). The
model weighs what the two have in common: their subject, values of one type that differ, and words that announce a
change. Its weights come from labelled conversations; `benchmarks/train_changes.py` writes them.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from importlib.resources import files

from ricordo.curation.claims import (
    FIRST_EASTERN,
    TypedValue,
    blank,
    calendar_words,
    detect_script_language,
    find_values,
    mask_values,
    parse_statement,
    without_speaker,
    without_start,
)
from ricordo.language import Language, content_words, detect_language
from ricordo.language.packs import language_pack, pack_phrases, pack_words
from ricordo.language.words import irregular_pasts, is_stop_word, split_words, stem, strip_accents
from ricordo.lazy import lazy_compile
from ricordo.messages.json_text import decode_json

__all__ = [
    "CHANGE_THRESHOLD",
    "LIKELY_SCORE",
    "OUTDATED_THRESHOLD",
    "ComparedStatement",
    "change_features",
    "change_score",
    "have_different_subjects",
    "read_statement",
    "shares_frame",
]


CHANGE_THRESHOLD = 1.5
"""The score from which a later statement takes the place of an earlier one."""
OUTDATED_THRESHOLD = 0.7
"""The score from which an earlier statement may be outdated, if the later one has a word of change."""
LIKELY_SCORE = CHANGE_THRESHOLD - 0.01
"""The most that two statements score of which the longer one is mostly about something else."""
_WEIGHTS_FILE = "change_weights.json"
_VALUE_SIGN = "="
_EASTERN_RUN = lazy_compile(r"([\u3005-\u30ff\u3400-\u9fff]+)")
_SLOT_WORDS = 2
_SLOT_CHARACTERS = (2, 3)
_MAX_CHARACTERS_OF_WORD = 5
_ACRONYM = lazy_compile(r"^\W?([A-Z]{2,5}|[B-DF-HJ-NP-XZ])(?=\W*$)")
_KOREAN_RUN = lazy_compile(r"^[\uac00-\ud7a3]+")
_CYRILLIC = lazy_compile(r"[\u0400-\u04ff]")
_MAX_PARTICLE = 2
_MIN_PREFIX = 4
_MIN_LIKENESS = 0.5
_MIN_LIKENESS_WITH_NAMES = 0.3
_MIN_LIKENESS_OF_NEIGHBOURS = 0.65
_SHORT = 3
_SHORT_PAST = 4
_MIN_SHARE_OF_SHORTER = 0.25
_MIN_SHARE_OF_LONGER = 0.3
_MIN_TWIN = 0.6
_MIN_TWIN_WITH_CUE = 0.75
_WORD = lazy_compile(r"[^\W\d_][\w'’-]*")
_SENTENCE_START = lazy_compile(r"(?:^|[.!?:;]\s+|[“\"(]\s*)$")
# "is pinned" and "has been moved" tell how something is
_PASSIVE = lazy_compile(lambda: rf"(?<!\w)(?:{pack_phrases('being', language='en')})\s+(?:\w+ly\s+)?\w+", re.IGNORECASE)
_CUES = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('change_cue', edges=True)})(?!\w)|{pack_phrases('change_cue', edges=False)}",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedStatement:
    """What comparing needs: `subject` are the content words without amounts, `attributes` those that are no names.

    `order` has the subject in order, `frame` with each amount as a sign of its type. `values` are the values by type,
    `lead` is the name that the text begins with.
    """

    subject: frozenset[str]
    attributes: frozenset[str]
    order: tuple[str, ...]
    frame: tuple[str, ...]
    values: Mapping[str, frozenset[str]]
    names: frozenset[str]
    lead: str
    has_cue: bool
    negative: bool
    is_event: bool


@lru_cache(maxsize=8192)
def read_statement(text: str) -> ComparedStatement:
    """Return the first 600 characters of a statement as they are compared."""
    excerpt = without_speaker(text)
    language = detect_language(excerpt)
    values = find_values(excerpt, detect_script_language(excerpt))
    masked = mask_values(excerpt, values)
    names, lead = _find_names(masked, capital_nouns=language_pack(language).capital_nouns)
    generic = _generic_words()
    frame = tuple(word for word in _frame(masked, values, language) if word not in generic and not word[0].isdigit())
    words = content_words(masked.casefold(), language)
    order = tuple(word for word in words if word not in generic and not word[0].isdigit())
    known_names = {form for name in (*names, lead) for form in (name, stem(name, language))}
    return ComparedStatement(
        subject=frozenset(order),
        attributes=frozenset(order) - known_names,
        order=order,
        frame=frame,
        values=_group_values(values),
        names=names,
        lead=lead,
        has_cue=_CUES.search(excerpt) is not None,
        negative=parse_statement(text).is_negative,
        is_event=language == "en" and _tells_past(excerpt),
    )


def _tells_past(text: str) -> bool:
    """Tell whether an English text has a verb in the past, and so tells what happened, and not how something is."""
    words = split_words(_PASSIVE.sub(" ", text))
    return any(
        word in irregular_pasts() - pack_words("same_in_past") - pack_words("auxiliary_past")
        or (len(word) > _SHORT_PAST and word.endswith("ed") and word not in pack_words("looks_past"))
        for word in words
    )


@cache
def _generic_words() -> frozenset[str]:
    raw = " ".join(pack_words("claim_generic") | pack_words("claim_generic_form") | pack_words("light"))
    return frozenset(content_words(raw, "en")) | frozenset(raw.split())


def _frame_words(text: str, language: Language) -> list[str]:
    """Return the content words of a text in order; characters in a script without spaces."""
    words: list[str] = []
    for number, run in enumerate(_EASTERN_RUN.split(text.casefold())):
        is_eastern = number % 2 == 1
        words += (
            [char for char in run if char not in pack_words("stop", language)]
            if is_eastern
            else content_words(run, language)
        )
    return words


def _group_values(values: Iterable[TypedValue]) -> dict[str, frozenset[str]]:
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for each in values:
        groups[each.kind].add(each.value)
    return {kind: frozenset(group) for kind, group in groups.items()}


def _frame(masked: str, values: Iterable[TypedValue], language: Language) -> tuple[str, ...]:
    """Return the content words of a text in order, each value as a sign of its type."""
    frame: list[str] = []
    at = 0
    for each in values:
        frame += [*_frame_words(masked[at : each.start], language), f"{_VALUE_SIGN}{each.kind}"]
        at = max(at, each.end)
    return (*frame, *_frame_words(masked[at:], language))


def _find_names(text: str, *, capital_nouns: bool) -> tuple[frozenset[str], str]:
    """Return the words written as names, and the one that the text begins with."""
    names: set[str] = set()
    lead = ""
    for match in _WORD.finditer(text):
        word = match[0]
        folded = strip_accents(word.casefold().removesuffix("'s").removesuffix("’s"))
        if not word[0].isupper() or folded in calendar_words("weekday") or folded in calendar_words("month"):
            continue
        if folded in pack_words("stop") or folded in pack_words("not_name"):
            continue
        if _SENTENCE_START.search(text[: match.start()]):
            if match.start() == 0 or not text[: match.start()].strip():
                lead = folded
            continue
        if not capital_nouns or any(char.isupper() for char in word[1:]):
            names.add(folded)
    return frozenset(names), lead


def change_features(
    new: ComparedStatement,
    old: ComparedStatement,
    rarity: Callable[[str], float],
    *,
    same_kind: bool,
    same_day: bool,
    same_speaker: bool,
) -> dict[str, float]:
    """Return the features of a later statement and an earlier one; `rarity` weighs a word, 0 for one that all have."""
    names = (new.subject - new.attributes) | (old.subject - old.attributes)
    shared = new.subject & old.subject
    attributes = shared - names
    mine, theirs, both = (_weigh(words, rarity) for words in (new.subject, old.subject, shared))
    share = both / max(min(mine, theirs), 0.1)
    rarest = max(map(rarity, shared), default=0.0) / 3
    rarest_attribute = max(map(rarity, attributes), default=0.0) / 3
    other = _weigh(new.subject - names, rarity), _weigh(old.subject - names, rarity)
    slots, frame = _compare_frames(new.frame, old.frame)
    differs = _differing_types(new, old)
    cue = float(new.has_cue)
    return {
        "shared": min(both, 15.0) / 5,
        "share of the shorter": share,
        "share of the longer": both / max(mine, theirs, 0.1),
        "share of attributes": _weigh(attributes, rarity) / max(*other, 0.1),
        "rarest attribute": rarest_attribute,
        "no attribute": float(not attributes),
        "begins with the attribute": float(
            sum(attributes.issuperset(each.order[:1]) and bool(each.order) for each in (new, old))
        ),
        "begins with what the other says": float(
            sum(bool(one.order) and one.order[0] in two.subject for one, two in ((new, old), (old, new)))
        ),
        "frame": frame,
        "other words in one place": float(slots > 0),
        "twin": frame * float((slots > 0 and bool(differs)) or slots > 1),
        "only the value differs": frame * float(slots == 0 and bool(differs)),
        "other value of a type": float(bool(differs - {"number"})),
        "other number": float("number" in differs),
        "same value of a type": float(bool(_same_types(new, old) - {"number"})),
        "same number": float("number" in _same_types(new, old)),
        "cue": cue,
        "cue and share": cue * share,
        "cue and rarest": cue * rarest,
        "cue of the earlier": float(old.has_cue),
        "denies": float(new.negative),
        "begins with another name": float(
            bool(new.lead and old.lead) and new.lead not in {old.lead, *old.names}
        ),
        "name of the earlier is missing": float(bool(old.names - new.names - {new.lead})),
        "short": float(len(new.order) <= _SHORT),
        "length of the earlier": min(len(old.order), 20) / 10,
        "same kind": float(same_kind),
        "same day": float(same_day),
        "same speaker": float(same_speaker),
        "events": float(new.is_event and old.is_event),
    }  # fmt: skip


def change_score(features: Mapping[str, float], *, lenient: bool = False) -> float:
    """Return the log odds that the later statement changes the earlier one; minus infinity for a near miss.

    What is said on one day without a word of change is a list, and what happened twice are two events. Two that have
    less than a third of their subject in common are no sure change: the longer one says more than the other can
    replace, and they are about different things if it is less than a quarter of the shorter one. With `lenient` they
    may share less: the later one was noted as a correction, or their words are pairs of characters.
    """
    is_plain = not features["cue"]
    is_unnamed = features["no attribute"] and features["only the value differs"] < _MIN_TWIN_WITH_CUE
    if features["twin"] >= (_MIN_TWIN if is_plain else _MIN_TWIN_WITH_CUE) or (
        is_plain and (is_unnamed or features["same day"] or features["events"])
    ):
        return -math.inf
    if not lenient and features["share of the shorter"] < _MIN_SHARE_OF_SHORTER:
        return -math.inf
    weights = _load_weights()
    score = weights["bias"] + sum(weights[name] * value for name, value in features.items())
    is_sure = lenient or features["share of the longer"] >= _MIN_SHARE_OF_LONGER
    return score if is_sure else min(score, LIKELY_SCORE)


def shares_frame(one: ComparedStatement, other: ComparedStatement) -> bool:
    """Tell whether two share half of the subject words of the shorter one, with no other words in one place."""
    shorter = min(len(one.subject), len(other.subject))
    is_near = shorter > 0 and 2 * len(one.subject & other.subject) >= shorter
    return is_near and _compare_frames(one.frame, other.frame)[0] == 0


@cache
def _load_weights() -> Mapping[str, float]:
    text = (files(__package__) / _WEIGHTS_FILE).read_text(encoding="utf-8")
    weights: dict[str, float] = decode_json(text)
    return weights


def have_different_subjects(new: str, old: str) -> bool:
    """Tell whether two statements are about different subjects that have much in common: two places, two versions.

    A change has one place in which the two differ, its value. If they differ in two, one of them is the subject. So
    it is if each names somebody or something that the other does not, and their values differ too.
    """
    language = detect_script_language(f"{old}\n{new}")
    left, right = _read_tokens(old, language), _read_tokens(new, language)
    signs, renamed = [token.sign for token in left], [_find_same_word(token, left) for token in right]
    places = _find_places(left, right, signs, renamed)
    likeness = 2 * (Counter(signs) & Counter(renamed)).total() / max(len(left) + len(right) - places.extra, 1)
    if (
        places.values
        and likeness >= _MIN_LIKENESS_WITH_NAMES
        and _name_others(read_statement(new), read_statement(old))
    ):
        return True
    slots = places.slots + (places.slots > 0 < places.neighbours and likeness >= _MIN_LIKENESS_OF_NEIGHBOURS)
    is_near = likeness >= _MIN_LIKENESS
    return is_near and (max(places.neighbours, slots + (len(places.values) or places.unlike)) > 1 or places.has_label)


@dataclass(kw_only=True, slots=True)
class _Places:
    """In which places two statements differ.

    `values` are of one type, `unlike` of several, `slots` have other words, `neighbours` are other words beside the
    same one. With `has_label` they begin with other labels: "room 12". `extra` counts the words of slots but for one.
    """

    values: set[object]
    slots: int = 0
    unlike: int = 0
    neighbours: int = 0
    has_label: bool = False
    extra: int = 0


def _find_places(
    left: Sequence["_Token"], right: Sequence["_Token"], signs: Sequence[str], renamed: Sequence[str]
) -> _Places:
    shared = set(signs) & set(renamed)
    is_dated = all(any(token.sign[1:] in _CALENDAR for token in each) for each in (left, right))
    places = _Places(values=set())
    single = [set[int](), set[int]()]
    for tag, a, b, c, d in SequenceMatcher(None, signs, renamed, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs = [(at, at - a + c) for at in range(a, b) if left[at].value != right[at - a + c].value]
            places.values |= {_value_place(left, at, is_dated=is_dated) for at, _ in pairs}
            places.has_label |= any(left[at].is_label and at <= 1 >= other for at, other in pairs)
            continue
        words = [
            [at for at in range(*span) if not each[at].value and names[at] not in shared]
            for each, names, span in ((left, signs, (a, b)), (right, renamed, (c, d)))
        ]
        kinds = [{one.sign for one in each if one.value} for each in (left[a:b], right[c:d])]
        number = sum(sign[0] != _VALUE_SIGN for sign in signs[:a])
        places.values |= {
            ("calendar", number) if is_dated and kind[1:] in _CALENDAR else kind for kind in kinds[0] & kinds[1]
        }
        is_tail = b == len(left) and d == len(right)
        if _contrast(
            [[each[at] for at in row] for each, row in zip((left, right), words, strict=True)], is_tail=is_tail
        ):
            places.slots += 1
            places.extra += sum(map(len, words)) - len(words)
            continue
        if any(kinds) and not kinds[0] & kinds[1] and min(b - a, d - c) > 0 and max(b - a, d - c) <= _SLOT_WORDS:
            places.unlike += all(kinds) or not is_tail or max(b - a, d - c) == 1
        for row, found in zip(words, single, strict=True):
            found |= set(row)
    beside = [_neighbours(signs, at) & _neighbours(renamed, other) & shared for at in single[0] for other in single[1]]
    places.neighbours = len(set().union(*beside)) and min(len(single[0]), len(single[1]), sum(map(bool, beside)))
    return places


def _neighbours(signs: Sequence[str], at: int) -> set[str]:
    """Return the words right beside a place."""
    return {sign for sign in (*signs[max(at - 1, 0) : at], *signs[at + 1 : at + 2]) if sign[0] != _VALUE_SIGN}


def _name_others(new: ComparedStatement, old: ComparedStatement) -> bool:
    """Tell whether the older of two statements has a name that the newer one lacks, which has another one."""
    mine = {new.lead, *new.names, *new.subject}
    theirs = {old.lead, *old.names, *old.subject}
    others = {name for name in (*new.names, new.lead) if name and stem(name) not in theirs} - theirs
    return bool(old.names - mine) and bool(others)


_CALENDAR = frozenset({"weekday", "month", "clock", "date"})


def _value_place(tokens: Sequence["_Token"], at: int, *, is_dated: bool) -> object:
    """Return what stands for the place of a value that differs; a day and its hour have one, if no word parts them."""
    token = tokens[at]
    if is_dated and (token.sign[1:] in _CALENDAR or (token.sign == "=number" and not token.is_label)):
        return "calendar", sum(not each.value for each in tokens[:at])
    return at


@dataclass(frozen=True, kw_only=True, slots=True)
class _Token:
    """A content word, or a value with the sign of its type; a label is a number right behind a word: "room 12"."""

    sign: str
    value: str = ""
    is_label: bool = False


@lru_cache(maxsize=8192)
def _read_tokens(text: str, language: Language) -> tuple[_Token, ...]:
    """Return the content words and values of a statement in order, without words of change."""
    excerpt = without_start(without_speaker(text))
    plain = _CUES.sub(blank, excerpt)
    tokens: list[_Token] = []
    at = 0
    for each in find_values(excerpt, language):
        if each.start < at:
            continue
        between = _drop_particle(plain[at : each.start], at)
        tokens += _read_words(between, language)
        before = re.search(r"(\w+)\s$", between)
        is_label = each.kind == "number" and before is not None and not is_stop_word(before[1].casefold(), language)
        value = excerpt[each.start : each.end].casefold()
        tokens.append(_Token(sign=f"{_VALUE_SIGN}{each.kind}", value=value, is_label=is_label))
        at = each.end
    return (*tokens, *_read_words(_drop_particle(plain[at:], at), language))


def _drop_particle(text: str, at: int) -> str:
    """Return what follows a value without the particle that Korean joins to it."""
    return _KOREAN_RUN.sub("", text) if at else text


def _read_words(text: str, language: Language) -> list[_Token]:
    words = (word for run in text.split() for word in _words_of_run(run, language))
    return [
        _Token(sign=word)
        for word in words
        if word not in _generic_words()
        and not word[0].isdigit()
        and not (len(word) <= _MAX_PARTICLE and _CYRILLIC.match(word))
    ]


def _words_of_run(run: str, language: Language) -> Sequence[str]:
    """Return the content words of a run without white space: a compound without its parts, and "US" as a name."""
    if match := _ACRONYM.search(run):
        return [match[1]]
    words = _frame_words(run, language)
    return words[:1] if run.isascii() and "-" in run else words


def _find_same_word(token: _Token, others: Sequence[_Token]) -> str:
    """Return the sign of the token of the others that is a form of the same word, else its own."""
    if token.value or any(token.sign == other.sign for other in others):
        return token.sign
    return next(
        (other.sign for other in others if not other.value and _is_same_word(token.sign, other.sign)), token.sign
    )


def _is_same_word(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    common = next((at for at, (x, y) in enumerate(zip(shorter, longer, strict=False)) if x != y), len(shorter))
    return common >= _MIN_PREFIX and 5 * common >= 3 * len(longer)


def _contrast(sides: Sequence[Sequence[_Token]], *, is_tail: bool) -> bool:
    """Tell whether both sides of a place have words: a few, or characters of a word."""
    is_eastern = any(token.sign[0] >= FIRST_EASTERN for each in sides for token in each)
    limit = _MAX_CHARACTERS_OF_WORD if is_eastern else 1 if is_tail else _SLOT_WORDS
    return all(0 < len(each) <= limit for each in sides)


def _weigh(words: Collection[str], rarity: Callable[[str], float]) -> float:
    return sum(map(rarity, words))


def _differing_types(new: ComparedStatement, old: ComparedStatement) -> set[str]:
    """Return the types of which both have values, and none in common."""
    return {kind for kind in new.values.keys() & old.values.keys() if not new.values[kind] & old.values[kind]}


def _same_types(new: ComparedStatement, old: ComparedStatement) -> set[str]:
    """Return the types of which both have a value in common."""
    return {kind for kind in new.values.keys() & old.values.keys() if new.values[kind] & old.values[kind]}


def _compare_frames(new: Sequence[str], old: Sequence[str]) -> tuple[int, float]:
    """Return in how many places one has other words than the other, one or two each, and how alike they are (0..1)."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    slots = sum(
        tag == "replace" and _is_slot(old[a:b]) and _is_slot(new[c:d]) for tag, a, b, c, d in matcher.get_opcodes()
    )
    return slots, matcher.ratio()


def _is_slot(words: Sequence[str]) -> bool:
    """Tell whether these are one or two words that are no values, or two or three characters of a longer word."""
    if any(word[0] >= FIRST_EASTERN for word in words):
        return len(words) in _SLOT_CHARACTERS
    return len(words) <= _SLOT_WORDS and any(word[0] != _VALUE_SIGN for word in words)
