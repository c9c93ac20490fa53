"""Whether a text may take the place of history. Pure.

Invariant: an empty text, an error and a text without content are never accepted.
"""

import re
from dataclasses import dataclass

from ricordo.compaction.answer import Answer
from ricordo.compaction.quotes import folded, is_quoted_right
from ricordo.compaction.record import Record
from ricordo.compaction.sections import Sections, added, fitted, loosely, missing, outdated, parse, render, without
from ricordo.compaction.steps import checked_steps
from ricordo.tokens import estimate_text

__all__ = ["Bounds", "Verdict", "flaw", "taken_in", "taken_whole"]

_ERROR = re.compile(
    r"\W{0,3}(?:"
    r"(?:internal (?:server )?)?error(?:\s*\d{3})?\s*[:!.]"
    r"|\w*(?:Error|Exception|Timeout|Unavailable|RateLimited|Refused)\b\s*[:(]"
    r"|traceback \(most recent call last\)"
    r"|(?:http )?[45]\d\d\b[^\n]{0,60}\b(?:error|unavailable|gateway|unauthorized|too many requests|not found)"
    r"|(?:rate limit|quota|context length|maximum context)[^\n]{0,40}\bexceeded"
    r"|(?:the )?(?:summary|summarization|summarisation|request|compaction) (?:could not|failed|was not)\b"
    r"|(?:failed|unable) to (?:summari[sz]e|generate|create|produce)\b"
    r"|(?:i['’]m |i am )?(?:sorry|afraid)\b[^\n]{0,40}\b(?:can(?:no|['’])t|unable|not able)"
    r"|i (?:can(?:no|['’])t|am unable to|am not able to) (?:help|assist|summari[sz]e|comply|do)"
    r"|<!doctype html|<html"
    r")",
    re.IGNORECASE,
)
_ENDED = {"refused": "it was refused", "length": "it was cut off", "window": "it was cut off"}
_TOO_LONG = "it is too long"
_MISQUOTED = "it quotes words that nobody said"
_CONTENT = re.compile(r"[^\W_]")


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How long a summary should be (`limit`) and may be (`most`), in tokens."""

    limit: int
    most: int


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The summary that comes of an answer, or the `flaw` because of which there is none."""

    text: str = ""
    flaw: str = ""


def taken_whole(answer: Answer, record: Record, earlier: str, bounds: Bounds) -> Verdict:
    """Return an answer that is the summary itself, as a prompt of somebody's own brings it."""
    text = answer.summary.strip()
    found = _ENDED.get(answer.stop, "") or flaw(text)
    if not found and estimate_text(text) > bounds.most:
        found = _TOO_LONG
    if not found and not is_quoted_right(text, f"{record.said} {folded(earlier)}"):
        found = _MISQUOTED
    return Verdict(flaw=found) if found else Verdict(text=text)


def taken_in(answer: Answer, record: Record, earlier: str, bounds: Bounds) -> Verdict:
    """Return the `earlier` summary with what an answer adds to it, and without what that says is outdated."""
    text, labels = outdated(answer.summary)
    found, new = _ENDED.get(answer.stop, "") or flaw(text), parse(text)
    if not found and new is None:
        found = f"the section {missing(text)[0]} is missing"
    elif not found and estimate_text(text) > bounds.most:
        found = _TOO_LONG
    elif not found and new and not is_quoted_right(_lines(new), f"{record.said} {folded(earlier)}"):
        found = _MISQUOTED
    if found or new is None:
        return Verdict(flaw=found)
    kept = without(loosely(earlier), labels)
    whole = fitted(kept, added(kept, checked_steps(new, record.cites)), limit=bounds.limit, most=bounds.most)
    text = render(whole)
    if not whole:
        return Verdict(flaw="it says nothing")
    return Verdict(flaw=_TOO_LONG) if estimate_text(text) > bounds.most else Verdict(text=text)


def flaw(text: str) -> str:
    """Say why `text` is no summary; empty when it is one."""
    if not text.strip():
        return "it is empty"
    if not _CONTENT.search(text):
        return "it holds no words"
    if _ERROR.match(text.strip()):
        return "it is the text of an error"
    return ""


def _lines(sections: Sections) -> str:
    return "\n".join(line for lines in sections.lines for line in lines)
