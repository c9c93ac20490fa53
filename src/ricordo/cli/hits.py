"""How hits and answers are shown: what was said, where it stands, and why it was found."""

import re
from typing import TYPE_CHECKING

from ricordo.cli.context import Target
from ricordo.cli.render import format_age, bold, dim, print_line, escape, wrap

if TYPE_CHECKING:
    from ricordo.recall.hits import Answer, Explanation, Hit, RejectedHit

__all__ = ["print_answer", "print_explanation", "print_hits"]

_MAX_HIT_CHARS = 600
_SNIPPET_CHARS = 160
_MIN_STEM_CHARS = 2
_SIGNAL_NAMES = {"bm25": "words", "context": "words around", "dense": "meaning", "dense_context": "meaning around"}
_MIN_SHARE = 0.0005
_EXTERNAL_TRUST = "external"


def print_hits(hits: "list[Hit]", target: Target) -> None:
    """Print hits, best first, or that there are none; those of an empty query have no score."""
    if not hits:
        print_line("Nothing found.")
    from ricordo.recall.disputed import contradiction_markers

    is_scored = any(hit.score for hit in hits)
    for number, (hit, contradicts) in enumerate(zip(hits, contradiction_markers(hits), strict=True), start=1):
        print_line(_highlight_words(wrap(_shorten(hit.entry.content), "   ", first=f"{number}. "), hit))
        if contradicts:
            print_line(wrap(contradicts, "   "))
        said = hit.date
        score = f"score {hit.score:.2f}" if is_scored else ""
        facts = [
            escape(hit.entry.kind),
            f"{format_age(said)} old" if said else "",
            score,
            _format_place(hit, target),
            _heading_label(hit),
        ]
        facts += ["unconfirmed, from outside"] if hit.trust.value == _EXTERNAL_TRUST else []
        print_line(dim(f"   {' · '.join(filter(None, facts))}"))
        _print_neighbours(hit)
        print_line(dim(wrap(f"{hit.why}{f'; id {hit.entry.id}' if hit.entry.id else ''}", "   ")))


def print_explanation(found: "Explanation", target: Target) -> None:
    """Print hits with what each signal gave to their scores, then the best candidates that are none, and why."""
    if not found.hits:
        print_line("Nothing found.")
    is_scored = any(hit.score for hit in found.hits)
    for number, hit in enumerate(found.hits, start=1):
        print_line(f"{number}. {_snippet(hit)}")
        origin = hit.entry.source
        said = f"said in {origin.session} {' '.join(origin.messages)}".rstrip() if origin.session else ""
        score = f"score {hit.score:.3f}" if is_scored else ""
        facts = [escape(hit.entry.kind), score, _format_place(hit, target), _heading_label(hit), escape(said)]
        print_line(dim(f"   {' · '.join(filter(None, facts))}"))
        _print_neighbours(hit)
        if is_scored:
            print_line(dim(wrap(_format_shares(hit), "   ")))
        print_line(dim(wrap(f"{hit.why}{f'; id {hit.entry.id}' if hit.entry.id else ''}", "   ")))
    if found.reranker_error:
        print_line(f"\nWithout the reranker: {escape(found.reranker_error)}")
    if found.rejected:
        print_line(f"\nNot shown, of {found.candidates:,} candidates:")
    for rejected in found.rejected:
        print_line(f"-  {_snippet(rejected.hit)}")
        print_line(
            dim(
                f"   {escape(_rejection_reason(rejected))} · score {rejected.hit.score:.3f} · {_format_place(rejected.hit, target)}"
            )
        )


