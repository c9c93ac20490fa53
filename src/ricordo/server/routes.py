"""The routes of version 1. Each maps a request to one method of `Memory`, and its result to a document.

A memory is read with its version as an ETag. A change with `If-Match` is refused if the memory has another version by
then; without it the last one wins.
"""

import hashlib
from collections.abc import AsyncIterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from ricordo.errors import InvalidQuery
from ricordo.importers.chat_message import read_chat_message
from ricordo.messages.tokens import Tokens
from ricordo.runtime.memory import Memory
from ricordo.search.contract import parse_moment
from ricordo.server.documents import (
    REQUEST_FIELD,
    AnswerDocument,
    ChangeDocument,
    ChangePage,
    ChangeRequest,
    DecideRequest,
    DoubtDocument,
    DoubtPage,
    ErasedDocument,
    ForgottenDocument,
    HitDocument,
    HitPage,
    IngestDocument,
    IngestRequest,
    JobDocument,
    JobPage,
    MemoryList,
    MemoryView,
    PreambleDocument,
    ProfileDocument,
    RecallRequest,
    RememberManyRequest,
    RememberRequest,
    SessionDocument,
    SessionPage,
    SessionsDocument,
    SpokenDocument,
    UndoRequest,
)
from ricordo.server.problems import Problem
from ricordo.workspace.entry import Entry, with_metadata

if TYPE_CHECKING:
    from ricordo.server.access import Caller
    from ricordo.server.places import MemoryPlaces
    from ricordo.server.repeats import Repeats

__all__ = ["router"]


Moment = datetime | date | None

router = APIRouter(prefix="/v1")


async def _lend_memory(
    request: Request,
    project: Annotated[str, Query(min_length=1, max_length=200, description="The project of the tenant.")] = "default",
) -> AsyncIterator[Memory]:
    places: MemoryPlaces = request.app.state.places
    async with places.memory(request.state.caller, project) as memory:
        yield memory


def _require_writer(request: Request) -> None:
    caller: Caller = request.state.caller
    if caller.role != "writer":
        raise Problem(403, "role-too-small", "Role too small", "This token may only read: use one of a writer.")


Lent = Annotated[Memory, Depends(_lend_memory, scope="function")]
_WRITER = [Depends(_require_writer)]


def _version(entry: Entry) -> str:
    """Return the ETag of a memory."""
    return f'"{hashlib.sha256(MemoryView.describe(entry).model_dump_json().encode()).hexdigest()[:32]}"'


def _tokens(budget: int | None) -> Tokens | None:
    return None if budget is None else Tokens(budget)


async def _check_version(memory: Memory, entry_id: str, if_match: str | None) -> None:
    """Raises: Problem if the memory is not in the version that the caller saw; EntryNotFound."""
    if if_match is None or if_match.strip() == "*":
        return
    if _version(await memory.entry(entry_id)) not in {each.strip() for each in if_match.split(",")}:
        raise Problem(
            412, "version-changed", "Version changed", "The memory changed since it was read: read it, and change that."
        )


@router.post("/memories", status_code=201, dependencies=_WRITER, tags=["memories"])
async def remember(wanted: RememberRequest, request: Request, response: Response, memory: Lent) -> MemoryView:
    """Save a memory. It is durable and can be found when the answer is there."""
    metadata, entry = dict(wanted.metadata), None
    if key := getattr(request.state, "request_key", ""):
        metadata[REQUEST_FIELD] = key
        if request.state.is_repeat:
            entry = next(iter(await memory.entries(metadata={REQUEST_FIELD: key}, limit=1)), None)
    if entry is None:
        entry = await memory.remember(
            wanted.content,
            kind=wanted.kind,
            tags=wanted.tags,
            metadata=metadata,
            since=wanted.since,
            scope="project" if wanted.shared else None,
            reason=wanted.reason or None,
        )
    response.headers["ETag"] = _version(entry)
    response.headers["Location"] = f"/v1/memories/{entry.id}"
    return MemoryView.describe(entry)


@router.post("/memories/batch", status_code=201, dependencies=_WRITER, tags=["memories"])
async def remember_many(wanted: RememberManyRequest, request: Request, memory: Lent) -> MemoryList:
    """Save several memories, all or none."""
    key = getattr(request.state, "request_key", "")
    if key and request.state.is_repeat and (known := await memory.entries(metadata={REQUEST_FIELD: key})):
        return MemoryList(memories=[MemoryView.describe(entry) for entry in reversed(known)])
    if any(each.shared for each in wanted.memories):
        raise InvalidQuery("Memories for the whole project are saved one at a time.")
    saved = await memory.remember_many(
        with_metadata(
            Entry(
                content=each.content,
                kind=each.kind,
                tags=tuple(each.tags),
                since=parse_moment("since", each.since),
                by="user",
            ),
            {**each.metadata, **({REQUEST_FIELD: key} if key else {})},
        )
        for each in wanted.memories
    )
    return MemoryList(memories=[MemoryView.describe(entry) for entry in saved])


