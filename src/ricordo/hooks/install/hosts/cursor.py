"""Cursor: a hook at the start of a session and the MCP server; in a project also a rule that says when to use it."""

from ricordo.hooks.hosts.cursor import HOST
from ricordo.hooks.install.contract import ConfigPart, Installer, InstallOptions
from ricordo.hooks.install.folders import home_folder, in_home_or_project
from ricordo.hooks.install.parts import JsonItem, JsonMember, WholeFile, join_command
from ricordo.hooks.install.rules import RULES, TOOLS_EFFECT

__all__ = ["INSTALLER"]

_FOLDER = ".cursor"
_TIMEOUT = 20
_NEW_HOOKS = '{\n  "version": 1\n}\n'
_RULE_HEAD = "---\ndescription: How to use the memory of Ricordo\nalwaysApply: true\n---\n\n"


def _list_parts(options: InstallOptions) -> tuple[ConfigPart, ...]:
    event = next(iter(HOST.events))
    hook = JsonItem(
        path="hooks.json",
        place=("hooks", event),
        item={
            "command": join_command([options.program, "hook", HOST.name, event], options.platform),
            "timeout": _TIMEOUT,
        },
        marks=("ricordo", f" hook {HOST.name} {event}"),
        template=_NEW_HOOKS,
    )
    server = JsonMember(
        path="mcp.json",
        place=("mcpServers", "ricordo"),
        # Cursor starts every server in the home of the user, and fills in the folder that is open
        value={"command": options.program, "args": ["mcp", "--folder", "${workspaceFolder}", "--client", HOST.name]},
    )
    # the rules of a person are no file
    rule = (WholeFile(path="rules/ricordo.mdc", content=_RULE_HEAD + RULES),) if options.scope == "project" else ()
    return (hook, server, *rule)


INSTALLER = Installer(
    name=HOST.name,
    title=HOST.title,
    find_folder=in_home_or_project(_FOLDER),
    list_parts=_list_parts,
    list_signs=lambda machine: (home_folder(machine, _FOLDER),),
    programs=("cursor", "cursor-agent"),
    effects=("Each session begins with what is remembered.", TOOLS_EFFECT),
    session_variables=("CURSOR_AGENT",),
)
"""Cursor."""
