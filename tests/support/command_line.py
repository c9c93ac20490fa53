"""Run commands of the command line in this process, and write conversations for them to take in."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from typer.main import get_command
from typer.testing import CliRunner

from ricordo.cli.application import app
from ricordo.testing import LoopbackServer, ScriptLike

__all__ = ["Done", "chat", "loopback_model", "ricordo"]

# Putting the commands together takes longer than most of them do. A process does it once and keeps nothing of a run in
# them, so the runs of a test process can share them.
vars(typer.testing)["_get_command"] = cache(get_command)

TALK = (
    ("user", "We decided to deploy only from main, never from a branch."),
    ("assistant", "Understood: deployments come from main."),
    ("user", "The staging database runs on port 5433, and Nadia owns it."),
)


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document that was printed."""
        return json.loads(self.out)


def ricordo(*arguments: str | Path, stdin: str | None = None) -> Done:
    """Run a command; what it does not handle itself is raised."""
    done = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin, prog_name="ricordo")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(code=done.exit_code, out=done.stdout, err=done.stderr)


def chat(path: Path, said: Sequence[tuple[str, str]] = TALK, **more: str) -> Path:
    """Write a conversation as JSON lines, one message a minute; `more` goes into each of its records."""
    records: list[Mapping[str, str]] = [
        {"role": role, "content": text, "time": f"2026-11-02T09:{minute:02}:00Z", **more}
        for minute, (role, text) in enumerate(said)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@contextmanager
def loopback_model(script: ScriptLike, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """Let commands reach a scripted model over the wire, which at the end had nothing to complain of."""
    with LoopbackServer(script) as server:
        monkeypatch.setenv("RICORDO_MODEL", "openai-chat:gpt-4o")
        monkeypatch.setenv("RICORDO_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-" + "q" * 32)
        yield server
    assert server.problems == ()
