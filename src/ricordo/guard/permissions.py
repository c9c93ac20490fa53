"""Permission rules that decide which tool calls may run, one line of text for each rule. Pure.

    deny shell(git push --force*)
    ask write_file(src/*)
    allow shell(git status)

A rule names a tool and the argument it acts on; `*` matches any characters in both. Invisible characters are written
as `\\u000a`. Denials and questions check every text of a call, in all its spellings, including a path without `.` and
`..`, and each command of a command line. A permission checks only the argument, which must match in all spellings. A
command that chains, substitutes or redirects is permitted only by a rule with exactly its text, or with no argument.

Denying commands is a guard rail, not a sandbox: it stops the usual spellings, but a shell allows endlessly many.

Invariants: a permission never allows a call that a denial or a question matches; a rule is parsed from its text without
change. The work is linear in the length of a command.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "COMMAND_TOOLS",
    "Decision",
    "PermissionQuery",
    "PermissionRule",
    "ToolPattern",
    "collapse_spaces",
    "collect_argument_texts",
    "command_spellings",
    "decide",
    "has_restriction",
    "is_compound_command",
    "parse_pattern",
    "parse_rule",
    "render_pattern",
    "render_rule",
]


COMMAND_TOOLS = frozenset({"bash", "shell"})
"""The tools whose arguments are command lines."""
_COMPOUND = lazy_compile(r"[;&|`<>\n]|\$\(")
_SEPARATORS = lazy_compile(r"[;&|`()\n]+")
_QUOTES = lazy_compile(r"[\"'\\]+")
_QUOTED = lazy_compile(r"""\\.|"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^']*+'""", re.DOTALL)
_SEPARATING = lazy_compile(r"[\s;&|`()<>]")
_CONTINUED = "\\\n"
_COMBINED_REDIRECTION = lazy_compile(r"(?<=[<>])[&|]")
_FIND_EXEC = lazy_compile(r"\s-(?:exec|ok)(?:dir)?\s")
_MAX_PROGRAM_PLACES = 32
_WRAPPERS = frozenset(
    re.findall(
        r"\S+",
        "! { bash builtin busybox caffeinate chronic chroot command coproc dash do doas else elif env eval exec fish "
        "flock function if ionice ksh nice nohup npx parallel pipenv pkexec poetry run runuser setsid sh stdbuf strace "
        "su sudo then time timeout trap unbuffer until uv uvx watch while xargs zsh",
    )
)
_WRAPPERS_WITH_OPERAND = frozenset({"chroot", "flock", "function", "su"})
"""The wrappers that take a file, a user or a similar operand before the command they run."""
_ASSIGNMENT = lazy_compile(r"[A-Za-z_]\w*\+?=")
_REDIRECTION = lazy_compile(r"\d*[<>]")
_OPTION = lazy_compile(r"-|\d*[<>]")
_DURATION = lazy_compile(r"[\d.]+[smhd]?")


def is_compound_command(command: str) -> bool:
    """Return whether a command line may run more than one program: it chains, substitutes or redirects.

    Quotes are not parsed, so a text that only quotes such a character counts too.
    """
    return _COMPOUND.search(command) is not None


def collapse_spaces(command: str) -> str:
    """Return `command` with each run of white space replaced by one space, and none at its ends."""
    return " ".join(command.split())


def command_spellings(command: str) -> Iterator[str]:
    """Yield the command line in one spelling, and each simple command in it in several spellings.

    The spellings of a simple command are: unchanged, without quotes, from each word that may be its program (after
    `VAR=x`, `sudo -u me`, `env`, `bash -c`, `find -exec` and similar), and with the name of the program instead of its
    path.
    """
    yield collapse_spaces(command)
    plain = _COMBINED_REDIRECTION.sub("", command.replace(_CONTINUED, ""))
    for text in dict.fromkeys((command, plain, _QUOTED.sub(_join_quoted, plain))):
        for piece in _SEPARATORS.split(text):
            for spelled in dict.fromkeys((piece, _QUOTES.sub("", piece))):
                for part in dict.fromkeys((spelled, *_FIND_EXEC.split(spelled)[1:])):
                    yield from _spellings_by_program(part.split())


def _join_quoted(quoted: re.Match[str]) -> str:
    """Return quoted text without word separators, for the quoted value of a variable or an option."""
    return _SEPARATING.sub("_", quoted[0])


def _spellings_by_program(words: Sequence[str]) -> Iterator[str]:
    for index in _program_places(words):
        yield " ".join(words[index:])
        name = _program_name(words[index])
        if name and name != words[index]:
            yield " ".join((name, *words[index + 1 :]))


