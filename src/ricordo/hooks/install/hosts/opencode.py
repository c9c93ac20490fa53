"""opencode: a plugin, which calls the hooks, in its folder of plugins, and the MCP server in its configuration."""

import json
from importlib.resources import files

from ricordo.hooks.hosts.opencode import HOST
from ricordo.hooks.install.contract import HOOKED_EFFECTS, ConfigPart, Installer, InstallOptions, InstallScope, Machine
from ricordo.hooks.install.folders import config_folder
from ricordo.hooks.install.parts import JsonMember, WholeFile

__all__ = ["INSTALLER"]

_PLUGIN = "opencode_plugin.js"
_PACKAGE = (
    "At its next start opencode loads its own package for plugins from npm, once; without a network it waits for it."
)


def _find_folder(scope: InstallScope, machine: Machine) -> str:
    return machine.project if scope == "project" else config_folder(machine, "opencode", is_unix=True)


def _list_parts(options: InstallOptions) -> tuple[ConfigPart, ...]:
    folder = ".opencode/plugins" if options.scope == "project" else "plugins"
    # opencode reads both, and makes the second by itself
    name = next((each for each in ("opencode.json", "opencode.jsonc") if each in options.files), "opencode.json")
    server = JsonMember(
        path=name,
        place=("mcp", "ricordo"),
        value={"type": "local", "command": [options.program, "mcp"], "enabled": True},
    )
    source = files(__package__).joinpath(_PLUGIN).read_text("utf-8")
    plugin = WholeFile(path=f"{folder}/ricordo.js", content=source.replace('"@PROGRAM@"', json.dumps(options.program)))
    return (plugin, server)


INSTALLER = Installer(
    name=HOST.name,
    title=HOST.title,
    find_folder=_find_folder,
    list_parts=_list_parts,
    list_signs=lambda machine: (config_folder(machine, "opencode", is_unix=True),),
    programs=("opencode",),
    effects=HOOKED_EFFECTS,
    learns=True,
    confirmations={"user": _PACKAGE, "project": _PACKAGE},
    session_variables=("OPENCODE",),
)
"""opencode."""
