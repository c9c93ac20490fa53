"""Claude Desktop: the MCP server in its configuration. It has neither projects, hooks nor a file of rules."""

from ricordo.hooks.install.contract import ConfigPart, Installer, InstallOptions, InstallScope, Machine
from ricordo.hooks.install.folders import config_folder
from ricordo.hooks.install.parts import JsonMember
from ricordo.hooks.install.rules import OWN_MEMORY_EFFECT, TOOLS_EFFECT

__all__ = ["INSTALLER"]

_NAME = "claude-desktop"


def _find_folder(scope: InstallScope, machine: Machine) -> str:
    return "" if scope == "project" else config_folder(machine, "Claude")


def _list_parts(options: InstallOptions) -> tuple[ConfigPart, ...]:
    server = JsonMember(
        path="claude_desktop_config.json",
        place=("mcpServers", "ricordo"),
        value={"command": options.program, "args": ["mcp", "--root", options.root, "--client", _NAME]},
    )
    return (server,)


INSTALLER = Installer(
    name=_NAME,
    title="Claude Desktop",
    find_folder=_find_folder,
    list_parts=_list_parts,
    list_signs=lambda machine: (config_folder(machine, "Claude"),),
    programs=(),
    effects=(TOOLS_EFFECT, OWN_MEMORY_EFFECT),
    confirmations={"user": "Quit Claude Desktop and start it again: it reads its configuration when it starts."},
)
"""Claude Desktop."""
