"""First person to third: "I moved and I love my flat" said by Ana becomes "Ana moved and Ana loves their flat".

English is rewritten with its verb forms, also those of a second verb; where it is in doubt, a verb is left as it was
said. Other languages keep their words and are only marked with the speaker, see `attribute_to_speaker`.

Invariant: text without a first-person word comes back unchanged.
"""

import re

from ricordo.language.languages import Language
from ricordo.language.packs import pack_phrases, pack_table, pack_words
from ricordo.language.words import irregular_pasts
from ricordo.lazy import lazy_compile

__all__ = [
    "attribute_to_speaker",
    "find_second_verb",
    "keeps_grammar",
    "mentions_name",
    "name_listener",
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


_FREE_VERB = lazy_compile(lambda: rf"(?P<and>{_join()})(?P<verb>{'|'.join(sorted(pack_words('never_noun')))})(?= )")
_VERB_BETWEEN = lazy_compile(_verb_between)
# What makes the verb behind it somebody else's, or one that takes no ending.
_ANOTHER_SUBJECT = lazy_compile(lambda: rf"[.!?;:,()]|\b(?:{pack_phrases('other_subject')})\b", re.IGNORECASE)
_SEARCH_CHARS = 120
"""How many characters behind a verb its second one is looked for, so that a long text is read once."""


def find_second_verb(text: str, start: int) -> re.Match[str] | None:
    """Find the verb (the group `verb`) that shares its subject with the one that ends at `start`; None without such."""
    match = _VERB_BETWEEN.match(text, start, start + _SEARCH_CHARS) or _FREE_VERB.search(
        text, start, start + _SEARCH_CHARS
    )
    return match if match and _ANOTHER_SUBJECT.search(text, start, match.start("and")) is None else None


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
_AMBIGUOUS = lazy_compile(
    lambda: rf"(?<![\w'’.-])I[ \t]+(?:(?:{pack_phrases('adverb_before_past')}) )?(?P<verb>[a-z]+)(?!\w)"
)


def to_third_person(text: str, name: str) -> str:
    """Return an English text with the speaker's name for I, me, my, mine and myself, verbs agreeing."""
    text = _agree_second_verbs(text)
    pieces: list[str] = []
    position = 0
    for match in _FIRST.finditer(text):
        if match.start() < position or match["word"] == "ME":
            continue
        pieces.append(text[position : match.start()])
        replaced, position = _replace_first_person(text, match, name, again=_is_last_person(pieces, name))
        pieces.append(replaced)
    return "".join(pieces) + text[position:]


def keeps_grammar(text: str) -> bool:
    """Say whether `to_third_person` can keep what an English text says.

    It can't where the verb's past looks like its present: "I read them" may become "reads" or "read".
    """
    return _HABIT.search(text) is not None or not any(
        match["verb"] in pack_words("same_in_past") for match in _AMBIGUOUS.finditer(text)
    )


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
    return _agree_next_verb(text, match.end(), name, before=text[: match.start()])


def _agree_second_verbs(text: str) -> str:
    """Agree what "I" does besides: "I live in Oslo and work as a nurse" gives "I live in Oslo and works as a nurse"."""
    spans: list[tuple[int, int]] = []
    for match in _FIRST.finditer(text):
        end_position = _find_present_end(text, match)
        while end_position is not None and (second := find_second_verb(text, end_position)):
            spans.append(second.span("verb"))
            end_position = second.end()
    for start, end in reversed(spans):
        text = f"{text[:start]}{_conjugate(text[start:end])}{text[end:]}"
    return text


def _find_present_end(text: str, match: re.Match[str]) -> int | None:
    """Return where the verb ends that stands in the present and has its speaker for a subject; None without such."""
    word = match["word"].casefold().replace("’", "'")
    if word in {"i'm", "im"}:
        return match.end()
    verb = _find_verb(text, match.end(), before=text[: match.start()]) if word == "i" else None
    return verb.end() if verb and _conjugate(verb["verb"]) != verb["verb"] else None


def _agree_next_verb(text: str, position: int, name: str, *, before: str) -> tuple[str, int]:
    """Agree the verb after "I", looking over adverbs: "I really need" gives "Ana really needs"."""
    ahead = _find_verb(text, position, before=before)
    if ahead is None:
        return name, position
    return f"{name}{text[position : ahead.start('verb')]}{_conjugate(ahead['verb'])}", ahead.end()


def _find_verb(text: str, position: int, *, before: str) -> re.Match[str] | None:
    """Find the verb behind an "I" that ends at `position`; None where it keeps its form or there is none."""
    if _follows_auxiliary(before) or _TWO_SUBJECTS.search(before[-60:]):
        return None
    for _ in range(3):
        ahead = _AHEAD.match(text, position)
        if ahead is None or ahead["verb"].casefold() not in pack_words("adverb"):
            return ahead
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


def _follows_auxiliary(before: str) -> bool:
    """After an auxiliary ("did I", "am I", "let I") the verb stays in its base form."""
    last = before.rstrip().rpartition(" ")[2].casefold()
    return last in pack_words("before_base_form")


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
    if folded.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb if folded.endswith("s") and not folded.endswith("ss") else verb + "es"
    if folded.endswith("y") and folded[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
