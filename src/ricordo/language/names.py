"""Proper names, found by their capitals, and introductions such as "my name is Ana". High precision before reach.

A run of capitalised words is a name unless the capital is only the sentence's first letter; in German only runs of two
words and words with inner capitals count. Behind openings that leave a doubt ("I'm late"), a word that is a state, an
origin or a trade is no name.

Invariant: a name stands verbatim in its text.
"""

import re
from dataclasses import dataclass

from ricordo.language.languages import Language, detect_language
from ricordo.language.sentences import split_sentences
from ricordo.language.words import is_stop_word
from ricordo.lazy import lazy_compile

__all__ = ["Introduction", "NameMention", "find_introduction", "find_names"]


_CAP = r"[^\W\d_a-zà-öø-ÿ][\w'’&-]*"
_RUN = lazy_compile(
    rf"(?<![\w/@#.]){_CAP}(?:[ ](?:(?:of|the|de|da|di|du|del|della|van|von|der|la|le|y|&)[ ]){{0,2}}{_CAP}){{0,5}}"
)
_NOT_NAMES_LIST = """
i i'm i've i'd i'll monday tuesday wednesday thursday friday saturday sunday january february march april may june
july august september october november december mr mrs ms dr prof ok wow hey hi thanks yeah oh omg lol todo fyi api
url montag dienstag mittwoch donnerstag freitag samstag sonntag
"""
_NOT_NAMES = frozenset(_NOT_NAMES_LIST.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class NameMention:
    """A name and where it stands (character offsets)."""

    text: str
    start: int
    end: int


def find_names(text: str, language: Language | None = None) -> tuple[NameMention, ...]:
    """Return the proper names of a text in order, repeats kept; empty where the script has no capitals."""
    tongue = language or detect_language(text)
    found: list[NameMention] = []
    for sentence in split_sentences(text):
        if sentence.kind == "code" or _is_all_capitals(sentence.text):
            continue
        for run in _RUN.finditer(sentence.text):
            found.extend(_build_mentions(sentence.start, run, tongue))
    return tuple(found)


def _build_mentions(offset: int, run: re.Match[str], language: Language) -> list[NameMention]:
    words = run.group().split(" ")
    start = run.start()
    while words and (
        _is_common(words[0], language) or (start == 0 and len(words) == 1 and not _has_inner_capital(words[0]))
    ):
        start += len(words.pop(0)) + 1
    while words and words[-1].islower():
        words.pop()
    text = " ".join(words).rstrip("'’-&").removesuffix("'s").removesuffix("’s")
    if len(text) < 2 or (language == "de" and len(words) == 1 and not _has_inner_capital(text)):
        return []
    return [NameMention(text=text, start=offset + start, end=offset + start + len(text))]


def _is_common(word: str, language: Language) -> bool:
    plain = word.casefold().replace("’", "'")
    return plain in _NOT_NAMES or plain.removesuffix("s") in _NOT_NAMES or is_stop_word(plain, language)


def _has_inner_capital(word: str) -> bool:
    return any(char.isupper() for char in word[1:])


def _is_all_capitals(sentence: str) -> bool:
    letters = [char for char in sentence if char.isalpha()]
    return len(letters) > 12 and sum(char.isupper() for char in letters) * 2 > len(letters)


_GREETING = (
    r"(?:(?P<greeting>hi|hello|hey|hiya|good (?:morning|afternoon|evening)|hallo|guten (?:tag|morgen|abend)|moin|"
    r"servus|"
    r"hola|buenas|bonjour|salut|ciao|buongiorno|olá|oi)"
    r"(?:,? (?:there|all|everyone|team|zusammen|a todos|à tous))?[,.! –-]+)?"
)
_CERTAIN_OPENINGS: dict[Language, str] = {
    "en": r"my name(?:['’]s| is)|(?:please |just |you can )*call me|i go by",
    "de": r"ich hei(?:ß|ss)e|mein name ist|(?:bitte )?nenn mich",
    "es": r"me llamo|mi nombre es|ll[aá]mame",
    "fr": r"je m['’]appelle|mon nom est|appelle[sz]?-moi",
    "it": r"mi chiamo|il mio nome è|chiamami",
    "pt": r"(?:o )?meu nome é|me chamo|chamo-me|(?:pode )?me chama(?:r)? de",
}
_LIKELY_OPENINGS: dict[Language, str] = {
    "en": r"i['’]?m|i am",
    "de": r"ich bin",
    "es": r"(?:yo )?soy",
    "fr": r"(?:moi,? )?(?:je suis|c['’]est)",
    "it": r"(?:io )?sono",
    "pt": r"(?:eu )?sou",
}
_GIVEN_NAME = (
    r"(?-i:(?P<name>[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]*"
    r"(?: (?:(?:de|da|di|du|del|della|van|von|der|dos|la|le) ){0,2}[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]*){0,3}))"
)
_CLAUSE_END = r"(?![\w'’-])(?:\s*(?:$|[.,;!(–—])|\s+(?:- |(?:and|from|here|by the way|btw|und|aus|y|et|e|de)\b))"
_NOTHING_ELSE = lazy_compile(r"[\s.!]*")
_PATTERNS: tuple[tuple[Language, bool, re.Pattern[str]], ...] = tuple(
    (language, certain, lazy_compile(rf"{_GREETING}(?:{opening})\s+{_GIVEN_NAME}{_CLAUSE_END}", re.IGNORECASE))
    for openings, certain in ((_CERTAIN_OPENINGS, True), (_LIKELY_OPENINGS, False))
    for language, opening in openings.items()
)
_ORIGINS = """
african albanian algerian american arab argentine argentinian asian australian austrian bavarian belgian belge brazilian
british bulgarian canadian canadien catalan chilean chinese colombian croatian cuban czech danish dutch egyptian english
estonian ethiopian european filipino finnish french français française german greek hungarian icelandic indian
indonesian iranian iraqi irish israeli italian japanese kenyan korean latvian lebanese lithuanian malaysian mexican
moroccan nigerian norwegian pakistani persian peruvian polish portuguese romanian russian scottish serbian singaporean
slovak slovenian spanish suisse swedish swiss syrian taiwanese thai tunisian turkish ukrainian venezuelan vietnamese
welsh alemán alemana español española francés francesa inglés inglesa italiano italiana mexicano mexicana argentino
argentina colombiano colombiana chileno chilena peruano peruana portugués portuguesa brasileño brasileña brasileiro
brasileira português allemand allemande anglais anglaise espagnol espagnole italien italienne tedesco tedesca
inglese francese spagnolo spagnola alemão alemã agnostic anglican atheist buddhist catholic christian hindu jewish
lutheran mormon muslim orthodox protestant deutsche deutscher deutsch berliner münchner hamburger
"""
_STATES = """
able afraid alive alone angry asap available away awake aware back better blocked bored broke busy calm cancer capricorn
certain cold confident confused content crazy curious cool dead deaf disappointed done down drunk early excited
exhausted famous fine first free full gemini glad gone good grateful great happy healthy here home honored hopeful
hot hungry ill impressed inspired in late later lazy left lost mad married maybe more nervous new next off okay old
online out
over pleased pregnant prepared proud quick ready retired right sad safe scared serious sick single sleepy slow sober
sorry stuck stupid sure surprised thankful thirsty through tired today tomorrow tonight unable undecided unhappy unsure
up upset vegan vegetarian warm weak well wet willing worried wrong young gay lesbian straight bisexual trans left-handed
mother father mom dad mum mama papa oma opa student studentin vegetarier veganer team batman legend superman santa
admin analyst architect artist assistant ceo cfo chef coo cto consultant coach customer data designer dev developer
devops director doctor editor engineer entwickler entwicklerin expert founder freelancer frontend backend fullstack head
intern junior lawyer lead manager nurse owner principal product professor programmer project qa researcher sales senior
software staff support teacher tester user writer arzt ärztin lehrer lehrerin chefin
"""
_NO_NAMES = frozenset((_ORIGINS + _STATES).split())
_PREFIXED = lazy_compile(r"(?:pro|anti|non|ex|semi|post|pre|self)-", re.IGNORECASE)
_STATE_ENDINGS = lazy_compile(
    r"\w{3,}ing|\w{2,}[cdfgknpstvxz]ed|\w{3,}(?:ful|less|ous|able|ible|ically|ably)", re.IGNORECASE
)
_NAMES_IN_ING = frozenset(["sterling", "irving", "fleming", "harding", "manning", "channing", "golding", "browning"])
# German trades and origins are nouns with a capital: behind a bare "ich bin" they can't be told from a name.
_GERMAN_NOUNS = lazy_compile(
    r"\w+(?:er|in|ist|ent|ant|eur|or|iker|arzt|mann|frau|ling|ung|heit|keit|fan|chef|profi|kind|nerd|gast|e)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Introduction:
    """The name somebody gives of themselves and the language they do it in.

    `is_whole` is true when the sentence says nothing else.
    """

    name: str
    language: Language
    is_whole: bool


def find_introduction(sentence: str) -> Introduction | None:
    """Return the introduction that a sentence opens with; None when it opens with anything else."""
    for language, certain, pattern in _PATTERNS:
        match = pattern.match(sentence)
        if match and _is_name(match["name"], certain=certain) and (certain or _is_plausible(match, language)):
            tail = sentence[match.end("name") :]
            return Introduction(
                name=match["name"], language=language, is_whole=_NOTHING_ELSE.fullmatch(tail) is not None
            )
    return None


def _is_name(name: str, *, certain: bool) -> bool:
    words = name.casefold().split()
    if any(word in _NO_NAMES for word in words) or _PREFIXED.match(name):
        return False
    if not certain and (name.isupper() or _is_state(words[0])):
        return False
    return [mention.text for mention in find_names(f"with {name}", "en")] == [name]


def _is_state(word: str) -> bool:
    return _STATE_ENDINGS.fullmatch(word) is not None and word not in _NAMES_IN_ING


def _is_plausible(match: re.Match[str], language: Language) -> bool:
    if language != "de" or match["greeting"] or " " in match["name"]:
        return True
    return _GERMAN_NOUNS.fullmatch(match["name"]) is None
