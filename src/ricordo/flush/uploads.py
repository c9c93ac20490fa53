"""Tags that a host writes around the files of a message: they go, and what was said stays as it is.

What the message's metadata says counts first: `original_user_content` is what was said before tags were put in; a list
of files (`files`, `uploads`, `attachments`) that is empty means that there are none, so nothing is a tag. Else only
whole blocks go, outside code; where files are listed also one whose end was cut off.
"""

import re
from collections.abc import Mapping

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
    code = [match.span() for match in _CODE.finditer(text)]

    def cut(match: re.Match[str]) -> str:
        return match.group() if any(start <= match.start() < end for start, end in code) else "\n\n"

    left = _BLOCK.sub(cut, text)
    if any(lists):
        left = _UNCLOSED.sub("", left)
    return text if left == text else left.strip()


def said_before_uploads(metadata: Mapping[str, JsonValue]) -> str | None:
    """Return what was said before a host put tags in; None where it does not say."""
    found = metadata_of(metadata, _SAID)
    return found if isinstance(found, str) else None
