"""Whether a text may take the place of history. Pure.

Invariant: an empty text, an error and a text without content are never accepted.
"""

import re

from ricordo.compaction.prompts import SECTIONS

__all__ = ["flaw", "missing_sections"]

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
_CONTENT = re.compile(r"[^\W_]")


def flaw(text: str) -> str:
    """Say why `text` is no summary; empty when it is one."""
    if not text.strip():
        return "it is empty"
    if not _CONTENT.search(text):
        return "it holds no words"
    if _ERROR.match(text.strip()):
        return "it is the text of an error"
    return ""


def missing_sections(text: str) -> str:
    """Say which of the four sections `text` lacks; empty when it has all."""
    lines = [line.strip(" #*_:.-\t").upper() for line in text.splitlines()]
    lacking = [section for section in SECTIONS if not any(line.startswith(section) for line in lines)]
    return f"the section {lacking[0]} is missing" if lacking else ""
