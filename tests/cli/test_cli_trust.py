"""`trust`, and what every command says of a root that came from elsewhere."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from anyio import run

from cloned_roots import PLANTED, SESSION, cloned_root, everything_below
from command_line import ricordo
from ricordo.runtime import Settings
from ricordo.runtime.roots import digest_key
from ricordo.testing import LoopbackServer, Say
from warm_processes import run_warm

COMMANDS = [
    ["remember", "The door is red."], ["recall", "anything"], ["ask", "anything?"], ["why", SESSION], ["context"],
    ["forget", "01k00000000000000000000000"], ["pin", "01k00000000000000000000000"], ["undo"], ["history"],
    ["confirm", "01k00000000000000000000000"], ["diff", "last"], ["history", "--runs"], ["consolidate"], ["maintain"],
    ["store", "migrate", "layered:", "jsonl:notes"],
    ["spending"], ["memory", "list"], ["memory", "show", "01k00000000000000000000000"],
    ["memory", "search", "anything"], ["memory", "track", "--yes"], ["memory", "untrack"], ["session", "list"],
    ["session", "show", SESSION], ["session", "search", "anything"], ["profile", "show"], ["profile", "add", "Works."],
    ["profile", "export", "out.json"], ["profile", "clear", "--yes"], ["tasks"], ["config", "show"],
    ["compact", "--session", SESSION], ["expand", "1", "--session", SESSION], ["store", "list"],
    ["chat", "--resume", "Hello."], ["chat", "--session", SESSION, "Hello."], ["chat", "--incognito", "Hello."],
    ["doctor"], ["doctor", "--strict"],
]  # fmt: skip
_LISTS_NO_ROOT = ["store", "list"]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a clone, in whose folder the commands run."""
    root = run(cloned_root, tmp_path)
    monkeypatch.chdir(root.parent)
    return root


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_refuses_a_cloned_root_before_it_uses_or_changes_anything(
    command: list[str], clone: Path, home: Path
) -> None:
    before = everything_below(clone.parent)
    done = ricordo(*command)
    if command != _LISTS_NO_ROOT:
        assert done.code == 1
        assert f"ricordo trust {shlex.quote(str(clone))}" in done.out + done.err
    assert PLANTED not in done.out + done.err
    assert everything_below(clone.parent) == before
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_real_chat_that_resumes_in_a_clone_asks_no_model_and_runs_nothing(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything_below(clone.parent)
    with LoopbackServer([Say("Hello.")]) as server:
        monkeypatch.setenv("RICORDO_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-" + "q" * 32)
        done = run_warm(["ricordo", "chat", "--resume", "Hello."])
        assert server.requests == ()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"ricordo: {clone} is not trusted")
    assert len(done.stderr.splitlines()) == 1
    assert everything_below(clone.parent) == before


@pytest.mark.req("FC-DOCTOR")
def test_the_bare_command_and_doctor_explain_a_root_that_is_not_trusted(clone: Path) -> None:
    bare, well = ricordo(), ricordo("doctor")
    assert (bare.code, well.code) == (0, 1)
    assert f"ricordo trust --show {clone}" in bare.out
    assert "FAIL  trust" in well.out
    assert ricordo("--json").document["trusted"] is False
    assert [check["name"] for check in ricordo("doctor", "--json").document["checks"]] == ["trust"]
    refused = ricordo("recall", "anything", "--json")
    assert (refused.code, refused.document["error"]) == (1, "RootNotTrusted")


def test_show_tells_nothing_of_the_persons_own_configuration(clone: Path) -> None:
    own = Settings.from_environment().data / "config.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("max_iters = 7\n", encoding="utf-8")
    assert "max_iters" not in ricordo("trust", "--show").out


def test_show_tells_what_would_come_into_effect_and_changes_nothing(clone: Path, home: Path) -> None:
    (clone / "workspace" / "notes.md").symlink_to("/etc/passwd")
    before = everything_below(clone.parent)
    done = ricordo("trust", "--show")
    assert done.code == 0
    for told in (
        "It is not trusted", "project shop", "model = openai-chat:stranger", "opt_in_tools = ['forget']",
        "embedder = openai:stranger", "spending.daily_cost = 900.0", "house.md", "MEMORY.md", "profile.json",
        "allow shell (not used: it was not permitted here)", "deny deploy(main)", "notes.md -> /etc/passwd",
        "has mode 755", ".gitignore does not hide the root", "\\x1b[31mObey.", "guard.key can be known to others",
    ):  # fmt: skip
        assert told in done.out
    assert "\x1b" not in done.out
    found = ricordo("trust", "--show", "--json", clone.parent).document
    assert (found["trusted"], found["root"]) == (False, str(clone))
    assert "model = openai-chat:stranger" in found["found"]["settings"]
    assert everything_below(clone.parent) == before
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_root_is_trusted_and_trusted_no_longer(clone: Path) -> None:
    (clone / "config.toml").unlink()
    key = (clone / "guard.key").read_bytes()
    assert "is trusted now" in ricordo("trust", clone).out
    assert digest_key((clone / "guard.key").read_bytes()) != digest_key(key), "others know the key that was shipped"
    assert (clone / ".gitignore").read_text() == "*\n"
    assert [oct(path.stat().st_mode & 0o777) for path in (clone, clone / "guard.key")] == ["0o700", "0o600"]
    assert PLANTED in ricordo("recall", "keys").out
    assert "is trusted already" in ricordo("trust").out
    assert ricordo("trust", "--show", "--json").document["reason"] == "it is on the list"
    assert "is no longer trusted" in ricordo("trust", "--revoke").out
    assert ricordo("recall", "keys").code == 1


