"""Zed: the MCP server in its settings, which have comments, and rules that say when to use it."""

from ricordo.hooks.install.contract import ConfigPart, Installer, InstallOptions, InstallScope, Machine
from ricordo.hooks.install.folders import config_folder
from ricordo.hooks.install.parts import JsonMember, ManagedBlock
from ricordo.hooks.install.rules import RULES, TOOLS_EFFECT

__all__ = ["INSTALLER"]

_NAME = "zed"
# of a project Zed reads the first of these files that is there
_RULE_FILES = (
    *(".rules", ".cursorrules", ".windsurfrules", ".clinerules", "AGENT.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md"),
)


def _find_folder(scope: InstallScope, machine: Machine) -> str:
    if scope == "project":
        return machine.project
    return config_folder(machine, "Zed" if machine.platform == "win32" else "zed", is_unix=True)


def _list_parts(options: InstallOptions) -> tuple[ConfigPart, ...]:
    is_project = options.scope == "project"
    server = JsonMember(
        path=".zed/settings.json" if is_project else "settings.json",
        place=("context_servers", "ricordo"),
        value={"source": "custom", "command": options.program, "args": ["mcp", "--client", _NAME]},
    )
    there = (name for name in _RULE_FILES if is_project and name in options.files)
    return (server, ManagedBlock(path=next(there, "AGENTS.md"), content=RULES))


INSTALLER = Installer(
    name=_NAME,
    title="Zed",
    find_folder=_find_folder,
    list_parts=_list_parts,
    list_signs=lambda machine: (_find_folder("user", machine),),
    programs=("zed", "zeditor"),
    effects=(TOOLS_EFFECT,),
)
"""Zed."""
