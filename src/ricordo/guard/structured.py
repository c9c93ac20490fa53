"""Secrets that are known by the structure around them: key blocks, tokens in parts, URLs, headers, command lines.

Each rule has a hint, a literal of the lower-cased text without which it cannot match. Invariant: repeats are bounded,
or start only where their own characters cannot stand before them, so that a search is linear in the text.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ricordo.guard.aws import find_aws_secrets
from ricordo.guard.codes import CODE_FINDERS
from ricordo.guard.configs import (
    CLIENT_FINDERS,
    find_php_constants,
    find_environment_lines,
    find_login_pairs,
    find_manifest_secrets,
    find_value_pairs,
    find_sql_passwords,
)
from ricordo.guard.key_lines import KEY_LINE_HINT, find_key_lines
from ricordo.guard.pem import find_private_keys, find_putty_keys
from ricordo.guard.phrases import PHRASE_FINDERS
from ricordo.guard.rule import SecretSpan
from ricordo.guard.seeds import SEED_HINTS, find_seed_phrases
from ricordo.guard.values import is_placeholder

__all__ = ["STRUCTURED_RULES", "StructuredRule"]


@dataclass(frozen=True, kw_only=True)
class StructuredRule:
    """A search that is worth making only when `hint` stands in the lower-cased text and, where the hint is a common
    one, when `gate` finds something in the text's long runs of key characters.

    With `in_runs` the hint stands in those runs, with `needs_runs` there is at least one of them.
    """

    type: str
    hint: bytes
    find: Callable[[str], Iterator[SecretSpan]]
    gate: re.Pattern[bytes] | None = None
    in_runs: bool = False
    needs_runs: bool = False


def _is_no_placeholder(value: str) -> bool:
    return not is_placeholder(value)


def _context_rule(
    type_: str,
    hint: str,
    pattern: str,
    *,
    rank: int = 1,
    accept: Callable[[str], bool] = _is_no_placeholder,
    needs_runs: bool = False,
) -> StructuredRule:
    """A rule whose secret is the group `value` of `pattern`, which is compiled without regard to case."""
    find = _build_finder(type_, pattern, re.IGNORECASE, rank, accept)
    return StructuredRule(type=type_, hint=hint.encode(), find=find, needs_runs=needs_runs)


def _shape_rule(
    type_: str,
    hint: str,
    shape: str,
    alphabet: str,
    *,
    gate: bytes | None = None,
    accept: Callable[[str], bool] = _is_no_placeholder,
) -> StructuredRule:
    """A rule for a whole secret of this `shape`, with none of `alphabet` before or after it."""
    pattern = rf"{_not_after(alphabet)}(?P<value>{shape})(?![{alphabet}])"
    find = _build_finder(type_, pattern, re.NOFLAG, 2, accept)
    searched = None if gate is None else re.compile(gate)
    return StructuredRule(type=type_, hint=hint.encode(), find=find, gate=searched, in_runs=True, needs_runs=True)


def _build_finder(
    type_: str, pattern: str, flags: re.RegexFlag, rank: int, accept: Callable[[str], bool]
) -> Callable[[str], Iterator[SecretSpan]]:
    compiled = re.compile(pattern, flags)

    def find(text: str) -> Iterator[SecretSpan]:
        for match in compiled.finditer(text):
            if accept(match["value"]):
                yield SecretSpan(start=match.start("value"), end=match.end("value"), type=type_, rank=rank)

    return find


def _not_after(alphabet: str) -> str:
    """A condition: nothing of `alphabet` stands before, unless it belongs to an escape (JSON, percent, terminal)."""
    return (
        rf"(?:(?<![{alphabet}])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{{2}})|(?<=\\u[0-9A-Fa-f]{{4}})"
        r"|(?<=\[m)|(?<=\[[0-9]m)|(?<=\[[0-9]{2}m)|(?<=;[0-9]{2}m))"
    )


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


def _is_mixed(value: str) -> bool:
    """Whether a token has letters of both cases and digits, as random ones do."""
    return value.lower() != value != value.upper() and any(mark.isdigit() for mark in value)


_URLSAFE = "A-Za-z0-9_-"
_AUTHORIZATION = r"authorization\\*[\"'`]?\s{0,4}[:=,]\s{0,4}\\*[\"'`]?"

_KEY_RULES: tuple[StructuredRule, ...] = (
    StructuredRule(type="private-key", hint=b"private key", find=find_private_keys, needs_runs=True),
    StructuredRule(type="private-key", hint=b"private-lines:", find=find_putty_keys, needs_runs=True),
    StructuredRule(
        type="private-key", hint=b"", find=find_key_lines, gate=KEY_LINE_HINT, in_runs=True, needs_runs=True
    ),
    _context_rule(
        "private-key",
        "client-key-data",
        r"client-key-data\\*[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\*[\"']?(?P<value>[A-Za-z0-9+/]{16,}={0,2})",
        needs_runs=True,
    ),
    *(StructuredRule(type="seed-phrase", hint=hint, find=find_seed_phrases) for hint in SEED_HINTS),
    *(
        StructuredRule(
            type="aws-secret-key",
            hint=hint,
            find=find_aws_secrets,
            gate=re.compile(rb"[A-Za-z0-9+/]{40}"),
            needs_runs=True,
        )
        for hint in (b"akia", b"asia", b"secret")
    ),
    _shape_rule(
        "jwt",
        "eyj",
        rf"eyJ[{_URLSAFE}]{{10,}}(?:\.[{_URLSAFE}]*){{2,4}}",
        _URLSAFE,
        gate=rb"eyJ[A-Za-z0-9_-]{10}",
        accept=lambda value: len(value.split(".")[2]) >= 10,
    ),
    _shape_rule(
        "discord-token",
        ".",
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}",
        _URLSAFE,
        gate=rb"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
        accept=_is_mixed,
    ),
    _shape_rule("telegram-token", ":aa", r"\d{8,10}:AA[A-Za-z0-9_-]{33}", _URLSAFE),
    _shape_rule(
        "mailgun-key", "-", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}", "0-9A-Za-z-", gate=rb"[0-9a-f]{32}-[0-9a-f]{8}-"
    ),
    _shape_rule("mailchimp-key", "-us", r"[0-9a-f]{32}-us\d{1,2}", "0-9A-Za-z", gate=rb"[0-9a-f]{32}-us"),
    _shape_rule("azure-client-secret", "q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}", "A-Za-z0-9_~-"),
    _shape_rule("azure-ai-key", "jqqj99", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20,30}", "A-Za-z0-9"),
    _shape_rule("azure-devops-token", "azdo", r"[A-Za-z0-9]{70,80}AZDO[A-Za-z0-9]{4}", "A-Za-z0-9"),
    _shape_rule("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", "A-Za-z0-9"),
)

_CONTEXT_RULES: tuple[StructuredRule, ...] = (
    _context_rule(
        "url-password",
        "://",
        r"://[^\s/?#@:\"'<>`\\]{0,128}:(?P<value>[^\s/\"'<>`\\]{1,256})@(?!sha256:)(?=[\w\[$<{%-])",
        accept=_is_password,
    ),
    _context_rule(
        "authorization",
        "authorization",
        _AUTHORIZATION + r"(?:bearer|token|apikey|key|bot)\s{1,4}(?P<value>[A-Za-z0-9._~+/=:-]{8,})",
        accept=_is_bearer,
    ),
    _context_rule(
        "authorization",
        "bearer",
        r"(?<![A-Za-z])bearer\s{1,4}(?P<value>[A-Za-z0-9._~+/=-]{20,})",
        accept=lambda value: _is_bearer(value) and any(mark.isdigit() for mark in value),
    ),
    _context_rule(
        "authorization",
        "basic",
        _AUTHORIZATION + r"basic\s{1,4}(?P<value>[A-Za-z0-9+/]{4,}={0,2})",
        rank=2,
        accept=_is_basic,
    ),
    _context_rule(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9+/_-]{30,})",
        needs_runs=True,
    ),
    _context_rule(
        "discord-webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(?P<value>\d{17,20}/[A-Za-z0-9_-]{60,})",
        needs_runs=True,
    ),
    _context_rule(
        "azure-storage-key", "accountkey=", r"accountkey=(?P<value>[A-Za-z0-9+/]{40,}={0,2})", needs_runs=True, rank=2
    ),
    _context_rule(
        "azure-storage-key",
        "sharedaccesskey=",
        r"sharedaccesskey=(?P<value>[A-Za-z0-9+/]{40,}={0,2})",
        needs_runs=True,
        rank=2,
    ),
    _context_rule("azure-signature", "sig=", r"[?&;]sig=(?P<value>[A-Za-z0-9%+/]{40,}={0,2})"),
    _context_rule(
        "password",
        "</",
        r"<(?:password|passwd|passphrase|secret|token|api-?key)>(?P<value>[^<>\s]{4,256})</",
        accept=_is_password,
    ),
    _context_rule(
        "password",
        "curl",
        r"curl\b[^\n]{0,200}?\s(?:-u|--user|--proxy-user)[ =]?[\"']?[^\s:\"']{1,128}:(?P<value>[^\s\"']{1,256})",
        accept=_is_password,
    ),
    _context_rule(
        "docker-auth",
        '"auth',
        r"\"auth\\*\"[ \t]{0,4}:\s{0,4}\\*\"(?P<value>[A-Za-z0-9+/]{6,}={0,2})\\*\"",
        rank=2,
        accept=_is_basic,
    ),
    _context_rule(
        "teams-webhook",
        "webhook.office.com/",
        r"webhook\.office\.com/(?P<value>webhookb2/[A-Za-z0-9@/-]{60,})",
        needs_runs=True,
    ),
    _context_rule(
        "zapier-webhook",
        "hooks.zapier.com/",
        r"hooks\.zapier\.com/hooks/catch/(?P<value>\d{4,10}/[a-z0-9]{5,10})",
        needs_runs=True,
    ),
    StructuredRule(type="credential", hint=b"value", find=find_value_pairs),
    StructuredRule(type="credential", hint=b"define(", find=find_php_constants),
    StructuredRule(type="credential", hint=b"env ", find=find_environment_lines),
    StructuredRule(type="kubernetes-secret", hint=b"kind: secret", find=find_manifest_secrets),
    StructuredRule(type="password", hint=b"password", find=find_sql_passwords),
    StructuredRule(type="password", hint=b"identified", find=find_sql_passwords),
    *(StructuredRule(type="password", hint=hint, find=find) for hint, find in CLIENT_FINDERS),
    StructuredRule(type="password", hint=b" / ", find=find_login_pairs),
    *(StructuredRule(type="password", hint=hint, find=find) for hint, find in PHRASE_FINDERS + CODE_FINDERS),
    _context_rule("password", "sshpass", r"sshpass\s{1,4}-p\s{0,4}[\"']?(?P<value>[^\s\"']{3,256})"),
    _context_rule("password", "login", r"login\s{1,4}\S{1,128}\s{1,4}password\s{1,4}(?P<value>\S{3,256})"),
)

STRUCTURED_RULES: tuple[StructuredRule, ...] = _KEY_RULES + _CONTEXT_RULES
