"""`recall` and `ask`: find memories, and answer a question with a quote."""

from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.json_output import answer_document, hit_document
from ricordo.cli.memory_output import explain_hits, print_answer, print_hits
from ricordo.cli.options import (
    AroundOption,
    AsOfOption,
    JsonOption,
    KindOption,
    LimitOption,
    ProjectOption,
    RootOption,
    SessionOption,
    SinceOption,
    TagOption,
    UntilOption,
    UserOption,
    WhyOption,
)
from ricordo.cli.render import bold, escape, print_json, print_line
from ricordo.cli.target import read_memory, require_target

if TYPE_CHECKING:
    from ricordo.runtime.memory import Memory
    from ricordo.search.contract import Answer

__all__ = ["ask", "recall"]


def recall(
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Plain words; nothing ('') finds the newest.")],
    limit: LimitOption = 5,
    kind: KindOption = None,
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, metavar="TOKENS", help="Only what fits into so many tokens.")
    ] = None,
    as_of: AsOfOption = None,
    session: SessionOption = None,
    said: Annotated[
        bool, typer.Option("--said/--no-said", help="Also statements of sessions that match nearer than memories.")
    ] = True,
    why: WhyOption = False,
    around: AroundOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find memories and what was said in sessions, best first.

    Each with its score in 0..1 (higher is better), its age, its file and line, and why it was found. What was said is
    marked with its speaker and day.
    """
    if why and as_of is not None:
        raise typer.BadParameter("--why explains what is found now; it does not go with --as-of.")
    target = require_target(root, user, project, session=session)
    if why:
        explain_hits(
            target, query, as_json=as_json, limit=limit, kinds=kind or (), tags=tag or (), since=since, until=until,
            budget=budget, around=around, said=said,
        )  # fmt: skip
        return
    from ricordo.messages.tokens import Tokens

    token_budget = Tokens(budget) if budget else None
    hits = read_memory(
        target,
        lambda memory: memory.recall(
            query,
            limit=limit,
            kinds=kind or (),
            tags=tag or (),
            since=since,
            until=until,
            budget=token_budget,
            around=around or as_json,
            as_of=as_of,
            said=said,
        ),
        finds=bool(query.strip()),
    )
    if as_json:
        print_json({"query": query, "hits": [hit_document(hit, target) for hit in hits]})
    else:
        print_hits(hits, target)


def ask(
    *,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question in plain words.")],
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the next best passages too.")] = False,
    also: Annotated[list[str] | None, typer.Option("--also", hidden=True, help="One more question.")] = None,
    as_of: AsOfOption = None,
    session: SessionOption = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question with a quote and its source.

    The answer is quoted from memory with its file and line, or it is "not in memory". Both are answers: the exit code
    is 0.
    """
    target = require_target(root, user, project, session=session)
    questions = [question, *(also or [])]

    async def answer_all(memory: "Memory") -> "list[Answer]":
        return [await memory.answer(each, as_of=as_of) for each in questions]

    answers = read_memory(target, answer_all, finds=True)
    if as_json:
        documents = [
            answer_document(question_text, answer, target)
            for question_text, answer in zip(questions, answers, strict=True)
        ]
        print_json({**documents[0], "also": list(documents[1:])} if also else documents[0])
        return
    for question_text, answer in zip(questions, answers, strict=True):
        if also:
            print_line(bold(escape(question_text)))
        print_answer(answer, target)
        if verbose and answer.others:
            print_line("\nNext best:")
            print_hits(list(answer.others), target)
