"""What the user's words do reaches the prompt of an update as a hint, and nothing else does."""

import json

import pytest

from fake_models import FakeModel, reply
from hand_clock import HandClock
from ricordo.curation import InMemoryProfileStore, ProfileUpdater
from ricordo.extraction import process_messages
from ricordo.messages import Message, Text

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-C11")]


NOTHING = json.dumps({"user": {}, "history": {}, "newFacts": []})


def talk(text: str) -> list[Message]:
    return [
        Message(role="user", id="m1", parts=(Text(text="Write the list, please."),)),
        Message(role="assistant", id="m2", parts=(Text(text="Here is the list."),)),
        Message(role="user", id="m3", parts=(Text(text=text),)),
        Message(role="assistant", id="m4", parts=(Text(text="All right."),)),
    ]


async def hints(text: str) -> list[str]:
    """Return the hints that an update of such a conversation is asked with."""
    read = process_messages(talk(text))
    model, clock = FakeModel(reply(NOTHING)), HandClock()
    updater = ProfileUpdater(InMemoryProfileStore(clock), model, clock=clock)
    await updater.update(read.messages, signals=read.signals)
    asked = "\n".join(message.text for message in model.asked[0])
    return [line for line in asked.splitlines() if line.startswith("Hint: ")]


@pytest.mark.req("DF-SIGNAL", "DF-C10", "DF-C15")
@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("That's wrong, I asked for tabs.", "correction"),
        ("不对，你理解错了。", "correction"),
        ("Perfect, that's exactly what I wanted.", "reinforcement"),
        ("完全正确，继续保持。", "reinforcement"),
    ],
)
async def test_a_correction_and_praise_are_hinted_at_in_english_and_chinese(text: str, signal: str) -> None:
    assert process_messages(talk(text)).signals == {signal}
    assert len(await hints(text)) == 1
    assert await hints(text) != await hints("Sort it by date.")


@pytest.mark.req("DF-SIGNAL", "DF-C15")
async def test_both_are_hinted_at_side_by_side_and_without_a_signal_nothing_is() -> None:
    correction, praise = await hints("That's wrong, I asked for tabs."), await hints("Exactly right, keep doing that.")
    assert correction != praise
    both = await hints("That's wrong, I asked for tabs. The headings are exactly right, keep doing that.")
    assert sorted(both) == sorted([*correction, *praise])
    assert await hints("Sort it by date.") == []
