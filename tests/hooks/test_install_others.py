"""`ricordo install` for the hosts beside Claude Code and Codex, in their files as they and people write them."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from command_line import Done, ricordo

GEMINI = """\
{
  // signed in with a key
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "ui": { "theme": "dark" },
  "hooks": {
    "AfterAgent": [{"hooks": [{"name": "bell", "type": "command", "command": "say done", "timeout": 1000}]}]
  },
  "mcpServers": {
    "docs": { "httpUrl": "http://localhost:8080/mcp", "trust": false },
  },
}
"""
OPENCODE = """\
{
\t"$schema": "https://opencode.example/config.json",
\t"theme": "dark", // at night
\t"mcp": {
\t\t"docs": {"type": "local", "command": ["docs"], "environment": {"KEY": "{env:KEY}"}}
\t},
}
"""
CURSOR = """\
{
  "mcpServers": {
    "theme": { "command": "npx", "args": ["-y", "dark"], "env": {"TOKEN": "${env:TOKEN}"} }
  }
}"""
CURSOR_HOOKS = (
    '{"version": 1, "hooks": {"sessionStart": [{"command": "./dark.sh"}], "stop": [{"command": "say done"}]}}\n'
)
VSCODE = """\
{
\t// servers of the team
\t"inputs": [{"type": "promptString", "id": "key", "description": "dark", "password": true}],
\t"servers": {
\t\t"docs": {"type": "http", "url": "https://localhost/mcp"},
\t}
}
"""
DESKTOP = """\
{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": [
        "dark"
      ]
    }
  },
  "globalShortcut": ""
}"""
WINDSURF = '{"mcpServers":{"docs":{"serverUrl":"http://localhost/dark","disabled":true}}}'
ZED = """\
// Zed settings
//
// To see all of Zed's default settings, open the palette.
{
  "theme": { "mode": "system", "dark": "One Dark" },
  "context_servers": {
    "docs": { "source": "extension", "settings": {} },
  },
  "vim_mode": true, // on
}
"""
RULES = "# My rules\n\n- Answer in short sentences.\n- Prefer the dark theme.\n"


@dataclass(frozen=True)
class Written:
    """A file of a host with what a person has in it; `place` is where our server or hook stands, empty for rules."""

    host: str
    path: str
    content: str
    place: tuple[str, ...] = ()
    scope: str = "user"


FILES = [
    Written("gemini", ".gemini/settings.json", GEMINI, ("mcpServers", "ricordo")),
    Written("opencode", ".config/opencode/opencode.json", OPENCODE, ("mcp", "ricordo")),
    Written("opencode", ".config/opencode/opencode.jsonc", OPENCODE, ("mcp", "ricordo")),
    Written("opencode", "opencode.json", OPENCODE, ("mcp", "ricordo"), "project"),
    Written("cursor", ".cursor/mcp.json", CURSOR, ("mcpServers", "ricordo")),
    Written("cursor", ".cursor/hooks.json", CURSOR_HOOKS, ("hooks", "sessionStart")),
    Written("cursor", ".cursor/mcp.json", CURSOR, ("mcpServers", "ricordo"), "project"),
    Written("vscode", ".vscode/mcp.json", VSCODE, ("servers", "ricordo"), "project"),
    Written("claude-desktop", ".config/Claude/claude_desktop_config.json", DESKTOP, ("mcpServers", "ricordo")),
    Written("windsurf", ".codeium/windsurf/mcp_config.json", WINDSURF, ("mcpServers", "ricordo")),
    Written("windsurf", ".codeium/windsurf/memories/global_rules.md", RULES),
    Written("zed", ".config/zed/settings.json", ZED, ("context_servers", "ricordo")),
    Written("zed", ".config/zed/AGENTS.md", RULES),
    Written("zed", ".rules", RULES, scope="project"),
]
FORMS: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda text: text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "no end of the last line": lambda text: text.rstrip("\n").encode(),
    "a mark at the beginning": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "empty": lambda text: b"",
}


@pytest.fixture(autouse=True)
def no_other_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no variable of this machine say where hosts have their settings."""
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def _call(command: str, written: Written, *more: str) -> Done:
    return ricordo(command, written.host, "--scope", written.scope, "--yes", *more)


