"""Packs: the vocabulary of each human language, one file each. A pack is data; `docs/guide/languages.md` explains it.

A pack is loaded when something of it is first needed, and its patterns are compiled at their first use. No word of a
human language stands outside the packs.
"""

import re
from collections.abc import Collection, Hashable, Mapping
from dataclasses import field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, get_args

from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from ricordo.language.literals import LiteralIndex

__all__ = [
    "LANGUAGES",
    "SIGNALS",
    "Act",
    "Language",
    "LanguagePack",
    "PatternTable",
    "PhraseKind",
    "RowKind",
    "Script",
    "Signal",
    "TableKind",
    "WordKind",
    "join_lines",
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
    "acknowledgement", "convention", "correction", "decision", "denial", "doubt", "fact", "farewell", "goal",
    "greeting", "heading", "hypothetical", "lesson", "listener", "moment", "offer", "praise", "preference",
    "question", "reaction", "remember", "request", "self", "thanks", "wish",
]  # fmt: skip
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
    "never_noun",  # verbs that are never nouns; a second verb behind `and`
    "both",  # adverbs of two subjects
    "homograph",  # words of grammar that are words of other languages too
    "verb",  # other verbs, regular ones, in their base form
    "perception_verb",  # verbs behind which somebody else's verb has its base form
    "looks_adverb",  # verbs that end like an adverb
    "finite_verb",  # forms of verbs that make a sentence
    "not_verb",  # forms that hardly are one where a sentence needs it
    "second_verb",  # verbs that may share the subject of the verb before them
    "adverb",  # adverbs between a subject and its verb
    "fixed_verb",  # words behind a subject that keep their form
    "looks_past",  # base forms that end like a past
    "after_had",  # words that make a contracted `'d` mean had
    "before_base_form",  # auxiliary verbs behind which a verb keeps its base form
    "title",  # titles of persons, with a dot behind them
    "claim_generic",  # words that only express a change or a general action
    "claim_generic_form",  # such words that are compared as they are written
    "denial",  # words that deny a stance
    "stance_neutral",  # words that neither affirm nor deny
    "stance_synonym",  # such words that say the same
    "appointment_time",  # words for the time of an appointment
    "correction_word",  # words that introduce a correction, and verbs that fit any appointment
    "credential_word",  # words around a redacted secret that say nothing else
    "name_part",  # words inside names
    "always_grounded",  # words that a note may hold without support
    "person_word",  # words about persons that a repetition may change
    "denial_word",  # words without accents that deny, so that a text with them is no repetition
    "question_particle",  # particles that end a question
    "time_word",  # words that tell a time
    "number_word",  # words that tell a number
    "untitled",  # words that are no topic of a title
    "life_verb",  # past verbs of what changes a life, so that it lasts
    "determiner",  # articles and the like before a noun
    "dummy_secret",  # words in the place of a secret that only describe it
    "not_passphrase",  # words of sentences, which no passphrase has
    "compound_part",  # parts of compounds that describe a secret
    "not_seed",  # words that are not of a seed phrase
    "secret_identifier",  # names of a secret as one word of plain letters, as in programs
    "passing_word",  # words of what passes with the day, a mark of a moment
    "lasting_word",  # words of what holds always or for all, a mark of a rule
    "hearsay_word",  # words of what others say, or of what is only thought of
    "role_word",  # verbs and words that say what somebody or something is, does or has
    "harmless_name",  # first words of names that end like the name of a secret but are not one
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
    "weekday_form",  # further forms of the days of the week, which tell no date alone
    "month_form",  # further forms of the months, which tell no date alone
    "bound_period",  # words for a time behind "from" or "until", which tell no date alone, by unit and distance
    "day",  # phrases for a day, by its distance from today
    "weeks_ahead",  # phrases before a weekday, by how many weeks after the coming one it is
    "weeks_behind",  # such phrases behind a weekday
    "period",  # phrases for a week, month or year, by its distance from the current one
    "unit",  # words for day, week, weekend, month and year
    "number",  # number words of dates
    "numeral",  # number words and characters; a hundred and more multiply what stands before them
    "numeral_join",  # words between two number words
    "numeral_article",  # articles before a unit that stand for a number
    "measure",  # words of units: the family of the unit, and its size in the base of that family
    "weekday_side",  # which weekday is meant: the last -1, this 0, the coming 1, the next one 2
    "unit_side",  # which week, month or year is meant: -1, 0 or 1
    "distance_lead",  # what stands before a distance: -1 into the past, 1 into the future
    "year_side",  # which year is meant in such a date: the last -1, this 0
    "month_part",  # the parts of a month in such a date: begin, middle, end
    "distance_tail",  # characters behind a distance: -1 into the past, 1 into the future
    "weekday_character",  # the characters of the days of the week; Monday is 0
    "irregular",  # irregular plurals and other forms by their base
    "third_person_form",  # irregular forms of the third person by the form of the first
    "contraction",  # verbs by what is left of them behind an apostrophe
    "stance_opposite",  # words that deny another, or say the same as it
    "verb_of_noun",  # nouns whose stem differs from that of their verb
    "participle",  # participles that differ from the past
    "choice_place",  # answers that choose by place: 1 for the first side of a choice, 2 for the second
    "factor",  # answers that multiply the number of a question
]

