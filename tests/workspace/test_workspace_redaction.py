"""The way to disk: a secret stands in no field of a message, however it is dressed."""

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.guard import Redactor
from ricordo.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown, encode_message
from ricordo.workspace.redaction import redact_message

pytestmark = pytest.mark.req("FC-SECRET")

SECRET = "AKIA" + "Q7ZP4MX2WT6RB3KD"
PASSWORD = "hunter2" + "XyZ99"
KEY = Redactor(bytes(32))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "part",
    [
        Media(media_type="image/png", uri="file:///a", name=f"{SECRET}.png"),
        Media(media_type=SECRET, uri="file:///a"),
        Media(media_type="text/plain", uri=f"data:text/plain,{SECRET}"),
        Media(media_type="text/plain", uri=f"DATA:text/plain,{SECRET}"),
        Media(media_type="text/plain", uri=f"data:,{quote(f'password: {PASSWORD}')}"),
        Media(media_type="image/svg+xml", uri=f"data:image/svg+xml,{SECRET}"),
        Media(media_type="text/plain", uri=f"data:text/plain;name={SECRET};base64,{b64('x')}"),
        Unknown(kind=SECRET, raw="{}"),
        Thinking(text="a", signature=SECRET),
        ToolCall(id="c", name=SECRET),
        ToolResult(call_id="c", parts=(Media(media_type="a/b", uri="x", name=SECRET),)),
    ],
    ids=lambda part: repr(part)[:70],
)
def test_a_secret_in_any_field_leaves_the_message(part: Part) -> None:
    line = encode_message(redact_message(Message(role="assistant", parts=(part,)), KEY)).decode()
    assert SECRET not in line
    assert PASSWORD not in line
    # the seal of a thought is left out: with a mark in it, it would be none
    assert "[secret:" in line or quote("[secret:") in line or (isinstance(part, Thinking) and "signature" not in line)


@pytest.mark.parametrize("kind", ["text/plain", "application/json", ""])
def test_a_text_in_base64_is_cleaned_and_stays_base64(kind: str) -> None:
    uri = f"data:{kind};base64,{b64(f'my key is {SECRET} ok')}"
    [part] = redact_message(Message(role="user", parts=(Media(media_type=kind, uri=uri),)), KEY).parts
    assert isinstance(part, Media)
    head, _, body = part.uri.partition(",")
    assert head == f"data:{kind};base64"
    said = base64.b64decode(body).decode()
    assert said.startswith("my key is [secret:")
    assert said.endswith("] ok")


@pytest.mark.parametrize(
    "part",
    [
        Media(media_type="image/png", uri="data:image/png;base64,iVBORw0KGgo=", name="a.png", description="x"),
        Media(media_type="text/plain", uri="data:text/plain,plain%20words"),
        Media(media_type="text/plain", uri=f"data:text/plain;base64,{b64('plain')}"),
        Media(media_type="text/plain", uri="data:text/plain;base64,%%%not-base64"),
        Thinking(text="a", signature="EqQBCkYIARgCIkB3Zm9v" * 4),
    ],
)
def test_what_holds_no_secret_stays_as_it_is(part: Part) -> None:
    message = Message(role="user", id="m1", parts=(part,))
    assert redact_message(message, KEY) == message


@pytest.mark.parametrize(("name", "lead"), [("The password is:", ""), ("The password", "is: ")])
def test_a_secret_whose_name_stands_in_the_part_before_is_marked_where_it_stands(name: str, lead: str) -> None:
    told = (Text(text=name), Unknown(kind="x", raw="{}"), Text(text=lead + PASSWORD), Text(text="Bye."))
    first, _, second, third = redact_message(Message(role="user", parts=told), KEY).parts
    assert (first, third) == (told[0], told[3])
    assert isinstance(second, Text)
    assert second.text.startswith(f"{lead}[secret:")
    result = ToolResult(call_id="c", parts=(Text(text=name), Text(text=lead + PASSWORD)))
    assert PASSWORD not in repr(redact_message(Message(role="tool", parts=(result,)), KEY))


def test_a_key_that_is_cut_over_three_parts_leaves_all_of_them() -> None:
    kind = "RSA PRIVATE " + "KEY"
    lines = [b64(f"{number:048}") for number in range(8)]
    told = ["\n".join([f"Ours:\n-----BEGIN {kind}-----", *lines[:3]]), "\n".join(lines[3:6])]
    told.append("\n".join([*lines[6:], f"-----END {kind}-----\nthat is all"]))
    message = Message(role="user", parts=tuple(Text(text=text) for text in told))
    shown = redact_message(message, KEY).text
    assert not any(line in shown for line in lines)
    assert shown.startswith("Ours:\n[secret:")
    assert shown.endswith("that is all")


PIECES = st.sampled_from(
    ["password", "is:", "=", PASSWORD, SECRET, "token", "\n", '"', "x", " ", "[secret:a:00000000]"]
)


@given(st.lists(st.lists(PIECES, max_size=5).map(" ".join), max_size=5))
def test_whatever_is_said_in_parts_is_clean_as_a_whole_and_stays_so(texts: list[str]) -> None:
    message = Message(role="user", parts=tuple(Text(text=text) for text in texts))
    once = redact_message(message, KEY)
    assert KEY.clean(once.text) == once.text
    assert len(once.parts) == len(texts)
    assert redact_message(once, KEY) == once
