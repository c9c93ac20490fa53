"""Comparison of two memories: whether they say the same, one replaces the other, or they contradict. Pure.

The rules compare subject and attribute and are simple enough for a person to follow. Two texts are opposed if they have
the same words in the same order except for one negation or one opposite.

Invariants: a memory about another subject is never replaced. Where the rules do not decide, both stay. Opposition is
mutual, and no text is opposed to itself.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from math import inf

from ricordo.curation.change_model import (
    LIKELY_SCORE,
    OUTDATED_THRESHOLD,
    ComparedStatement,
    change_features,
    change_score,
    have_different_subjects,
    read_statement,
    shares_frame,
)
from ricordo.curation.claims import Claim, Ending, ParsedStatement, parse_statement, read_ending
from ricordo.curation.importance import CORRECTION_TAG, entry_time
from ricordo.language import content_words, is_correction, stem
from ricordo.language.duplicates import is_same_statement
from ricordo.language.packs import WordKind, pack_phrases, pack_table, pack_words
from ricordo.lazy import lazy_compile
from ricordo.workspace.entry import Entry

__all__ = [
    "announces_change",
    "contradict",
    "is_opposed",
    "may_speak_for",
    "outdates",
    "replaces",
    "says_the_same",
    "score_change",
    "share_subject",
    "speak_of_themselves",
    "stance",
]


_MAX_STANCE_CHARACTERS = 300
_MIN_STANCE_WORDS = 2
_WORD = lazy_compile(r"\w+(?:['’]\w+)?")
# a negation of one part of a sentence, or of its frequency, does not deny the rest
_PARTIAL_NEGATION = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('denying')})\s+(?:{pack_phrases('partly')})(?!\w)"
        rf"|^\W*(?:{pack_phrases('no_in_stance')})\s*[,.!:;]"
    ),
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def stance(text: str) -> tuple[str, bool] | None:
    """Return the words of a text in order without affirmations and denials, and whether the text denies them.

    None for a text that is too long, is a question, denies only a part, or contains more than one denial.
    """
    if len(text) > _MAX_STANCE_CHARACTERS or text.rstrip().endswith("?"):
        return None
    opposites = pack_table("stance_opposite")
    words: list[str] = []
    denials = 0
    for word in (match[0].casefold().replace("’", "'") for match in _WORD.finditer(text)):
        if word in pack_words("denial"):
            denials += 1
        elif word not in pack_words("stance_neutral"):
            plain = _without_ending(word)
            denials += plain in opposites and plain not in pack_words("stance_synonym")
            words.append(opposites.get(plain, plain))
    if denials > 1 or len(words) < _MIN_STANCE_WORDS or (denials and _PARTIAL_NEGATION.search(text)):
        return None
    return " ".join(words), bool(denials)


def is_opposed(one: str, other: str) -> bool:
    """Tell whether one text denies the other."""
    left, right = stance(one), stance(other)
    return left is not None and right is not None and left[0] == right[0] and left[1] != right[1]


def _without_ending(word: str) -> str:
    """Return a word without its plural or third person ending."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


