"""Claims: what a memory states about a subject, found by rules, so that two memories can be compared. Pure.

A claim has a subject (content words), an attribute and a value. The rules are narrow on purpose: a text that fits no
pattern makes no claim, and nothing is decided about it. A table lists alternatives, such as databases, of which a
project usually has one at a time: naming another one means a change.

A text also has values of types, such as amounts with their units and days, and may say that some of them end.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache, lru_cache
from itertools import chain

from ricordo.language import Language, content_words, detect_language, is_correction, split_words
from ricordo.language.languages import dominant_script
from ricordo.language.packs import LANGUAGES, PhraseKind, pack_phrases, pack_table, pack_words
from ricordo.language.quantities import find_quantities
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "FIRST_EASTERN",
    "Claim",
    "Ending",
    "ParsedStatement",
    "TypedValue",
    "attribute_of",
    "blank",
    "calendar_words",
    "canonical_name",
    "claimed_attributes",
    "detect_script_language",
    "find_values",
    "mask_values",
    "may_name_alternative",
    "parse_statement",
    "read_ending",
    "statement_words",
    "without_speaker",
    "without_start",
]


_ALTERNATIVES = {
    "database": """
        postgres postgresql mysql mariadb sqlite mongodb mongo cockroachdb oracle mssql dynamodb cassandra duckdb
        firebird couchdb planetscale supabase neo4j
    """,
    "package manager": "npm pnpm yarn bun pip poetry uv pipenv conda bundler composer",
    "test runner": "jest vitest mocha jasmine pytest unittest nose rspec minitest junit testng",
    "formatter": "black prettier yapf autopep8 biome dprint",
    "linter": "eslint pylint flake8 ruff tslint",
    "front end": "react vue angular svelte jquery preact solidjs ember",
    "web framework": "django flask fastapi express fastify koa rails laravel gin actix axum nestjs",
    "broker": "rabbitmq kafka nats sqs pulsar activemq",
    "cloud": "aws azure gcp hetzner digitalocean heroku fly.io",
    "continuous integration": "jenkins circleci travis buildkite teamcity",
    "version control": "git mercurial subversion svn perforce",
    "chat": "slack mattermost discord zulip",
    "tracker": "jira linear trello asana redmine",
    "editor": "vim neovim emacs vscode sublime intellij pycharm zed",
    "payment provider": "stripe adyen paypal mollie braintree klarna",
    "indentation": "tabs spaces",
}


_ATTRIBUTE_OF: Mapping[str, str] = {
    value: attribute for attribute, row in _ALTERNATIVES.items() for value in row.split()
}
_ANY_ALTERNATIVE = lazy_compile("|".join(map(re.escape, sorted(_ATTRIBUTE_OF))))
_SYNONYMS: Mapping[str, str] = {"postgres": "postgresql", "mongo": "mongodb", "svn": "subversion"}


def attribute_of(word: str) -> str:
    """Return the category of a lower-case name, such as `database`; empty when it is unknown."""
    return _ATTRIBUTE_OF.get(word, "")


def may_name_alternative(text: str) -> bool:
    """Tell whether a lower-case text may contain a name from the table."""
    return _ANY_ALTERNATIVE.search(text) is not None


def canonical_name(word: str) -> str:
    """Return the canonical one of two names for a thing; any other word unchanged."""
    return _SYNONYMS.get(word, word)


_ANY_NEGATION = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('claim_negation', edges=True)})(?!\w)|{pack_phrases('negation_suffix')}"
        rf"|{pack_phrases('claim_negation', edges=False)}"
    ),
    re.IGNORECASE,
)
# Only negations that hold from now on: "hasn't" and "didn't" deny no other memory, "not only" no part of it.
_PRESENT_NEGATION = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('present_negation')})(?!\w)(?!\s+(?:{pack_phrases('only')})(?!\w))",
    re.IGNORECASE,
)
_CLAUSE_END = lazy_compile(r"[.!?;:\n。！？]\s?")
_CONTEXT_CHARACTERS = 80
_MAX_CHARACTERS = 600
_CLAUSE_BREAK = lazy_compile(lambda: rf"[.,;:!?()]\s|[.,;:!?]$|\s(?:{pack_phrases('clause_join')})\s")
_CHANGE = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('change', edges=True)})|{pack_phrases('change', edges=False)}", re.IGNORECASE
)
_FROM_TO = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('from')})\s+(?P<old>[\w.+#@/-]+(?: [\w.+#-]+){{0,3}}?)\s+"
        rf"(?:{pack_phrases('to')})\s+(?P<new>[\w.+#@/-]+)"
    ),
    re.IGNORECASE,
)
_JOINED_FROM_TO = lazy_compile(lambda: pack_phrases("from_to"))
# a German verb is at the end: "von Jenkins auf Drone umgestellt"
_FINAL_CHANGE_VERB = lazy_compile(lambda: rf"(?<!\w)(?:{pack_phrases('change_verb')})(?!\w)", re.IGNORECASE)
_REPLACED_VALUE = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('instead_of')})\s+(?:(?:{pack_phrases('value_lead')})\s+)?(?P<old>[\w.+#@/-]+)",
    re.IGNORECASE,
)


def _home_verbs() -> str:
    now, place = pack_phrases("now"), pack_phrases("home_place")
    return rf"(?:{pack_phrases('home_verb')})(?:\s+(?:{now}))?\s+(?:{place})"


def _attribute_pattern(verbs: Callable[[], str]) -> re.Pattern[str]:
    return lazy_compile(lambda: rf"(?<!\w)(?:{verbs()})\s+(?P<value>[^.,;:!?\n()]{{1,60}})", re.IGNORECASE)


_ATTRIBUTES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("home", _attribute_pattern(_home_verbs)),
    ("work", _attribute_pattern(lambda: pack_phrases("work_verb"))),
    ("port", _attribute_pattern(lambda: pack_phrases("port_verb"))),
    ("name", _attribute_pattern(lambda: pack_phrases("name_verb"))),
)
_COPULA = lazy_compile(
    lambda: (
        rf"^(?P<subject>(?:{pack_phrases('subject_lead')})\s[^.,;:!?\n]{{1,60}}?)\s"
        rf"(?:{pack_phrases('copula')})\s(?:(?:{pack_phrases('now')}) )?"
        rf"(?P<value>(?:(?<!\w)(?:{'|'.join(sorted(pack_words('title')))})\.|[^.,;:!?\n]){{1,60}})"
    ),
    re.IGNORECASE,
)
_JOINED_COPULA = lazy_compile(lambda: pack_phrases("copula_claim"))
_EXACT_VALUE = lazy_compile(r"\d|[A-Z\u00c4\u00d6\u00dc]\w|[`/@_]|[\u3040-\u30ff\u3400-\u9fff]")
_NOT_WORDS = lazy_compile(r"\W+")
_QUOTES = "`'\"“”„«»()[]*_.,;:!?"
_NUMBER = lazy_compile(r"\d+(?:[.:,/-]\d+)*")


# Words without a subject: they only express a change or a general action.
@cache
def _generic_words() -> frozenset[str]:
    raw = pack_words("claim_generic") | pack_words("claim_generic_form")
    folded = (content_words(" ".join(pack_words("claim_generic", each)), each) for each in LANGUAGES)
    return raw | frozenset(content_words(" ".join(raw), "en")) | frozenset(chain(*folded))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement: the `attribute` of `subject` is `value`, or is no longer `value` if `ended`."""

    subject: frozenset[str]
    attribute: str
    value: frozenset[str]
    ended: bool = False


