"""Every failure of a script reaches the client as the provider's own failure does."""

import json
import typing
from collections.abc import Callable

import anthropic
import httpx2
import openai
import pytest

from ricordo.testing import (
    Fail,
    Garbage,
    HalfStream,
    Hang,
    LoopbackServer,
    OverflowShape,
    Say,
    ScriptItem,
    overflow,
    overloaded_error,
    rate_limit_error,
    server_error,
)

SHAPES = typing.get_args(OverflowShape)
ANTHROPIC_SHAPES = ("anthropic", "anthropic-bytes")


def _chat(server: LoopbackServer, *, stream: bool = False, timeout: float = 10) -> object:
    with openai.OpenAI(base_url=server.url, api_key="key", max_retries=0, timeout=timeout) as client:
        if stream:
            return list(
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
            )
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])


def _responses(server: LoopbackServer, *, stream: bool = False, timeout: float = 10) -> object:
    with openai.OpenAI(base_url=server.url, api_key="key", max_retries=0, timeout=timeout) as client:
        if stream:
            return list(client.responses.create(model="m", input="hi", stream=True))
        return client.responses.create(model="m", input="hi")


def _messages(server: LoopbackServer, *, stream: bool = False, timeout: float = 10) -> object:
    with anthropic.Anthropic(base_url=server.url, api_key="key", max_retries=0, timeout=timeout) as client:
        if stream:
            return list(
                client.messages.create(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=True
                )
            )
        return client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])


ASK: dict[str, Callable[..., object]] = {"chat": _chat, "responses": _responses, "messages": _messages}
BROKEN = (openai.APIConnectionError, httpx2.RemoteProtocolError, anthropic.APIConnectionError)


@pytest.mark.parametrize(
    ("item", "kind", "code"),
    [
        (Fail(400, "Bad."), openai.BadRequestError, None),
        (Fail(401, "Who?"), openai.AuthenticationError, None),
        (Fail(403, "No."), openai.PermissionDeniedError, None),
        (Fail(404, "Where?", code="model_not_found"), openai.NotFoundError, "model_not_found"),
        (rate_limit_error(7), openai.RateLimitError, "rate_limit_exceeded"),
        (server_error(), openai.InternalServerError, None),
        (server_error(503), openai.InternalServerError, None),
    ],
)
@pytest.mark.parametrize("ask", [_chat, _responses])
def test_openai_raises_its_own_error(
    ask: Callable[..., object], item: Fail, kind: type[openai.APIStatusError], code: str | None
) -> None:
    with LoopbackServer([item]) as server, pytest.raises(kind) as caught:
        ask(server)
    assert (caught.value.status_code, caught.value.code) == (item.status, code)
    assert item.message in caught.value.message


@pytest.mark.parametrize(
    ("item", "kind", "type_"),
    [
        (Fail(400, "Bad."), anthropic.BadRequestError, "invalid_request_error"),
        (Fail(401, "Who?"), anthropic.AuthenticationError, "authentication_error"),
        (rate_limit_error(7), anthropic.RateLimitError, "rate_limit_error"),
        (server_error(), anthropic.InternalServerError, "api_error"),
        (overloaded_error(), anthropic.InternalServerError, "overloaded_error"),
    ],
)
def test_anthropic_raises_its_own_error(item: Fail, kind: type[anthropic.APIStatusError], type_: str) -> None:
    with LoopbackServer([item]) as server, pytest.raises(kind) as caught:
        _messages(server)
    assert (caught.value.status_code, caught.value.type) == (item.status, type_)
    assert item.message in str(caught.value)


def test_how_long_to_wait_is_in_the_headers() -> None:
    with LoopbackServer([rate_limit_error(2.5), rate_limit_error()]) as server:
        waits = []
        for _ in range(2):
            with pytest.raises(openai.RateLimitError) as caught:
                _chat(server)
            waits.append(caught.value.response.headers.get("retry-after"))
    assert waits == ["2.5", None]


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in ANTHROPIC_SHAPES])
def test_an_overflow_in_openai_form_says_what_its_message_says(shape: OverflowShape) -> None:
    item = overflow(shape, window=4_321, size=98_765)
    with LoopbackServer([item]) as server, pytest.raises(openai.BadRequestError) as caught:
        _chat(server)
    assert ("98765" in caught.value.message) == (item.size is not None)
    assert ("4321" in caught.value.message) == (item.window is not None)
    assert {item.size, item.window} <= {98_765, 4_321, None}


