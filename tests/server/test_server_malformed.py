"""The HTTP service: whatever a request looks like, its answer is no error of the service."""

import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from http_service import open_service

JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 10**30, "", "a", "\x00", "\ud800", "a" * 300, "2026-13-45", "2026-11-22", "0001-01-01",
    "9999-12-31T23:59:59+14:00", [], [None], {}, {"a": 1}, "é", "..", "%00", "' OR 1=1",
)  # fmt: skip
TEXTS = tuple(each for each in JUNK if isinstance(each, str) and each)
CALL_FIELDS = ("tool_calls", "id", "name", "time", "tool_call_id")


def _encode(value: object) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")


class _RandomRequests:
    """Requests near those that the service describes, with junk in some of their places."""

    def __init__(self, document: dict[str, Any], names: list[str], seed: int) -> None:
        self._random = random.Random(seed)
        self._schemas = document["components"]["schemas"]
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        self._names = names

    def make(self, number: int) -> tuple[str, str, dict[str, str], bytes]:
        """Return a method, an address, headers and a body."""
        method, path, operation = self._random.choice(self._operations)
        address = path
        for place in ("{entry_id}", "{session}"):
            name = self._random.choice([*self._names, *TEXTS])
            address = address.replace(place, quote(_encode(name), safe=""))
        parameters = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
        chosen = [name for name in parameters if self._random.random() < 0.4]
        address += "?" + "&".join(f"{name}={quote(_encode(self._random.choice(JUNK)), safe='')}" for name in chosen)
        headers = {"Content-Type": "application/json"}
        if self._random.random() < 0.2:
            headers["Idempotency-Key"] = str(self._random.randrange(20))
        if self._random.random() < 0.1:
            headers["If-Match"] = self._random.choice(["*", '"x"', ",", '""'])
        return method, address, headers, self._make_body(operation, number)

    def _make_body(self, operation: dict[str, Any], number: int) -> bytes:
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        fields = self._schemas.get(content.get("schema", {}).get("$ref", "").rpartition("/")[2], {}).get(
            "properties", {}
        )
        if self._random.random() < 0.05:
            return self._random.randbytes(30)
        right = {
            "content": f"A note {number}.", "query": "note", "verb": "accept", "change": None,
            "memories": [{"content": f"Note {number}."}], "messages": [self._make_message()],
        }  # fmt: skip
        body: Any = {name: right[name] for name in fields if name in right}
        body |= {name: self._random.choice(JUNK) for name in fields if self._random.random() < 0.25}
        if self._random.random() < 0.1:
            body = self._random.choice(JUNK)
        return json.dumps(body).encode("utf-8", "surrogatepass") if fields else b""

    def _make_message(self) -> dict[str, Any]:
        return {
            "role": self._random.choice(["user", "assistant", "tool", "x", None]),
            "content": self._random.choice(["We use pnpm.", *JUNK]),
            self._random.choice(CALL_FIELDS): self._random.choice(JUNK),
        }


@pytest.mark.anyio
@pytest.mark.parametrize("count", [120, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_no_malformed_request_is_an_error_of_the_service(tmp_path: Path, count: int) -> None:
    async with open_service(tmp_path) as service:
        ann = await service.client()
        document = (await ann.get("/openapi.json")).json()
        name = (await ann.post("/v1/memories", json={"content": "The port is 8080."})).json()["id"]
        requests = _RandomRequests(document, [name, "monday"], seed=count)
        for number in range(count):
            method, address, headers, body = requests.make(number)
            answer = await ann.request(method, address, headers=headers, content=body)
            assert answer.status_code < 500, f"{method} {address} {body!r}: {answer.text}"
            assert answer.is_success or answer.headers["content-type"] == "application/problem+json"
