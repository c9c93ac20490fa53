"""What people wrote for the agent: AGENTS.md in the working directory, and the rules of a project.

It is read and never written. A file that is missing is silent; one that is too long, or can't be read, says so in its
place and takes nothing else down. AGENTS.md may be a link to another Markdown file and to nothing else: a folder that
somebody else wrote must not let a model read a key.
"""

from pathlib import Path, PurePosixPath

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.harness.prompt import InstructionText
from ricordo.workspace.layout import PROJECT_PREFIX, WORKSPACE

__all__ = ["AGENTS_FILE", "RULES_FOLDER", "read_agents_file", "read_rules"]

AGENTS_FILE = "AGENTS.md"
RULES_FOLDER = f"{WORKSPACE}/rules"
_MAX_FILE_BYTES = 32_000
"""Bytes of one file that are shown."""

_MAX_RULES_BYTES = 128_000
"""Bytes of all rules together that are shown."""


async def read_agents_file(folder: Path, *, longest: int = _MAX_FILE_BYTES) -> InstructionText | None:
    """Return AGENTS.md of `folder`, at most `longest` bytes of it; None when there is none, or nothing in it."""
    return await run_sync(_read_agents, folder / AGENTS_FILE, longest)


async def read_rules(
    *places: FileStore, longest: int = _MAX_FILE_BYTES, total: int = _MAX_RULES_BYTES
) -> tuple[InstructionText, ...]:
    """Return the Markdown files in `workspace/rules`, sorted by name, at most `longest` bytes of each.

    Of several places the first is what a project shares; its rules come first and are named after it. Those after the
    first `total` bytes are only named. Files in folders below are no rules.
    """
    texts: list[InstructionText] = []
    left = total
    for number, files in enumerate(places):
        prefix = f"{PROJECT_PREFIX}/" if len(places) > 1 and number == 0 else ""
        try:
            found = [each for each in await files.list(RULES_FOLDER) if _is_rule(each.path)]
        except StorageError as error:
            texts.append(InstructionText(source=f"{prefix}rules", text=f"[The rules can't be read: {error}]"))
            continue
        for each in found:
            room = min(longest, left)
            text = await _read_rule(files, each.path, room) if room > 0 else "[Left out: there are too many rules.]"
            if text.strip():
                texts.append(InstructionText(source=prefix + each.path.removeprefix(f"{WORKSPACE}/"), text=text))
            left -= min(each.size, room)
    return tuple(texts)


def _is_rule(path: str) -> bool:
    found = PurePosixPath(path)
    return str(found.parent) == RULES_FOLDER and found.suffix.lower() == ".md" and not found.name.startswith(".")


async def _read_rule(files: FileStore, path: str, longest: int) -> str:
    try:
        return _decode_lines(await files.read_from(path, 0, longest + 1), longest)
    except FileMissing:
        return ""
    except StorageError as error:
        return f"[This file can't be read: {error}]"


def _read_agents(path: Path, longest: int) -> InstructionText | None:
    try:
        # opening a pipe would wait for its other end
        if not path.is_file():
            return None
        if path.resolve().suffix.lower() != ".md":
            return InstructionText(
                source=AGENTS_FILE, text="[This file is a link to something else than Markdown: it is not shown.]"
            )
        with path.open("rb") as file:
            text = _decode_lines(file.read(longest + 1), longest)
    except FileNotFoundError:
        return None
    except OSError as error:
        text = f"[This file can't be read: {error.strerror}]"
    return InstructionText(source=AGENTS_FILE, text=text) if text.strip() else None


def _decode_lines(data: bytes, longest: int) -> str:
    """Return the text of a file, cut at the end of a line when there are more than `longest` bytes."""
    kept = data[:longest]
    if len(data) > longest:
        kept = kept[: kept.rfind(b"\n") + 1]
    text = kept.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    notice = f"[Cut here: only whole lines of the first {longest:,} bytes are shown.]"
    return text if len(data) <= longest else f"{text.rstrip()}\n{notice}".lstrip("\n")