@dataclass(frozen=True, kw_only=True)
class ParsedStatement:
    """The parts of a text that comparisons need.

    `normalized` is the text without case, punctuation and white space, `words` the content words, `subject` those that
    are neither numbers nor generic, `numbers` the numbers. `negated_clauses` holds the content words of each negated
    clause. `announces_change` says that the text announces a change, `is_negative` that it contains a negation.
    """

    normalized: str
    words: frozenset[str]
    subject: frozenset[str]
    numbers: frozenset[str]
    claims: tuple[Claim, ...]
    negated_clauses: tuple[frozenset[str], ...] = field(default=())
    announces_change: bool = False
    is_negative: bool = False


@lru_cache(maxsize=4096)
def parse_statement(text: str) -> ParsedStatement:
    """Return the parsed first 600 characters of a text; without claims if no rule fits."""
    excerpt = text[:_MAX_CHARACTERS]
    words = _content_words(excerpt)
    numbers, generic = frozenset(_NUMBER.findall(excerpt)), _generic_words()
    return ParsedStatement(
        normalized=_NOT_WORDS.sub(" ", text.casefold()).strip(),
        words=words,
        subject=frozenset(word for word in words if word not in generic and not word[:1].isdigit()),
        numbers=numbers,
        claims=tuple(
            dict.fromkeys(
                (
                    *_find_copula_claims(excerpt),
                    *_find_ended_claims(excerpt),
                    *_find_attribute_claims(excerpt),
                    *_find_alternative_claims(excerpt),
                )
            )
        ),
        negated_clauses=tuple(filter(None, map(_negated_words, _PRESENT_NEGATION.finditer(excerpt)))),
        announces_change=bool(_CHANGE.search(excerpt)) or is_correction(excerpt),
        is_negative=bool(_ANY_NEGATION.search(excerpt)),
    )


