"""Every exception of a provider's package as one of our errors, with what a person can do about it.

Invariant: an error raised here holds no key. What is shown of the provider's answer is its message alone, shortened,
with every known key replaced; never the request, its headers or its body. Where the original exception itself would
show a key in a traceback, it is not kept as the cause.

A cancellation is no failure: it is never given here.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
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
)
from ricordo.models.facts import ErrorDetails, iterate_causes, read_error_details
from ricordo.models.overflow import find_overflow

__all__ = [
    "create_extra_error",
    "raise_translated",
    "create_key_error",
    "find_missing_variable",
    "parse_retry_after",
    "translate_error",
]

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
_VARIABLE = re.compile(r"`?\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b`?")
_NO_MODEL = re.compile(r"unknown model|model.{0,80}(?:not found|does not exist|not exist)", re.IGNORECASE | re.DOTALL)
_EXTRA = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")
_OWN_EXTRAS = frozenset({"openai", "anthropic"})


@dataclass(frozen=True, kw_only=True)
class _Failure:
    """One failure with what its message needs: the model's name and what the provider said, safe to show."""

    model: str
    facts: ErrorDetails
    provider_message: str
    names: frozenset[str]

    def describe(self, what: str) -> str:
        """Return the sentence that says `what` of the model, followed by what the provider said."""
        return f"{self.model} {what}" + (f": {self.provider_message}" if self.provider_message else ".")


def translate_error(error: BaseException, *, model: str, keys: Iterable[str] = ()) -> ModelError:
    """Return `error` as ours, said of `model`; one of ours is returned as it is. `keys` are never shown."""
    if isinstance(error, ModelError):
        return error
    links = [read_error_details(link) for link in iterate_causes(error)]
    facts = next((link for link in links if link.status is not None), links[0])
    said = _format_for_display(facts.text or links[0].text, keys)
    case = _Failure(
        model=model, facts=facts, provider_message=said, names=frozenset().union(*(link.names for link in links))
    )
    overflow = find_overflow(error)
    if overflow is not None:
        text = case.describe("can't take a request of this size")
        return ModelOverflow(text, window=overflow.window, size=overflow.size, messages=overflow.messages)
    return _translate_by_status(case) or _translate_by_class(case)


def raise_translated(error: BaseException, *, model: str, keys: Sequence[str] = ()) -> NoReturn:
    """Raise `error` as ours, with `error` as its cause unless it would show a key.

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
    """Return the seconds that the headers ask to wait, from 0 up; None when they say nothing that is understood.

    `headers` have lower-case names. Milliseconds go before seconds or a date (RFC 9110, 10.2.3).
    """
    milliseconds = _parse_seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1_000
    asked = headers.get("retry-after", "").strip()
    seconds = _parse_seconds(asked)
    if seconds is not None or not asked:
        return seconds
    try:
        until = parsedate_to_datetime(asked)
    except ValueError:
        return None
    aware = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return max(0.0, (aware - now()).total_seconds())


def find_missing_variable(text: str) -> str | None:
    """Return the environment variable that a provider's package asks for; None when it names none."""
    found = _VARIABLE.search(text)
    return found[1] if found and "environment variable" in text else None


def create_key_error(model: str, variable: str) -> ModelKeyMissing:
    """Return the error that says which variable `model` needs, and how to set it."""
    return ModelKeyMissing(f"{model} needs {variable}, which is not set. Set it with: export {variable}=...")


def create_extra_error(model: str, error: ImportError) -> ExtraMissing:
    """Return the error that names the one command that installs what `model` needs."""
    found = _EXTRA.search(str(error))
    own = found is None or found[1] in _OWN_EXTRAS
    package = "ricordo[models]" if own or found is None else f"pydantic-ai-slim[{found[1]}]"
    return ExtraMissing(f"{model} needs a package that is not installed. Install it with: pip install '{package}'")


def _translate_by_status(case: _Failure) -> ModelError | None:
    status, facts = case.facts.status, case.facts
    limited = (
        status == 429
        or (status is None and bool(case.names & _RATE_LIMIT_CLASSES))
        or facts.code == "rate_limit_exceeded"
    )
    if limited:
        asked = facts.retry_after if facts.retry_after is not None else parse_retry_after(facts.headers)
        return ModelRateLimited(case.describe("asks to wait"), retry_after=asked)
    if status is None:
        return None
    if status == 401:
        return _create_key_refusal(case)
    kind, what = _STATUSES.get(status, (ModelUnavailable, "can't answer now") if status >= 500 else _REFUSAL)
    if facts.code == "model_not_found":
        kind, what = _STATUSES[404]
    return kind(case.describe(f"{what} ({status})"))


def _translate_by_class(case: _Failure) -> ModelError:
    facts = case.facts
    if facts.code == "invalid_api_key" or "ModelAuthenticationError" in case.names:
        return _create_key_refusal(case)
    if facts.code == "model_not_found" or "ModelNotFoundError" in case.names or _NO_MODEL.search(facts.text):
        return ModelNotFound(case.describe("is not known"))
    kind, what = next((told for names, told in _CLASSES if case.names & names), (ModelUnavailable, "failed"))
    return kind(case.describe(what))


def _create_key_refusal(case: _Failure) -> ModelRefused:
    """Leave out what the provider said: it likes to repeat the key."""
    return ModelRefused(
        f"{case.model}: the key is refused (401). Check that it is right, active, and of this provider."
    )


def _format_for_display(text: str, keys: Iterable[str]) -> str:
    """Return `text` on one line, with every key replaced, at most 300 characters."""
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
