"""Sections of a summary: four lists of lines, which code keeps, joins and shortens; no line is ever worded anew.

Pure and deterministic. Invariants: `parse(render(sections)) == sections` for lines that `is_line` accepts, and parsing
makes no others; what is kept of an earlier summary stays byte for byte, in its order and before all that is new.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ricordo.compaction.prompts import SECTION_NAMES
from ricordo.tokens.estimate import estimate_text

__all__ = [
    "SectionLines",
    "SummarySections",
    "find_new_lines",
    "fit_sections",
    "is_line",
    "label_lines",
    "parse_leniently",
    "find_missing_headings",
    "split_outdated",
    "parse_sections",
    "render_sections",
    "remove_lines",
]

SectionLines: TypeAlias = tuple[str, ...]

_INTENT, _SUMMARY, _ARTIFACTS, _STEPS = range(4)
_LABELS = "ISAN"
_HEADING = re.compile(
    rf"\s{{0,8}}(?P<mark>[#*_>]{{0,8}})\s{{0,8}}(?:\d[.)]\s{{0,8}})?(?P<bold>[*_]{{0,4}})(?P<name>{'|'.join(SECTION_NAMES)})\b"
    r"[*_ \t]*(?P<colon>[::]?)[*_ \t]*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_OUTDATED = re.compile(r"^[ \t>*_#-]*OUTDATED(?:[*_ \t]*:|[*_ \t]*$)", re.MULTILINE)
_LABEL = re.compile(rf"(?<!\w)[{_LABELS}][1-9]\d{{0,5}}(?!\w)")
_LABEL_ECHO = re.compile(rf"^(\s*(?:[-*•]\s+)?)\[[{_LABELS}]\d+\]\s*")
_EMPTY_LINES = frozenset({"", "none", "(none)", "none.", "n/a", "(none.)", "nothing", "nothing."})
_BULLET_CHARS = " \t-*•"


@dataclass(frozen=True, kw_only=True)
class SummarySections:
    """The lines of a summary, one tuple for each of `SECTION_NAMES`; an empty one has nothing to say."""

    lines: tuple[SectionLines, SectionLines, SectionLines, SectionLines] = ((), (), (), ())

    def __bool__(self) -> bool:
        """Tell whether there is any line."""
        return any(self.lines)


def is_line(text: str) -> bool:
    """Tell whether `text` can be a line: one line with words, not "None", and no heading; spaces end none."""
    one = len(text.splitlines()) == 1 and text == text.rstrip()
    return one and text.strip(_BULLET_CHARS).casefold() not in _EMPTY_LINES and _parse_heading(text) is None


def parse_sections(text: str) -> SummarySections | None:
    """Return the sections of `text`; None when it lacks one of the four headings.

    What stands before the first heading is left out, and so is a code fence around it all.
    """
    lines = text.strip().splitlines()
    if lines and lines[0].startswith("```") and lines[-1].strip() == "```":
        lines.pop()
    found: list[list[str]] = [[] for _ in SECTION_NAMES]
    seen: set[int] = set()
    at = -1
    for line in lines:
        heading = _parse_heading(line.rstrip())
        if heading is not None:
            at = heading[0]
            seen.add(at)
        told = (heading[1] if heading else line).rstrip()
        if at >= 0 and is_line(told):
            found[at].append(told)
    return _to_sections(found) if len(seen) == len(SECTION_NAMES) else None


def find_missing_headings(text: str) -> tuple[str, ...]:
    """Return the headings that `text` lacks, in their order."""
    found = {heading[0] for line in text.splitlines() if (heading := _parse_heading(line.rstrip())) is not None}
    return tuple(name for at, name in enumerate(SECTION_NAMES) if at not in found)


def parse_leniently(text: str) -> SummarySections:
    """Return the sections of `text`; one without the four headings is all SUMMARY, but for its headings."""
    found = parse_sections(text)
    if found is not None:
        return found
    told = tuple(line for each in text.splitlines() if is_line(line := each.rstrip()))
    return SummarySections(lines=((), told, (), ()))


def render_sections(sections: SummarySections) -> str:
    """Return the sections as text, each with its heading."""
    blocks = zip(SECTION_NAMES, sections.lines, strict=True)
    return "\n".join(line for name, lines in blocks for line in (f"## {name}", *(lines or ("None",))))


def label_lines(sections: SummarySections) -> str:
    """Return every line behind its label, such as `[S3]`, without headings; empty without lines."""
    return "\n".join(
        f"[{label}{number}] {line.lstrip(_BULLET_CHARS) or line}"
        for label, lines in zip(_LABELS, sections.lines, strict=True)
        for number, line in enumerate(lines, 1)
    )


def split_outdated(text: str) -> tuple[str, frozenset[str]]:
    """Return an answer without its last line OUTDATED and all below, and the labels that stood there."""
    found = list(_OUTDATED.finditer(text))
    if not found:
        return text, frozenset()
    return text[: found[-1].start()].rstrip(), frozenset(_LABEL.findall(text[found[-1].end() :]))


def remove_lines(sections: SummarySections, labels: Collection[str]) -> SummarySections:
    """Return the sections without the lines of these labels; a label that nothing has is no harm."""
    return _to_sections(
        [line for number, line in enumerate(lines, 1) if f"{label}{number}" not in labels]
        for label, lines in zip(_LABELS, sections.lines, strict=True)
    )


def find_new_lines(kept: SummarySections, new: SummarySections) -> SummarySections:
    """Return what of `new` isn't in the same section of `kept` already, each line once, without labels."""
    return _to_sections(
        list(_iterate_new_lines(lines, {_line_key(line) for line in own}))
        for own, lines in zip(kept.lines, new.lines, strict=True)
    )


