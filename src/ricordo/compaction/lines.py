"""Lines of a digest: one thing each, with the messages it rests on, and the choice of those that fit.

Pure. Invariants: what is chosen takes at most the limit; lines that say nearly the same stand once, the weightier or
later one; the order within a section is that of the conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ricordo.compaction.prompts import SECTION_NAMES
from ricordo.language import containment, content_words, jaccard
from ricordo.tokens.estimate import estimate_text

__all__ = ["REPLACED_PREFIX", "CORRECTED_PREFIX", "DigestLine", "cite_range", "clip_line", "fit_lines", "shorten_ids"]

REPLACED_PREFIX = " (before: "
CORRECTED_PREFIX = " (sets right: "
"""What stands before the statement whose place a line takes; that part of a line says nothing that holds."""

_MAX_LINE_SIMILARITY = 0.7
_MAX_CONTAINMENT = 0.65
_NEIGHBOUR_DISTANCE = 2
_MIN_SHORT_ID_CHARS = 6
_MAX_WHOLE_ID_CHARS = 8
_MIN_HEADED_TOKENS = 160
"""From so many tokens on a digest has headings and says where its lines come from."""


@dataclass(frozen=True, kw_only=True)
class DigestLine:
    """One line: the section it belongs to (0 to 3, see `SECTION_NAMES`), where it comes in the conversation, and how much it
    is worth; heavier lines are kept first. `cite` names the messages it rests on, empty for none. A line that stands
    `allows_repetition`, such as a title, may say what another one says."""

    section: int
    text: str
    position: int
    weight: float
    cite: str = ""
    allows_repetition: bool = False


def clip_line(text: str, longest: int) -> str:
    """Return the text on one line of at most `longest` characters, cut between words where it is longer."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    end = line.rfind(" ", longest // 2, longest)
    return line[: end if end > 0 else longest - 1].rstrip(" ,;:-(") + "…"


def shorten_ids(ids: Sequence[str]) -> Mapping[str, str]:
    """Return for each id the shortest end, of six characters or more, that no other has; a short id stays whole."""
    known = list(dict.fromkeys(each for each in ids if each))
    size = _MIN_SHORT_ID_CHARS
    while len({each[-size:] for each in known}) < len(known):
        size += 1
    return {each: each if len(each) <= _MAX_WHOLE_ID_CHARS else each[-size:] for each in known}


def cite_range(ids: Sequence[str], names: Mapping[str, str]) -> str:
    """Return the range of messages for people and agents, such as `[m3]` or `[m3..m5]`; empty without ids."""
    known = [names[each] for each in ids if each in names]
    if not known:
        return ""
    return f"[{known[0]}]" if known[0] == known[-1] else f"[{known[0]}..{known[-1]}]"


def fit_lines(lines: Sequence[DigestLine], limit: int) -> str:
    """Return the weightiest lines in their sections, in at most `limit` tokens; empty when not even one fits."""
    headed = limit >= _MIN_HEADED_TOKENS
    left = limit - (estimate_text(_render_lines((), headed=True)) if headed else 0)
    chosen: list[DigestLine] = []
    known: list[frozenset[str]] = []
    for line in sorted(lines, key=lambda each: (-each.weight, -each.position)):
        size = estimate_text(_render_line(line, headed=headed)) + 1
        words = frozenset(content_words(line.text.partition(REPLACED_PREFIX)[0].partition(CORRECTED_PREFIX)[0]))
        if size <= left and (line.allows_repetition or not _is_repeated(line, words, chosen, known)):
            chosen.append(line)
            known.append(frozenset() if line.allows_repetition else words)
            left -= size
        if left <= 0:
            break
    while chosen and estimate_text(found := _render_lines(chosen, headed=headed)) > limit:
        chosen.pop()
    return found if chosen else ""


def _is_repeated(
    line: DigestLine, words: frozenset[str], chosen: Sequence[DigestLine], known: Sequence[frozenset[str]]
) -> bool:
    """Tell whether a line is said already: by a line like it, or by those around it, as an echo is."""
    if any(jaccard(words, other) >= _MAX_LINE_SIMILARITY for other in known):
        return True
    around = [
        own
        for other, own in zip(chosen, known, strict=True)
        if abs(other.position - line.position) <= _NEIGHBOUR_DISTANCE
    ]
    return containment(words, frozenset().union(*around)) >= _MAX_CONTAINMENT


def _render_lines(lines: Sequence[DigestLine], *, headed: bool) -> str:
    ordered = sorted(lines, key=lambda each: (each.section, each.position))
    if not headed:
        return "\n".join(_render_line(line, headed=False) for line in ordered)
    blocks = []
    for at, section in enumerate(SECTION_NAMES):
        own = [_render_line(line, headed=True) for line in ordered if line.section == at]
        blocks.append("\n".join([f"## {section}", *(own or ["None"])]))
    return "\n".join(blocks)


def _render_line(line: DigestLine, *, headed: bool) -> str:
    return f"- {line.text} {line.cite}".rstrip() if headed else f"- {line.text}"
