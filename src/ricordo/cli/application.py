"""The table of commands: every command under its name.

Start-up is felt, so the module of a command is imported when the command runs or its help is shown.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command, get_group

from ricordo import __version__
from ricordo.cli.error_handling import Command, CommandGroup, NestedGroup
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption, wants_json
from ricordo.cli.render import print_json, print_line
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from typer.core import TyperGroup

__all__ = ["app"]


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Commands below one name; `callback` runs when none of them is named, else the help is shown."""

    commands: Mapping[str, str]
    help: str | None = None
    callback: str | None = None


# each command under its name, with the module in `ricordo.cli.commands` and the function; in the order of the help
_COMMANDS: dict[str, str | _Group] = {
    "chat": "chat:chat",
    "demo": "demo:demo",
    "import": "importing:import_",
    "replay": "replay:replay",
    "remember": "remember:remember",
    "recall": "recall:recall",
    "ask": "recall:ask",
    "why": "history:why",
    "context": "context:context",
    "compact": "context:compact",
    "expand": "context:expand",
    "forget": "remember:forget",
    "erase": "remember:erase",
    "promote": "team:promote",
    "demote": "team:demote",
    "pin": "remember:pin",
    "confirm": "remember:confirm",
    "review": _Group(
        callback="remember:review",
        commands={
            "accept": "remember:accept",
            "reject": "remember:reject",
            "merge": "remember:merge",
            "edit": "remember:edit",
            "later": "remember:later",
        },
    ),
    "undo": "history:undo",
    "history": "history:history",
    "diff": "history:diff",
    "audit": "status:audit",
    "mcp": "serve:mcp",
    "serve": "serve:serve",
    "token": _Group(
        help="Say who may use the HTTP service of `ricordo serve`.",
        commands={"create": "serve:create_token", "list": "serve:list_tokens", "revoke": "serve:revoke_token"},
    ),
    "hook": "hosts:hook",
    "doctor": "status:doctor",
    "install": "install:install",
    "uninstall": "install:uninstall",
    "status": "hosts:host_status",
    "trust": "config:trust",
    "maintain": "maintenance:maintain",
    "consolidate": "maintenance:consolidate",
    "spending": "maintenance:spending",
    "config": _Group(help="Look at the settings.", commands={"show": "config:show"}),
    "memory": _Group(
        help="Look at everything that is remembered.",
        commands={
            "list": "memory:list_memories",
            "show": "memory:show",
            "search": "memory:search",
            "update": "remember:update",
            "track": "memory:track",
            "untrack": "memory:untrack",
        },
    ),
    "profile": _Group(
        help="Look at what is known of the user, and change it.",
        commands={
            "show": "profile:show",
            "edit": "profile:edit",
            "add": "profile:add",
            "remove": "profile:remove",
            "export": "profile:export",
            "import": "profile:import_",
            "migrate": "profile:migrate",
            "clear": "profile:clear",
        },
    ),
    "session": _Group(
        help="Look at the conversations that were kept.",
        commands={
            "list": "sessions:list_sessions",
            "show": "sessions:show",
            "search": "sessions:search",
            "end": "sessions:end",
            "delete": "sessions:delete",
        },
    ),
    "team": _Group(
        help="Share memory with a team, in a folder that git can carry.",
        commands={"create": "team:create", "show": "team:show", "add": "team:add", "remove": "team:remove"},
    ),
    "store": _Group(
        help="Look at stores, and move between them.",
        commands={"list": "store:list_stores", "migrate": "store:migrate"},
    ),
    "tasks": _Group(
        callback="tasks:tasks",
        commands={"list": "tasks:list_tasks", "show": "tasks:show", "cancel": "tasks:cancel"},
    ),
}


@dataclass(kw_only=True)
class _LazyCommands(MutableMapping[str, Any]):
    """Commands under their names, each of which is imported when it is looked up."""

    commands: Mapping[str, str | _Group]
    loaded: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        if name not in self.loaded:
            self.loaded[name] = _load_command(name, self.commands[name])
        return self.loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self.loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.commands)

    def __len__(self) -> int:
        return len(self.commands)


class _AllCommands(CommandGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": _LazyCommands(commands=_COMMANDS)})


def _load_command(name: str, command: str | _Group) -> Any:
    """Return a command or a group of commands, ready to run."""
    app = typer.Typer(cls=NestedGroup, rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    if isinstance(command, str):
        app.command(name, cls=Command)(_import_function(command))
        return get_command(app)
    if command.callback:
        app.callback(invoke_without_command=True)(_import_function(command.callback))
    else:
        app.info.help, app.info.no_args_is_help = command.help, True
    group: TyperGroup = get_group(app)
    group.name, group.commands = name, _LazyCommands(commands=command.commands)
    return group


def _import_function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"ricordo.cli.commands.{module}"), name)
    return function


app = typer.Typer(
    cls=_AllCommands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100},
)


def _print_version(context: typer.Context, value: bool) -> None:
    if value:
        if wants_json(context):
            print_json({"version": __version__})
        else:
            print_line(f"ricordo {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def ricordo(
    context: typer.Context,
    *,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Memory for LLM agents: lasting, in plain files, found again with its source.

    Without a command: where memory lives, how much there is, and what to do next.
    """
    del version
    if context.invoked_subcommand is None:
        from ricordo.cli.commands import status

        status.status(root, user, project, as_json)
