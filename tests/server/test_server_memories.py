"""The HTTP service: a memory is saved, found, read, changed, forgotten and brought back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from http_service import Service, open_service
from ricordo import Entry, Memory, Scope
from ricordo.workspace.entry import Source

pytestmark = pytest.mark.anyio


@pytest.fixture
def legal_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_RETENTION__RULES", "kind=fact: hold by Legal")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(tmp_path / "service") as opened:
        yield opened


async def test_a_memory_lives_from_its_saving_to_its_end(service: Service) -> None:
    ann = await service.client()
    saved = await ann.post("/v1/memories", json={"content": "We deploy only from main.", "kind": "decision"})
    assert saved.status_code == 201
    memory = saved.json()
    assert (memory["kind"], memory["by"], memory["state"]) == ("decision", "user", "active")
    place = saved.headers["location"]
    assert place == f"/v1/memories/{memory['id']}"
    [hit] = (await ann.post("/v1/recall", json={"query": "From which branch do we deploy?"})).json()["hits"]
    assert (hit["memory"], hit["trust"]) == (memory, "user")
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"])
    answer = (await ann.get("/v1/answer", params={"question": "From which branch do we deploy?"})).json()
    assert answer["found"]
    assert "We deploy only from main." in (await ann.get("/v1/preamble")).json()["text"]
    changed = await ann.patch(place, json={"content": "We deploy only from release.", "pinned": True})
    assert (changed.json()["content"], changed.json()["pinned"]) == ("We deploy only from release.", True)
    versions = (await ann.get(f"{place}/versions")).json()["memories"]
    assert {each["content"] for each in versions} == {"We deploy only from main.", "We deploy only from release."}
    forgotten = (await ann.request("DELETE", place, params={"reason": "no longer true"})).json()
    assert (await ann.get(place)).status_code == 404
    history = (await ann.get(f"{place}/history")).json()["changes"]
    assert (history[0]["id"], history[0]["reason"]) == (forgotten["change"], "no longer true")
    assert (await ann.post("/v1/undo", json={"change": forgotten["change"]})).json()["action"] == "forget"
    assert (await ann.get(place)).json()["content"] == "We deploy only from release."


@pytest.mark.usefixtures("legal_hold")
async def test_what_is_held_is_not_forgotten_and_the_answer_says_who_holds_it(service: Service) -> None:
    ann = await service.client()
    place = (await ann.post("/v1/memories", json={"content": "The port is 8080."})).headers["location"]
    refused = await ann.delete(place)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:ricordo:problem:legal-hold")
    assert "Legal holds it" in refused.json()["detail"]
    assert (await ann.get(place)).status_code == 200


async def test_a_list_comes_in_pages_that_what_is_saved_meanwhile_does_not_shift(service: Service) -> None:
    ann = await service.client()
    texts = [f"The shelf {number} is blue." for number in range(7)]
    many = [{"content": text, "tags": [f"t{number % 2}"]} for number, text in enumerate(texts)]
    assert (await ann.post("/v1/memories/batch", json={"memories": many})).status_code == 201
    seen, after = [], None
    for expected in (3, 3, 1):
        page = (await ann.get("/v1/memories", params={"limit": 3, **({"after": after} if after else {})})).json()
        assert len(page["memories"]) == expected
        seen += [each["content"] for each in page["memories"]]
        after = page["next"]
        await ann.post("/v1/memories", json={"content": f"Later than {after}."})
    assert after is None
    assert sorted(seen) == texts
    tagged = (await ann.get("/v1/memories", params={"tag": "t1"})).json()["memories"]
    assert sorted(each["content"] for each in tagged) == [f"The shelf {number} is blue." for number in (1, 3, 5)]


async def test_many_are_saved_together_or_not_at_all(service: Service) -> None:
    ann = await service.client()
    bad = [{"content": "One is right."}, {"content": "x", "metadata": {"not a name": "1"}}]
    assert (await ann.post("/v1/memories/batch", json={"memories": bad})).status_code == 422
    assert (await ann.get("/v1/memories")).json()["memories"] == []


async def test_a_change_is_refused_if_somebody_else_was_faster(service: Service) -> None:
    ann = await service.client()
    saved = await ann.post("/v1/memories", json={"content": "The port is 8080."})
    place, seen = saved.headers["location"], saved.headers["etag"]
    assert (await ann.get(place, headers={"If-None-Match": seen})).status_code == 304
    first = await ann.patch(place, json={"content": "The port is 9090."}, headers={"If-Match": seen})
    assert first.status_code == 200
    for late in (
        await ann.patch(place, json={"content": "The port is 7070."}, headers={"If-Match": seen}),
        await ann.request("DELETE", place, headers={"If-Match": seen}),
    ):
        assert (late.status_code, late.json()["type"]) == (412, "urn:ricordo:problem:version-changed")
    read = await ann.get(place, headers={"If-None-Match": seen})
    assert (read.json()["content"], read.headers["etag"]) == ("The port is 9090.", first.headers["etag"])


async def test_what_is_said_is_recorded_once_and_learned_from(service: Service) -> None:
    ann = await service.client()
    decision = "We decided to use pnpm for all builds."
    said = [
        {"role": "user", "content": decision},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]},
    ]
    done = (await ann.post("/v1/sessions/monday/messages", json={"messages": said})).json()
    assert (done["messages"], done["added"]) == (2, 2)
    assert [each["content"] for each in done["learned"]] == [decision]
    assert (await ann.post("/v1/sessions/monday/messages", json={"messages": said})).json()["added"] == 0
    [session] = (await ann.get("/v1/sessions")).json()["sessions"]
    assert (session["session"], session["messages"]) == ("monday", 2)
    page = (await ann.get("/v1/sessions/monday", params={"limit": 1})).json()
    assert ([each["text"] for each in page["conversation"]], page["next"]) == ([decision], 1)
    rest = (await ann.get("/v1/sessions/monday", params={"start": page["next"]})).json()
    assert ([each["text"] for each in rest["conversation"]], rest["next"]) == (["Noted."], None)
    gone = (await ann.request("DELETE", "/v1/sessions/monday", params={"cascade": True})).json()
    assert [each["content"] for each in gone["memories"]] == [decision]
    assert (await ann.get("/v1/sessions/monday")).status_code == 404


async def test_what_another_process_imported_is_doubtful_until_it_is_decided(service: Service, tmp_path: Path) -> None:
    ann = await service.client()
    await ann.get("/v1/memories")
    scope = Scope(tenant="acme", user="ann", project="default")
    root = tmp_path / "service" / "tenants" / "acme" / "projects" / "default"
    source = Source(origin="mem0:export.json")
    async with Memory.open(root, scope=scope, trusted=True) as memory:
        await memory.import_entries([Entry(content="Prefers oak for tables.", source=source)])
    [doubt] = (await ann.get("/v1/review")).json()["doubts"]
    assert doubt["memory"]["content"] == "Prefers oak for tables."
    decided = await ann.post(f"/v1/review/{doubt['memory']['id']}", json={"verb": "accept"})
    assert decided.json()["content"] == "Prefers oak for tables."
    assert (await ann.get("/v1/review")).json() == {"doubts": []}
    assert (await ann.post("/v1/review/none", json={"verb": "accept"})).status_code == 404


async def test_the_profile_and_the_runs_of_the_background_can_be_read(service: Service) -> None:
    ann = await service.client()
    assert (await ann.get("/v1/profile")).json()["facts"] == []
    assert (await ann.get("/v1/jobs")).json() == {"jobs": []}
    said = [{"role": "user", "content": "We decided to use pnpm for all builds."}]
    await ann.post("/v1/sessions/monday/messages", json={"messages": said})
    [job] = (await ann.get("/v1/jobs")).json()["jobs"]
    assert (job["kind"], job["session"], job["cost"]) == ("flush", "monday", 0.0)
