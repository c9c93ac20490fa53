"""Commands as rules see them: a command line in all the spellings under which a denial may name it. Pure.

A shell has more ways to say a thing than can be listed, so what is here finds the usual ones and no others: chains,
substitutions, quotes, line continuations, programs that run another one. It is a guard rail against an agent's
mistakes, not a sandbox against its ill will.

Invariant: the work is linear in the length of a command, whatever stands in it.
"""

import re
from collections.abc import Iterator, Sequence

__all__ = ["COMMAND_TOOLS", "command_spellings", "is_compound_command", "collapse_spaces"]

COMMAND_TOOLS = frozenset({"bash", "shell"})
"""The tools whose texts are command lines."""

_COMPOUND = re.compile(r"[;&|`<>\n]|\$\(")
_SEPARATORS = re.compile(r"[;&|`()\n]+")
_QUOTES = re.compile(r"[\"'\\]+")
_QUOTED = re.compile(r"""\\.|"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^']*+'""", re.DOTALL)
_SEPARATING = re.compile(r"[\s;&|`()<>]")
_CONTINUED = "\\\n"
_COMBINED_REDIRECTION = re.compile(r"(?<=[<>])[&|]")
_FIND_EXEC = re.compile(r"\s-(?:exec|ok)(?:dir)?\s")
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
"""Those of them that name a file, a user or the like before what they run."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_REDIRECTION = re.compile(r"\d*[<>]")
_OPTION = re.compile(r"-|\d*[<>]")
_DURATION = re.compile(r"[\d.]+[smhd]?")


def is_compound_command(command: str) -> bool:
    """Tell whether a command line may do more than run one program: it chains, substitutes or redirects.

    Quotes are not looked into, so a text that only quotes such a character counts too.
    """
    return _COMPOUND.search(command) is not None


def collapse_spaces(command: str) -> str:
    """Return `command` with each run of white space as one blank, and none at its ends."""
    return " ".join(command.split())


def command_spellings(command: str) -> Iterator[str]:
    """Give the command line in one spelling, and each simple command in it in several.

    A simple command is given as it is, without quotes, from each word on that may be its program (behind `VAR=x`,
    `sudo -u me`, `env`, `bash -c`, `find -exec` and the like), and with its program by name for one by path.
    """
    yield collapse_spaces(command)
    plain = _COMBINED_REDIRECTION.sub("", command.replace(_CONTINUED, ""))
    for text in dict.fromkeys((command, plain, _QUOTED.sub(_join_quoted, plain))):
        for piece in _SEPARATORS.split(text):
            for spelled in dict.fromkeys((piece, _QUOTES.sub("", piece))):
                for part in dict.fromkeys((spelled, *_FIND_EXEC.split(spelled)[1:])):
                    yield from _spellings_by_program(part.split())


def _join_quoted(quoted: re.Match[str]) -> str:
    """Return what is quoted without what would part it, for the quoted value of a variable or of an option."""
    return _SEPARATING.sub("_", quoted[0])


def _spellings_by_program(words: Sequence[str]) -> Iterator[str]:
    for place in _program_places(words):
        yield " ".join(words[place:])
        name = _program_name(words[place])
        if name and name != words[place]:
            yield " ".join((name, *words[place + 1 :]))


def _program_places(words: Sequence[str]) -> Iterator[int]:
    """Give the places where the program may stand: the first one, and as long as what stands there runs another.

    The value of an option can't be told from a program, so both it and what follows it are places.
    """
    running, passed = False, 0
    for place, word in enumerate(words[:_MAX_PROGRAM_PLACES]):
        yield place
        name = _program_name(word)
        if name in _WRAPPERS or _REDIRECTION.match(word):
            running, passed = True, int(name in _WRAPPERS_WITH_OPERAND)
        elif not _ASSIGNMENT.match(word) and not (running and _is_wrapper_argument(word, words[place - 1])):
            if not passed:
                return
            passed = 0


def _is_wrapper_argument(word: str, before: str) -> bool:
    return bool(_OPTION.match(word) or _OPTION.match(before) or _DURATION.fullmatch(word))


def _program_name(program: str) -> str:
    return program.rpartition("/")[2]
