"""write_file and edit_file: a write leaves either the whole new file or the old one.

In the workspace a write is one reversible change set, and only plans, topics and MEMORY.md can be written. In the
working directory a person approves the change first, unless a rule allows it; without an approval handler nothing is
written.
"""

import difflib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import anyio.to_thread

from ricordo.agent.tools.contract import Approval, ApprovalHandler, Tool, ToolContext
from ricordo.agent.tools.file_roots import FileRoots, LocatedPath
from ricordo.agent.tools.function import tool
from ricordo.concurrency import run_to_completion
from ricordo.errors import EditRefused, FileMissing, PathRefused, ToolFailed
from ricordo.guard import Redactor
from ricordo.guard.scanner import SECRET_MARK
from ricordo.lazy import lazy_compile
from ricordo.storage import ABSENT, StoredFile
from ricordo.storage.contract import safe_path
from ricordo.workspace.documents import IndexBounds, TextReplacement
from ricordo.workspace.history.change_sets import ChangeSets, Edit
from ricordo.workspace.layout import MEMORY_PATH, WORKSPACE, is_memory
from ricordo.workspace.redaction import find_added_orders

__all__ = ["MAX_WRITE_BYTES", "FileWriter", "edit_file_tool", "unified_diff", "write_file_tool"]


MAX_WRITE_BYTES = 2 * 1024 * 1024
"""Maximum size in bytes of a file that a tool writes or overwrites."""
_WRITABLE_PATHS = lazy_compile(r"plans/.+|MEMORY\.md|memory/topics/[^/]+\.md")
_TOPIC_ADVICE = "Write what is longer to /memory/topics/NAME.md, and name that file in one line of /MEMORY.md."
_MAX_COMPARED_LINES = 10_000
_MakeContent = Callable[[bytes | None], bytes]


_ORDERS = (
    "Nothing was written: what this says may not be meant for you, because {reason}. Save it with `remember` instead, "
    "where it waits until a person accepts it."
)


