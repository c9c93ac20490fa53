"""What contradicts a memory while nothing decides, and how a person decides it."""

from typing import TYPE_CHECKING

from ricordo.cli.render import dim, print_line, escape, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.memory import Memory
    from ricordo.workspace.entry import Entry

__all__ = ["load_contradictions", "print_contradictions", "print_confirmation_effect"]

_MAX_CONTRADICTION_CHARS = 160


async def load_contradictions(memory: "Memory", entry_id: str) -> "list[Entry]":
    """Return the memories that contradict the one with this id; none where nothing does, or it is decided."""
    from ricordo.workspace.contradictions import find_contradictions

    entries = {entry.id: entry for entry in await memory.entries()}
    return [entries[name] for name in find_contradictions(entries.values()).get(entry_id, ()) if name in entries]


def print_contradictions(others: "Sequence[Entry]", entry_id: str) -> None:
    """Print what contradicts the memory with this id, and what decides it."""
    for other in others:
        print_line(wrap(f"contradicts {other.id}, not decided: {_shorten_line(other.content)}", "  "))
        told = f"decide by `ricordo confirm {entry_id}`, or {other.id}: that one holds; or `ricordo forget` one"
        print_line(dim(wrap(told, "    ")))


def print_confirmation_effect(others: "Sequence[Entry]") -> None:
    """Print what comes of those that contradict a memory which was confirmed just now."""
    for other in others:
        print_line(wrap(f"It contradicts {escape(other.id)}: {_shorten_line(other.content)}", "  "))
        if other.pinned or other.by == "hand" or other.rule:
            told = f"That one is a person's own and stays: `ricordo forget {other.id}` takes it away."
        else:
            told = "It takes that one's place with the next consolidation; if both hold, confirm that one too."
        print_line(dim(wrap(told, "  ")))


def _shorten_line(content: str) -> str:
    line = " ".join(content.split())
    return line if len(line) <= _MAX_CONTRADICTION_CHARS else f"{line[: _MAX_CONTRADICTION_CHARS - 1]}…"