def statement_words(text: str) -> frozenset[str]:
    """Return only the content words and numbers of a parsed text."""
    excerpt = text[:_MAX_CHARACTERS]
    return _content_words(excerpt) | frozenset(_NUMBER.findall(excerpt))


def claimed_attributes(text: str) -> frozenset[str]:
    """Return the attributes of the claims in a text; most texts make none, and are not parsed."""
    return (
        frozenset(claim.attribute for claim in parse_statement(text).claims)
        if _may_make_claim(text[:_MAX_CHARACTERS])
        else frozenset()
    )


def _may_make_claim(text: str) -> bool:
    patterns = (_COPULA.match, _JOINED_COPULA.match, *(pattern.search for _, pattern in _ATTRIBUTES))
    return any(search(text) for search in patterns) or may_name_alternative(text.casefold())


def _content_words(text: str) -> frozenset[str]:
    """Return the content words of the text in lower case, because case would split PostgreSQL into two words."""
    return frozenset(content_words(" ".join(map(canonical_name, text.casefold().split(" "))), detect_language(text)))


def _subject_words(text: str) -> frozenset[str]:
    return _content_words(text) - _generic_words()


def _text_before(match: re.Match[str]) -> str:
    """Return the text before a match in its clause, at most 80 characters."""
    return _CLAUSE_END.split(match.string[max(match.start() - _CONTEXT_CHARACTERS, 0) : match.start()])[-1]


def _find_ended_claims(text: str) -> list[Claim]:
    """Return the ended claims: the X of "from X to Y", "not X", "instead of X"."""
    matches = [match for match in _FROM_TO.finditer(text) if _announces_change(match)]
    claims = [
        Claim(subject=_subject_words(_text_before(match)), attribute="", value=_subject_words(match["old"]), ended=True)
        for match in (*matches, *_JOINED_FROM_TO.finditer(text))
    ]
    for match in _REPLACED_VALUE.finditer(text):
        old = match["old"].rstrip(".-/")
        value = _subject_words(old)
        if value and (_EXACT_VALUE.search(old) or attribute_of(old.casefold())):
            claims.append(Claim(subject=frozenset(), attribute="", value=value, ended=True))
    return [claim for claim in claims if claim.value]


def _announces_change(match: re.Match[str]) -> bool:
    """Tell whether a "from X to Y" is a change, and not a route or a time span."""
    after = _CLAUSE_END.split(match.string[match.end() : match.end() + _CONTEXT_CHARACTERS])[0]
    return bool(_CHANGE.search(_text_before(match) + match.group()) or _FINAL_CHANGE_VERB.search(after))


def _find_attribute_claims(text: str) -> list[Claim]:
    claims = []
    for attribute, pattern in _ATTRIBUTES:
        for match in pattern.finditer(text):
            value = _subject_words(match["value"])
            if value and (_EXACT_VALUE.search(match["value"]) or _is_bare_name(attribute, match["value"])):
                claims.append(Claim(subject=_subject_words(_text_before(match)), attribute=attribute, value=value))
    return claims


def _is_bare_name(attribute: str, value: str) -> bool:
    """Tell whether the value of a `name` claim is one word, in upper or lower case."""
    return attribute == "name" and len(value.split()) == 1


def _find_copula_claims(text: str) -> list[Claim]:
    """Return "the A of B is C" as the attribute A of the subject B: the words before the verb are the attribute."""
    claims = []
    for pattern in (_COPULA, _JOINED_COPULA):
        match = pattern.match(text)
        if match and _EXACT_VALUE.search(match["value"]) and len(match["value"].split()) <= 5:
            subject, value = _subject_words(match["subject"]), _subject_words(match["value"]) - pack_words("title")
            if subject and value and not subject & value:
                claims.append(Claim(subject=subject, attribute=" ".join(sorted(subject)), value=value))
    return claims


