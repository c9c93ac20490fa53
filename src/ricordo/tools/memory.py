"""Memory tools: what the model may ask of the memory documents, each answered by a tool result."""

from ricordo.errors import RicordoError
from ricordo.files import FileStore
from ricordo.messages import Text, ToolResult
from ricordo.workspace.documents import memory_lines

__all__ = ["memory_get"]


async def memory_get(files: FileStore, path: str, start_line: int = 1, end_line: int | None = None) -> ToolResult:
    """Return lines `start_line` to `end_line` of a memory document, 1-based and inclusive; to its end when None.

    Any other path, a line out of range and trouble of the disk are error results that say what to do. The result has
    no call id yet.
    """
    try:
        lines = await memory_lines(files, path, start_line, end_line)
    except RicordoError as error:
        return _result(str(error), is_error=True)
    return _result(lines.text, is_error=False)


def _result(text: str, *, is_error: bool) -> ToolResult:
    return ToolResult(call_id="", name="memory_get", parts=(Text(text=text),), is_error=is_error)