def fit_sections(kept: SummarySections, new: SummarySections, *, limit: int, most: int) -> SummarySections:
    """Return the kept lines and then the new ones, in about `limit` tokens and, if lines can do that, at most `most`.

    To keep to `limit`, the oldest kept ARTIFACTS go first, then the oldest kept SUMMARY. What is still more than `most`
    loses new lines of those two, then kept NEXT STEPS and SESSION INTENT, then new NEXT STEPS, each from the oldest on.
    """
    old, fresh = [list(lines) for lines in kept.lines], [list(lines) for lines in new.lines]
    size = estimate_text(render_sections(SummarySections())) + sum(
        _line_tokens(line) for lines in (*old, *fresh) for line in lines
    )
    target = min(limit, most)
    for goal, lines in (
        (target, old[_ARTIFACTS]),
        (target, old[_SUMMARY]),
        (most, fresh[_ARTIFACTS]),
        (most, fresh[_SUMMARY]),
        (most, old[_STEPS]),
        (most, old[_INTENT]),
        (most, fresh[_STEPS]),
    ):
        while lines and size > goal:
            size -= _line_tokens(lines.pop(0))
    return _to_sections([*own, *more] for own, more in zip(old, fresh, strict=True))


def _parse_heading(line: str) -> tuple[int, str] | None:
    """Return the section that a line begins, and what it says of it already; None for a line that is no heading."""
    found = _HEADING.fullmatch(line)
    if found is None:
        return None
    name, rest = found["name"], found["rest"].strip()
    marked = bool(found["mark"] or found["bold"])
    if rest and not (found["colon"] and (marked or name.isupper())):
        return (SECTION_NAMES.index(name.upper()), "") if "#" in found["mark"] else None
    return SECTION_NAMES.index(name.upper()), rest


def _iterate_new_lines(lines: SectionLines, said: set[str]) -> Iterator[str]:
    for each in lines:
        line = _LABEL_ECHO.sub(r"\1", each)
        if is_line(line) and (key := _line_key(line)) not in said:
            said.add(key)
            yield line


def _line_key(line: str) -> str:
    return " ".join(line.lstrip(_BULLET_CHARS).split()).casefold()


def _line_tokens(line: str) -> int:
    return estimate_text(line) + 1


def _to_sections(lists: Iterator[list[str]] | list[list[str]]) -> SummarySections:
    intent, summary, artifacts, steps = map(tuple, lists)
    return SummarySections(lines=(intent, summary, artifacts, steps))