_MIN_SHARED_SUBJECT = 0.6
_MIN_SHARED_CORRECTION = 0.3
_PERSONAL_ATTRIBUTES = frozenset({"home", "work", "name"})
_SINGLE_VALUED_ATTRIBUTES = frozenset({"home", "work", "indentation"})
_YEAR = lazy_compile(r"(?:19|20)\d\d")
_MIN_WORDS = 2
_MIN_NAME_RARITY = 0.62
_MIN_LIMIT_RARITY = 0.5
_MIN_WORD_RARITY = 1.5
_MIN_COUNTED_RARITY = 0.7
_EASTERN = lazy_compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_MEASURED_TYPES = frozenset({"time", "weekday", "clock", "data", "share", "rate", "mass", "volume", "length", "piece"})
_UNITS = frozenset({f"{seconds:g}" for seconds in (1, 60, 3600, 86_400, 604_800, 2_592_000, 31_536_000)})
_NAMED = 10.0
"""What names the old value is likelier than what the model finds."""
_UNCOUNTED = frozenset({"0.5", "1", "2"})
_INEXACT_TYPES = frozenset({"number", "month", "date"})
_CALENDAR_TYPES = frozenset({"weekday", "month", "date", "clock"})
# "User: " before a sentence names the speaker, not what it is about
_FIRST_PERSON = lazy_compile(lambda: rf"(?<!\w)(?:{pack_phrases('first_person_subject')})(?!\w)", re.IGNORECASE)
# "starting with February", "as of Monday", "since 2019"
_FROM_DAY = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('valid_from')}|{pack_phrases('valid_since')})\W+(?:\w+\W+){{0,2}}?"
        rf"(?:\d|(?:{'|'.join((*pack_table('weekday'), *pack_table('month')))})(?!\w))"
    ),
    re.IGNORECASE,
)
_ORDINAL = lazy_compile(lambda: rf"^(\d+)(?:{pack_phrases('ordinal_ending')})$")


@cache
def _folded_words(kind: WordKind) -> frozenset[str]:
    """Return the words of a kind as they are compared."""
    return frozenset(content_words(" ".join(sorted(pack_words(kind))), "en"))


@cache
def _vague_words() -> frozenset[str]:
    """Return the words that two statements about different things often share, such as "first" and "line"."""
    return _folded_words("untitled") | _folded_words("time_word") | _folded_words("number_word")


@cache
def _limit_words() -> frozenset[str]:
    return frozenset(content_words(pack_phrases("limit").replace("|", " "), "en"))


@cache
def _verbs_of_nouns() -> Mapping[str, str]:
    """Return the verb of each noun whose stem differs from it, both as they are compared."""
    return {stem(noun): stem(verb) for noun, verb in pack_table("verb_of_noun").items()}


def says_the_same(left: Entry, right: Entry, *, duplicate: float) -> bool:
    """Tell whether two memories say the same: (nearly) the same words, with the same numbers and negation.

    `duplicate` (0..1) is the similarity of their content words that suffices; see `language.duplicates`.
    """
    if speak_of_themselves(left, right):
        return False
    if left.content == right.content:
        return True
    return is_same_statement(left.content, right.content, threshold=duplicate)


def replaces(newer: Entry, older: Entry) -> bool:
    """Tell whether `newer`, which was said later, replaces `older`."""
    if (older.source.messages and newer.source == older.source) or speak_of_themselves(newer, older):
        return False
    new, old = parse_statement(newer.content), parse_statement(older.content)
    if new.normalized == old.normalized:
        return False
    corrects = CORRECTION_TAG in newer.tags or new.announces_change
    return (
        any(_ends_claim(claim, old) for claim in new.claims if claim.ended)
        or (
            any(_have_different_values(claim, other, changes=corrects) for claim in new.claims for other in old.claims)
            and not have_different_subjects(newer.content, older.content)
        )
        or (not old.is_negative and any(_negates(denied, old, changes=corrects) for denied in new.negated_clauses))
        or (corrects and _differ_in_one_number(new, old) and not have_different_subjects(newer.content, older.content))
        or ((CORRECTION_TAG in newer.tags or is_correction(newer.content)) and _corrects_value(new, old))
    )


def score_change(newer: Entry, older: Entry, rarity: Callable[[str], float]) -> float:
    """Return how sure it is that `newer` changes what `older` says, though no rule says so, as log odds.

    Minus infinity for what one message says, for two people who each speak about themselves, for a denial of both, and
    for a likely change with different subjects. `rarity` weighs a word, 0 for one that all memories have.
    """
    if (older.source.messages and newer.source == older.source) or speak_of_themselves(newer, older):
        return -inf
    new, old = read_statement(newer.content), read_statement(older.content)
    features = change_features(
        new, old, rarity, same_kind=newer.kind == older.kind,
        same_day=entry_time(newer).date() == entry_time(older).date(),
        same_speaker=not have_different_speakers(newer, older),
    )  # fmt: skip
    is_eastern = _EASTERN.search(older.content) is not None
    score = change_score(features, lenient=is_eastern or CORRECTION_TAG in newer.tags)
    if new.is_event and old.values.keys() - new.values.keys():
        # a report of what happened does not replace a plan with a day or an amount that it leaves out
        score = min(score, LIKELY_SCORE)
    # Comparing subjects costs most, and matters only for a likely change.
    return -inf if score >= OUTDATED_THRESHOLD and have_different_subjects(newer.content, older.content) else score


