"""First person to third: "I moved and I love my flat" said by Ana becomes "Ana moved and Ana loves their flat".

English is rewritten with its verb forms, also those of a second verb; what is quoted stays. `keeps_grammar` says
whether that is sure. Where it isn't, and in other languages, a text keeps its words and is only marked with the
speaker, see `attribute_to_speaker`.

Invariants: text without a first-person word comes back unchanged, and so does text that was rewritten.
"""

import re
from collections.abc import Iterator
from functools import cache

from ricordo.language.languages import Language, detect_language
from ricordo.language.packs import LANGUAGES, language_packs, pack_phrases, pack_table, pack_words
from ricordo.language.sentences import blank_quotes
from ricordo.language.words import irregular_forms, irregular_pasts, split_words
from ricordo.lazy import lazy_compile

__all__ = [
    "attribute_to_speaker",
    "drop_repeated_subject",
    "find_second_verb",
    "is_english",
    "is_foreign",
    "keeps_grammar",
    "lacks_subject",
    "mentions_name",
    "name_listener",
    "opens_with_pronoun",
    "points_back",
    "tells_event",
    "to_third_person",
]


def _placed() -> str:
    return rf"\s+(?:{pack_phrases('placed')})\b"


def _join() -> str:
    return rf",?\s+{pack_phrases('verb_join')}\s+"


def _verb_between() -> str:
    return (
        rf"{_placed()}(?:(?!{_join()}).)*(?P<and>{_join()})(?P<verb>{'|'.join(sorted(pack_words('second_verb')))})"
        rf"(?={_placed()}|\s+(?:{pack_phrases('verb_object')})\b)"
    )


_FREE_VERB = lazy_compile(
    lambda: rf"(?P<and>{_join()})(?P<verb>{'|'.join(sorted(pack_words('never_noun')))})(?![\w'’])"
)
# "I go and fetch it" right behind the verb, "I do it and then wonder" behind an adverb.
_ADJOINED_VERB = lazy_compile(r"(?P<and>\s+(?:and|or)\s+)(?P<verb>[a-z]+)(?![\w'’])")
_VERB_AFTER_ADVERB = lazy_compile(
    lambda: (
        rf"(?P<and>,?\s+(?:and|but)\s+(?:(?:{'|'.join(sorted(pack_words('adverb')))})\s+)+)"
        r"(?P<verb>[a-z]+(?:['’]t)?)(?![\w'’])"
    )
)
_VERB_BETWEEN = lazy_compile(_verb_between)
# What makes the verb behind it somebody else's, or one that takes no ending.
_ANOTHER_SUBJECT = lazy_compile(lambda: rf"[.!?;:,()]|\b(?:{pack_phrases('other_subject')})\b", re.IGNORECASE)
# Behind a verb or a preposition such a word is an object and no subject.
_OBJECT = lazy_compile(
    lambda: (
        rf"\A\s+(?:{pack_phrases('object_pronoun')})\b(?=\s+(?:\w+(?:ly|wards)\b|{pack_phrases('placed')}|(?:{pack_phrases('behind_object')})\b)|$)"
        rf"|\bto\s+(?:{pack_phrases('to_object')}|(?-i:[A-Z])\w*)(?!\w)"
    ),
    re.IGNORECASE,
)
_SEARCH_CHARS = 120
"""How many characters behind a verb its second one is looked for, so that a long text is read once."""


# "And wake up", "and run the shop": what follows makes a verb of a word that is a noun elsewhere.
_VERB_WITH_OBJECT = lazy_compile(
    lambda: (
        rf"(?P<and>{_join()})(?P<verb>[a-z]+)"
        rf"(?=\s+(?:{pack_phrases('verb_particle')}|{pack_phrases('verb_object')})\b)"
    )
)


def find_second_verb(text: str, start: int) -> re.Match[str] | None:
    """Find the verb (the group `verb`) that shares its subject with the one that ends at `start`; None without such."""
    stop = start + _SEARCH_CHARS
    known = [
        _ADJOINED_VERB.match(text, start, stop),
        _VERB_AFTER_ADVERB.search(text, start, stop),
        _VERB_WITH_OBJECT.search(text, start, stop),
    ]
    candidates = [
        _VERB_BETWEEN.match(text, start, stop),
        _FREE_VERB.search(text, start, stop),
        *(each for each in known if each and each["verb"] in _base_forms()),
    ]
    match = min(filter(None, candidates), key=lambda each: each.start("verb"), default=None)
    if match is None or _ANOTHER_SUBJECT.search(_OBJECT.sub(" ", text[start : match.start("and")])):
        return None
    return match


