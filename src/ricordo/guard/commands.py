"""Commands as rules see them: a command line in all the spellings under which a denial may name it. Pure.

A shell has more ways to say a thing than can be listed, so what is here finds the usual ones and no others: chains,
substitutions, quotes, line continuations, programs that run another one. It is a guard rail against an agent's
mistakes, not a sandbox against its ill will.

Invariant: the work is linear in the length of a command, whatever stands in it.
"""

import re
from collections.abc import Iterator, Sequence

__all__ = ["COMMAND_TOOLS", "command_forms", "does_more", "one_blank"]

COMMAND_TOOLS = frozenset({"bash", "shell"})
"""The tools whose texts are command lines."""

_MORE = re.compile(r"[;&|`<>\n]|\$\(")
_BETWEEN = re.compile(r"[;&|`()\n]+")
_QUOTES = re.compile(r"[\"'\\]+")
_QUOTED = re.compile(r"""\\.|"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^']*+'""", re.DOTALL)
_PARTING = re.compile(r"[\s;&|`()<>]")
_CONTINUED = "\\\n"
_BOTH = re.compile(r"(?<=[<>])[&|]")
_CARRIED_OUT = re.compile(r"\s-(?:exec|ok)(?:dir)?\s")
_MOST_STARTS = 32
_RUNNERS = frozenset(
    re.findall(
        r"\S+",
        "! { bash builtin busybox caffeinate chronic chroot command coproc dash do doas else elif env eval exec fish "
        "flock function if ionice ksh nice nohup npx parallel pipenv pkexec poetry run runuser setsid sh stdbuf strace "
        "su sudo then time timeout trap unbuffer until uv uvx watch while xargs zsh",
    )
)
_RUNNERS_ON = frozenset({"chroot", "flock", "function", "su"})
"""Those of them that name a file, a user or the like before what they run."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_REDIRECTION = re.compile(r"\d*[<>]")
_OPTION = re.compile(r"-|\d*[<>]")
_NUMBER = re.compile(r"[\d.]+[smhd]?")


def does_more(command: str) -> bool:
    """Tell whether a command line may do more than run one program: it chains, substitutes or redirects.

    Quotes are not looked into, so a text that only quotes such a character counts too.
    """
    return _MORE.search(command) is not None


def one_blank(command: str) -> str:
    """Return `command` with each run of white space as one blank, and none at its ends."""
    return " ".join(command.split())


def command_forms(command: str) -> Iterator[str]:
    """Give the command line in one spelling, and each simple command in it in several.

    A simple command is given as it is, without quotes, from each word on that may be its program (behind `VAR=x`,
    `sudo -u me`, `env`, `bash -c`, `find -exec` and the like), and with its program by name for one by path.
    """
    yield one_blank(command)
    plain = _BOTH.sub("", command.replace(_CONTINUED, ""))
    for text in dict.fromkeys((command, plain, _QUOTED.sub(_one_word, plain))):
        for piece in _BETWEEN.split(text):
            for spelled in dict.fromkeys((piece, _QUOTES.sub("", piece))):
                for part in dict.fromkeys((spelled, *_CARRIED_OUT.split(spelled)[1:])):
                    yield from _from_programs(part.split())


def _one_word(quoted: re.Match[str]) -> str:
    """Return what is quoted without what would part it, for the quoted value of a variable or of an option."""
    return _PARTING.sub("_", quoted[0])


def _from_programs(words: Sequence[str]) -> Iterator[str]:
    for place in _program_places(words):
        yield " ".join(words[place:])
        name = _name(words[place])
        if name and name != words[place]:
            yield " ".join((name, *words[place + 1 :]))


def _program_places(words: Sequence[str]) -> Iterator[int]:
    """Give the places where the program may stand: the first one, and as long as what stands there runs another.

    The value of an option can't be told from a program, so both it and what follows it are places.
    """
    running, passed = False, 0
    for place, word in enumerate(words[:_MOST_STARTS]):
        yield place
        name = _name(word)
        if name in _RUNNERS or _REDIRECTION.match(word):
            running, passed = True, int(name in _RUNNERS_ON)
        elif not _ASSIGNMENT.match(word) and not (running and _leads_on(word, words[place - 1])):
            if not passed:
                return
            passed = 0


def _leads_on(word: str, before: str) -> bool:
    return bool(_OPTION.match(word) or _OPTION.match(before) or _NUMBER.fullmatch(word))


def _name(program: str) -> str:
    return program.rpartition("/")[2]
