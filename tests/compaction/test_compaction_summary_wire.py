"""Summaries and lessons over the wire, in the way each provider answers in a form."""

import pytest

from reached_models import MODELS, NOW, load_packages, reach, serving
from ricordo.context import ModelSummarizer
from ricordo.messages import dumps
from ricordo.testing import Say
from scripted_summaries import SUMMARY, both, ids, noted, talk

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C4")]


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    load_packages()


@pytest.mark.req("AS-BUG-01", "AS-COMPACT-13", "AS-COMPACT-05")
@pytest.mark.parametrize("name", MODELS)
async def test_over_the_wire_either_part_is_used_and_nothing_is_asked_for_twice(name: str) -> None:
    messages = talk(4)
    lesson = noted("Message number 0 says")
    for answer, summary, lessons in (
        (both(SUMMARY, lesson), SUMMARY, 1),
        (SUMMARY, SUMMARY, 0),
        (dumps({"lessons": [lesson]}), SUMMARY, 1),
    ):
        with serving([Say(answer), *([Say(SUMMARY)] if "summary" not in answer.lower() else [])]) as server:
            written = ModelSummarizer(reach(server, name, retry=NOW))
            found = await written(messages, limit_tokens=400, pending=ids(messages))
            assert (found.text, len(found.lessons or ())) == (summary, lessons)
            assert len(server.requests) == (1 if "summary" in answer.lower() else 2)
    with serving([Say(SUMMARY[:-9], stop="length"), Say(SUMMARY)]) as server:
        found = await ModelSummarizer(reach(server, name, retry=NOW))(messages, limit_tokens=400, pending=ids(messages))
        assert (found.text, len(server.requests)) == (SUMMARY, 2)
        assert "it was cut off" in server.requests[1].messages[-1].text
