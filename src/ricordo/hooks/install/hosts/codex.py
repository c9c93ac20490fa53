"""Codex: hooks in `hooks.json`, and the MCP server in `config.toml`.

Codex runs a hook only after the person has reviewed it; it writes what was trusted into `config.toml`, by the file, the
event and the place of the hook. So our hooks stand behind those of others, and an older one is replaced in its place.
"""

from ricordo.hooks.hosts.codex import HOST
from ricordo.hooks.install.contract import HOOKED_EFFECTS, ConfigPart, Installer, InstallOptions
from ricordo.hooks.install.folders import home_folder, in_home_or_project
from ricordo.hooks.install.parts import JsonItem, TomlTable, join_command

__all__ = ["INSTALLER"]

_HOOKS_FILE = "hooks.json"
_TIMEOUT = 20
_REVIEW = (
    "Codex runs no hook that you have not reviewed: start `codex`, and trust the hooks of ricordo when it asks, or "
    "with `/hooks`."
)
# Codex gives a hook all of its environment, and a server only what is named; both have to find the same memory.
_VARIABLES = (
    *(
        "RICORDO_ROOT",
        "RICORDO_USER",
        "RICORDO_DATA",
        "RICORDO_CACHE",
        "RICORDO_INDEX",
        "RICORDO_TRUST",
        "RICORDO_WORKTREES",
    ),
    *("RICORDO_EMBEDDER", "RICORDO_HOOKS", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
)


def _list_parts(options: InstallOptions) -> tuple[ConfigPart, ...]:
    server = TomlTable(
        path="config.toml",
        place=("mcp_servers", "ricordo"),
        values={"command": options.program, "args": ["mcp"], "env_vars": list(_VARIABLES)},
    )
    return (*(_hook_part(event, options) for event in HOST.events), server)


def _hook_part(event: str, options: InstallOptions) -> JsonItem:
    command = join_command([options.program, "hook", HOST.name, event], options.platform)
    return JsonItem(
        path=_HOOKS_FILE,
        place=("hooks", event),
        item={"hooks": [{"type": "command", "command": command, "timeout": _TIMEOUT}]},
        marks=("ricordo", f" hook {HOST.name} {event}"),
    )


INSTALLER = Installer(
    name=HOST.name,
    title=HOST.title,
    find_folder=in_home_or_project(".codex", variable="CODEX_HOME"),
    list_parts=_list_parts,
    list_signs=lambda machine: (home_folder(machine, ".codex"),),
    programs=("codex",),
    effects=HOOKED_EFFECTS,
    learns=True,
    confirmations={"user": _REVIEW, "project": _REVIEW},
    session_variables=("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_MANAGED_BY_NPM", "CODEX_MANAGED_PACKAGE_ROOT"),
)
"""Codex."""
