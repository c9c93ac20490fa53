"""Tags that a host writes around the files of a message: they go, and what was said stays as it is.

What the message's metadata says counts first: `original_user_content` is what was said before tags were put in; a list
of files (`files`, `uploads`, `attachments`) that is empty means that there are none, so nothing is a tag. Else only
whole blocks go, outside code; where files are listed also one whose end was cut off.
"""

import re
from collections.abc import Iterator, Mapping

from ricordo.flush.gaps import joined
from ricordo.messages import JsonValue

__all__ = ["metadata_of", "said_before_uploads", "without_uploads"]

_BLOCK = re.compile(r"<(uploaded_files|current_uploads)>.*?</\1>", re.IGNORECASE | re.DOTALL)
_UNCLOSED = re.compile(r"^<(uploaded_files|current_uploads)>.*\Z", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LISTS = ("files", "uploads", "attachments")
_SAID = "original_user_content"


def metadata_of(metadata: Mapping[str, JsonValue], key: str) -> JsonValue:
    """Return a value of a message's metadata, also where a framework keeps it under `additional_kwargs`."""
    inner = metadata.get("additional_kwargs")
    return metadata.get(key, inner.get(key) if isinstance(inner, dict) else None)


def without_uploads(text: str, metadata: Mapping[str, JsonValue]) -> str:
    """Return `text` without the tags around uploaded files and what stands in them; the same text without such tags."""
    lists = [found for key in _LISTS if isinstance(found := metadata_of(metadata, key), list)]
    if "<" not in text or (lists and not any(lists)):
        return text
    left: list[str] = []
    at = 0
    for start, end in _blocks(text, cut_off=any(lists)):
        left.append(text[at:start])
        at = end
    return joined((*left, text[at:])) if left else text


def _blocks(text: str, *, cut_off: bool) -> Iterator[tuple[int, int]]:
    """Yield where blocks stand, and at last one that lost its end, where such a one counts."""
    code = [match.span() for match in _CODE.finditer(text)]
    last = 0
    for match in _BLOCK.finditer(text):
        if not any(start <= match.start() < end for start, end in code):
            yield match.span()
            last = match.end()
    if cut_off and (rest := _UNCLOSED.search(text, last)) is not None:
        yield rest.span()


def said_before_uploads(metadata: Mapping[str, JsonValue]) -> str | None:
    """Return what was said before a host put tags in; None where it does not say."""
    found = metadata_of(metadata, _SAID)
    return found if isinstance(found, str) else None
