"""Pictures, sounds and files in the formats: inline as base64, by URL, or by a provider's file id."""

import mimetypes
import re

from ricordo.lazy import lazy_compile

__all__ = ["UNKNOWN_TYPE", "guess_media_type", "is_file_id", "is_url", "make_data_uri", "parse_data_uri"]


UNKNOWN_TYPE = "application/octet-stream"
_DATA_URI = lazy_compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def make_data_uri(media_type: str, base64: str) -> str:
    """Return a data URI with the data `base64`."""
    return f"data:{media_type};base64,{base64}"


def parse_data_uri(uri: str) -> tuple[str, str] | None:
    """Return the media type and the base64 text of a data URI; None for any other URI."""
    match = _DATA_URI.fullmatch(uri)
    return (match[1], match[2]) if match else None


def is_url(uri: str) -> bool:
    """Return whether a provider can fetch `uri`."""
    return uri.startswith(("http://", "https://"))


def is_file_id(uri: str) -> bool:
    """Return whether `uri` can be a provider's file id: a word that is neither a URL nor a path."""
    return re.fullmatch(r"[\w-]+", uri) is not None


def guess_media_type(uri: str, family: str) -> str:
    """Return the media type of a data URI, or of a URL by its ending; `family/*` if it is unknown."""
    data_uri = parse_data_uri(uri)
    guessed = data_uri[0] if data_uri else mimetypes.guess_type(uri.partition("?")[0])[0]
    return guessed if guessed and guessed.startswith(f"{family}/") else f"{family}/*"