def _find_alternative_claims(text: str) -> list[Claim]:
    """Return a claim for each known name that is not replaced in the text, with its clause as the subject."""
    replaced_words = {word for match in _REPLACED_VALUE.finditer(text) for word in split_words(match["old"].casefold())}
    replaced_words |= {word for match in _FROM_TO.finditer(text) for word in split_words(match["old"].casefold())}
    claims = []
    for clause in _CLAUSE_BREAK.split(text):
        # a name inside a path, an address or a compound is not the topic of the clause
        tokens = (word.strip(_QUOTES) for word in clause.casefold().split())
        names = [word for word in tokens if attribute_of(word) and word not in replaced_words]
        for word in names:
            attribute = attribute_of(word)
            rest = _subject_words(clause) - _content_words(" ".join(names)) - _content_words(attribute)
            subject = frozenset(each for each in rest if not each[:1].isdigit() and each not in replaced_words)
            claims.append(Claim(subject=subject, attribute=attribute, value=_content_words(word)))
    return claims


def _negated_words(match: re.Match[str]) -> frozenset[str]:
    """Return the content words of the clause after a negation."""
    rest = match.string[match.end() :]
    end = _CLAUSE_BREAK.search(rest)
    return _subject_words(rest[: end.start()] if end else rest)


_CLOCK = lazy_compile(r"(?<![\d.:])([01]?\d|2[0-3])[:h]([0-5]\d)(?![\d:]|\.\d)")
_START = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('valid_from')}|{pack_phrases('valid_since')})\s+(?:the\s+)?"
        rf"(?:(?:\d[\d.-]*(?:st|nd|rd|th)?|of|de|{'|'.join((*pack_table('weekday'), *pack_table('month')))})"
        r"(?!\w)\s*){1,4}"
    ),
    re.IGNORECASE,
)
_DATE = lazy_compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)")
_VERSION = lazy_compile(r"(?<![\w.])v?\d+\.\d+(?:\.\d+)+\b|(?<![\w.])v\d+(?:\.\d+)*\b")
# what stands before the answer of an agent is the request that it answers
_QUOTE = lazy_compile(r"^[“\"][^”\"]*[”\"]:\s+")
_SPEAKER = lazy_compile(r"^(?:[\w-]{1,30}, asked “(?P<question>[^”]*)”: |[\w-]{1,30}(?:: |：))")
_WORD = lazy_compile(r"[^\W\d_][\w'’-]*")
FIRST_EASTERN = "\u2e80"
"""The first character of scripts without spaces."""
_MAX_SHORT_NAME = 3
_ORDINAL_ENDING = lazy_compile(lambda: rf"(?:{pack_phrases('ordinal_ending')})(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class TypedValue:
    """A value in a text from `start` to `end`: an amount with its unit as the `kind`, a day, a time, a known name."""

    kind: str
    value: str
    start: int
    end: int


def without_speaker(text: str) -> str:
    """Return the first 600 characters without a speaker, or the request of another one, in front; a question stays."""
    excerpt = _QUOTE.sub("", text[:_MAX_CHARACTERS])
    match = _SPEAKER.match(excerpt)
    return f"{match['question'] or ''} {excerpt[match.end() :]}".strip() if match else excerpt


def without_start(text: str) -> str:
    """Return a text with white space in place of the day from which it holds ("starting with February")."""
    return _START.sub(blank, text)


def blank(match: re.Match[str]) -> str:
    """Return as much white space as a match is long."""
    return " " * len(match[0])


def detect_script_language(text: str) -> Language:
    """Return the language of a text, by its script where its words do not tell."""
    language = detect_language(text)
    scripts: Mapping[str, Language] = {"cyrillic": "ru", "hangul": "ko"}
    return scripts.get(dominant_script(text), language) if language == "en" else language


def find_values(text: str, language: Language) -> list[TypedValue]:
    """Return the typed values of a text, in the order in which they stand."""
    found: list[TypedValue] = []
    for kind, pattern in (("date", _DATE), ("version", _VERSION), ("clock", _CLOCK)):
        for match in pattern.finditer(text):
            value = f"{int(match[1])}:{match[2]}" if kind == "clock" else match[0]
            found.append(TypedValue(kind=kind, value=value, start=match.start(), end=match.end()))
    found += [
        TypedValue(
            kind=each.unit or "number", value=f"{each.value:g}", start=each.start, end=_find_ordinal_end(text, each.end)
        )
        for each in find_quantities(text, language)
        if not any(other.start < each.end and each.start < other.end for other in found)
    ]
    for kind in ("weekday", "month"):
        for match in _joined_calendar(kind, language).finditer(text):
            value = calendar_words(kind, language)[match[0]]
            found.append(TypedValue(kind=kind, value=value, start=match.start(), end=match.end()))
    for match in _WORD.finditer(text):
        found += [
            TypedValue(kind=kind, value=value, start=match.start(), end=match.end())
            for kind, value in _name_types(match[0], language)
        ]
    return sorted(found, key=lambda each: (each.start, each.end, each.kind))


def _find_ordinal_end(text: str, at: int) -> int:
    """Return the end of an ordinal ending at this place ("26th"), else the place."""
    match = _ORDINAL_ENDING.match(text, at)
    return match.end() if match else at


def _name_types(word: str, language: Language) -> Iterator[tuple[str, str]]:
    """Yield the types of a word that is a value, such as a day or a database, each with the value."""
    folded = word.casefold()
    for kind in ("weekday", "month"):
        table = calendar_words(kind, language)
        if folded in table and (len(folded) > _MAX_SHORT_NAME or word[0].isupper() or not folded.isascii()):
            yield kind, table[folded]
    if attribute := attribute_of(folded):
        yield attribute, folded


def mask_values(text: str, values: Iterable[TypedValue]) -> str:
    """Return a text with white space in place of its values."""
    masked = text
    for each in values:
        masked = f"{masked[: each.start]}{' ' * (each.end - each.start)}{masked[each.end :]}"
    return masked


@cache
def calendar_words(kind: str, language: Language = "en") -> Mapping[str, str]:
    """Return the day or month that each word in small letters names; `kind` is `weekday` or `month`."""
    table, forms = (
        (pack_table("weekday"), pack_table("weekday_form", language))
        if kind == "weekday"
        else (pack_table("month"), pack_table("month_form", language))
    )
    return {**table, **forms, **{f"{word}s": value for word, value in table.items()}}


@cache
def _joined_calendar(kind: str, language: Language) -> re.Pattern[str]:
    """Return the pattern of the days or months of scripts without spaces."""
    words = sorted((word for word in calendar_words(kind, language) if word[0] >= FIRST_EASTERN), key=len, reverse=True)
    return re.compile("|".join(words) or "(?!)")


_ENDED_BEFORE = lazy_compile(
    lambda: (
        rf"(?:(?<!\w)(?:{_ended_leads(edges=True)})|{_ended_leads(edges=False)})"
        rf"\W*(?:(?:{pack_phrases('only')})\s+)?(?:(?:{pack_phrases('value_lead')})\s+)?$"
    ),
    re.IGNORECASE,
)
_ENDED_BEHIND = lazy_compile(
    lambda: (
        rf"(?:\s[^\W\d]+)?\W{{0,3}}(?:{pack_phrases('ended_tail', edges=True)})(?!\w)"
        rf"|[\u3040-\u9fff]{{0,2}}?(?:{pack_phrases('ended_tail', edges=False)})"
    ),
    re.IGNORECASE,
)
_ENDED_NAME = lazy_compile(
    lambda: (
        rf"(?:(?<!\w)(?:{pack_phrases('ended_lead', edges=True)})\s+(?:(?:{pack_phrases('value_lead')})\s+)?"
        rf"|{pack_phrases('ended_lead', edges=False)})([\w.+#@/-]+)"
    ),
    re.IGNORECASE,
)
_LIMIT = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('limit', edges=True)})(?!\w)|{pack_phrases('limit', edges=False)}",
    re.IGNORECASE,
)


