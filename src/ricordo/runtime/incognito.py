"""Incognito: a session that shows nothing of memory and keeps nothing of itself. Its root is not even opened.

What people wrote as instructions still holds: the rules of the root are in the prompt, and what memories forbid of tool
calls is refused. Both are only read, and a refusal does not say what the memory says.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ricordo.files import FileStore
from ricordo.guard.permissions import PermissionRule
from ricordo.runtime.assembly import Parts, files_of, scratch_files, working_files
from ricordo.runtime.roots import cache_folder
from ricordo.runtime.visible_places import layers_of
from ricordo.scopes import Scope
from ricordo.stores.rules import HoldsMemory, MemoryRules
from ricordo.tools import Approve, Tool
from ricordo.tools.file_tools import file_tools
from ricordo.tools.task_tools import Tasks

__all__ = ["forgetful_tools", "silent_rules"]


@dataclass(frozen=True, kw_only=True)
class _Root:
    label: str
    files: FileStore


@dataclass(frozen=True, kw_only=True)
class _Roots:
    """The roots that a scope sees, as they lie there."""

    roots: tuple[_Root, ...]

    async def places(self) -> tuple[HoldsMemory, ...]:
        return self.roots


def silent_rules(root: Path, scope: Scope, parts: Parts) -> Callable[[], Awaitable[tuple[PermissionRule, ...]]]:
    """Return what reads the rules of memories in `root`, and in the user's own one, without the words of the memories.

    It raises as `MemoryRules` does.
    """
    layers = layers_of(root, scope, parts.settings.data)
    read = MemoryRules(_Roots(roots=tuple(_Root(label=each.label, files=files_of(each.folder)) for each in layers)))

    async def silent() -> tuple[PermissionRule, ...]:
        return tuple(replace(rule, why="") for rule in await read())

    return silent


def forgetful_tools(
    root: Path, folder: Path, parts: Parts, *, approve: Approve | None, shell: bool, tasks: Tasks | None
) -> tuple[Tool, ...]:
    """Return the file tools for `folder`; what lies in `root` is closed to them, and their workspace is empty.

    The locks of the folder are kept in the cache, so that nothing is written into the root.
    """
    working = working_files(folder, cache_folder(parts.settings.cache, root), parts)
    return file_tools(scratch_files(), working, approve=approve, folder=folder, root=root, shell=shell, tasks=tasks)
