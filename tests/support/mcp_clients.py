"""What clients of the MCP server read in a result."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent

__all__ = ["Connected", "find_text", "is_there", "text_of", "value_of"]

Connected = Callable[..., AbstractAsyncContextManager[Client]]


def text_of(result: CallToolResult) -> str:
    """Return the one text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def value_of(result: CallToolResult) -> Any:
    """Return the typed result of a call that did not fail."""
    assert not result.is_error, text_of(result)
    return result.structured_content


def is_there(path: Path) -> bool:
    """Return whether a file or folder exists."""
    return path.exists()


def find_text(folder: Path, text: str) -> list[Path]:
    """Return the files below a folder that hold a text."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