@cache
def _base_forms() -> frozenset[str]:
    """Return the verbs of English that are known, in their base forms."""
    lists = [pack_words(kind, "en") for kind in ("verb", "second_verb", "never_noun", "same_in_past", "looks_past")]
    return frozenset(irregular_forms()[form] for form in irregular_pasts() & irregular_forms().keys()).union(*lists)


_LETTERS = lazy_compile(r"(?<!\w)[^\W\d_]+(?:['’][^\W\d_]+)?(?!\w)")
_SPOKEN = lazy_compile(r"(?<![\w'’])(?:[Ii]['’](?:m|ve|d|ll)|[Ii]\s+(?P<verb>[A-Za-z]+))(?![\w'’])")
_MIN_LONG_WORDS = 8


def is_english(text: str, language: Language = "en") -> bool:
    """Say whether a text is English for sure, so that its words may be changed.

    `language` is that of the text around it; it decides on a few words that belong to no language.
    """
    own, foreign = _count_signs(text)
    length = len(_LETTERS.findall(text))
    if not own and not foreign:
        return language == "en" and length < _MIN_LONG_WORDS
    return own > foreign or (own == foreign and language == "en" and length > _MIN_LONG_WORDS)


def is_foreign(text: str) -> bool:
    """Say whether a text is likeliest of a language of which few phrases are known, such as Polish."""
    words = [word.casefold() for word in _LETTERS.findall(text)]
    votes = {pack.code: sum(word in _function_words(pack.code) for word in words) for pack in language_packs()}
    best = max(votes, key=votes.__getitem__)
    own, foreign = _count_signs(text)
    return foreign > own and (best not in LANGUAGES or (not votes[best] and detect_language(text) == "en"))


def _count_signs(text: str) -> tuple[int, int]:
    """Return how many words are only English and how many are only of other languages."""
    text = _blank_quotations(text)
    words = _LETTERS.findall(text)
    folded = [word.casefold().replace("’", "'") for word in words]
    spoken = [match["verb"] is None or _is_spoken_verb(match["verb"]) for match in _SPOKEN.finditer(text)]
    own = sum(spoken) + sum(word in _english_words() for word in folded)
    foreign = sum(word in _foreign_words() for word in folded)
    foreign += sum(not word.isascii() and not word.istitle() for word in words)
    # A small "i" is an article or "and" elsewhere.
    return own, foreign + (words.count("i") > sum(spoken))


@cache
def _english_words() -> frozenset[str]:
    """Return the function words of English that no other language has."""
    foreign = frozenset(word for pack in language_packs() if pack.code != "en" for word in _function_words(pack.code))
    return pack_words("stop", "en") - foreign - pack_words("homograph", "en")


@cache
def _foreign_words() -> frozenset[str]:
    foreign = frozenset(word for pack in language_packs() if pack.code != "en" for word in _function_words(pack.code))
    return foreign - pack_words("stop", "en")


@cache
def _function_words(pack_code: str) -> frozenset[str]:
    """Return the frequent words of a language by its code."""
    packs = (pack for pack in language_packs() if pack.code == pack_code)
    return frozenset(word for pack in packs for word in pack.words.get("function", "").split())


def _is_spoken_verb(word: str) -> bool:
    return _is_adverb(word.casefold()) or _is_known_verb(word.casefold())


_SEGMENT = lazy_compile(r",\s+|\s+[-–—]\s+")
_LINKED = lazy_compile(lambda: rf"(?:{pack_phrases('linking', language='en')}|because|or)\b", re.IGNORECASE)
_CONTRACTED_VERB = lazy_compile(lambda: pack_phrases("contracted_verb"), re.IGNORECASE)
_PRONOUN_CLAUSE = lazy_compile(lambda: pack_phrases("pronoun_clause"), re.IGNORECASE)
_ENDS_IN_PRONOUN = lazy_compile(lambda: rf"\b(?:{pack_phrases('object_pronoun')})[.!]*$", re.IGNORECASE)
_MAX_REMARK_WORDS = 6
_VERB_WORD = lazy_compile(r"[a-z]+(?:['’][a-z]+)?", re.IGNORECASE)


