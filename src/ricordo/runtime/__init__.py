"""Settings, assembly and lifetime: where the environment is read and concrete backends are named."""

from ricordo.runtime.assembly import Workspace, open_workspace
from ricordo.runtime.roots import find_root, new_root_path
from ricordo.runtime.settings import Settings

__all__ = ["Settings", "Workspace", "find_root", "new_root_path", "open_workspace"]
