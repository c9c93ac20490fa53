"""What answers in a chat without a model: memory, quoted with its file and line as they are found from here."""

from functools import partial
from typing import TYPE_CHECKING

from ricordo.cli.context import Target

if TYPE_CHECKING:
    from ricordo.models import ChatModel
    from ricordo.recall.hits import Answer, Hit

__all__ = ["offline"]

_LONGEST = 600


def offline(target: Target) -> "ChatModel":
    """Return the model that quotes the memory of `target`."""
    from ricordo.runtime.offline import QuotingModel

    return QuotingModel(partial(_shown, target))


def _shown(target: Target, found: "Answer") -> str:
    """Return the passage and what it superseded, each with its place."""
    hits = [found.hit, *found.superseded] if found.hit else []
    return "\n".join(f"{'' if hit is found.hit else 'Superseded: '}{_quote(hit, target)}" for hit in hits)


def _quote(hit: "Hit", target: Target) -> str:
    content = hit.entry.content.strip()
    shown = content if len(content) <= _LONGEST else f"{content[: _LONGEST - 1].rstrip()}…"
    said = hit.entry.since or hit.entry.time
    place = f"{target.file(hit.path, hit.source)}:{hit.line_number}"
    facts = [hit.speaker, f"{said.astimezone():%Y-%m-%d}" if said else "", place]
    return f"{shown}\n— {', '.join(filter(None, facts))}"
