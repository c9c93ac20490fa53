"""`replay`: an agent lives through a conversation that happened, with a window as small as one likes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, find, run
from ricordo.cli.living import Life, Lived, Reduction, live
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.progress import progress_bar
from ricordo.cli.render import counted, dim, emit, note, say, shown
from ricordo.errors import HistoryUnreadable

if TYPE_CHECKING:
    from ricordo.messages import Message
    from ricordo.messages.types import JsonValue

__all__ = ["replay"]

_BUDGET = 8_000
_LEAST = 500


def replay(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A conversation, in any form that `ingest` takes.")],
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", min=_LEAST, help="How large the window may get.")
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
    target = find(root, user, project, strict=True)
    sessions, problems = _sessions(file)
    total = sum(map(len, sessions.values()))
    with progress_bar(total, "messages") as on_turn:
        lived = run(lambda: live(target, sessions, budget=budget, on_turn=on_turn))
    if as_json:
        emit(_document(lived, target, budget, problems))
        return
    _print(lived, target)


def _print(lived: Lived, target: Target) -> None:
    for life in lived.lives:
        _print_life(life)
    if lived.known:
        say(f"{counted(len(lived.known), 'session')} had been there before.")
    place = shown(str(target.root))
    say(f"{'Memory is in' if target.exists else 'Created a memory in'} {place}.")
    learned = ", ".join(counted(count, shown(kind)) for kind, count in lived.learned.items())
    say(f"learned {counted(lived.learned.total(), 'entry')}{f': {learned}' if learned else ''}")
    kept, superseded = lived.curated["kept"], lived.curated["superseded"]
    older = f", {superseded:,} of them in the place of {'an older one' if superseded == 1 else 'older ones'}"
    say(f"curated {kept:,}{older if superseded else ''}")


def _sessions(file: Path) -> "tuple[dict[str, list[Message]], int]":
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
        note(f"{counted(len(problems), 'record')} skipped: {shown(problems[0])}")
    return sessions, len(problems)


def _print_life(life: Life) -> None:
    begun = f"; goes on after {counted(life.begun, 'message')} of an earlier run" if life.begun else ""
    say(f"{shown(life.session)}: {counted(life.turns, 'turn')}, {counted(life.messages, 'message')}{begun}")
    say(f"   said {life.said:,} tokens, the largest window sent had {life.largest:,}, {life.left:,} are left")
    for event in (reduction.event for reduction in life.reductions):
        before, after = event.counts.get("tokens_before", 0), event.counts.get("tokens_after", 0)
        say(dim(f"   {event.stage}: {before:,} → {after:,} tokens ({event.reason})"))


def _document(lived: Lived, target: Target, budget: int, problems: int) -> "dict[str, JsonValue]":
    return {
        "root": str(target.root),
        "created": not target.exists,
        "budget": budget,
        "sessions": [_life_document(life) for life in lived.lives],
        "known": list(lived.known),
        "learned": dict(lived.learned),
        "curated": dict(lived.curated),
        "problems": problems,
    }


def _life_document(life: Life) -> "JsonValue":
    return {
        "session": life.session,
        "turns": life.turns,
        "messages": life.messages,
        "begun": life.begun,
        "said_tokens": life.said,
        "largest_tokens": life.largest,
        "left_tokens": life.left,
        "window": [{"role": message.role, "text": message.text} for message in life.window],
        "reductions": [_reduction_document(reduction) for reduction in life.reductions],
    }


def _reduction_document(reduction: Reduction) -> "JsonValue":
    event = reduction.event
    return {"act": event.stage, "reason": event.reason, **dict(event.counts), "summary": reduction.summary or None}
