"""Lines of a digest: one thing each, with the messages it rests on, and the choice of those that fit.

Pure. Invariants: what is chosen takes at most the limit; lines that say nearly the same stand once, the weightier or
later one; the order within a section is that of the conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ricordo.compaction.prompts import SECTIONS
from ricordo.language import containment, content_words, jaccard
from ricordo.tokens.estimate import estimate_text

__all__ = ["BEFORE", "RIGHTS", "Line", "cited", "clipped", "layout", "short_ids"]

BEFORE = " (before: "
RIGHTS = " (sets right: "
"""What stands before the statement whose place a line takes; that part of a line says nothing that holds."""

_SAME = 0.7
_ECHO = 0.65
_AROUND = 2
_LEAST_ID = 6
_WHOLE_ID = 8
_HEADED_FROM = 160
"""From so many tokens on a digest has headings and says where its lines come from."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: the section it belongs to (0 to 3, see `SECTIONS`), where it comes in the conversation, and how much it
    is worth; heavier lines are kept first. `cite` names the messages it rests on, empty for none. A line that stands
    `apart`, such as a title, may say what another one says."""

    section: int
    text: str
    at: int
    weight: float
    cite: str = ""
    apart: bool = False


def clipped(text: str, longest: int) -> str:
    """Return the text on one line of at most `longest` characters, cut between words where it is longer."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    end = line.rfind(" ", longest // 2, longest)
    return line[: end if end > 0 else longest - 1].rstrip(" ,;:-(") + "…"


def short_ids(ids: Sequence[str]) -> Mapping[str, str]:
    """Return for each id the shortest end, of six characters or more, that no other has; a short id stays whole."""
    known = list(dict.fromkeys(each for each in ids if each))
    size = _LEAST_ID
    while len({each[-size:] for each in known}) < len(known):
        size += 1
    return {each: each if len(each) <= _WHOLE_ID else each[-size:] for each in known}


def cited(ids: Sequence[str], names: Mapping[str, str]) -> str:
    """Return the range of messages for people and agents, such as `[m3]` or `[m3..m5]`; empty without ids."""
    known = [names[each] for each in ids if each in names]
    if not known:
        return ""
    return f"[{known[0]}]" if known[0] == known[-1] else f"[{known[0]}..{known[-1]}]"


def layout(lines: Sequence[Line], limit: int) -> str:
    """Return the weightiest lines in their sections, in at most `limit` tokens; empty when not even one fits."""
    headed = limit >= _HEADED_FROM
    left = limit - (estimate_text(_render((), headed=True)) if headed else 0)
    chosen: list[Line] = []
    known: list[frozenset[str]] = []
    for line in sorted(lines, key=lambda each: (-each.weight, -each.at)):
        size = estimate_text(_shown(line, headed=headed)) + 1
        words = frozenset(content_words(line.text.partition(BEFORE)[0].partition(RIGHTS)[0]))
        if size <= left and (line.apart or not _told(line, words, chosen, known)):
            chosen.append(line)
            known.append(frozenset() if line.apart else words)
            left -= size
        if left <= 0:
            break
    while chosen and estimate_text(found := _render(chosen, headed=headed)) > limit:
        chosen.pop()
    return found if chosen else ""


def _told(line: Line, words: frozenset[str], chosen: Sequence[Line], known: Sequence[frozenset[str]]) -> bool:
    """Tell whether a line is said already: by a line like it, or by those around it, as an echo is."""
    if any(jaccard(words, other) >= _SAME for other in known):
        return True
    around = [own for other, own in zip(chosen, known, strict=True) if abs(other.at - line.at) <= _AROUND]
    return containment(words, frozenset().union(*around)) >= _ECHO


def _render(lines: Sequence[Line], *, headed: bool) -> str:
    ordered = sorted(lines, key=lambda each: (each.section, each.at))
    if not headed:
        return "\n".join(_shown(line, headed=False) for line in ordered)
    blocks = []
    for at, section in enumerate(SECTIONS):
        own = [_shown(line, headed=True) for line in ordered if line.section == at]
        blocks.append("\n".join([f"## {section}", *(own or ["None"])]))
    return "\n".join(blocks)


def _shown(line: Line, *, headed: bool) -> str:
    return f"- {line.text} {line.cite}".rstrip() if headed else f"- {line.text}"
