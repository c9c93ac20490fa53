"""The registry of hosts that can be connected: one line for each, loaded by its name."""

from importlib import import_module

from ricordo.errors import InvalidInput
from ricordo.hooks.install.contract import Installer

__all__ = ["INSTALLER_NAMES", "load_installer"]

_MODULES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "cursor": "cursor",
    "vscode": "vscode",
    "claude-desktop": "claude_desktop",
    "windsurf": "windsurf",
    "zed": "zed",
}
INSTALLER_NAMES = tuple(_MODULES)
"""The names of the hosts, as the command line takes them."""


def load_installer(name: str) -> Installer:
    """Return how the host with this name is connected. Raises: InvalidInput for another name."""
    if name not in _MODULES:
        others, last = ", ".join(INSTALLER_NAMES[:-1]), INSTALLER_NAMES[-1]
        raise InvalidInput(f"{name} is no host that can be connected: choose {others} or {last}.")
    installer: Installer = import_module(f"ricordo.hooks.install.hosts.{_MODULES[name]}").INSTALLER
    return installer