def lacks_subject(text: str, language: Language) -> bool:
    """Say whether a statement needs the one before it to say what it is about.

    It opens with a pronoun ("He has a van"), or, in English, is no sentence at all ("Off by default").
    """
    if opens_with_pronoun(text, language):
        return True
    if language == "en" and len(text.split()) <= _MAX_REMARK_WORDS and _ENDS_IN_PRONOUN.search(text):
        return True
    first, *rest = _SEGMENT.split(drop_repeated_subject(text))
    clauses = (first, *(each for each in rest[:1] if not _LINKED.match(each) and not _PRONOUN_CLAUSE.match(each)))
    return language == "en" and is_english(text) and not any(map(_contains_verb, clauses))


def opens_with_pronoun(text: str, language: Language) -> bool:
    """Say whether a statement opens with a pronoun that stands for something said before."""
    return re.match(pack_phrases("pronoun_subject", language=language), text, re.IGNORECASE) is not None


_POINTS_BACK = lazy_compile(lambda: rf"^(?:{pack_phrases('points_back')})(?!\w)", re.IGNORECASE)


def points_back(text: str) -> bool:
    """Say whether a statement opens with words of any language that need the sentence before."""
    return _POINTS_BACK.match(text) is not None


def _contains_verb(text: str) -> bool:
    words = (word.casefold().replace("’", "'") for word in _VERB_WORD.findall(text))
    return _CONTRACTED_VERB.search(text) is not None or any(map(_is_verb_form, words))


