"""What providers' packages raise becomes one of our errors that says what to do, and shows no key."""

import traceback
from datetime import UTC, datetime

import anthropic
import httpx2
import openai
import pytest
from pydantic_ai import exceptions as theirs

from ricordo.errors import (
    ModelError,
    ModelKeyMissing,
    ModelNotFound,
    ModelOverflow,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    ReplyInvalid,
)
from ricordo.models.errors import (
    create_extra_error,
    create_key_error,
    find_missing_variable,
    parse_retry_after,
    raise_translated,
    translate_error,
)

KEY = "sk-" + "k" * 40
REQUEST = httpx2.Request("POST", "https://models.example/v1", headers={"authorization": f"Bearer {KEY}"})


def answered(status: int, headers: dict[str, str] | None = None) -> httpx2.Response:
    return httpx2.Response(status, headers=headers, request=REQUEST)


def openai_error(
    kind: type[openai.APIStatusError], status: int, message: str, **fields: object
) -> openai.APIStatusError:
    return kind(message, response=answered(status), body={"message": message, **fields})


TABLE: dict[str, tuple[BaseException, type[ModelError]]] = {
    "openai 400": (openai_error(openai.BadRequestError, 400, "Bad tool."), ModelRefused),
    "openai 401": (openai_error(openai.AuthenticationError, 401, f"Wrong key {KEY}"), ModelRefused),
    "openai 403": (openai_error(openai.PermissionDeniedError, 403, "No."), ModelRefused),
    "openai 404": (openai_error(openai.NotFoundError, 404, "No such model."), ModelNotFound),
    "openai 409": (openai_error(openai.ConflictError, 409, "Locked."), ModelUnavailable),
    "openai 429": (openai_error(openai.RateLimitError, 429, "Slow down."), ModelRateLimited),
    "openai 500": (openai_error(openai.InternalServerError, 500, "Oh."), ModelUnavailable),
    "openai overflow": (
        openai_error(openai.BadRequestError, 400, "Too long.", code="context_length_exceeded"),
        ModelOverflow,
    ),
    "openai connection": (openai.APIConnectionError(request=REQUEST), ModelUnavailable),
    "openai timeout": (openai.APITimeoutError(REQUEST), ModelTimeout),
    "openai unreadable": (openai.APIResponseValidationError(answered(200), None), ReplyInvalid),
    "anthropic 529": (
        anthropic.APIStatusError(
            "Overloaded", response=answered(529), body={"error": {"type": "overloaded_error", "message": "Overloaded"}}
        ),
        ModelUnavailable,
    ),
    "anthropic 413": (
        anthropic.APIStatusError("Too large", response=answered(413), body={"error": {"type": "request_too_large"}}),
        ModelOverflow,
    ),
    "anthropic timeout": (anthropic.APITimeoutError(REQUEST), ModelTimeout),
    "their overflow": (
        theirs.ModelHTTPError(400, "x", {"message": "prompt is too long: 9 tokens > 8 maximum"}),
        ModelOverflow,
    ),
    "their rate limit": (theirs.ModelRateLimitError("x", "wait", retry_after=3.0), ModelRateLimited),
    "their 402": (theirs.ModelHTTPError(402, "x", {"message": "Pay."}), ModelRefused),
    "their 408": (theirs.ModelHTTPError(408, "x"), ModelTimeout),
    "their 413 rate limit": (
        theirs.ModelHTTPError(413, "x", {"message": "tokens per minute", "code": "rate_limit_exceeded"}),
        ModelRateLimited,
    ),
    "their connection": (theirs.ModelConnectionError("x", "refused"), ModelUnavailable),
    "their timeout": (theirs.ModelTimeoutError("x", "slow"), ModelTimeout),
    "their filter": (theirs.ContentFilterError("filtered"), ModelRefused),
    "their garbage": (theirs.UnexpectedModelBehavior("What is this?"), ReplyInvalid),
    "their unknown model": (theirs.UserError("Unknown model: x:y"), ModelNotFound),
    "their unfit request": (theirs.UserError("Audio is not supported."), ModelRefused),
    "their wrong key in a stream": (
        theirs.ModelAPIError("x", f"Wrong {KEY}", provider_error_code="invalid_api_key"),
        ModelRefused,
    ),
    "transport": (httpx2.ConnectError("refused"), ModelUnavailable),
    "transport status": (
        httpx2.HTTPStatusError("no", request=REQUEST, response=answered(503)),
        ModelUnavailable,
    ),
    "transport broke off": (httpx2.RemoteProtocolError("peer closed"), ModelUnavailable),
    "transport timeout": (httpx2.ReadTimeout("slow"), ModelTimeout),
    "socket": (ConnectionResetError("reset"), ModelUnavailable),
    "builtin timeout": (TimeoutError(), ModelTimeout),
    "json": (ValueError("not JSON"), ReplyInvalid),
    "stumbled": (AttributeError("no attribute"), ReplyInvalid),
    "anything else": (RuntimeError("?"), ModelUnavailable),
}


