"""Write a history to a file and read it back, with the problems beside the messages."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ricordo import read_history
from ricordo.importers import ImportedMessage, ImportProblem
from ricordo.messages import JsonValue

__all__ = ["Taken", "json_lines", "take"]


@dataclass(kw_only=True)
class Taken:
    """What came out of a file."""

    imported: list[ImportedMessage] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [each.message.text for each in self.imported]

    @property
    def sessions(self) -> list[str]:
        return [each.session for each in self.imported]

    @property
    def lines_with_problems(self) -> list[int]:
        return [problem.line for problem in self.problems if problem.skipped]

    @property
    def notes(self) -> list[str]:
        return [problem.reason for problem in self.problems if not problem.skipped]


def take(path: Path, content: str | bytes | None = None) -> Taken:
    """Write `content` to `path` when there is some, and read the history in it."""
    if content is not None:
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    taken = Taken()
    taken.imported.extend(read_history(path, on_problem=taken.problems.append))
    return taken


def json_lines(records: Sequence[JsonValue]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)
