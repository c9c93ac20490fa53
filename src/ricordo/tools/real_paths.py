"""RealPaths: what a path that a model writes really names, behind every symbolic link.

A permission rule speaks of a path. A link is another name of the same file, so a denial is compared with both.

Invariant: nothing is opened or changed, and a text that can be no path is none.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from anyio.to_thread import run_sync

__all__ = ["PathResolver"]

_MAX_TEXT_CHARS, _MAX_PATH_CHARS = 100_000, 4_096
"""The most characters of a text that is looked at, and, without its detours, of a path."""


class PathResolver:
    """Sees through the links in paths: a leading slash means the workspace, or the disk, anything else the folder."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        """Look from the working directory `folder`, and from `workspace`."""
        self._folder = folder
        self._workspace = workspace

    async def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return what those of `texts` really name that name something else than they say.

        What lies in the working directory is told from there, what lies in the workspace with a leading slash, and all
        else from the top of the disk.
        """
        paths = [text for text in dict.fromkeys(texts) if _may_be_path(text)]
        return await run_sync(self._resolve_all, paths) if paths else []

    def _resolve_all(self, paths: Sequence[str]) -> list[str]:
        folder, workspace = os.path.realpath(self._folder), os.path.realpath(self._workspace)
        found: dict[str, None] = {}
        for path in paths:
            for start in (workspace, "/") if path.startswith("/") else (folder,):
                for real in _resolve(start, path.lstrip("/")):
                    found[_render_path(real, folder, workspace)] = None
        return [each for each in found if each not in paths]


def _resolve(start: str, path: str) -> list[str]:
    """Return what a path names where that is another one; `..` behind a link is read in both ways."""
    whole = f"{start}/{path}"
    plain = os.path.normpath(whole)
    try:
        real = dict.fromkeys((os.path.realpath(whole), os.path.realpath(plain)))
    except (OSError, ValueError):
        # what the system can't take as a path leads nowhere
        return []
    return [each for each in real if each != plain or start == "/"]


def _render_path(real: str, folder: str, workspace: str) -> str:
    for start, slash in ((workspace, "/"), (folder, "")):
        if real == start:
            return slash or "."
        if real.startswith(f"{start.rstrip(os.sep)}{os.sep}"):
            return slash + os.path.relpath(real, start)
    return real


def _may_be_path(text: str) -> bool:
    return 0 < len(text) <= _MAX_TEXT_CHARS and "\0" not in text and len(os.path.normpath(text)) <= _MAX_PATH_CHARS
