"""Gemini CLI: hooks and the MCP server in `settings.json`, which may have comments."""

from ricordo.hooks.hosts.gemini import HOST
from ricordo.hooks.install.contract import HOOKED_EFFECTS, ConfigPart, Installer, InstallOptions, InstallScope, Machine
from ricordo.hooks.install.folders import home_folder, join_path
from ricordo.hooks.install.parts import JsonItem, JsonMember, join_command

__all__ = ["INSTALLER"]

_FILE = "settings.json"
_FOLDER = ".gemini"
_MILLISECONDS = 20_000
_TRUST = "Gemini CLI starts no server in a folder that you have not trusted: it asks when you start it there."


def _find_folder(scope: InstallScope, machine: Machine) -> str:
    if scope == "project":
        return join_path(machine, machine.project, _FOLDER)
    return join_path(machine, machine.environment.get("GEMINI_CLI_HOME") or machine.home, _FOLDER)


def _list_parts(options: InstallOptions) -> tuple[ConfigPart, ...]:
    server = JsonMember(
        path=_FILE, place=("mcpServers", "ricordo"), value={"command": options.program, "args": ["mcp"]}
    )
    return (*(_hook_part(event, options) for event in HOST.events), server)


def _hook_part(event: str, options: InstallOptions) -> JsonItem:
    command = join_command([options.program, "hook", HOST.name, event], options.platform)
    # a hook that fails and says why blocks the turn, and so would a program that is no longer there
    command = f"& {command} 2>$null; exit 0" if options.platform == "win32" else f"{command} 2>/dev/null || true"
    return JsonItem(
        path=_FILE,
        place=("hooks", event),
        item={"hooks": [{"name": "ricordo", "type": "command", "command": command, "timeout": _MILLISECONDS}]},
        marks=("ricordo", f" hook {HOST.name} {event}"),
    )


INSTALLER = Installer(
    name=HOST.name,
    title=HOST.title,
    find_folder=_find_folder,
    list_parts=_list_parts,
    list_signs=lambda machine: (home_folder(machine, _FOLDER),),
    programs=("gemini",),
    effects=HOOKED_EFFECTS,
    learns=True,
    confirmations={"user": _TRUST, "project": _TRUST},
    session_variables=("GEMINI_CLI",),
)
"""Gemini CLI."""
