"""`ricordo config show`: every setting with its value and where it came from, also when one of them is broken."""

from pathlib import Path
from typing import Any

import pytest

from command_line import chat, ricordo
from ricordo.runtime import Settings

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz1234567890ABCD"


@pytest.fixture
def config() -> Path:
    """Return the place of the config.toml of a root that exists."""
    ricordo("remember", "The door is red.")
    return Path(".ricordo", "config.toml")


def _rows() -> dict[str, Any]:
    return {row["key"]: row for row in ricordo("config", "show", "--json").document["settings"]}


def test_without_a_root_the_defaults_are_shown_and_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RICORDO_EMBEDDER")
    monkeypatch.delenv("RICORDO_FLUSH__MODEL")
    monkeypatch.delenv("RICORDO_FLUSH__CLOSING_SECONDS", raising=False)
    monkeypatch.delenv("RICORDO_USER")
    document = ricordo("config", "show", "--json").document
    assert (document["ok"], document["exists"], document["trouble"]) == (True, False, [])
    assert {row["origin"]["kind"] for row in document["settings"]} == {"default"}
    assert not Path(".ricordo").exists()


def test_each_value_says_where_it_came_from(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text('model = "openai:gpt-5"\n\n[compaction]\ntrigger_messages = 30\n', encoding="utf-8")
    monkeypatch.setenv("RICORDO_MAX_ITERS", "4")
    rows = _rows()
    assert (rows["model"]["value"], rows["model"]["origin"]["kind"], rows["model"]["origin"]["line"]) == (
        "openai:gpt-5", "file", 1,
    )  # fmt: skip
    assert rows["max_iters"]["origin"] == {"kind": "environment", "name": "RICORDO_MAX_ITERS", "line": None}
    assert (rows["compaction"]["value"], rows["compaction"]["off"]) == (True, False)
    lines = [line.split() for line in ricordo("config", "show", "--user", "ana").out.splitlines()]
    assert ["trigger_messages", "30", "config.toml:4"] in lines
    assert ["max_iters", "4", "RICORDO_MAX_ITERS"] in lines
    assert ["user", "ana", "argument"] in lines
    assert ["compaction", "on", "config.toml:4"] in lines


def test_a_broken_file_of_the_person_is_told_and_the_rest_goes_on(config: Path) -> None:
    own = Settings.from_environment().data / "config.toml"
    own.write_text("permissions = [\n", encoding="utf-8")
    config.write_text("max_iters = 4\n", encoding="utf-8")
    done = ricordo("config", "show", "--json")
    assert (done.code, done.document["own_file"], done.document["own_exists"]) == (1, str(own), True)
    assert str(own) in done.document["trouble"][0]
    assert _rows()["max_iters"]["value"] == 4
    assert ricordo("recall", "door").code == 0


def test_what_is_off_says_so(config: Path) -> None:
    config.write_text("consolidation = false\n", encoding="utf-8")
    rows = _rows()
    assert (rows["consolidation"]["value"], rows["consolidation"]["off"]) == (False, True)
    assert rows["consolidation.max_lines"]["off"]
    shown = ricordo("config", "show").out
    assert ["consolidation", "off", "config.toml:1"] in [line.split() for line in shown.splitlines()]
    assert "(off: 200)" in shown


@pytest.mark.req("FC-SECRET")
def test_a_secret_is_masked_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_MODEL", SECRET)
    monkeypatch.setenv("RICORDO_BASE_URL", "https://me:hunter2x@host.example/v1")
    for done in (ricordo("config", "show"), ricordo("config", "show", "--json")):
        assert SECRET not in done.out + done.err
        assert "hunter2x" not in done.out
        assert done.out.count("[hidden]") == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("max_iters = 3\nmodel = opus\n", "config.toml:2: not valid TOML"),
        ("max_iters = 3\nmodle = 'x'\n", "config.toml:2: modle is no setting; did you mean model?"),
        (f"max_iters = 3\nmodel = '{SECRET}'\n", "config.toml:2: model holds a secret"),
    ],
)
def test_a_broken_file_is_told_and_the_rest_goes_on(text: str, told: str, config: Path, monkeypatch: Any) -> None:
    config.write_text(text, encoding="utf-8")
    monkeypatch.setenv("RICORDO_PREAMBLE_TOKENS", "7")
    done = ricordo("config", "show")
    assert done.code == 1
    assert told in done.err
    assert ["preamble_tokens", "7", "RICORDO_PREAMBLE_TOKENS"] in [line.split() for line in done.out.splitlines()]
    document = ricordo("config", "show", "--json").document
    assert not document["ok"]
    assert told in document["trouble"][0]
    assert SECRET not in done.out + done.err + str(document)


