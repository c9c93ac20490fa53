"""`session list`, `show`, `search`, `end` and `delete`: the conversations as they were.

They are those of the user in the project; `--user` names another one whose files can be read here.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.json_output import hit_document, session_document
from ricordo.cli.memory_output import print_hits
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
from ricordo.cli.render import bold, dim, escape, format_size, highlight, pluralize, print_json, print_line, wrap
from ricordo.cli.target import Target, load_redactor, load_scope, read_memory, require_target, run_async, with_memory
from ricordo.clock import format_rfc3339
from ricordo.errors import SessionNotFound

if TYPE_CHECKING:
    from ricordo.guard import Redactor
    from ricordo.messages import Message
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.extraction import RecordedSession
    from ricordo.runtime.memory import Memory
    from ricordo.workspace.session_search import (
        MessageExcerpt,
        SessionFilter,
        SessionInfo,
        SessionMatch,
        SessionSearchResult,
    )

__all__ = ["delete", "end", "list_sessions", "search", "show"]


_MAX_RESULT_CHARS = 400
_MAX_MESSAGE_CHARS = 4_000
_SPEAKER_CANDIDATES = 200


def list_sessions(
    *,
    limit: LimitOption = 50,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the sessions whose conversations are kept, newest first, and whose they are if there are several users."""
    target = require_target(root, user, project)
    sessions = read_memory(target, lambda memory: memory.sessions())
    if as_json:
        print_json(
            {"total": len(sessions), "sessions": [_owned_session_document(info, target) for info in sessions[:limit]]}
        )
        return
    if not sessions:
        print_line("No conversation was kept yet: `ricordo import PATH` brings one along.")
    owned = len({info.user for info in sessions if info.user}) > 1
    for info in sessions[:limit]:
        days = f"{info.started_at.astimezone():%Y-%m-%d %H:%M} to {info.last.astimezone():%Y-%m-%d %H:%M}"
        owner = f"  of {escape(info.user)}" if owned and info.user else ""
        print_line(
            f"{bold(info.session)}  {days}  {pluralize(info.messages, 'message')}, {format_size(info.size)}{owner}"
        )
    if len(sessions) > limit:
        print_line(dim(f"… and {len(sessions) - limit:,} more: --limit shows them"))


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
    from ricordo.workspace.session_search import parse_pointer

    target = require_target(root, user, project)
    name, ids = parse_pointer(session)

    async def look(memory: "Memory") -> "RecordedSession":
        try:
            return await memory.session(session)
        except SessionNotFound:
            return await memory.session(name)

    recorded = read_memory(target, look)
    ids = ids if recorded.info.session != session else ()
    first = -last if last else 0
    rows = [row for row in zip(recorded.messages, recorded.lines, strict=True) if not ids or row[0].id in ids][first:]
    if ids and not rows:
        raise SessionNotFound(f"No message of the session {name} has one of these ids.")
    selected = replace(recorded, messages=tuple(row[0] for row in rows), lines=tuple(row[1] for row in rows))
    if as_json:
        print_json(_transcript_document(selected, target))
        return
    print_line(f"{bold(selected.info.session)}  {escape(target.display_path(selected.info.path))}")
    for message, line in zip(selected.messages, selected.lines, strict=True):
        time = f"  {message.time.astimezone():%Y-%m-%d %H:%M:%S}" if message.time else ""
        print_line(f"\n{dim(str(line))} {bold(escape(message.name or message.role))}{dim(time)}")
        for part in _message_texts(message, full=full):
            print_line(wrap(part, "  "))
    for broken in selected.broken_lines:
        print_line(f"\n{broken.line} (this line can't be read: {escape(broken.reason)})")


