"""`ricordo config show`: every setting with its value and where it came from, also when one of them is broken."""

from pathlib import Path
from typing import Any

import pytest

from command_line import ricordo

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz1234567890ABCD"


@pytest.fixture
def config() -> Path:
    """Return the place of the config.toml of a root that exists."""
    ricordo("remember", "The door is red.")
    return Path(".ricordo", "config.toml")


def _rows() -> dict[str, Any]:
    return {row["key"]: row for row in ricordo("config", "show", "--json").document["settings"]}


def test_without_a_root_the_defaults_are_shown_and_nothing_is_made() -> None:
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


def test_what_is_off_says_so(config: Path) -> None:
    config.write_text("consolidation = false\n", encoding="utf-8")
    rows = _rows()
    assert (rows["consolidation"]["value"], rows["consolidation"]["off"]) == (False, True)
    assert rows["consolidation.max_lines"]["off"]
    shown = ricordo("config", "show").out
    assert ["consolidation", "off", "config.toml:1"] in [line.split() for line in shown.splitlines()]
    assert "(off: 200)" in shown


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
    assert ricordo("doctor").code == 0
    assert "The door is red." in ricordo("recall", "door").out


def test_a_broken_variable_is_told_and_the_file_still_holds(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("preamble_tokens = 7\n", encoding="utf-8")
    monkeypatch.setenv("RICORDO_MAX_ITERS", "many")
    done = ricordo("config", "show")
    assert done.code == 1
    assert "RICORDO_MAX_ITERS: max_iters takes a whole number" in done.err
    assert ["preamble_tokens", "7", "config.toml:1"] in [line.split() for line in done.out.splitlines()]
