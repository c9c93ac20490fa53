"""Settings, roots and their wiring, and `Memory`: where the environment is read and backends are named."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.runtime.roots import find_root, new_root_path
    from ricordo.runtime.settings import Settings
    from ricordo.runtime.workspace import Workspace, open_workspace

__all__ = ["Settings", "Workspace", "find_root", "new_root_path", "open_workspace"]

__getattr__ = lazy_exports(
    __name__,
    {
        ".roots": "find_root new_root_path",
        ".settings": "Settings",
        ".workspace": "Workspace open_workspace",
    },
)