def test_a_root_from_before_the_list_needs_one_command_and_keeps_what_it_forgot_away(tmp_path: Path) -> None:
    done = ricordo("remember", "The code of the door is 4711.", "--json")
    ricordo("forget", done.document["entry"]["id"], "--yes")
    root = Path(".ricordo").absolute()
    old = digest_key((root / "guard.key").read_bytes())
    (root / "guard.key").write_bytes(old)
    assert ricordo("memory", "list").code == 1
    assert ricordo("trust", "--json").document == {
        "root": str(root), "trusted": True, "was_trusted": False, "new_key": False,
    }  # fmt: skip
    assert digest_key((root / "guard.key").read_bytes()) == old
    assert ricordo("memory", "list").code == 0
    root.rename(tmp_path / "moved")
    assert ricordo("memory", "list", "--root", tmp_path / "moved").code == 0


@pytest.mark.req("GO-PRIV")
def test_a_root_whose_key_git_tracks_is_not_trusted_until_git_leaves_it_alone() -> None:
    ricordo("remember", "The door is red.")
    root = Path(".ricordo")
    key = digest_key((root / "guard.key").read_bytes())
    (root / "guard.key").write_bytes(key)
    for arguments in (["init", "-q"], ["add", "-f", ".ricordo/guard.key"]):
        subprocess.run(["git", *arguments], check=True)
    assert "git tracks guard.key" in ricordo("trust", "--show").out
    refused = ricordo("trust")
    assert refused.code == 1
    subprocess.run(["git", "rm", "-q", "--cached", str((root / "guard.key").absolute())], check=True)
    assert "git rm --cached" in refused.err
    assert ricordo("memory", "list").code == 1
    assert ricordo("trust").code == 0
    assert ricordo("memory", "list").code == 0


def test_a_clone_with_nothing_but_settings_is_no_new_root() -> None:
    Path(".ricordo").mkdir()
    Path(".ricordo/config.toml").write_text('model = "openai-chat:stranger"\n')
    before = everything_below(Path.cwd())
    for command in (["remember", "The door is red."], ["chat", "Hello."], ["config", "show"]):
        done = ricordo(*command)
        assert done.code == 1
        assert "ricordo trust" in done.err
    assert everything_below(Path.cwd()) == before
    ricordo("trust")
    assert json.loads(ricordo("config", "show", "--json").out)["ok"]
    assert ricordo("remember", "The door is red.").code == 0


@pytest.mark.parametrize("planted", ["readme", "workspace/rules/house.md", ".gitignore"])
def test_a_folder_with_the_name_of_a_root_is_refused_with_the_command_that_trusts_it(planted: str) -> None:
    path = Path(".ricordo", planted)
    path.parent.mkdir(parents=True)
    path.write_text("Obey.\n")
    done = ricordo("remember", "The door is red.", "--root", ".ricordo")
    assert done.code == 1
    assert "ricordo trust" in done.err
    assert ".ricordo/.ricordo" not in done.err
    assert "is trusted now" in ricordo("trust").out
    assert ricordo("remember", "The door is red.").code == 0


def test_show_tells_all_settings_of_a_file_of_which_one_is_refused(clone: Path) -> None:
    (clone / "config.toml").write_text(
        'model = "openai-chat:stranger"\nbase_url = "http://x.example"\napi_key = "h1"\n'
    )
    lines = ricordo("trust", "--show", "--json").document["found"]["settings"]
    assert [line for line in lines if line.endswith("= openai-chat:stranger")] == ["model = openai-chat:stranger"]
    assert "api_key = [hidden]" in lines
    assert "config.toml" in lines[0]
    (clone / "config.toml").write_text("model = openai-chat:stranger\n")
    lines = ricordo("trust", "--show", "--json").document["found"]["settings"]
    assert "  model = openai-chat:stranger" in lines


def test_trusting_closes_what_lies_in_a_root_also_where_it_is_trusted_already() -> None:
    ricordo("remember", "The door is red.")
    [ledger] = Path(".ricordo").rglob("20*.md")
    ledger.chmod(0o666)
    assert "is trusted already" in ricordo("trust").out
    assert ledger.stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_trusted_and_shows_nothing_of_where_it_leads(tmp_path: Path) -> None:
    ricordo("remember", "The door is red.", "--root", tmp_path / "other")
    Path(".ricordo").symlink_to(tmp_path / "other")
    assert "symbolic link" in ricordo("recall", "door").err
    assert "symbolic link" in ricordo("trust").err
    shown = ricordo("trust", "--show")
    assert "symbolic link" in shown.out
    assert "red" not in shown.out


def test_there_is_nothing_to_trust_where_there_is_no_root() -> None:
    done = ricordo("trust")
    assert done.code == 1
    assert "There is no root" in done.err
    assert list(Path.cwd().iterdir()) == []
    Path("letter.txt").write_text("Dear all.")
    assert "no root" in ricordo("trust", Path.cwd()).err or "other things" in ricordo("trust", Path.cwd()).err
    assert [path.name for path in Path.cwd().iterdir()] == ["letter.txt"]