class FileWriter:
    """Writes files for tools."""

    def __init__(
        self,
        *,
        changes: ChangeSets | None,
        approve: ApprovalHandler | None,
        redactor: Redactor,
        bounds: IndexBounds | None = None,
    ) -> None:
        """Write to the workspace through `changes`, without secrets, and elsewhere after `approve` has allowed it.

        `bounds` limit MEMORY.md; the default is the default of the settings.
        """
        self._bounds = bounds or IndexBounds()
        self._changes = changes
        self._approve = approve
        self._redactor = redactor

    async def write(
        self, located: LocatedPath, make: _MakeContent, *, tool: str, folder: Path | None, approved: bool = False
    ) -> str:
        """Write the result of `make` for the current bytes (None for no file), and return what was done in words.

        `make` may be called again after a concurrent change. With `approved` nobody is asked. Raises: ToolFailed for a
        change that is not allowed or not approved; IndexTooLarge; the errors of `make`; StorageFull and related errors.
        On an error nothing is written.
        """
        if located.in_workspace:
            return await self._write_workspace(located, make, tool=tool)
        return await self._write_working(located, make, tool=None if approved else tool, folder=folder)

    async def _write_workspace(self, located: LocatedPath, make: _MakeContent, *, tool: str) -> str:
        _check_workspace(located)
        if self._changes is None:
            raise ToolFailed("The workspace can only be read here.")
        edits: list[Edit] = []

        async def plan() -> list[Edit]:
            stored = await _read_stored(located)
            edits[:] = [self._build_edit(located, stored, make)]
            return edits

        if (edit := (await plan())[0]).data == await _read_data(located):
            return f"{located.display_path} is so already; nothing was written."
        change = await self._changes.rebase(plan, act="tool", who="agent", why=f"{tool} {located.display_path}")
        return f"{located.display_path} was {_describe_edit(edit)}, as change {change.id}, which can be undone."

    def redact_for_display(self, located: LocatedPath, text: str) -> str:
        """Return a text as tools show it in a file of the workspace: without its secrets."""
        return self._redactor.clean(text) if located.in_workspace else text

    def _build_edit(self, located: LocatedPath, stored: StoredFile | None, make: _MakeContent) -> Edit:
        redacted = self._redactor.clean_bytes(stored.data) if stored else None
        content = _check_size(make(redacted)).decode("utf-8", "surrogateescape")
        data = self._redactor.clean(content).encode("utf-8", "surrogateescape")
        if located.path == MEMORY_PATH:
            self._bounds.check(stored.data if stored else b"", data, advice=_TOPIC_ADVICE)
        if is_memory(located.path) and (reason := find_added_orders(stored.data if stored else b"", data)):
            raise ToolFailed(_ORDERS.format(reason=reason))
        return Edit(path=located.path, expected_hash=stored.version if stored else ABSENT, data=data)

    async def _write_working(
        self, located: LocatedPath, make: _MakeContent, *, tool: str | None, folder: Path | None
    ) -> str:
        """Write a file after asking a person for approval of `tool`; with None nobody is asked."""
        if any(part.casefold() == ".git" for part in located.relative_path.split("/")):
            raise PathRefused(f"{located.display_path} belongs to git: tools don't write there.")
        stored = await _read_stored(located)
        before = stored.data if stored else None
        data = _check_size(self._make_with_secrets(make, before))
        _check_marks(located, before, data)
        if data == before:
            return f"{located.display_path} is so already; nothing was written."
        edit = Edit(path=located.path, expected_hash=stored.version if stored else ABSENT, data=data)
        if tool is not None:
            await self._ask_approval(tool, located, before, data)
        await run_to_completion(partial(_write_with_mode, located, edit, data, folder))
        return f"{located.display_path} was {_describe_edit(edit)}."

    def _make_with_secrets(self, make: _MakeContent, before: bytes | None) -> bytes:
        """Return the result of `make` for a file shown with marks, with its secrets restored."""
        if before is None or (redacted := self._redactor.clean_bytes(before)) is before:
            return make(before)
        try:
            edited = make(before)
        except EditRefused:
            edited = make(redacted)
        text, original = (data.decode("utf-8", "surrogateescape") for data in (edited, before))
        return self._redactor.restore(text, original).encode("utf-8", "surrogateescape")

    async def _ask_approval(self, tool: str, located: LocatedPath, before: bytes | None, data: bytes) -> None:
        if self._approve is None:
            raise ToolFailed(
                f"{located.display_path} lies in the working directory, where writing needs a person's "
                f"approval, and there is"
                " nobody to ask: nothing was written. Plans can be written to the workspace, such as /plans/next.md."
            )
        change = await anyio.to_thread.run_sync(unified_diff, before, data, located.display_path)
        act = "create" if before is None else "change"
        if not await self._approve(Approval(tool=tool, action=act, target=located.display_path, change=change)):
            raise ToolFailed(f"The change of {located.display_path} was not approved: nothing was written.")


def unified_diff(before: bytes | None, after: bytes, name: str) -> str:
    """Return the whole change as a unified diff; a short description if a side is not UTF-8 text."""
    try:
        old, new = ((data or b"").decode() for data in (before, after))
    except UnicodeDecodeError:
        return f"{name} is not a text: {len(before or b''):,} bytes become {len(after):,}.\n"
    start = "/dev/null" if before is None else f"a/{name}"
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(old_lines) + len(new_lines) <= _MAX_COMPARED_LINES:
        lines = [*difflib.unified_diff(old_lines, new_lines, start, f"b/{name}")]
    else:
        lines = _one_hunk(old_lines, new_lines, start, f"b/{name}")
    terminated = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(terminated)


