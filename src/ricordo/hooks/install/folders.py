"""Where hosts have their settings on each platform, by their documentation. Pure."""

import ntpath
import posixpath
from collections.abc import Callable

from ricordo.hooks.install.contract import InstallScope, Machine

__all__ = ["config_folder", "home_folder", "in_home_or_project", "join_path"]


def join_path(machine: Machine, *names: str) -> str:
    """Return a path of the machine's platform."""
    return ntpath.join(*names) if machine.platform == "win32" else posixpath.join(*names)


def home_folder(machine: Machine, *names: str) -> str:
    """Return a folder in the home of the user."""
    return join_path(machine, machine.home, *names)


def config_folder(machine: Machine, name: str, *, is_unix: bool = False) -> str:
    """Return the folder of a program among the settings of the user: %APPDATA%, on a Mac Application Support, else
    XDG_CONFIG_HOME or `~/.config`.

    With `is_unix` the program uses the last one everywhere but on Windows.
    """
    if machine.platform == "win32":
        base = machine.environment.get("APPDATA") or home_folder(machine, "AppData", "Roaming")
    elif machine.platform == "darwin" and not is_unix:
        base = home_folder(machine, "Library", "Application Support")
    else:
        base = machine.environment.get("XDG_CONFIG_HOME", "").strip() or home_folder(machine, ".config")
    return join_path(machine, base, name)


def in_home_or_project(folder: str, *, variable: str = "") -> Callable[[InstallScope, Machine], str]:
    """Return the finder for a host with a folder of the same name in the home of the user and in a project.

    The environment variable `variable` replaces the first.
    """

    def find_folder(scope: InstallScope, machine: Machine) -> str:
        if scope == "project":
            return join_path(machine, machine.project, folder)
        return machine.environment.get(variable) or home_folder(machine, folder)

    return find_folder
