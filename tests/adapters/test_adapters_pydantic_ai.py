"""pydantic-ai over Ricordo, with a scripted model over the wire."""

from pathlib import Path

import pytest

from framework_conformance import FrameworkConformance, check_example, is_installed, play, run_page
from ricordo import Scope
from ricordo.testing import LoopbackServer, Say

if not is_installed("pydantic_ai"):
    pytest.skip("pydantic-ai is not installed: make test-adapters installs it", allow_module_level=True)

from pydantic_ai import ModelMessagesTypeAdapter

from pydantic_ai_driver import PydanticAI, RicordoCapability, create

pytestmark = [pytest.mark.adapters, pytest.mark.anyio]
SCOPE = Scope(project="shop", user="ann")


class TestConformance(FrameworkConformance):
    """What every adapter withstands."""

    framework = PydanticAI


def test_an_agent_that_blocks_remembers(tmp_path: Path) -> None:
    with LoopbackServer(play) as server:
        with RicordoCapability("s1", scope=SCOPE, memory=tmp_path) as memory:
            assert create(server.url, memory).run_sync("Turn 1: add 1 and 1").output == "Sums: 2, 3"
        with RicordoCapability("s1", scope=SCOPE, memory=tmp_path) as memory:
            create(server.url, memory).run_sync("What was the first?")
        assert "Turn 1" in str(server.requests[-1].body)
        assert server.problems == ()


async def test_a_history_that_the_program_keeps_doubles_nothing(tmp_path: Path) -> None:
    kept = b"[]"
    with LoopbackServer([Say("One."), Say("Two."), Say("Three.")]) as server:
        for text in ("First", "Second", "Third"):
            # each turn is a program of its own, with a history that it kept as JSON
            async with RicordoCapability("s1", scope=SCOPE, memory=tmp_path) as memory:
                agent = create(server.url, memory, system_prompt="Be brief.")
                history = ModelMessagesTypeAdapter.validate_json(kept)
                kept = (await agent.run(text, message_history=history)).all_messages_json()
                opened = (await memory.conversation.agent()).memory
                assert opened is not None
                recorded = (await opened.session("s1")).messages
        assert [each.text for each in recorded] == ["First", "One.", "Second", "Two.", "Third", "Three."]
        spoken = [each.text for each in server.requests[-1].messages if each.role != "system"]
        assert spoken == ["First", "One.", "Second", "Two.", "Third"]
        assert "Be brief." in str(server.requests[-1].body)


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    with LoopbackServer(play) as server:
        assert "I was sent" in run_page("pydantic-ai", server.url, tmp_path)
        assert server.problems == ()


def test_the_example_remembers_from_run_to_run(tmp_path: Path) -> None:
    check_example("pydantic_ai_agent", tmp_path)
