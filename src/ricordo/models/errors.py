"""Translates every exception of a provider's package into a Ricordo error that says what the user can do.

Providers agree on neither codes nor messages for a request larger than the window. The evidence is checked in order:
status, codes, words of a rate limit, size, and last the words of the message.

Invariants: no error raised here contains a key. Only the provider's message is shown, shortened and with known keys
replaced; an exception that would show a key is not attached as the cause. A rate limit is never an overflow. A
cancellation is not a failure and must not be passed in.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import reduce
from itertools import takewhile
from typing import NoReturn

from ricordo.errors import (
    ExtraMissing,
    ModelError,
    ModelKeyMissing,
    ModelNotFound,
    ModelOverflow,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    ReplyInvalid,
    install_command,
)
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "WINDOW_STOP",
    "ErrorDetails",
    "create_extra_error",
    "create_key_error",
    "find_missing_variable",
    "find_overflow",
    "is_prompt_truncated",
    "iterate_causes",
    "parse_overflow",
    "parse_retry_after",
    "raise_translated",
    "read_error_details",
    "translate_error",
]


_MAX_CAUSES = 16
_SIZES = ("n_ctx", "n_prompt_tokens")


@dataclass(frozen=True, kw_only=True)
class ErrorDetails:
    """The details of one exception. `names` are its class names; `code` and `kind` are the provider's own values."""

    names: frozenset[str]
    text: str
    status: int | None = None
    code: str = ""
    kind: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    retry_after: float | None = None


def iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and its direct and indirect causes, each once."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting and len(seen) < _MAX_CAUSES:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        nested = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        before = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        waiting += [*nested, *([before] if before is not None else [])]


def read_error_details(error: BaseException) -> ErrorDetails:
    """Return the details of `error` itself, without its causes."""
    body = getattr(error, "body", None)
    if body is None:
        body = getattr(error, "details", None)
    fields = _read_fields(body)
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    retry_after = getattr(error, "retry_after", None)
    own_code, own_kind = getattr(error, "code", None), getattr(error, "type", None)
    return ErrorDetails(
        names=frozenset(kind.__name__ for kind in type(error).__mro__),
        text=_read_text(error, body, fields),
        status=_read_status(error, fields),
        code=_to_word(getattr(error, "provider_error_code", None))
        or _to_word(own_code)
        or _to_word(fields.get("code")),
        kind=_to_word(getattr(error, "provider_error_type", None))
        or _to_word(own_kind)
        or _to_word(fields.get("type")),
        headers={str(key).lower(): str(value) for key, value in getattr(headers, "items", tuple)()},
        sizes={key: value for key in _SIZES if isinstance(value := fields.get(key), int)},
        retry_after=float(retry_after) if isinstance(retry_after, int | float) else None,
    )


def _read_status(error: BaseException, fields: Mapping[str, object]) -> int | None:
    """Return the HTTP status of the error; other statuses, such as that of an open stream, are ignored."""
    answer = getattr(getattr(error, "response", None), "status_code", None)
    for status in (getattr(error, "status_code", None), answer, getattr(error, "code", None), fields.get("code")):
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
            return status
    return None


