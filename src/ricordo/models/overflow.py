"""Telling that a request was larger than the model's window, however the provider says it.

Providers agree neither on a code nor on words, so the evidence is weighed in this order: a status that means something
else, a code that means this, words of a rate limit (which speaks of too many tokens as well), the size of the body, and
last the words of the message.

Invariant: a rate limit is never an overflow, and neither is a failure of the provider's own (500 and up) without a code
of its own or one of three unmistakable phrases for it, whatever else its text says.
"""

import re
from functools import reduce
from itertools import takewhile

from ricordo.errors import ModelOverflow
from ricordo.models.facts import ErrorDetails, iterate_causes, read_error_details

__all__ = ["WINDOW_STOP", "parse_overflow", "find_overflow", "is_prompt_truncated"]

WINDOW_STOP = "model_context_window_exceeded"
"""The stop reason with which Anthropic's Messages API marks a reply that the window cut off."""

_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})
_TOO_LONG = re.compile(r"'?\b(?:messages\b[^:]*|input\b[^:]*): (?:array|string) too long\b", re.IGNORECASE)
"""What OpenAI says of too many messages, and of a single one that is too long."""
_MAX_MESSAGES = (re.compile(r": array too long\b.*?maximum length (\d[\d,_]*)", re.IGNORECASE | re.DOTALL),)
_TOO_LARGE_KINDS = frozenset({"request_too_large"})
_NOT_ABOUT_SIZE = frozenset({401, 402, 403, 404, 408, 429})
_ABOUT_REQUEST = frozenset({None, 400, 413, 422})
_NOT_OVERFLOW = re.compile(
    r"rate[ _-]?limit|quota|too many requests|per[ -](?:second|minute|min\b|hour|day)|\b[TR]P[MD]\b|throttl",
    re.IGNORECASE,
)
_OVERFLOW_WORDS = re.compile(
    r"context[ _]length|context[ _]window|context[ _]size|context limit|maximum context"
    r"|prompt is too long|input is too long|input (?:length|tokens) exceed|maximum prompt length"
    r"|input token count.*exceeds|number of tokens allowed|token limit|tokens in the prompt cannot exceed"
    r"|request_too_large|exceed_context_size|reduce the length of the (?:messages|input)"
    r"|`?inputs`? (?:must have less than|tokens \+ `?max_new_tokens`? must be)",
    re.IGNORECASE | re.DOTALL,
)
_CERTAIN_WORDS = re.compile(r"context_length_exceeded|maximum context|token limit", re.IGNORECASE)
_NUMBER = r"(\d[\d,_]*)"
_WINDOW = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
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
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # where the reply that was asked for is told apart from the prompt, the prompt
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
    """Return the overflow that one exception or error event speaks of, with its sizes; None for anything else."""
    if facts.status in _NOT_ABOUT_SIZE:
        return None
    said = (facts.code, facts.kind)
    if facts.status in _ABOUT_REQUEST and _TOO_LONG.search(facts.text):
        return ModelOverflow(messages=_find_number(_MAX_MESSAGES, facts.text))
    if not _CODES.intersection(said):
        if _NOT_OVERFLOW.search(" ".join((*said, facts.text))):
            return None
        if facts.status not in _ABOUT_REQUEST and not _CERTAIN_WORDS.search(facts.text):
            return None
        if facts.status != 413 and not _TOO_LARGE_KINDS.intersection(said) and not _OVERFLOW_WORDS.search(facts.text):
            return None
    return ModelOverflow(
        window=facts.sizes.get("n_ctx") or _find_number(_WINDOW, facts.text),
        size=facts.sizes.get("n_prompt_tokens") or _find_number(_SIZE, facts.text),
    )


def find_overflow(error: BaseException) -> ModelOverflow | None:
    """Return the overflow that `error` or anything that caused it speaks of, the sizes from whoever names them.

    An exception that says itself that it is about something else, such as a rate limit, hides what caused it.
    """
    about_size = takewhile(
        lambda facts: facts.status not in _NOT_ABOUT_SIZE, map(read_error_details, iterate_causes(error))
    )
    told = [overflow for facts in about_size if (overflow := parse_overflow(facts))]
    return reduce(_combine, told) if told else None


def _combine(first: ModelOverflow, then: ModelOverflow) -> ModelOverflow:
    """Return the first one with what only the other one names."""
    return ModelOverflow(
        window=first.window or then.window, size=first.size or then.size, messages=first.messages or then.messages
    )


def is_prompt_truncated(*, reported: int, estimated: int) -> bool:
    """Tell whether a server read far less than was sent, as Ollama does when the prompt does not fit.

    `reported` is the input that the server counted, `estimated` what we count, in tokens. Our estimate may be off by
    half for code and rare scripts, so only less than half of it counts, and only for requests of 2,000 tokens and up.
    """
    return reported > 0 and estimated >= 2_000 and reported * 2 < estimated


def _find_number(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    found = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    return int(re.sub(r"\D", "", found[1])) if found else None
