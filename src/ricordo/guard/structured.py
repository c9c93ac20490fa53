"""Secrets that are known by the structure around them: key blocks, tokens in parts, URLs, headers, command lines.

Each rule has a hint, a literal of the lower-cased text without which it cannot match. Invariant: repeats are bounded,
or start only where their own characters cannot stand before them, so that a search is linear in the text.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ricordo.guard.pem import find_private_keys
from ricordo.guard.rule import Span, starts_a_word
from ricordo.guard.values import is_placeholder

__all__ = ["STRUCTURED_RULES", "StructuredRule"]


@dataclass(frozen=True, kw_only=True)
class StructuredRule:
    """A search that is worth making only when `hint` stands in the lower-cased text."""

    type: str
    hint: bytes
    find: Callable[[str], Iterator[Span]]


def _matches(
    type_: str,
    hint: str,
    pattern: str,
    *,
    rank: int = 2,
    bounded: bool = False,
    accept: Callable[[str], bool] = lambda value: not is_placeholder(value),
) -> StructuredRule:
    """A rule whose secret is the group `value` of `pattern`, which is compiled without regard to case."""
    compiled = re.compile(pattern, re.IGNORECASE)

    def find(text: str) -> Iterator[Span]:
        for match in compiled.finditer(text):
            if accept(match["value"]) and not (bounded and not starts_a_word(text, match.start())):
                yield Span(start=match.start("value"), end=match.end("value"), type=type_, rank=rank)

    return StructuredRule(type=type_, hint=hint.encode(), find=find)


def _is_basic(value: str) -> bool:
    """Whether `value` is Base64 of `user:password`, as RFC 7617 has it."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_bearer(value: str) -> bool:
    return not is_placeholder(value) and (any(mark.isdigit() for mark in value) or len(value) >= 32)


def _is_password(value: str) -> bool:
    return not is_placeholder(value) and not value.isdigit()


def _has_both_cases(value: str) -> bool:
    return value.lower() != value != value.upper()


_B64URL = r"[A-Za-z0-9_-]"

STRUCTURED_RULES: tuple[StructuredRule, ...] = (
    StructuredRule(type="private-key", hint=b"private key", find=find_private_keys),
    _matches(
        "jwt",
        "eyj",
        rf"(?<![A-Za-z0-9_-])(?P<value>(?-i:eyJ){_B64URL}{{10,}}(?:\.{_B64URL}*){{2,4}})",
        accept=lambda value: len(value.split(".")[2]) >= 10,
    ),
    _matches(
        "jwt",
        "eyj",
        rf"(?:\\[nrt]|%[0-9A-F]{{2}})(?P<value>(?-i:eyJ){_B64URL}{{10,}}(?:\.{_B64URL}*){{2,4}})",
        accept=lambda value: len(value.split(".")[2]) >= 10,
    ),
    _matches(
        "url-password",
        "://",
        r"://[^\s/?#@:\"'<>`\\]{0,128}:(?P<value>[^\s/\"'<>`\\]{1,256})@(?!sha256:)(?=[\w\[$<{%-])",
        rank=1,
        accept=_is_password,
    ),
    _matches(
        "authorization",
        "authorization",
        r"authorization\\*[\"'`]?\s{0,4}[:=,]\s{0,4}\\*[\"'`]?(?:bearer|token|apikey|key|bot)\s{1,4}"
        r"(?P<value>[A-Za-z0-9._~+/=:-]{8,})",
        rank=1,
        accept=_is_bearer,
    ),
    _matches(
        "authorization",
        "bearer",
        r"bearer\s{1,4}(?P<value>[A-Za-z0-9._~+/=-]{20,})",
        rank=1,
        bounded=True,
        accept=lambda value: _is_bearer(value) and any(mark.isdigit() for mark in value),
    ),
    _matches(
        "authorization",
        "basic",
        r"authorization\\*[\"'`]?\s{0,4}[:=,]\s{0,4}\\*[\"'`]?basic\s{1,4}(?P<value>[A-Za-z0-9+/]{4,}={0,2})",
        accept=_is_basic,
    ),
    _matches(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9+/_-]{30,})",
    ),
    _matches(
        "discord-webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(?P<value>\d{17,20}/[A-Za-z0-9_-]{60,})",
    ),
    _matches(
        "discord-token",
        ".",
        r"(?<![A-Za-z0-9_.-])(?P<value>(?-i:[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}))"
        r"(?![A-Za-z0-9_.-])",
        accept=lambda value: _has_both_cases(value) and any(mark.isdigit() for mark in value),
    ),
    _matches("telegram-token", ":aa", r"(?<![0-9])(?P<value>\d{8,10}:(?-i:AA)[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
    _matches("mailgun-key", "-", r"(?<![0-9a-z])(?P<value>(?-i:[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}))(?![0-9a-z-])"),
    _matches("mailchimp-key", "-us", r"(?<![0-9a-z])(?P<value>(?-i:[0-9a-f]{32}-us\d{1,2}))(?![0-9a-z])"),
    _matches("azure-storage-key", "accountkey=", r"accountkey=(?P<value>[A-Za-z0-9+/]{40,}={0,2})"),
    _matches("azure-storage-key", "sharedaccesskey=", r"sharedaccesskey=(?P<value>[A-Za-z0-9+/]{40,}={0,2})"),
    _matches("azure-signature", "sig=", r"[?&;]sig=(?P<value>[A-Za-z0-9%+/]{40,}={0,2})"),
    _matches(
        "azure-client-secret",
        "q~",
        r"(?<![A-Za-z0-9_~.-])(?P<value>(?-i:[A-Za-z0-9_~.]{3}\dQ~)[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~.-])",
    ),
    _matches("azure-ai-key", "jqqj99", r"(?<![A-Za-z0-9])(?P<value>[A-Za-z0-9]{52}(?-i:JQQJ99)[A-Za-z0-9]{20,30})"),
    _matches(
        "azure-devops-token",
        "azdo",
        r"(?<![A-Za-z0-9])(?P<value>[A-Za-z0-9]{70,80}(?-i:AZDO)[A-Za-z0-9]{4})(?![A-Za-z0-9])",
    ),
    _matches(
        "terraform-token", ".atlasv1.", r"(?<![A-Za-z0-9])(?P<value>[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70})"
    ),
    _matches(
        "password",
        "</",
        r"<(?:password|passwd|passphrase|secret|token|api-?key)>(?P<value>[^<>\s]{4,256})</",
        rank=1,
        accept=_is_password,
    ),
    _matches(
        "password",
        "curl",
        r"curl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,128}:(?P<value>[^\s\"']{1,256})",
        rank=1,
        accept=_is_password,
    ),
    _matches("password", "sshpass", r"sshpass\s{1,4}-p\s{0,4}[\"']?(?P<value>[^\s\"']{3,256})", rank=1),
    _matches("password", "login", r"login\s{1,4}\S{1,128}\s{1,4}password\s{1,4}(?P<value>\S{3,256})", rank=1),
)
