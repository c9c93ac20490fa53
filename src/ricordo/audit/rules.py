r"""Rules that somebody wrote into memory and that are not in force, so that nobody relies on them. Pure.

A rule is the field `[rule:: deny shell(git push*)]` at the end of a bullet, after a blank. What looks like one and is
not read as one has another form, stands elsewhere, or was not made by a person. A bracket within it is written `\[`.
"""

import re

from ricordo.consolidation.sheet import DocumentPart, parse_memory_document

__all__ = ["find_inactive_rules"]

_RULE_LIKE = re.compile(rb"(?<![\\`])(?:\[\s*rule\s*:|\(\s*rule\s*::)", re.IGNORECASE)


def find_inactive_rules(path: str, document: bytes) -> list[int]:
    """Return the lines, from 1 and in order, on which a rule is meant that is not in force; fenced code has none."""
    if not _RULE_LIKE.search(document):
        return []
    lines: list[int] = []
    line = 1
    for part in parse_memory_document(document, path).parts:
        lines += [line + part.data[:start].count(b"\n") for start in _find_inactive(part)]
        line += part.data.count(b"\n")
    return lines


def _find_inactive(part: DocumentPart) -> list[int]:
    """Return where in a part a rule is meant that does not count; of a bullet's one does, on its last line."""
    meant = [match.start() for match in _RULE_LIKE.finditer(part.data)]
    if part.entry is None:
        return [] if part.fenced else meant
    if not part.entry.is_rule:
        return meant
    counts = max((start for start in meant if part.data.startswith(b"[", start)), default=0)
    return [start for start in meant if start < counts]
