"""The real command lines of coding agents, with a scratch home, against a scripted model on this machine.

`make test-hosts` installs the programs below `build/hosts`. A program that is missing skips a test, and fails it where
RICORDO_HOSTS=required is set.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import pytest

from gemini_server import GeminiServer
from ricordo.messages import JsonValue
from ricordo.testing import Call, LoopbackServer, RecordedRequest, Say, ScriptItem

__all__ = [
    "ClaudeCode",
    "Codex",
    "GeminiCli",
    "OpenCode",
    "RealHost",
    "Reply",
    "call_shell",
    "call_tool",
    "find_program",
    "start_host",
]

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "hosts" / "node_modules" / ".bin"
RICORDO = Path(sys.executable).with_name("ricordo")
TIMEOUT = 120
MAX_WAITS = 20
Answer = Callable[[RecordedRequest], ScriptItem]


def find_program(name: str) -> Path:
    """Return a host's program; without it the test is skipped, or fails where the programs are required."""
    program = PROGRAMS / name
    if program.exists():
        return program
    reason = f"{name} is not installed: make test-hosts installs it"
    if os.environ.get("RICORDO_HOSTS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a run of a host left: its session, what it printed, and the requests to the model, newest last."""

    session: str
    printed: str
    requests: tuple[RecordedRequest, ...]

    @property
    def sent(self) -> str:
        """Everything that the model was sent with the first request that answers the prompt, as JSON."""
        return json.dumps(self.requests[0].body, ensure_ascii=False) if self.requests else ""

    def typed_results(self) -> list[Any]:
        """The results of tools that are JSON objects, in order."""
        texts = [text[text.index("{") :] for text in self.results if "{" in text]
        return [json.loads(text) for text in texts if text.rstrip().endswith("}")]

    @property
    def results(self) -> list[str]:
        """What tools answered to the model, in order."""
        return [
            result.text
            for message in (self.requests[-1].messages if self.requests else ())
            for result in message.tool_results
        ]


def call_tool(host: "RealHost", tool: str, **arguments: JsonValue) -> Answer:
    """Return a model that calls a tool of the memory, and then ends its turn.

    A host does not wait for a server that starts slowly, so until the tool is offered the model lets time pass.
    """
    call = Call(f"{host.tool_prefix}{tool}", arguments)

    def answer(request: RecordedRequest) -> ScriptItem:
        if any(each.name == call.name for message in request.messages for each in message.tool_calls):
            return Say("Done.")
        is_offered = call.name in {offered.name for offered in request.tools}
        waits = sum(len(message.tool_calls) for message in request.messages)
        if not is_offered and waits == MAX_WAITS:
            return Say("There is no such tool.")
        return call if is_offered else _call_shell(host, "sleep 1")

    return answer


def call_shell(host: "RealHost", command: str) -> Answer:
    """Return a model that runs a command in the host's shell, and then ends its turn."""

    def answer(request: RecordedRequest) -> ScriptItem:
        is_answered = any(message.tool_calls for message in request.messages)
        return Say("Done.") if is_answered else _call_shell(host, command)

    return answer


def _call_shell(host: "RealHost", command: str) -> Call:
    return Call(host.shell_tool, {host.shell_argument: command, **host.shell_extras})


def _say_ok(request: RecordedRequest) -> ScriptItem:
    del request
    return Say("Understood.")


class ModelServer(Protocol):
    """A server that plays the model of a host."""

    @property
    def url(self) -> str:
        """Its address, without a path."""
        ...

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """All requests so far, in the order of arrival."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What the test itself did wrong."""
        ...


@dataclass
class RealHost(ABC):
    """One host with a home of its own and one project; `answer` is the model, which a test may replace."""

    home: Path
    project: Path
    server: ModelServer
    variables: dict[str, str] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)

    name: ClassVar[str]
    program: ClassVar[str]
    tool_prefix: ClassVar[str]
    shell_tool: ClassVar[str]
    shell_argument: ClassVar[str]
    shell_extras: ClassVar[Mapping[str, str]] = {}
    server_kind: ClassVar[Any] = LoopbackServer

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the host and of `ricordo`: a scratch home, and nothing of the person's."""
        return {
            "HOME": str(self.home),
            "PATH": f"{Path(shutil.which('node') or '/usr/bin/node').parent}:/usr/bin:/bin",
            "RICORDO_EMBEDDER": "none",
            "RICORDO_USER": "me",
            "TERM": "dumb",
            **self.variables,
        }

    def ricordo(self, *arguments: str, expect: int | None = 0) -> str:
        """Run a command of Ricordo in the project, and return what it printed."""
        done = subprocess.run(
            [RICORDO, *arguments],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert expect is None or done.returncode == expect, done.stdout + done.stderr
        return done.stdout

    def ricordo_json(self, *arguments: str) -> Any:
        """Run a command of Ricordo with `--json`, and return its document."""
        return json.loads(self.ricordo(*arguments, "--json"))

    def prepare(self) -> None:  # noqa: B027 - most hosts need nothing
        """Make the settings of a person who uses the host."""

    def install(self, *options: str) -> None:
        """Connect the host, as a person does."""
        self.ricordo("install", self.name, "--yes", "--no-worker", *options)

    def learn(self) -> None:
        """Let everything that waits be learned from, as `ricordo maintain` does."""
        self.ricordo("maintain")

    def run(self, arguments: Sequence[str], **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the host's program."""
        return subprocess.run(
            [find_program(self.program), *arguments],
            cwd=self.project,
            env={**self.environment, **self.host_variables(), **variables},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def say(self, prompt: str, *, session: str = "", answer: Answer = _say_ok, **variables: str) -> Reply:
        """Send a prompt in a new session, or in one that is resumed, and let `answer` be the model."""
        before = len(self.server.requests)
        self.answers.append(answer)
        done = self.run(self.prompt_arguments(prompt, session), **variables)
        self.answers.pop()
        assert done.returncode == 0, done.stdout + done.stderr
        asked = tuple(each for each in self.server.requests[before:] if self.is_turn(each))
        return Reply(session=self.read_session(done.stdout), printed=done.stdout, requests=asked)

    def use_tool(self, tool: str, **arguments: JsonValue) -> Reply:
        """Let the model call a tool of the memory in a new session."""
        return self.say("Use your memory.", answer=call_tool(self, tool, **arguments))

    def next_item(self, request: RecordedRequest) -> ScriptItem:
        """Answer a request with the answer of the running test."""
        return (self.answers[-1] if self.answers else _say_ok)(request)

    @abstractmethod
    def host_variables(self) -> Mapping[str, str]:
        """Return what the host needs to reach the scripted model and nothing else."""

    @abstractmethod
    def prompt_arguments(self, prompt: str, session: str) -> list[str]:
        """Return the arguments for one prompt without a terminal."""

    @abstractmethod
    def read_session(self, printed: str) -> str:
        """Return the id of the session from what the host printed."""

    @abstractmethod
    def is_turn(self, request: RecordedRequest) -> bool:
        """Return whether a request is part of a turn, and not work of the host beside it."""


HostT = TypeVar("HostT", bound=RealHost)


class ClaudeCode(RealHost):
    """Claude Code."""

    name = "claude-code"
    program = "claude"
    tool_prefix = "mcp__plugin_ricordo_ricordo__"
    shell_tool, shell_argument = "Bash", "command"

    def host_variables(self) -> Mapping[str, str]:
        """Return the address of the scripted model, and that nothing else is to be reached."""
        return {
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": "test-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def prompt_arguments(self, prompt: str, session: str) -> list[str]:
        """Return the arguments; the tools of the memory may be used."""
        allowed = ["--allowedTools", "mcp__plugin_ricordo_ricordo,Bash"]
        return ["-p", prompt, "--output-format", "json", *allowed, *(["--resume", session] if session else [])]

    def read_session(self, printed: str) -> str:
        """Return the id of the session."""
        return str(json.loads(printed)["session_id"])

    def is_turn(self, request: RecordedRequest) -> bool:
        """Return whether the request offers tools."""
        return bool(request.tools)

    def compact(self, session: str, answer: Answer) -> tuple[RecordedRequest, ...]:
        """Let the host sum up a session, and return the requests that it made."""
        before = len(self.server.requests)
        self.answers.append(answer)
        done = self.run(["-p", "/compact", "--resume", session, "--output-format", "json"])
        self.answers.pop()
        assert done.returncode == 0, done.stdout + done.stderr
        return self.server.requests[before:]


class Codex(RealHost):
    """Codex."""

    name = "codex"
    program = "codex"
    tool_prefix = "mcp__ricordo__"
    shell_tool, shell_argument = "exec_command", "cmd"
    is_connected = False

    def host_variables(self) -> Mapping[str, str]:
        """Return the key of the scripted model."""
        return {"SCRIPTED_KEY": "test-key"}

    def install(self, *options: str) -> None:
        """Connect the host, and review its hooks as a person does."""
        super().install(*options)
        self.is_connected = True
        self.trust_hooks()

    def prompt_arguments(self, prompt: str, session: str) -> list[str]:
        """Return the arguments."""
        return [
            *self._settings(),
            "exec",
            "--skip-git-repo-check",
            "--json",
            *(["resume", session] if session else []),
            prompt,
        ]

    def read_session(self, printed: str) -> str:
        """Return the id of the session."""
        return str(json.loads(printed.splitlines()[0])["thread_id"])

    def is_turn(self, request: RecordedRequest) -> bool:
        """Return whether the request offers tools."""
        return bool(request.tools)

    def list_hooks(self) -> list[dict[str, Any]]:
        """Return the hooks that the host knows, with their trust."""
        with self._app_server() as call:
            return list(call("hooks/list", {"cwds": [str(self.project)]})["data"][0]["hooks"])

    def trust_hooks(self) -> None:
        """Record that a person reviewed every hook, by the call that the host's own review makes."""
        edits = [
            {"keyPath": f"hooks.state.{json.dumps(hook['key'])}.trusted_hash", "value": hook["currentHash"],
             "mergeStrategy": "replace"}
            for hook in self.list_hooks()
        ]  # fmt: skip
        with self._app_server() as call:
            call("config/batchWrite", {"edits": edits})

    def _settings(self) -> list[str]:
        provider = {
            "name": "scripted",
            "base_url": f"{self.server.url}/v1",
            "wire_api": "responses",
            "env_key": "SCRIPTED_KEY",
        }
        values = {"model": "scripted", "model_provider": "scripted", "approval_policy": "never"}
        if self.is_connected:
            # without a terminal nobody could be asked
            values["mcp_servers.ricordo.default_tools_approval_mode"] = "approve"
        values |= {f"model_providers.scripted.{key}": value for key, value in provider.items()}
        return [each for key, value in values.items() for each in ("-c", f"{key}={json.dumps(value)}")]

    @contextmanager
    def _app_server(self) -> Iterator[Callable[[str, object], Any]]:
        process = subprocess.Popen(
            [find_program(self.program), "app-server"],
            cwd=self.project,
            env={**self.environment, **self.host_variables()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        lines, requests = process.stdout, process.stdin
        numbers = iter(range(1, 1_000))

        def call(method: str, parameters: object) -> Any:
            number = next(numbers)
            requests.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}) + "\n")
            requests.flush()
            for line in lines:
                message = json.loads(line)
                if message.get("id") == number:
                    assert "result" in message, message
                    return message["result"]
            raise AssertionError(f"{method}: the host ended")

        try:
            call("initialize", {"clientInfo": {"name": "ricordo-tests", "version": "1"}})
            requests.write(json.dumps({"jsonrpc": "2.0", "method": "initialized"}) + "\n")
            yield call
        finally:
            process.kill()
            process.communicate()


class GeminiCli(RealHost):
    """Gemini CLI."""

    name = "gemini"
    program = "gemini"
    tool_prefix = "mcp_ricordo_"
    shell_tool, shell_argument = "run_shell_command", "command"
    server_kind = GeminiServer

    def host_variables(self) -> Mapping[str, str]:
        """Return the address of the scripted model, and a key."""
        return {"GOOGLE_GEMINI_BASE_URL": self.server.url, "GEMINI_API_KEY": "test-key"}

    def prepare(self) -> None:
        """Make the settings of a person who uses a key, and trusts the project."""
        folder = self.home / ".gemini"
        folder.mkdir(exist_ok=True)
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        (folder / "trustedFolders.json").write_text(json.dumps({str(self.project): "TRUST_FOLDER"}), encoding="utf-8")

    def prompt_arguments(self, prompt: str, session: str) -> list[str]:
        """Return the arguments; without a terminal nobody could be asked, and with a model's name none is chosen."""
        arguments = ["--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-o", "json", "-p", prompt]
        return [*arguments, *(["--resume", session] if session else [])]

    def read_session(self, printed: str) -> str:
        """Return the id of the session."""
        return str(json.loads(printed[printed.index("{") :])["session_id"])

    def is_turn(self, request: RecordedRequest) -> bool:
        """Return whether the request offers tools."""
        return bool(request.tools)


class OpenCode(RealHost):
    """opencode."""

    name = "opencode"
    program = "opencode"
    tool_prefix = "ricordo_"
    shell_tool, shell_argument = "bash", "command"
    shell_extras: ClassVar[Mapping[str, str]] = {"description": "a command"}

    def host_variables(self) -> Mapping[str, str]:
        """Return a configuration with the scripted model, and that nothing else is to be reached."""
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{self.server.url}/v1", "apiKey": "test-key"},
            "models": {"scripted": {"limit": {"context": 100_000, "output": 4_000}}},
        }
        configuration = {
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "provider": {"scripted": provider},
            "share": "disabled",
        }
        return {
            "OPENCODE_CONFIG_CONTENT": json.dumps(configuration),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }

    def prepare(self) -> None:
        """Give the host its own package for plugins, as after its first start with a network."""
        folder = self.home / ".config" / "opencode"
        (folder / "node_modules").mkdir(parents=True, exist_ok=True)
        lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
        (folder / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")

    def prompt_arguments(self, prompt: str, session: str) -> list[str]:
        """Return the arguments."""
        return ["run", "--format", "json", *(["--session", session] if session else []), prompt]

    def read_session(self, printed: str) -> str:
        """Return the id of the session."""
        return str(json.loads(printed.splitlines()[0])["sessionID"])

    def is_turn(self, request: RecordedRequest) -> bool:
        """Return whether the request offers tools."""
        return bool(request.tools)


@contextmanager
def start_host(kind: type[HostT], folder: Path) -> Iterator[HostT]:
    """Yield a host of this kind with an empty home and an empty project below `folder`."""
    find_program(kind.program)
    home, project = folder / "home", folder / "project"
    home.mkdir()
    project.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True, timeout=TIMEOUT)
    hosts: list[HostT] = []

    def next_item(request: RecordedRequest) -> ScriptItem:
        return hosts[0].next_item(request)

    # the path of a socket has to be short
    with (
        tempfile.TemporaryDirectory(prefix="ricordo-hosts-", dir="/tmp") as runtime,
        kind.server_kind(next_item) as server,
    ):
        hosts.append(kind(home=home, project=project, server=server, variables={"XDG_RUNTIME_DIR": runtime}))
        hosts[0].prepare()
        yield hosts[0]
    assert server.problems == ()