def _is_verb_form(word: str) -> bool:
    if word in pack_words("finite_verb", "en") or _is_known_verb(word) or "n't" in word:
        return word not in pack_words("not_verb", "en")
    stems = (word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y")
    return word.endswith("s") and any(stem in _base_forms() for stem in stems)


_FIRST = lazy_compile(
    lambda: rf"(?<![\w'’.-])(?P<word>{pack_phrases('first_person_word')})(?![\w'’]|\.\w|/\w)", re.IGNORECASE
)
# "You" only where it cannot be the subject: before it a preposition, behind it the end of the clause.
_SECOND = lazy_compile(
    lambda: (
        rf"(?<![\w'’.-])(?:(?P<own>{pack_phrases('listener_own')})(?= \w)"
        rf"|(?P<short>{pack_phrases('listener_verb')})(?!\w)"
        rf"|(?:{pack_phrases('listener_place')})(?P<after>you)(?!\w)|(?P<last>you)(?=\s*(?:[.!;,]|$)))"
    ),
    re.IGNORECASE,
)
_INVERTED = lazy_compile(lambda: rf"\b(?P<verb>{pack_phrases('inverted_verb')})(?P<space>\s+)\Z", re.IGNORECASE)
_AHEAD = lazy_compile(r"[ \t]+(?P<verb>[A-Za-z]+(?:['’]t)?)")
# Before "and I" with nothing else in the clause: two subjects, so that the verb is a plural already.
_TWO_SUBJECTS = lazy_compile(
    lambda: (
        rf"(?:^|[,;:.!?]\s+|\b(?:{pack_phrases('clause_lead')})\s+)"
        rf"(?:{pack_phrases('somebody')}|(?-i:[A-Z])[\w'’-]*)\s+and\s+$"
    ),
    re.IGNORECASE,
)
# Somebody else between the speaker's name and a further "my": "their" could mean either.
_SOMEBODY_ELSE = lazy_compile(lambda: rf"\b(?:{pack_phrases('somebody_else')})\b")
_HABIT = lazy_compile(lambda: rf"\b(?:{pack_phrases('habit')})\b", re.IGNORECASE)
# A quotation that nothing closes: what follows its mark is not the speaker's.
_OPEN_QUOTATION = lazy_compile(r"[“«„「][^”»“」]*\Z|(?<!\w)\"(?=\w)[^\"]*\Z")
_NUMBERED = lazy_compile(lambda: rf"\b(?:{pack_phrases('numbered')})\s+$", re.IGNORECASE)
_SELF_PLACE = lazy_compile(lambda: rf"\b(?:I \w+|{pack_phrases('self_place')})\s+$", re.IGNORECASE)
_NOUN_MINE = lazy_compile(lambda: rf"\b(?:{pack_phrases('noun_mine')})\s+$", re.IGNORECASE)
_EXCLAMATION = lazy_compile(lambda: rf"\s*(?:[,.!?;]|$|{pack_phrases('exclaimed')})", re.IGNORECASE)
_CLAUSE_END = lazy_compile(
    lambda: rf"\s*(?:[.!?;:)\]]|$)|\s+(?:{pack_phrases('name_join', language='en')})\s+(?:(?i:my)\b|[A-Z])"
)
_CLAUSE_BREAK = lazy_compile(r"[,;:.!?]")
_OBJECT_BEHIND = lazy_compile(lambda: rf"\s+(?:{pack_phrases('verb_object')})\b")
_AND_BEFORE = lazy_compile(lambda: rf"\b(?:{pack_phrases('name_join', language='en')})\s+$", re.IGNORECASE)
_MIN_PAST_CHARS = 4


def to_third_person(text: str, name: str) -> str:
    """Return an English text with the speaker's name for I, me, my, mine and myself, verbs agreeing; quotes stay.

    The same text where the name is itself such a word.
    """
    if _FIRST.fullmatch(name):
        return text
    text = _agree_second_verbs(text)
    pieces: list[str] = []
    position = 0
    for match in _iter_first_persons(text):
        if match.start() < position:
            continue
        pieces.append(_agree_verb_before(text[position : match.start()], match["word"]))
        replaced, position = _replace_first_person(text, match, name, again=_is_last_person(pieces, name))
        pieces.append(replaced)
    return "".join(pieces) + text[position:]


def _iter_first_persons(text: str) -> Iterator[re.Match[str]]:
    """Yield the words for the speaker outside of quotations; not "ME", and not a numeral such as in "World War I"."""
    for match in _FIRST.finditer(_blank_quotations(text)):
        before = text[: match.start()]
        if match["word"] != "ME" and not (match["word"] == "I" and _NUMBERED.search(before[-20:])):
            yield match


def _blank_quotations(text: str) -> str:
    return _OPEN_QUOTATION.sub(_blank, blank_quotes(text))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def keeps_grammar(text: str) -> bool:
    """Say whether `to_third_person` keeps for sure what an English text says, in correct grammar.

    It doesn't where the verb's past looks like its present, as "I read them" may become "reads" or "read", and where
    the verb isn't known or stands apart ("I, for one, agree").
    """
    return all(_is_surely_rewritten(text, match) for match in _iter_first_persons(text))


def _is_surely_rewritten(text: str, match: re.Match[str]) -> bool:
    word, before, after = match["word"].casefold(), text[: match.start()], text[match.end() :]
    if word == "i":
        return _has_sure_verb(text, match)
    if word == "myself":
        return _SELF_PLACE.search(before[-40:]) is not None
    if word == "mine":
        return _NOUN_MINE.search(before[-20:]) is None
    return word != "my" or _EXCLAMATION.match(after) is None


def _has_sure_verb(text: str, match: re.Match[str]) -> bool:
    before = text[: match.start()]
    is_free = _follows_auxiliary(before) or _TWO_SUBJECTS.search(before[-60:]) is not None
    position = match.end()
    while (ahead := _AHEAD.match(text, position)) and _is_adverb(ahead["verb"].casefold()):
        position = ahead.end()
    if ahead is None:
        return is_free or (match["word"] == "I" and _CLAUSE_END.match(text, position) is not None)
    verb = ahead["verb"].casefold().replace("’", "'")
    if verb in pack_words("same_in_past"):
        return is_free or _HABIT.search(_clause_of(text, match)) is not None
    has_object = _OBJECT_BEHIND.match(text, ahead.end()) is not None and not verb.endswith("s")
    return is_free or _is_known_verb(verb) or has_object


def _is_known_verb(verb: str) -> bool:
    return (
        verb in _base_forms()
        or verb in irregular_pasts()
        or verb in pack_words("fixed_verb")
        or verb in pack_table("third_person_form")
        or (verb.endswith("ed") and len(verb) > _MIN_PAST_CHARS)
    )


def _is_adverb(word: str) -> bool:
    is_formed = word.endswith("ly") and word not in pack_words("looks_adverb")
    return word in pack_words("adverb") or (is_formed and len(word) > _MIN_PAST_CHARS)


_REPEATED_SUBJECT = lazy_compile(
    lambda: (
        rf"^(?P<subject>(?:(?:{pack_phrases('subject_article')}) )?(?-i:[A-Z])[\w-]+(?: (?-i:[A-Z])[\w-]+)?),"
        rf" (?:{pack_phrases('repeated_pronoun')})(?= (?P<verb>[a-z]+))"
    ),
    re.IGNORECASE,
)


def drop_repeated_subject(text: str) -> str:
    """Return an English text without a pronoun that repeats its subject: "Wanda Pych, she runs the tests"."""
    match = _REPEATED_SUBJECT.match(text)
    return f"{match['subject']}{text[match.end() :]}" if match and _is_verb_form(match["verb"]) else text


def name_listener(text: str, listener: str) -> str:
    """Return an English text with the listener's name for "your" and for "you" where it is no plain subject.

    "I learned it from you" said to Bo becomes "I learned it from Bo"; "you know" stays, for it may mean anybody.
    """

    def replacement(match: re.Match[str]) -> str:
        if match["own"]:
            return f"{listener}'s"
        return f"{listener} {pack_table('contraction')[match['short'][4:].casefold()]}" if match["short"] else listener

    return _SECOND.sub(replacement, text)


def attribute_to_speaker(text: str, name: str, language: Language) -> str:
    """Return the text marked with who said it: "Ana: …"; a full-width colon for Chinese and Japanese."""
    return f"{name}：{text}" if language in {"zh", "ja"} else f"{name}: {text}"


def mentions_name(text: str, name: str) -> bool:
    """Say whether the name, or its first word, stands in the text as a word of its own."""
    return any(
        re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text)
        for part in {name.strip(), *name.split(maxsplit=1)[:1]}
        if part
    )