@router.get("/memories", tags=["memories"])
async def list_memories(
    *,
    memory: Lent,
    kind: Annotated[tuple[str, ...], Query()] = (),
    tag: Annotated[tuple[str, ...], Query()] = (),
    state: Annotated[tuple[str, ...], Query()] = (),
    since: Moment = None,
    until: Moment = None,
    as_of: Moment = None,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> MemoryList:
    """List memories, newest first. What is saved or forgotten meanwhile shifts no page."""
    found = await memory.entries(
        kinds=kind, tags=tag, states=state, since=since, until=until, as_of=as_of, after=after, limit=limit + 1
    )
    page = found[:limit]
    return MemoryList(
        memories=[MemoryView.describe(entry) for entry in page],
        next=page[-1].id if len(found) > limit else None,
    )


@router.get("/memories/{entry_id}", response_model=MemoryView, tags=["memories"])
async def read_memory(
    entry_id: str,
    response: Response,
    memory: Lent,
    as_of: Moment = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> MemoryView | Response:
    """Return a memory with its version as the ETag."""
    entry = await memory.entry(entry_id, as_of=as_of)
    version = _version(entry)
    if if_none_match and version in {each.strip() for each in if_none_match.split(",")}:
        return Response(status_code=304, headers={"ETag": version})
    response.headers["ETag"] = version
    return MemoryView.describe(entry)


@router.patch("/memories/{entry_id}", dependencies=_WRITER, tags=["memories"])
async def update_memory(
    entry_id: str,
    wanted: ChangeRequest,
    response: Response,
    memory: Lent,
    if_match: Annotated[str | None, Header()] = None,
) -> MemoryView:
    """Give a memory new values. With `If-Match` only if nobody changed it since it was read."""
    await _check_version(memory, entry_id, if_match)
    entry = await memory.entry(entry_id)
    if {"content", "kind", "tags", "metadata"} & wanted.model_fields_set:
        entry = await memory.update(
            entry_id, content=wanted.content, kind=wanted.kind, tags=wanted.tags, metadata=wanted.metadata
        )
    if wanted.pinned is not None and wanted.pinned != entry.pinned:
        entry = await memory.pin(entry_id, on=wanted.pinned)
    if wanted.confirmed:
        entry = await memory.confirm(entry_id)
    response.headers["ETag"] = _version(entry)
    return MemoryView.describe(entry)


@router.delete("/memories/{entry_id}", dependencies=_WRITER, tags=["memories"])
async def forget_memory(
    entry_id: str, memory: Lent, reason: str = "", if_match: Annotated[str | None, Header()] = None
) -> ForgottenDocument:
    """Forget a memory, until it is undone. The answer names the places that still hold its words."""
    await _check_version(memory, entry_id, if_match)
    result = await memory.forget(entry_id, reason=reason)
    changes = await memory.history(result.entry.id, limit=1)
    return ForgottenDocument.describe(result, changes[0].id if changes else None)


@router.post("/memories/{entry_id}/erase", dependencies=_WRITER, tags=["memories"])
async def erase_memory(entry_id: str, request: Request, memory: Lent) -> ErasedDocument:
    """Erase the words of a memory from every file. This can't be undone."""
    erased = await memory.erase(entry_id)
    repeats: Repeats = request.app.state.repeats
    await repeats.forget_tenant(request.state.caller.tenant)
    return ErasedDocument(memories=list(erased.ids))


@router.get("/memories/{entry_id}/history", tags=["history"])
async def read_memory_history(
    entry_id: str, memory: Lent, limit: Annotated[int, Query(ge=1, le=1_000)] = 50
) -> ChangePage:
    """List the changes that concern a memory, newest first; it may be forgotten."""
    return ChangePage(changes=[ChangeDocument.describe(each) for each in await memory.history(entry_id, limit=limit)])


@router.get("/memories/{entry_id}/versions", tags=["history"])
async def read_memory_versions(entry_id: str, memory: Lent) -> MemoryList:
    """List the earlier values of a memory and its present ones, as far as history holds them."""
    return MemoryList(memories=[MemoryView.describe(each) for each in await memory.versions(entry_id)])


@router.post("/recall", tags=["finding"])
async def recall(wanted: RecallRequest, memory: Lent) -> HitPage:
    """Find memories, best first, each with why it was found."""
    hits = await memory.recall(
        wanted.query,
        limit=wanted.limit,
        kinds=wanted.kinds,
        tags=wanted.tags,
        metadata=wanted.metadata or None,
        since=wanted.since,
        until=wanted.until,
        as_of=wanted.as_of,
        budget=_tokens(wanted.budget),
        said=wanted.said,
    )
    return HitPage(hits=[HitDocument.describe(hit) for hit in hits])


@router.get("/answer", tags=["finding"])
async def answer(
    memory: Lent, question: Annotated[str, Query(min_length=1, max_length=20_000)], as_of: Moment = None
) -> AnswerDocument:
    """Answer with a quoted memory, or say that it is not in memory."""
    return AnswerDocument.describe(await memory.answer(question, as_of=as_of))


@router.get("/preamble", tags=["finding"])
async def read_preamble(
    memory: Lent, budget: Annotated[int | None, Query(ge=0, le=200_000)] = None, as_of: Moment = None
) -> PreambleDocument:
    """Return the text for a system prompt, within a budget of tokens."""
    return PreambleDocument(text=await memory.preamble(_tokens(budget), as_of=as_of))


@router.post("/sessions/{session}/messages", dependencies=_WRITER, tags=["sessions"])
async def ingest(session: str, wanted: IngestRequest, memory: Lent) -> IngestDocument:
    """Record messages of a session and learn from them; what is recorded already is not added again."""
    messages = [read_chat_message(each.model_dump()) for each in wanted.messages]
    return IngestDocument.describe(await memory.ingest(messages, session=session))


@router.get("/sessions", tags=["sessions"])
async def list_sessions(memory: Lent) -> SessionsDocument:
    """List the sessions with a stored conversation, newest first."""
    return SessionsDocument(sessions=[SessionDocument.describe(each) for each in await memory.sessions()])


@router.get("/sessions/{session}", tags=["sessions"])
async def read_session(
    session: str,
    memory: Lent,
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> SessionPage:
    """Return messages of a session, in order."""
    recorded = await memory.session(session)
    end = start + limit
    return SessionPage(
        **SessionDocument.describe(recorded.info).model_dump(),
        conversation=[SpokenDocument.describe(each) for each in recorded.messages[start:end]],
        next=end if end < len(recorded.messages) else None,
    )


@router.delete("/sessions/{session}", dependencies=_WRITER, tags=["sessions"])
async def delete_session(session: str, memory: Lent, *, cascade: bool = False, reason: str = "") -> ForgottenDocument:
    """Delete the files of a session; with `cascade` also the memories that it alone supports."""
    result = await memory.delete_session(session, cascade=cascade, reason=reason)
    return ForgottenDocument.describe(result, None)


@router.get("/history", tags=["history"])
async def read_history(memory: Lent, limit: Annotated[int, Query(ge=1, le=1_000)] = 50) -> ChangePage:
    """List the changes of memory, newest first."""
    return ChangePage(changes=[ChangeDocument.describe(each) for each in await memory.history(limit=limit)])


@router.post("/undo", dependencies=_WRITER, tags=["history"])
async def undo(wanted: UndoRequest, memory: Lent) -> ChangeDocument:
    """Undo a change and return it."""
    return ChangeDocument.describe(await memory.undo(wanted.change))


@router.get("/review", tags=["review"])
async def review(
    memory: Lent, kind: Annotated[tuple[str, ...], Query()] = (), limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> DoubtPage:
    """List the memories that a person should look at, the most urgent first."""
    return DoubtPage(doubts=[DoubtDocument.describe(each) for each in await memory.review(kinds=kind, limit=limit)])


@router.post("/review/{entry_id}", dependencies=_WRITER, tags=["review"])
async def decide(entry_id: str, wanted: DecideRequest, memory: Lent) -> MemoryView:
    """Decide about a doubtful memory."""
    entry = await memory.decide(entry_id, wanted.verb, text=wanted.text, days=wanted.days)
    return MemoryView.describe(entry)


@router.get("/profile", tags=["profile"])
async def read_profile(memory: Lent) -> ProfileDocument:
    """Return what is known of the user."""
    return ProfileDocument.describe(await memory.profile().show())


@router.get("/jobs", tags=["jobs"])
async def list_jobs(memory: Lent, limit: Annotated[int, Query(ge=1, le=500)] = 20) -> JobPage:
    """List runs of the background, newest first, with what they cost."""
    return JobPage(jobs=[JobDocument.describe(each) for each in await memory.background_runs(limit=limit)])
