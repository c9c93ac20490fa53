"""What compaction shortens is cut beside its secrets: a half of one would not be known as one when it is written."""

import json

import pytest

from ricordo import TruncateArgsConfig
from ricordo.context.strategies.truncate import clip_arguments, shorten_messages
from ricordo.guard import Redactor
from ricordo.messages import Message, Text, ToolCall, ToolResult

pytestmark = pytest.mark.req("FC-SECRET")

REDACTOR = Redactor(bytes(32))
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.mark.req("AS-BUG-04", "AS-EVICT-02")
@pytest.mark.parametrize("at", range(0, 1_400, 35))
def test_no_half_of_a_secret_is_left_wherever_a_long_text_is_cut(at: int) -> None:
    text = " ".join([*["word"] * at, TOKEN, *["word"] * (1_400 - at)])
    call = ToolCall(id="c1", name="run", arguments=json.dumps({"text": text}))
    messages = [
        Message(role="user", id="m1", parts=(Text(text=text),)),
        Message(role="assistant", id="m2", parts=(call,)),
        Message(role="tool", id="m3", parts=(ToolResult(call_id="c1", parts=(Text(text=text),)),)),
    ]
    for room in (3_000, 900, 100):
        shown = REDACTOR.clean(repr(shorten_messages(messages, room, ratio=1.0)))
        assert TOKEN[:9] not in shown
        assert TOKEN[-9:] not in shown


@pytest.mark.req("AS-TRUNC-02")
@pytest.mark.parametrize("kept", range(1, 60))
def test_no_half_of_a_secret_is_left_in_clipped_arguments(kept: int) -> None:
    config = TruncateArgsConfig(max_arg_length=100, kept_chars=kept)
    clipped = clip_arguments(json.dumps({"text": f"push {TOKEN} {'long ' * 100}"}), config)
    assert clipped.endswith(f'{config.truncation_text}"}}')
    assert TOKEN[:9] not in REDACTOR.clean(clipped)
