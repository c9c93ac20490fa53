"""Every way in which providers say that a request was too large, and what only looks like it."""

import pytest

from ricordo.errors import ModelOverflow
from ricordo.models import find_overflow
from ricordo.models.errors import ErrorDetails, is_prompt_truncated, parse_overflow

Sizes = tuple[int | None, int | None, int | None]
OVERFLOWS: dict[str, tuple[ErrorDetails, Sizes]] = {}
OTHERS: dict[str, ErrorDetails] = {}


def facts(
    status: int | None, text: str, *, code: str = "", kind: str = "", sizes: dict[str, int] | None = None
) -> ErrorDetails:
    return ErrorDetails(names=frozenset(), status=status, text=text, code=code, kind=kind, sizes=sizes or {})


def said(window: int | None = None, size: int | None = None) -> Sizes:
    return window, size, None


def sizes(overflow: ModelOverflow | None) -> Sizes | None:
    return None if overflow is None else (overflow.window, overflow.size, overflow.messages)


OVERFLOWS |= {
    "openai chat": (
        facts(
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.",
            code="context_length_exceeded",
        ),
        said(128_000, 130_012),
    ),
    "openai completion": (
        facts(400, "This model's maximum context length is 4097 tokens, however you requested 5000 tokens (4000 in)."),
        said(4_097, 5_000),
    ),
    "openai responses": (
        facts(400, "Your input exceeds the context window of this model.", code="context_length_exceeded"),
        said(),
    ),
    "an event in an open stream": (
        facts(None, "Your input exceeds the context window of this model.", code="context_length_exceeded"),
        said(),
    ),
    "a code without words": (facts(400, "Bad request.", code="context_length_exceeded"), said()),
    "anthropic": (
        facts(400, "prompt is too long: 208310 tokens > 200000 maximum", kind="invalid_request_error"),
        said(200_000, 208_310),
    ),
    "anthropic with its output": (
        facts(400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease them"),
        said(200_000, 190_000),
    ),
    "anthropic bytes": (facts(413, "Request exceeds the maximum size", kind="request_too_large"), said()),
    "anthropic bytes in a stream": (facts(None, "Request exceeds the maximum size", kind="request_too_large"), said()),
    "a proxy's 413": (facts(413, "<html>413 Request Entity Too Large</html>"), said()),
    "gemini": (
        facts(
            400,
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            kind="INVALID_ARGUMENT",
        ),
        said(1_048_575, 1_196_265),
    ),
    "openrouter": (
        facts(
            400,
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40051 tokens "
            "(40051 of text input).",
            code="400",
        ),
        said(32_768, 40_051),
    ),
    "vllm": (
        facts(
            400,
            "This model's maximum context length is 4096 tokens. However, your request has 5020 input tokens.",
            code="400",
            kind="BadRequestError",
        ),
        said(4_096, 5_020),
    ),
    "llama.cpp": (
        facts(
            400,
            "request (5020 tokens) exceeds the available context size (4096 tokens), try increasing it",
            kind="exceed_context_size_error",
            sizes={"n_prompt_tokens": 5_020, "n_ctx": 4_096},
        ),
        said(4_096, 5_020),
    ),
    "llama.cpp without its fields": (
        facts(400, "request (5020 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        said(4_096, 5_020),
    ),
    "llama.cpp's older status": (
        facts(500, "the request exceeds the available context size", kind="exceed_context_size_error"),
        said(),
    ),
    "ollama": (facts(400, "the input length exceeds the context length"), said()),
    "bedrock": (facts(400, "Input is too long for requested model.", code="ValidationException"), said()),
    "xai": (
        facts(400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        said(131_072, 537_812),
    ),
    "kimi": (
        facts(400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 300001)"),
        said(262_144, 300_001),
    ),
    "lm studio": (
        facts(400, "The number of tokens to keep from the initial prompt is greater than the context length."),
        said(),
    ),
    "lm studio with numbers": (
        facts(
            400,
            "Trying to keep the first 5020 tokens when context the overflows. However, the model is loaded with "
            "context length of only 4096 tokens, which is not enough.",
        ),
        said(4_096, 5_020),
    ),
    "mistral": (
        facts(400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
        said(32_768, 40_000),
    ),
    "cohere": (
        facts(400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000."),
        said(4_081),
    ),
    "groq": (facts(400, "Please reduce the length of the messages or completion."), said()),
    "text generation inference": (
        facts(422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 new"),
        said(4_096, 5_000),
    ),
    "thousands with commas": (
        facts(400, "prompt is too long: 208,310 tokens > 200,000 maximum"),
        said(200_000, 208_310),
    ),
    "any case": (facts(400, "TOKEN LIMIT exceeded: MAXIMUM CONTEXT reached"), said()),
}

LIMITS = (
    "limit is 9 TPM", "limit is 9 tpd", "limit is 9 RPM", "RPD is reached", "rate_limit is reached", "rate-limit is 9",
    "quota is used up", "answer to too many requests", "limit is 9 per second", "limit is 9 per-hour",
    "limit is 9 per day", "limit is 9 per min", "call was throttled",
)  # fmt: skip
OTHERS |= {
    "rate limit by status": facts(
        429, "Too many tokens: reduce the length of the messages.", code="rate_limit_exceeded"
    ),
    "rate limit by words": facts(400, "Too many tokens per minute for the context window you asked for."),
    "rate limit without a status": facts(None, "Rate limit reached: token limit of 30,000 TPM."),
    "rate limit with 413": facts(
        413, "Request too large on tokens per minute (TPM): Limit 6000", code="rate_limit_exceeded"
    ),
    "quota": facts(400, "You exceeded your quota: token limit reached."),
    "throttling": facts(400, "ThrottlingException: token limit, try later."),
    "a failure that quotes the user": facts(500, "Internal error while answering 'what is a context length?'"),
    "an overloaded server": facts(529, "Overloaded: context window cache is cold."),
    "a wrong key": facts(401, "Invalid key for the context window service."),
    "an unknown model": facts(404, "No model with a context window of 1M."),
    "another bad request": facts(
        400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"
    ),
    "a bad tool": facts(400, "tools.0.name: String should match pattern."),
    "a long word": facts(400, "image is too long: 9000 pixels"),
}


@pytest.mark.req("AS-BUG-07", "AS-OVER-04")
@pytest.mark.parametrize("case", OVERFLOWS)
def test_an_overflow_is_known_with_the_sizes_it_names(case: str) -> None:
    given, expected = OVERFLOWS[case]
    assert sizes(parse_overflow(given)) == expected


@pytest.mark.req("AS-BUG-07", "AS-OVER-04")
@pytest.mark.parametrize("case", OTHERS)
def test_what_only_looks_like_an_overflow_is_none(case: str) -> None:
    assert parse_overflow(OTHERS[case]) is None


class Refused(Exception):
    """An error as providers' packages raise them."""

    def __init__(self, text: str, *, status_code: int | None = None, body: object = None) -> None:
        super().__init__(text)
        self.status_code = status_code
        self.body = body


def raised(outer: Exception, inner: Exception, *, explicit: bool = True) -> Exception:
    """Return `outer` as it is after it was raised because of `inner`."""
    if explicit:
        outer.__cause__ = inner
    else:
        outer.__context__ = inner
    return outer


@pytest.mark.req("AS-BUG-07", "AS-OVER-04")
@pytest.mark.parametrize("explicit", [True, False], ids=["cause", "context"])
def test_an_overflow_is_found_through_the_whole_chain(explicit: bool) -> None:
    inner = Refused("Bad", status_code=400, body={"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}})
    middle = raised(RuntimeError("The call failed."), inner, explicit=explicit)
    assert sizes(find_overflow(raised(ValueError("Something went wrong."), middle, explicit=explicit))) == said(8, 9)


@pytest.mark.req("AS-BUG-07", "AS-OVER-04")
@pytest.mark.parametrize("explicit", [True, False], ids=["cause", "context"])
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_codes_phrases_and_413_are_overflows_however_deep_and_a_rate_limit_never_is(depth: int, explicit: bool) -> None:
    def buried(inner: Exception) -> Exception:
        for _ in range(depth):
            inner = raised(RuntimeError("The call failed."), inner, explicit=explicit)
        return inner

    by_code = Refused("Bad", status_code=400, body={"error": {"code": "context_length_exceeded", "message": "Bad"}})
    by_phrase = Refused("Bad", status_code=400, body={"error": {"message": "prompt is too long"}})
    by_status = Refused("Too large", status_code=413)
    for overflow in (by_code, by_phrase, by_status):
        assert find_overflow(buried(overflow)) is not None
    limits = [
        ("rate_limit_exceeded", "Too many tokens: prompt is too long per minute."),
        ("rate_limit_exceeded", "The prompt is too long."),
        ("", "The prompt is too long: you may send 9 tokens per minute."),
        *(("", f"The prompt is too long: the {words}.") for words in LIMITS),
    ]
    for code, message in limits:
        body = {"error": {"code": code, "message": message}}
        for status in (429, 413, 400, None):
            assert find_overflow(buried(Refused("Bad", status_code=status, body=body))) is None
    # a rate limit is told by its status alone as well
    for message in ("prompt is too long", "Token limit reached."):
        assert find_overflow(buried(Refused("Bad", status_code=429, body={"error": {"message": message}}))) is None


@pytest.mark.req("AS-BUG-07", "AS-OVER-04")
def test_a_group_of_failures_is_searched_as_well() -> None:
    inner = Refused("Bad", status_code=400, body={"message": "prompt is too long: 9 tokens > 8 maximum"})
    assert sizes(find_overflow(ExceptionGroup("all", [RuntimeError("one"), inner]))) == said(8, 9)


@pytest.mark.req("AS-BUG-07", "AS-OVER-04")
def test_a_rate_limit_hides_what_it_was_caused_by() -> None:
    inner = Refused("prompt is too long: 9 tokens > 8 maximum", status_code=400)
    assert find_overflow(raised(Refused("Slow down.", status_code=429), inner)) is None


@pytest.mark.req("AS-BUG-07")
def test_a_chain_that_turns_back_on_itself_comes_to_an_end() -> None:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    assert find_overflow(first) is None


def test_the_sizes_come_from_whoever_names_them() -> None:
    inner = Refused("prompt is too long: 9 tokens > 8 maximum", status_code=400)
    assert sizes(find_overflow(raised(Refused("context length exceeded", status_code=400), inner))) == said(8, 9)


@pytest.mark.req("AS-BUG-07")
@pytest.mark.parametrize(
    ("reported", "estimated", "shortened"),
    [
        (4_096, 10_000, True),
        (4_096, 8_192, False),
        (4_096, 8_193, True),
        (900, 1_999, False),
        (999, 2_000, True),
        (0, 10_000, False),
        (12_000, 10_000, False),
    ],
)
def test_a_prompt_was_shortened_when_less_than_half_was_read(reported: int, estimated: int, shortened: bool) -> None:
    assert is_prompt_truncated(reported=reported, estimated=estimated) is shortened
