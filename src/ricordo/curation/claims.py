"""Claims: what a memory states about a subject, found by rules, so that two memories can be compared. Pure.

A claim has a subject (content words), an attribute and a value. The rules are narrow on purpose: a text that fits no
pattern makes no claim, and nothing is decided about it. A table lists alternatives, such as databases, of which a
project usually has one at a time: naming another one means a change.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ricordo.language import content_words, detect_language, is_correction, split_words
from ricordo.lazy import lazy_compile

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
    r"(?<!\w)(?:not|no|never|cannot|nor|without|stop(?:ped)?|nicht|kein\w*|nie(?:mals)?|ohne|pas|jamais|sans|non|nunca|"
    r"não|jamás|sin|senza)(?!\w)|n['’]t(?!\w)|不(?!错)|没有|禁止|别|ない|ません|なし",
    re.IGNORECASE,
)
# Only negations that hold from now on: "hasn't" and "didn't" deny no other memory, "not only" no part of it.
_PRESENT_NEGATION = lazy_compile(
    r"(?:(?<!\w)(?:(?:do|does) not|must not|never|no longer|stop(?:ped)?|nicht(?: mehr)?|kein\w*|nie(?:mals)?)(?!\w)"
    r"|(?<!\w)(?:do|does|wo|ca|must|should|is|are)n['’]t(?!\w))(?!\s+(?:only|just|nur)(?!\w))",
    re.IGNORECASE,
)
_CLAUSE_END = lazy_compile(r"[.!?;:\n。！？]\s?")
_CONTEXT_CHARACTERS = 80
_MAX_CHARACTERS = 600
_CLAUSE_BREAK = lazy_compile(r"[.,;:!?()]\s|[.,;:!?]$|\s(?:because|but|since|so|and|weil|aber|denn)\s")
_CHANGE = lazy_compile(
    r"(?<!\w)(?:(?:switch|migrat|mov|chang|upgrad|downgrad|convert|renam|relocat)(?:e[ds]?|ing|ed)?\b|no longer|"
    r"from now on|instead|replac\w+|any ?more|now\b|used to|(?:is|was|has been) (?:taken|replaced)|umgestellt|"
    r"gewechselt|wechseln|umgezogen|statt|ab sofort|ab jetzt|nicht mehr|jetzt)"
    r"|から.{1,40}に(?:変更|移行|切り替え)|改用|换成|改为",
    re.IGNORECASE,
)
_FROM_TO = lazy_compile(
    r"(?<!\w)(?:from|von|vom|de)\s+(?P<old>[\w.+#@/-]+(?: [\w.+#-]+){0,3}?)\s+"
    r"(?:to|auf|zu|nach|à|a)\s+(?P<new>[\w.+#@/-]+)",
    re.IGNORECASE,
)
_JAPANESE_FROM_TO = lazy_compile(
    r"(?P<old>[A-Za-z0-9.+#-]{1,30}|[\u30a0-\u30ff]{1,20}|[\u3400-\u9fff]{1,12})から(?P<new>[\w.+#-]{1,30}?)に(?:変更|移行|切り替え)"
)
# a German verb is at the end: "von Jenkins auf Drone umgestellt"
_GERMAN_CHANGE_VERB = lazy_compile(
    r"(?<!\w)(?:umgestellt|umgestiegen|umgezogen|gewechselt|gewandert|migriert|verschoben|verlegt|geändert|"
    r"erhöht|gesenkt|umbenannt|wechseln|umsteigen)(?!\w)",
    re.IGNORECASE,
)
_REPLACED_VALUE = lazy_compile(
    r"(?<!\w)(?:not|instead of|rather than|no longer|replac(?:es|ed|ing)|statt|nicht|nicht mehr|au lieu de|"
    r"en lugar de)\s+"
    r"(?:(?:in|at|on|from|via|with|by|for|a|an|the|use|using|am|im|den|die|das)\s+)?(?P<old>[\w.+#@/-]+)",
    re.IGNORECASE,
)
_ATTRIBUTES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, lazy_compile(rf"(?<!\w)(?:{verbs})\s+(?P<value>[^.,;:!?\n()]{{1,60}})", flags))
    for name, verbs, flags in (
        (
            "home",
            r"(?:lives?|living|(?:has |have )?(?:moved|relocated)|(?:is|are|am) based|"
            r"wohnt|wohne|lebt|zog|vit|habite|vive|mora)"
            r"(?:\s+(?:now|jetzt))?\s+(?:in|to|nach|à|en|em|a)",
            re.IGNORECASE,
        ),
        (
            "work",
            r"(?:works?|working|arbeitet|arbeite|travaille)\s+(?:at|for|bei|chez)|(?:has |have )?joined",
            re.IGNORECASE,
        ),
        (
            "port",
            r"(?:listens?|runs?|serves?|lauscht|läuft)\s+(?:on|auf)(?:\s+port)?(?=\s+\d)|port\s+(?:is|ist)",
            re.IGNORECASE,
        ),
        ("name", r"(?:is|are|was)\s+(?:called|named)|heißt|heisst", re.IGNORECASE),
    )
)
_COPULA = lazy_compile(
    r"^(?P<subject>(?:the|our|my|die|der|das|unser\w*|mein\w*|[A-Z][\w’']*['’]s)\s[^.,;:!?\n]{1,60}?)\s"
    r"(?:is|are|ist|sind)\s(?:now |jetzt )?(?P<value>(?:(?<!\w)(?:Dr|Mr|Mrs|Ms|Prof|St)\.|[^.,;:!?\n]){1,60})",
    re.IGNORECASE,
)
_TITLES = frozenset({"dr", "mr", "mrs", "ms", "prof", "st"})
_JAPANESE_COPULA = lazy_compile(
    r"^(?P<subject>[^、。\n]{2,24}?)は(?P<value>[^、。\n]{1,24}?)(?:です|だ|である|に(?:変更|移行|切り替え)|[。\n]|$)"
)
_EXACT_VALUE = lazy_compile(r"\d|[A-ZÄÖÜ]\w|[`/@_]|[\u3040-\u30ff\u3400-\u9fff]")
_NOT_WORDS = lazy_compile(r"\W+")
_QUOTES = "`'\"“”„«»()[]*_.,;:!?"
_NUMBER = lazy_compile(r"\d+(?:[.:,/-]\d+)*")
# Words without a subject: they only express a change or a general action.
_GENERIC_LIST = """
use using used run take make have get go move migrate switch change replace upgrade convert rename we our need want
now new instead longer anymore actually decide decision agree reason today version please user no not never only
also too nutzen nutzt verwenden benutzen wechseln umstellen jetzt neu statt mehr
"""
_GERMAN_LIST = "nutzen verwenden benutzen wechseln umstellen"
_GENERIC = (
    frozenset(content_words(_GENERIC_LIST, "en"))
    | frozenset(_GENERIC_LIST.split())
    | frozenset(content_words(_GERMAN_LIST, "de"))
)


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
    shown = text[:_MAX_CHARACTERS]
    found = _content_words(shown)
    numbers = frozenset(_NUMBER.findall(shown))
    return ParsedStatement(
        normalized=_NOT_WORDS.sub(" ", text.casefold()).strip(),
        words=found,
        subject=frozenset(word for word in found if word not in _GENERIC and not word[:1].isdigit()),
        numbers=numbers,
        claims=tuple(
            dict.fromkeys(
                (
                    *_find_copula_claims(shown),
                    *_find_ended_claims(shown),
                    *_find_attribute_claims(shown),
                    *_find_alternative_claims(shown),
                )
            )
        ),
        negated_clauses=tuple(filter(None, map(_negated_words, _PRESENT_NEGATION.finditer(shown)))),
        announces_change=bool(_CHANGE.search(shown)) or is_correction(shown),
        is_negative=bool(_ANY_NEGATION.search(shown)),
    )


def statement_words(text: str) -> frozenset[str]:
    """Return only the content words and numbers of a parsed text."""
    shown = text[:_MAX_CHARACTERS]
    return _content_words(shown) | frozenset(_NUMBER.findall(shown))


def claimed_attributes(text: str) -> frozenset[str]:
    """Return the attributes of the claims in a text; most texts make none, and are not parsed."""
    return (
        frozenset(claim.attribute for claim in parse_statement(text).claims)
        if _may_make_claim(text[:_MAX_CHARACTERS])
        else frozenset()
    )


def _may_make_claim(text: str) -> bool:
    patterns = (_COPULA.match, _JAPANESE_COPULA.match, *(pattern.search for _, pattern in _ATTRIBUTES))
    return any(found(text) for found in patterns) or may_name_alternative(text.casefold())


def _content_words(text: str) -> frozenset[str]:
    """Return the content words of the text in lower case, because case would split PostgreSQL into two words."""
    return frozenset(content_words(" ".join(map(canonical_name, text.casefold().split(" "))), detect_language(text)))


def _subject_words(text: str) -> frozenset[str]:
    return _content_words(text) - _GENERIC


def _text_before(match: re.Match[str]) -> str:
    """Return the text before a match in its clause, at most 80 characters."""
    return _CLAUSE_END.split(match.string[max(match.start() - _CONTEXT_CHARACTERS, 0) : match.start()])[-1]


def _find_ended_claims(text: str) -> list[Claim]:
    """Return the ended claims: the X of "from X to Y", "not X", "instead of X"."""
    told = [match for match in _FROM_TO.finditer(text) if _announces_change(match)]
    claims = [
        Claim(subject=_subject_words(_text_before(match)), attribute="", value=_subject_words(match["old"]), ended=True)
        for match in (*told, *_JAPANESE_FROM_TO.finditer(text))
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
    return bool(_CHANGE.search(_text_before(match) + match.group()) or _GERMAN_CHANGE_VERB.search(after))


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
    for pattern in (_COPULA, _JAPANESE_COPULA):
        match = pattern.match(text)
        if match and _EXACT_VALUE.search(match["value"]) and len(match["value"].split()) <= 5:
            subject, value = _subject_words(match["subject"]), _subject_words(match["value"]) - _TITLES
            if subject and value and not subject & value:
                claims.append(Claim(subject=subject, attribute=" ".join(sorted(subject)), value=value))
    return claims


def _find_alternative_claims(text: str) -> list[Claim]:
    """Return a claim for each known name that is not replaced in the text, with its clause as the subject."""
    aside = {word for match in _REPLACED_VALUE.finditer(text) for word in split_words(match["old"].casefold())}
    aside |= {word for match in _FROM_TO.finditer(text) for word in split_words(match["old"].casefold())}
    claims = []
    for clause in _CLAUSE_BREAK.split(text):
        # a name inside a path, an address or a compound is not the topic of the clause
        alone = (word.strip(_QUOTES) for word in clause.casefold().split())
        named = [word for word in alone if attribute_of(word) and word not in aside]
        for word in named:
            attribute = attribute_of(word)
            rest = _subject_words(clause) - _content_words(" ".join(named)) - _content_words(attribute)
            subject = frozenset(each for each in rest if not each[:1].isdigit() and each not in aside)
            claims.append(Claim(subject=subject, attribute=attribute, value=_content_words(word)))
    return claims


def _negated_words(match: re.Match[str]) -> frozenset[str]:
    """Return the content words of the clause after a negation."""
    rest = match.string[match.end() :]
    end = _CLAUSE_BREAK.search(rest)
    return _subject_words(rest[: end.start()] if end else rest)