def _program_places(words: Sequence[str]) -> Iterator[int]:
    """Yield the indexes where the program may be: the first word, and later words while the earlier ones are wrappers.

    The value of an option can't be told from a program, so both it and the word after it are yielded.
    """
    running, passed = False, 0
    for index, word in enumerate(words[:_MAX_PROGRAM_PLACES]):
        yield index
        name = _program_name(word)
        if name in _WRAPPERS or _REDIRECTION.match(word):
            running, passed = True, int(name in _WRAPPERS_WITH_OPERAND)
        elif not _ASSIGNMENT.match(word) and not (running and _is_wrapper_argument(word, words[index - 1])):
            if not passed:
                return
            passed = 0


def _is_wrapper_argument(word: str, before: str) -> bool:
    return bool(_OPTION.match(word) or _OPTION.match(before) or _DURATION.fullmatch(word))


def _program_name(program: str) -> str:
    return program.rpartition("/")[2]


Decision: TypeAlias = Literal["allow", "deny", "ask"]
"""The decision of a rule about a call: allow it without asking, deny it, or ask a person."""
_EXAMPLE = "such as `deny shell(git push*)` or `ask write_file`"
_MAX_SHOWN_CHARS = 80
_PATTERN = lazy_compile(r"([^\s()]+)\s*(?:\((.*)\))?", re.DOTALL)
_ESCAPE = lazy_compile(r"\\u([0-9a-fA-F]{4})|\\U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})")
_BEFORE_ESCAPE = lazy_compile(r"\\(?=[uU])")
_SPECIAL_IN_TOOL = lazy_compile(r"[\s()]")
_SCHEME = lazy_compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, kw_only=True)
class PermissionQuery:
    """A call as seen by the rules.

    `argument` is the object of the call, such as a command or a path; `texts` are all texts among its arguments,
    including `argument`.
    """

    tool: str
    argument: str = ""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolPattern:
    """The calls of `tool` on `argument`; `*` matches any characters, and an empty `argument` matches any call."""

    tool: str
    argument: str = ""


@dataclass(frozen=True, kw_only=True)
class PermissionRule:
    """The decision for the calls of a pattern; `reason` is shown to the model, `source` is who made the rule."""

    decision: Decision
    pattern: ToolPattern
    reason: str = ""
    source: str = ""


class _CallMatcher:
    """A call with its spellings, which are computed once for all rules, and only when a rule needs them."""

    def __init__(self, called: PermissionQuery) -> None:
        self._called = called
        self._is_command = called.tool in COMMAND_TOOLS

    def matches(self, rule: PermissionRule) -> bool:
        pattern = rule.pattern
        if not _matches_pattern(pattern.tool, self._called.tool):
            return False
        if not pattern.argument:
            return True
        return (
            self._is_permitted(pattern.argument) if rule.decision == "allow" else self._is_restricted(pattern.argument)
        )

    def _is_permitted(self, pattern: str) -> bool:
        argument = self._called.argument
        if pattern == argument:
            return True
        if not _matches_pattern(pattern, argument) or (self._is_command and is_compound_command(argument)):
            return False
        spellings = (collapse_spaces(argument),) if self._is_command else _path_spellings(argument)
        return any(_matches_pattern(pattern, spelling) for spelling in spellings)

    def _is_restricted(self, pattern: str) -> bool:
        patterns = dict.fromkeys((pattern, collapse_spaces(pattern))) if self._is_command else (pattern,)
        return any(_matches_pattern(one, text) for one in patterns for text in self._texts)

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        texts = dict.fromkeys((self._called.argument, *self._called.texts))
        return tuple(dict.fromkeys(form for text in texts for form in (text, *self._spellings(text))))

    def _spellings(self, text: str) -> Iterator[str]:
        if self._is_command:
            yield from command_spellings(text)
        else:
            for path in _path_spellings(text):
                yield path
                trimmed = path.rstrip("/")
                yield trimmed
                if trimmed:
                    # a denial of everything below a folder also applies to the folder
                    yield f"{trimmed}/"


def decide(rules: Iterable[PermissionRule], called: PermissionQuery) -> PermissionRule | None:
    """Return the rule that decides a call; None if no rule matches.

    Matching denials come first, then questions, then permissions; among equals the first rule decides.
    """
    seen = _CallMatcher(called)
    first_matches: dict[Decision, PermissionRule] = {}
    for rule in rules:
        if rule.decision not in first_matches and seen.matches(rule):
            first_matches[rule.decision] = rule
    return first_matches.get("deny") or first_matches.get("ask") or first_matches.get("allow")


