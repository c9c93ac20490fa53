"""The table of commands: every command under its name.

Start-up is felt, so what a command needs is imported when it runs.
"""

from typing import Annotated

import typer

from ricordo import __version__
from ricordo.cli.commands import chat, config, context, demo, ingest, profile, replay, sessions, status, store, tasks
from ricordo.cli.commands import config as trust
from ricordo.cli.commands import context as compact
from ricordo.cli.commands import history as changes
from ricordo.cli.commands import history as why
from ricordo.cli.commands import maintenance as consolidate
from ricordo.cli.commands import maintenance as maintain
from ricordo.cli.commands import maintenance as spending
from ricordo.cli.commands import memory as listing
from ricordo.cli.commands import memory as tracking
from ricordo.cli.commands import recall as asking
from ricordo.cli.commands import remember as erasing
from ricordo.cli.commands import remember as remembering
from ricordo.cli.commands import status as doctor
from ricordo.cli.error_handling import Command, CommandGroup
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption, wants_json
from ricordo.cli.render import print_json, print_line

__all__ = ["app"]


app = typer.Typer(
    cls=CommandGroup, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings={"max_content_width": 100}
)
_config = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Look at the settings.")
_memory = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Look at everything that is remembered.")
_profile = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Look at what is known of the user, and change it."
)
_session = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Look at the conversations that were kept.")
_store = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Look at stores, and move between them.")
_tasks = typer.Typer(rich_markup_mode=None)


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
        status.status(root, user, project, as_json)


app.command("chat", cls=Command)(chat.chat)


app.command("demo", cls=Command)(demo.demo)


app.command("ingest", cls=Command)(ingest.ingest)


app.command("replay", cls=Command)(replay.replay)


app.command("remember", cls=Command)(remembering.remember)


app.command("recall", cls=Command)(asking.recall)


app.command("ask", cls=Command)(asking.ask)


app.command("why", cls=Command)(why.why)


app.command("context", cls=Command)(context.context)


app.command("compact", cls=Command)(compact.compact)


app.command("expand", cls=Command)(compact.expand)


app.command("forget", cls=Command)(remembering.forget)


app.command("erase", cls=Command)(erasing.erase)


app.command("pin", cls=Command)(remembering.pin)


app.command("confirm", cls=Command)(remembering.confirm)


app.command("undo", cls=Command)(changes.undo)


app.command("history", cls=Command)(changes.history)


app.command("diff", cls=Command)(changes.diff)


app.command("doctor", cls=Command)(doctor.doctor)


app.command("trust", cls=Command)(trust.trust)


app.command("maintain", cls=Command)(maintain.maintain)


app.command("consolidate", cls=Command)(consolidate.consolidate)


app.command("spending", cls=Command)(spending.spending)


_config.command("show", cls=Command)(config.show)


app.add_typer(_config, name="config")


_memory.command("list", cls=Command)(listing.list_memories)


_memory.command("show", cls=Command)(listing.show)


_memory.command("search", cls=Command)(listing.search)


_memory.command("track", cls=Command)(tracking.track)


_memory.command("untrack", cls=Command)(tracking.untrack)


app.add_typer(_memory, name="memory")


_profile.command("show", cls=Command)(profile.show)


_profile.command("edit", cls=Command)(profile.edit)


_profile.command("add", cls=Command)(profile.add)


_profile.command("remove", cls=Command)(profile.remove)


_profile.command("export", cls=Command)(profile.export)


_profile.command("import", cls=Command)(profile.import_)


_profile.command("migrate", cls=Command)(profile.migrate)


_profile.command("clear", cls=Command)(profile.clear)


app.add_typer(_profile, name="profile")


_session.command("list", cls=Command)(sessions.list_sessions)


_session.command("show", cls=Command)(sessions.show)


_session.command("search", cls=Command)(sessions.search)


app.add_typer(_session, name="session")


_store.command("list", cls=Command)(store.list_stores)


_store.command("migrate", cls=Command)(store.migrate)


_store.command("bench", cls=Command)(store.bench)


app.add_typer(_store, name="store")


_tasks.callback(invoke_without_command=True)(tasks.tasks)


_tasks.command("list", cls=Command)(tasks.list_tasks)


_tasks.command("show", cls=Command)(tasks.show)


_tasks.command("cancel", cls=Command)(tasks.cancel)


app.add_typer(_tasks, name="tasks")
