"""Packs: the vocabulary of each human language, one file each. A pack is data; `docs/guides/languages.md` explains it.

A pack is loaded when something of it is first needed, and its patterns are compiled at their first use. No word of a
human language stands outside the packs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Literal, get_args

__all__ = [
    "LANGUAGES",
    "SIGNALS",
    "Act",
    "Language",
    "LanguagePack",
    "PhraseKind",
    "RowKind",
    "Script",
    "Signal",
    "TableKind",
    "WordKind",
    "compile_lines",
    "language_pack",
    "language_packs",
    "pack_phrases",
    "pack_rows",
    "pack_table",
    "pack_words",
    "split_lines",
]


Language = Literal[
    "en", "de", "fr", "es", "it", "pt", "zh", "ja", "ko", "ru", "ar", "hi",
]  # fmt: skip
"""The registry: the code of each language with a file, `packs/<code>.py`. The order breaks ties."""
LANGUAGES: tuple[Language, ...] = get_args(Language)
"""The languages with a file of their own."""
Script = Literal[
    "latin", "greek", "cyrillic", "hebrew", "arabic", "indic", "thai", "lao", "myanmar", "khmer", "hangul",
    "hiragana", "katakana", "han", "other",
]  # fmt: skip
Act = Literal[
    "acknowledgement",
    "convention",
    "correction",
    "decision",
    "denial",
    "doubt",
    "fact",
    "farewell",
    "goal",
    "greeting",
    "heading",
    "hypothetical",
    "lesson",
    "listener",
    "moment",
    "offer",
    "praise",
    "preference",
    "question",
    "reaction",
    "remember",
    "request",
    "self",
    "thanks",
    "wish",
]
"""What a sentence does: "fact" states how somebody or something lastingly is, "self" and "listener" are any mention
of the speaker and of who is spoken to, "offer" a service held out, "request" a task for now, "praise" a word about
the listener, "reaction" a word about what was just said, "denial" sets something aside without saying what holds
instead, "doubt" marks a guess, "heading" announces rules, "moment" is what passes with the day: an errand, a one-off
request, the state of a build."""
Signal = Literal["correction", "reinforcement", "preference", "identity", "goal", "decision"]
"""A correction sets the assistant right, reinforcement says that something was right, a preference is a taste or
wish that lasts, identity says who the speaker is, a goal what is aimed at, a decision what is settled."""
SIGNALS: tuple[Signal, ...] = get_args(Signal)
"""All signals."""
WordKind = Literal[
    "stop",  # words of grammar; single characters where words have no spaces between them
    "function",  # frequent words that hardly occur in other languages and so tell the language
    "generic",  # words of many questions and few answers, weak evidence
    "abbreviation",  # abbreviations that end in a dot, without it
    "abbreviation_inside",  # abbreviations that never end a sentence
    "duration_preposition",  # prepositions of a distance that may be a duration
    "not_name",  # words with a capital that are no names
    "origin",  # origins and beliefs, which are no names of persons
    "state",  # states, trades and kin, which are no names of persons
    "name_like_state",  # names that look like states
    "same_in_past",  # verbs whose past equals their base
    "auxiliary_past",  # pasts of auxiliary verbs
    "ending",  # endings that are cut off a word, the first that fits; four letters stay
    "light",  # words without accents that say nothing of what a statement is about
    "wish",  # words that say that something is wanted, and so is not yet
    "count",  # number words without accents, from zero on
    "join",  # words that join two names
    "before_name",  # prepositions before a name
]

RowKind = Literal[
    # rows of sides without accents: a statement with a word of one side is not one with a word of another
    "opposites",
    "synonyms",  # rows of words without accents that say the same of a person; the first stands for all
    "verb_forms",  # irregular verbs, a comma behind each: base, past, participle
]

TableKind = Literal[
    "weekday",  # words of the days of the week; Monday is 0
    "month",  # words of the months; January is 1
    "day",  # phrases for a day, by its distance from today
    "period",  # phrases for a week, month or year, by its distance from the current one
    "unit",  # words for day, week, weekend, month and year
    "number",  # number words of dates
    "weekday_side",  # which weekday is meant, such as the last or the next one: -1, 0 or 1
    "unit_side",  # which week, month or year is meant: -1, 0 or 1
    "distance_lead",  # what stands before a distance: -1 into the past, 1 into the future
    "distance_tail",  # characters behind a distance: -1 into the past, 1 into the future
    "weekday_character",  # the characters of the days of the week; Monday is 0
    "irregular",  # irregular plurals and other forms by their base
]

PhraseKind = Literal[
    "ordinal_month",  # months that follow an ordinal number with a dot
    "filler",  # words without content that open a sentence
    "filler_clause",  # openings without content that need no sign behind them
    "announcement_lead",  # what may stand before an announcement
    "announcement",  # openings that announce a statement, before a colon or dash
    "repetition",  # openings that say that something is said again
    "side_unit",  # units that such a word may stand before
    "month_side",  # what names the nearest month of that name
    "ago",  # what stands behind a distance into the past
    "count_of",  # what may stand between a number and its unit
    "from_unit",  # units before `from_now`
    "from_now",  # what links a distance to the day it is counted from
    "from_day",  # days that a distance is counted from
    "count_character",  # number characters of a distance
    "ordinal_suffix",  # what makes a number the day of a month, with its white space
    "day_suffix",  # what follows the day behind the name of a month
    "day_of",  # what stands between a day and its month
    "year_of",  # what stands between a month and its year behind a day
    "month_of",  # what stands between a month and its year
    "year_lead",  # what stands before a year alone
    "duration_lead",  # what makes `in two weeks` a duration: words up to three before it
    "duration_verb",  # verbs that make `in two weeks` a duration
    "weekday_lead",  # what stands between a week and its day
    "weekday_tail",  # characters behind a week that name its day, in the group `day`
    "weekend_tail",  # a character behind a week that names its end
    "day_time",  # times of a day that follow it
    "day_tail",  # what follows a day in a script without spaces
    "month_tail",  # what follows a month in a script without spaces
    "year_tail",  # what follows a year in a script without spaces
    "name_particle",  # particles inside a name
    "given_name_particle",  # particles inside the name of a person
    "greeting",  # greetings before an introduction
    "greeting_all",  # who is greeted
    "name_opening",  # openings behind which a name follows
    "name_opening_unsure",  # openings behind which a name may follow
    "after_name",  # what may go on behind a name
    "name_prefix",  # prefixes of words that are no names
    "state_word",  # words by their endings that are states
    "noun_like_name",  # nouns with a capital that are no names behind an unsure opening
    "acknowledgement",  # phrases of a text that only acknowledges
    "daily",  # phrases for daily
    "weekly",  # phrases for weekly
    "monthly",  # phrases for monthly
    "yearly",  # phrases for yearly
    "want",  # phrases for want
    "silent",  # phrases without which a statement says the same
    "negation",  # words that deny a statement
    "negation_suffix",  # endings that deny
    "comparison",  # phrases that compare two things
    "elision",  # words that are joined to the next one by an apostrophe
]


@dataclass(frozen=True, kw_only=True)
class LanguagePack:
    """The vocabulary of one language. What it leaves out is not recognised in that language; nothing is required.

    `cues`, `signals` and `phrases` hold regular expressions, one a line; a line that begins with a space continues the
    one before, without that space. A leading ^ of a cue or signal ties it to the start of the sentence. Nothing
    regards case, and repetition is bounded. `words` are parted by white space, `rows` by commas or line ends. A line
    of `tables` has `value = word|word`; `;` parts lines too.

    `scripts` are those the language is written in; `edges` says whether patterns begin and end at the edges of words.
    `letters` are letters that English does without. With `capital_nouns` every noun has a capital.

    `denied` and `mentioned` are looked for before a signal: the one within its clause turns it around ("I don't think
    that's wrong"), the other, anywhere before it in its sentence, makes it something talked about ("if I prefer", "it
    prints: try again"). `asked` are endings that make a question without a question mark.
    """

    code: str
    name: str
    scripts: frozenset[Script] = frozenset({"latin"})
    edges: bool = True
    letters: str = ""
    capital_nouns: bool = False
    words: Mapping[WordKind, str] = field(default_factory=dict)
    rows: Mapping[RowKind, str] = field(default_factory=dict)
    tables: Mapping[TableKind, str] = field(default_factory=dict)
    phrases: Mapping[PhraseKind, str] = field(default_factory=dict)
    cues: Mapping[Act, str] = field(default_factory=dict)
    signals: Mapping[Signal, str] = field(default_factory=dict)
    denied: str = ""
    mentioned: str = ""
    asked: str = ""


@cache
def language_pack(language: Language) -> LanguagePack:
    """Return the pack of a language, loading it at the first call."""
    pack: LanguagePack = import_module(f"{__name__}.{language}").PACK
    return pack


@cache
def language_packs() -> tuple[LanguagePack, ...]:
    """Return all packs in the order of the registry, then those of the languages without a file of their own."""
    others: tuple[LanguagePack, ...] = import_module(f"{__name__}.others").PACKS
    return (*map(language_pack, LANGUAGES), *others)


@cache
def pack_words(kind: WordKind, language: Language | None = None) -> frozenset[str]:
    """Return the words of a kind, of one language or of all."""
    packs = language_packs() if language is None else (language_pack(language),)
    return frozenset(word for pack in packs for word in pack.words.get(kind, "").split())


@cache
def pack_rows(kind: RowKind) -> tuple[str, ...]:
    """Return the rows of a kind of all languages, in order."""
    rows = (row.strip() for pack in language_packs() for row in re.split(r"[,\n]", pack.rows.get(kind, "")))
    return tuple(filter(None, rows))


@cache
def pack_table(kind: TableKind) -> Mapping[str, str]:
    """Return each word of a table with its value, of all languages in order; the last language wins."""
    lines = (line for pack in language_packs() for line in re.split(r"[;\n]", pack.tables.get(kind, "")))
    pairs = (line.strip().split(" = ") for line in lines if line.strip())
    return {word: value for value, words in pairs for word in words.split("|")}


@cache
def pack_phrases(kind: PhraseKind, *, edges: bool | None = None, language: Language | None = None) -> str:
    """Return the alternation of a kind of phrases, of one language or of all in order; it matches nothing if empty.

    `edges` chooses the languages whose patterns begin and end at the edges of words, or the others.
    """
    packs = language_packs() if language is None else (language_pack(language),)
    chosen = (pack.phrases.get(kind, "") for pack in packs if edges is None or pack.edges is edges)
    return "|".join(line for text in chosen for line in split_lines(text)) or r"(?!)"


def split_lines(text: str) -> list[str]:
    """Return the patterns of a text, one a line; a line that begins with a space continues the one before."""
    return [line for line in re.sub(r"\n +", "", text).split("\n") if line]


def compile_lines(text: str, *, edges: bool) -> re.Pattern[str]:
    """Compile the patterns of a cue or signal into one; with `edges`, each starts and ends at the edge of a word."""
    options = []
    for line in split_lines(text):
        anchored, body = line.startswith("^"), line.removeprefix("^")
        before = "^" if anchored else (r"(?<!\w)" if edges and (body[0].isalnum() or body[0] == "(") else "")
        after = r"(?!\w)" if edges and re.search(r"(?<!\\)[^\W\d_]$|(?<!\\)\)$", body) else ""
        options.append(f"{before}(?:{body}){after}")
    return re.compile("|".join(options), re.IGNORECASE)
