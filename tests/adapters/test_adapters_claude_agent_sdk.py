"""The Claude Agent SDK over Ricordo: its own conformance function, and lines as Claude Code writes them."""

from pathlib import Path
from typing import Any

import pytest

from framework_conformance import is_installed, play, run_example, run_page
from ricordo import Scope
from ricordo.errors import MemoryClosed
from ricordo.testing import LoopbackServer, Say

if not is_installed("claude_agent_sdk"):
    pytest.skip("the Claude Agent SDK is not installed: make test-adapters installs it", allow_module_level=True)

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    get_session_messages_from_store,
    project_key_for_directory,
    query,
)
from claude_agent_sdk.testing import run_session_store_conformance

from ricordo.adapters import RicordoSessionStore

pytestmark = [pytest.mark.adapters, pytest.mark.anyio]
ANN, BOB = Scope(project="shop", user="ann"), Scope(project="shop", user="bob")
SESSION = "11111111-1111-4111-8111-111111111111"
KEY: Any = {"project_key": "-srv-shop", "session_id": SESSION}


def _line(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012}" if number > 1 else None,
        "sessionId": SESSION,
        "timestamp": f"2026-11-21T08:00:{number:02}.000Z",
        "isSidechain": False,
        "message": {"role": role, "content": content},
        **more,
    }


LINES: list[Any] = [
    {"type": "mode", "mode": "default"},
    _line(1, "user", "We deploy only from the branch main."),
    _line(
        2,
        "assistant",
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "abc"},
            {"type": "text", "text": "Noted."},
            {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls"}},
        ],
    ),
    _line(3, "user", [{"type": "tool_result", "tool_use_id": "a", "content": "x"}], toolUseResult={"stdout": "x"}),
    _line(4, "user", "<command-name>/clear</command-name>", isMeta=True),
    _line(5, "assistant", [{"type": "new_block", "value": [1, None]}]),
    {"type": "mode", "mode": "default"},
]


async def test_the_conformance_function_of_the_sdk_passes(tmp_path: Path) -> None:
    stores: list[RicordoSessionStore] = []

    async def make() -> RicordoSessionStore:
        stores.append(RicordoSessionStore(scope=ANN, memory=tmp_path / str(len(stores))))
        return await stores[-1].__aenter__()

    await run_session_store_conformance(make)
    for store in reversed(stores):
        await store.close()
        await store.__aexit__()
    assert len(stores) > 10


async def test_lines_are_loaded_as_they_were_appended_and_once_if_sent_again(tmp_path: Path) -> None:
    async with RicordoSessionStore(scope=ANN, memory=tmp_path) as store:
        await store.append(KEY, LINES)
    async with RicordoSessionStore(scope=ANN, memory=tmp_path) as store:
        assert await store.load(KEY) == LINES
        await store.append(KEY, LINES[1:4])
        assert await store.load(KEY) == LINES
        shown = await get_session_messages_from_store(store, SESSION, directory="/srv/shop")
        assert [each.type for each in shown][:2] == ["user", "assistant"]
    async with RicordoSessionStore(scope=BOB, memory=tmp_path) as other:
        assert await other.load(KEY) is None
        assert await other.list_sessions(KEY["project_key"]) == []
    with pytest.raises(MemoryClosed):
        await store.load(KEY)


async def test_what_was_said_is_learned_and_found_and_a_secret_is_not_stored(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    async with RicordoSessionStore(scope=ANN, memory=tmp_path) as store:
        await store.append(KEY, [*LINES, _line(8, "user", f"The token is {secret}.")])
        assert any("branch main" in each.content for each in await store.memory.entries())
        (hit, *_) = await store.memory.recall("From which branch do we deploy?")
        assert "main" in hit.entry.content
        assert secret not in str(await store.load(KEY))


async def test_keys_of_any_kind_are_told_apart(tmp_path: Path) -> None:
    keys: list[Any] = [
        {"project_key": "/srv/shop ü", "session_id": "a.b_c"},
        {"project_key": "/srv/shop ü", "session_id": "a.b_c", "subpath": "subagents/agent-ü.1_2"},
        {"project_key": "/srv/shop ü", "session_id": "a.b"},
        {"project_key": "x" * 300, "session_id": "a.b_c"},
    ]
    async with RicordoSessionStore(scope=ANN, memory=tmp_path) as store:
        for number, key in enumerate(keys):
            await store.append(key, [{"type": "mode", "n": number}])
        assert [await store.load(key) for key in keys] == [[{"type": "mode", "n": number}] for number in range(4)]
        listed = await store.list_sessions("/srv/shop ü")
        assert sorted(each["session_id"] for each in listed) == ["a.b", "a.b_c"]
        assert await store.list_subkeys(keys[0]) == ["subagents/agent-ü.1_2"]
        assert await store.list_subkeys(keys[2]) == []


async def test_claude_code_resumes_from_the_store_and_is_told_what_is_remembered(tmp_path: Path) -> None:
    with LoopbackServer(play) as server:
        async with RicordoSessionStore(scope=ANN, memory=tmp_path / "memory") as store:
            entry = await store.memory.remember("The spare key lies below the blue kettle.")
            session = await _ask(store, server, tmp_path / "first", "Where does the spare key lie?")
            assert "blue kettle" in str(server.requests[-1].body)
        async with RicordoSessionStore(scope=ANN, memory=tmp_path / "memory") as store:
            await store.memory.forget(entry.id)
            asked = len(server.requests)
            # another machine: nothing but the memory is there
            assert (
                await _ask(store, server, tmp_path / "second", "And what is my cat called?", resume=session) == session
            )
            resumed = [str(each.body) for each in server.requests[asked:] if "what is my cat called" in str(each.body)]
            assert resumed
            assert all("Where does the spare key lie?" in each for each in resumed)
            lines = await store.load({"project_key": project_key_for_directory(tmp_path), "session_id": session})
        assert "what is my cat called" in str(lines)


async def _ask(
    store: RicordoSessionStore, server: LoopbackServer, home: Path, text: str, *, resume: str | None = None
) -> str:
    home.mkdir()  # noqa: ASYNC240 - an empty folder
    options = ClaudeAgentOptions(
        session_store=store,
        hooks=store.hooks(),
        resume=resume,
        cwd=home.parent,
        model="claude-sonnet-5",
        env={
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "test-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )
    results = [each async for each in query(prompt=text, options=options) if isinstance(each, ResultMessage)]
    assert not results[-1].is_error
    return str(results[-1].session_id)


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    with LoopbackServer(play) as server:
        assert "I was sent" in run_page("claude-agent-sdk", server.url, tmp_path)


def test_the_example_resumes_its_session(tmp_path: Path) -> None:
    with LoopbackServer(lambda request: Say(f"Soup {len(request.messages)}.")) as server:
        assert run_example("claude_agent", server.url, tmp_path).startswith("Soup ")
        assert run_example("claude_agent", server.url, tmp_path, "And tomorrow?").startswith("Soup ")
        resumed = [str(each.body) for each in server.requests if "And tomorrow?" in str(each.body)]
    assert resumed
    assert "I never eat nuts." in resumed[-1]
