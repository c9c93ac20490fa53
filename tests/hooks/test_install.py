"""`ricordo install` and `uninstall`: a host's own settings get our parts, and lose them again."""

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from command_line import Done, ricordo
from ricordo.runtime import Settings

HOSTS = ("claude-code", "codex")
OTHERS_HOOKS = """\
{
\t"hooks": {
\t\t"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}] // mine
\t}
}
"""
OTHERS_CONFIG = '# my own\nmodel = "gpt"   # fast\n\n[mcp_servers.docs]\ncommand = "docs"\n'


@pytest.fixture
def codex(home: Path) -> Path:
    """Return the folder of Codex, with the settings of a person in it."""
    folder = home / ".codex"
    folder.mkdir()
    (folder / "hooks.json").write_text(OTHERS_HOOKS, encoding="utf-8")
    (folder / "config.toml").write_text(OTHERS_CONFIG, encoding="utf-8")
    return folder


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _install(host: str, *more: str) -> Done:
    done = ricordo("install", host, "--yes", *more)
    assert done.code == 0, done.err
    return done


def _hooks(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))["hooks"]


def test_claude_code_gets_a_plugin_and_no_other_file(home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{ /* mine */ }")
    _install("claude-code")
    plugin = home / ".claude" / "skills" / "ricordo"
    assert {path for path in (home / ".claude").rglob("*") if path.is_file()} == {
        settings,
        *(path for path in plugin.rglob("*") if path.is_file()),
    }
    manifest = json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())
    server = manifest["mcpServers"]["ricordo"]
    assert (manifest["name"], server["args"], server["alwaysLoad"]) == ("ricordo", ["mcp"], True)
    hooks = _hooks(plugin / "hooks" / "hooks.json")
    assert {"SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop", "SessionEnd"} <= set(hooks)
    for event, groups in hooks.items():
        handler = groups[0]["hooks"][0]
        assert (handler["command"], handler["args"]) == (server["command"], ["hook", "claude-code", event])
    assert os.access(server["command"], os.X_OK)
    assert {path.parent.name for path in plugin.glob("skills/*/SKILL.md")} == {"remember", "recall", "forget"}


def test_codex_gets_hooks_behind_those_of_others_and_a_server_behind_its_settings(codex: Path) -> None:
    done = _install("codex")
    assert "/hooks" in done.out
    text = (codex / "hooks.json").read_text()
    assert '"say done"}]}' in text
    assert "// mine" in text
    config = (codex / "config.toml").read_text()
    assert config.startswith(OTHERS_CONFIG)
    server = tomllib.loads(config)["mcp_servers"]["ricordo"]
    assert server["args"] == ["mcp"]
    assert f"{server['command']} hook codex Stop" in text
    assert text.index("say done") < text.index("hook codex Stop")


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("host", HOSTS)
def test_twice_is_once_and_uninstall_restores_every_byte(codex: Path, home: Path, host: str, scope: str) -> None:
    before = _contents(home), _contents(Path.cwd())
    _install(host, "--scope", scope)
    connected = _contents(home), _contents(Path.cwd())
    assert connected != before
    _install(host, "--scope", scope)
    assert (_contents(home), _contents(Path.cwd())) == connected
    assert ricordo("uninstall", host, "--scope", scope, "--yes").code == 0
    kept = {path: content for path, content in _contents(home).items() if not path.startswith(".local/")}
    assert (kept, _contents(Path.cwd())) == before
    assert not (home / ".claude").exists()
    assert {path.name for path in Path.cwd().iterdir()} == set()


def test_what_somebody_changed_since_stays_and_only_our_parts_go(codex: Path) -> None:
    _install("codex")
    hooks, config = codex / "hooks.json", codex / "config.toml"
    hooks.write_text(hooks.read_text().replace("say done", "say all done"))
    config.write_text(config.read_text() + '\n[projects."/x"]\ntrust_level = "trusted"\n')
    assert ricordo("uninstall", "codex", "--yes").code == 0
    assert hooks.read_text() == OTHERS_HOOKS.replace("say done", "say all done")
    assert config.read_text() == OTHERS_CONFIG + '\n[projects."/x"]\ntrust_level = "trusted"\n'


def test_a_plugin_that_somebody_changed_is_kept_among_the_backups(home: Path) -> None:
    _install("claude-code")
    skill = home / ".claude" / "skills" / "ricordo" / "skills" / "recall" / "SKILL.md"
    skill.write_text("my own words")
    assert ricordo("uninstall", "claude-code", "--yes").code == 0
    assert not skill.exists()
    backups = Settings.from_environment().data / "installs" / "backups"
    assert [path.read_text() for path in backups.iterdir()] == ["my own words"]


def test_what_the_files_were_is_kept(codex: Path) -> None:
    _install("codex")
    backups = Settings.from_environment().data / "installs" / "backups"
    assert {path.read_text() for path in backups.iterdir()} == {OTHERS_HOOKS, OTHERS_CONFIG}
    assert {stat.S_IMODE(path.stat().st_mode) for path in backups.iterdir()} == {0o600}


