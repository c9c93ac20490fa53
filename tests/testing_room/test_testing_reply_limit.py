"""A scripted model keeps to the length of replies that it is told, as a provider does."""

import pytest

from ricordo.errors import ReplyInvalid
from ricordo.messages import JsonValue, Message, Text, Usage
from ricordo.models import limit_replies
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = pytest.mark.anyio

ASK = [Message(role="user", parts=(Text(text="What was said?"),))]
LONG = "One two three. " * 100


async def test_a_reply_that_is_too_long_is_cut_off_and_says_so() -> None:
    model = ScriptedModel([Say(LONG), Say(LONG), Say("Short.")])
    cut = await limit_replies(model, 50).complete(ASK)
    whole = await model.complete(ASK)
    short = await limit_replies(model, 50).complete(ASK)
    assert LONG.startswith(cut.message.text)
    assert (cut.stop, whole.stop, short.stop) == ("length", "end", "end")
    assert 30 < cut.usage.output <= 50
    assert (whole.message.text, short.message.text) == (LONG, "Short.")
    assert [request.reply_limit for request in model.requests] == [50, None, 50]


async def test_calls_and_replies_with_a_usage_of_their_own_are_whole() -> None:
    model = limit_replies(ScriptedModel([Call("look", {"at": LONG}), Say(LONG, usage=Usage(input=1, output=900))]), 50)
    assert (await model.complete(ASK)).message.tool_calls[0].name == "look"
    assert (await model.complete(ASK)).message.text == LONG


async def test_an_answer_in_a_form_that_is_cut_off_is_none() -> None:
    form: dict[str, JsonValue] = {"type": "object", "properties": {"said": {"type": "string"}}}
    model = limit_replies(ScriptedModel([Say('{"said": "' + LONG + '"}')]), 50)
    with pytest.raises(ReplyInvalid):
        await model.complete(ASK, schema=form)
