"""`session list`, `show` and `search`: the conversations as they were."""

from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, existing, with_memory
from ricordo.cli.documents import hit_document, session_document
from ricordo.cli.hits import print_hits
from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, counted, dim, emit, say, shown, size, wrapped
from ricordo.clock import rfc3339

if TYPE_CHECKING:
    from ricordo.memory import Session
    from ricordo.messages import Message
    from ricordo.messages.types import JsonValue

__all__ = ["list_sessions", "search", "show"]

_LONGEST_RESULT = 400
_LONGEST_MESSAGE = 4_000


def list_sessions(
    *,
    limit: LimitOption = 50,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the sessions whose conversations are kept, newest first."""
    target = existing(root, user, project)
    found = with_memory(target, lambda memory: memory.sessions())
    if as_json:
        emit({"total": len(found), "sessions": [session_document(info, target) for info in found[:limit]]})
        return
    if not found:
        say("No conversation was kept yet: `ricordo ingest FILE` takes one in.")
    for info in found[:limit]:
        days = f"{info.first.astimezone():%Y-%m-%d %H:%M} to {info.last.astimezone():%Y-%m-%d %H:%M}"
        say(f"{bold(info.session)}  {days}  {counted(info.messages, 'message')}, {size(info.size)}")
    if len(found) > limit:
        say(dim(f"… and {len(found) - limit:,} more: --limit shows them"))


def show(
    *,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session, or how it begins.")],
    full: Annotated[bool, typer.Option("--full", help="Show long messages and the results of tools whole.")] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a conversation with the line of each message in its transcript."""
    target = existing(root, user, project)
    found = with_memory(target, lambda memory: memory.session(session))
    if as_json:
        emit(_document(found, target))
        return
    say(f"{bold(found.info.session)}  {shown(target.file(found.info.path))}")
    for message, line in zip(found.messages, found.lines, strict=True):
        time = f"  {message.time.astimezone():%Y-%m-%d %H:%M:%S}" if message.time else ""
        say(f"\n{dim(str(line))} {bold(shown(message.name or message.role))}{dim(time)}")
        for part in _spoken(message, full=full):
            say(wrapped(part, "  "))
    for broken in found.broken:
        say(f"\n{broken.line} (this line can't be read: {shown(broken.reason)})")


def search(
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Plain words.")],
    limit: LimitOption = 10,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search the conversations, the results of tools too, best first."""
    from ricordo.index.contract import Query

    target = existing(root, user, project)
    asked = Query(text=query, sorts=("transcript", "session", "result"))
    hits = with_memory(target, lambda memory: memory.search(asked, limit=limit))
    if as_json:
        emit({"query": query, "hits": [hit_document(hit, target) for hit in hits]})
    else:
        print_hits(hits, target)


def _spoken(message: "Message", *, full: bool) -> list[str]:
    """Return what a message says and does, a text for each part of it."""
    said = [message.text] if message.text else []
    said += [f"[calls {call.name}] {call.arguments}" for call in message.tool_calls]
    said += [f"[answer of {result.name or 'a tool'}] {result.text}" for result in message.tool_results]
    longest = _LONGEST_RESULT if message.role == "tool" else _LONGEST_MESSAGE
    return said if full else [_cut(text, longest) for text in said]


def _cut(text: str, longest: int) -> str:
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}… ({left:,} more characters: --full shows all)"


def _document(found: "Session", target: Target) -> "dict[str, JsonValue]":
    return {
        **session_document(found.info, target),
        "conversation": [
            {
                "id": message.id,
                "line": line,
                "role": message.role,
                "name": message.name,
                "time": rfc3339(message.time) if message.time else None,
                "text": "\n".join(_spoken(message, full=True)),
            }
            for message, line in zip(found.messages, found.lines, strict=True)
        ],
        "broken": [{"line": broken.line, "reason": broken.reason} for broken in found.broken],
    }
