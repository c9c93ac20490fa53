"""session_list, session_history and session_search: what was said in past sessions, word for word.

They read the transcripts, which no compaction touches. Invariant: ids are looked up among the sessions that the caller
may see, and whatever is not one of them is answered alike.
"""

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from ricordo.errors import FileMissing, SessionNotFound, ToolFailed
from ricordo.files import FileStore
from ricordo.sessions import SessionSearchResult, SessionOverview, SessionFilter, PastSessions, parse_pointer
from ricordo.tools.contract import Tool, ToolContext
from ricordo.tools.function import tool
from ricordo.tools.session_pages import render_history, render_matches, render_sessions

__all__ = ["NO_MATCHES_TEXT", "NOT_FOUND_TEXT", "NO_SESSIONS_TEXT", "session_tools"]

NOT_FOUND_TEXT = "Not found: session_list names the sessions that there are."
NO_SESSIONS_TEXT = "No session is kept yet."
NO_MATCHES_TEXT = "no matches."
_T = TypeVar("_T")
_PAGE_SIZE = 20
_MAX_MESSAGES = 200

_Agent = Annotated[str, "the agent whose sessions are meant; empty for yourself"]


def session_tools(files: FileStore, *, agent: str, user: str = "", expand: bool = False) -> tuple[Tool, ...]:
    """Return the three tools over the transcripts below the root of `files`, for the agent `agent` of `user`.

    They show the sessions of this user and those that belong to nobody, without a user only the latter. With `expand`
    the model is told that a tool of that name opens a message whole by its id.
    """
    past = PastSessions(files, user=user)
    return (_list_tool(past, agent), _history_tool(past, agent, expand=expand), _search_tool(past, agent))


def _list_tool(past: PastSessions, agent: str) -> Tool:
    async def session_list(
        context: ToolContext,
        agent_id: _Agent = "",
        before: Annotated[str, "a session id: list those that are older"] = "",
    ) -> str:
        """List past sessions with their ids and last-update times, newest first. Not for finding what was said."""
        named = agent_id.strip() or agent
        try:
            listed = await past.list_sessions(named)
        except SessionNotFound as error:
            if named == agent:
                return NO_SESSIONS_TEXT
            raise ToolFailed(NOT_FOUND_TEXT) from error
        if before:
            ids = [glance.session for glance in listed]
            if before not in ids:
                raise ToolFailed(NOT_FOUND_TEXT)
            listed = listed[ids.index(before) + 1 :]
        rows = [(glance, *await _await_lookup(past.describe(glance))) for glance in listed[:_PAGE_SIZE]]
        older = len(listed) - len(rows)
        return render_sessions(rows, current=_current_session(context, agent, named), older=older) or NO_SESSIONS_TEXT

    return tool(session_list, effect="reads")


def _history_tool(past: PastSessions, agent: str, *, expand: bool) -> Tool:
    async def session_history(
        session_id: Annotated[str, "a session's id; or session#message,message, as a memory is `from`: just these"],
        agent_id: _Agent = "",
        last_n: Annotated[int, f"how many messages, 1 to {_MAX_MESSAGES}"] = 20,
        before: Annotated[str, "the id of a message: show those that are older"] = "",
    ) -> str:
        """Show the newest messages of a session as they were said, oldest first, with tool calls and results.

        Not for this session, whose messages you have.
        """
        if last_n < 1:
            raise ToolFailed(f"last_n is from 1 to {_MAX_MESSAGES}, not {last_n}.")
        found, ids = await _await_lookup(_resolve_pointer(past, agent_id.strip() or agent, session_id.strip()))
        if ids:
            return render_history(
                await _await_lookup(past.read_messages(found, ids)), found.session, older=False, expand=expand
            )
        before = before.strip().removeprefix("m:")
        excerpt = await _await_lookup(past.read_newest(found, min(last_n, _MAX_MESSAGES), before=before))
        if not excerpt.messages:
            return f"No message of this session is {'older' if before else 'kept'}."
        return render_history(excerpt.messages, found.session, older=excerpt.older, expand=expand)

    return tool(session_history, effect="reads")


def _search_tool(past: PastSessions, agent: str) -> Tool:
    async def session_search(
        query: Annotated[str, "a word or a phrase, as it was said; capitals don't count"],
        *,
        agent_id: _Agent = "",
        session_id: Annotated[str, "only in this session"] = "",
        speaker: Annotated[str, "only what user, assistant, tool or somebody by name said"] = "",
        since: Annotated[str, "only from this day on, as 2026-11-22, or this time"] = "",
        until: Annotated[str, "only before this day or time"] = "",
        page: Annotated[int, "1 is the newest"] = 1,
    ) -> str:
        """Find a word or a phrase in what was said in past sessions, in tool calls and results, newest first.

        Each with what was said before and after it. Not for facts and decisions: `recall` has those.
        """
        if page < 1:
            raise ToolFailed(f"Pages count from 1: {page} is none.")
        named = agent_id.strip() or agent
        within = SessionFilter(
            since=_parse_time(since), until=_parse_time(until), session=session_id.strip(), speaker=speaker.strip()
        )
        skip = _PAGE_SIZE * (page - 1)
        try:
            found = await past.search(query, named, limit=_PAGE_SIZE, skip=skip, within=within)
        except SessionNotFound as error:
            if named != agent:
                raise ToolFailed(NOT_FOUND_TEXT) from error
            found = SessionSearchResult()
        return render_matches(found, page=page, skipped=skip) or NO_MATCHES_TEXT

    return tool(session_search, effect="reads")


def _parse_time(text: str) -> datetime | None:
    """Return a time, in UTC where it does not say; None for an empty text. Raises `ToolFailed`."""
    try:
        time = datetime.fromisoformat(text.strip()) if text.strip() else None
    except ValueError as error:
        raise ToolFailed(f"A day is written as 2026-11-22, a time as 2026-11-22T08:00, not {text[:40]!r}.") from error
    return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time


async def _resolve_pointer(past: PastSessions, agent: str, pointer: str) -> tuple[SessionOverview, tuple[str, ...]]:
    """Return the session that is named, and the messages of it that are, if any. Raises `SessionNotFound`."""
    try:
        return await past.find(agent, pointer), ()
    except SessionNotFound:
        session, ids = parse_pointer(pointer)
        return await past.find(agent, session), ids


def _current_session(context: ToolContext, agent: str, named: str) -> str:
    """Return the session of the caller, if it is one of the agent `named`."""
    return context.session if named == agent else ""


async def _await_lookup(found: Awaitable[_T]) -> _T:
    """Return what was looked up; whatever is not there is answered in the same words."""
    try:
        return await found
    except (SessionNotFound, FileMissing) as error:
        raise ToolFailed(NOT_FOUND_TEXT) from error
