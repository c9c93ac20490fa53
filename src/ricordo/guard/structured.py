"""Find secrets by the structure around them: tokens in parts, URLs, headers, settings, manifests, command lines.

Each rule has a hint, a literal that the lower-cased text must contain for a match.

Invariant: repeats are bounded, or start only after a character that they can't contain, so a search is linear in the
text.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import cache

from ricordo.guard.heuristics import (
    PHRASE_FINDERS,
    NameStrength,
    ValueForm,
    is_placeholder,
    is_secret_value,
    is_word_passphrase,
)
from ricordo.guard.key_rules import SecretSpan
from ricordo.guard.keyword_secrets import name_strength
from ricordo.guard.private_keys import (
    KEY_LINE_HINT,
    SEED_HINTS,
    find_aws_secrets,
    find_key_lines,
    find_private_keys,
    find_putty_keys,
    find_seed_phrases,
)
from ricordo.language.packs import pack_phrases
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "CLIENT_FINDERS",
    "CODE_FINDERS",
    "STRUCTURED_RULES",
    "StructuredRule",
    "find_environment_lines",
    "find_login_pairs",
    "find_manifest_secrets",
    "find_php_constants",
    "find_sql_passwords",
    "find_value_pairs",
]


def _pin_code() -> str:
    owner = rf"(?:[ \t](?:{pack_phrases('pin_owner')})[ \t][^\n.,;:=]{{1,24}}?)?"
    sign = rf"(?:[ \t]?[:=][ \t]?|[ \t](?:{pack_phrases('pin_is')})[ \t:]{{1,2}})"
    unit = rf"[ \t](?:{pack_phrases('pin_unit')})"
    return (
        rf"(?<![A-Za-z0-9_.-])(?:PIN|PUK|[Pp]uk|[Pp]in[ -]?[Cc]ode|(?:{pack_phrases('pin_of')})[ \t][Pp]in)"
        rf"[12]?(?:[ -][Cc]ode)?{owner}{sign}[\"'`*]{{0,2}}(?P<value>\d{{4,8}})(?![\w-]|[.,:/]\d|{unit})"
    )


_PIN_CODE = lazy_compile(_pin_code)
# in India a PIN code is a postal code and has six digits
_POSTAL_NAME = lazy_compile(r"(?:pin[ ]?code|postal[ \t]pin|post[ \t]pin)\W", re.IGNORECASE)
_PLACE = lazy_compile(r",?[ \t][A-Z]")
_CODE_HINTS = (b"pin:", b"pin =", b"pin=", b"puk")
_PHRASE = lazy_compile(
    lambda: (
        rf"(?:passphrase|diceware)(?:[ \t]?[:=][ \t]{{0,2}}|[ \t](?:{pack_phrases('passphrase_is')})[ \t])[\"'`]?"
        r"(?P<value>[^\W\d_]{3,12}(?:[ ][^\W\d_]{3,12}){3,9})(?=[\"'`.]{0,2}[ \t]*(?:\r|\n|\Z))"
    ),
    re.IGNORECASE,
)
_USER = r"[\"']?[\w.@\\/-]{1,64}"
_AFTER_USER = r"(?P<value>[^\s\"'$<>{}]{3,256})"
_HTTPIE = lazy_compile(
    rf"(?<![\w/:.-])https?[ \t][^\n|;]{{0,200}}?(?<=[ \t])(?:-a[ \t]|--auth[ =]){_USER}:{_AFTER_USER}"
)
_SHARE = lazy_compile(rf"(?<!\w)(?:smb|rpc)client\b[^\n|;]{{0,200}}?[ \t]-U[ \t]{_USER}%{_AFTER_USER}")
_LFTP = lazy_compile(rf"(?<!\w)lftp\b[^\n|;]{{0,200}}?[ \t]-u[ \t]{_USER},{_AFTER_USER}")
_LOGINS = ((b" -a ", _HTTPIE), (b"--auth", _HTTPIE), (b" -u ", _SHARE), (b" -u ", _LFTP))


@cache
def _code_hints() -> tuple[bytes, ...]:
    return (*_CODE_HINTS, *(hint.encode() for hint in pack_phrases("pin_hint").split("|")))


def _find_codes(text: str) -> Iterator[SecretSpan]:
    lower = text.encode("ascii", "replace").lower()
    for match in _PIN_CODE.finditer(text) if any(hint in lower for hint in _code_hints()) else ():
        if not _is_postal(text, match):
            yield _code_span(match)


def _is_postal(text: str, match: re.Match[str]) -> bool:
    if len(match["value"]) != 6:
        return False
    postal_name = _POSTAL_NAME.search(text[max(0, match.start() - 8) : match.start("value")])
    return postal_name is not None or _PLACE.match(text, match.end()) is not None


def _find_phrases(text: str) -> Iterator[SecretSpan]:
    for match in _PHRASE.finditer(text):
        if is_word_passphrase(match["value"]):
            yield _code_span(match)


def _login_finder(pattern: re.Pattern[str]) -> Callable[[str], Iterator[SecretSpan]]:
    def find(text: str) -> Iterator[SecretSpan]:
        for match in pattern.finditer(text):
            if not is_placeholder(match["value"]):
                yield _code_span(match)

    return find


def _code_span(match: re.Match[str]) -> SecretSpan:
    return SecretSpan(start=match.start("value"), end=match.end("value"), type="password", rank=1)


CODE_FINDERS: tuple[tuple[bytes, Callable[[str], Iterator[SecretSpan]]], ...] = (
    (b"pin", _find_codes),
    (b"puk", _find_codes),
    *((hint, _find_phrases) for hint in (b"passphrase", b"diceware")),
    *((hint, _login_finder(pattern)) for hint, pattern in _LOGINS),
)
"""Finders of secrets, each with a literal that must be in the lower-cased text."""


_VALUE_OF_PAIR = lazy_compile(
    r"(?:value|Value|VALUE)[\"']?[ \t]{0,4}[:=][ \t]{0,4}(?P<quote>[\"']?)(?P<value>[^\s\"'<>]{1,512})"
)
_NAME_OF_PAIR = lazy_compile(
    r"(?<![A-Za-z])(?:name|key)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
    r"(?P<name>[A-Za-z0-9_.:-]{2,80})[\"']?,?\s{1,40}[\"']?\Z",
    re.IGNORECASE,
)
_MAX_NAME_DISTANCE = 160
_PHP_CONSTANT = lazy_compile(
    r"define\(\s{0,4}([\"'])(?P<name>\w{2,64})\1\s{0,4},\s{0,4}"
    r"(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[^\n\\]|\\.){1,256})(?P=quote)",
    re.IGNORECASE,
)
_ENVIRONMENT = lazy_compile(
    r"(?:^|\n)[ \t]{0,16}(?:ENV|ARG|setx?)[ \t]{1,4}(?P<name>[A-Za-z0-9_]{2,64})[ \t]{1,4}(?P<value>[^\s=][^\s]{0,256})"
)
_SECRET_KIND = lazy_compile(r"(?:^|\n)[ \t]{0,8}kind:[ \t]{0,4}[\"']?Secret[\"']?[ \t\r]{0,4}(?=\n|$)")
_DOCUMENT_END = lazy_compile(r"\n---[ \t\r]*(?=\n|$)")
_DATA = lazy_compile(r"(?:^|\n)(?P<indent>[ \t]{0,8})(?:data|stringData):[ \t\r]{0,4}(?=\n)")
_ITEM = lazy_compile(
    r"\n(?P<indent>[ \t]{1,32})[\"']?[\w.-]{1,128}[\"']?:[ \t]{1,4}[\"']?(?P<value>[^\s\"'|>#{][^\n\"'#]{0,4096})"
)
_MIN_ITEM = 3
_QUOTED_VALUE = r"[ \t]{1,4}(?P<quote>['\"])(?P<value>[^'\"\n]{1,256})(?P=quote)"
# one pattern for each spelling, since a search for a literal prefix is fast
_SQL = tuple(
    lazy_compile(begin + _QUOTED_VALUE)
    for begin in (
        "password",
        "Password",
        "PASSWORD",
        r"identified[ \t](?:with[ \t]{1,4}\S{1,64}[ \t]{1,4})?(?:by|as)",
        r"IDENTIFIED[ \t](?:WITH[ \t]{1,4}\S{1,64}[ \t]{1,4})?(?:BY|AS)",
    )
)
_OPTION = r"[^\n;&|]{0,200}?\s"
_JOINED_VALUE = r"-p(?:'([^'\n]{1,256})'|\"([^\"\n]{1,256})\"|([^\s'\"-][^\s'\"]{0,255}))"
_NEXT_VALUE = r"[ \t=]{1,4}[\"']?([^\s'\"-][^\s'\"]{0,255})"
_CLIENT_COMMANDS = (
    (" -p", rf"mysql(?<![A-Za-z]mysql)[a-z]{{0,8}}\b{_OPTION}{_JOINED_VALUE}"),
    (" -p", rf"mariadb[a-z-]{{0,8}}\b{_OPTION}{_JOINED_VALUE}"),
    (" -p", rf"mongo(?:sh|dump|restore|export|import)?\b{_OPTION}-p{_NEXT_VALUE}"),
    (" -p", rf"docker[ \t]login\b{_OPTION}-p{_NEXT_VALUE}"),
    (" -a", rf"redis-cli\b{_OPTION}-a{_NEXT_VALUE}"),
    (" -w", rf"ldap\w{{2,10}}\b{_OPTION}-w{_NEXT_VALUE}"),
    ("/user:", r"/(?i:user:)\S{1,128}[ \t]{1,4}([^\s/*'\"][^\s'\"]{2,255})"),
)
_LOGIN = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('login_name')})[ \t]{{0,2}}[:=][ \t]{{0,2}}[\"'`]?[\w.@+-]{{1,64}}[\"'`]?\Z",
    re.IGNORECASE,
)
_AFTER_SLASH = lazy_compile(r" / [\"'`]?(?P<value>[^\s\"'`,;|]{4,128})")
_MAX_LOGIN_DISTANCE = 96


def find_value_pairs(text: str) -> Iterator[SecretSpan]:
    """Yield values of pairs such as `name: DB_PASSWORD` with `value: …` on the next line, in YAML, JSON and XML."""
    for match in _VALUE_OF_PAIR.finditer(text):
        name = _NAME_OF_PAIR.search(text[max(0, match.start() - _MAX_NAME_DISTANCE) : match.start()])
        if name is not None:
            form = ValueForm.QUOTED if match["quote"] else ValueForm.LITERAL
            yield from _span_of_name(match["value"], match.start("value"), name["name"], form)


def find_php_constants(text: str) -> Iterator[SecretSpan]:
    """Yield values of PHP constants whose name denotes a secret."""
    for match in _PHP_CONSTANT.finditer(text):
        yield from _span_of_name(match["value"], match.start("value"), match["name"], ValueForm.QUOTED)


def find_environment_lines(text: str) -> Iterator[SecretSpan]:
    """Yield values of variables in a Dockerfile that are set without a sign."""
    for match in _ENVIRONMENT.finditer(text):
        yield from _span_of_name(match["value"], match.start("value"), match["name"], ValueForm.LITERAL)


def find_manifest_secrets(text: str) -> Iterator[SecretSpan]:
    """Yield the values below `data` and `stringData` of each Kubernetes Secret."""
    start = 0
    for end in [*(border.start() for border in _DOCUMENT_END.finditer(text)), len(text)]:
        if _SECRET_KIND.search(text, start, end):
            for data in _DATA.finditer(text, start, end):
                yield from _find_items(text, data.end(), end, len(data["indent"]))
        start = end


def _find_items(text: str, start: int, end: int, indent: int) -> Iterator[SecretSpan]:
    """Yield the values of the lines from `start` on that are indented by more than `indent`."""
    position = start
    while (item := _ITEM.match(text, position, end)) and len(item["indent"]) > indent:
        value = item["value"].rstrip()
        if len(value) >= _MIN_ITEM and not is_placeholder(value):
            first = item.start("value")
            yield SecretSpan(start=first, end=first + len(value), type="kubernetes-secret")
        position = text.find("\n", item.end(), end)
        if position < 0:
            return


def find_sql_passwords(text: str) -> Iterator[SecretSpan]:
    """Yield quoted passwords after PASSWORD and IDENTIFIED BY."""
    for pattern in _SQL:
        for match in pattern.finditer(text):
            if is_secret_value(match["value"], NameStrength.STRONG, ValueForm.QUOTED):
                yield SecretSpan(start=match.start("value"), end=match.end("value"), type="password", rank=1)


def _client_finder(pattern: str) -> Callable[[str], Iterator[SecretSpan]]:
    compiled = lazy_compile(pattern)

    def find(text: str) -> Iterator[SecretSpan]:
        for match in compiled.finditer(text):
            start, end = match.span(match.lastindex or 0)
            if not is_placeholder(text[start:end]):
                yield SecretSpan(start=start, end=end, type="password", rank=1)

    return find


CLIENT_FINDERS = tuple((hint.encode(), _client_finder(pattern)) for hint, pattern in _CLIENT_COMMANDS)
"""Finders of passwords among the options of a program, each with a literal that every such command contains."""


def find_login_pairs(text: str) -> Iterator[SecretSpan]:
    """Yield passwords after a user's name and a slash: "login: bob / …"."""
    for match in _AFTER_SLASH.finditer(text):
        value = match["value"].rstrip(".:?)")
        if (
            any(map(str.isdigit, value))
            and is_secret_value(value, NameStrength.STRONG, ValueForm.PROSE)
            and _LOGIN.search(text[max(0, match.start() - _MAX_LOGIN_DISTANCE) : match.start()])
        ):
            yield SecretSpan(start=match.start("value"), end=match.start("value") + len(value), type="password", rank=1)


