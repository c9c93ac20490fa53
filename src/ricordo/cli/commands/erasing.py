"""`erase`: remove a memory or a text from every file."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import require_target, with_memory
from ricordo.cli.options import JsonOption, OptionalEntryId, ProjectOption, RootOption, UserOption, YesOption
from ricordo.cli.render import pluralize, print_json, print_line, wrap
from ricordo.errors import InvalidEntry, InvalidInput

if TYPE_CHECKING:
    from ricordo.memory import Memory

__all__ = ["erase"]

_MAX_PATHS_SHOWN = 5


def erase(
    *,
    entry_id: OptionalEntryId = "",
    text: Annotated[
        str, typer.Option("--text", metavar="TEXT", help="Erase this text wherever it stands, in place of a memory.")
    ] = "",
    inside_words: Annotated[
        bool, typer.Option("--inside-words", help="Erase it as a part of longer words too.")
    ] = False,
    yes: YesOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a memory from every file, with transcripts, history and index; this can't be undone.

    It asks first, and without a terminal it needs --yes. A memory that is forgotten can be erased too.
    """
    if bool(entry_id.strip()) == bool(text.strip()):
        raise InvalidEntry("Name what is to be erased: the id of a memory, or a text with --text.")
    target = require_target(root, user, project)
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise InvalidInput("Erasing can't be undone: give --yes.")
        for content in [text] if text else with_memory(target, lambda memory: _load_versions(memory, entry_id)):
            print_line(wrap(content, "  "))
        typer.confirm("Erase this from every file? Nothing brings it back.", abort=True)
    done = with_memory(target, lambda memory: memory.erase(entry_id, text=text, inside_words=inside_words))
    if as_json:
        print_json(
            {
                "erased": list(done.ids),
                "changed": done.changed,
                "deleted": done.deleted,
                "scanned": done.scanned,
                "inside_words": list(done.inside_words),
            }
        )
        return
    print_line(
        f"Erased {'the text' if text else done.ids[0]}: {pluralize(done.changed, 'file')} changed, "
        f"{pluralize(done.deleted, 'file')} deleted."
    )
    looked_through = f"{pluralize(done.scanned, 'file')} that were looked through"
    if done.inside_words:
        print_line(f"As a part of longer words it is left in {len(done.inside_words)} of {looked_through}:")
        for path in done.inside_words[:_MAX_PATHS_SHOWN]:
            print_line(f"  {path}")
        print_line("Give --inside-words to erase it there too.")
    else:
        print_line(f"Nothing of it is left in {looked_through}.")


async def _load_versions(memory: "Memory", entry_id: str) -> list[str]:
    """Return the content of an entry, now and in earlier versions, also if it is forgotten."""
    return list(dict.fromkeys(each.content for each in await memory.versions(entry_id)))