def _place_file(written: Written, home: Path, content: bytes) -> Path:
    file = (home if written.scope == "user" else Path.cwd()) / written.path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def _load(text: str) -> Any:
    """Return the value of JSON with comments on lines of their own or at their ends, and with trailing commas."""
    lines = [line.partition(" //")[0] for line in text.splitlines() if not line.lstrip().startswith("//")]
    joined = "\n".join(lines)
    for bracket in "]}":
        joined = re.sub(rf",(\s*){bracket}", rf"\1{bracket}", joined)
    return json.loads(joined)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("written", FILES, ids=lambda each: f"{each.host} {each.path} {each.scope}")
def test_our_part_joins_a_file_of_a_person_and_leaves_it_without_a_trace(
    written: Written, form: str, home: Path
) -> None:
    before = FORMS[form](written.content)
    file = _place_file(written, home, before)
    done = _call("install", written)
    assert done.code == 0, done.err
    connected = file.read_bytes()
    text = connected.decode("utf-8-sig")
    value: Any = _load(text) if written.place else None
    for name in written.place:
        value = value[name]
    assert "ricordo" in json.dumps(value) if written.place else "call `recall`" in text
    assert form != "CRLF" or text.count("\n") == text.count("\r\n")
    assert connected.startswith(b"\xef\xbb\xbf") == before.startswith(b"\xef\xbb\xbf")
    assert _call("install", written).code == 0
    assert file.read_bytes() == connected
    # somebody changes another place, so that what the file was can't simply be put back
    file.write_bytes(connected.replace(b"dark", b"light"))
    assert _call("uninstall", written).code == 0
    assert (file.read_bytes() if file.exists() else b"") == before.replace(b"dark", b"light")


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("host", ["gemini", "opencode", "cursor", "vscode", "claude-desktop", "windsurf", "zed"])
def test_a_host_without_files_gets_them_and_loses_them_again(host: str, scope: str, home: Path) -> None:
    done = ricordo("install", host, "--scope", scope, "--yes")
    if host in {"claude-desktop", "windsurf"} and scope == "project":
        assert "no settings of a project" in done.err
        return
    assert done.code == 0, done.err
    assert ricordo("install", host, "--scope", scope, "--dry-run", "--json").document["files"] == []
    assert ricordo("uninstall", host, "--scope", scope, "--yes").code == 0
    kept = [path for path in home.rglob("*") if path.is_file() and ".local" not in path.parts]
    assert (kept, list(Path.cwd().iterdir())) == ([], [])


@pytest.mark.parametrize("content", [b'{"mcp', b"[]", b"\xff\xfe", b'{"mcpServers": [], "mcp": [], "hooks": []}'])
@pytest.mark.parametrize(
    "written",
    [each for each in FILES if each.place and each.host not in {"vscode", "zed"}],
    ids=lambda each: f"{each.host} {each.path} {each.scope}",
)
def test_a_file_that_can_not_be_changed_safely_is_told_and_nothing_is_written(
    written: Written, content: bytes, home: Path
) -> None:
    file = _place_file(written, home, content)
    before = {path for path in [*home.rglob("*"), *Path.cwd().rglob("*")] if path.is_file()}
    done = _call("install", written)
    assert (done.code, file.read_bytes()) == (1, content)
    assert f"{file.name} can't be changed safely" in done.err
    assert "Nothing was written" in done.err
    after = {path for path in [*home.rglob("*"), *Path.cwd().rglob("*")] if path.is_file()}
    assert {path for path in after - before if path.name != "config.toml"} == set()


def test_a_torn_block_is_told_and_nothing_is_written(home: Path) -> None:
    written = FILES[-2]
    file = _place_file(written, home, b"")
    assert _call("install", written).code == 0
    torn = file.read_text().replace("<!-- ricordo: end -->\n", "")
    file.write_text(torn)
    for command in ("install", "uninstall"):
        done = _call(command, written)
        assert (done.code, file.read_text()) == (1, torn)
        assert "the block of Ricordo is not whole" in done.err


