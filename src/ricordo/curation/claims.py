"""Claims: what a memory states about a subject, found by rules, so that two memories can be compared. Pure.

A claim has a subject (content words), an attribute and a value. The rules are narrow on purpose: a text that fits no
pattern makes no claim, and nothing is decided about it. A table lists alternatives, such as databases, of which a
project usually has one at a time: naming another one means a change.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache, lru_cache
from itertools import chain

from ricordo.language import content_words, detect_language, is_correction, split_words
from ricordo.language.packs import LANGUAGES, pack_phrases, pack_words
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "Claim",
    "ParsedStatement",
    "attribute_of",
    "canonical_name",
    "claimed_attributes",
    "may_name_alternative",
    "parse_statement",
    "statement_words",
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
