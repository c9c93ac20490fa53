"""write_file and edit_file: a whole file, or one text in the place of another that occurs exactly once."""

from typing import Annotated

from ricordo.errors import EditRefused, FileMissing
from ricordo.files.paths import safe_path
from ricordo.guard.rules import SECRET_MARK
from ricordo.tools.contract import Tool, ToolContext
from ricordo.tools.file_changes import FileWriter
from ricordo.tools.file_roots import FileRoots, LocatedPath
from ricordo.tools.function import tool
from ricordo.workspace.documents import TextReplacement

__all__ = ["edit_file_tool", "write_file_tool"]


def write_file_tool(roots: FileRoots, writes: FileWriter) -> Tool:
    """Return the tool that writes whole files."""

    async def write_file(
        path: Annotated[str, "the file; a leading slash means the workspace, else the working directory"],
        content: Annotated[str, "all that the file is to hold"],
        context: ToolContext,
    ) -> str:
        """Write a file, a new one or in the place of what is there.

        In the working directory a person is asked first. In the workspace, plans and topics can be written.
        """
        located = await roots.locate(path)
        data = writes.redact_for_display(located, content).encode("utf-8", "surrogatepass")
        return await writes.write(
            located,
            lambda _: data,
            tool="write_file",
            folder=roots.folder,
            approved=_is_approved(context, located, path),
        )

    return tool(write_file)


def edit_file_tool(roots: FileRoots, writes: FileWriter) -> Tool:
    """Return the tool that replaces a text in a file."""

    async def edit_file(
        path: Annotated[str, "the file; a leading slash means the workspace, else the working directory"],
        old_text: Annotated[str, "the text to replace, exactly as it stands in the file"],
        new_text: Annotated[str, "the text to put there"],
        context: ToolContext,
        all: Annotated[bool, "replace every occurrence, where there may be several"] = False,  # noqa: A002  (the model's)
    ) -> str:
        """Replace a text in a file. It must occur exactly once, unless all is true.

        In the working directory a person is asked first. In the workspace, plans and topics can be edited.
        """
        located = await roots.locate(path)
        # what is put there is looked at alone too, before it touches other words
        old, new = writes.redact_for_display(located, old_text), writes.redact_for_display(located, new_text)
        replacement = TextReplacement(old=old, new=new, every=all)

        def make_content(data: bytes | None) -> bytes:
            if data is None:
                raise FileMissing(f"There is no file {located.display_path}.")
            try:
                return replacement.apply_to(data, located.display_path)[0]
            except EditRefused as error:
                if SECRET_MARK.search(old) is None:
                    raise
                raise EditRefused(
                    f"{error} It holds a mark, which stands for a secret: quote what is beside it, or mark and line as "
                    "read_file shows them."
                ) from error

        return await writes.write(
            located, make_content, tool="edit_file", folder=roots.folder, approved=_is_approved(context, located, path)
        )

    return tool(edit_file)


def _is_approved(context: ToolContext, located: LocatedPath, path: str) -> bool:
    """Tell whether a rule lets the change through: it speaks of the path, and not of what a link there leads to."""
    return context.approved and located.inside == safe_path(path)
