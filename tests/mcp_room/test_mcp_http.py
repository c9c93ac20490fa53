"""`ricordo mcp --http` as a real process: who is let in, and both generations of the protocol."""

from pathlib import Path
from typing import Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from command_line import ricordo
from mcp_clients import TOKEN, serve_over_http, value_of

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPTED = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_with_the_token_uses_the_memory(tmp_path: Path, mode: Literal["auto", "legacy"]) -> None:
    with serve_over_http(tmp_path) as url:
        async with (
            httpx2.AsyncClient(headers=HEADERS, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            saved = value_of(await client.call_tool("remember", {"content": "We deploy only from main."}))
            (found,) = value_of(await client.call_tool("recall", {"query": "deploy"}))["memories"]
            assert found["id"] == saved["id"]
            assert len((await client.list_tools()).tools) == 8


def test_who_has_no_token_or_comes_from_elsewhere_is_refused(tmp_path: Path) -> None:
    with serve_over_http(tmp_path) as url:

        def ask(**headers: str) -> int:
            return httpx2.post(url, json=PING, headers={**ACCEPTED, **headers}, timeout=60).status_code

        assert ask() == 401
        assert ask(Authorization="Bearer another") == 401
        assert ask(Authorization=f"Basic {TOKEN}") == 401
        allowed = ask(**HEADERS)
        assert allowed not in {401, 403, 421}
        assert ask(**HEADERS, Host="evil.example") == 421
        assert ask(**HEADERS, Origin="http://evil.example") == 403
        assert ask(**HEADERS, Origin="http://localhost:3000") == allowed
        large = httpx2.post(url, content=b" " * (5 * 1024 * 1024), headers={**ACCEPTED, **HEADERS}, timeout=60)
        assert large.status_code == 413


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "127.0.0.1:0"], "needs a token"),
        (["--http", "0.0.0.0:0", "--without-token"], "can be reached from other machines"),
        (["--http", "0.0.0.0:0", "--remote", "--without-token"], "needs a token"),
        (["--http", "[::]:0", "--remote", "--token-file", "token"], "Name the hosts"),
        (["--http", "127.0.0.1:0", "--token-file", "short"], "16 or more"),
        (["--http", "127.0.0.1:0", "--token-file", "missing"], "can't be read"),
        (["--http", "here"], "is no address"),
        (["--remote"], "go with --http"),
    ],
)
def test_what_is_not_safe_or_not_understood_is_refused_before_it_listens(
    options: list[str], said: str, tmp_path: Path
) -> None:
    names = {"token": TOKEN, "short": "12345"}
    for name, content in names.items():
        (tmp_path / name).write_text(content)
    given = [str(tmp_path / each) if each in {*names, "missing"} else each for each in options]
    done = ricordo("mcp", *given)
    assert done.code in {1, 2}
    assert said in " ".join(done.err.split())
