"""VS Code: hooks of its agents in a file of our own; in a project also the MCP server and instructions.

In the settings of a person VS Code can't tell a server which folder is open, so the server is part of a project.
"""

import json

from ricordo.hooks.hosts.vscode import HOST
from ricordo.hooks.install.contract import HOOKED_EFFECTS, ConfigPart, Installer, InstallOptions, InstallScope, Machine
from ricordo.hooks.install.folders import config_folder, home_folder
from ricordo.hooks.install.parts import JsonMember, WholeFile, join_command
from ricordo.hooks.install.rules import RULES

__all__ = ["INSTALLER"]

_TIMEOUT = 20
_INSTRUCTIONS_HEAD = '---\nname: Memory\ndescription: How to use the memory of Ricordo\napplyTo: "**"\n---\n\n'


def _find_folder(scope: InstallScope, machine: Machine) -> str:
    return machine.project if scope == "project" else home_folder(machine, ".copilot")


def _list_parts(options: InstallOptions) -> tuple[ConfigPart, ...]:
    hooks = {event: [_describe_hook(event, options)] for event in HOST.events}
    content = json.dumps({"hooks": hooks}, indent=2) + "\n"
    if options.scope == "user":
        return (WholeFile(path="hooks/ricordo.json", content=content),)
    server = JsonMember(
        path=".vscode/mcp.json",
        place=("servers", "ricordo"),
        value={
            "type": "stdio",
            "command": options.program,
            "args": ["mcp", "--folder", "${workspaceFolder}", "--client", HOST.name],
        },
    )
    instructions = WholeFile(path=".github/instructions/ricordo.instructions.md", content=_INSTRUCTIONS_HEAD + RULES)
    return (WholeFile(path=".github/hooks/ricordo.json", content=content), server, instructions)


def _describe_hook(event: str, options: InstallOptions) -> dict[str, object]:
    command = join_command([options.program, "hook", HOST.name, event], options.platform)
    return {"type": "command", "command": command, "timeout": _TIMEOUT}


INSTALLER = Installer(
    name=HOST.name,
    title=HOST.title,
    find_folder=_find_folder,
    list_parts=_list_parts,
    list_signs=lambda machine: (config_folder(machine, "Code"), config_folder(machine, "Code - Insiders")),
    programs=("code", "code-insiders"),
    effects=HOOKED_EFFECTS,
    learns=True,
    confirmations={
        "user": "Its model has no tools of the memory yet: `ricordo install vscode --scope project` adds them to one.",
        "project": "VS Code asks whether you trust the server when it starts it for the first time.",
    },
)
"""VS Code."""
