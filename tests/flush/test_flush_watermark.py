"""The watermark of extraction: how far each session was read, kept across processes and of bounded size."""

import pytest

from noting_models import NotingDesk, lessons, note
from ricordo.errors import ModelUnavailable
from ricordo.testing import Fail, Say, ScriptedModel
from ricordo.workspace import cursor_path, transcript_path

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-C22")]

DEPLOY = note("The team deploys only from main.", "deploy only from main")
TEA = note("The user prefers tea.", "prefer tea")


@pytest.mark.req("DF-C22", "AS-BUG-13")
async def test_only_what_follows_the_last_extracted_message_is_fed_and_only_success_moves_the_mark() -> None:
    model = ScriptedModel([Say(lessons(DEPLOY)), Fail(503), Say(lessons(TEA)), Say(lessons(DEPLOY))])
    await (desk := NotingDesk(model)).say("We deploy only from main.")
    await desk.flush()
    await desk.say("I prefer tea.", session="s")
    with pytest.raises(ModelUnavailable):
        await desk.flush()
    again = NotingDesk(model, files=desk.files)
    assert (await again.flush()).messages == 1
    fed = model.requests[-1].messages[-1].text.rpartition('kind="new"')[2].partition("</")[0]
    assert "I prefer tea." in fed
    assert "deploy" not in fed
    # the message that the mark names is gone: everything that is there is fed
    await desk.files.delete(transcript_path("main", "s"))
    await desk.say("We never push on Fridays.", "All of us deploy only from main.")
    assert (await again.flush()).messages == 2
    assert (await again.flush()).messages == 0
    assert len(model.requests) == 4


@pytest.mark.req("DF-C22")
async def test_the_mark_does_not_grow_with_the_session() -> None:
    desk, sizes = NotingDesk(), []
    for _ in range(3):
        for _ in range(5):
            await desk.say(*(f"Number {number} is in the list." for number in range(60)))
            await desk.flush()
        sizes.append(len((await desk.files.read(cursor_path("main", "s"))).data))
    assert max(sizes) < 20_000
    assert sizes[2] - sizes[1] <= 16
