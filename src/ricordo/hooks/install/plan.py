"""What connecting a host changes in its files, and what disconnecting it changes back. Pure.

Invariants: connecting twice changes no more than once. A file that nobody touched since is afterwards what it was
before, byte for byte; from another one only our parts go. A file that can't be changed safely stops the whole plan.
"""

import codecs
import difflib
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256

from ricordo.errors import DocumentInvalid
from ricordo.hooks.install.contract import ConfigChange, ConfigPart, Original

__all__ = ["digest_content", "list_paths", "plan_install", "plan_uninstall", "render_difference"]


def list_paths(parts: Iterable[ConfigPart]) -> tuple[str, ...]:
    """Return the files that the parts belong to, each one once."""
    return tuple(dict.fromkeys(part.path for part in parts))


def plan_install(parts: tuple[ConfigPart, ...], files: Mapping[str, bytes | None]) -> tuple[ConfigChange, ...]:
    """Return the files that change when the parts are added. Raises: DocumentInvalid, with the file."""
    return _keep_changes(_plan_file(path, files[path], parts, _add) for path in list_paths(parts))


def plan_uninstall(
    parts: tuple[ConfigPart, ...], files: Mapping[str, bytes | None], originals: Mapping[str, Original]
) -> tuple[ConfigChange, ...]:
    """Return the files that change when the parts are removed; `originals` are the files that connecting changed.

    Raises: DocumentInvalid, with the file.
    """
    return _keep_changes(_restore_file(path, files[path], parts, originals.get(path)) for path in list_paths(parts))


def digest_content(content: bytes | None) -> str:
    """Return a digest of the content of a file, empty for one that is not there."""
    return "" if content is None else sha256(content).hexdigest()


def render_difference(change: ConfigChange, *, name: str) -> str:
    """Return what a change does to a file, in the unified format; `name` is shown for the file."""
    before, after = (
        (content or b"").decode("utf-8", "replace").splitlines() for content in (change.before, change.after)
    )
    names = (name if change.before is not None else "(new)", name if change.after is not None else "(removed)")
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm="", n=2))


def _keep_changes(changes: Iterable[ConfigChange]) -> tuple[ConfigChange, ...]:
    return tuple(change for change in changes if change.before != change.after)


def _restore_file(
    path: str, content: bytes | None, parts: tuple[ConfigPart, ...], original: Original | None
) -> ConfigChange:
    if original is not None and digest_content(content) == original.digest:
        return ConfigChange(path=path, before=content, after=original.before)
    return _plan_file(path, content, parts, _remove)


def _plan_file(
    path: str,
    content: bytes | None,
    parts: tuple[ConfigPart, ...],
    change: Callable[[ConfigPart, str | None], str | None],
) -> ConfigChange:
    has_mark = content is not None and content.startswith(codecs.BOM_UTF8)
    try:
        text = None if content is None else content.decode("utf-8-sig")
        for part in parts:
            if part.path == path:
                text = change(part, text)
    except (DocumentInvalid, UnicodeDecodeError, RecursionError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise DocumentInvalid(f"{path} can't be changed safely: {reason.rstrip('.')}. Nothing was written.") from error
    after = None if text is None else (codecs.BOM_UTF8 if has_mark else b"") + text.encode("utf-8", "surrogatepass")
    return ConfigChange(path=path, before=content, after=after)


def _add(part: ConfigPart, text: str | None) -> str | None:
    return part.add(text)


def _remove(part: ConfigPart, text: str | None) -> str | None:
    return None if text is None else part.remove(text)
