"""Next steps: each must name the message of a person that asked for it.

Pure. Invariant: a new step that cites no such message is no step; what it says is kept, as something noted.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ricordo.compaction.sections import Sections

__all__ = ["Cites", "checked_steps", "cites_in"]

_NOTED = "noted, not asked for: "
_GROUP = re.compile(r"(?P<space>[ \t]{0,4})\[(?P<inside>[^\[\]\n]{1,200})\](?!\()")
_BETWEEN = re.compile(r"[,;\s]+|\.{2,}|…")
_TALK = frozenset({"id", "ids", "message", "messages", "msg", "and", "user"})
_ID = re.compile(r"(?=.*\d)[0-9a-z_-]{6,64}|[ISAN]\d+")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")
_LEAST = 6
_STEPS = 3
_SUMMARY = 1


@dataclass(frozen=True, kw_only=True)
class Cites:
    """The ids that may be cited: `asked` are those of what people said, `others` those of all other messages."""

    asked: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def find(self, word: str) -> str:
        """Return the id that `word` names: itself, or the only one that it begins or ends, from six characters on.

        Empty when there is none, or more than one.
        """
        known = self.asked | self.others
        if word in known:
            return word
        found = [each for each in known if each.startswith(word) or each.endswith(word)] if len(word) >= _LEAST else []
        return found[0] if len(found) == 1 else ""


def checked_steps(new: Sections, cites: Cites) -> Sections:
    """Return `new` with only the steps that somebody asked for, and without cites of messages that do not exist.

    The others become lines of SUMMARY, which say that nobody asked.
    """
    intent, summary, artifacts, steps = new.lines
    told = [(_trimmed(step, cites), step) for step in steps]
    asked = tuple(line for line, step in told if _is_asked(step, cites))
    noted = tuple(
        f"- {_NOTED}{line.lstrip(' -*•')}" for line, step in told if not _is_asked(step, cites) and line.strip(" -*•")
    )
    return Sections(lines=(intent, (*summary, *noted), artifacts, tuple(line for line in asked if line.strip(" -*•"))))


def cites_in(lines: Iterable[str]) -> Collection[str]:
    """Return what the lines cite, as it stands there."""
    return {word for line in lines for group in _GROUP.finditer(line) for word in _words(group["inside"])}


def _is_asked(line: str, cites: Cites) -> bool:
    return any(cites.find(word) in cites.asked for word in cites_in([line]))


def _trimmed(line: str, cites: Cites) -> str:
    return _GROUP.sub(lambda group: _group(group, cites), line).rstrip()


def _group(group: re.Match[str], cites: Cites) -> str:
    """Return a group of cites with those that exist; anything else in brackets stays as it is."""
    words = _words(group["inside"])
    known = [word for word in words if cites.find(word)]
    if len(known) == len(words) or not all(word in known or _is_like_id(word) for word in words):
        return group[0]
    return f"{group['space']}[{', '.join(known)}]" if known else ""


def _words(inside: str) -> list[str]:
    words = (word.strip("`'\"#") for word in _BETWEEN.split(inside))
    return [word for word in words if word and word.rstrip(":").casefold() not in _TALK]


def _is_like_id(word: str) -> bool:
    return _ID.fullmatch(word) is not None and _DATE.fullmatch(word) is None
