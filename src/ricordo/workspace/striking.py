"""Striking: how what was forgotten leaves a text that repeats it, also in other words. Pure.

What is written as it was said is struck where it stands; of the rest each sentence in which three quarters of the words
of a memory occur. That is a guess on the safe side: a sentence too many is a small loss, and undo brings it back.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ricordo.language.sentences import split_sentences
from ricordo.language.similarity import containment
from ricordo.language.words import content_words
from ricordo.workspace.session_file import SessionFile, digest

__all__ = ["STRUCK", "says_any", "struck", "without_contents"]

STRUCK = "(forgotten)"
"""What stands in the place of what was forgotten."""

_ALIKE = 0.75
_FEWEST = 3


def struck(text: str, contents: Iterable[str]) -> str:
    """Return `text` with a mark in the place of each passage that says one of `contents`."""
    for content in contents:
        text = _without_sentences(_literal(content).sub(STRUCK, text), content)
    return text


def says_any(text: str, contents: Iterable[str]) -> bool:
    """Tell whether a passage of `text` says one of `contents`."""
    return any(_literal(content).search(text) or _without_sentences(text, content) != text for content in contents)


def without_contents(file: SessionFile, contents: Sequence[str], ids: Collection[str]) -> SessionFile:
    """Return what a session file says without these entries, and without what they say; a digest is made anew."""
    entries = tuple(entry for entry in file.entries if entry.id not in ids)
    made = file.pending and bool(file.entries)
    return replace(
        file,
        entries=entries,
        summary=digest(entries) if made else struck(file.summary, contents),
        open_threads=tuple(dict.fromkeys(struck(thread, contents) for thread in file.open_threads)),
    )


def _literal(content: str) -> re.Pattern[str]:
    words = content.strip().rstrip(".!?").split()
    return re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)" if words else r"(?!)", re.IGNORECASE)


def _without_sentences(text: str, content: str) -> str:
    wanted = set(content_words(content))
    if len(wanted) < _FEWEST:
        return text
    for sentence in reversed(split_sentences(text)):
        if containment(wanted, content_words(text[sentence.start : sentence.end])) >= _ALIKE:
            text = f"{text[: sentence.start]}{STRUCK}{text[sentence.end :]}"
    return text