def _ended_leads(*, edges: bool) -> str:
    kinds: tuple[PhraseKind, ...] = ("ended_lead", "claim_negation", "instead_of")
    return "|".join(pack_phrases(kind, edges=edges) for kind in kinds)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """What a statement says to end: values, as pairs of type and value, and words; `values` are all its values.

    With `is_limit` it names the most that something may be.
    """

    ended: frozenset[tuple[str, str]]
    words: frozenset[str]
    values: frozenset[tuple[str, str]]
    is_limit: bool


@lru_cache(maxsize=8192)
def read_ending(text: str) -> Ending:
    """Return what a statement says to end ("not a month", "eight is too few"), without the day from which it holds."""
    excerpt = without_start(without_speaker(text))
    values = find_values(excerpt, detect_script_language(excerpt))
    ended = [
        each
        for each in values
        if _ENDED_BEFORE.search(excerpt[: each.start]) or _ENDED_BEHIND.match(excerpt[each.end :])
    ]
    named = " ".join(match[1] for match in _ENDED_NAME.finditer(mask_values(excerpt, values))).casefold()
    return Ending(
        ended=frozenset((each.kind, each.value) for each in ended),
        words=frozenset(content_words(named, detect_language(excerpt))) - _generic_words(),
        values=frozenset((each.kind, each.value) for each in values),
        is_limit=_LIMIT.search(excerpt) is not None,
    )