def test_what_a_person_added_to_our_server_stays_when_the_program_has_moved(home: Path) -> None:
    written = FILES[0]
    server = {"command": "/old/ricordo", "args": ["mcp"], "trust": True, "timeout": 5000}
    file = _place_file(written, home, json.dumps({"mcpServers": {"ricordo": server}}).encode())
    assert _call("install", written).code == 0
    changed = _load(file.read_text())["mcpServers"]["ricordo"]
    assert changed == {**server, "command": changed["command"]}
    assert changed["command"] != "/old/ricordo"


def test_gemini_gets_hooks_with_a_time_limit_in_milliseconds(home: Path) -> None:
    ricordo("install", "gemini", "--yes")
    settings = _load((home / ".gemini/settings.json").read_text())
    handlers = [groups[-1]["hooks"][0] for groups in settings["hooks"].values()]
    assert {handler["timeout"] for handler in handlers} == {20_000}
    words = [shlex.split(handler["command"])[1:4] for handler in handlers]
    assert words == [["hook", "gemini", event] for event in settings["hooks"]]
    assert {"BeforeAgent", "AfterAgent", "SessionEnd"} == set(settings["hooks"])


def test_a_hook_of_gemini_says_nothing_and_succeeds_where_the_program_is_gone(home: Path) -> None:
    ricordo("install", "gemini", "--yes")
    settings = (home / ".gemini/settings.json").read_text()
    program = ricordo("install", "gemini", "--dry-run", "--json").document["program"]
    command = _load(settings.replace(program, "/gone/ricordo"))["hooks"]["BeforeAgent"][0]["hooks"][0]["command"]
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_cursor_and_vscode_tell_the_server_which_folder_is_open() -> None:
    for host, file, section in (
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ):
        ricordo("install", host, "--scope", "project", "--yes")
        server = json.loads(Path(file).read_text())[section]["ricordo"]
        assert server["args"] == ["mcp", "--folder", "${workspaceFolder}", "--client", host]
    assert Path(".cursor/rules/ricordo.mdc").read_text().startswith("---\ndescription:")
    assert 'applyTo: "**"' in Path(".github/instructions/ricordo.instructions.md").read_text()


def test_a_host_that_names_no_project_gets_a_memory_of_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ricordo("install", "claude-desktop", "--yes")
    server = json.loads((home / ".config/Claude/claude_desktop_config.json").read_text())["mcpServers"]["ricordo"]
    root = server["args"][server["args"].index("--root") + 1]
    assert root == str(home / ".local/share/ricordo/personal")
    assert f"ricordo memory list --root {root}" in done.out
    monkeypatch.setenv("RICORDO_ROOT", str(home / "mine"))
    files = ricordo("install", "windsurf", "--dry-run", "--json").document["files"]
    assert str(home / "mine") in files[0]["difference"]