def _is_last_person(pieces: list[str], name: str) -> bool:
    """Say whether the name is the last person that the pieces speak of, so that "their" can only mean that one."""
    _, before, since = "".join(pieces).rpartition(name)
    return bool(before) and _SOMEBODY_ELSE.search(since) is None


def _replace_first_person(text: str, match: re.Match[str], name: str, *, again: bool) -> tuple[str, int]:
    """Return what stands for one first-person word (with the verb after it) and where the text goes on."""
    word = match["word"].casefold().replace("’", "'")
    if word in {"my", "mine"}:
        return ("their" if again and word == "my" else f"{name}'s"), match.end()
    if word == "me":
        return name, match.end()
    if word == "myself":
        return "themselves", match.end()
    if word in {"im", "ive"}:
        return f"{name} {pack_table('contraction')[word[1:]]}", match.end()
    if "'" in word:
        verb = pack_table("contraction")[word.partition("'")[2]]
        if verb == "would" and _is_past_next(text, match.end()):
            verb = "had"
        return f"{name} {verb}", match.end()
    return _agree_next_verb(text, match, name)


def _agree_second_verbs(text: str) -> str:
    """Agree what "I" does besides: "I live in Oslo and work as a nurse" gives "I live in Oslo and works as a nurse"."""
    spans: list[tuple[int, int]] = []
    for match in _iter_first_persons(text):
        end_position = _find_present_end(text, match)
        while end_position is not None and (second := find_second_verb(text, end_position)):
            spans.append(second.span("verb"))
            end_position = second.end()
    for start, end in reversed(spans):
        verb = text[start:end]
        agreed = _add_ending(verb) if verb in pack_words("same_in_past") else _conjugate(verb)
        text = f"{text[:start]}{agreed}{text[end:]}"
    return text


def _find_present_end(text: str, match: re.Match[str]) -> int | None:
    """Return where the verb ends that stands in the present and has its speaker for a subject; None without such."""
    word = match["word"].casefold().replace("’", "'")
    if word in {"i'm", "im"}:
        return match.end()
    verb = _find_verb(text, match.end(), before=text[: match.start()]) if word == "i" else None
    if verb is None or verb["verb"] in pack_words("perception_verb"):
        return None
    return verb.end() if _agree_verb(verb["verb"], _clause_of(text, match)) != verb["verb"] else None


def _clause_of(text: str, match: re.Match[str]) -> str:
    """Return what stands around a word up to the next signs."""
    return f"{_CLAUSE_BREAK.split(text[: match.start()])[-1]} {_CLAUSE_BREAK.split(text[match.end() :])[0]}"


