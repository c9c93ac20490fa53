"""Text in other clothes: a data URI that is text, and one text that came in several parts."""

import base64
import binascii
import re
from collections.abc import Sequence
from itertools import accumulate
from urllib.parse import quote, unquote

from ricordo.guard.redact import Redactor
from ricordo.guard.rules import find_secrets

__all__ = ["redact_joined", "redact_uri"]

_TEXT_DATA_URI = re.compile(r"data:(?:[;,]|text/|[^;,]*(?:json|xml|yaml|javascript|x-sh|x-www-form))", re.IGNORECASE)


def redact_uri(uri: str, redactor: Redactor) -> str:
    """Return a URI without secrets; of a data URI that holds text, what it says is cleaned, any other one stays."""
    if uri[:5].lower() != "data:":
        return redactor.clean(uri)
    head, comma, body = uri.partition(",")
    head = redactor.clean(head)
    if not head.lower().rstrip().endswith(";base64"):
        said = unquote(body, errors="replace")
        cleaned = redactor.clean(said)
        return f"{head}{comma}{body if cleaned == said else quote(cleaned)}"
    if not _TEXT_DATA_URI.match(head):
        return f"{head}{comma}{body}"
    said = _decode_base64(body)
    cleaned = redactor.clean(said)
    if cleaned == said:
        return f"{head}{comma}{body}"
    return f"{head}{comma}{base64.b64encode(cleaned.encode('utf-8', 'replace')).decode()}"


def redact_joined(texts: Sequence[str], redactor: Redactor) -> list[str]:
    """Return these texts, read as one that is joined by newlines or spaces, with a mark in each that held some of a
    secret."""
    return _redact_across(_redact_across(list(texts), " ", redactor), "\n", redactor)


def _redact_across(shown: list[str], separator: str, redactor: Redactor) -> list[str]:
    while spans := find_secrets(joined := separator.join(shown)):
        starts = [0, *accumulate(len(text) + 1 for text in shown)]
        for span in reversed(spans):
            mark = redactor.render_mark(span.type, joined[span.start : span.end])
            for number, text in enumerate(shown):
                start, end = max(span.start - starts[number], 0), min(span.end - starts[number], len(text))
                if start < end:
                    shown[number] = text[:start] + mark + text[end:]
    return shown


def _decode_base64(body: str) -> str:
    try:
        return base64.b64decode(unquote(body) + "=" * (-len(unquote(body)) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return unquote(body)
