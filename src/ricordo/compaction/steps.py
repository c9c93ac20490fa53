"""Next steps: each must name the message of a person that asked for it.

Pure. Invariant: a new step that cites no such message is no step; what it says is kept, as something noted.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ricordo.compaction.sections import SummarySections

__all__ = ["Citations", "check_next_steps", "find_citations"]

_NOTE_PREFIX = "noted, not asked for: "
_CITATION_GROUP = re.compile(r"(?P<space>[ \t]{0,4})\[(?P<inside>[^\[\]\n]{1,200})\](?!\()")
_CITATION_SEPARATOR = re.compile(r"[,;\s]+|\.{2,}|…")
_FILLER_WORDS = frozenset({"id", "ids", "message", "messages", "msg", "and", "user"})
_ID_PATTERN = re.compile(r"(?=.*\d)[0-9a-z_-]{6,64}|[ISAN]\d+")
_DATE_PATTERN = re.compile(r"\d{4}-\d\d(-\d\d)?")
_MIN_CITED_CHARS = 6
_UNUSED_STEPS = 3
_UNUSED_SUMMARY = 1


@dataclass(frozen=True, kw_only=True)
class Citations:
    """The ids that may be cited: `requests` are those of what people said, `others` those of all other messages."""

    requests: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def find(self, word: str) -> str:
        """Return the id that `word` names: itself, or the only one that it begins or ends, from six characters on.

        Empty when there is none, or more than one.
        """
        known = self.requests | self.others
        if word in known:
            return word
        found = (
            [each for each in known if each.startswith(word) or each.endswith(word)]
            if len(word) >= _MIN_CITED_CHARS
            else []
        )
        return found[0] if len(found) == 1 else ""


def check_next_steps(new: SummarySections, cites: Citations) -> SummarySections:
    """Return `new` with only the steps that somebody asked for, and without cites of messages that do not exist.

    The others become lines of SUMMARY, which say that nobody asked.
    """
    intent, summary, artifacts, steps = new.lines
    told = [(_trim_citations(step, cites), step) for step in steps]
    asked = tuple(line for line, step in told if _cites_request(step, cites))
    noted = tuple(
        f"- {_NOTE_PREFIX}{line.lstrip(' -*•')}"
        for line, step in told
        if not _cites_request(step, cites) and line.strip(" -*•")
    )
    return SummarySections(
        lines=(intent, (*summary, *noted), artifacts, tuple(line for line in asked if line.strip(" -*•")))
    )


def find_citations(lines: Iterable[str]) -> Collection[str]:
    """Return what the lines cite, as it stands there."""
    return {
        word for line in lines for group in _CITATION_GROUP.finditer(line) for word in _split_citations(group["inside"])
    }


def _cites_request(line: str, cites: Citations) -> bool:
    return any(cites.find(word) in cites.requests for word in find_citations([line]))


def _trim_citations(line: str, cites: Citations) -> str:
    return _CITATION_GROUP.sub(lambda group: _trim_group(group, cites), line).rstrip()


def _trim_group(group: re.Match[str], cites: Citations) -> str:
    """Return a group of cites with those that exist; anything else in brackets stays as it is."""
    words = _split_citations(group["inside"])
    known = [word for word in words if cites.find(word)]
    if len(known) == len(words) or not all(word in known or _is_like_id(word) for word in words):
        return group[0]
    return f"{group['space']}[{', '.join(known)}]" if known else ""


def _split_citations(inside: str) -> list[str]:
    words = (word.strip("`'\"#") for word in _CITATION_SEPARATOR.split(inside))
    return [word for word in words if word and word.rstrip(":").casefold() not in _FILLER_WORDS]


def _is_like_id(word: str) -> bool:
    return _ID_PATTERN.fullmatch(word) is not None and _DATE_PATTERN.fullmatch(word) is None
