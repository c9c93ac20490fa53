"""Settings: a file, the environment and arguments in this order, each value checked, and every one knows its origin."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import CompactionConfig, ToolResultEvictionConfig, TruncateArgsConfig
from ricordo.context import Reductions
from ricordo.errors import DocumentInvalid, InvalidSetting, StorageFailed
from ricordo.guard import render_rule
from ricordo.language import SIGNALS
from ricordo.messages.tokens import Share
from ricordo.runtime import Settings
from ricordo.runtime.config_file import is_secret_name
from ricordo.runtime.setting_layers import (
    SettingLayers,
    SettingOrigin,
    SettingValue,
    list_setting_tables,
    list_setting_types,
)
from ricordo.runtime.settings import HIDDEN_VALUE, MACHINE_SETTINGS, environment_variable, list_settings

Load = Callable[..., Settings]
EVERY_KEY = (*list_setting_types(Settings), *list_setting_tables(Settings))


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load the settings of a root with this config.toml, this environment and these arguments."""

    def from_text(text: str = "", environment: dict[str, str] | None = None, **arguments: object) -> Settings:
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        return Settings.load(tmp_path, environment or {}, arguments, trusted=True)

    return from_text


def refused(load: Load, text: str, **environment: str) -> str:
    """Return why these settings are refused."""
    with pytest.raises(InvalidSetting) as caught:
        load(text, environment)
    return str(caught.value)


def test_without_a_file_and_an_environment_everything_is_at_its_default(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path / "nowhere", {})
    assert (settings.model, settings.reductions) == (None, {})
    assert (settings.max_iters, settings.preamble_tokens) == (10, 4_000)
    assert settings.consolidation is not None
    assert settings.origins == {}
    assert settings == Settings.from_environment({})


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return the place of the person's own config.toml, for `RICORDO_DATA=own`."""
    (tmp_path / "own").mkdir()
    return tmp_path / "own" / "config.toml"


def test_the_persons_own_file_comes_before_that_of_a_root_and_alone_names_permissions(load: Load, own: Path) -> None:
    data = {"RICORDO_DATA": str(own.parent)}
    own.write_text('max_iters = 2\npreamble_tokens = 20\npermissions = ["allow shell(git status)"]\n', encoding="utf-8")
    settings = load("max_iters = 3\n", data)
    assert (settings.max_iters, settings.preamble_tokens) == (3, 20)
    assert [render_rule(rule) for rule in settings.permission_rules] == ["allow shell(git status)"]
    assert settings.origins["permissions"].name == str(own)
    assert Settings.load(None, data, own=True).permission_rules == settings.permission_rules
    assert Settings.load(None, data).permission_rules == ()
    told = refused(load, 'permissions = ["allow shell"]\n', **data)
    assert "permissions can't be set in a file that may come with a folder" in told
    assert "your own config.toml" in told
    own.write_text('permissions = ["let shell"]\n', encoding="utf-8")
    assert "allow, ask or deny" in refused(load, "", **data)
    own.write_text('base_url = "http://localhost:1"\n', encoding="utf-8")
    assert "base_url can't be set" in refused(load, "", **data)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no modes of files")
def test_permissions_of_a_file_that_others_can_write_are_refused(load: Load, own: Path) -> None:
    own.write_text('permissions = ["allow shell"]\n', encoding="utf-8")
    for mode in (0o620, 0o602):
        own.chmod(mode)
        assert "others can write this file" in refused(load, "", RICORDO_DATA=str(own.parent))
    own.chmod(0o644)
    assert load("", {"RICORDO_DATA": str(own.parent)}).permissions == ("allow shell",)


def test_the_file_comes_first_then_the_environment_then_arguments(load: Load) -> None:
    text = "max_iters = 2\npreamble_tokens = 20\nmodel = 'openai:gpt-5'\n"
    environment = {"RICORDO_MAX_ITERS": "3", "RICORDO_PREAMBLE_TOKENS": "30"}
    settings = load(text, environment, max_iters=4, model=None)
    assert (settings.max_iters, settings.preamble_tokens, settings.model) == (4, 30, "openai:gpt-5")
    assert {key: origin.short_name for key, origin in settings.origins.items()} == {
        "max_iters": "argument", "preamble_tokens": "RICORDO_PREAMBLE_TOKENS", "model": "config.toml:3",
    }  # fmt: skip


