"""A configuration of the flush that exists can be carried out."""

from typing import Any

import pytest

from ricordo import FlushConfig
from ricordo.errors import InvalidSetting
from ricordo.extraction.config import ALWAYS, NEVER, throttle_trigger


@pytest.mark.req("AS-FLUSH-05")
def test_a_flush_is_on_by_default_and_never_is_off() -> None:
    assert (FlushConfig().flush_trigger, FlushConfig().is_enabled, FlushConfig().min_gap) == (ALWAYS, True, 0.0)
    assert not FlushConfig(flush_trigger=NEVER).is_enabled


@pytest.mark.req("AS-FLUSH-05")
def test_a_gap_of_nothing_is_always() -> None:
    assert throttle_trigger(0) == throttle_trigger(0.0) == ALWAYS
    assert FlushConfig(flush_trigger="throttled(0)") == FlushConfig()
    assert FlushConfig(flush_trigger="throttled(0.0)").flush_trigger == ALWAYS


@pytest.mark.req("AS-FLUSH-05")
@pytest.mark.parametrize("seconds", [1, 90, 0.5, 86_400])
def test_a_gap_is_read_back_as_it_was_given(seconds: float) -> None:
    config = FlushConfig(flush_trigger=throttle_trigger(seconds))
    assert (config.min_gap, config.is_enabled) == (seconds, True)


@pytest.mark.req("AS-FLUSH-05", "AS-CFG-01")
@pytest.mark.parametrize("gap", [None, -1, -0.1, float("nan"), float("inf"), "60", True])
def test_no_gap_and_a_negative_one_are_refused(gap: Any) -> None:
    with pytest.raises(InvalidSetting, match="gap"):
        throttle_trigger(gap)


@pytest.mark.req("AS-FLUSH-05", "AS-CFG-01")
@pytest.mark.parametrize("prompt", ["Note {messages}", "{memory} {ledger} {messages}", 'Say {"a": 1} of {messages}'])
def test_a_prompt_needs_a_place_for_the_messages(prompt: str) -> None:
    assert FlushConfig(flush_prompt=prompt).has_own_request
    with pytest.raises(InvalidSetting, match="flush_prompt holds"):
        FlushConfig(flush_prompt=prompt.replace("{messages}", "them"))


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"flush_trigger": "sometimes"}, "flush_trigger"),
        ({"flush_trigger": "throttled(-5)"}, "flush_trigger"),
        ({"flush_trigger": "throttled()"}, "flush_trigger"),
        ({"flush_trigger": None}, "flush_trigger"),
        ({"flush_prompt": "{messages} by {speaker}"}, "speaker"),
        ({"flush_prompt": " "}, "flush_prompt"),
        ({"flush_prompt": "{messages}" + "word " * 9_000}, "half of max_input_tokens"),
        ({"model": " "}, "model"),
        ({"reference": "yesterday"}, "reference"),
        ({"max_input_tokens": 1_499}, "max_input_tokens"),
        ({"max_input_tokens": 9e9}, "max_input_tokens"),
        ({"head_tail": -1}, "head_tail"),
        ({"attempts": 0}, "attempts"),
        ({"attempts": 5}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"flush_seconds": 0}, "flush_seconds"),
        ({"flush_seconds": None}, "flush_seconds"),
        ({"closing_seconds": -1}, "closing_seconds"),
    ],
)
def test_what_can_not_be_carried_out_is_refused_by_name(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidSetting, match=told):
        FlushConfig(**given)