def test_a_dry_run_shows_the_difference_and_writes_nothing(codex: Path, home: Path) -> None:
    before = _contents(home)
    done = ricordo("install", "codex", "--dry-run")
    assert "+[mcp_servers.ricordo]" in done.out
    assert str(codex / "hooks.json") in done.out
    document = ricordo("install", "codex", "--dry-run", "--json").document
    assert [(Path(file["path"]).name, file["change"]) for file in document["files"]] == [
        ("hooks.json", "changed"),
        ("config.toml", "changed"),
    ]
    assert _contents(home) == before
    _install("codex")
    connected = _contents(home)
    assert "-[mcp_servers.ricordo]" in ricordo("uninstall", "codex", "--dry-run").out
    assert _contents(home) == connected


def test_line_ends_a_mark_at_the_beginning_the_mode_and_a_link_stay(codex: Path, home: Path) -> None:
    real = home / "dotfiles.toml"
    real.write_bytes(b'model = "gpt"\r\n')
    real.chmod(0o640)
    (codex / "config.toml").unlink()
    (codex / "config.toml").symlink_to(real)
    (codex / "hooks.json").write_bytes(b"\xef\xbb\xbf{}\r\n")
    _install("codex")
    assert (codex / "config.toml").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    for content in (real.read_bytes(), (codex / "hooks.json").read_bytes()):
        assert content.count(b"\n") == content.count(b"\r\n") > 1
    assert (codex / "hooks.json").read_bytes().startswith(b"\xef\xbb\xbf{")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("hooks.json", b'{"hooks": '),
        ("hooks.json", b'{"hooks": []}'),
        ("hooks.json", b"\xff\xfe"),
        ("hooks.json", b"[" * 5_000),
        ("config.toml", b"[mcp_servers\n"),
        ("config.toml", b'mcp_servers = { docs = { command = "x" } }\n'),
    ],
)
def test_a_damaged_or_strange_file_is_told_and_nothing_is_written(
    codex: Path, home: Path, name: str, content: bytes
) -> None:
    (codex / name).write_bytes(content)
    before = _contents(codex)
    done = ricordo("install", "codex", "--yes")
    assert done.code == 1
    assert name in done.err
    assert "Nothing was written" in done.err
    assert _contents(codex) == before


def test_a_write_that_fails_leaves_every_file_as_it_was(codex: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _contents(codex)
    replace, count = os.replace, 0

    def fail_at_the_second(source: str, target: str) -> None:
        nonlocal count
        count += str(target).startswith(str(codex))
        if count == 2:
            raise OSError(28, "No space left on device", target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_at_the_second)
    done = ricordo("install", "codex", "--yes")
    assert (done.code, _contents(codex)) == (1, before)
    assert "no room" in done.err


def test_a_newer_version_replaces_its_own_parts_in_their_place(codex: Path) -> None:
    _install("codex")
    hooks = json.loads((codex / "hooks.json").read_text().replace(" // mine", ""))
    hooks["hooks"]["Stop"][1]["hooks"][0]["command"] = "/old/ricordo hook codex Stop"
    hooks["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say later"}]})
    (codex / "hooks.json").write_text(json.dumps(hooks))
    _install("codex")
    commands = [group["hooks"][0]["command"].rpartition("/")[2] for group in _hooks(codex / "hooks.json")["Stop"]]
    assert commands == ["say done", "ricordo hook codex Stop", "say later"]


def test_in_a_project_the_program_is_named_so_that_others_can_use_it() -> None:
    _install("claude-code", "--scope", "project")
    manifest = json.loads(Path(".claude/skills/ricordo/.claude-plugin/plugin.json").read_text())
    assert manifest["mcpServers"]["ricordo"]["command"] == "ricordo"


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE", "CURSOR_AGENT"])
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_an_agent_can_not_connect_itself(
    home: Path, command: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    done = ricordo(command, "claude-code", "--yes")
    assert done.code == 1
    assert "up to a person" in done.err
    assert not (home / ".claude").exists()


def test_without_a_terminal_a_person_has_to_say_yes(home: Path) -> None:
    done = ricordo("install", "claude-code")
    assert done.code == 1
    assert "--yes" in done.err
    assert not (home / ".claude").exists()


@pytest.mark.parametrize(("options", "expected"), [((), True), (("--no-worker",), False), (("--worker",), True)])
def test_the_answer_about_a_worker_is_a_setting_of_the_person(options: tuple[str, ...], expected: bool) -> None:
    own = Settings.from_environment().data / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text("# mine\nmax_iters = 4\n")
    _install("claude-code", *options)
    assert own.read_text().startswith("# mine\nmax_iters = 4\n")
    assert tomllib.loads(own.read_text())["hooks"] == {"worker": expected}


def test_an_unknown_host_or_scope_is_refused_with_those_that_there_are() -> None:
    assert "claude-code, codex, gemini" in ricordo("install", "emacs", "--yes").err
    assert "no settings of a project" in ricordo("install", "windsurf", "--scope", "project").err
    assert "user or project" in ricordo("install", "codex", "--scope", "world").err
