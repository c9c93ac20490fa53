"""`context`: what memory puts into the prompt of the next session, and what it takes."""

from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import existing, with_memory
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import emit, say, shown

if TYPE_CHECKING:
    from ricordo.memory import Memory

__all__ = ["context"]


def context(
    *,
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="TOKENS", min=1, show_default=False, help="Fit it into so many tokens."),
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the preamble: what a new session is told from memory.

    Curated memory comes first, then what was saved and is not curated yet. It is as long as the setting preamble_tokens
    allows, unless a budget is given. The tokens are estimated.
    """
    target = existing(root, user, project)

    async def preamble(memory: "Memory") -> tuple[str, bool]:
        from ricordo.tokens import Tokens

        text = await memory.preamble(Tokens(budget) if budget else None)
        return text, not text and bool(await memory.entries())

    text, is_too_much = with_memory(target, preamble)
    tokens = _tokens(text)
    if as_json:
        emit({"preamble": text, "tokens": tokens})
        return
    nothing = "Nothing of what is remembered fits into so few tokens." if is_too_much else "Nothing is remembered yet."
    say(shown(text) or nothing)
    say(f"\n{tokens:,} tokens")


def _tokens(text: str) -> int:
    from ricordo.tokens import estimate_text

    return estimate_text(text)
