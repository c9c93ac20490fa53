"""What still says the words of a memory after it was forgotten, and the command that takes each of it out."""

import shlex
from typing import TYPE_CHECKING

from ricordo.cli.render import pluralize, dim, print_line, escape, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.audit import Remaining
    from ricordo.messages.types import JsonValue

__all__ = ["print_remaining", "remaining_documents", "removal_command"]

_LONGEST = 160


def removal_command(one: "Remaining", options: "Sequence[str]" = ()) -> str:
    """Return the command that takes it out; `options` such as `--root` are added."""
    acts = {"memory": ["forget", one.id], "fact": ["profile", "remove", one.id]}
    return shlex.join(["ricordo", *acts.get(one.kind, ["erase", "--text", one.text]), *options])


def remaining_documents(found: "Sequence[Remaining]", options: "Sequence[str]") -> "list[JsonValue]":
    """Return what remains as JSON, each with its command."""
    return [
        {"kind": one.kind, "id": one.id, "text": one.text, "command": removal_command(one, options)} for one in found
    ]


def print_remaining(found: "Sequence[Remaining]", options: "Sequence[str]") -> None:
    """Print what still says it, where, and the command for each; nothing where that is nothing."""
    if not found:
        return
    print_line(f"{pluralize(len(found), 'place')} still {'says' if len(found) == 1 else 'say'} it, or nearly:")
    for one in found:
        text = " ".join(one.text.split())
        where = {"memory": "", "fact": " (profile)", "file": f" ({one.id})", "todo": f" (todo of session {one.id})"}
        print_line(wrap(f"{text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}{where[one.kind]}", "  "))
        # not wrapped: it is copied
        print_line(dim(f"    {escape(removal_command(one, options))}"))