def outdates(newer: Entry, older: Entry, rarity: Callable[[str], float], score: float) -> float:
    """Return how likely `newer` makes `older` outdated, where it isn't sure enough to replace it; 0 if it is unlikely.

    Greater is likelier. `newer` was said later; `rarity` is as in `score_change`, which `score` comes from.
    """
    if entry_time(newer) <= entry_time(older) or (older.source.messages and newer.source == older.source):
        return 0.0
    if named := _names_earlier_value(newer, older, rarity):
        return _NAMED + named
    new, old = read_statement(newer.content), read_statement(older.content)
    if score < OUTDATED_THRESHOLD or not (new.subject & old.subject) - _vague_words():
        return 0.0
    is_announced = announces_change(newer) or _FROM_DAY.search(newer.content)
    return score if is_announced or (score >= LIKELY_SCORE and new.has_cue) else 0.0


def _names_earlier_value(newer: Entry, older: Entry, rarity: Callable[[str], float]) -> float:
    """Return how surely `newer` names what `older` says as over, as the weight of what it names; 0 if it does not.

    It does if it says that a value or a name of the older one ends ("not a month", "eight is too few", "we have moved
    on from Hutch"), or if it announces a change and has that value beside another one of its type, on the same subject,
    or a limit where the older one has another limit.
    """
    if speak_of_themselves(newer, older):
        return 0.0
    ending, new = read_ending(newer.content), read_statement(newer.content)
    if not (ending.ended or ending.words or (new.has_cue and ending.values)):
        return 0.0
    earlier, old = read_ending(older.content), read_statement(older.content)
    shared = max((rarity(word) for word in new.attributes & old.attributes), default=0.0)
    names = max((rarity(word) for word in ending.words & old.subject), default=0.0)
    if names >= _MIN_NAME_RARITY * rarity(""):
        return names
    over = ending.ended & (earlier.values - earlier.ended)
    if over and ending.values - ending.ended and (shared or any(map(_is_measured, over))):
        return 1.0 + shared
    counts = shared >= _MIN_COUNTED_RARITY * rarity("")
    if new.has_cue and shared >= _MIN_WORD_RARITY and _has_other_value(ending.values, earlier.values, counts=counts):
        return shared
    return _find_shared_limit(ending, earlier, new, old, rarity)


def _find_shared_limit(
    ending: Ending, earlier: Ending, new: ComparedStatement, old: ComparedStatement, rarity: Callable[[str], float]
) -> float:
    """Return the weight of what both name a limit of, if the later one announces another limit of one type, else 0."""
    if not (new.has_cue and ending.is_limit and earlier.is_limit):
        return 0.0
    types = [{kind for kind, _ in each.values} - _CALENDAR_TYPES for each in (ending, earlier)]
    common = {kind for kind, _ in ending.values & earlier.values}
    words = (new.subject & old.subject) - _vague_words() - _limit_words()
    weight = max(map(rarity, words), default=0.0)
    return weight if types[0] & types[1] - common and weight >= _MIN_LIMIT_RARITY * rarity("") else 0.0


def _is_measured(value: tuple[str, str]) -> bool:
    """Tell whether a typed value is exact enough to name what it is about: not a bare number, a tool, or "a day"."""
    return value[0] in _MEASURED_TYPES and value[1] not in _UNITS


