"""What answers in a chat without a model: memory, quoted with its file and line as they are found from here."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target

if TYPE_CHECKING:
    from ricordo.models import ChatModel
    from ricordo.recall.hits import Answer, Hit

__all__ = ["quoting_model"]

_MAX_QUOTE_CHARS = 600


def quoting_model(target: Target) -> "ChatModel":
    """Return the model that quotes the memory of `target`."""
    from ricordo.runtime.offline import QuotingModel

    return QuotingModel(partial(_format_answer, target))


def _format_answer(target: Target, found: "Answer") -> str:
    """Return the passage, what contradicts it and what it superseded, each with its place."""
    rows = [("", found.hit)] if found.hit else []
    rows += [("Contradicts, not decided: ", hit) for hit in found.contradicting]
    rows += [("Superseded: ", hit) for hit in found.superseded]
    return "\n".join(f"{label}{_format_quote(hit, target)}" for label, hit in rows)


def _format_quote(hit: "Hit", target: Target) -> str:
    content = hit.entry.content.strip()
    shown = content if len(content) <= _MAX_QUOTE_CHARS else f"{content[: _MAX_QUOTE_CHARS - 1].rstrip()}…"
    said = hit.entry.since or hit.entry.time
    facts = [hit.speaker, f"{said.astimezone():%Y-%m-%d}" if said else "", _format_place(hit, target)]
    return f"{shown}\n— {', '.join(filter(None, facts))}"


def _format_place(hit: "Hit", target: Target) -> str:
    """Return where it stands, as it is found from here; empty for what stands in no file."""
    if not hit.path:
        return ""
    # only what comes from a root says of which, and a store that is none may not tell its folder
    of_a_file = hit.source or Path(hit.path).is_absolute()
    return f"{target.display_path(hit.path, hit.source) if of_a_file else hit.path}:{hit.line_number}"
