"""Windsurf: the MCP server in the one file that it has for all projects, and rules that say when to use it."""

from ricordo.hooks.install.contract import ConfigPart, Installer, InstallOptions, InstallScope, Machine
from ricordo.hooks.install.folders import home_folder
from ricordo.hooks.install.parts import JsonMember, ManagedBlock
from ricordo.hooks.install.rules import OWN_MEMORY_EFFECT, RULES, TOOLS_EFFECT

__all__ = ["INSTALLER"]

_NAME = "windsurf"


def _find_folder(scope: InstallScope, machine: Machine) -> str:
    return "" if scope == "project" else home_folder(machine, ".codeium", "windsurf")


def _list_parts(options: InstallOptions) -> tuple[ConfigPart, ...]:
    server = JsonMember(
        path="mcp_config.json",
        place=("mcpServers", "ricordo"),
        value={"command": options.program, "args": ["mcp", "--root", options.root, "--client", _NAME]},
    )
    return (server, ManagedBlock(path="memories/global_rules.md", content=RULES))


INSTALLER = Installer(
    name=_NAME,
    title="Windsurf",
    find_folder=_find_folder,
    list_parts=_list_parts,
    list_signs=lambda machine: (home_folder(machine, ".codeium", "windsurf"),),
    programs=("windsurf",),
    effects=(TOOLS_EFFECT, OWN_MEMORY_EFFECT),
    confirmations={"user": "Windsurf shows the server after a refresh of its list of MCP servers."},
)
"""Windsurf."""