PhraseKind = Literal[
    "ordinal_month",  # months that follow an ordinal number with a dot
    "filler",  # words without content that open a sentence
    "filler_clause",  # openings without content that need no sign behind them
    "announcement_lead",  # what may stand before an announcement
    "announcement",  # openings that announce a statement, before a colon or dash
    "repetition",  # openings that say that something is said again
    "lead_in",  # openings of a note that say only that something is noted
    "side_unit",  # units that such a word may stand before
    "month_side",  # what names the nearest month of that name
    "ago",  # what stands behind a distance into the past
    "omitted",  # what stands in parentheses for text that was left out
    "topic_change",  # words behind a comma that begin another topic
    "no_date",  # idioms with a word of the calendar that name no day
    "each_time",  # words before a period that is one of many
    "recurring",  # words of what comes again each year
    "narrated",  # articles before a period that is seen from another day
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
    "person_lead",  # what stands before the name of a person, and hardly before another name
    "person_tail",  # what stands behind the name of a person, and hardly behind another name
    "project_lead",  # what stands before the name of a project
    "project_tail",  # what stands behind the name of a project
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
    "placed",  # what names a place or a time behind a verb
    "verb_join",  # words that join a second verb, with their adverbs
    "verb_object",  # what begins an object behind a second verb
    "other_subject",  # words that make the verb behind them somebody else's, or keep its form
    "first_person_word",  # words for the speaker that a name can stand for
    "listener_own",  # what belongs to the listener
    "listener_verb",  # the listener with a verb
    "listener_place",  # words before a `you` that is no subject
    "clause_lead",  # words that begin a clause with a subject
    "somebody",  # persons beside the speaker that begin a clause
    "somebody_else",  # persons that `their` could mean as well
    "inverted_verb",  # verbs before their subject that agree with it
    "verb_particle",  # particles behind a verb
    "behind_object",  # words behind such a pronoun
    "subject_article",  # what a subject opens with that a pronoun says once more
    "object_pronoun",  # pronouns that are an object behind a verb
    "to_object",  # what begins an object behind `to`
    "numbered",  # words before a Roman numeral
    "self_place",  # words before a `myself` that is an object
    "noun_mine",  # words before a `mine` that is a noun
    "exclaimed",  # words behind a `my` of an exclamation
    "habit",  # words of a habit
    "claim_negation",  # words that deny a claim
    "present_negation",  # negations that hold from now on
    "only",  # words behind a negation of a part only
    "clause_join",  # words that begin another clause
    "change",  # words that announce a change
    "valid_from",  # words before the day from which a statement holds
    "valid_since",  # words before such a day in the past
    "valid_until",  # words before the day until which a statement holds
    "valid_from_behind",  # words behind the day from which it holds
    "month_sign",  # what makes a number a month
    "day_sign",  # what makes a number a day of a month
    "next_weekday",  # words before a weekday that make it the next one
    "next_weekday_behind",  # words behind a weekday that make it the next one
    "valid_until_behind",  # words behind the day until which it holds
    "past_state",  # verbs of what held in the past
    "ongoing_state",  # words of what began in the past and still holds
    "change_cue",  # words that many changes have, and some other statements
    "ended_lead",  # words before something that ends
    "ended_tail",  # words behind a value that ends, such as those that call it too small
    "limit",  # words of a statement that names the most that something may be
    "from",  # words before the old value of a change
    "to",  # words before the new value of a change
    "from_to",  # a change in a script without spaces, with the groups `old` and `new`
    "change_verb",  # verbs of a change behind its values
    "instead_of",  # words before a value that is replaced
    "value_lead",  # articles and prepositions before a replaced value
    "home_verb",  # verbs before a home
    "now",  # words for now
    "home_place",  # prepositions before a home
    "work_verb",  # verbs before an employer, with their preposition
    "port_verb",  # what stands before a port
    "name_verb",  # what stands before the name of a thing
    "subject_lead",  # what a subject begins with
    "copula",  # verbs between a subject and its value
    "copula_claim",  # a claim in a script without spaces, with the groups `subject` and `value`
    "denying",  # words that deny what follows
    "partly",  # what makes a denial one of a part or of a frequency
    "no_in_stance",  # an opening `no` that denies something else
    "first_person_subject",  # words for the speaker of a memory
    "ordinal_ending",  # endings of ordinal numbers
    "at_present",  # words for a time that passes
    "whereabouts",  # where or how somebody is for a while
    "being",  # forms of to be
    "work_word",  # words of work
    "we",  # words for the speakers
    "order_word",  # words of an order to a model
    "password_name",  # names of a password
    "code_name",  # names of a number that is a secret
    "purpose_lead",  # words before the purpose of a secret
    "secret_copula",  # words between the name of a secret and its value
    "secret_copula_joined",  # such words in a script that joins them
    "after_secret",  # words behind the value of a secret
    "secret_description",  # what describes a password and is none
    "credential_name",  # names of secrets that are asked for
    "after_credential",  # words behind a secret that is asked for
    "card_word",  # words for a payment card
    "no_in_reply",  # a `no` that opens a reply
    "reminder",  # openings that ask to remember
    "reminder_lead",  # words before such an opening
    "reminder_that",  # words behind such an opening
    "yes_or_no",  # answers to a yes-or-no question
    "linking",  # words that link a statement to the one before
    "please",  # words of politeness
    "own_subject",  # openings with a subject or a rule's verb of their own
    "own_subject_joined",  # such openings in a script without spaces
    "named_subject",  # verbs behind a name that opens a statement
    "i",  # the speaker as a subject
    "nickname",  # phrases for how somebody is called
    "own_work",  # what an assistant says it made, with the groups `what`, `many` and `verb`
    "action_pointer",  # phrases that point to an action
    "no_in_rule",  # a `no` before a rule
    "machine_address",  # words to an assistant that reads a text of somebody else
    # words of grammar and of questions in a script without spaces; a pair of characters that has one is weak evidence
    "function_joined",
    "name_title_joined",  # titles that are joined to the end of a name
    "program_error",  # words with which the output of a program tells of an error
    "output_instruction",  # words of such an output that speak to somebody
    "problem",  # words with which somebody tells that something does not work
    "contracted_verb",  # a verb that is joined to its subject by an apostrophe
    "pronoun_clause",  # a clause whose subject is a pronoun
    "repeated_pronoun",  # pronouns behind a subject that say it once more
    "pronoun_subject",  # openings of a statement whose subject stands in the one before
    "asked_subject",  # a question for the value of something, with the group `subject`
    "asked_action",  # a question whether to do something, with the group `action`
    "open_question",  # words of a question that yes or no does not answer
    "question_context",  # words for which a question needs the sentence before it
    "evasion",  # openings of a reply that leaves a question open
    "points_back",  # openings that need the sentence before
    "incomplete",  # statements that are not understandable alone
    "points_to_object",  # statements about an object of the one before; case counts
    "report",  # openings of a report on one's own work
    "to_do",  # phrases for something to do
    "rule",  # openings of a rule
    "contradiction",  # openings that contradict
    "agreement",  # openings that agree
    "introduction",  # openings of an introduction by name
    "introduction_end",  # what may stand behind the name
    "yes_no_question",  # openings of a yes-or-no question
    "next_step",  # words of a question about the next step of a task
    "choice_or",  # words between the sides of a choice
    "choice_or_joined",  # such words in a script without spaces
    "choice",  # other questions that offer a choice
    "no_in_summary",  # a `no` that objects, before a sign
    "objection",  # words that object
    "objection_joined",  # such characters in a script without spaces
    "question_tag",  # words that turn a statement into a question
    "unmarked_question",  # openings of a question without a question mark
    "past_question",  # words of a question about the past
    "change_in_answer",  # words for a change, in a question or an answer
    "replaced_lead",  # words before what is replaced
    "replacing_stop",  # a word that ends what is replaced
    "replacing_lead",  # words before what takes its place
    "ask_number",  # questions for a number
    "ask_time",  # questions for a time
    "ask_time_kind",  # questions for a kind of time
    "ask_place",  # questions for a place
    "ask_person",  # questions for a person
    "ask_one_time",  # questions with a single answer
    "ask_first_person",  # words of a question about the speaker
    "named_period",  # phrases for a period of time
    "place_phrase",  # prepositions before a place
    "place_article",  # articles before a place
    "time_article",  # articles between such a preposition and a time
    "before",  # prepositions for the time before
    "after",  # prepositions for the time after
    "month_lead",  # prepositions before a month without a year
    "before_behind",  # what stands behind a time and means before it
    "after_behind",  # what stands behind a time and means after it
    # a date in a script without spaces, in the groups `year`, `number` of the month, `day` and `part` of the month
    "number_month",
    "month_begin",  # words before a month that mean its first days
    "month_end",  # words before a month that mean its last days
    "name_join",  # words between two names
    "pronoun_opening",  # pronouns and answers that open a sentence without a topic
    "polite_opening",  # words before a question or a request to an agent
    "question_word",  # question words, also those of a clause
    "question_word_joined",  # question words of a script without spaces
    "question_ending",  # endings of a question
    "question_opening",  # question words that open a question
    "question_opening_verb",  # other openings of a question
    "inverted_question",  # openings of a question with its subject behind the verb
    "memory_request",  # openings of a request to tell or show
    "memory_request_ending",  # endings of such a request
    "remember_verb",  # verbs of a request to remember that the content may follow
    "remember_please",  # what may follow such a verb
    "remember_that",  # words between such a verb and its clause
    "remember_of",  # words between such a verb and its object
    "remember_elision",  # such words that are joined by an apostrophe
    "remember_clause_verb",  # such verbs with other meanings, such as to note
    "remember_self",  # what may follow such a verb
    "remember_clause_that",  # words between such a verb and its clause
    "remember_joined",  # such verbs of a script without spaces, with the signs behind them
    "remember_ending",  # such verbs behind their content
    "clause_subject",  # subjects that make a question word one of a clause
    "memory_of",  # content that asks for a memory
    "secret_instruction",  # what asks to put a secret in; lower case, without signs
    "sentence_word",  # words of a sentence in the place of a secret
    "compound_end",  # last parts of compounds that describe a secret
    "descriptive_ending",  # endings of words that describe
    "strong_secret_name",  # names that clearly denote a secret, beside the English ones
    "medium_secret_name",  # names that may denote a secret, beside the English ones
    "secret_name_hint",  # a quick pattern of part of each such name that is not of ASCII letters; case counts
    "secret_name_ascii",  # a part of each such name that is of ASCII letters, in lower case
    "secret_is",  # words between a name in English and its secret
    "secret_is_foreign",  # further words between a name and its secret
    "secret_is_joined",  # such words in a script that joins them
    "secret_is_plain",  # such words that only count before plain characters
    "secret_is_now",  # words behind such a word
    "secret_purpose",  # words that begin the purpose of a secret
    "user_name",  # names of a user before a secret
    "user_and",  # words between a user and a secret
    "secret_unit",  # units behind a number that is no secret
    "secret_lead",  # words before a name whose secret is the next word
    "secret_article",  # articles between such a word and the name
    "secret_column",  # names of a column of secrets
    "secret_changed",  # words between a name and its new value
    "use",  # words before a value that is used as a secret
    "use_as",  # words between such a value and the name
    "seed_phrase_end",  # ends of names of a seed phrase; case counts
    "seed_phrase_more",  # words behind such an end
    "seed_phrase_name",  # names of a seed phrase
    "seed_phrase_is",  # words between its name and a seed phrase
    "seed_phrase_is_joined",  # such words in a script that joins them
    "pin_owner",  # words before the owner of a PIN
    "pin_is",  # words between a PIN and its digits
    "pin_unit",  # units behind digits that are no PIN
    "pin_of",  # words before the name of a PIN; case counts
    "passphrase_is",  # words between the name of a passphrase and its words
    "login_name",  # names of a pair of user and secret
    "secret_block_name",  # names of a secret whose value stands in the lines below
    "pin_hint",  # parts of a text with a PIN, in lower case
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
def pack_table(kind: TableKind, language: Language | None = None) -> Mapping[str, str]:
    """Return each word of a table with its value, of one language or of all in order; the last language wins."""
    packs = language_packs() if language is None else (language_pack(language),)
    lines = (line for pack in packs for line in re.split(r"[;\n]", pack.tables.get(kind, "")))
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


def join_lines(text: str, *, edges: bool) -> str:
    """Return one pattern of all those of a cue or signal; with `edges`, each starts and ends at the edge of a word."""
    options = []
    for line in split_lines(text):
        anchored, body = line.startswith("^"), line.removeprefix("^")
        before = "^" if anchored else (r"(?<!\w)" if edges and (body[0].isalnum() or body[0] == "(") else "")
        after = r"(?!\w)" if edges and re.search(r"(?<!\\)[^\W\d_]$|(?<!\\)\)$", body) else ""
        options.append(f"{before}(?:{body}){after}")
    return "|".join(options)


_Key = TypeVar("_Key", bound=Hashable)


class PatternTable(Generic[_Key]):
    """Patterns by key, which ignore case, each compiled at its first use. After many texts their literals are used."""

    def __init__(self, sources: Mapping[_Key, str]) -> None:
        """Keep the sources of the patterns."""
        self._sources = sources
        self._compiled: dict[_Key, re.Pattern[str]] = {}
        self._texts = 0
        self._index: LiteralIndex[_Key] | None = None

    def __getitem__(self, key: _Key) -> re.Pattern[str]:
        """Return the pattern of a key."""
        if key not in self._compiled:
            self._compiled[key] = re.compile(self._sources[key], re.IGNORECASE)
        return self._compiled[key]

    def find_possible(self, text: str) -> Collection[_Key]:
        """Return the keys whose patterns can match `text`, in no order; any other pattern surely doesn't."""
        self._texts += 1
        if self._texts <= 50:  # reading the literals takes as long as matching so many texts
            return self._sources.keys()
        if self._index is None:
            from ricordo.language.literals import LiteralIndex

            self._index = LiteralIndex(self._sources)
        return self._index.find_possible(text)

    def find_matching(self, text: str) -> frozenset[_Key]:
        """Return the keys whose patterns occur in `text`."""
        return frozenset(key for key in self.find_possible(text) if self[key].search(text))
