"""The file tools' view of the workspace: create what is not there, edit what is unique, read by lines.

These are the operations that an agent's tools and people's commands share; each refuses rather than guesses.
"""

from dataclasses import dataclass

from ricordo.errors import EditRefused, InvalidInput, PathRefused
from ricordo.files import FileStore
from ricordo.files.paths import safe_path
from ricordo.workspace.layout import WORKSPACE, is_memory

__all__ = ["Lines", "create_document", "edit_document", "memory_lines"]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Lines `start` to `end` of a document, 1-based and inclusive, and how many the document has."""

    path: str
    start: int
    end: int
    total: int
    text: str


async def create_document(files: FileStore, path: str, content: str) -> str:
    """Create a file of the workspace, durably, and return its path below the workspace. Raises `AlreadyExists`."""
    inside = safe_path(path)
    await files.create(f"{WORKSPACE}/{inside}", content.encode("utf-8", "surrogatepass"))
    return inside


async def edit_document(files: FileStore, path: str, old: str, new: str, *, replace_all: bool = False) -> int:
    """Replace the text `old`, which must occur once unless `replace_all`, and return how often it was replaced.

    Raises: EditRefused if it is empty, missing or not unique; FileMissing; VersionConflict if the file changed
    meanwhile.
    """
    inside = f"{WORKSPACE}/{safe_path(path)}"
    stored = await files.read(inside)
    wanted = old.encode("utf-8", "surrogatepass")
    count = stored.data.count(wanted) if wanted else 0
    if count == 0:
        raise EditRefused(f"The text to replace does not occur in {path}.")
    if count > 1 and not replace_all:
        raise EditRefused(f"The text to replace occurs {count} times in {path}: quote more of it, or ask for all.")
    data = stored.data.replace(wanted, new.encode("utf-8", "surrogatepass"))
    await files.replace(inside, data, expected=stored.version)
    return count


async def memory_lines(files: FileStore, path: str, start: int = 1, end: int | None = None) -> Lines:
    """Return lines of a memory document: curated memory, a ledger, a topic, an archive or a long entry.

    `end` beyond the document means its last line. Raises: PathRefused for any other file; InvalidInput for a range that
    starts below 1, after its end or after the document; FileMissing.
    """
    inside = safe_path(path)
    if not is_memory(f"{WORKSPACE}/{inside}"):
        raise PathRefused(f"{path} is no memory document: those are MEMORY.md and the Markdown files below memory/.")
    if start < 1 or (end is not None and end < start):
        raise InvalidInput(f"Lines count from 1 and a range ends after its start: {start} to {end} is none.")
    data = (await files.read(f"{WORKSPACE}/{inside}")).data
    lines = data.decode("utf-8", "replace").split("\n")
    total = len(lines) - (lines[-1] == "")
    if start > max(total, 1):
        raise InvalidInput(f"{path} has {total} lines; line {start} is past its end.")
    last = min(end or total, total)
    return Lines(path=inside, start=start, end=last, total=total, text="\n".join(lines[start - 1 : last]))