def has_restriction(rules: Iterable[PermissionRule], tool: str) -> bool:
    """Return whether a rule denies, or asks about, some calls of `tool` depending on their argument."""
    return any(
        rule.decision != "allow" and rule.pattern.argument and _matches_pattern(rule.pattern.tool, tool)
        for rule in rules
    )


def parse_rule(text: str, *, reason: str = "", source: str = "") -> PermissionRule:
    """Parse a rule such as `deny shell(git push*)`. Raises: InvalidSetting, with the reason."""
    text = _check_text(text)
    decision_word, rest = (*text.split(None, 1), "", "")[:2]
    decision = next((each for each in _decisions() if each == decision_word.casefold()), None)
    if decision is None:
        raise InvalidSetting(
            f"A permission rule begins with allow, ask or deny, {_EXAMPLE}: not {_quote_rejected(text)}."
        )
    return PermissionRule(decision=decision, pattern=parse_pattern(rest), reason=reason, source=source)


def render_rule(rule: PermissionRule) -> str:
    """Return the text that `parse_rule` reads, without `why` and `source`."""
    return f"{rule.decision} {render_pattern(rule.pattern)}"


def parse_pattern(text: str) -> ToolPattern:
    """Parse the pattern of a rule, such as `shell(git push*)`. Raises: InvalidSetting."""
    text = _check_text(text)
    matched = _PATTERN.fullmatch(text.strip())
    if matched is None:
        raise InvalidSetting(
            "A permission rule names a tool, and in parentheses after it what the call acts on, with `*` for anything, "
            f"{_EXAMPLE}: not {_quote_rejected(text)}."
        )
    if matched[2] == "":
        raise InvalidSetting(
            f"A permission rule has something in its parentheses: {_quote_rejected(text)} has nothing there. Leave the "
            f"parentheses out to mean every call, {_EXAMPLE}."
        )
    return ToolPattern(tool=_unescape(matched[1]), argument=_unescape(matched[2] or ""))


def render_pattern(pattern: ToolPattern) -> str:
    """Return the text that `parse_pattern` reads; only the name of the tool if the pattern matches any call."""
    tool = _SPECIAL_IN_TOOL.sub(lambda found: _escape_character(found[0]), _escape(pattern.tool))
    return f"{tool}({_escape(pattern.argument)})" if pattern.argument else tool


def collect_argument_texts(arguments: object) -> Sequence[str]:
    """Return every text among the arguments of a call, at any depth, in order, without the names of arguments."""
    pending = [*reversed([*arguments.values()])] if isinstance(arguments, Mapping) else [arguments]
    texts: list[str] = []
    while pending:
        match pending.pop():
            case str() as text:
                texts.append(text)
            case Mapping() as fields:
                pending.extend(part for key, value in reversed([*fields.items()]) for part in (value, key))
            case list() | tuple() as items:
                pending.extend(reversed(items))
    return tuple(texts)


def _matches_pattern(pattern: str, text: str) -> bool:
    """Return whether `pattern` matches the whole text. Each part between two stars matches at its first occurrence."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    offset, end = len(first), len(text) - len(last)
    if offset > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        position = text.find(part, offset, end)
        if position < 0:
            return False
        offset = position + len(part)
    return True


def _path_spellings(text: str) -> Iterator[str]:
    """Yield `text` as a normalized path; a path below its starting folder is also yielded with `./` before it."""
    scheme = _SCHEME.match(text)
    start = scheme[0] if scheme else ""
    rest = text[len(start) :]
    if not rest:
        yield text
        return
    path = posixpath.normpath(rest)
    # two slashes at the start are the same as one on every supported system
    path = f"/{path.lstrip('/')}" if path.startswith("/") else path
    path = f"{path}/" if rest.endswith("/") and path != "/" else path
    yield start + path
    if not start and not path.startswith(("/", "../")) and path != "..":
        yield f"./{path}"


def _check_text(text: object) -> str:
    """Return the text of a rule. Raises: InvalidSetting if it is not a text, since callers may not be type-checked."""
    if not isinstance(text, str):
        raise InvalidSetting(f"A permission rule is a line of text, {_EXAMPLE}: not {repr(text)[:_MAX_SHOWN_CHARS]}.")
    return text


def _decisions() -> tuple[Decision, ...]:
    return get_args(Decision)


def _escape(text: str) -> str:
    text = _BEFORE_ESCAPE.sub(r"\\u005c", text)
    return (
        text
        if text.isprintable()
        else "".join(each if each.isprintable() else _escape_character(each) for each in text)
    )


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), text)


def _escape_character(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _quote_rejected(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…")
