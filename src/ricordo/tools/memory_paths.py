"""The paths of the memory tool: a virtual root, `/memories`, and names below it. Pure; nothing here touches a disk.

Invariant: a path is below the root in one reading only. What another reader could take for a parent, a separator, a
hidden name or another root, after decoding or by its looks, is refused rather than repaired.
"""

import re
import unicodedata
from urllib.parse import unquote

from ricordo.errors import PathRefused
from ricordo.files.paths import safe_path
from ricordo.guard import has_secret
from ricordo.workspace.layout import AGENT_NOTES

__all__ = ["parse_memory_path", "display_path"]


_LOOKS_LIKE_SLASH = frozenset("⁄∕⧸⧹⫻⫽／∖⧵＼﹨╱╲〳ノ丿⼃")
_DOT_LIKE = re.compile(r"[\s.․‥…．。｡﹒·・･•‧∙⋅⸱⸳ꓸ٠۰܁܂]+")


def parse_memory_path(path: str) -> str:
    """Return what `path` names below the root, with `/` between its parts; empty for the root, however it is spelled.

    Empty parts and those of one dot don't count. Raises: PathRefused for a path that is not below `/memories`, or
    could be read as one that is not.
    """
    root, _, rest = path.removeprefix("/").partition("/")
    if not path.startswith("/") or root != AGENT_NOTES:
        raise PathRefused(f"Error: Paths begin with /{AGENT_NOTES}, as in /{AGENT_NOTES}/notes.md, not {path[:80]!r}.")
    inside = safe_path(rest)
    if safe_path(_decode_percent(rest)).count("/") != inside.count("/") or bool(inside) != bool(
        safe_path(_decode_percent(rest))
    ):
        raise PathRefused(f"Error: The path {path[:80]!r} holds an encoded separator.")
    for name in inside.split("/") if inside else []:
        _check_name(name, path)
    if has_secret(inside):
        raise PathRefused("Error: The path holds a secret: it would be written as the name of a file.")
    return inside


def display_path(inside: str) -> str:
    """Return how the model writes what lies at `inside`."""
    return f"/{AGENT_NOTES}/{inside}" if inside else f"/{AGENT_NOTES}"


def _decode_percent(text: str) -> str:
    """Return the text after every layer of percent encoding; each makes it shorter."""
    while (plain := unquote(text)) != text:
        text = plain
    return text


def _check_name(name: str, path: str) -> None:
    folded = unicodedata.normalize("NFKC", _decode_percent(name))
    if not _LOOKS_LIKE_SLASH.isdisjoint(name) or _DOT_LIKE.fullmatch(folded):
        raise PathRefused(f"Error: The path {path[:80]!r} holds a name that looks like a way out of /{AGENT_NOTES}.")
    if folded.startswith("."):
        raise PathRefused(f"Error: The path {path[:80]!r} holds a hidden name: those are never shown.")
    if name != name.strip() or name.endswith("."):
        raise PathRefused(f"Error: A name of {path[:80]!r} begins or ends with a space, or ends with a dot.")
