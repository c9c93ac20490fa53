"""`Memory`, settings and roots, and the wiring of concrete backends; only this package reads the environment."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.runtime.doctor import check_memory, decide_doubt, find_due_doubts
    from ricordo.runtime.entry_import import EntryImporter
    from ricordo.runtime.extraction import SessionRecorder
    from ricordo.runtime.models import register_reranker
    from ricordo.runtime.roots import find_root, new_root_path
    from ricordo.runtime.session_places import delete_session, stop_learning
    from ricordo.runtime.settings import Settings
    from ricordo.runtime.stores import open_store, register_store
    from ricordo.runtime.workspace import Dependencies, Workspace, open_workspace, root_files

__all__ = [
    "Dependencies",
    "EntryImporter",
    "SessionRecorder",
    "Settings",
    "Workspace",
    "check_memory",
    "decide_doubt",
    "delete_session",
    "find_due_doubts",
    "find_root",
    "new_root_path",
    "open_store",
    "open_workspace",
    "register_reranker",
    "register_store",
    "root_files",
    "stop_learning",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".doctor": "check_memory decide_doubt find_due_doubts",
        ".entry_import": "EntryImporter",
        ".extraction": "SessionRecorder",
        ".models": "register_reranker",
        ".roots": "find_root new_root_path",
        ".session_places": "delete_session stop_learning",
        ".settings": "Settings",
        ".stores": "open_store register_store",
        ".workspace": "Dependencies Workspace open_workspace root_files",
    },
)
