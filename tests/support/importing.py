"""Write a history to a file and read it back, with the problems beside the messages."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ricordo import read_history
from ricordo.importers import ImportedMemory, ImportedMessage, ImportProblem, ImportSource, find_sources, read_items

__all__ = ["Taken", "json_lines", "take", "take_all"]


@dataclass(kw_only=True)
class Taken:
    """What came out of a file."""

    imported: list[ImportedMessage] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)
    memories: list[ImportedMemory] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        return [each.message.text for each in self.imported]

    @property
    def told(self) -> list[str]:
        """The texts of the memories."""
        return [each.text for each in self.memories]

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


def take_all(path: Path, content: object = None) -> Taken:
    """Read everything in a file, folder or archive, after writing `content` there if it is given.

    What is neither text nor bytes is written as JSON. `formats` has the format of each file that has one, by its name.
    """
    if content is not None:
        data = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    taken = Taken()
    for found in find_sources(ImportSource(path, on_problem=taken.problems.append)):
        if found.form is None:
            continue
        taken.formats[found.source.filename] = found.form.name
        for item in read_items(found.source, found.form):
            if isinstance(item, ImportedMessage):
                taken.imported.append(item)
            else:
                taken.memories.append(item)
    return taken


def json_lines(records: Sequence[object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)
