"""`RemoteMemory`: the methods of `Memory` over the HTTP service, with its errors; nothing is lost or doubled."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx2
import pytest

from http_service import Service, open_service
from ricordo import Message
from ricordo.client import RemoteMemory, SyncRemoteMemory
from ricordo.errors import EntryNotFound, InvalidInput, RicordoError, ServiceError, UndoRefused
from ricordo.messages import Text


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(tmp_path / "service") as opened:
        yield opened


async def _connect(service: Service, transport: httpx2.AsyncBaseTransport | None = None) -> RemoteMemory:
    issued = await service.tokens.issue(tenant="acme", user="ann")
    transport = transport or httpx2.ASGITransport(service.app)
    return RemoteMemory("http://localhost:8321/v1", token=issued.text, transport=transport)


@pytest.mark.anyio
async def test_a_remote_memory_does_what_a_memory_does(service: Service) -> None:
    async with await _connect(service) as memory:
        saved = await memory.remember("We deploy only from main.", kind="decision", tags=["ci"], metadata={"area": "x"})
        assert await memory.entry(saved.id) == saved
        assert (saved.kind, saved.tags, saved.metadata) == ("decision", ("ci",), {"area": "x"})
        [hit] = await memory.recall("From which branch do we deploy?")
        assert hit.entry == saved
        assert sum(hit.score_parts.values()) == pytest.approx(hit.score)
        answer = await memory.answer("From which branch do we deploy?")
        assert (answer.found, answer.hit and answer.hit.entry.id) == (True, saved.id)
        assert saved.content in await memory.preamble()
        assert (await memory.pin(saved.id)).pinned
        assert (await memory.confirm(saved.id)).confirmed
        changed = await memory.update(saved.id, content="We deploy only from release.")
        assert {each.content for each in await memory.versions(saved.id)} == {saved.content, changed.content}
        forgotten = await memory.forget(saved.id, reason="over")
        assert [each.id for each in forgotten.entries] == [saved.id]
        with pytest.raises(EntryNotFound):
            await memory.entry(saved.id)
        assert (await memory.history(saved.id))[0].reason == "over"
        assert (await memory.undo(forgotten.change_id)).action == "forget"
        with pytest.raises(UndoRefused):
            await memory.undo(forgotten.change_id)
        assert await memory.erase(saved.id) == [saved.id]
        assert await memory.entries() == []


@pytest.mark.anyio
async def test_a_remote_memory_learns_from_what_was_said(service: Service) -> None:
    at = datetime(2026, 11, 2, 9, tzinfo=UTC)
    said = [
        Message(role="user", parts=(Text(text="We decided to use pnpm for all builds."),), id="m1", time=at),
        Message(role="assistant", parts=(Text(text="Noted."),), id="m2", time=at),
    ]
    async with await _connect(service) as memory:
        report = await memory.ingest(said, session="monday")
        assert ([each.content for each in report.entries], report.added_count) == ([said[0].text], 2)
        assert (await memory.ingest(said, session="monday")).added_count == 0
        [session] = await memory.sessions()
        assert (session.session, session.messages, session.started_at) == ("monday", 2, at)
        assert await memory.review() == []
        assert [each.content for each in (await memory.delete_session("monday", cascade=True)).entries] == [
            said[0].text
        ]


@pytest.mark.anyio
async def test_all_entries_come_in_as_many_requests_as_it_takes(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ricordo.client.remote_memory._PAGE", 3)
    async with await _connect(service) as memory:
        saved = await memory.remember_many([f"The shelf {number} is blue." for number in range(8)])
        assert {each.id for each in await memory.entries()} == {each.id for each in saved}
        assert len(await memory.entries(limit=4)) == 4
        assert await memory.remember_many([]) == []


@pytest.mark.anyio
async def test_an_error_of_the_memory_is_the_same_error_here(service: Service) -> None:
    async with await _connect(service) as memory:
        with pytest.raises(EntryNotFound, match="No memory has"):
            await memory.entry("none")
        with pytest.raises(EntryNotFound, match="No memory has"):
            await memory.decide("none", "accept")
        with pytest.raises(RicordoError):
            await memory.remember("")
        with pytest.raises(InvalidInput):
            await memory.remember("a", metadata={"not a name": "1"})
    stranger = RemoteMemory("http://localhost:8321", token="wrong", transport=httpx2.ASGITransport(service.app))
    async with stranger:
        with pytest.raises(ServiceError, match="ricordo token create") as refused:
            await stranger.entries()
        assert refused.value.status == 401


class _Losing(httpx2.AsyncBaseTransport):
    """It loses the first answers on their way, after the service has acted on the request."""

    def __init__(self, service: Service, times: int) -> None:
        self._inner = httpx2.ASGITransport(service.app)
        self._left = times
        self.sent = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._inner.handle_async_request(request)
        self.sent += 1
        if self._left:
            self._left -= 1
            raise httpx2.ReadError("the connection was cut")
        return answer


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go_on(_: float) -> None:
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("ricordo.client.connection.anyio.sleep", go_on)


@pytest.mark.anyio
@pytest.mark.usefixtures("no_pause")
async def test_a_request_whose_answer_was_lost_is_carried_out_once(service: Service) -> None:
    transport = _Losing(service, times=3)
    async with await _connect(service, transport) as memory:
        saved = await memory.remember("The port is 8080.")
        assert transport.sent == 4
        assert [each.id for each in await memory.entries()] == [saved.id]
    losing = _Losing(service, times=9)
    async with await _connect(service, losing) as memory:
        with pytest.raises(ServiceError, match="can't be reached"):
            await memory.remember("The port is 9090.")
        assert losing.sent == 4
    async with await _connect(service) as memory:
        assert len(await memory.entries()) == 2


def test_without_async_it_is_the_same(tmp_path: Path) -> None:
    with SyncRemoteMemory.open("http://127.0.0.1:1", token="x", tries=1) as memory, pytest.raises(ServiceError):
        memory.entries()