def _read_fields(body: object) -> Mapping[str, object]:
    """Return the fields of the error object in `body`, whether or not it is wrapped in `error`."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return {}
    nested = body.get("error")
    return nested if isinstance(nested, Mapping) else body


def _read_text(error: BaseException, body: object, fields: Mapping[str, object]) -> str:
    message = fields.get("message") or fields.get("error") or fields.get("detail")
    if isinstance(message, str):
        return message
    if isinstance(body, str) and body.strip():
        return body
    own_message = getattr(error, "message", None)
    return own_message if isinstance(own_message, str) and own_message else str(error)


def _to_word(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


WINDOW_STOP = "model_context_window_exceeded"
"""The stop reason of Anthropic's Messages API for a reply that was cut off by the window."""
_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})
_TOO_LONG = lazy_compile(r"'?\b(?:messages\b[^:]*|input\b[^:]*): (?:array|string) too long\b", re.IGNORECASE)
"""OpenAI's message for too many messages, and for a single message that is too long."""
_MAX_MESSAGES = (lazy_compile(r": array too long\b.*?maximum length (\d[\d,_]*)", re.IGNORECASE | re.DOTALL),)
_TOO_LARGE_KINDS = frozenset({"request_too_large"})
_NOT_ABOUT_SIZE = frozenset({401, 402, 403, 404, 408, 429})
_ABOUT_REQUEST = frozenset({None, 400, 413, 422})
_NOT_OVERFLOW = lazy_compile(
    r"rate[ _-]?limit|quota|too many requests|per[ -](?:second|minute|min\b|hour|day)|\b[TR]P[MD]\b|throttl",
    re.IGNORECASE,
)
_OVERFLOW_WORDS = lazy_compile(
    r"context[ _]length|context[ _]window|context[ _]size|context limit|maximum context"
    r"|prompt is too long|input is too long|input (?:length|tokens) exceed|maximum prompt length"
    r"|input token count.*exceeds|number of tokens allowed|token limit|tokens in the prompt cannot exceed"
    r"|request_too_large|exceed_context_size|reduce the length of the (?:messages|input)"
    r"|`?inputs`? (?:must have less than|tokens \+ `?max_new_tokens`? must be)",
    re.IGNORECASE | re.DOTALL,
)
_CERTAIN_WORDS = lazy_compile(r"context_length_exceeded|maximum context|token limit", re.IGNORECASE)
_NUMBER = r"(\d[\d,_]*)"
_WINDOW = tuple(
    lazy_compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"maximum context length (?:is|of)(?: only)? {_NUMBER}",
        rf"maximum prompt length is {_NUMBER}",
        rf"> {_NUMBER}(?: maximum)?",
        rf"maximum number of tokens allowed \({_NUMBER}\)",
        rf"available context size \({_NUMBER}",
        rf"model token limit: {_NUMBER}",
        rf"context length (?:of|is)(?: only)? {_NUMBER}",
        rf"with {_NUMBER} maximum context",
        rf"cannot exceed {_NUMBER}",
        rf"must (?:be <=|have less than) {_NUMBER}",
    )
)
_SIZE = tuple(
    lazy_compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # If the message states prompt and reply separately, the prompt.
        rf"context limit: {_NUMBER} \+ {_NUMBER} > ",
        rf"\({_NUMBER} (?:in the messages|of text input),",
        rf"passed {_NUMBER} input tokens",
        rf"resulted in {_NUMBER}",
        rf"requested(?: about)?:? {_NUMBER}",
        rf"request (?:has|contains) {_NUMBER}",
        rf"request \({_NUMBER} tokens\)",
        rf"too long: {_NUMBER} tokens",
        rf"token count \({_NUMBER}\)",
        rf"keep the first {_NUMBER} tokens",
        rf"prompt contains {_NUMBER}",
        rf"given: {_NUMBER}",
    )
)


def parse_overflow(facts: ErrorDetails) -> ModelOverflow | None:
    """Return the overflow that one exception or error event reports, with its sizes; None for anything else."""
    if facts.status in _NOT_ABOUT_SIZE:
        return None
    identifiers = (facts.code, facts.kind)
    if facts.status in _ABOUT_REQUEST and _TOO_LONG.search(facts.text):
        return ModelOverflow(messages=_find_number(_MAX_MESSAGES, facts.text))
    if not _CODES.intersection(identifiers):
        if _NOT_OVERFLOW.search(" ".join((*identifiers, facts.text))):
            return None
        if facts.status not in _ABOUT_REQUEST and not _CERTAIN_WORDS.search(facts.text):
            return None
        if (
            facts.status != 413
            and not _TOO_LARGE_KINDS.intersection(identifiers)
            and not _OVERFLOW_WORDS.search(facts.text)
        ):
            return None
    return ModelOverflow(
        window=facts.sizes.get("n_ctx") or _find_number(_WINDOW, facts.text),
        size=facts.sizes.get("n_prompt_tokens") or _find_number(_SIZE, facts.text),
    )


