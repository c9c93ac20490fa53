"""`context`, `compact` and `expand`: the preamble and the window of a session, made smaller and brought back."""

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.agents import find_session_id, open_session_agent
from ricordo.cli.chat_window import (
    edit_message,
    format_compaction_result,
    format_compactions,
    format_expanded,
    format_undo,
    format_usage,
    remove_message,
    unused_focus_note,
)
from ricordo.cli.json_output import (
    compaction_document,
    compaction_result_document,
    context_usage_document,
    expanded_messages_document,
    request_document,
)
from ricordo.cli.options import AsOfOption, JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import dim, escape, pluralize, print_json, print_line
from ricordo.cli.target import Target, find_target, read_memory, require_target, run_async
from ricordo.errors import SessionNotFound, StorageReadOnly

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.agent.compaction_journal import Compaction
    from ricordo.context.memory_excerpt import MemoryCut
    from ricordo.context.usage import ContextReport
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.memory import Memory

__all__ = ["compact", "context", "expand"]


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
_ShowWindow = Annotated[
    bool, typer.Option("--window", help="Show also what fills the window of the newest session, or of a new one.")
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
    window: _ShowWindow = False,
    session: _WindowSession = None,
    remove: _Remove = None,
    edit: _Edit = None,
    text: _Text = None,
    wire: _Wire = False,
    as_of: AsOfOption = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the preamble, which is the memory in the prompt of a new session, and with --window what fills a window.

    Curated memory comes first, then what was saved and is not curated yet. It is as long as the setting preamble_tokens
    allows, unless a budget is given. With --as-of it has what held then, newest first. The tokens are estimated. With
    --remove or --edit one message of the window is changed instead; the transcript keeps what was said, and
    `compact --undo` brings it back.
    """
    target = require_target(root, user, project)
    if remove is not None or edit is not None or text is not None:
        if budget or window or wire or (remove is None) == (edit is None) or (edit is None) != (text is None):
            raise typer.BadParameter("--remove stands alone, and --edit with --text; neither goes with other options.")
        _change_window(target, session, remove or edit or "", text, as_json=as_json)
        return
    if wire:
        print_json(run_async(lambda: _load_request(target, session)))
        return
    if as_of is not None and (session is not None or window):
        raise typer.BadParameter("--as-of shows the preamble of then; it goes with no window.")
    usage_report = run_async(lambda: _load_usage(target, session)) if window or session else None
    if usage_report:
        # settings that can't be used were told just now
        target = replace(target, setting_errors=())

    async def preamble(memory: "Memory") -> "tuple[str, bool, MemoryCut | None]":
        from ricordo.context.preamble import Preamble
        from ricordo.messages.tokens import Tokens
        from ricordo.runtime.finding import read_preamble

        token_budget = Tokens(budget) if budget else None
        shown = (
            Preamble(text=await memory.preamble(token_budget, as_of=as_of))
            if as_of
            else (await read_preamble(memory, token_budget))
        )
        return shown.text, not shown.text and bool(await memory.entries(as_of=as_of, limit=1)), shown.cut

    shown_text, is_too_much, cut = read_memory(target, preamble)
    tokens = _count_tokens(shown_text)
    if as_json:
        usage = context_usage_document(usage_report[0], is_new=usage_report[1]) if usage_report else None
        print_json({"preamble": shown_text, "tokens": tokens, "left_out": asdict(cut) if cut else None, "usage": usage})
        return
    nothing = "Nothing of what is remembered fits into so few tokens." if is_too_much else "Nothing is remembered yet."
    print_line(escape(shown_text) or nothing)
    print_line(f"\n{tokens:,} tokens")
    if cut:
        print_line(dim(_format_left_out(cut)))
    if usage_report:
        print_line("\n" + "\n".join(format_usage(usage_report[0], is_new=usage_report[1])))


def _change_window(target: Target, session: str | None, message: str, text: str | None, *, as_json: bool) -> None:
    """Take a message out of the window of a session, or let it say `text`, and tell what brings it back."""
    suffix = f" --session {shlex.quote(session)}" if session else ""
    change = partial(edit_message, text=text) if text is not None else remove_message

    async def act() -> "tuple[Compaction, list[str]]":
        session_id = await find_session_id(target, session)
        if session_id is None:
            raise SessionNotFound("There is no session yet: `ricordo chat` begins one.")
        async with open_session_agent(target, session_id, with_model=False) as agent:
            return await change(agent, message, prefix="ricordo ", suffix=suffix)

    compaction, lines = run_async(act)
    print_json({"changed": compaction_document(compaction)}) if as_json else print_line("\n".join(lines))


def _format_left_out(cut: "MemoryCut") -> str:
    """Say how much of MEMORY.md is not shown, which bound acted, and what to do."""
    remedy = "ricordo consolidate" if cut.cap != "tokens" else "ricordo consolidate, or the setting preamble_tokens,"
    return (
        f"left out: {pluralize(cut.lines, 'line')} of MEMORY.md, as no more than {cut.limit:,} {cut.cap} are shown;\n"
        f"{remedy} makes room, and what you wrote yourself you can put into a topic"
    )


async def _load_usage(target: Target, session: str | None) -> "tuple[ContextReport, bool]":
    """Return the usage of the window of a session, of a new one if there is no session, and whether it is new."""
    session_id = await find_session_id(target, session)
    async with open_session_agent(target, session_id, with_model=False) as agent:
        return await agent.get_context_usage(), session_id is None


async def _load_request(target: Target, session: str | None) -> "dict[str, JsonValue]":
    """Describe the next request of a session: as its provider has it, else as messages."""
    async with open_session_agent(target, await find_session_id(target, session), with_model=False) as agent:
        return request_document(await agent.preview_request())


def _count_tokens(text: str) -> int:
    from ricordo.messages.tokens import estimate_text

    return estimate_text(text)


_CompactSession = Annotated[
    str | None,
    typer.Option(
        "--session", metavar="ID", show_default=False, help="The session, or how its id begins; else the newest."
    ),
]
_Handle = Annotated[
    str | None, typer.Argument(metavar="HANDLE", show_default=False, help="With --undo: which compaction.")
]
_Focus = Annotated[
    str, typer.Option("--focus", metavar="TEXT", show_default=False, help="What the summary is to dwell on.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what it would come to; no model is asked.")]
_List = Annotated[bool, typer.Option("--list", help="Show the compactions of the session, newest first.")]
_Undo = Annotated[
    bool, typer.Option("--undo", help="Bring back the window from before a compaction, the newest if none is named.")
]


def compact(
    *,
    handle: _Handle = None,
    session: _CompactSession = None,
    focus: _Focus = "",
    dry_run: _DryRun = False,
    listed: _List = False,
    undo: _Undo = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the window of a session smaller, and show what fills it before and after.

    Nothing is lost: the transcript keeps every message, `ricordo expand` opens what went, and --undo brings it back.
    Without a model in the settings, rules write the summary. The exit code is 1 if it failed.
    """
    if bool(focus or dry_run) + listed + undo > 1:
        raise typer.BadParameter("--list and --undo each stand alone.")
    if handle and not undo:
        raise typer.BadParameter("A HANDLE is for --undo; `ricordo expand HANDLE` opens one.")
    target, real = require_target(root, user, project), not (dry_run or listed or undo)
    if real:
        # what is summed up stays so: other settings than the person's are not good enough for it
        find_target(root, user, project, strict=True)

    async def act() -> "tuple[dict[str, JsonValue], list[str], bool]":
        async with _open_existing_session(target, session, learns=real, changes=real or undo) as agent:
            if listed:
                return *await _list_compactions(agent), True
            if undo:
                return *await _undo_compaction(agent, handle), True
            result = await agent.compact(focus=focus, dry_run=dry_run)
            note = unused_focus_note(focus, result.before.model, target.settings)
            suffix = f" --session {shlex.quote(session)}" if session else ""
            lines = format_compaction_result(result, dry_run=dry_run, note=note, prefix="ricordo ", suffix=suffix)
            statuses = {each.status for each in result}
            is_ok = "done" in statuses or "failed" not in statuses
            return compaction_result_document(result, dry_run=dry_run, note=note), lines, is_ok

    document, lines, is_ok = run_async(act)
    print_json(document) if as_json else print_line("\n".join(lines))
    if not is_ok:
        raise typer.Exit(1)


def expand(
    *,
    handle: Annotated[
        str, typer.Argument(metavar="HANDLE", help="The handle of a compaction, or m: and the id of a message.")
    ],
    session: _CompactSession = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a compaction took out of the window, as it was said.

    `ricordo compact --list` names the handles.
    """
    target = require_target(root, user, project)

    async def act() -> "tuple[dict[str, JsonValue], list[str]]":
        async with _open_existing_session(target, session) as agent:
            messages = await agent.compactions.expand(handle)
            return expanded_messages_document(handle, messages), format_expanded(messages)

    document, lines = run_async(act)
    print_json(document) if as_json else print_line("\n".join(lines))


@asynccontextmanager
async def _open_existing_session(
    target: Target, session: str | None, *, learns: bool = False, changes: bool = False
) -> AsyncIterator["HarnessAgent"]:
    """Open the agent in the session that was named, else the newest.

    Raises: SessionNotFound; StorageReadOnly when its window is to be changed and can't be kept.
    """
    session_id = await find_session_id(target, session)
    if session_id is None:
        raise SessionNotFound("There is no session yet: `ricordo chat` begins one.")
    async with open_session_agent(target, session_id, with_model=learns, with_learning=learns) as agent:
        if changes and not agent.is_recorded:
            raise StorageReadOnly(
                f"The memory in {target.root} can only be read, so the window stays as it is: "
                "`ricordo compact --dry-run` tells what making it smaller would come to."
            )
        yield agent


async def _list_compactions(agent: "HarnessAgent") -> "tuple[dict[str, JsonValue], list[str]]":
    compactions = await agent.compactions.all()
    return {
        "session": agent.session,
        "compactions": [compaction_document(each) for each in compactions],
    }, format_compactions(compactions)


async def _undo_compaction(agent: "HarnessAgent", handle: str | None) -> "tuple[dict[str, JsonValue], list[str]]":
    before = await agent.get_context_usage()
    compaction = await agent.compactions.undo(handle)
    after = await agent.get_context_usage()
    document: dict[str, JsonValue] = {
        "undone": compaction_document(compaction),
        "before": context_usage_document(before),
        "after": context_usage_document(after),
    }
    return document, format_undo(compaction, before, after)
