"""`RemoteMemory`: the memory of a token's user in one project, behind the HTTP service."""

from collections.abc import Iterable, Mapping
from typing import Self
from urllib.parse import quote

import httpx2

from ricordo.client.connection import ServiceConnection
from ricordo.client.reading import (
    read_answer,
    read_change,
    read_deleted,
    read_doubt,
    read_entries,
    read_entry,
    read_hit,
    read_report,
    read_session,
    write_moment,
)
from ricordo.curation.quality_checks import Doubt
from ricordo.messages import Message
from ricordo.messages.formats import to_openai
from ricordo.runtime.extraction import IngestReport
from ricordo.search import Answer, Hit
from ricordo.search.contract import Moment
from ricordo.stores.contract import DeleteResult
from ricordo.workspace import SessionInfo
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.log import HistoryItem

__all__ = ["RemoteMemory"]


class RemoteMemory:
    """The memory of a token's user in one project. Use `async with RemoteMemory(url, token=...) as memory`.

    Its methods are those of `Memory` with the same results and errors. What the service can't be reached for, or says
    in a way that isn't understood, is a `ServiceError`. A request that fails on the way is sent again, at most `tries`
    times in all, and is carried out once.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        project: str = "default",
        seconds: float = 30.0,
        tries: int = 4,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect at the first request; `seconds` is how long one may take."""
        self._connection = ServiceConnection(
            url, token=token, project=project, seconds=seconds, tries=tries, transport=transport
        )

    async def __aenter__(self) -> Self:
        """Return this memory."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def remember(
        self,
        content: str,
        *,
        kind: str = "fact",
        tags: Iterable[str] = (),
        since: Moment | None = None,
        metadata: Mapping[str, str] | None = None,
        shared: bool = False,
    ) -> Entry:
        """Save an entry and return it; with `shared` all users of the project see it."""
        body = {**_describe(content, kind, tags, metadata, since), "shared": shared}
        return read_entry((await self._connection.send("POST", "/memories", body=body)).json())

    async def remember_many(self, entries: Iterable[Entry | str]) -> list[Entry]:
        """Save several entries, all or none, and return them in this order; empty for none."""
        given = [Entry(content=each) if isinstance(each, str) else each for each in entries]
        if not given:
            return []
        rows = [_describe(each.content, each.kind, each.tags, each.metadata, each.since) for each in given]
        return read_entries((await self._connection.send("POST", "/memories/batch", body={"memories": rows})).json())

    async def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        kinds: Iterable[str] = (),
        tags: Iterable[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
        metadata: Mapping[str, str] | None = None,
        budget: int | None = None,
        as_of: Moment | None = None,
        said: bool = True,
    ) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        body = {
            "query": query, "limit": limit, "kinds": list(kinds), "tags": list(tags), "since": write_moment(since),
            "until": write_moment(until), "metadata": dict(metadata or {}), "budget": budget,
            "as_of": write_moment(as_of), "said": said,
        }  # fmt: skip
        found = (await self._connection.send("POST", "/recall", body=body)).json()
        return [read_hit(each) for each in found["hits"]]

    async def answer(self, question: str, *, as_of: Moment | None = None) -> Answer:
        """Return the best hit quoted, never invented, or "not in memory"."""
        params = {"question": question, "as_of": write_moment(as_of)}
        return read_answer((await self._connection.send("GET", "/answer", params=params)).json())

    async def preamble(self, budget: int | None = None, *, as_of: Moment | None = None) -> str:
        """Return the fenced text for a system prompt, within `budget` tokens."""
        params = {"budget": budget, "as_of": write_moment(as_of)}
        text: str = (await self._connection.send("GET", "/preamble", params=params)).json()["text"]
        return text

    async def entries(
        self,
        *,
        kinds: Iterable[str] = (),
        tags: Iterable[str] = (),
        states: Iterable[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
        after: Entry | str | None = None,
        as_of: Moment | None = None,
    ) -> list[Entry]:
        """Return the entries that match, newest first; all of them without a `limit`, which takes several requests."""
        found: list[Entry] = []
        place = after.id if isinstance(after, Entry) else after
        while True:
            params = {
                "kind": list(kinds), "tag": list(tags), "state": list(states), "since": write_moment(since),
                "until": write_moment(until), "after": place, "as_of": write_moment(as_of),
                "limit": _PAGE if limit is None else min(_PAGE, limit - len(found)),
            }  # fmt: skip
            page = (await self._connection.send("GET", "/memories", params=params)).json()
            found += read_entries(page)
            place = page["next"]
            if place is None or (limit is not None and len(found) >= limit):
                return found

    async def entry(self, entry_id: str, *, as_of: Moment | None = None) -> Entry:
        """Return an entry by its id. Raises: EntryNotFound."""
        params = {"as_of": write_moment(as_of)}
        return read_entry((await self._connection.send("GET", f"/memories/{_quote(entry_id)}", params=params)).json())

    async def update(
        self,
        entry_id: str,
        *,
        content: str | None = None,
        kind: str | None = None,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Entry:
        """Give an entry new values and return it; what is None stays. Raises: EntryNotFound; InvalidEntry."""
        new = {
            "content": content, "kind": kind, "tags": None if tags is None else list(tags),
            "metadata": None if metadata is None else dict(metadata),
        }  # fmt: skip
        return await self._change(entry_id, {name: value for name, value in new.items() if value is not None})

    async def pin(self, entry_id: str, *, on: bool = True) -> Entry:
        """Pin an entry, or unpin it with `on=False`, and return it. Raises: EntryNotFound."""
        return await self._change(entry_id, {"pinned": on})

    async def confirm(self, entry_id: str) -> Entry:
        """Confirm that an entry is true, and return it. Raises: EntryNotFound."""
        return await self._change(entry_id, {"confirmed": True})

    async def _change(self, entry_id: str, body: Mapping[str, object]) -> Entry:
        return read_entry((await self._connection.send("PATCH", f"/memories/{_quote(entry_id)}", body=body)).json())

    async def forget(self, entry_id: str, *, reason: str = "") -> DeleteResult:
        """Forget an entry until `undo`, and return it with the id of the change. Raises: EntryNotFound."""
        params = {"reason": reason}
        done = await self._connection.send("DELETE", f"/memories/{_quote(entry_id)}", params=params)
        return read_deleted(done.json())

    async def erase(self, entry_id: str) -> list[str]:
        """Erase the words of an entry from every file, and return the ids of what is gone. This can't be undone."""
        done = await self._connection.send("POST", f"/memories/{_quote(entry_id)}/erase")
        return list(done.json()["memories"])

    async def versions(self, entry_id: str) -> list[Entry]:
        """Return the current and earlier versions of an entry that history holds. Raises: EntryNotFound."""
        return read_entries((await self._connection.send("GET", f"/memories/{_quote(entry_id)}/versions")).json())

    async def history(self, entry_id: str | None = None, *, limit: int = 50) -> list[HistoryItem]:
        """Return at most `limit` changes, newest first; with an id, those that concern this entry."""
        path = "/history" if entry_id is None else f"/memories/{_quote(entry_id)}/history"
        done = (await self._connection.send("GET", path, params={"limit": limit})).json()
        return [read_change(each) for each in done["changes"]]

    async def undo(self, change_id: str | None = None) -> HistoryItem:
        """Undo one change, by default the newest of this user, and return it. Raises: ChangeNotFound; UndoRefused."""
        return read_change((await self._connection.send("POST", "/undo", body={"change": change_id})).json())

    async def ingest(self, messages: Iterable[Message], *, session: str) -> IngestReport:
        """Record messages of a session and learn from them; what is recorded already is not added again."""
        rows = [{**row, **_identify(message)} for message in messages for row in to_openai([message])]
        done = await self._connection.send("POST", f"/sessions/{_quote(session)}/messages", body={"messages": rows})
        return read_report(done.json())

    async def sessions(self) -> list[SessionInfo]:
        """Return the sessions with a stored conversation, newest first."""
        done = (await self._connection.send("GET", "/sessions")).json()
        return [read_session(each) for each in done["sessions"]]

    async def delete_session(self, session_id: str, *, cascade: bool = False, reason: str = "") -> DeleteResult:
        """Delete the files of a session; with `cascade` forget what it alone supports. Raises: SessionNotFound."""
        params = {"cascade": cascade, "reason": reason}
        return read_deleted(
            (await self._connection.send("DELETE", f"/sessions/{_quote(session_id)}", params=params)).json()
        )

    async def review(self, *, kinds: Iterable[str] = (), limit: int = 50) -> list[Doubt]:
        """Return at most `limit` doubtful memories, the most urgent first."""
        done = (await self._connection.send("GET", "/review", params={"kind": list(kinds), "limit": limit})).json()
        return [read_doubt(each) for each in done["doubts"]]

    async def decide(self, entry_id: str, verb: str, *, text: str = "", days: int = 7) -> Entry:
        """Decide about a doubtful memory and return it. Raises: EntryNotFound; InvalidInput for an unfit verb."""
        body = {"verb": verb, "text": text, "days": days}
        return read_entry((await self._connection.send("POST", f"/review/{_quote(entry_id)}", body=body)).json())


_PAGE = 500


def _identify(message: Message) -> dict[str, str]:
    """Return the id and the time of a message, as far as it has them."""
    given = {"id": message.id, "time": message.time.isoformat() if message.time else ""}
    return {name: value for name, value in given.items() if value}


def _describe(
    content: str, kind: str, tags: Iterable[str], metadata: Mapping[str, str] | None, since: Moment | None
) -> dict[str, object]:
    return {
        "content": content, "kind": kind, "tags": list(tags), "metadata": dict(metadata or {}),
        "since": write_moment(since),
    }  # fmt: skip


def _quote(name: str) -> str:
    return quote(name, safe="")
