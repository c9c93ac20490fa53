"""What answers in a chat without a model: memory, quoted with its file and line.

What is asked stands in the transcript by then, and what was asked before does too. A question is no answer, so where
one would be quoted, only memories are.
"""

from typing import TYPE_CHECKING

from ricordo.cli.context import Target

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.recall.hits import Hit

__all__ = ["quoted"]

_LOOKED_AT = 12
_LONGEST = 600


async def quoted(memory: "Memory", target: Target, text: str) -> str:
    """Return the passage that answers `text` best and what it superseded, each with its place; empty for none."""
    found = await memory.answer(text)
    if found.hit is None:
        return ""
    hits = [found.hit, *found.superseded]
    if _asks(found.hit, text):
        hits = await _memories(memory, text)
    return "\n".join(f"{'' if hit is hits[0] else 'Superseded: '}{_quote(hit, target)}" for hit in hits)


async def _memories(memory: "Memory", text: str) -> "list[Hit]":
    from ricordo.recall.config import RecallConfig
    from ricordo.recall.quoting import best_to_quote, replaced_by

    config = RecallConfig()
    hits = await memory.recall(text, limit=_LOOKED_AT)
    chosen = best_to_quote(hits, text, config)
    if chosen is None or chosen[1] < config.floor:
        return []
    return [chosen[0], *replaced_by(chosen[0], hits, text)]


def _asks(hit: "Hit", text: str) -> bool:
    from ricordo.language import acts

    content = hit.entry.content.strip()
    return content == text.strip() or "question" in acts(content)


def _quote(hit: "Hit", target: Target) -> str:
    content = hit.entry.content.strip()
    shown = content if len(content) <= _LONGEST else f"{content[: _LONGEST - 1].rstrip()}…"
    said = hit.entry.since or hit.entry.time
    place = f"{target.file(hit.path, hit.source)}:{hit.line_number}"
    facts = [hit.speaker, f"{said.astimezone():%Y-%m-%d}" if said else "", place]
    return f"{shown}\n— {', '.join(filter(None, facts))}"
