"""`session list`, `show` and `search`: the conversations as they were.

They are those of the user in the project; `--user` names another one whose files can be read here.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, existing, redactor_of, run, scope_of, with_memory
from ricordo.cli.documents import hit_document, session_document
from ricordo.cli.hits import print_hits
from ricordo.cli.options import (
    AroundOption,
    JsonOption,
    LimitOption,
    ProjectOption,
    RootOption,
    SinceOption,
    UntilOption,
    UserOption,
)
from ricordo.cli.render import bold, counted, dim, emit, highlighted, say, shown, size, wrapped
from ricordo.clock import rfc3339
from ricordo.errors import SessionNotFound

if TYPE_CHECKING:
    from ricordo.guard import Redactor
    from ricordo.memory import Memory, Session
    from ricordo.messages import Message
    from ricordo.messages.types import JsonValue
    from ricordo.sessions import Finding, Found, Narrowed, SessionInfo, Spoken

__all__ = ["list_sessions", "search", "show"]

_LONGEST_RESULT = 400
_LONGEST_MESSAGE = 4_000
_LOOKED_THROUGH = 200


def list_sessions(
    *,
    limit: LimitOption = 50,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the sessions whose conversations are kept, newest first, and whose they are if there are several users."""
    target = existing(root, user, project)
    found = with_memory(target, lambda memory: memory.sessions())
    if as_json:
        emit({"total": len(found), "sessions": [_described(info, target) for info in found[:limit]]})
        return
    if not found:
        say("No conversation was kept yet: `ricordo ingest FILE` takes one in.")
    owned = len({info.user for info in found if info.user}) > 1
    for info in found[:limit]:
        days = f"{info.first.astimezone():%Y-%m-%d %H:%M} to {info.last.astimezone():%Y-%m-%d %H:%M}"
        owner = f"  of {shown(info.user)}" if owned and info.user else ""
        say(f"{bold(info.session)}  {days}  {counted(info.messages, 'message')}, {size(info.size)}{owner}")
    if len(found) > limit:
        say(dim(f"… and {len(found) - limit:,} more: --limit shows them"))


def show(
    *,
    session: Annotated[
        str,
        typer.Argument(
            metavar="SESSION",
            help="The id of a session, or how it begins; session#message,message shows just these messages.",
        ),
    ],
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="N", show_default=False, help="Only the newest N messages.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show long messages and the results of tools whole.")] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a conversation with the line of each message in its transcript."""
    from ricordo.sessions import pointed

    target = existing(root, user, project)
    name, ids = pointed(session)

    async def look(memory: "Memory") -> "Session":
        try:
            return await memory.session(session)
        except SessionNotFound:
            return await memory.session(name)

    whole = with_memory(target, look)
    ids = ids if whole.info.session != session else ()
    first = -last if last else 0
    rows = [row for row in zip(whole.messages, whole.lines, strict=True) if not ids or row[0].id in ids][first:]
    if ids and not rows:
        raise SessionNotFound(f"No message of the session {name} has one of these ids.")
    found = replace(whole, messages=tuple(row[0] for row in rows), lines=tuple(row[1] for row in rows))
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
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            "-x",
            help="Find the words as they stand, capitals aside, also in arguments and results of tools, newest first.",
        ),
    ] = False,
    limit: LimitOption = 10,
    page: Annotated[int, typer.Option("--page", min=1, help="Further ones of --exact: 1 has the newest.")] = 1,
    since: SinceOption = None,
    until: UntilOption = None,
    session: Annotated[str, typer.Option("--session", metavar="ID", help="Only in this session.")] = "",
    speaker: Annotated[
        str, typer.Option("--speaker", metavar="WHO", help="Only by user, assistant, tool, or somebody by name.")
    ] = "",
    around: AroundOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search the conversations, the results of tools too, best first."""
    from ricordo.index.contract import Query
    from ricordo.sessions import Narrowed

    target = existing(root, user, project)
    if exact:
        within = Narrowed(since=since, until=until, session=session, speaker=speaker)
        found = run(lambda: _find(target, query, limit, limit * (page - 1), within))
        _print_found(query, found, target, as_json=as_json, skipped=limit * (page - 1))
        return
    asked = Query(text=query, since=since, until=until, session=session, sorts=("transcript", "session", "result"))
    most = _LOOKED_THROUGH if speaker else limit
    hits = with_memory(target, lambda memory: memory.search(asked, limit=most, around=around or as_json), finds=True)
    hits = [hit for hit in hits if hit.speaker.casefold() == speaker.casefold()][:limit] if speaker else hits
    if as_json:
        emit({"query": query, "hits": [hit_document(hit, target) for hit in hits]})
    else:
        print_hits(hits, target)


async def _find(target: Target, query: str, limit: int, skip: int, within: "Narrowed") -> "Found":
    from ricordo.runtime.still_said import searched_files
    from ricordo.sessions import Found, PastSessions

    past = PastSessions(await searched_files(target.root, target.place), user=None)
    try:
        found = await past.search(query, (await scope_of(target)).agent, limit=limit, skip=skip, within=within)
    except SessionNotFound:
        return Found()
    redactor = await redactor_of(target)
    return replace(found, findings=tuple(_guarded(each, redactor) for each in found.findings))


def _guarded(finding: "Finding", redactor: "Redactor") -> "Finding":
    """Return a finding without the secrets that a transcript may hold, as somebody may have edited it."""
    before, after = (each and replace(each, text=redactor.clean(each.text)) for each in (finding.before, finding.after))
    return replace(finding, snippet=redactor.clean(finding.snippet), before=before, after=after)


def _print_found(query: str, found: "Found", target: Target, *, as_json: bool, skipped: int) -> None:
    if as_json:
        findings: list[JsonValue] = [_finding(each, target) for each in found.findings]
        emit({"query": query, "total": found.total, "whole": found.whole, "findings": findings})
        return
    if not found.findings:
        say("Nothing found.")
    for number, each in enumerate(found.findings, start=skipped + 1):
        time = f"{each.time.astimezone():%Y-%m-%d %H:%M}" if each.time else ""
        did = f"{each.piece.sort} of {each.piece.tool}" if each.piece.tool else each.name or each.role
        if each.before:
            say(dim(wrapped(f"{each.before.speaker}: {each.before.text}", "     ")))
        say(highlighted(wrapped(each.snippet, "   ", first=f"{number}. "), [query]))
        if each.after:
            say(dim(wrapped(f"{each.after.speaker}: {each.after.text}", "     ")))
        say(dim(f"   {' · '.join(filter(None, (shown(did), time, shown(f'{target.file(each.path)}:{each.line}'))))}"))
    if found.total > len(found.findings):
        more = f"{found.total - len(found.findings):,} more{'' if found.whole else ' at least'}"
        say(dim(f"… and {more}: --limit shows them"))


def _finding(each: "Finding", target: Target) -> "dict[str, JsonValue]":
    return {
        "session": each.session,
        "agent": each.agent,
        "message": each.message,
        "line": each.line,
        "file": target.file(each.path),
        "role": each.role,
        "name": each.name,
        "time": rfc3339(each.time) if each.time else None,
        "sort": each.piece.sort,
        "tool": each.piece.tool or None,
        "snippet": each.snippet,
        "before": _beside(each.before),
        "after": _beside(each.after),
    }


def _beside(spoken: "Spoken | None") -> "dict[str, JsonValue] | None":
    return {"speaker": spoken.speaker, "text": spoken.text} if spoken else None


def _described(info: "SessionInfo", target: Target) -> "dict[str, JsonValue]":
    return {**session_document(info, target), "user": info.user or None}


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
        **_described(found.info, target),
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
