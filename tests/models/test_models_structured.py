"""An answer in a form is an object with its required keys, or an error."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import ReplyInvalid
from ricordo.messages import JsonValue
from ricordo.models.structured import parse_answer

FORM: dict[str, JsonValue] = {"type": "object", "required": ["a", "b"]}
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(value=st.fixed_dictionaries({"a": _VALUES, "b": _VALUES}), fence=st.sampled_from(["{}", "```json\n{}\n```"]))
def test_an_object_comes_back_as_it_was_written(value: dict[str, JsonValue], fence: str) -> None:
    assert parse_answer(fence.replace("{}", json.dumps(value), 1), FORM) == value


@pytest.mark.parametrize("text", ["", "yes", "[1]", "null", '"a"', '{"a": 1', 'Sure! {"a": 1, "b": 2}', "{} {}"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ReplyInvalid):
        parse_answer(text, {})


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ReplyInvalid, match="lacks b"):
        parse_answer('{"a": 1}', FORM)


@pytest.mark.parametrize("text", ["My key is hunter2.", "[1]", '{"a": "hunter2"}'])
def test_the_error_holds_what_was_said_and_does_not_show_it(text: str) -> None:
    with pytest.raises(ReplyInvalid) as caught:
        parse_answer(text, FORM, cut_off=True)
    assert (caught.value.said, caught.value.cut_off) == (text, True)
    assert text not in f"{caught.value}{caught.value!r}"
    assert (ReplyInvalid().said, ReplyInvalid().cut_off) == ("", False)