def find_overflow(error: BaseException) -> ModelOverflow | None:
    """Return the overflow that `error` or one of its causes reports, with sizes from any of them.

    An exception that reports something else itself, such as a rate limit, hides its causes.
    """
    about_size = takewhile(
        lambda facts: facts.status not in _NOT_ABOUT_SIZE, map(read_error_details, iterate_causes(error))
    )
    overflows = [overflow for facts in about_size if (overflow := parse_overflow(facts))]
    return reduce(_combine, overflows) if overflows else None


def _combine(first: ModelOverflow, second: ModelOverflow) -> ModelOverflow:
    """Return `first`, with missing values taken from `second`."""
    return ModelOverflow(
        window=first.window or second.window, size=first.size or second.size, messages=first.messages or second.messages
    )


def is_prompt_truncated(*, reported: int, estimated: int) -> bool:
    """Return whether a server read far less than the request, as Ollama does when the prompt does not fit.

    `reported` is the server's input count and `estimated` is our estimate, in tokens. Our estimate may be wrong by half
    for code and rare scripts, so only less than half of it counts, and only for requests of at least 2,000 tokens.
    """
    return reported > 0 and estimated >= 2_000 and reported * 2 < estimated


def _find_number(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    match = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    return int(re.sub(r"\D", "", match[1])) if match else None


_MAX_SHOWN = 300
_RATE_LIMIT_CLASSES = frozenset({"ModelRateLimitError", "ModelQuotaExceededError", "RateLimitError"})
_REFUSAL: tuple[type[ModelError], str] = (ModelRefused, "refused the request")
_STATUSES: dict[int, tuple[type[ModelError], str]] = {
    402: (ModelRefused, "has no credit left"),
    403: (ModelRefused, "does not allow this key to do this"),
    404: (ModelNotFound, "is not known there, or the base URL is wrong"),
    408: (ModelTimeout, "took too long"),
    409: (ModelUnavailable, "can't answer now"),
    425: (ModelUnavailable, "can't answer now"),
}
_CLASSES: tuple[tuple[frozenset[str], tuple[type[ModelError], str]], ...] = (
    (
        frozenset({"APITimeoutError", "ModelRequestTimeout", "ModelTimeoutError", "TimeoutError", "TimeoutException"}),
        (ModelTimeout, "did not answer in time"),
    ),
    (frozenset({"ContentFilterError", "ModelRequestRejectedError", "UserError"}), _REFUSAL),
    (
        frozenset({"APIResponseValidationError", "JSONDecodeError", "UnexpectedModelBehavior", "ValidationError"}),
        (ReplyInvalid, "answered in a form that is not understood"),
    ),
    (
        frozenset({"APIConnectionError", "ModelConnectionError", "OSError", "TransportError"}),
        (ModelUnavailable, "can't be reached, or broke off"),
    ),
    (
        frozenset({"AssertionError", "AttributeError", "LookupError", "TypeError", "ValueError"}),
        (ReplyInvalid, "answered in a form that is not understood"),
    ),
)
_VARIABLE = lazy_compile(r"`?\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b`?")
_NO_MODEL = lazy_compile(r"unknown model|model.{0,80}(?:not found|does not exist|not exist)", re.IGNORECASE | re.DOTALL)
_EXTRA = lazy_compile(r"pydantic-ai-slim\[([\w-]+)\]")
_OWN_EXTRAS = frozenset({"openai", "anthropic"})


@dataclass(frozen=True, kw_only=True)
class _Failure:
    """One failure with the parts of its message: the model's name and the provider's message, safe to show."""

    model: str
    facts: ErrorDetails
    provider_message: str
    names: frozenset[str]

    def describe(self, predicate: str) -> str:
        """Return the sentence with the model's name and `predicate`, followed by the provider's message."""
        return f"{self.model} {predicate}" + (f": {self.provider_message}" if self.provider_message else ".")


def translate_error(error: BaseException, *, model: str, keys: Iterable[str] = ()) -> ModelError:
    """Return `error` as a `ModelError` about `model`; a `ModelError` is returned unchanged. `keys` are never shown."""
    if isinstance(error, ModelError):
        return error
    links = [read_error_details(link) for link in iterate_causes(error)]
    facts = next((link for link in links if link.status is not None), links[0])
    provider_message = _format_for_display(facts.text or links[0].text, keys)
    case = _Failure(
        model=model,
        facts=facts,
        provider_message=provider_message,
        names=frozenset().union(*(link.names for link in links)),
    )
    overflow = find_overflow(error)
    if overflow is not None:
        text = case.describe("can't take a request of this size")
        return ModelOverflow(text, window=overflow.window, size=overflow.size, messages=overflow.messages)
    return _translate_by_status(case) or _translate_by_class(case)


def raise_translated(error: BaseException, *, model: str, keys: Sequence[str] = ()) -> NoReturn:
    """Raise `error` as a `ModelError`, with `error` as its cause unless it would show a key.

    Raises:
        ModelError: always.
    """
    ours = translate_error(error, model=model, keys=keys)
    if ours is error:
        raise ours
    if any(key in f"{link!s}{link!r}" for link in iterate_causes(error) for key in keys if key):
        raise ours from None
    raise ours from error


def parse_retry_after(
    headers: Mapping[str, str], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> float | None:
    """Return the seconds to wait according to the headers, at least 0; None if they contain no valid value.

    `headers` have lower-case names. Milliseconds take precedence over seconds or a date (RFC 9110, 10.2.3).
    """
    milliseconds = _parse_seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1_000
    header = headers.get("retry-after", "").strip()
    seconds = _parse_seconds(header)
    if seconds is not None or not header:
        return seconds
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return None
    aware = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return max(0.0, (aware - now()).total_seconds())


def find_missing_variable(text: str) -> str | None:
    """Return the environment variable that a provider's package requires; None if the text has none."""
    match = _VARIABLE.search(text)
    return match[1] if match and "environment variable" in text else None


def create_key_error(model: str, variable: str) -> ModelKeyMissing:
    """Return the error that names the variable that `model` needs, and how to set it."""
    return ModelKeyMissing(f"{model} needs {variable}, which is not set. Set it with: export {variable}=...")


def create_extra_error(model: str, error: ImportError) -> ExtraMissing:
    """Return the error with the command that installs the package that `model` needs."""
    match = _EXTRA.search(str(error))
    if match is None or match[1] in _OWN_EXTRAS:
        command = install_command("models")
    else:
        command = f"`pip install 'pydantic-ai-slim[{match[1]}]'`"
    return ExtraMissing(f"{model} needs a package that is not installed. Install it with {command}.")


def _translate_by_status(case: _Failure) -> ModelError | None:
    status, facts = case.facts.status, case.facts
    limited = (
        status == 429
        or (status is None and bool(case.names & _RATE_LIMIT_CLASSES))
        or facts.code == "rate_limit_exceeded"
    )
    if limited:
        retry_after = facts.retry_after if facts.retry_after is not None else parse_retry_after(facts.headers)
        return ModelRateLimited(case.describe("asks to wait"), retry_after=retry_after)
    if status is None:
        return None
    if status == 401:
        return _create_key_refusal(case)
    kind, predicate = _STATUSES.get(status, (ModelUnavailable, "can't answer now") if status >= 500 else _REFUSAL)
    if facts.code == "model_not_found":
        kind, predicate = _STATUSES[404]
    return kind(case.describe(f"{predicate} ({status})"))


def _translate_by_class(case: _Failure) -> ModelError:
    facts = case.facts
    if facts.code == "invalid_api_key" or "ModelAuthenticationError" in case.names:
        return _create_key_refusal(case)
    if facts.code == "model_not_found" or "ModelNotFoundError" in case.names or _NO_MODEL.search(facts.text):
        return ModelNotFound(case.describe("is not known"))
    kind, predicate = next((failure for names, failure in _CLASSES if case.names & names), (ModelUnavailable, "failed"))
    return kind(case.describe(predicate))


def _create_key_refusal(case: _Failure) -> ModelRefused:
    """Leave out the provider's message, which often repeats the key."""
    return ModelRefused(
        f"{case.model}: the key is refused (401). Check that it is right, active, and of this provider."
    )


def _format_for_display(text: str, keys: Iterable[str]) -> str:
    """Return `text` on one line of at most 300 characters, with every key replaced."""
    for key in sorted((key for key in keys if key), key=len, reverse=True):
        text = text.replace(key, "[key]")
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"


def _parse_seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