def _one_hunk(old_lines: Sequence[str], new_lines: Sequence[str], start: str, end: str) -> list[str]:
    """Return the diff as one hunk from the first to the last difference, in linear time."""
    prefix_length = len([*takewhile(lambda pair: pair[0] == pair[1], zip(old_lines, new_lines, strict=False))])
    ending = zip(reversed(old_lines[prefix_length:]), reversed(new_lines[prefix_length:]), strict=False)
    suffix_length = len([*takewhile(lambda pair: pair[0] == pair[1], ending)])
    removed, added = (
        old_lines[prefix_length : len(old_lines) - suffix_length],
        new_lines[prefix_length : len(new_lines) - suffix_length],
    )
    # A side of a hunk without lines names the line before it.
    first, second = prefix_length + bool(removed), prefix_length + bool(added)
    return [
        f"--- {start}\n",
        f"+++ {end}\n",
        f"@@ -{first},{len(removed)} +{second},{len(added)} @@\n",
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
    ]


def _check_marks(located: LocatedPath, before: bytes | None, data: bytes) -> None:
    """Raise ToolFailed for a new mark that the file does not contain: it stands for a secret from elsewhere."""
    known_marks = set(SECRET_MARK.findall((before or b"").decode("utf-8", "replace")))
    new_mark = next(
        (mark for mark in SECRET_MARK.findall(data.decode("utf-8", "replace")) if mark not in known_marks), ""
    )
    if new_mark:
        raise ToolFailed(
            f"{new_mark} stands for a secret that is not in {located.display_path} and is not known here: nothing "
            f"was written. "
            "Leave the secret out, or let a person write it."
        )


def _check_workspace(located: LocatedPath) -> None:
    inside = located.relative_path
    if located.is_shared:
        raise PathRefused(
            f"{located.display_path} is shared by the project, and tools only read that: a person saves for "
            f"the project, with"
            " `ricordo remember --shared`."
        )
    if _WRITABLE_PATHS.fullmatch(inside):
        return
    if is_memory(f"{WORKSPACE}/{inside}") or inside.startswith(("memory/", "profile.json")):
        reason = "what is worth keeping is saved with `remember`"
    elif inside.startswith(("agents/", "sessions/", "large_tool_results/")):
        reason = "it is a record of what happened"
    elif inside.startswith("rules/"):
        reason = "rules are written by people"
    else:
        reason = "notes of your own belong below /plans"
    raise PathRefused(
        f"{located.display_path} is not a tool's to write: {reason}. Tools write to /plans, /memory/topics/*.md "
        f"and /MEMORY.md."
    )


def _check_size(data: bytes) -> bytes:
    if len(data) > MAX_WRITE_BYTES:
        raise ToolFailed(f"A tool writes at most {MAX_WRITE_BYTES:,} bytes, this file would have {len(data):,}.")
    return data


async def _read_stored(located: LocatedPath) -> StoredFile | None:
    info = await located.files.info(located.path)
    if info is not None and info.size > MAX_WRITE_BYTES:
        raise ToolFailed(
            f"{located.display_path} has {info.size:,} bytes: tools change files of at most {MAX_WRITE_BYTES:,}."
        )
    try:
        return await located.files.read(located.path)
    except FileMissing:
        return None


async def _read_data(located: LocatedPath) -> bytes | None:
    stored = await _read_stored(located)
    return stored.data if stored else None


def _describe_edit(edit: Edit) -> str:
    size = f"{len(edit.data or b''):,} bytes"
    return f"created with {size}" if edit.expected_hash == ABSENT else f"changed and has {size} now"


async def _write_with_mode(located: LocatedPath, edit: Edit, data: bytes, folder: Path | None) -> None:
    """Write the file with its previous mode, or with the mode its folder suggests for a new file.

    A store writes private files; a project's files keep their modes, above all executable ones.
    """
    path = folder / located.relative_path if folder else None
    mode = await anyio.to_thread.run_sync(_file_mode, path) if path else 0
    await located.files.replace(located.path, data, expected=edit.expected_hash)
    if path:
        # The file is written; a mode that can't be set does not undo that.
        with suppress(OSError):
            await anyio.to_thread.run_sync(path.chmod, mode)


def _file_mode(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o777
    nearest = next(parent for parent in path.parents if parent.is_dir())
    return nearest.stat().st_mode & 0o666


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
        # The new text is also redacted on its own, before it is joined with other text.
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
    """Return whether a rule allows the change; a rule applies to the path as given, not to a link's target."""
    return context.approved and located.relative_path == safe_path(path)
