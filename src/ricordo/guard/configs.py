"""Secrets in files of settings and in commands that name them elsewhere than beside: pairs of a name and a value,
`define`, manifests of Kubernetes, SQL, options of database clients.

Invariant: repeats are bounded, or start only where their own characters cannot stand before them, so that a search is
linear in the text.
"""

import re
from collections.abc import Callable, Iterator

from ricordo.guard.named import name_strength
from ricordo.guard.rule import SecretSpan
from ricordo.guard.values import ValueForm, NameStrength, is_secret_value, is_placeholder

__all__ = [
    "CLIENT_FINDERS",
    "find_php_constants",
    "find_environment_lines",
    "find_login_pairs",
    "find_manifest_secrets",
    "find_value_pairs",
    "find_sql_passwords",
]

_VALUE_OF_PAIR = re.compile(
    r"(?:value|Value|VALUE)[\"']?[ \t]{0,4}[:=][ \t]{0,4}(?P<quote>[\"']?)(?P<value>[^\s\"'<>]{1,512})"
)
_NAME_OF_PAIR = re.compile(
    r"(?<![A-Za-z])(?:name|key)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
    r"(?P<name>[A-Za-z0-9_.:-]{2,80})[\"']?,?\s{1,40}[\"']?\Z",
    re.IGNORECASE,
)
_MAX_NAME_DISTANCE = 160
_PHP_CONSTANT = re.compile(
    r"define\(\s{0,4}([\"'])(?P<name>\w{2,64})\1\s{0,4},\s{0,4}"
    r"(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[^\n\\]|\\.){1,256})(?P=quote)",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(
    r"(?:^|\n)[ \t]{0,16}(?:ENV|ARG|setx?)[ \t]{1,4}(?P<name>[A-Za-z0-9_]{2,64})[ \t]{1,4}(?P<value>[^\s=][^\s]{0,256})"
)
_SECRET_KIND = re.compile(r"(?:^|\n)[ \t]{0,8}kind:[ \t]{0,4}[\"']?Secret[\"']?[ \t\r]{0,4}(?=\n|$)")
_DOCUMENT_END = re.compile(r"\n---[ \t\r]*(?=\n|$)")
_DATA = re.compile(r"(?:^|\n)(?P<indent>[ \t]{0,8})(?:data|stringData):[ \t\r]{0,4}(?=\n)")
_ITEM = re.compile(
    r"\n(?P<indent>[ \t]{1,32})[\"']?[\w.-]{1,128}[\"']?:[ \t]{1,4}[\"']?(?P<value>[^\s\"'|>#{][^\n\"'#]{0,4096})"
)
_MIN_ITEM = 3
_QUOTED_VALUE = r"[ \t]{1,4}(?P<quote>['\"])(?P<value>[^'\"\n]{1,256})(?P=quote)"
# One pattern for each spelling: a search for a literal beginning is a quick one.
_SQL = tuple(
    re.compile(begin + _QUOTED_VALUE)
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
_LOGIN = re.compile(
    r"(?<!\w)(?:login|log-in|user|username|credentials|creds|credenciales|zugang|zugangsdaten|account|identifiants)"
    r"[ \t]{0,2}[:=][ \t]{0,2}[\"'`]?[\w.@+-]{1,64}[\"'`]?\Z",
    re.IGNORECASE,
)
_AFTER_SLASH = re.compile(r" / [\"'`]?(?P<value>[^\s\"'`,;|]{4,128})")
_MAX_LOGIN_DISTANCE = 96


def find_value_pairs(text: str) -> Iterator[SecretSpan]:
    """Values of pairs such as `name: DB_PASSWORD` with `value: …` on the next line, in YAML, JSON and XML."""
    for match in _VALUE_OF_PAIR.finditer(text):
        name = _NAME_OF_PAIR.search(text[max(0, match.start() - _MAX_NAME_DISTANCE) : match.start()])
        if name is not None:
            form = ValueForm.QUOTED if match["quote"] else ValueForm.LITERAL
            yield from _span_of_name(match["value"], match.start("value"), name["name"], form)


def find_php_constants(text: str) -> Iterator[SecretSpan]:
    """Values of constants that PHP defines under a secret's name."""
    for match in _PHP_CONSTANT.finditer(text):
        yield from _span_of_name(match["value"], match.start("value"), match["name"], ValueForm.QUOTED)


def find_environment_lines(text: str) -> Iterator[SecretSpan]:
    """Values of variables in a Dockerfile that are set without a sign."""
    for match in _ENVIRONMENT.finditer(text):
        yield from _span_of_name(match["value"], match.start("value"), match["name"], ValueForm.LITERAL)


def find_manifest_secrets(text: str) -> Iterator[SecretSpan]:
    """The values below `data` and `stringData` of each Secret of Kubernetes."""
    start = 0
    for end in [*(border.start() for border in _DOCUMENT_END.finditer(text)), len(text)]:
        if _SECRET_KIND.search(text, start, end):
            for data in _DATA.finditer(text, start, end):
                yield from _find_items(text, data.end(), end, len(data["indent"]))
        start = end


def _find_items(text: str, start: int, end: int, indent: int) -> Iterator[SecretSpan]:
    """The values of the lines from `start` on that are indented by more than `indent`."""
    at = start
    while (item := _ITEM.match(text, at, end)) and len(item["indent"]) > indent:
        value = item["value"].rstrip()
        if len(value) >= _MIN_ITEM and not is_placeholder(value):
            first = item.start("value")
            yield SecretSpan(start=first, end=first + len(value), type="kubernetes-secret")
        at = text.find("\n", item.end(), end)
        if at < 0:
            return


def find_sql_passwords(text: str) -> Iterator[SecretSpan]:
    """Quoted passwords after PASSWORD and IDENTIFIED BY."""
    for pattern in _SQL:
        for match in pattern.finditer(text):
            if is_secret_value(match["value"], NameStrength.STRONG, ValueForm.QUOTED):
                yield SecretSpan(start=match.start("value"), end=match.end("value"), type="password", rank=1)


def _client_finder(pattern: str) -> Callable[[str], Iterator[SecretSpan]]:
    compiled = re.compile(pattern)

    def find(text: str) -> Iterator[SecretSpan]:
        for match in compiled.finditer(text):
            start, end = match.span(match.lastindex or 0)
            if not is_placeholder(text[start:end]):
                yield SecretSpan(start=start, end=end, type="password", rank=1)

    return find


CLIENT_FINDERS = tuple((hint.encode(), _client_finder(pattern)) for hint, pattern in _CLIENT_COMMANDS)
"""Finders of passwords among the options of a program, each with what stands in every such command."""


def find_login_pairs(text: str) -> Iterator[SecretSpan]:
    """Passwords told after a user's name and a slash: "login: bob / …"."""
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
