"""How hits and answers are shown: what was said, where it stands, and why it was found."""

from typing import TYPE_CHECKING

from ricordo.cli.context import Target
from ricordo.cli.render import age, dim, say, shown, wrapped

if TYPE_CHECKING:
    from ricordo.recall.hits import Answer, Hit

__all__ = ["print_answer", "print_hits"]

_LONGEST = 600


def print_hits(hits: "list[Hit]", target: Target) -> None:
    """Print hits, best first, or that there are none; those of an empty query have no score."""
    if not hits:
        say("Nothing found.")
    is_scored = any(hit.score for hit in hits)
    for number, hit in enumerate(hits, start=1):
        say(wrapped(_cut(hit.entry.content), "   ", first=f"{number}. "))
        said = hit.entry.since or hit.entry.time
        score = f"score {hit.score:.2f}" if is_scored else ""
        facts = [shown(hit.entry.kind), f"{age(said)} old" if said else "", score, _place(hit, target)]
        say(dim(f"   {' · '.join(filter(None, facts))}"))
        say(dim(wrapped(f"{hit.why}{f'; id {hit.entry.id}' if hit.entry.id else ''}", "   ")))


def print_answer(answer: "Answer", target: Target, *, indent: str = "") -> None:
    """Print the quote with its file and line and what it superseded, or that it is not in memory."""
    if answer.hit is None:
        say(f"{indent}{answer.text}")
        return
    _print_quote(answer.hit, target, indent)
    for hit in answer.superseded:
        _print_quote(hit, target, indent, label="superseded: ")


def _print_quote(hit: "Hit", target: Target, indent: str, *, label: str = "") -> None:
    say(wrapped(_cut(hit.entry.content.strip()), indent, first=f"{indent}{label}"))
    said = hit.entry.since or hit.entry.time
    facts = [shown(hit.speaker), f"{said.astimezone():%Y-%m-%d}" if said else "", _place(hit, target)]
    say(dim(f"{indent}— {', '.join(filter(None, facts))}"))


def _place(hit: "Hit", target: Target) -> str:
    return shown(f"{target.file(hit.path, hit.source)}:{hit.line_number}")


def _cut(content: str) -> str:
    return content if len(content) <= _LONGEST else f"{content[: _LONGEST - 1].rstrip()}…"