def _span_of_name(value: str, start: int, name: str, form: ValueForm) -> Iterator[SecretSpan]:
    strength = name_strength(name) or (NameStrength.MEDIUM if name.lower().endswith(("_salt", "_key")) else None)
    if strength is not None and is_secret_value(value, strength, form):
        kind = "password" if strength is NameStrength.STRONG else "credential"
        yield SecretSpan(start=start, end=start + len(value), type=kind, rank=1)


@dataclass(frozen=True, kw_only=True)
class StructuredRule:
    """A search that runs only if `hint` is in the lower-cased text.

    If the hint is common, `gate` must also match in the long runs of key characters. With `in_runs` the hint must be in
    those runs, with `needs_runs` there must be at least one run.
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
    """Return a rule whose secret is the group `value` of `pattern`, which is compiled to ignore case."""
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
    """Return a rule for a whole secret of this `shape`, with no character of `alphabet` before or after it."""
    pattern = rf"{_not_after(alphabet)}(?P<value>{shape})(?![{alphabet}])"
    find = _build_finder(type_, pattern, re.NOFLAG, 2, accept)
    searched = None if gate is None else lazy_compile(gate)
    return StructuredRule(type=type_, hint=hint.encode(), find=find, gate=searched, in_runs=True, needs_runs=True)


def _build_finder(
    type_: str, pattern: str, flags: re.RegexFlag, rank: int, accept: Callable[[str], bool]
) -> Callable[[str], Iterator[SecretSpan]]:
    compiled = lazy_compile(pattern, flags)

    def find(text: str) -> Iterator[SecretSpan]:
        for match in compiled.finditer(text):
            if accept(match["value"]):
                yield SecretSpan(start=match.start("value"), end=match.end("value"), type=type_, rank=rank)

    return find


def _not_after(alphabet: str) -> str:
    """Return a condition that no character of `alphabet` comes before, except in a JSON, percent or terminal escape."""
    return (
        rf"(?:(?<![{alphabet}])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{{2}})|(?<=\\u[0-9A-Fa-f]{{4}})"
        r"|(?<=\[m)|(?<=\[[0-9]m)|(?<=\[[0-9]{2}m)|(?<=;[0-9]{2}m))"
    )


def _is_basic(value: str) -> bool:
    """Return whether `value` is Base64 of `user:password`, as in RFC 7617."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_bearer(value: str) -> bool:
    return not is_placeholder(value) and (any(char.isdigit() for char in value) or len(value) >= 32)


def _is_password(value: str) -> bool:
    return not is_placeholder(value) and not value.isdigit()


def _is_mixed(value: str) -> bool:
    """Return whether a token has letters of both cases and digits, like a random one."""
    return value.lower() != value != value.upper() and any(char.isdigit() for char in value)


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
            gate=lazy_compile(rb"[A-Za-z0-9+/]{40}"),
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
