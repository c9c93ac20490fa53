"""The estimate without a tokenizer."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import any_text, messages
from ricordo.messages import (
    Media,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Unknown,
    estimate_message,
    estimate_request,
    estimate_text,
)
from ricordo.messages.tokens import RequestEstimate, load_token_counter

SAMPLES = Path(__file__).parent / "samples"

# Counted with the o200k_base vocabulary of quicktok-v1 0.4.0.
REFERENCE = {
    "chinese": 207,
    "code": 339,
    "digits": 793,
    "english": 197,
    "japanese": 275,
    "json": 336,
    "korean": 257,
    "mixed": 169,
}

# Counted likewise; code is as dense as its language, so each says something else about the estimate.
CODE_REFERENCE = {
    "code": 339,
    "code_c_macros": 215,
    "code_constants": 160,
    "code_haskell": 161,
    "code_java": 141,
    "code_perl": 194,
    "code_shell": 178,
    "code_sql": 194,
    "code_table": 260,
    "code_yaml": 121,
}


def _ratio(sample: str) -> float:
    reference = (REFERENCE | CODE_REFERENCE)[sample]
    return estimate_text((SAMPLES / f"{sample}.txt").read_text(encoding="utf-8")) / reference


@pytest.mark.req("AS-BUG-20")
def test_the_estimate_is_close_to_a_tokenizer_in_every_script() -> None:
    for sample in ("chinese", "japanese", "korean"):
        assert 0.75 <= _ratio(sample) <= 1.25, sample
    for sample in ("english", "digits", *CODE_REFERENCE):
        assert _ratio(sample) >= 0.75, sample


@pytest.mark.req("AS-BUG-20")
def test_every_sample_of_code_has_a_reference() -> None:
    assert {path.stem for path in SAMPLES.glob("code*.txt")} == set(CODE_REFERENCE)


@pytest.mark.req("AS-BUG-20")
@pytest.mark.parametrize("sample", sorted(REFERENCE | CODE_REFERENCE))
def test_the_references_are_what_the_tokenizer_of_the_extra_counts(sample: str) -> None:
    pytest.importorskip("quicktok")
    text = (SAMPLES / f"{sample}.txt").read_text(encoding="utf-8")
    assert load_token_counter().count(text) == (REFERENCE | CODE_REFERENCE)[sample]


@pytest.mark.req("AS-BUG-20")
@pytest.mark.parametrize("sample", sorted(REFERENCE))
def test_no_sample_is_off_by_more_than_a_fifth(sample: str) -> None:
    assert 0.8 <= _ratio(sample) <= 1.2


@pytest.mark.req("AS-BUG-20")
@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("Привет, как дела сегодня?", 7),
        ("مرحبا كيف حالك", 5),
        ("नमस्ते आप कैसे हैं", 7),
        ("😀😀👨\u200d👩\u200d👧", 10),
        ("dGhpcyBpcyBhIGJhc2U2NCB0ZXh0IGZvciB0ZXN0aW5n", 31),
        ("550e8400-e29b-41d4-a716-446655440000", 18),
        ("31415926535897932384626433832795028841971693993751058209749445923078164062862089", 27),
        ("1 2 3 4 5 6 7 8 9 0 1 2 3 4 5", 29),
    ],
)
def test_other_scripts_emoji_random_ids_and_digits_are_not_underestimated(text: str, reference: int) -> None:
    assert 0.75 * reference <= estimate_text(text) <= 2 * reference


def test_an_empty_text_has_no_tokens() -> None:
    assert estimate_text("") == 0


@given(any_text().filter(bool))
def test_every_other_text_has_at_least_one(text: str) -> None:
    assert estimate_text(text) >= 1


@pytest.mark.req("AS-BUG-20")
@given(any_text(), any_text())
def test_two_texts_together_take_about_what_they_take_apart(first: str, second: str) -> None:
    together, apart = estimate_text(first + second), estimate_text(first) + estimate_text(second)
    assert together <= apart + 2
    assert together >= apart - 6


@pytest.mark.req("AS-BUG-21", "AS-BUG-20")
@given(messages())
def test_every_message_has_an_estimate_that_covers_its_text(message: Message) -> None:
    assert estimate_message(message) >= 4 + sum(estimate_text(p.text) for p in message.parts if isinstance(p, Text))


@pytest.mark.req("AS-BUG-21")
def test_every_part_of_a_message_counts() -> None:
    empty = estimate_message(Message(role="assistant"))
    words = "seven words that are said right here"
    for part in (
        Text(text=words),
        Thinking(text=words),
        Unknown(kind="x", raw=words),
        ToolCall(id="c", name="ls", arguments=words),
        ToolCall(id="c", name=words),
        ToolResult(call_id="c", parts=(Text(text=words),)),
        Media(media_type="image/png", uri="x"),
    ):
        assert estimate_message(Message(role="assistant", parts=(part,))) >= empty + 7, part


@pytest.mark.req("AS-BUG-21")
def test_every_part_of_a_request_counts() -> None:
    tool = ToolSpec(name="search", description="find a file", parameters={"type": "object", "properties": {}})
    said = Message(role="user", parts=(Text(text="Where is it?"),))
    reminder = Message(role="user", parts=(Text(text="You are planning."),))
    full = estimate_request(
        [said], system="You help.", memory="Maria likes tea.", tools=[tool], reminder=reminder, reserved_output=500
    )
    assert full.system > 0
    assert full.memory > 0
    assert full.tools > estimate_text("find a file")
    assert full.messages == estimate_message(said)
    assert full.reserved == 500
    assert full.reminder == estimate_message(reminder)
    assert full.input == full.system + full.memory + full.tools + full.messages + full.reminder
    assert full.total == full.input + 500


@pytest.mark.req("AS-BUG-21")
def test_an_empty_request_takes_nothing() -> None:
    assert estimate_request([]) == RequestEstimate()
    assert estimate_request([]).total == 0


@pytest.mark.req("AS-BUG-21")
@given(st.lists(messages(), max_size=4))
def test_the_messages_of_a_request_take_what_they_take_one_by_one(history: list[Message]) -> None:
    assert estimate_request(history).total == sum(map(estimate_message, history))
