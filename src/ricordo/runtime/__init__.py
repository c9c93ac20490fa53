"""`Memory`, settings and roots, and the wiring of concrete backends; only this package reads the environment."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.runtime.models import register_reranker
    from ricordo.runtime.roots import find_root, new_root_path
    from ricordo.runtime.settings import Settings
    from ricordo.runtime.stores import open_store, register_store
    from ricordo.runtime.workspace import Dependencies, Workspace, open_workspace, root_files

__all__ = [
    "Dependencies",
    "Settings",
    "Workspace",
    "find_root",
    "new_root_path",
    "open_store",
    "open_workspace",
    "register_reranker",
    "register_store",
    "root_files",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".models": "register_reranker",
        ".roots": "find_root new_root_path",
        ".settings": "Settings",
        ".stores": "open_store register_store",
        ".workspace": "Dependencies Workspace open_workspace root_files",
    },
)