def _has_other_value(new: Collection[tuple[str, str]], old: Collection[tuple[str, str]], *, counts: bool) -> bool:
    """Tell whether `new` has the one exact value of a type that `old` has, and another one of that type.

    With `counts` a bare number is exact too, but not "one", "first" and "second", which mostly count nothing.
    """
    kinds = Counter(kind for kind, _ in old)
    same = {(kind, value) for kind, value in new if (kind, value) in old and kinds[kind] == 1}
    common = {kind for kind, value in same if kind not in _INEXACT_TYPES}
    common |= {kind for kind, value in same if counts and kind == "number" and value not in _UNCOUNTED}
    return any(
        kind in common and (kind, value) not in old and not (kind == "number" and value in _UNCOUNTED)
        for kind, value in new
    )


def announces_change(entry: Entry) -> bool:
    """Tell whether a memory presents itself as a correction or a change."""
    return CORRECTION_TAG in entry.tags or parse_statement(entry.content).announces_change


def may_speak_for(newer: Entry, older: Entry) -> bool:
    """Tell whether who said `newer` may change what `older` says: the same person, or another who announces a change.

    Nobody changes what somebody else says about themselves.
    """
    return not have_different_speakers(newer, older) or (
        announces_change(newer) and not speak_of_themselves(newer, older)
    )


def have_different_speakers(one: Entry, other: Entry) -> bool:
    """Tell whether two different people, both known, said them."""
    left, right = (entry.scope.user if entry.scope else None for entry in (one, other))
    return bool(left and right) and left != right


def contradict(newer: Entry, older: Entry) -> bool:
    """Tell whether two memories can't both hold, whoever said them and whichever may be replaced.

    One would replace the other by the rules, or they give one attribute of one subject two values, or one denies the
    other in the same words. For two entries of one message, only the last two cases count.
    """
    new, old = parse_statement(newer.content), parse_statement(older.content)
    if _name_different_years(new, old):
        return False
    if replaces(newer, older):
        return True
    if speak_of_themselves(newer, older) or announces_change(newer) or announces_change(older):
        return False
    pairs = [(claim, other) for claim in new.claims for other in old.claims]
    return any(
        _have_different_values(*pair, changes=False) or _contradict_about_oneself(*pair, new, old) for pair in pairs
    ) or is_opposed(newer.content, older.content)


def share_subject(newer: Entry, older: Entry) -> bool:
    """Tell whether two memories are about one subject, so that a model may decide which of them holds.

    The first subject word of each occurs in the other, or they share half of the subject words of the shorter one and
    have no other words in one place; how either begins does not matter. No common attribute belongs to two subjects.
    Of a correction that a model noted as one, a third of the subject words suffices.
    """
    if CORRECTION_TAG in newer.tags and _share_subject_words(newer, older):
        return True
    if have_different_subjects(newer.content, older.content):
        return False
    left, right = parse_statement(newer.content), parse_statement(older.content)
    for mine in left.claims:
        for theirs in right.claims:
            shared = mine.subject <= theirs.subject or theirs.subject <= mine.subject
            if mine.attribute and mine.attribute == theirs.attribute and not shared:
                return False
    if _first_subject_word(newer) in right.subject and _first_subject_word(older) in left.subject:
        return True
    return shares_frame(read_statement(newer.content), read_statement(older.content))


def _share_subject_words(newer: Entry, older: Entry) -> bool:
    new, old = read_statement(newer.content).subject, read_statement(older.content).subject
    shared = new & old
    return bool(shared) and _MIN_SHARED_CORRECTION * min(len(new), len(old)) <= len(shared)


def _first_subject_word(entry: Entry) -> str:
    """Return the first subject word of a memory; empty when it has none."""
    subject = parse_statement(entry.content).subject
    return next((word for word in content_words(entry.content[:600].casefold()) if word in subject), "")


def speak_of_themselves(one: Entry, other: Entry) -> bool:
    """Tell whether two people each spoke about themselves: one's preference says nothing about the other."""
    return have_different_speakers(one, other) and bool(
        _FIRST_PERSON.search(one.content) and _FIRST_PERSON.search(other.content)
    )