@pytest.mark.parametrize(
    "command",
    [
        ["recall", "door"],
        ["ask", "What is red?"],
        ["memory", "list"],
        ["context"],
        ["remember", "The door is high."],
        [],
    ],
    ids=lambda command: " ".join(command) or "status",
)
def test_looking_and_remembering_go_on_without_a_broken_file_and_say_so_in_one_line(
    command: list[str], config: Path
) -> None:
    config.write_text("preamble_tokens = few\n", encoding="utf-8")
    done = ricordo(*command)
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert "config.toml:1: not valid TOML" in done.err
    as_json = ricordo(*command, "--json")
    assert (as_json.code, as_json.err) == (0, done.err)
    assert as_json.document
    assert "door" in done.out or "Remembered" in done.out or not command


@pytest.mark.parametrize("command", [["chat", "What is red?"], ["replay", "chat.jsonl"]], ids=["chat", "replay"])
def test_an_agent_does_not_begin_with_settings_that_can_not_be_used(command: list[str], config: Path) -> None:
    chat(Path("chat.jsonl"))
    config.write_text("preamble_tokens = few\n", encoding="utf-8")
    done = ricordo(*command)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "config.toml:1: not valid TOML" in done.err
    assert ricordo(*command, "--json").document["error"] == "DocumentInvalid"
    assert ricordo("session", "list", "--json").document["sessions"] == []


@pytest.mark.req("FC-DOCTOR")
def test_doctor_counts_the_settings_that_are_given_and_fails_on_one_that_can_not_be_used(config: Path) -> None:
    def check() -> dict[str, Any]:
        return next(row for row in ricordo("doctor", "--json").document["checks"] if row["name"] == "config")

    before = check()["count"]
    config.write_text("max_iters = 3\n", encoding="utf-8")
    assert (check()["ok"], check()["count"]) == (True, before + 1)
    config.write_text("max_iters = 0\n", encoding="utf-8")
    assert (check()["ok"], check()["count"]) == (False, 1)
    config.write_text("preamble_tokens = 900\nmax_iters = 0\n", encoding="utf-8")
    assert "config.toml:2" in check()["detail"]
    assert "What else that file, or the environment, says is not used either" in check()["detail"]
    assert _rows()["preamble_tokens"]["origin"]["kind"] == "default"
    done = ricordo("doctor")
    assert (done.code, done.err) == (1, "")
    assert [line.split()[1] for line in done.out.splitlines() if "FAIL" in line] == ["config"]


def test_the_preamble_of_a_root_is_as_long_as_its_setting_says(config: Path) -> None:
    for number in range(20):
        ricordo("remember", f"The release of month {number} went out on a Monday, and nobody was surprised by it.")
    config.write_text("preamble_tokens = 200\n", encoding="utf-8")
    assert 0 < ricordo("context", "--json").document["tokens"] <= 200
    assert 200 < ricordo("context", "--budget", "400", "--json").document["tokens"] <= 400
    assert "fits into so few tokens" in ricordo("context", "--budget", "3").out


def test_a_broken_variable_is_told_and_the_file_still_holds(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("preamble_tokens = 7\n", encoding="utf-8")
    monkeypatch.setenv("RICORDO_MAX_ITERS", "many")
    done = ricordo("config", "show")
    assert done.code == 1
    assert "RICORDO_MAX_ITERS: max_iters takes a whole number" in done.err
    assert ["preamble_tokens", "7", "config.toml:1"] in [line.split() for line in done.out.splitlines()]
