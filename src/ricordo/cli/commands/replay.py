"""`replay`: an agent lives through a conversation that happened, with a window as small as one likes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, find_target, run_async
from ricordo.cli.living import SessionReplay, ReplayResult, RecordedReduction, replay_sessions
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.progress import progress_bar
from ricordo.cli.render import pluralize, dim, print_json, print_note, print_line, escape
from ricordo.errors import HistoryUnreadable

if TYPE_CHECKING:
    from ricordo.messages import Message
    from ricordo.messages.types import JsonValue

__all__ = ["replay"]

_BUDGET = 8_000
_MIN_BUDGET = 500


def replay(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A conversation, in any form that `ingest` takes.")],
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", min=_MIN_BUDGET, help="How large the window may get.")
    ] = _BUDGET,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let an agent live through a recorded conversation.

    The replies and what the tools answered are those of the record. Everything else happens as it would have: the
    window is kept in the budget, what is worth remembering is learned, and memory is consolidated after each session. A
    session that is there already is left alone, and one that was cut off goes on where it stopped. A root is created
    when there is none.
    """
    target = find_target(root, user, project, strict=True)
    sessions, problems = _read_sessions(file)
    total = sum(map(len, sessions.values()))
    with progress_bar(total, "messages") as on_turn:
        lived = run_async(lambda: replay_sessions(target, sessions, budget=budget, on_turn=on_turn))
    if as_json:
        print_json(_result_document(lived, target, budget, problems))
        return
    _print_result(lived, target)


def _print_result(lived: ReplayResult, target: Target) -> None:
    for life in lived.sessions:
        _print_session(life)
    if lived.skipped_sessions:
        print_line(f"{pluralize(len(lived.skipped_sessions), 'session')} had been there before.")
    place = escape(str(target.root))
    print_line(f"{'Memory is in' if target.exists else 'Created a memory in'} {place}.")
    learned = ", ".join(pluralize(count, escape(kind)) for kind, count in lived.learned.items())
    print_line(f"learned {pluralize(lived.learned.total(), 'entry')}{f': {learned}' if learned else ''}")
    kept, superseded = lived.curated["kept"], lived.curated["superseded"]
    older = f", {superseded:,} of them in the place of {'an older one' if superseded == 1 else 'older ones'}"
    print_line(f"curated {kept:,}{older if superseded else ''}")


def _read_sessions(file: Path) -> "tuple[dict[str, list[Message]], int]":
    """Return the messages of each session in their order, and how many records were skipped.

    Raises: HistoryUnreadable, FileMissing.
    """
    from ricordo.importers import read_history

    sessions: dict[str, list[Message]] = {}
    problems: list[str] = []
    for imported in read_history(file, on_problem=lambda problem: problems.append(problem.reason)):
        sessions.setdefault(imported.session, []).append(imported.message)
    if not sessions:
        raise HistoryUnreadable(f"{file} holds no messages.")
    if problems:
        print_note(f"{pluralize(len(problems), 'record')} skipped: {escape(problems[0])}")
    return sessions, len(problems)


def _print_session(life: SessionReplay) -> None:
    begun = (
        f"; goes on after {pluralize(life.resumed_messages, 'message')} of an earlier run"
        if life.resumed_messages
        else ""
    )
    print_line(f"{escape(life.session)}: {pluralize(life.turns, 'turn')}, {pluralize(life.messages, 'message')}{begun}")
    print_line(
        f"   said {life.said_tokens:,} tokens, the largest window sent had {life.largest_tokens:,}, {life.left_tokens:,} are left"
    )
    for event in (reduction.event for reduction in life.reductions):
        before, after = event.counts.get("tokens_before", 0), event.counts.get("tokens_after", 0)
        print_line(dim(f"   {event.stage}: {before:,} → {after:,} tokens ({event.reason})"))


def _result_document(lived: ReplayResult, target: Target, budget: int, problems: int) -> "dict[str, JsonValue]":
    return {
        "root": str(target.root),
        "created": not target.exists,
        "budget": budget,
        "sessions": [_session_document(life) for life in lived.sessions],
        "known": list(lived.skipped_sessions),
        "learned": dict(lived.learned),
        "curated": dict(lived.curated),
        "problems": problems,
    }


def _session_document(life: SessionReplay) -> "JsonValue":
    return {
        "session": life.session,
        "turns": life.turns,
        "messages": life.messages,
        "begun": life.resumed_messages,
        "said_tokens": life.said_tokens,
        "largest_tokens": life.largest_tokens,
        "left_tokens": life.left_tokens,
        "window": [{"role": message.role, "text": message.text} for message in life.window],
        "reductions": [_reduction_document(reduction) for reduction in life.reductions],
    }


def _reduction_document(reduction: RecordedReduction) -> "JsonValue":
    event = reduction.event
    return {"act": event.stage, "reason": event.reason, **dict(event.counts), "summary": reduction.summary or None}
