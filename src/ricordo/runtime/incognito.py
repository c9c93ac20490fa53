"""Incognito: a session that shows nothing of memory and keeps nothing of itself. Its root is not even opened.

What people wrote as instructions still holds: the rules of the root are in the prompt, and what memories forbid of tool
calls is refused. Both are only read, and a refusal does not say what the memory says.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ricordo.files import FileStore
from ricordo.guard.permissions import PermissionRule
from ricordo.runtime.assembly import Dependencies, root_files, scratch_files, working_directory_files
from ricordo.runtime.roots import cache_folder
from ricordo.runtime.visible_places import list_root_layers
from ricordo.scopes import Scope
from ricordo.stores.rules import RuleSource, MemoryRules
from ricordo.tools import ApprovalHandler, Tool
from ricordo.tools.file_tools import file_tools
from ricordo.tools.task_tools import SessionTasks

__all__ = ["incognito_file_tools", "create_incognito_rules"]


@dataclass(frozen=True, kw_only=True)
class _ReadOnlyRoot:
    label: str
    files: FileStore


@dataclass(frozen=True, kw_only=True)
class _ReadOnlyRoots:
    """The roots that a scope sees, as they lie there."""

    roots: tuple[_ReadOnlyRoot, ...]

    async def places(self) -> tuple[RuleSource, ...]:
        return self.roots


def create_incognito_rules(
    root: Path, scope: Scope, parts: Dependencies
) -> Callable[[], Awaitable[tuple[PermissionRule, ...]]]:
    """Return what reads the rules of memories in `root`, and in the user's own one, without the words of the memories.

    It raises as `MemoryRules` does.
    """
    layers = list_root_layers(root, scope, parts.settings.data)
    read = MemoryRules(
        _ReadOnlyRoots(roots=tuple(_ReadOnlyRoot(label=each.label, files=root_files(each.folder)) for each in layers))
    )

    async def load_rules() -> tuple[PermissionRule, ...]:
        return tuple(replace(rule, why="") for rule in await read())

    return load_rules


def incognito_file_tools(
    root: Path,
    folder: Path,
    parts: Dependencies,
    *,
    approve: ApprovalHandler | None,
    shell: bool,
    tasks: SessionTasks | None,
) -> tuple[Tool, ...]:
    """Return the file tools for `folder`; what lies in `root` is closed to them, and their workspace is empty.

    The locks of the folder are kept in the cache, so that nothing is written into the root.
    """
    working = working_directory_files(folder, cache_folder(parts.settings.cache, root), parts)
    return file_tools(scratch_files(), working, approve=approve, folder=folder, root=root, shell=shell, tasks=tasks)