def test_hosts_of_this_machine_are_shown_and_connected_together(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "No coding agent was found" in ricordo("install").out
    for folder in (".gemini", ".cursor", ".config/zed"):
        (home / folder).mkdir(parents=True)
    (home / ".config/zed/settings.json").write_text("{ broken")
    shown = ricordo("install")
    assert shown.code == 0
    assert "Gemini CLI" in shown.out
    assert "Each session begins with what is remembered" in shown.out
    assert "settings.json can't be changed safely" in shown.out
    assert "Not found: Claude Code, Codex, opencode" in shown.out
    assert not (home / ".gemini/settings.json").exists()
    document = ricordo("install", "--json").document
    assert [(each["host"], each["connected"]) for each in document["hosts"]] == [
        ("gemini", False), ("cursor", False), ("zed", False)
    ]  # fmt: skip
    done = ricordo("install", "--yes", "--no-worker")
    assert done.code == 0
    assert "Gemini CLI is now connected" in done.out
    assert (home / ".gemini/settings.json").exists()
    again = ricordo("install", "--yes", "--json").document
    assert [(each["host"], each["connected"], bool(each["trouble"])) for each in again["hosts"]] == [
        ("gemini", True, False), ("cursor", True, False), ("zed", False, True)
    ]  # fmt: skip


def test_one_host_that_fails_does_not_keep_the_others_from_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for folder in (".gemini", ".cursor"):
        (home / folder).mkdir()
    replace = os.replace

    def fail_in_gemini(source: str, target: str) -> None:
        if ".gemini" in str(target):
            raise OSError(28, "No space left on device", target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_in_gemini)
    done = ricordo("install", "--yes", "--no-worker")
    assert done.code == 1
    assert "Gemini CLI was not connected" in done.err
    assert "Cursor is now connected" in done.out
    assert (home / ".cursor/mcp.json").exists()


def test_an_agent_can_look_and_not_connect(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_CLI", "1")
    (home / ".gemini").mkdir()
    assert ricordo("install").code == 0
    done = ricordo("install", "--yes")
    assert done.code == 1
    assert "up to a person" in done.err
    assert not (home / ".gemini/settings.json").exists()


HOME = {"linux": "/home/me", "darwin": "/Users/me", "win32": r"C:\Users\me"}
FOLDERS = {
    "claude-code": ("/home/me/.claude", "/Users/me/.claude", r"C:\Users\me\.claude"),
    "codex": ("/home/me/.codex", "/Users/me/.codex", r"C:\Users\me\.codex"),
    "gemini": ("/home/me/.gemini", "/Users/me/.gemini", r"C:\Users\me\.gemini"),
    "opencode": (
        "/home/me/.config/opencode", "/Users/me/.config/opencode", r"C:\Users\me\AppData\Roaming\opencode",
    ),
    "cursor": ("/home/me/.cursor", "/Users/me/.cursor", r"C:\Users\me\.cursor"),
    "vscode": ("/home/me/.copilot", "/Users/me/.copilot", r"C:\Users\me\.copilot"),
    "claude-desktop": (
        "/home/me/.config/Claude",
        "/Users/me/Library/Application Support/Claude",
        r"C:\Users\me\AppData\Roaming\Claude",
    ),
    "windsurf": ("/home/me/.codeium/windsurf", "/Users/me/.codeium/windsurf", r"C:\Users\me\.codeium\windsurf"),
    "zed": ("/home/me/.config/zed", "/Users/me/.config/zed", r"C:\Users\me\AppData\Roaming\Zed"),
}  # fmt: skip
VARIABLES = {
    "claude-code": ({"CLAUDE_CONFIG_DIR": "/other"}, "/other"),
    "codex": ({"CODEX_HOME": "/other"}, "/other"),
    "gemini": ({"GEMINI_CLI_HOME": "/other"}, "/other/.gemini"),
    "opencode": ({"XDG_CONFIG_HOME": "/other"}, "/other/opencode"),
    "claude-desktop": ({"XDG_CONFIG_HOME": "/other"}, "/other/Claude"),
    "zed": ({"XDG_CONFIG_HOME": "/other"}, "/other/zed"),
}


def _find_folder(host: str, *options: str) -> str:
    return str(ricordo("install", host, "--dry-run", "--json", *options).document["folder"])


@pytest.mark.parametrize("host", FOLDERS)
def test_each_host_has_its_settings_where_its_program_looks_for_them(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for (platform, home), expected in zip(HOME.items(), FOLDERS[host], strict=True):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "platform", platform)
            patch.setenv("HOME", home)
            patch.setenv("APPDATA", rf"{home}\AppData\Roaming")
            # on this machine a path of Windows is one name in the folder here
            assert _find_folder(host).removeprefix(f"{Path.cwd()}/") == expected
    environment, expected = VARIABLES.get(host, ({}, ""))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert expected in {"", _find_folder(host)}
    if host not in {"claude-desktop", "windsurf"}:
        inner = "" if host in {"opencode", "vscode", "zed"} else f".{host.partition('-')[0]}"
        assert Path(_find_folder(host, "--scope", "project")) == Path.cwd() / inner
