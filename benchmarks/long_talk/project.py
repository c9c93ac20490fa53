"""A project that exists only as long as a conversation: files that are read, searched and written, and its logs."""

from collections.abc import Callable
from random import Random

__all__ = ["Project"]

_NOUNS = (
    "order",
    "parcel",
    "ledger",
    "invoice",
    "stock",
    "label",
    "route",
    "refund",
    "price",
    "tariff",
    "batch",
    "audit",
)
_VERBS = ("load", "store", "check", "merge", "print", "count", "split", "parse", "send", "drop", "match", "close")
_LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "WARN")


class Project:
    """Files by path, and what tools say about them; the same `random` makes the same project."""

    def __init__(self, random: Random, *, files: int = 40) -> None:
        """Make so many files of 1 to 9 KB."""
        self._random = random
        names = random.sample([f"src/{noun}/{verb}.py" for noun in _NOUNS for verb in _VERBS], files)
        self._files = {name: self._code(random.randint(1_000, 9_000)) for name in names}
        self._open: list[str] = []

    def read(self) -> tuple[str, str]:
        """Return the path of a file and its text; half of the time one of those that were read lately."""
        known = self._open[-4:]
        again = bool(known) and self._random.random() < 0.5
        path = self._random.choice(known if again else sorted(self._files))
        self._open.append(path)
        return path, self._files[path]

    def write(self) -> tuple[str, str]:
        """Return the path and the new text of a file, 2 to 10 KB; who reads it next sees that."""
        path = self._random.choice(sorted(self._files))
        self._files[path] = self._code(self._random.randint(2_000, 10_000))
        return path, self._files[path]

    def found(self) -> tuple[str, str]:
        """Return a word and where it stands in the files, 5 to 60 lines."""
        word = self._random.choice(_NOUNS)
        paths = self._random.choices(sorted(self._files), k=self._random.randint(5, 60))
        return word, "\n".join(f"{path}:{self._random.randint(1, 300)}: {self._line()}" for path in paths)

    def log(self, characters: int) -> str:
        """Return the output of a command, about so long."""
        return self._filled(characters, self._log_line)

    def _code(self, characters: int) -> str:
        return self._filled(characters, self._line)

    def _filled(self, characters: int, line: Callable[[], str]) -> str:
        lines: list[str] = []
        while characters > 0:
            lines.append(line())
            characters -= len(lines[-1]) + 1
        return "\n".join(lines)

    def _line(self) -> str:
        pick, number = self._random.choice, self._random.randint
        given = f"self.{pick(_NOUNS)}, {pick(_NOUNS)}s[{number(0, 999)}]"
        return f"    {pick(_NOUNS)}_{number(1, 99)} = {pick(_VERBS)}_{pick(_NOUNS)}({given})"

    def _log_line(self) -> str:
        pick, number = self._random.choice, self._random.randint
        clock = f"2026-03-14T{number(0, 23):02}:{number(0, 59):02}:{number(0, 59):02}Z"
        what = f"{pick(_NOUNS)}.{pick(_VERBS)}: {pick(_NOUNS)} {number(1, 99_999)}"
        return f"{clock} {pick(_LEVELS):5} {what} took {number(1, 900)} ms"