@pytest.mark.req("AS-OVER-04", "AS-OVER-05")
@pytest.mark.parametrize("case", TABLE)
def test_an_exception_becomes_the_error_that_says_what_it_means(case: str) -> None:
    error, expected = TABLE[case]
    ours = translate_error(error, model="x:y", keys=[KEY])
    assert type(ours) is expected
    assert str(ours).startswith("x:y")
    assert KEY not in str(ours)


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = ModelTimeout("late")
    assert translate_error(error, model="x:y") is error


@pytest.mark.req("AS-OVER-05")
def test_the_error_keeps_its_cause() -> None:
    cause = openai_error(openai.RateLimitError, 429, "Slow down.")
    with pytest.raises(ModelRateLimited) as raised:
        raise_translated(cause, model="x:y", keys=[KEY])
    assert raised.value.__cause__ is cause


@pytest.mark.req("FC-SECRET")
def test_a_key_that_a_provider_repeats_is_shown_nowhere() -> None:
    with pytest.raises(ModelRefused) as raised:
        raise_translated(openai_error(openai.BadRequestError, 400, f"Bad key: {KEY}!"), model="x:y", keys=[KEY])
    assert "Bad key: [key]!" in str(raised.value)
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_a_long_answer_of_the_provider_is_shortened_to_one_line() -> None:
    ours = translate_error(openai_error(openai.BadRequestError, 400, "a\n" * 4_000), model="x:y")
    assert len(str(ours)) < 400
    assert "\n" not in str(ours)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sun, 22 Nov 2026 04:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 03:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_the_pause_that_is_asked_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers, now=lambda: datetime(2026, 11, 22, 4, tzinfo=UTC)) == seconds


@pytest.mark.req("AS-BUG-07")
def test_a_rate_limit_carries_the_pause_of_its_headers() -> None:
    error = openai.RateLimitError("Slow", response=answered(429, {"Retry-After": "12"}), body=None)
    ours = translate_error(error, model="x:y")
    assert isinstance(ours, ModelRateLimited)
    assert ours.retry_after == 12.0


@pytest.mark.req("AS-BUG-07")
def test_an_overflow_carries_its_sizes() -> None:
    ours = translate_error(TABLE["their overflow"][0], model="x:y")
    assert isinstance(ours, ModelOverflow)
    assert (ours.window, ours.size) == (8, 9)


def test_a_missing_key_is_named_with_the_command_that_sets_it() -> None:
    text = "Set the `SOME_API_KEY` environment variable or pass it via `SomeProvider(api_key=...)`."
    assert find_missing_variable(text) == "SOME_API_KEY"
    assert find_missing_variable("SOME_API_KEY is wrong.") is None
    error = create_key_error("some:model", "SOME_API_KEY")
    assert isinstance(error, ModelKeyMissing)
    assert "export SOME_API_KEY=..." in str(error)


@pytest.mark.parametrize(
    ("told", "command"),
    [
        ("No module named 'pydantic_ai'", "pip install '.[models]'"),
        ('install the group `pip install "pydantic-ai-slim[openai]"`', "pip install '.[models]'"),
        ('install the group `pip install "pydantic-ai-slim[google]"`', "pip install 'pydantic-ai-slim[google]'"),
    ],
)
def test_a_missing_package_is_named_with_the_one_command_that_installs_it(told: str, command: str) -> None:
    shown = str(create_extra_error("x:y", ImportError(told)))
    assert f"Install it with `{command}`" in shown
    assert shown.count("pip install") == 1