def print_answer(answer: "Answer", target: Target, *, indent: str = "") -> None:
    """Print the quote with its file and line, what contradicts it and what it superseded, or that nothing is known."""
    if answer.hit is None:
        print_line(f"{indent}{answer.text}")
        for hit in answer.unconfirmed:
            print_line(dim(f"{indent}Unconfirmed, from outside: {_format_place(hit, target)} mentions it"))
        return
    _print_quote(answer.hit, target, indent)
    for hit in answer.contradicting:
        _print_quote(hit, target, indent, label="contradicts, not decided: ")
    for hit in answer.superseded:
        _print_quote(hit, target, indent, label="superseded: ")


def _print_quote(hit: "Hit", target: Target, indent: str, *, label: str = "") -> None:
    print_line(wrap(_shorten(hit.entry.content.strip()), indent, first=f"{indent}{label}"))
    said = hit.entry.since or hit.entry.time
    facts = [escape(hit.speaker), f"{said.astimezone():%Y-%m-%d}" if said else "", _format_place(hit, target)]
    print_line(dim(f"{indent}— {', '.join(filter(None, facts))}"))


def _heading_label(hit: "Hit") -> str:
    """Return the heading that a hit stands under, where it tells more than its place."""
    from ricordo.recall.beside import informative_heading

    heading = informative_heading(hit)
    return f"under {escape(heading)}" if heading else ""


def _print_neighbours(hit: "Hit") -> None:
    """Print what stands beside a hit, where that is known."""
    for name, beside in (("before", hit.before), ("after", hit.after)):
        if beside is not None:
            who = f", {beside.speaker}" if beside.speaker else ""
            print_line(dim(wrap(f"{name}{who}: {beside.text}", "   ")))


def _format_shares(hit: "Hit") -> str:
    """Return what each signal gave, the most first."""
    shares = sorted(hit.shares.items(), key=lambda row: -abs(row[1]))
    return ", ".join(
        f"{_SIGNAL_NAMES.get(name, name)} {share:+.3f}" for name, share in shares if abs(share) >= _MIN_SHARE
    )


def _rejection_reason(rejected: "RejectedHit") -> str:
    reasons = {
        "duplicate": "says the same as",
        "superseded": "superseded",
        "limit": "below the limit",
        "budget": "over the budget",
    }
    return f"{reasons[rejected.reason]} {rejected.replacement}".rstrip()


def _snippet(hit: "Hit") -> str:
    """Return the part of the content that holds the most words of the query, with them in bold, on one line."""
    content = " ".join(escape(hit.entry.content).split())
    words = _word_pattern(hit)
    found = [match.start() for match in words.finditer(content)] if words else []
    # of all windows that begin at a word of the query, the one that holds the most of them
    start = max(found, key=lambda at: sum(at <= other < at + _SNIPPET_CHARS for other in found), default=0)
    start = 0 if start < _SNIPPET_CHARS // 2 else content.rfind(" ", 0, start - _SNIPPET_CHARS // 4) + 1
    part = content[start : start + _SNIPPET_CHARS]
    lead, trail = "…" * bool(start), "…" * (start + _SNIPPET_CHARS < len(content))
    return f"{lead}{_highlight_words(part, hit)}{trail}"


def _word_pattern(hit: "Hit") -> re.Pattern[str] | None:
    """Return what finds the words of the query in a hit, in any of their forms; None where it holds none."""
    stems = {word.casefold()[: max(len(word) - _MIN_STEM_CHARS, _MIN_STEM_CHARS)] for word in hit.words}
    any_of = "|".join(map(re.escape, sorted(stems, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{any_of})\w*", re.IGNORECASE) if stems else None


def _highlight_words(text: str, hit: "Hit") -> str:
    """Return a text with the words of the query in bold on a terminal."""
    words = _word_pattern(hit)
    return words.sub(lambda match: bold(match[0]), text) if words else text


def _format_place(hit: "Hit", target: Target) -> str:
    return escape(f"{target.display_path(hit.path, hit.source)}:{hit.line_number}")


def _shorten(content: str) -> str:
    return content if len(content) <= _MAX_HIT_CHARS else f"{content[: _MAX_HIT_CHARS - 1].rstrip()}…"