def _agree_next_verb(text: str, match: re.Match[str], name: str) -> tuple[str, int]:
    """Agree the verb after "I", looking over adverbs: "I really need" gives "Ana really needs"."""
    ahead = _find_verb(text, match.end(), before=text[: match.start()])
    if ahead is None:
        return name, match.end()
    agreed = _agree_verb(ahead["verb"], _clause_of(text, match))
    return f"{name}{text[match.end() : ahead.start('verb')]}{agreed}", ahead.end()


def _agree_verb(verb: str, clause: str) -> str:
    """Return the third-person form; a verb whose past looks like its present takes an ending in a habit only."""
    if verb.casefold() in pack_words("same_in_past") and _HABIT.search(clause):
        return _add_ending(verb)
    return _conjugate(verb)


def _agree_verb_before(text: str, word: str) -> str:
    """Agree an auxiliary that stands before its "I": "what do I say" gives "what does Ana say"."""
    match = _INVERTED.search(text) if word.casefold() == "i" else None
    return f"{text[: match.start()]}{_conjugate(match['verb'])}{match['space']}" if match else text


def _find_verb(text: str, position: int, *, before: str) -> re.Match[str] | None:
    """Find the verb behind an "I" that ends at `position`; None where it keeps its form or there is none."""
    if _follows_auxiliary(before) or _TWO_SUBJECTS.search(before[-60:]):
        return None
    for _ in range(3):
        ahead = _AHEAD.match(text, position)
        if ahead is None or not _is_adverb(ahead["verb"].casefold()):
            return ahead
        if ahead["verb"] in pack_words("both", "en") and _AND_BEFORE.search(before):
            return None
        position = ahead.end()
    return None


def _is_past_next(text: str, position: int) -> bool:
    """Say whether a participle stands there, over adverbs: then "'d" means had."""
    for _ in range(3):
        ahead = _AHEAD.match(text, position)
        if ahead is None:
            return False
        verb, position = ahead["verb"].casefold(), ahead.end()
        if verb not in pack_words("adverb"):
            return (
                verb in pack_words("after_had")
                or verb in irregular_pasts()
                or (verb.endswith("ed") and verb not in pack_words("looks_past"))
            )
    return False


_LASTS = lazy_compile(r"\b(?:since|always|never|ever|for (?:\d+|[a-z]+) (?:years|months|decades))\b", re.IGNORECASE)


def tells_event(predicate: str) -> bool:
    """Tell whether an English predicate says what somebody did once, and not what somebody is like.

    Its verb is in the past, or behind "has", and is none that changes a life, such as "moved".
    """
    words = [word for word in split_words(predicate) if word not in pack_words("adverb")][:2]
    if words and words[0] in {"has", "have", "s"}:
        del words[0]
    if not words or _LASTS.search(predicate) or words[0] in pack_words("life_verb") | pack_words("auxiliary_past"):
        return False
    verb = words[0]
    is_regular = len(verb) > 3 and verb.endswith("ed") and verb not in pack_words("looks_past")
    return is_regular or verb in irregular_pasts() - pack_words("same_in_past") - {"been", "had"}


def _follows_auxiliary(before: str) -> bool:
    """After an auxiliary ("did I", "am I", "let I") the verb stays in its base form."""
    rest, _, last = before.rstrip().rpartition(" ")
    is_month = last.istitle() and rest[-1:].isalnum()
    return last.casefold() in pack_words("before_base_form") and not is_month


def _conjugate(verb: str) -> str:
    """Return the third-person form of a base verb; past forms and modals as they are."""
    folded = verb.casefold().replace("’", "'")
    irregular = pack_table("third_person_form").get(folded)
    if irregular is not None:
        return irregular
    if (
        folded in pack_words("fixed_verb")
        or folded in irregular_pasts()
        or folded in pack_words("same_in_past")
        or not folded.isalpha()
    ):
        return verb
    if folded.endswith("ed") and folded not in pack_words("looks_past"):
        return verb
    return verb if folded.endswith("s") and not folded.endswith("ss") else _add_ending(verb)


def _add_ending(verb: str) -> str:
    folded = verb.casefold()
    if folded.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if folded.endswith("y") and folded[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
