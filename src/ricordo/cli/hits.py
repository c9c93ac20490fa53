"""How hits and answers are shown: what was said, where it stands, and why it was found."""

import re
from typing import TYPE_CHECKING

from ricordo.cli.context import Target
from ricordo.cli.render import age, bold, dim, say, shown, wrapped

if TYPE_CHECKING:
    from ricordo.recall.hits import Answer, Explained, Hit, Rejected

__all__ = ["print_answer", "print_explained", "print_hits"]

_LONGEST = 600
_SNIPPET = 160
_FEWEST = 2
_NAMES = {"bm25": "words", "context": "words around", "dense": "meaning", "dense_context": "meaning around"}
_SMALLEST = 0.0005
_EXTERNAL = "external"


def print_hits(hits: "list[Hit]", target: Target) -> None:
    """Print hits, best first, or that there are none; those of an empty query have no score."""
    if not hits:
        say("Nothing found.")
    from ricordo.recall.disputed import markers

    is_scored = any(hit.score for hit in hits)
    for number, (hit, contradicts) in enumerate(zip(hits, markers(hits), strict=True), start=1):
        say(_marked(wrapped(_cut(hit.entry.content), "   ", first=f"{number}. "), hit))
        if contradicts:
            say(wrapped(contradicts, "   "))
        said = hit.date
        score = f"score {hit.score:.2f}" if is_scored else ""
        facts = [shown(hit.entry.kind), f"{age(said)} old" if said else "", score, _place(hit, target), _under(hit)]
        facts += ["unconfirmed, from outside"] if hit.trust.value == _EXTERNAL else []
        say(dim(f"   {' · '.join(filter(None, facts))}"))
        _print_neighbours(hit)
        say(dim(wrapped(f"{hit.why}{f'; id {hit.entry.id}' if hit.entry.id else ''}", "   ")))


def print_explained(found: "Explained", target: Target) -> None:
    """Print hits with what each signal gave to their scores, then the best candidates that are none, and why."""
    if not found.hits:
        say("Nothing found.")
    is_scored = any(hit.score for hit in found.hits)
    for number, hit in enumerate(found.hits, start=1):
        say(f"{number}. {_snippet(hit)}")
        origin = hit.entry.source
        said = f"said in {origin.session} {' '.join(origin.messages)}".rstrip() if origin.session else ""
        score = f"score {hit.score:.3f}" if is_scored else ""
        facts = [shown(hit.entry.kind), score, _place(hit, target), _under(hit), shown(said)]
        say(dim(f"   {' · '.join(filter(None, facts))}"))
        _print_neighbours(hit)
        if is_scored:
            say(dim(wrapped(_shares(hit), "   ")))
        say(dim(wrapped(f"{hit.why}{f'; id {hit.entry.id}' if hit.entry.id else ''}", "   ")))
    if found.trouble:
        say(f"\nWithout the reranker: {shown(found.trouble)}")
    if found.rejected:
        say(f"\nNot shown, of {found.candidates:,} candidates:")
    for rejected in found.rejected:
        say(f"-  {_snippet(rejected.hit)}")
        say(dim(f"   {shown(_reason(rejected))} · score {rejected.hit.score:.3f} · {_place(rejected.hit, target)}"))


def print_answer(answer: "Answer", target: Target, *, indent: str = "") -> None:
    """Print the quote with its file and line, what contradicts it and what it superseded, or that nothing is known."""
    if answer.hit is None:
        say(f"{indent}{answer.text}")
        for hit in answer.unconfirmed:
            say(dim(f"{indent}Unconfirmed, from outside: {_place(hit, target)} mentions it"))
        return
    _print_quote(answer.hit, target, indent)
    for hit in answer.contradicting:
        _print_quote(hit, target, indent, label="contradicts, not decided: ")
    for hit in answer.superseded:
        _print_quote(hit, target, indent, label="superseded: ")


def _print_quote(hit: "Hit", target: Target, indent: str, *, label: str = "") -> None:
    say(wrapped(_cut(hit.entry.content.strip()), indent, first=f"{indent}{label}"))
    said = hit.entry.since or hit.entry.time
    facts = [shown(hit.speaker), f"{said.astimezone():%Y-%m-%d}" if said else "", _place(hit, target)]
    say(dim(f"{indent}— {', '.join(filter(None, facts))}"))


def _under(hit: "Hit") -> str:
    """Return the heading that a hit stands under, where it tells more than its place."""
    from ricordo.recall.beside import telling_heading

    heading = telling_heading(hit)
    return f"under {shown(heading)}" if heading else ""


def _print_neighbours(hit: "Hit") -> None:
    """Print what stands beside a hit, where that is known."""
    for name, beside in (("before", hit.before), ("after", hit.after)):
        if beside is not None:
            who = f", {beside.speaker}" if beside.speaker else ""
            say(dim(wrapped(f"{name}{who}: {beside.text}", "   ")))


def _shares(hit: "Hit") -> str:
    """Return what each signal gave, the most first."""
    shares = sorted(hit.shares.items(), key=lambda row: -abs(row[1]))
    return ", ".join(f"{_NAMES.get(name, name)} {share:+.3f}" for name, share in shares if abs(share) >= _SMALLEST)


def _reason(rejected: "Rejected") -> str:
    reasons = {
        "duplicate": "says the same as",
        "superseded": "superseded",
        "limit": "below the limit",
        "budget": "over the budget",
    }
    return f"{reasons[rejected.reason]} {rejected.instead}".rstrip()


def _snippet(hit: "Hit") -> str:
    """Return the part of the content that holds the most words of the query, with them in bold, on one line."""
    content = " ".join(shown(hit.entry.content).split())
    words = _words(hit)
    found = [match.start() for match in words.finditer(content)] if words else []
    # of all windows that begin at a word of the query, the one that holds the most of them
    start = max(found, key=lambda at: sum(at <= other < at + _SNIPPET for other in found), default=0)
    start = 0 if start < _SNIPPET // 2 else content.rfind(" ", 0, start - _SNIPPET // 4) + 1
    part = content[start : start + _SNIPPET]
    lead, trail = "…" * bool(start), "…" * (start + _SNIPPET < len(content))
    return f"{lead}{_marked(part, hit)}{trail}"


def _words(hit: "Hit") -> re.Pattern[str] | None:
    """Return what finds the words of the query in a hit, in any of their forms; None where it holds none."""
    stems = {word.casefold()[: max(len(word) - _FEWEST, _FEWEST)] for word in hit.words}
    any_of = "|".join(map(re.escape, sorted(stems, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{any_of})\w*", re.IGNORECASE) if stems else None


def _marked(text: str, hit: "Hit") -> str:
    """Return a text with the words of the query in bold on a terminal."""
    words = _words(hit)
    return words.sub(lambda match: bold(match[0]), text) if words else text


def _place(hit: "Hit", target: Target) -> str:
    return shown(f"{target.file(hit.path, hit.source)}:{hit.line_number}")


def _cut(content: str) -> str:
    return content if len(content) <= _LONGEST else f"{content[: _LONGEST - 1].rstrip()}…"
