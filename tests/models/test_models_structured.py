"""An answer in a form is an object with its required keys, or an error."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reached_models import ASK, KEY, load_packages
from ricordo.curation.profile.reply import UPDATE_SCHEMA
from ricordo.errors import ReplyInvalid
from ricordo.messages import JsonValue
from ricordo.models import load_model
from ricordo.models.structured import parse_structured_answer
from ricordo.testing import LoopbackServer, Say

pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic|http):ResourceWarning")

FORM: dict[str, JsonValue] = {"type": "object", "required": ["a", "b"]}
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


@given(value=st.fixed_dictionaries({"a": _VALUES, "b": _VALUES}), fence=st.sampled_from(["{}", "```json\n{}\n```"]))
def test_an_object_comes_back_as_it_was_written(value: dict[str, JsonValue], fence: str) -> None:
    assert parse_structured_answer(fence.replace("{}", json.dumps(value), 1), FORM) == value


@pytest.mark.parametrize("text", ["", "yes", "[1]", "null", '"a"', '{"a": 1', 'Sure! {"a": 1, "b": 2}', "{} {}"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ReplyInvalid):
        parse_structured_answer(text, {})


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ReplyInvalid, match="lacks b"):
        parse_structured_answer('{"a": 1}', FORM)


@pytest.mark.parametrize("text", ["My key is hunter2.", "[1]", '{"a": "hunter2"}'])
def test_the_error_holds_what_was_said_and_does_not_show_it(text: str) -> None:
    with pytest.raises(ReplyInvalid) as caught:
        parse_structured_answer(text, FORM, cut_off=True)
    assert (caught.value.said, caught.value.cut_off) == (text, True)
    assert text not in f"{caught.value}{caught.value!r}"
    assert (ReplyInvalid().said, ReplyInvalid().cut_off) == ("", False)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name", ["anthropic:claude-haiku-4-5", "anthropic:claude-3-haiku", "openai:gpt-5", "openai-chat:x"]
)
async def test_the_form_of_memory_is_taken_by_every_protocol(name: str) -> None:
    keys = UPDATE_SCHEMA["required"]
    assert isinstance(keys, list)
    with LoopbackServer([Say(json.dumps({str(key): [] for key in keys}))], strict=True) as server:
        url = server.url if name.startswith("anthropic:") else f"{server.url}/v1"
        reply = await load_model(name, base_url=url, api_key=KEY).complete(ASK[1:], schema=UPDATE_SCHEMA)
    assert isinstance(reply.parsed, dict)
    assert "'null'" in str(server.requests[0].body), "what may be left out is still said"