@pytest.mark.parametrize(
    ("shape", "code", "kind", "param"),
    [
        ("openai-chat", "context_length_exceeded", "invalid_request_error", "messages"),
        ("openai-responses", "context_length_exceeded", "invalid_request_error", "input"),
        ("openrouter", 400, None, None),
        ("vllm", 400, "BadRequestError", "input_tokens"),
        ("llama.cpp", 400, "exceed_context_size_error", None),
    ],
)
def test_an_overflow_has_the_fields_of_its_provider(
    shape: OverflowShape, code: object, kind: str | None, param: str | None
) -> None:
    with LoopbackServer([overflow(shape)]) as server, pytest.raises(openai.BadRequestError) as caught:
        _chat(server)
    error = caught.value
    assert isinstance(error.body, dict)
    assert (error.body.get("code"), error.body.get("type"), error.body.get("param")) == (code, kind, param)


def test_llama_cpp_tells_its_numbers_as_fields_and_gemini_its_status() -> None:
    llama, gemini = overflow("llama.cpp", window=10, size=20).body, overflow("gemini").body
    assert isinstance(llama, dict)
    assert isinstance(llama["error"], dict)
    assert (llama["error"]["n_prompt_tokens"], llama["error"]["n_ctx"]) == (20, 10)
    assert isinstance(gemini, dict)
    assert isinstance(gemini["error"], dict)
    assert gemini["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("shape", "status", "kind"),
    [("anthropic", 400, "invalid_request_error"), ("anthropic-bytes", 413, "request_too_large")],
)
def test_an_overflow_in_anthropic_form_is_its_error(shape: OverflowShape, status: int, kind: str) -> None:
    with LoopbackServer([overflow(shape)]) as server, pytest.raises(anthropic.APIStatusError) as caught:
        _messages(server)
    assert (caught.value.status_code, caught.value.type) == (status, kind)


@pytest.mark.parametrize(
    ("ask", "kind"), [(_chat, openai.APIError), (_responses, openai.APIError), (_messages, anthropic.APIStatusError)]
)
def test_an_error_in_a_stream_comes_after_a_good_status(ask: Callable[..., object], kind: type[Exception]) -> None:
    item = overflow("openai-responses", in_stream=True)
    with LoopbackServer([item, item]) as server:
        with pytest.raises(kind, match="context window") as caught:
            ask(server, stream=True)
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)):
            ask(server)
    assert getattr(caught.value, "status_code", 200) == 200


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_breaks_off_raises(ask: Callable[..., object], stream: bool) -> None:
    with LoopbackServer([HalfStream(1, Say("one two three"))]) as server, pytest.raises(BROKEN):
        ask(server, stream=stream)


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
@pytest.mark.parametrize("after", [0, 1, 2, 9])
def test_a_stream_that_ends_too_early_but_cleanly_has_its_pieces_and_no_closing_event(
    ask: Callable[..., object], after: int
) -> None:
    with LoopbackServer([HalfStream(after, Say("one two three"), clean=True)]) as server:
        events = ask(server, stream=True)
    assert isinstance(events, list)
    shown = json.dumps([event.model_dump(mode="json") for event in events])
    assert [word in shown for word in ("one", "two", "three")] == [after > 0, after > 1, after > 2]
    assert not any(word in shown for word in ('"stop"', "message_stop", "response.completed", "message_delta"))


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
@pytest.mark.parametrize("stream", [False, True])
def test_garbage_raises(ask: Callable[..., object], stream: bool) -> None:
    with LoopbackServer([Garbage()]) as server, pytest.raises(json.JSONDecodeError):
        ask(server, stream=stream)


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
@pytest.mark.parametrize("stream", [False, True])
def test_silence_ends_in_the_timeout_of_the_client(ask: Callable[..., object], stream: bool) -> None:
    with LoopbackServer([Hang()]) as server, pytest.raises((openai.APITimeoutError, anthropic.APITimeoutError)):
        ask(server, stream=stream, timeout=0.2)


def test_embeddings_fail_as_often_as_asked_and_then_work() -> None:
    failing: list[ScriptItem] = []
    with (
        LoopbackServer(failing, embeddings=[rate_limit_error(), Garbage()], dimension=8) as server,
        openai.OpenAI(base_url=server.url, api_key="key", max_retries=0) as client,
    ):
        with pytest.raises(openai.RateLimitError):
            client.embeddings.create(model="e", input="a")
        with pytest.raises(json.JSONDecodeError):
            client.embeddings.create(model="e", input="a")
        assert len(client.embeddings.create(model="e", input="a").data[0].embedding) == 8