def _name_different_years(new: ParsedStatement, old: ParsedStatement) -> bool:
    """Tell whether they say different things about different years: both may be true."""
    years = [{number for number in statement.numbers if _YEAR.fullmatch(number)} for statement in (new, old)]
    return all(years) and not years[0] & years[1] and new.words - new.numbers != old.words - old.numbers


def _contradict_about_oneself(one: Claim, other: Claim, new: ParsedStatement, old: ParsedStatement) -> bool:
    """Tell whether a person states two values of a single-valued attribute of themselves."""
    return (
        one.attribute == other.attribute
        and one.attribute in _SINGLE_VALUED_ATTRIBUTES
        and not (one.ended or other.ended or _have_same_value(one, other))
        and not (one.subject or other.subject)
        and new.subject - one.value == old.subject - other.value
    )


def _ends_claim(claim: Claim, old: ParsedStatement) -> bool:
    """Tell whether the older text holds the value that `claim` ends, for the same subject."""
    is_already_ended = any(other.ended and other.value == claim.value for other in old.claims)
    if is_already_ended or not claim.value <= old.words:
        return False
    rest = old.subject - claim.value
    if claim.subject:
        return bool(claim.subject & rest) and (claim.subject <= rest or rest <= claim.subject)
    return not rest


def _have_different_values(new: Claim, old: Claim, *, changes: bool) -> bool:
    """Tell whether two claims give the same attribute of the same subject two values."""
    if new.ended or old.ended or not new.attribute or new.attribute != old.attribute or _have_same_value(new, old):
        return False
    if new.subject == old.subject:
        return bool(new.subject) or changes
    if not changes or new.attribute in _PERSONAL_ATTRIBUTES:
        return False
    return bool(new.subject & old.subject) and (new.subject <= old.subject or old.subject <= new.subject)


def _have_same_value(one: Claim, other: Claim) -> bool:
    """Tell whether two values may be the same; if both have numbers, only those are compared."""
    numbers = [frozenset(word for word in claim.value if word[:1].isdigit()) for claim in (one, other)]
    return bool(numbers[0] & numbers[1]) if all(numbers) else bool(one.value & other.value)


def _negates(clause: frozenset[str], old: ParsedStatement, *, changes: bool) -> bool:
    """Tell whether a negated clause is about the older text: about all of it, unless it announces a change."""
    return len(clause) >= _MIN_WORDS and clause <= old.words and (changes or old.subject <= clause)


def _corrects_value(new: ParsedStatement, old: ParsedStatement) -> bool:
    """Tell whether a correction ends a value of the older text, and the subject of one includes that of the other.

    Days and months are no subject: "not the 3rd" is not about everything on a 3rd.
    """
    previously_ended = {value for claim in old.claims if claim.ended for value in claim.value}
    ended_values = [_without_ordinals(claim.value) for claim in new.claims if claim.ended and not claim.subject]
    ended_values = [
        value for value in ended_values if value <= old.words | old.numbers and not value & previously_ended
    ]
    if not ended_values or old.is_negative:
        return False
    verbs, times, words = _verbs_of_nouns(), _folded_words("appointment_time"), _folded_words("correction_word")
    left = {verbs.get(word, word) for word in new.subject - times - words}.difference(*ended_values)
    right = {verbs.get(word, word) for word in old.subject - times}.difference(*ended_values)
    return bool(left & right) and (left <= right or right <= left)


def _without_ordinals(value: frozenset[str]) -> frozenset[str]:
    """Return a value with ordinal numbers as plain ones."""
    return frozenset(_ORDINAL.sub(r"\1", word) for word in value)


def _differ_in_one_number(new: ParsedStatement, old: ParsedStatement) -> bool:
    """Tell whether two texts are the same sentence except for one number each."""
    if len(new.numbers - old.numbers) != 1 or len(old.numbers - new.numbers) != 1 or new.is_negative != old.is_negative:
        return False
    shared = new.subject & old.subject
    smaller = min(len(new.subject), len(old.subject))
    return (
        len(shared) >= _MIN_WORDS
        and len(shared) == smaller
        and len(shared) >= _MIN_SHARED_SUBJECT * max(len(new.subject), len(old.subject))
    )
