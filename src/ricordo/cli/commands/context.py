"""`context`: what memory puts into the prompt of the next session, and what fills the window of a session."""

import shlex
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.agents import open_session_agent, find_session_id
from ricordo.cli.chat_window import edit_message, remove_message
from ricordo.cli.context import Target, require_target, run_async, with_memory
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.picture import format_usage
from ricordo.cli.render import pluralize, dim, print_json, print_line, escape
from ricordo.cli.window_documents import compaction_document, request_document, context_usage_document
from ricordo.errors import SessionNotFound

if TYPE_CHECKING:
    from ricordo.harness.journal import Compaction
    from ricordo.memory import Memory
    from ricordo.messages import JsonValue
    from ricordo.runtime.usage import ContextReport
    from ricordo.stores.shown_index import MemoryCut

__all__ = ["context"]

_Budget = Annotated[
    int | None,
    typer.Option("--budget", metavar="TOKENS", min=1, show_default=False, help="Fit it into so many tokens."),
]
_WindowSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        show_default=False,
        help="Whose window to show, or how its id begins; else the newest.",
    ),
]
_Remove = Annotated[
    str | None,
    typer.Option(
        "--remove",
        metavar="MESSAGE",
        show_default=False,
        help="Take a message out of the window: its line in `session show`, or its id.",
    ),
]
_Edit = Annotated[
    str | None,
    typer.Option(
        "--edit", metavar="MESSAGE", show_default=False, help="Let a message of the window say what --text says."
    ),
]
_Text = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", show_default=False, help="The new words, with --edit.")
]
_Wire = Annotated[
    bool, typer.Option("--wire", help="Show the next request as JSON, just as it would be sent; nothing is sent.")
]


def context(
    *,
    budget: _Budget = None,
    session: _WindowSession = None,
    remove: _Remove = None,
    edit: _Edit = None,
    text: _Text = None,
    wire: _Wire = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the preamble, which is what a new session is told from memory, and what fills the window of a session.

    Curated memory comes first, then what was saved and is not curated yet. It is as long as the setting preamble_tokens
    allows, unless a budget is given, and then only it is shown. The tokens are estimated. With --remove or --edit one
    message of the window is changed instead; the transcript keeps what was said, and `compact --undo` brings it back.
    """
    target = require_target(root, user, project)
    if remove is not None or edit is not None or text is not None:
        if budget or wire or (remove is None) == (edit is None) or (edit is None) != (text is None):
            raise typer.BadParameter("--remove stands alone, and --edit with --text; neither goes with other options.")
        _change_window(target, session, remove or edit or "", text, as_json=as_json)
        return
    if wire:
        print_json(run_async(lambda: _load_request(target, session)))
        return
    found = None if budget else run_async(lambda: _load_usage(target, session))
    if found:
        # settings that can't be used were told just now
        target = replace(target, setting_errors=())

    async def preamble(memory: "Memory") -> "tuple[str, bool, MemoryCut | None]":
        from ricordo.tokens import Tokens

        most = Tokens(budget) if budget else None
        text = await memory.preamble(most)
        return text, not text and bool(await memory.entries()), await memory.preamble_cut(most)

    shown_text, is_too_much, cut = with_memory(target, preamble)
    tokens = _count_tokens(shown_text)
    if as_json:
        usage = context_usage_document(found[0], is_new=found[1]) if found else None
        print_json({"preamble": shown_text, "tokens": tokens, "left_out": asdict(cut) if cut else None, "usage": usage})
        return
    nothing = "Nothing of what is remembered fits into so few tokens." if is_too_much else "Nothing is remembered yet."
    print_line(escape(shown_text) or nothing)
    print_line(f"\n{tokens:,} tokens")
    if cut:
        print_line(dim(_format_left_out(cut)))
    if found:
        print_line("\n" + "\n".join(format_usage(found[0], is_new=found[1])))


def _change_window(target: Target, session: str | None, message: str, text: str | None, *, as_json: bool) -> None:
    """Take a message out of the window of a session, or let it say `text`, and tell what brings it back."""
    suffix = f" --session {shlex.quote(session)}" if session else ""
    change = partial(edit_message, text=text) if text is not None else remove_message

    async def act() -> "tuple[Compaction, list[str]]":
        named = await find_session_id(target, session)
        if named is None:
            raise SessionNotFound("There is no session yet: `ricordo chat` begins one.")
        async with open_session_agent(target, named, asks=False) as agent:
            return await change(agent, message, prefix="ricordo ", suffix=suffix)

    made, lines = run_async(act)
    print_json({"changed": compaction_document(made)}) if as_json else print_line("\n".join(lines))


def _format_left_out(cut: "MemoryCut") -> str:
    """Say how much of MEMORY.md is not shown, which bound acted, and what to do."""
    how = "ricordo consolidate" if cut.cap != "tokens" else "ricordo consolidate, or the setting preamble_tokens,"
    return (
        f"left out: {pluralize(cut.lines, 'line')} of MEMORY.md, as no more than {cut.most:,} {cut.cap} are shown;\n"
        f"{how} makes room, and what you wrote yourself you can put into a topic"
    )


async def _load_usage(target: Target, session: str | None) -> "tuple[ContextReport, bool]":
    """Return what fills the window of a session, of a new one where there is none, and whether it is new."""
    named = await find_session_id(target, session)
    async with open_session_agent(target, named, asks=False) as agent:
        return await agent.get_context_usage(), named is None


async def _load_request(target: Target, session: str | None) -> "dict[str, JsonValue]":
    """Describe the next request of a session: as its provider has it, else as messages."""
    async with open_session_agent(target, await find_session_id(target, session), asks=False) as agent:
        return request_document(await agent.preview_request())


def _count_tokens(text: str) -> int:
    from ricordo.tokens import estimate_text

    return estimate_text(text)
