"""Where Claude Code keeps the transcripts of a project.

They lie in a folder named after the working directory with everything but ASCII letters and digits written as a dash.
Two directories can share such a name, so a transcript that says it began in another directory is left out.
"""

import re
from pathlib import Path

from ricordo.errors import InvalidMessage, RicordoError
from ricordo.importers.lines import read_lines
from ricordo.messages.jsontext import loads

__all__ = ["find_claude_code", "transcript_folder_name"]

_FOLDER_LENGTH = 200
_LINES_TO_A_DIRECTORY = 50


def find_claude_code(project: Path, home: Path) -> list[Path]:
    """Return the transcripts of sessions begun in `project`, oldest first by modification time; empty without any.

    `home` is the user's home directory. Transcripts of sub-agents are left out: what they found is in the session's
    own.
    """
    directories = dict.fromkeys([project.absolute(), project.resolve()])
    found = {
        path: path.stat().st_mtime_ns
        for directory in directories
        for folder in _find_folders(home / ".claude" / "projects", directory)
        for path in sorted(folder.glob("*.jsonl"))
        if path.is_file() and not path.name.startswith("agent-") and _started_in(path, directories)
    }
    return sorted(found, key=lambda path: (found[path], path.name))


def transcript_folder_name(directory: Path) -> str:
    """Return the name of the folder for sessions begun in `directory`; a character beyond 16 bits counts as two."""
    units = "".join("--" if ord(character) > 0xFFFF else character for character in str(directory))
    return re.sub("[^A-Za-z0-9]", "-", units)


def _find_folders(projects: Path, directory: Path) -> list[Path]:
    name = transcript_folder_name(directory)
    if len(name) <= _FOLDER_LENGTH:
        return [projects / name] if (projects / name).is_dir() else []
    # a longer name is cut and ends in a digest of the whole
    return sorted(path for path in projects.glob(f"{name[:_FOLDER_LENGTH]}-*") if path.is_dir())


def _started_in(path: Path, directories: dict[Path, None]) -> bool:
    began = _read_first_directory(path)
    return began is None or began in directories or any(_is_same_path(began, directory) for directory in directories)


def _is_same_path(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _read_first_directory(path: Path) -> Path | None:
    try:
        for position, line in enumerate(read_lines(path)):
            if position == _LINES_TO_A_DIRECTORY:
                break
            directory = _read_directory(line.content)
            if directory is not None:
                return directory
    except RicordoError:
        return None
    return None


def _read_directory(content: bytes) -> Path | None:
    try:
        row = loads(content)
    except InvalidMessage:
        return None
    directory = row.get("cwd") if isinstance(row, dict) else None
    return Path(directory) if isinstance(directory, str) and "\0" not in directory else None
