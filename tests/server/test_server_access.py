"""The HTTP service: who is let in, what they may do, how much, and what they are told."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from hand_clock import HandClock
from http_service import open_service
from ricordo import Entry, Memory
from ricordo.server import Caller, ServiceLimits

pytestmark = pytest.mark.anyio


async def _save(client: httpx2.AsyncClient, content: str, **fields: Any) -> str:
    saved = await client.post("/v1/memories", json={"content": content, **fields})
    assert saved.status_code == 201, saved.text
    name: str = saved.json()["id"]
    return name


def _read_files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def _keep_nothing(*_: object) -> None:
    """Stand for a service that is killed between a write and its answer."""


async def test_only_a_token_that_holds_opens_the_service(tmp_path: Path) -> None:
    clock = HandClock()
    async with open_service(tmp_path, clock=clock) as service:
        wrong = [None, "", "rcd_", "rcd_0123_wrong", "Bearer", "rcd_é_é"]
        for text in wrong:
            stranger = await service.client_with(None)
            headers = [] if text is None else [(b"authorization", f"Bearer {text}".encode())]
            refused = await stranger.get("/v1/memories", headers=headers)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert refused.headers["content-type"] == "application/problem+json"
        ann = await service.client(expires=clock.now() + timedelta(hours=1))
        assert (await ann.get("/v1/memories")).status_code == 200
        clock.turn(hours=1)
        assert (await ann.get("/v1/memories")).status_code == 401
        ben = await service.client("ben")
        assert (await ben.get("/v1/memories")).status_code == 200
        [token] = [each for each in await service.tokens.list_tokens() if each.user == "ben"]
        await service.tokens.revoke(token.id)
        assert (await ben.get("/v1/memories")).status_code == 401


async def test_the_database_holds_no_token_in_clear(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        issued = await service.tokens.issue(tenant="acme", user="ann")
        secret = issued.text.split("_", 2)[2].encode()
        stored = b"".join(_read_files(tmp_path).values())
        assert secret not in stored
        assert issued.token.digest.encode() in stored
        assert (tmp_path / "service.sqlite3").stat().st_mode & 0o077 == 0


async def test_nobody_sees_a_memory_of_another_tenant_user_or_project(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        ann = await service.client()
        name = await _save(ann, "The safe opens with 4711.")
        change = (await ann.get("/v1/history")).json()["changes"][0]["id"]
        others = {
            "another user": (await service.client("ben"), "default"),
            "another tenant": (await service.client(tenant="bell"), "default"),
            "another project": (ann, "other"),
        }
        routes = [
            ("GET", f"/v1/memories/{name}", None),
            ("PATCH", f"/v1/memories/{name}", {"content": "Mine."}),
            ("DELETE", f"/v1/memories/{name}", None),
            ("POST", f"/v1/memories/{name}/erase", None),
            ("GET", f"/v1/memories/{name}/history", None),
            ("GET", f"/v1/memories/{name}/versions", None),
            ("POST", "/v1/undo", {"change": change}),
            ("POST", f"/v1/review/{name}", {"verb": "reject"}),
            ("GET", f"/v1/sessions/{name}", None),
            ("DELETE", f"/v1/sessions/{name}", None),
        ]
        for who, (client, project) in others.items():
            for method, path, body in routes:
                answer = await client.request(method, path, json=body, params={"project": project})
                assert answer.status_code == 404, f"{who}: {method} {path} gave {answer.status_code}"
                assert "4711" not in answer.text
            found = await client.post("/v1/recall", json={"query": "safe"}, params={"project": project})
            assert found.json() == {"hits": []}
            assert (await client.get("/v1/memories", params={"project": project})).json()["memories"] == []
        assert (await ann.get(f"/v1/memories/{name}")).status_code == 200


async def test_what_is_shared_is_seen_by_the_users_of_the_project_alone(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        ann, ben = await service.client(), await service.client("ben")
        other = await service.client(tenant="bell")
        name = await _save(ann, "Visitors park behind the house.", shared=True)
        assert (await ben.get(f"/v1/memories/{name}")).json()["shared"] is True
        assert (await other.get(f"/v1/memories/{name}")).status_code == 404


async def test_a_reader_changes_nothing_and_a_token_of_a_project_opens_no_other(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        ann, reader = await service.client(), await service.client(role="reader", project="default")
        name = await _save(ann, "The port is 8080.")
        assert (await reader.get(f"/v1/memories/{name}")).status_code == 200
        assert (await reader.post("/v1/recall", json={"query": "port"})).json()["hits"]
        document = (await ann.get("/openapi.json")).json()
        changing = [
            (method.upper(), path.replace("{entry_id}", name).replace("{session}", "s"))
            for path, methods in document["paths"].items()
            for method in methods
            if method != "get" and path != "/v1/recall"
        ]
        assert len(changing) >= 9
        for method, path in changing:
            refused = await reader.request(method, path, json={"content": "x", "messages": [{"role": "user"}]})
            assert refused.status_code in {403, 422}, f"{method} {path}"
            assert (await ann.get(f"/v1/memories/{name}")).json()["content"] == "The port is 8080."
        assert (await reader.get("/v1/memories", params={"project": "other"})).status_code == 403


async def test_a_tenant_that_asks_too_much_waits_and_slows_nobody_else(tmp_path: Path) -> None:
    limits = ServiceLimits(requests=3, requests_per_second=0.001)
    async with open_service(tmp_path, limits=limits) as service:
        ann, ben = await service.client(), await service.client("ben", tenant="bell")
        answers = [await ann.get("/v1/jobs") for _ in range(4)]
        assert [each.status_code for each in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["retry-after"]) > 1
        assert (await ben.get("/v1/jobs")).status_code == 200
        assert (await ann.get("/healthz")).status_code == 200


async def test_a_request_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async with open_service(tmp_path, limits=ServiceLimits(seconds=0.000_001)) as service:
        slow = await (await service.client()).get("/v1/memories")
        assert (slow.status_code, slow.json()["type"]) == (503, "urn:ricordo:problem:request-too-slow")


async def test_what_is_malformed_is_a_problem_that_says_what_to_do(tmp_path: Path) -> None:
    async with open_service(tmp_path, limits=ServiceLimits(body_bytes=1_000)) as service:
        ann = await service.client()
        cases: list[tuple[str, str, dict[str, Any], int, str]] = [
            ("POST", "/v1/memories", {"content": b"{", "headers": {"Content-Type": "application/json"}}, 422, "JSON"),
            ("POST", "/v1/memories", {"content": b"text"}, 422, "body"),
            ("POST", "/v1/memories", {"json": {"content": ""}}, 422, "content"),
            ("POST", "/v1/memories", {"json": {"content": "a", "colour": "red"}}, 422, "colour"),
            ("POST", "/v1/memories", {"json": ["a"]}, 422, ""),
            ("POST", "/v1/memories", {"json": {"content": "a" * 2_000}}, 413, "1,000 bytes"),
            ("POST", "/v1/recall", {"json": {"query": "a", "limit": 0}}, 422, "limit"),
            ("POST", "/v1/recall", {"json": {"query": "a", "since": "soon"}}, 422, "since"),
            ("GET", "/v1/memories", {"params": {"after": "none"}}, 404, ""),
            ("GET", "/v1/memories", {"params": {"limit": "many"}}, 422, "limit"),
            ("GET", "/v1/memories", {"params": {"project": "a\x00b"}}, 422, "printable"),
            ("GET", "/v1/sessions/..%2F..%2Fetc", {}, 404, ""),
            ("PUT", "/v1/memories", {}, 405, ""),
            ("GET", "/v2/memories", {}, 404, "openapi.json"),
        ]
        for method, path, given, status, said in cases:
            answer = await ann.request(method, path, **given)
            assert answer.status_code == status, f"{method} {path} {given}: {answer.text}"
            assert answer.headers["content-type"] == "application/problem+json"
            problem = answer.json()
            assert (problem["status"], problem["type"][:20]) == (status, "urn:ricordo:problem:")
            assert said in problem["detail"]


async def test_a_request_of_another_host_or_page_is_refused(tmp_path: Path) -> None:
    open_to = Caller(tenant="local", user="me", role="writer")
    async with open_service(tmp_path, open_to=open_to, hosts=["localhost", "memory.example"]) as service:
        anybody = await service.client_with(None)
        assert (await anybody.get("/v1/memories")).status_code == 200
        assert (await anybody.get("/v1/memories", headers={"Host": "memory.example"})).status_code == 200
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
            assert (await anybody.get("/v1/memories", headers=headers)).status_code == 421
        assert (await anybody.get("/v1/memories", headers={"Authorization": "Bearer wrong"})).status_code == 401


async def test_a_request_with_a_key_is_carried_out_once(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        ann, ben, key = await service.client(), await service.client("ben"), {"Idempotency-Key": "one"}
        wanted = {"content": "The port is 8080."}
        first = await ann.post("/v1/memories", json=wanted, headers=key)
        again = await ann.post("/v1/memories", json=wanted, headers=key)
        assert (again.status_code, again.json(), again.headers["etag"]) == (201, first.json(), first.headers["etag"])
        assert again.headers["idempotency-replayed"] == "true"
        assert first.json()["metadata"] == {}
        other = await ann.post("/v1/memories", json={"content": "The port is 9090."}, headers=key)
        assert (other.status_code, other.json()["type"]) == (422, "urn:ricordo:problem:idempotency-key-reused")
        assert (await ben.post("/v1/memories", json=wanted, headers=key)).json()["id"] != first.json()["id"]
        gone = [
            await ann.request("DELETE", first.headers["location"], headers={"Idempotency-Key": "two"}) for _ in "ab"
        ]
        assert [each.status_code for each in gone] == [200, 200]
        bad = {"Idempotency-Key": "three"}
        assert (await ann.post("/v1/undo", json={"change": "none"}, headers=bad)).status_code == 404
        assert (await ann.post("/v1/undo", json={}, headers=bad)).status_code == 200
        assert len((await ann.get("/v1/memories")).json()["memories"]) == 1


async def test_a_request_that_is_sent_again_before_it_was_answered_is_carried_out_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember = Memory.remember

    async def remember_slowly(self: Memory, content: str, **given: Any) -> Entry:
        await anyio.sleep(0.2)
        return await remember(self, content, **given)

    monkeypatch.setattr(Memory, "remember", remember_slowly)
    async with open_service(tmp_path) as service, open_service(tmp_path) as other:
        ann, key, answers = await service.client(), {"Idempotency-Key": "one"}, []
        elsewhere = await other.client()

        async def save(client: httpx2.AsyncClient) -> None:
            answer = await client.post("/v1/memories", json={"content": "The port is 8080."}, headers=key)
            answers.append(answer.json()["id"])

        async with anyio.create_task_group() as group:
            for client in (ann, elsewhere, ann, elsewhere):
                group.start_soon(save, client)
        assert len(answers) == 4
        assert len(set(answers)) == 1
        assert len((await ann.get("/v1/memories")).json()["memories"]) == 1


async def test_a_request_that_was_cut_off_after_its_write_doubles_nothing_when_it_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_service(tmp_path) as service:
        ann, key = await service.client(), {"Idempotency-Key": "one"}
        many = {"memories": [{"content": f"The shelf {number} is blue."} for number in range(3)]}
        finish = service.app._repeats.finish
        for path, wanted in (("/v1/memories", {"content": "The port is 8080."}), ("/v1/memories/batch", many)):
            key = {"Idempotency-Key": path}
            monkeypatch.setattr(service.app._repeats, "finish", _keep_nothing)
            first = await ann.post(path, json=wanted, headers=key)
            monkeypatch.setattr(service.app._repeats, "finish", finish)
            again = await ann.post(path, json=wanted, headers=key)
            assert again.json() == first.json()
        assert len((await ann.get("/v1/memories")).json()["memories"]) == 4


async def test_an_erased_memory_is_in_no_file_of_the_service(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        ann = await service.client()
        saved = await ann.post(
            "/v1/memories", json={"content": "Zanzibar is the word."}, headers={"Idempotency-Key": "1"}
        )
        erased = await ann.post(f"{saved.headers['location']}/erase")
        assert erased.json()["memories"] == [saved.json()["id"]]
    assert [path for path, content in _read_files(tmp_path).items() if b"Zanzibar" in content] == []


async def test_users_at_the_same_time_lose_and_mix_nothing(tmp_path: Path) -> None:
    async with open_service(tmp_path, limits=ServiceLimits(requests=10_000, projects=2, users=3)) as service:
        people = [(tenant, user) for tenant in ("acme", "bell", "core") for user in ("ann", "ben", "cem", "dee")]
        clients = {each: await service.client(each[1], tenant=each[0]) for each in people}

        async def save_and_read(tenant: str, user: str) -> None:
            client = clients[tenant, user]
            for number in range(3):
                await _save(client, f"Note {number} of {user} at {tenant}.")
            found = (await client.get("/v1/memories")).json()["memories"]
            expected = {f"Note {number} of {user} at {tenant}." for number in range(3)}
            assert {each["content"] for each in found} == expected

        async with anyio.create_task_group() as group:
            for each in people:
                group.start_soon(save_and_read, *each)


async def test_the_service_describes_itself_and_counts_without_naming_anybody(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        ann = await service.client()
        name = await _save(ann, "The port is 8080.")
        await ann.get(f"/v1/memories/{name}")
        document = (await ann.get("/openapi.json")).json()
        assert document["openapi"].startswith("3.1")
        operations = [each for methods in document["paths"].values() for each in methods.values()]
        assert all(each["summary"] and each["description"] for each in operations)
        assert (await ann.get("/readyz")).json() == {"status": "ready"}
        metrics = (await ann.get("/metrics")).text
        assert 'ricordo_requests_total{method="GET",route="/v1/memories/{entry_id}",status="200"} 1.0' in metrics
        assert "ricordo_open_memories 1.0" in metrics
        assert not [word for word in (name, "acme", '"ann"', "The port") if word in metrics]
