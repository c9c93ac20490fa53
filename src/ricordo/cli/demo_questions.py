"""Questions for a demo with a conversation of one's own, made of the words of what was learned."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ricordo.language import detect_language, find_names, is_stop_word
from ricordo.language.languages import is_unsegmented, is_unsegmented_language
from ricordo.language.packs import language_pack, pack_phrases, pack_words
from ricordo.lazy import lazy_compile

__all__ = ["make_questions"]


_SECRET_MARK = "[secret:"
_MAX_WORDS, _ENOUGH_WORDS = 3, 2
_MIN_WORD_CHARS = 4
_WORD = lazy_compile(r"[^\W_](?:[\w.:/@+-]*[^\W_])?")
_NOTE = lazy_compile(r"\(\d{4}-\d\d-\d\d[^)]*\)|\[[^\]]*\]")
_ADVERB_ENDING = lazy_compile(lambda: rf"({pack_phrases('adverb_ending')})$")
_MAX_QUOTED_CHARS = 12


def make_questions(entries: Iterable[Mapping[str, Any]], most: int) -> list[str]:
    """Return up to `most` questions made of `entries`, documents of `memory list`, one for each kind first.

    What holds the mark of a secret is passed over. Where no entry gives a question there is one about everything.
    """
    asked: dict[str, None] = {}
    for entry in _order_by_kind(entry for entry in entries if _SECRET_MARK not in entry["content"]):
        question = _make_question(entry["content"])
        if question and len(asked) < most:
            asked[question] = None
    return list(asked) or ["What was this conversation about?"]


def _make_question(content: str) -> str:
    """Return a question about a text; empty when it has no words to ask about."""
    text = _NOTE.sub(" ", content)
    tongue = detect_language(text)
    tongue = tongue if "demo_question" in language_pack(tongue).phrases else "en"
    form = pack_phrases("demo_question", language=tongue)
    if is_unsegmented_language(tongue):
        run = next(iter(re.findall(r"\w{2,}", text)), "")
        return form.format(run[:_MAX_QUOTED_CHARS]) if run and is_unsegmented(run[0]) else ""
    words = _subject_words(text)
    (conjunction,) = pack_words("and", tongue)
    listed = f" {conjunction} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
    return form.format(listed) if words else ""


def _subject_words(text: str) -> Sequence[str]:
    """Return what a text is about as it is written, in its order: names, and then its longest words."""
    tongue = detect_language(text)
    names = [(name.start, name.end, name.text) for name in find_names(text, tongue)]
    names = [name for name in names if name[2].casefold() not in pack_words("weak")]
    plain = [
        (match.start(), match.end(), match[0])
        for match in _WORD.finditer(text)
        if not is_stop_word(match[0].casefold(), tongue)
        and match[0].casefold() not in pack_words("weak")
        and (
            len(match[0]) >= _MIN_WORD_CHARS
            or _has_special_case(match[0])
            or text[match.end() :].startswith(("'s ", "’s "))
        )
        and not any(start < match.end() and match.start() < end for start, end, _ in names)
    ]
    # names alone say who and where, and not what
    ranked = [*names[:_ENOUGH_WORDS], *sorted(plain, key=_word_weight, reverse=True), *names[_ENOUGH_WORDS:]]
    chosen: dict[str, tuple[int, int, str]] = {}
    for found in ranked:
        if len(chosen) < (_ENOUGH_WORDS if _ADVERB_ENDING.search(found[2]) else _MAX_WORDS):
            chosen.setdefault(found[2].casefold(), found)
    return [word for _, _, word in sorted(chosen.values())]


def _word_weight(found: tuple[int, int, str]) -> tuple[bool, bool, bool, int]:
    start, _, word = found
    is_special = _has_special_case(word) or (start > 0 and word[0].isupper())
    return is_special, start > 0, not _ADVERB_ENDING.search(word), len(word)


def _has_special_case(word: str) -> bool:
    return any(char.isdigit() or char.isupper() for char in word[1:])


def _order_by_kind(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the entries in rounds, in each the surest of every kind that is left."""
    seen: Counter[str] = Counter()
    rounds: list[tuple[int, Mapping[str, Any]]] = []
    for entry in sorted(entries, key=lambda each: -float(each["confidence"])):
        rounds.append((seen[entry["kind"]], entry))
        seen[entry["kind"]] += 1
    return [entry for _, entry in sorted(rounds, key=lambda row: row[0])]
