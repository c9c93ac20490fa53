"""What is forgotten leaves the summaries too: the sentences that say it are taken out. Pure.

Invariant: of a summary only whole sentences go.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ricordo.language import split_sentences
from ricordo.profile.types import ProfileUpdate
from ricordo.workspace.profile import Profile
from ricordo.workspace.striking import contains_literally, repeats_partly

__all__ = ["without_forgotten", "remove_statement", "remove_partial_statement"]

_MIN_SHARED_WORDS = 0.5

_BRACKETED_NAMES = re.compile(r"\(([^()]+)\)")
_NOT_WORDS = re.compile(r"[\W_]+")


def remove_statement(profile: Profile, content: str) -> Profile:
    """Return the profile with no sentence in its summaries that says `content` word for word; its facts stay.

    Case, white space and sentence marks don't count.
    """
    said = _normalize(content)
    if not said.strip():
        return profile
    summaries = {
        name: replace(each, summary=_remove_sentences(each.summary, said)) if said in _normalize(each.summary) else each
        for name, each in profile.summaries.items()
    }
    return replace(profile, summaries=summaries)


def remove_partial_statement(profile: Profile, content: str) -> Profile:
    """Return the profile with no sentence in its summaries that has half of the words of `content`; its facts stay."""
    summaries = {
        name: replace(each, summary=rest)
        if (rest := _remove_partial_sentences(each.summary, content)) != each.summary
        else each
        for name, each in profile.summaries.items()
    }
    return replace(profile, summaries=summaries)


def without_forgotten(update: ProfileUpdate, forgotten: Callable[[str], bool]) -> ProfileUpdate:
    """Return the update with no sentence in its summaries that was `forgotten`; a summary of nothing else goes."""
    cleaned = []
    for edit in update.summaries:
        sentences = split_sentences(edit.summary)
        kept = [each.text for each in sentences if not forgotten(each.text)]
        if len(kept) == len(sentences):
            cleaned.append(edit)
        elif kept:
            cleaned.append(replace(edit, summary=" ".join(kept)))
    return replace(update, summaries=tuple(cleaned))


def _remove_sentences(text: str, said: str) -> str:
    """Return the text without the sentences that hold `said`; all of it goes where it runs over several."""
    sentences = split_sentences(text)
    kept = [sentence for sentence in sentences if said not in _normalize(sentence.text)]
    if len(kept) == len(sentences):
        return ""
    return " ".join(sentence.text for sentence in kept)


def _remove_partial_sentences(text: str, content: str) -> str:
    named = _BRACKETED_NAMES.sub(partial(_remove_names, content=content), text)
    sentences = split_sentences(named)
    kept = [each.text for each in sentences if not repeats_partly(each.text, [content], least=_MIN_SHARED_WORDS)]
    return named.strip() if len(kept) == len(sentences) else " ".join(kept)


def _remove_names(match: re.Match[str], content: str) -> str:
    """Return a list of names in brackets without those that `content` names."""
    left = [name for name in match[1].split(", ") if not contains_literally(content, [name])]
    return match[0] if len(left) == match[1].count(", ") + 1 else f"({', '.join(left)})" if left else ""


def _normalize(text: str) -> str:
    """Return the words of a text between single blanks."""
    return f" {_NOT_WORDS.sub(' ', unicodedata.normalize('NFC', text).casefold()).strip()} "