def test_a_table_is_switched_on_by_any_of_its_settings_and_the_others_keep_their_defaults(load: Load) -> None:
    text = '# ours\n[compaction]\n\ntrigger_messages = 30 # "soon"\nkeep_tokens = "25%"\n'
    settings = load(text, {"RICORDO_COMPACTION__KEEP_MESSAGES": "10"})
    assert settings.reductions.get("compaction") == CompactionConfig(
        trigger_messages=30, keep_messages=10, keep_tokens=Share(0.25)
    )
    assert settings.origins["compaction.trigger_messages"].line == 4
    assert settings.origins["compaction.keep_tokens"].line == 5
    assert settings.reductions.get("truncate_args") is None


def test_a_table_inside_a_table_is_reached_by_both_names(load: Load) -> None:
    settings = load(
        "[compaction.truncate_args]\nkept_chars = 7", {"RICORDO_COMPACTION__TRUNCATE_ARGS__KEEP_TOKENS": "9"}
    )
    assert settings.reductions.get("compaction") == CompactionConfig(
        truncate_args=TruncateArgsConfig(kept_chars=7, keep_tokens=9)
    )


@pytest.mark.parametrize("text", ["[compaction]", "compaction = true", "compaction = 'classic'"])
def test_a_table_can_be_switched_on_as_it_is(text: str, load: Load) -> None:
    assert load(text).reductions.get("compaction") == CompactionConfig.classic()


def test_a_preset_is_changed_by_what_is_said_besides(load: Load) -> None:
    settings = load("compaction = 'dynamic'", {"RICORDO_COMPACTION__RESERVED": "5_000"})
    assert settings.reductions.get("compaction") == CompactionConfig(
        trigger_messages=0, trigger_tokens=None, keep_tokens=None, reserved=5_000
    )


def test_off_wins_over_earlier_layers_and_over_the_same_one_and_a_later_setting_over_off(load: Load) -> None:
    text = "[compaction]\ntrigger_messages = 30"
    off = load(text, {"RICORDO_COMPACTION": "off", "RICORDO_COMPACTION__KEEP_MESSAGES": "3"})
    assert off.reductions.get("compaction") is None
    assert off.origins["compaction"].name == "RICORDO_COMPACTION"
    assert load(text, {"RICORDO_COMPACTION": "off"}, **{"compaction.keep_messages": 3}).reductions.get(
        "compaction"
    ) == CompactionConfig(keep_messages=3)
    assert load("consolidation = false").consolidation is None


def test_a_whole_configuration_can_be_an_argument(load: Load) -> None:
    given = CompactionConfig(trigger_messages=7, truncate_args=TruncateArgsConfig(kept_chars=3))
    assert load("[compaction]\nkeep_messages = 3", compaction=given).reductions.get("compaction") == given


def test_lists_are_lists_in_a_file_and_parted_by_commas_in_the_environment(load: Load) -> None:
    wanted = ToolResultEvictionConfig(excluded_tool_names=frozenset({"read_file", "grep_files"}))
    assert (
        load("[tool_result_eviction]\nexcluded_tool_names = ['read_file', 'grep_files']").reductions.get(
            "tool_result_eviction"
        )
        == wanted
    )
    by_name = {"RICORDO_TOOL_RESULT_EVICTION__EXCLUDED_TOOL_NAMES": "read_file, grep_files"}
    assert load("", by_name).reductions.get("tool_result_eviction") == wanted


