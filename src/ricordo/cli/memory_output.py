"""How memories, hits and answers are printed: the text, its file and line, why it was found, what contradicts it."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from ricordo.cli.json_output import explanation_document
from ricordo.cli.render import bold, dim, escape, format_age, print_json, print_line, wrap
from ricordo.cli.target import Target, read_memory
from ricordo.errors import EntryNotFound, FileMissing, SessionNotFound
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from ricordo.messages import Message
    from ricordo.runtime.memory import Memory
    from ricordo.search.contract import Answer, Explanation, Hit, RejectedHit
    from ricordo.workspace.entry import Entry

__all__ = [
    "FileLocation",
    "SourceMessage",
    "explain_hits",
    "load_contradictions",
    "load_source_messages",
    "locate_entry",
    "locate_new_entry",
    "print_answer",
    "print_confirmation_effect",
    "print_conflicts",
    "print_explanation",
    "print_hits",
]


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
    from ricordo.search.supersession import contradiction_markers
    from ricordo.workspace.entry import outdated_marker

    is_scored = any(hit.score for hit in hits)
    for number, (hit, contradicts) in enumerate(zip(hits, contradiction_markers(hits), strict=True), start=1):
        print_line(_highlight_words(wrap(_shorten(hit.entry.content), "   ", first=f"{number}. "), hit))
        for marker in filter(None, (outdated_marker(hit.entry), contradicts)):
            print_line(wrap(marker, "   "))
        date = hit.date
        score = f"score {hit.score:.2f}" if is_scored else ""
        facts = [
            _format_kind(hit),
            f"{format_age(date)} old" if date else "",
            score,
            _format_place(hit, target),
            _heading_label(hit),
        ]
        facts += [f"valid until {hit.entry.valid_until}"] if hit.entry.valid_until else []
        facts += ["unconfirmed, from outside"] if hit.trust.value == _EXTERNAL_TRUST else []
        print_line(dim(f"   {' · '.join(filter(None, facts))}"))
        _print_neighbours(hit)
        print_line(dim(wrap(f"{hit.explanation}{f'; id {hit.entry.id}' if hit.entry.id else ''}", "   ")))


def _format_kind(hit: "Hit") -> str:
    """Return the kind of a memory, and for a message who said it on which day."""
    if not hit.is_said:
        return escape(hit.entry.kind)
    day = f" on {hit.date.astimezone():%Y-%m-%d}" if hit.date else ""
    return f"said by {escape(hit.speaker)}{day}"


def print_explanation(explanation: "Explanation", target: Target) -> None:
    """Print hits with the share of each signal in their scores, then the best rejected candidates with the reason."""
    if not explanation.hits:
        print_line("Nothing found.")
    is_scored = any(hit.score for hit in explanation.hits)
    for number, hit in enumerate(explanation.hits, start=1):
        print_line(f"{number}. {_snippet(hit)}")
        origin = hit.entry.source
        origin_text = f"said in {origin.session} {' '.join(origin.messages)}".rstrip() if origin.session else ""
        score = f"score {hit.score:.3f}" if is_scored else ""
        facts = [_format_kind(hit), score, _format_place(hit, target), _heading_label(hit), escape(origin_text)]
        print_line(dim(f"   {' · '.join(filter(None, facts))}"))
        _print_neighbours(hit)
        if is_scored:
            print_line(dim(wrap(_format_shares(hit), "   ")))
        print_line(dim(wrap(f"{hit.explanation}{f'; id {hit.entry.id}' if hit.entry.id else ''}", "   ")))
    if explanation.reranker_error:
        print_line(f"\nWithout the reranker: {escape(explanation.reranker_error)}")
    if explanation.rejected:
        print_line(f"\nNot shown, of {explanation.candidates:,} candidates:")
    for rejected in explanation.rejected:
        print_line(f"-  {_snippet(rejected.hit)}")
        print_line(
            dim(
                f"   {escape(_rejection_reason(rejected))} · score {rejected.hit.score:.3f} · "
                f"{_format_place(rejected.hit, target)}"
            )
        )


def print_answer(answer: "Answer", target: Target, *, indent: str = "") -> None:
    """Print the quotes with file and line, what contradicts the first and what it superseded, or that there is none."""
    if answer.hit is None:
        print_line(f"{indent}{answer.text}")
        for hit in answer.unconfirmed:
            print_line(dim(f"{indent}Unconfirmed, from outside: {_format_place(hit, target)} mentions it"))
        return
    for label, hit in answer.quotes:
        _print_quote(hit, target, indent, label=label.lower())


def _print_quote(hit: "Hit", target: Target, indent: str, *, label: str = "") -> None:
    print_line(wrap(_shorten(hit.entry.content.strip()), indent, first=f"{indent}{label}"))
    date = hit.entry.since or hit.entry.time
    facts = [escape(hit.speaker), f"{date.astimezone():%Y-%m-%d}" if date else "", _format_place(hit, target)]
    print_line(dim(f"{indent}— {', '.join(filter(None, facts))}"))


def _heading_label(hit: "Hit") -> str:
    """Return the heading that a hit stands under, where it tells more than its place."""
    from ricordo.search.recall import informative_heading

    heading = informative_heading(hit)
    return f"under {escape(heading)}" if heading else ""


def _print_neighbours(hit: "Hit") -> None:
    """Print what stands beside a hit, where that is known."""
    for name, neighbour in (("before", hit.before), ("after", hit.after)):
        if neighbour is not None:
            speaker = f", {neighbour.speaker}" if neighbour.speaker else ""
            print_line(dim(wrap(f"{name}{speaker}: {neighbour.text}", "   ")))


def _format_shares(hit: "Hit") -> str:
    """Return what each signal gave, the most first."""
    shares = sorted(hit.score_parts.items(), key=lambda row: -abs(row[1]))
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
    match_starts = [match.start() for match in words.finditer(content)] if words else []
    # of all windows that begin at a word of the query, the one that holds the most of them
    start = max(
        match_starts, key=lambda at: sum(at <= other < at + _SNIPPET_CHARS for other in match_starts), default=0
    )
    start = 0 if start < _SNIPPET_CHARS // 2 else content.rfind(" ", 0, start - _SNIPPET_CHARS // 4) + 1
    part = content[start : start + _SNIPPET_CHARS]
    lead, trail = "…" * bool(start), "…" * (start + _SNIPPET_CHARS < len(content))
    return f"{lead}{_highlight_words(part, hit)}{trail}"


def _word_pattern(hit: "Hit") -> re.Pattern[str] | None:
    """Return what finds the words of the query in a hit, in any of their forms; None where it holds none."""
    stems = {word.casefold()[: max(len(word) - _MIN_STEM_CHARS, _MIN_STEM_CHARS)] for word in hit.matched_words}
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


def explain_hits(
    target: Target,
    query: str,
    *,
    as_json: bool,
    limit: int,
    kinds: Sequence[str] = (),
    tags: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    budget: int | None = None,
    session: str = "",
    path: str = "",
    everything: bool = False,
    around: bool = False,
    said: bool = False,
) -> None:
    """Print why hits were chosen and others rejected; `everything` searches more than memories.

    With `said`, statements of sessions that match nearer are among the hits.
    """
    from ricordo.messages.tokens import Tokens
    from ricordo.search.contract import ALL_DOCUMENT_TYPES, MEMORY_DOCUMENT_TYPES, Query

    memory_query = Query(
        text=query, kinds=tuple(kinds), tags=tuple(tags), since=since, until=until, session=session,
        path=path, document_types=ALL_DOCUMENT_TYPES if everything else MEMORY_DOCUMENT_TYPES,
    )  # fmt: skip
    token_budget = Tokens(budget) if budget else None
    explanation = read_memory(
        target,
        lambda memory: memory.explain(
            memory_query, limit=limit, budget=token_budget, around=around or as_json, said=said
        ),
        finds=True,
    )
    if as_json:
        print_json({"query": query, **explanation_document(explanation, target)})
    else:
        print_explanation(explanation, target)


_MAX_CONTRADICTION_CHARS = 160


async def load_contradictions(memory: "Memory", entry_id: str) -> "list[Entry]":
    """Return the memories that contradict the one with this id; none where nothing does, or it is decided."""
    from ricordo.workspace.entry import find_contradictions

    entries = {entry.id: entry for entry in await memory.entries()}
    return [entries[name] for name in find_contradictions(entries.values()).get(entry_id, ()) if name in entries]


def print_conflicts(entry: "Entry", others: "Sequence[Entry]") -> None:
    """Print which memory may have made this one outdated, what contradicts it, and what decides that."""
    from ricordo.workspace.entry import outdated_marker

    if marker := outdated_marker(entry):
        print_line(wrap(f"{marker} by {entry.maybe_outdated_by}", "  "))
        print_line(dim(wrap(f"decide by `ricordo review accept {entry.id}`, or reject: both hold", "    ")))
    for other in others:
        print_line(wrap(f"contradicts {other.id}, not decided: {_shorten_line(other.content)}", "  "))
        hint = f"decide by `ricordo confirm {entry.id}`, or {other.id}: that one holds; or `ricordo forget` one"
        print_line(dim(wrap(hint, "    ")))


def print_confirmation_effect(others: "Sequence[Entry]") -> None:
    """Print the effect of a confirmation on the memories that contradict the confirmed one."""
    for other in others:
        print_line(wrap(f"It contradicts {escape(other.id)}: {_shorten_line(other.content)}", "  "))
        if other.pinned or other.by == "hand" or other.rule:
            effect = f"That one is a person's own and stays: `ricordo forget {other.id}` takes it away."
        else:
            effect = "It takes that one's place with the next consolidation; if both hold, confirm that one too."
        print_line(dim(wrap(effect, "  ")))


def _shorten_line(content: str) -> str:
    line = " ".join(content.split())
    return line if len(line) <= _MAX_CONTRADICTION_CHARS else f"{line[: _MAX_CONTRADICTION_CHARS - 1]}…"


@dataclass(frozen=True, kw_only=True)
class FileLocation:
    """A line of a file that can be opened from here."""

    file: str
    line: int

    def __str__(self) -> str:
        """Write it as editors take it."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class SourceMessage:
    """A message that a memory rests on, and where it stands in its transcript."""

    message: "Message"
    position: FileLocation


