"""A root inside a working directory, on a disk, and file tools over both, used as an agent uses them."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from ricordo.agent import Approval, Tool, ToolContext
from ricordo.agent.tools import file_tools
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import ToolFailed
from ricordo.guard import Redactor
from ricordo.scope import Scope
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.workspace import ChangeSets

__all__ = ["CONTEXT", "Desk", "Desks", "Person"]

CONTEXT = ToolContext(call_id="c1", scope=Scope(project="shop"), agent="main", session="s1")


class Person:
    """Is asked, remembers what was asked, and always answers the same."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[Approval] = []

    async def __call__(self, asked: Approval) -> bool:
        self.asked.append(asked)
        return self.answer


@dataclasses.dataclass(kw_only=True)
class Desk:
    """Tools over a root inside a working directory, as an agent has them."""

    folder: Path
    root: LocalFiles
    changes: ChangeSets
    tools: Sequence[Tool]

    async def use(self, name: str, **arguments: object) -> str:
        """Call a tool, and return what the model is told; an error begins with `failed: `."""
        [found] = [tool for tool in self.tools if tool.spec.name == name]
        try:
            return str(await found(arguments, CONTEXT))  # type: ignore[arg-type]
        except ToolFailed as error:
            return f"failed: {error}"

    def tree(self) -> dict[str, bytes]:
        """Return every file of the working directory, but for those of the root in it."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and ".ricordo" not in path.parts
        }


class Desks:
    """Makes desks in a folder of the test."""

    def __init__(self, folder: Path, name: str = ".ricordo") -> None:
        """The root in the folder has this `name`."""
        self.name = name
        self.folder = folder / "project"
        self.folder.mkdir()

    def __call__(self, person: Person | None = None, *, disk: Disk | None = None, **options: object) -> Desk:
        """Return a desk in the same folder; `options` go to `file_tools`."""
        root = LocalFiles(self.folder / self.name, disk=disk)
        working = LocalFiles(self.folder, locks=self.folder / self.name / "locks" / "working", disk=disk)
        clock = SystemClock()
        changes = ChangeSets(root, clock=clock, ids=MonotonicIds(clock))
        given: dict[str, object] = {"changes": changes, "approve": person, "redactor": Redactor(bytes(32))}
        given |= {"root": self.folder / self.name, "folder": self.folder}
        tools = file_tools(root, working, **(given | options))  # type: ignore[arg-type]
        return Desk(folder=self.folder, root=root, changes=changes, tools=tools)

    def put(self, path: str, content: str | bytes) -> Path:
        """Write a file below the folder as a person would, whatever the umask is."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        os.chmod(target, 0o644)
        return target