def test_no_value_is_written_as_none(load: Load) -> None:
    settings = load("[compaction]\ntrigger_tokens = 'none'", {"RICORDO_COMPACTION__KEEP_TOKENS": "none"})
    assert settings.reductions.get("compaction") == CompactionConfig(trigger_tokens=None, keep_tokens=None)


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("max_itters = 3", ["config.toml:1", "max_itters is no setting", "did you mean max_iters?"]),
        ("\n[compaction]\ntrigger_mesages = 3", ["config.toml:3", "did you mean compaction.trigger_messages?"]),
        ("[compactoin]", ["config.toml:1", "did you mean compaction?"]),
        ("max_iters = '3'", ["config.toml:1", "max_iters takes a whole number, not '3'"]),
        ("max_iters = 3.0", ["takes a whole number"]),
        ("max_iters = true", ["takes a whole number, not True"]),
        ("max_iters = nan", ["takes a whole number"]),
        ("max_iters = 2026-11-22", ["takes a whole number"]),
        ("max_iters = 0", ["config.toml:1", "max_iters", "at least 1"]),
        ("preamble_tokens = -1", ["config.toml:1", "preamble_tokens", "at least 0"]),
        ("[compaction]\nkeep_messages = -5", ["config.toml:2", "compaction.keep_messages", "at least 1, not -5"]),
        ("[compaction]\nflush_before_compact = 1", ["config.toml:2", "takes true or false, not 1"]),
        ("[compaction]\nsummary_seconds = inf", ["config.toml:2", "takes a number"]),
        (
            "[compaction]\nkeep_tokens = '120%'",
            ["config.toml:2", "compaction.keep_tokens takes", 'a share such as "80%"'],
        ),
        ("[consolidation]\nmin_confidence = 2", ["config.toml:2", "consolidation.min_confidence", "0 and 1"]),
        ("compaction = 'often'", ["config.toml:1", "true or false", '"dynamic"']),
        ("compaction = 3", ["config.toml:1", "a table of settings"]),
        ("model = ['a']", ["config.toml:1", "model takes a text"]),
        ("model = ' '", ["config.toml:1", "model"]),
        ("[tool_result_eviction]\nexcluded_tool_names = [1]", ["config.toml:2", "a list of texts"]),
        ("[[compaction]]\nkeep_messages = 3", ["compaction"]),
        ("[compaction]\nsummary_prompt = '''\nx = 1\n'''\nmodell = 'a'", ["config.toml:5", "did you mean"]),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_what_is_allowed(text: str, told: list[str], load: Load) -> None:
    message = refused(load, text)
    assert [part for part in told if part not in message] == []


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("RICORDO_MAX_ITERS", "many", "RICORDO_MAX_ITERS: max_iters takes a whole number, not 'many'"),
        ("RICORDO_STORE", "  ", "RICORDO_STORE: store: '' names no store"),
        ("RICORDO_COMPACTION", "maybe", "RICORDO_COMPACTION: compaction is a table"),
        ("RICORDO_COMPACTION__KEEP_MESAGES", "3", "did you mean RICORDO_COMPACTION__KEEP_MESSAGES?"),
        ("RICORDO_COMPACTION__KEEP_MESSAGES", "0", "RICORDO_COMPACTION__KEEP_MESSAGES: compaction.keep_messages"),
    ],
)
def test_a_variable_that_is_wrong_is_named(name: str, value: str, told: str, load: Load) -> None:
    assert told in refused(load, "", **{name: value})


def test_empty_and_foreign_variables_say_nothing(load: Load) -> None:
    assert load("", {"RICORDO_MAX_ITERS": "", "RICORDO_OF_ANOTHER_TOOL": "x", "MAX_ITERS": "3"}).origins == {}


