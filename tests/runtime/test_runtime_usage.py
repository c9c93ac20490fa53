"""What fills the window is told by section, the reminder of a request too, and the sections add up."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from message_strategies import messages
from ricordo.agent import build_reminder_message
from ricordo.cli.chat_window import format_usage
from ricordo.cli.json_output import context_usage_document
from ricordo.context.usage import ContextReport, build_context_report
from ricordo.messages import Message, Text, estimate_message, estimate_request

pytestmark = pytest.mark.req("CC-MANUAL")

SAID = (Message(role="user", parts=(Text(text="Where do we deploy from?"),)),)


def report(window: tuple[Message, ...], text: str, *, ratio: float = 1.0, limit: int | None = None) -> ContextReport:
    reminder = build_reminder_message(text) if text else None
    estimate = estimate_request(window, system="Be short.", reminder=reminder)
    return build_context_report(
        window, estimate, session="s", model="m", total=round(estimate.input * ratio), ratio=ratio, limit=limit
    )


def test_the_reminder_is_a_section_of_its_own_and_no_message() -> None:
    bare, reminded = report(SAID, ""), report(SAID, "You are planning.")
    assert bare.reminder == 0
    assert reminded.reminder == estimate_message(build_reminder_message("You are planning."))
    assert replace(reminded, reminder=0) == bare
    assert reminded.tokens == bare.tokens + reminded.reminder
    assert (reminded.messages, reminded.conversation) == (1, bare.conversation)


@examples(max_examples=30)
@given(
    window=st.lists(messages(), max_size=3).map(tuple),
    text=st.sampled_from(["", "You are planning.", "word " * 300]),
    ratio=st.sampled_from([0.25, 0.7, 1.0, 3.3]),
    limit=st.sampled_from([None, 100, 10_000]),
)
def test_with_a_reminder_the_sections_are_all_of_the_request(
    window: tuple[Message, ...], text: str, ratio: float, limit: int | None
) -> None:
    found = report(window, text, ratio=ratio, limit=limit)
    sections = dict(found.sections)
    room = sections.pop("reserve") + sections.pop("free")
    assert sum(sections.values()) == found.tokens
    assert found.excess_tokens or limit is None or found.tokens + room == limit
    assert (found.reminder > 0) is bool(text)


@pytest.mark.parametrize("limit", [None, 1_000])
def test_the_picture_and_the_document_show_it(limit: int | None) -> None:
    found = report(SAID, "You are planning. " * 20, limit=limit)
    _, bar, *rows = format_usage(found)
    (row,) = [row for row in rows if row.split()[:2] == ["R", "reminder"]]
    assert f" {found.reminder:,} tokens" in row
    assert "R" in bar
    sections = context_usage_document(found)["sections"]
    assert isinstance(sections, dict)
    assert sections["reminder"] == found.reminder > 0
    assert list(sections)[-4:] == ["injected", "reminder", "reserve", "free"]
