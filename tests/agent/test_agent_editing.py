"""What a person does to a window: look at the next request, take a message out, word one otherwise, and undo it."""

from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, is_valid, said, settings, transcript
from reached_models import KEY, load_packages
from ricordo import HarnessAgent
from ricordo.agent import tool
from ricordo.errors import InvalidMessage, InvalidSetting, MessageNotFound
from ricordo.models import ChatModel, load_model
from ricordo.testing import Call, LoopbackServer, Say, ScriptedModel

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic|http):ResourceWarning"),
]


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


@tool
def look() -> str:
    """Look."""
    return "It rains."


def agent(model: ChatModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "tools": [look]} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


@pytest.mark.parametrize("name", ["openai-chat:gpt-4o", "openai:gpt-4o", "anthropic:claude-sonnet-5"])
async def test_the_next_request_is_shown_just_as_it_is_sent_and_is_not_sent(tmp_path: Path, name: str) -> None:
    with LoopbackServer([Call("look"), Say("It rains."), Say("Yes.")], strict=True) as server:
        url = server.url if name.startswith("anthropic:") else f"{server.url}/v1"
        temperature = None if name.startswith("anthropic:") else 0.5
        model = load_model(name, base_url=url, api_key=KEY, temperature=temperature, reply_tokens=700)
        async with agent(model, tmp_path) as one:
            await one.send("Look.")
            before = one.window
            shown = await one.preview_request("And tomorrow?")
            assert len(server.requests) == 2
            assert one.window == before
            await one.send("And tomorrow?")
    assert shown.body is not None
    assert shown.body.body == server.requests[-1].body
    assert server.requests[-1].path in shown.body.url
    assert shown.messages[-1].text == "And tomorrow?"
    assert KEY not in str(shown)
    assert temperature in {None, *(each for each in shown.body.body.values() if isinstance(each, float))}
    assert 700 in shown.body.body.values()


async def test_a_model_that_has_no_such_form_shows_its_messages(tmp_path: Path) -> None:
    async with agent(ScriptedModel([]), tmp_path) as one:
        shown = await one.preview_request("Hello?")
        assert shown.body is None
        assert [message.role for message in shown.messages] == ["system", "user"]
        assert "look" in [each.name for each in shown.tools]
        with pytest.raises(InvalidMessage):
            await one.preview_request(" ")


@pytest.mark.req("CC-UNDO")
@pytest.mark.parametrize("place", [0, 1, 3, 5], ids=["the first", "a call", "a reply", "the last"])
async def test_a_message_is_taken_out_with_what_belongs_to_it_and_comes_back(tmp_path: Path, place: int) -> None:
    model = ScriptedModel([Call("look"), Say("It rains."), Say("Still."), Say("Yes.")])
    async with agent(model, tmp_path) as one:
        await one.send("Look.")
        await one.send("And now?")
        before = one.window
        made = await one.compactions.remove(before[place].id)
        assert before[place].id not in [message.id for message in one.window]
        assert is_valid(one.window)
        assert len(one.window) == len(before) - made.messages
        assert before[place].id in {each.id for each in await one.compactions.expand(made.handle)}
    async with agent(model, tmp_path) as one:
        await one.send("And later?")
        assert before[place].id not in [message.id for message in model.requests[-1].messages]
        await one.compactions.undo(made.handle)
        assert one.window[: len(before)] == before
        assert [message.text for message in one.window[len(before) :]] == ["And later?", "Yes."]
    assert len(await transcript(tmp_path)) == len(before) + 2, "what was said stays recorded"


@pytest.mark.req("CC-UNDO")
async def test_a_message_is_worded_otherwise_and_the_old_words_come_back(tmp_path: Path) -> None:
    model = ScriptedModel([Say("Fine."), Say("Done."), Say("Yes.")])
    async with agent(model, tmp_path) as one:
        await one.send("We deploy from trunk.")
        await one.send("Go on.")
        first = one.window[0]
        await one.compactions.edit(first.id, "We deploy from main.")
        await one.send("Where from?")
        assert model.requests[-1].messages[1].text == "We deploy from main."
        assert len(one.window) == 6
        await one.compactions.undo()
        assert one.window[0] == first
        assert len(one.window) == 6
        with pytest.raises(InvalidMessage, match="remove"):
            await one.compactions.edit(first.id, " ")
        for change in (
            one.compactions.remove("nothing"),
            one.compactions.edit("nothing", "x"),
            one.compactions.remove(""),
        ):
            with pytest.raises(MessageNotFound):
                await change
    assert (await transcript(tmp_path))[0].text == "We deploy from trunk."


async def test_the_last_message_is_taken_out_of_a_session_in_memory(tmp_path: Path) -> None:
    async with agent(ScriptedModel([Say("Yes.")]), tmp_path, incognito=True) as one:
        await one.record([said("One."), said("Two.")])
        before = one.window
        await one.compactions.remove(before[-1].id)
        assert [message.text for message in one.window] == ["One."]
        await one.compactions.undo()
        assert one.window == before


def test_options_of_a_model_that_nothing_can_keep_are_refused() -> None:
    for options in ({"reply_tokens": 0}, {"temperature": -1.0}, {"thinking": "very"}):
        with pytest.raises(InvalidSetting):
            load_model("openai-chat:x", api_key=KEY, **options)
