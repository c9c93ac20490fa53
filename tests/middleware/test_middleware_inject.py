"""The system prompt of a session is made once, and stays the same bytes until somebody asks for a new one."""

from dataclasses import replace

import pytest

from fake_models import reply
from ricordo.agent import ModelRequest, ModelResponse, Turn
from ricordo.agent.memory_middleware import SystemPromptMiddleware
from ricordo.errors import StorageFailed
from ricordo.scope import Scope

pytestmark = pytest.mark.anyio

MINE, OTHERS = Scope(user="me"), Scope(user="other")


def request(scope: Scope = MINE, session: str = "s1", step: int = 1) -> ModelRequest:
    turn = Turn(scope=scope, agent="main", session=session, messages=())
    return ModelRequest(turn=turn, system="base", window=(), step=step)


class Sent:
    """Notes the system prompts that are sent."""

    def __init__(self) -> None:
        self.systems: list[str] = []

    async def __call__(self, request: ModelRequest) -> ModelResponse:
        self.systems.append(request.system)
        return ModelResponse(reply=reply("ok"), window=request.window)


@pytest.mark.req("AS-CURATED-03", "AS-BUG-23")
async def test_the_prompt_is_made_from_the_first_request_and_kept_for_the_session() -> None:
    made: list[ModelRequest] = []

    async def make(first: ModelRequest) -> str:
        made.append(first)
        return f"{first.system} and memory {len(made)}"

    sent, inject = Sent(), SystemPromptMiddleware(make)
    for step in (1, 2, 3):
        await inject(request(step=step), sent)
    assert sent.systems == ["base and memory 1"] * 3
    assert [first.step for first in made] == [1]


@pytest.mark.req("AS-CURATED-03")
async def test_a_refresh_opens_a_new_prefix_for_the_session_that_is_named() -> None:
    count = 0

    async def make(_first: ModelRequest) -> str:
        nonlocal count
        count += 1
        return str(count)

    sent, inject = Sent(), SystemPromptMiddleware(make)
    await inject(request(), sent)
    await inject(request(session="s2"), sent)
    inject.invalidate("s1")
    await inject(request(), sent)
    await inject(request(session="s2"), sent)
    inject.invalidate()
    await inject(request(session="s2"), sent)
    assert sent.systems == ["1", "2", "3", "2", "4"]


@pytest.mark.req("AS-CURATED-03")
async def test_no_scope_is_sent_the_memory_of_another_one() -> None:
    async def make(first: ModelRequest) -> str:
        return str(first.turn.scope)

    sent, inject = Sent(), SystemPromptMiddleware(make)
    await inject(request(MINE), sent)
    await inject(request(OTHERS), sent)
    await inject(replace(request(MINE), turn=replace(request(MINE).turn, agent="helper")), sent)
    assert sent.systems == ["user=me", "user=other", "user=me"]


@pytest.mark.req("AS-CURATED-03", "AS-BUG-23")
async def test_a_prompt_that_could_not_be_made_is_tried_again() -> None:
    tries = 0

    async def make(_first: ModelRequest) -> str:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise StorageFailed
        return "made"

    sent, inject = Sent(), SystemPromptMiddleware(make)
    with pytest.raises(StorageFailed):
        await inject(request(), sent)
    await inject(request(), sent)
    assert sent.systems == ["made"]
