"""The hook log: when which hook ran, how long it took, and what went wrong; bounded, and without content."""

import json
import os
from typing import NamedTuple

from ricordo.hooks.places import make_private_folder

__all__ = ["SERVED", "HookRun", "add_run", "read_runs"]


SERVED = "mcp"
"""The event of a host that started the MCP server, which is no hook."""
_MAX_BYTES = 200_000
_MAX_TROUBLE = 300
_FILE = "log.jsonl"
_FORMER_FILE = "log.1.jsonl"


class HookRun(NamedTuple):
    """One run of a hook: host, event, root, session, its end in seconds since 1970, and its duration in milliseconds.

    `source` says who answered: `server` over the socket, `prepared` from the prepared preamble, `process` the hook's
    own process, `spool` for work put off, or empty for nothing to do. `given` is the number of memories given.
    `trouble` says what went wrong, empty if nothing did.
    """

    at: float
    host: str
    event: str
    root: str = ""
    session: str = ""
    milliseconds: float = 0.0
    source: str = ""
    given: int = 0
    trouble: str = ""


def add_run(hooks_folder: str, run: HookRun) -> None:
    """Add a run to the log below `hooks_folder`. A log that is full becomes the former log. Raises: OSError."""
    path = os.path.join(hooks_folder, _FILE)
    line = json.dumps(run._replace(trouble=run.trouble[:_MAX_TROUBLE])._asdict()).encode("ascii") + b"\n"
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except FileNotFoundError:
        make_private_folder(hooks_folder)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line)
        is_full = os.fstat(file).st_size > _MAX_BYTES
    finally:
        os.close(file)
    if is_full:
        os.replace(path, os.path.join(hooks_folder, _FORMER_FILE))


def read_runs(hooks_folder: str, limit: int = 1_000) -> list[HookRun]:
    """Return the newest `limit` runs of all places, newest first; a damaged line is left out."""
    lines: list[bytes] = []
    for name in (_FORMER_FILE, _FILE):
        try:
            with open(os.path.join(hooks_folder, name), "rb") as file:
                lines += file.read(2 * _MAX_BYTES).splitlines()
        except OSError:
            continue
    runs = (run for line in reversed(lines) if (run := _parse_run(line)))
    return [run for run, _ in zip(runs, range(limit), strict=False)]


def _parse_run(line: bytes) -> HookRun | None:
    try:
        values = json.loads(line)
        return HookRun(**{key: value for key, value in values.items() if key in HookRun._fields})
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