async def locate_entry(target: Target, entry_id: str) -> FileLocation | None:
    """Return where the memory stands; None when it stands in no file."""
    from ricordo.runtime.workspace import root_files
    from ricordo.workspace.layout import WORKSPACE, is_profile
    from ricordo.workspace.ledger import find_entry
    from ricordo.workspace.profile import locate_facts

    for label, folder in target.folders().items():
        if folder.is_dir():
            files = root_files(folder)
            with suppress(EntryNotFound):
                located = await find_entry(files, entry_id)
                return FileLocation(file=target.display_path(located.path, label), line=located.line)
            for path in [info.path for info in await files.list(WORKSPACE) if is_profile(info.path)]:
                for fact in locate_facts((await files.read(path)).data, path):
                    if fact.entry.id == entry_id:
                        return FileLocation(file=target.display_path(path, label), line=fact.line)
    return None


async def locate_new_entry(target: Target, entry: "Entry") -> FileLocation | None:
    """Return where a memory stands that was just saved: near the end of the ledger of its day, or else anywhere."""
    from ricordo.runtime.workspace import root_files
    from ricordo.workspace.layout import ledger_path

    path = ledger_path(datetime.now().astimezone().date())
    for label, folder in target.folders().items():
        with suppress(FileMissing):
            lines = (await root_files(folder).read(path)).data.split(b"\n")
            mark = f"^{entry.id}".encode()
            line = next((number for number in range(len(lines), 0, -1) if lines[number - 1].endswith(mark)), 0)
            start = next((number for number in range(line, 0, -1) if lines[number - 1].startswith(b"- ")), 0)
            if start:
                return FileLocation(file=target.display_path(path, label), line=start)
    return await locate_entry(target, entry.id)


async def load_source_messages(target: Target, memory: "Memory", entry: "Entry") -> list[SourceMessage]:
    """Return the messages that `entry` rests on, in their order; empty when their transcript is not here."""
    if entry.source.session is None:
        return []
    try:
        session = await memory.session(entry.source.session)
    except SessionNotFound:
        return []
    file = target.display_path(session.info.path)
    return [
        SourceMessage(message=message, position=FileLocation(file=file, line=line))
        for message, line in zip(session.messages, session.lines, strict=True)
        if message.id in entry.source.messages
    ]
