"""Whether a text may take the place of history. Pure.

Invariant: an empty text, an error and a text without content are never accepted.
"""

import re
from dataclasses import dataclass

from ricordo.compaction.answer import SummaryReply
from ricordo.compaction.quotes import normalize_quote, has_valid_quotes
from ricordo.compaction.record import ConversationRecord
from ricordo.compaction.sections import (
    SummarySections,
    find_new_lines,
    fit_sections,
    parse_leniently,
    find_missing_headings,
    split_outdated,
    parse_sections,
    render_sections,
    remove_lines,
)
from ricordo.compaction.steps import check_next_steps
from ricordo.tokens import estimate_text

__all__ = ["SummaryBounds", "SummaryVerdict", "find_flaw", "accept_additions", "accept_whole"]

_ERROR_TEXT = re.compile(
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
_STOP_FLAWS = {"refused": "it was refused", "length": "it was cut off", "window": "it was cut off"}
_TOO_LONG_FLAW = "it is too long"
_MISQUOTED_FLAW = "it quotes words that nobody said"
_WORD_CHAR = re.compile(r"[^\W_]")


@dataclass(frozen=True, kw_only=True)
class SummaryBounds:
    """How long a summary should be (`limit`) and may be (`most`), in tokens."""

    limit: int
    most: int


@dataclass(frozen=True, kw_only=True)
class SummaryVerdict:
    """The summary that comes of an answer, or the `flaw` because of which there is none."""

    text: str = ""
    flaw: str = ""


def accept_whole(
    answer: SummaryReply, record: ConversationRecord, earlier: str, bounds: SummaryBounds
) -> SummaryVerdict:
    """Return an answer that is the summary itself, as a prompt of somebody's own brings it."""
    text = answer.summary.strip()
    found = _STOP_FLAWS.get(answer.stop, "") or find_flaw(text)
    if not found and estimate_text(text) > bounds.most:
        found = _TOO_LONG_FLAW
    if not found and not has_valid_quotes(text, f"{record.text} {normalize_quote(earlier)}"):
        found = _MISQUOTED_FLAW
    return SummaryVerdict(flaw=found) if found else SummaryVerdict(text=text)


def accept_additions(
    answer: SummaryReply, record: ConversationRecord, earlier: str, bounds: SummaryBounds
) -> SummaryVerdict:
    """Return the `earlier` summary with what an answer adds to it, and without what that says is outdated."""
    text, labels = split_outdated(answer.summary)
    found, new = _STOP_FLAWS.get(answer.stop, "") or find_flaw(text), parse_sections(text)
    if not found and new is None:
        found = f"the section {find_missing_headings(text)[0]} is missing"
    elif not found and estimate_text(text) > bounds.most:
        found = _TOO_LONG_FLAW
    elif not found and new and not has_valid_quotes(_join_lines(new), f"{record.text} {normalize_quote(earlier)}"):
        found = _MISQUOTED_FLAW
    if found or new is None:
        return SummaryVerdict(flaw=found)
    kept = remove_lines(parse_leniently(earlier), labels)
    whole = fit_sections(
        kept, find_new_lines(kept, check_next_steps(new, record.citations)), limit=bounds.limit, most=bounds.most
    )
    text = render_sections(whole)
    if not whole:
        return SummaryVerdict(flaw="it says nothing")
    return SummaryVerdict(flaw=_TOO_LONG_FLAW) if estimate_text(text) > bounds.most else SummaryVerdict(text=text)


def find_flaw(text: str) -> str:
    """Say why `text` is no summary; empty when it is one."""
    if not text.strip():
        return "it is empty"
    if not _WORD_CHAR.search(text):
        return "it holds no words"
    if _ERROR_TEXT.match(text.strip()):
        return "it is the text of an error"
    return ""


def _join_lines(sections: SummarySections) -> str:
    return "\n".join(line for lines in sections.lines for line in lines)