def end(
    *,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The name of the session.")],
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a session: what was remembered for it alone is erased. Its conversation stays.

    A session also ends when its agent is left, or when nobody has used it for a day.
    """
    target = require_target(root, user, project, session=session)
    with_memory(target, lambda memory: memory.end_session())
    if as_json:
        print_json({"ended": session})
        return
    print_line(f"Ended {escape(session)}. Nothing is left of what was remembered for it alone.")


def delete(
    *,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session, or how it begins.")],
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Forget what was learned from it too, unless something else supports it.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the history.")] = "",
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a conversation with its files. `ricordo undo` brings it back.

    Without --cascade, what was learned from it stays. With it, a memory stays if another session supports it too.
    """
    target = require_target(root, user, project)
    result = with_memory(target, lambda memory: memory.delete_session(session, cascade=cascade, reason=reason))
    if as_json:
        print_json({
            "session": session, "change": result.change_id, "forgotten": [entry.id for entry in result.entries]
        })  # fmt: skip
        return
    print_line(f"Deleted {escape(session)}. `ricordo undo` brings it back.")
    for entry in result.entries:
        print_line(wrap(escape(entry.content), "   ", first=f"forgot {entry.id}: "))


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
    from ricordo.search.contract import Query
    from ricordo.workspace.session_search import SessionFilter

    target = require_target(root, user, project)
    if exact:
        within = SessionFilter(since=since, until=until, session=session, speaker=speaker)
        result = run_async(lambda: _search_exact(target, query, limit, limit * (page - 1), within))
        _print_matches(query, result, target, as_json=as_json, skipped=limit * (page - 1))
        return
    session_query = Query(
        text=query, since=since, until=until, session=session, document_types=("transcript", "session", "result")
    )
    max_hits = _SPEAKER_CANDIDATES if speaker else limit
    hits = read_memory(
        target, lambda memory: memory.search(session_query, limit=max_hits, around=around or as_json), finds=True
    )
    hits = [hit for hit in hits if hit.speaker.casefold() == speaker.casefold()][:limit] if speaker else hits
    if as_json:
        print_json({"query": query, "hits": [hit_document(hit, target) for hit in hits]})
    else:
        print_hits(hits, target)


async def _search_exact(
    target: Target, query: str, limit: int, skip: int, within: "SessionFilter"
) -> "SessionSearchResult":
    from ricordo.agent.forgotten import searchable_files
    from ricordo.workspace.session_search import PastSessions, SessionSearchResult

    past = PastSessions(await searchable_files(target.root, target.user_folder), user=None)
    try:
        result = await past.search(query, (await load_scope(target)).agent, limit=limit, skip=skip, within=within)
    except SessionNotFound:
        return SessionSearchResult()
    redactor = await load_redactor(target)
    return replace(result, findings=tuple(_redact_match(each, redactor) for each in result.findings))


def _redact_match(finding: "SessionMatch", redactor: "Redactor") -> "SessionMatch":
    """Return a finding without the secrets that a transcript may hold, as somebody may have edited it."""
    before, after = (each and replace(each, text=redactor.clean(each.text)) for each in (finding.before, finding.after))
    return replace(finding, snippet=redactor.clean(finding.snippet), before=before, after=after)


def _print_matches(query: str, result: "SessionSearchResult", target: Target, *, as_json: bool, skipped: int) -> None:
    if as_json:
        findings: list[JsonValue] = [_match_document(each, target) for each in result.findings]
        print_json({"query": query, "total": result.total, "whole": result.is_complete, "findings": findings})
        return
    if not result.findings:
        print_line("Nothing found.")
    for number, each in enumerate(result.findings, start=skipped + 1):
        time = f"{each.time.astimezone():%Y-%m-%d %H:%M}" if each.time else ""
        did = (
            f"{each.matched_text.kind} of {each.matched_text.tool}"
            if each.matched_text.tool
            else each.name or each.role
        )
        if each.before:
            print_line(dim(wrap(f"{each.before.speaker}: {each.before.text}", "     ")))
        print_line(highlight(wrap(each.snippet, "   ", first=f"{number}. "), [query]))
        if each.after:
            print_line(dim(wrap(f"{each.after.speaker}: {each.after.text}", "     ")))
        place = escape(f"{target.display_path(each.path)}:{each.line}")
        print_line(dim(f"   {' · '.join(filter(None, (escape(did), time, place)))}"))
    if result.total > len(result.findings):
        more = f"{result.total - len(result.findings):,} more{'' if result.is_complete else ' at least'}"
        print_line(dim(f"… and {more}: --limit shows them"))


def _match_document(each: "SessionMatch", target: Target) -> "dict[str, JsonValue]":
    return {
        "session": each.session,
        "agent": each.agent,
        "message": each.message,
        "line": each.line,
        "file": target.display_path(each.path),
        "role": each.role,
        "name": each.name,
        "time": format_rfc3339(each.time) if each.time else None,
        "sort": each.matched_text.kind,
        "tool": each.matched_text.tool or None,
        "snippet": each.snippet,
        "before": _neighbour_document(each.before),
        "after": _neighbour_document(each.after),
    }


def _neighbour_document(excerpt: "MessageExcerpt | None") -> "dict[str, JsonValue] | None":
    return {"speaker": excerpt.speaker, "text": excerpt.text} if excerpt else None


def _owned_session_document(info: "SessionInfo", target: Target) -> "dict[str, JsonValue]":
    return {**session_document(info, target), "user": info.user or None}


def _message_texts(message: "Message", *, full: bool) -> list[str]:
    """Return what a message says and does, a text for each part of it."""
    texts = [message.text] if message.text else []
    texts += [f"[calls {call.name}] {call.arguments}" for call in message.tool_calls]
    texts += [f"[answer of {result.name or 'a tool'}] {result.text}" for result in message.tool_results]
    longest = _MAX_RESULT_CHARS if message.role == "tool" else _MAX_MESSAGE_CHARS
    return texts if full else [_shorten(text, longest) for text in texts]


def _shorten(text: str, longest: int) -> str:
    excess = len(text) - longest
    return text if excess <= 0 else f"{text[:longest]}… ({excess:,} more characters: --full shows all)"


def _transcript_document(recorded: "RecordedSession", target: Target) -> "dict[str, JsonValue]":
    return {
        **_owned_session_document(recorded.info, target),
        "conversation": [
            {
                "id": message.id,
                "line": line,
                "role": message.role,
                "name": message.name,
                "time": format_rfc3339(message.time) if message.time else None,
                "text": "\n".join(_message_texts(message, full=True)),
            }
            for message, line in zip(recorded.messages, recorded.lines, strict=True)
        ],
        "broken": [{"line": broken.line, "reason": broken.reason} for broken in recorded.broken_lines],
    }
