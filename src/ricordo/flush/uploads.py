"""Tags that a host writes around the files of a message: they go, and what was said stays as it is.

What the message's metadata says counts first: `original_user_content` is what was said before tags were put in; a list
of files (`files`, `uploads`, `attachments`) that is empty means that there are none, so nothing is a tag. Else only
whole blocks go, outside code; where files are listed also one whose end was cut off.
"""

import re
from collections.abc import Iterator, Mapping

from ricordo.flush.gaps import join_with_gaps
from ricordo.messages import JsonValue

__all__ = ["metadata_value", "original_user_text", "strip_uploads"]

_UPLOAD_BLOCK = re.compile(r"<(uploaded_files|current_uploads)>.*?</\1>", re.IGNORECASE | re.DOTALL)
_UNCLOSED_UPLOAD = re.compile(r"^<(uploaded_files|current_uploads)>.*\Z", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_CODE_SPAN = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_FILE_LIST_KEYS = ("files", "uploads", "attachments")
_ORIGINAL_TEXT_KEY = "original_user_content"


def metadata_value(metadata: Mapping[str, JsonValue], key: str) -> JsonValue:
    """Return a value of a message's metadata, also where a framework keeps it under `additional_kwargs`."""
    inner = metadata.get("additional_kwargs")
    return metadata.get(key, inner.get(key) if isinstance(inner, dict) else None)


def strip_uploads(text: str, metadata: Mapping[str, JsonValue]) -> str:
    """Return `text` without the tags around uploaded files and what stands in them; the same text without such tags."""
    lists = [found for key in _FILE_LIST_KEYS if isinstance(found := metadata_value(metadata, key), list)]
    if "<" not in text or (lists and not any(lists)):
        return text
    left: list[str] = []
    at = 0
    for start, end in _find_upload_blocks(text, cut_off=any(lists)):
        left.append(text[at:start])
        at = end
    return join_with_gaps((*left, text[at:])) if left else text


def _find_upload_blocks(text: str, *, cut_off: bool) -> Iterator[tuple[int, int]]:
    """Yield where blocks stand, and at last one that lost its end, where such a one counts."""
    code = [match.span() for match in _CODE_SPAN.finditer(text)]
    last = 0
    for match in _UPLOAD_BLOCK.finditer(text):
        if not any(start <= match.start() < end for start, end in code):
            yield match.span()
            last = match.end()
    if cut_off and (rest := _UNCLOSED_UPLOAD.search(text, last)) is not None:
        yield rest.span()


def original_user_text(metadata: Mapping[str, JsonValue]) -> str | None:
    """Return what was said before a host put tags in; None where it does not say."""
    found = metadata_value(metadata, _ORIGINAL_TEXT_KEY)
    return found if isinstance(found, str) else None