@pytest.mark.req("AS-CFG-01")
def test_an_argument_that_is_no_setting_is_refused(load: Load) -> None:
    with pytest.raises(InvalidSetting, match=r"argument: max_iter is no setting; did you mean max_iters\?"):
        load(max_iter=3)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"max_iters = 3\nmodel = opus\n", 2),
        (b"[compaction\n", 1),
        (b"a = 1\na = 2\n", 2),
        (b'max_iters = 3\n\nmodel = "x', 3),
        (b"max_iters = 3\n\n# \xff\n", 3),
    ],
)
def test_a_broken_file_is_told_with_its_line(data: bytes, line: int, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(data)
    with pytest.raises(DocumentInvalid, match=rf"config\.toml:{line}: not"):
        Settings.load(tmp_path, {}, trusted=True)


def test_a_file_that_is_none_or_far_too_large_is_told(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("# " + "x" * 300_000)
    with pytest.raises(DocumentInvalid, match="larger"):
        Settings.load(tmp_path, {}, trusted=True)
    config.unlink()
    config.mkdir()
    with pytest.raises(StorageFailed, match=r"config\.toml can't be read"):
        Settings.load(tmp_path, {}, trusted=True)
    config.rmdir()
    os.mkfifo(config)
    with pytest.raises(StorageFailed, match=r"config\.toml can't be read"):
        Settings.load(tmp_path, {}, trusted=True)


@pytest.mark.parametrize(
    "text",
    ["a." * 20_000 + "a = 1", '"a" . ' * 20_000 + "a = 1", "a = " + "[" * 20_000 + "]" * 20_000, "a" * 50_000 + " = 1"],
    ids=["deep", "quoted", "nested", "long"],
)
def test_a_file_made_to_break_its_reader_is_refused_in_few_words(text: str, load: Load) -> None:
    with pytest.raises((DocumentInvalid, InvalidSetting)) as caught:
        load(text)
    assert len(str(caught.value)) < 400


def test_a_long_value_is_told_in_few_words(load: Load) -> None:
    assert len(refused(load, f"max_iters = '{'x' * 50_000}'")) < 400


def test_a_byte_order_mark_is_no_setting(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbfmax_iters = 3\r\n")
    assert Settings.load(tmp_path, {}, trusted=True).max_iters == 3


@pytest.mark.parametrize("key", sorted(MACHINE_SETTINGS))
def test_a_file_can_not_say_where_memory_lies_or_where_a_model_is_reached(key: str, load: Load) -> None:
    message = refused(load, f'{key} = "elsewhere"')
    assert f"config.toml:1: {key} can't be set" in message
    assert environment_variable(key) in message


def test_what_only_this_machine_says_comes_from_the_environment_and_arguments(load: Load) -> None:
    settings = load("", {"RICORDO_BASE_URL": "http://localhost:1", "RICORDO_DATA": "/d"}, user="ana")
    assert (settings.base_url, settings.data, settings.user) == ("http://localhost:1", Path("/d"), "ana")


@pytest.mark.req("AS-TRIG-03")
@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("", timedelta(hours=6)),
        ("[maintenance]\ninterval = '90m'", timedelta(minutes=90)),
        ("[maintenance]\ninterval = ' 1.5 H '", timedelta(minutes=90)),
        ("[maintenance]\ninterval = '2d'", timedelta(days=2)),
        ("[maintenance]\ninterval = '45s'", timedelta(seconds=45)),
    ],
)
def test_a_duration_is_a_number_with_its_unit_and_is_listed_as_one(text: str, interval: timedelta, load: Load) -> None:
    settings = load(text)
    assert settings.maintenance.interval == interval
    (shown,) = [str(row.value) for row in list_settings(settings) if row.key == "maintenance.interval"]
    assert load("", {"RICORDO_MAINTENANCE__INTERVAL": shown}).maintenance.interval == interval


@pytest.mark.req("DF-C14")
def test_a_directory_of_patterns_with_a_fault_is_refused_with_the_name_of_the_file(tmp_path: Path, load: Load) -> None:
    for signal in SIGNALS:
        (tmp_path / f"{signal}.yaml").write_text("[]\n", "utf8")
    given = {"RICORDO_SIGNAL_PATTERNS": str(tmp_path)}
    settings = load("", given)
    assert settings.signal_patterns == tmp_path
    (tmp_path / "goal.yaml").write_text("- '(unclosed'", "utf8")
    with pytest.raises(InvalidSetting, match=r"goal\.yaml"):
        load("", given)
    with pytest.raises(InvalidSetting, match=r"goal\.yaml"):
        replace(load(""), signal_patterns=tmp_path)
    (tmp_path / "goal.yaml").unlink()
    with pytest.raises(InvalidSetting, match=r"goal\.yaml"):
        load("", given)


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize("value", ["6", "'6'", "'soon'", "'-6h'", "'6 years'", "true", "'0s'", "'600w'"])
def test_what_is_no_duration_is_refused_with_its_place(value: str, load: Load) -> None:
    assert "config.toml:2: maintenance.interval" in refused(load, f"[maintenance]\ninterval = {value}")


@pytest.mark.parametrize("text", ["model = 'http://evil.example/v1'", "[compaction]\nmodel = 'x://y'"])
def test_the_name_of_a_model_in_a_file_leads_nowhere(text: str, load: Load) -> None:
    assert "RICORDO_BASE_URL" in refused(load, text)


@pytest.mark.req("FC-SECRET")
@pytest.mark.parametrize(
    "text",
    [
        "api_key = 'abc'",
        "sk-proj-abcdefghijklmnopqrstuvwxyz1234567890ABCD = 1",
        "[openai]\napi_key = 'abc'", "OPENAI_API_KEY = 'abc'", "password = 3", "auth_token = 'x'",
        "model = 'sk-proj-abcdefghijklmnopqrstuvwxyz1234567890ABCD'",
        "[tool_result_eviction]\nexcluded_tool_names = ['sk-proj-abcdefghijklmnopqrstuvwxyz1234567890ABCD']",
    ],
)  # fmt: skip
def test_a_secret_in_the_file_is_refused_with_a_hint_and_not_repeated(text: str, load: Load) -> None:
    message = refused(load, text)
    assert "holds a secret" in message
    assert "environment" in message
    assert "sk-proj" not in message


@pytest.mark.req("FC-SECRET")
def test_a_secret_that_stands_where_a_number_belongs_is_not_repeated(load: Load) -> None:
    message = refused(load, "", RICORDO_MAX_ITERS="sk-proj-abcdefghijklmnopqrstuvwxyz1234567890ABCD")
    assert "sk-proj" not in message


def test_tokens_that_are_counted_are_no_secret() -> None:
    names = ("keep_tokens", "preamble_tokens", "compaction.trigger_tokens", "monkey")
    assert not any(map(is_secret_name, names))
    assert all(map(is_secret_name, ("api_key", "openai.apikey", "access-token", "client_secret", "x.PASSWORD")))


def test_every_setting_is_listed_with_its_value_its_variable_and_its_origin(load: Load) -> None:
    environment = {"RICORDO_BASE_URL": "https://me:hunter2x@host.example/v1", "RICORDO_COMPACTION__KEEP_TOKENS": "25%"}
    rows = {row.key: row for row in list_settings(load("max_iters = 4", environment))}
    assert sorted(rows) == sorted(EVERY_KEY)
    shown = {key: rows[key].value for key in ("max_iters", "base_url", "compaction.keep_tokens")}
    assert shown == {"max_iters": 4, "base_url": HIDDEN_VALUE, "compaction.keep_tokens": "25%"}
    assert rows["max_iters"].origin.short_name == "config.toml:1"
    assert (rows["compaction"].value, rows["compaction"].origin.name) == (True, "RICORDO_COMPACTION__KEEP_TOKENS")
    assert (rows["truncate_args"].value, rows["truncate_args.kept_chars"].is_off) == (False, True)
    assert rows["compaction.keep_messages"].origin == SettingOrigin()
    assert rows["compaction.keep_messages"].variable == "RICORDO_COMPACTION__KEEP_MESSAGES"


def test_no_two_settings_share_a_variable() -> None:
    assert len({environment_variable(key) for key in EVERY_KEY}) == len(EVERY_KEY)


@given(
    st.dictionaries(
        st.sampled_from(
            [key for key, kind in list_setting_types(Settings).items() if int in kind and "min" not in key]
        ),
        st.tuples(*[st.integers(0, 3)] * 3),
    )
)
def test_the_last_layer_that_says_something_wins(chosen: dict[str, tuple[int, int, int]]) -> None:
    layers = SettingLayers(owner=Settings, presets={})
    last: dict[str, int] = {}
    for number in range(3):
        said = {key: values[number] for key, values in chosen.items() if values[number]}
        layers.add_layer(
            [SettingValue(key=key, value=value, origin=SettingOrigin(line=number)) for key, value in said.items()]
        )
        last |= said
    assert {key: origin.line for key, origin in layers.origins().items()} == {
        key: max(number for number in range(3) if chosen[key][number]) for key in last
    }


@dataclass(frozen=True, kw_only=True)
class _Inner:
    names: tuple[str, ...] = ("a",)
    share: Share = field(default_factory=lambda: Share(0.5))


@dataclass(frozen=True, kw_only=True)
class _Sample:
    switch: bool = False
    ratio: float = 0.5
    folder: Path | None = None
    inner: _Inner = _Inner()
    made: Callable[[], None] | None = None


def _sample(**given: object) -> object:
    layers = SettingLayers(owner=_Sample, presets={})
    layers.add_layer(
        [
            SettingValue(key=key.replace("__", "."), value=value, origin=SettingOrigin(), is_text=True)
            for key, value in given.items()
        ]
    )
    return _Sample(**layers.values())  # type: ignore[arg-type]


def test_a_new_configuration_needs_no_reader_of_its_own() -> None:
    assert _sample(switch="yes", ratio="1", folder="/x", inner__names="b, c", inner__share="10%") == _Sample(
        switch=True, ratio=1.0, folder=Path("/x"), inner=_Inner(names=("b", "c"), share=Share(0.1))
    )
    assert "made" not in list_setting_types(_Sample)
    with pytest.raises(InvalidSetting, match="made is no setting"):
        _sample(made="print")
    with pytest.raises(InvalidSetting, match="inner is a table"):
        _sample(inner="off")


def test_every_setting_stands_in_the_guide() -> None:
    guide = Path(__file__).parents[2].joinpath("docs", "guide", "configuration.md").read_text(encoding="utf-8")
    assert [key for key in EVERY_KEY if f"`{key}`" not in guide] == []
    plain = {each.name for each in fields(Settings)} - {"origins", "reductions"} | Reductions.__annotations__.keys()
    assert plain == {key for key in EVERY_KEY if "." not in key}
