"""A coding agent that starts hooks as the real ones do: a process each, JSON on its input, its output read.

The process is forked with everything imported, unless a test wants an interpreter that starts.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command_line import ricordo
from warm_processes import run_warm

__all__ = ["HookedHost", "Printed", "short_runtime_folder"]


@dataclass(frozen=True, kw_only=True)
class Printed:
    """What a hook left: its exit code and its output."""

    code: int
    out: str

    @property
    def context(self) -> str:
        """The text for the model; empty for none."""
        document = json.loads(self.out) if self.out else {}
        output: Mapping[str, str] = document.get("hookSpecificOutput", {})
        return output.get("additionalContext", "")

    @property
    def notice(self) -> str:
        """The line for the person; empty for none."""
        return str(json.loads(self.out).get("systemMessage", "")) if self.out else ""


@dataclass(kw_only=True)
class HookedHost:
    """Sessions of one host in one project; `said` grows the transcript of a session as the host would.

    `is_real` is for hooks that are interpreters of their own, as hosts start them.
    """

    folder: Path
    name: str = "claude-code"
    is_real: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    _rows: int = 0

    def __post_init__(self) -> None:
        (self.folder / ".git").mkdir(parents=True, exist_ok=True)

    def transcript(self, session: str) -> Path:
        """Return the path of the transcript of a session."""
        return self.folder.parent / f"{session}.jsonl"

    def said(self, session: str, text: str, *, answer: str = "Understood.") -> None:
        """Append what the user said and the model answered to the transcript."""
        with self.transcript(session).open("a", encoding="utf-8") as file:
            for role, content in (("user", text), ("assistant", answer)):
                file.write(json.dumps(self._row(session, role, content)) + "\n")

    def hook(self, event: str, session: str = "one", **payload: str) -> Printed:
        """Run the hook of an event."""
        given = {"session_id": session, "cwd": str(self.folder), "hook_event_name": event, "permission_mode": "default"}
        if self.transcript(session).exists():
            given["transcript_path"] = str(self.transcript(session))
        return self.run(event, json.dumps(given | payload).encode())

    def run(self, event: str, data: bytes, *, host: str = "") -> Printed:
        """Run the hook of an event with these bytes on its input."""
        arguments = ["-m", "ricordo", "hook", host or self.name, event]
        environment = os.environ | self.variables
        if not self.is_real:
            warm = run_warm(["python", *arguments], given=data, folder=self.folder, environment=environment)
            return Printed(code=warm.returncode, out=warm.stdout)
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, input=data, capture_output=True, check=False, cwd=self.folder, env=environment, timeout=60
        )
        return Printed(code=done.returncode, out=done.stdout.decode())

    def start(self, session: str = "one", source: str = "startup") -> Printed:
        """Run the hook of a session's start."""
        return self.hook("SessionStart", session, source=source)

    def prompt(self, text: str, session: str = "one") -> Printed:
        """Run the hook of a prompt."""
        return self.hook("UserPromptSubmit", session, prompt=text)

    def command(self, *arguments: str) -> Any:
        """Run a command on the memory of the project and return the JSON that it printed."""
        return ricordo(arguments[0], "--root", str(self.folder / ".ricordo"), *arguments[1:], "--json").document

    def entries(self) -> list[str]:
        """Return the contents of all memories."""
        memories = ricordo("memory", "list", "--root", str(self.folder / ".ricordo"), "--json").document["entries"]
        return [each["content"] for each in memories]

    def waiting(self) -> list[Path]:
        """Return the files of the spool."""
        return sorted(path for path in self.hooks_folder.glob("spool/*/*") if not path.name.startswith("."))

    def troubles(self) -> list[str]:
        """Return the troubles in the hook log, oldest first."""
        lines = (self.hooks_folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
        return [trouble for line in lines if (trouble := json.loads(line)["trouble"])]

    @property
    def hooks_folder(self) -> Path:
        """The folder of what hooks keep."""
        return Path(os.environ["XDG_DATA_HOME"]) / "ricordo" / "hooks"

    def _row(self, session: str, role: str, content: str) -> dict[str, object]:
        self._rows += 1
        time = f"2026-11-02T09:{self._rows // 60 % 60:02}:{self._rows % 60:02}Z"
        number, before = f"{session}-{self._rows}", f"{session}-{self._rows - 1}" if self._rows > 1 else None
        if self.name == "codex":
            kind = "output_text" if role == "assistant" else "input_text"
            payload = {"type": "message", "role": role, "content": [{"type": kind, "text": content}]}
            return {"timestamp": time, "ordinal": self._rows, "type": "response_item", "payload": payload}
        return {
            "type": role, "uuid": number, "parentUuid": before, "sessionId": session, "timestamp": time,
            "message": {"role": role, "content": content},
        }  # fmt: skip


@contextmanager
def short_runtime_folder() -> Iterator[str]:
    """Give a folder whose path leaves room for the name of a socket."""
    folder = tempfile.mkdtemp(prefix="rh", dir="/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
