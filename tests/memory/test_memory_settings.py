"""Opening takes the settings of the root's config.toml and of the environment, unless the caller brings their own."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hand_made_roots import begun
from places import place_of
from ricordo import Memory, Message
from ricordo.errors import DocumentInvalid, InvalidSetting, StorageFailed
from ricordo.messages import Text, Tokens, estimate_text
from ricordo.runtime import Settings

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def config(root: Path) -> Path:
    return begun(root) / "config.toml"


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def curated(root: Path) -> str:
    path = place_of(root) / "workspace" / "MEMORY.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def make_folder(path: Path) -> None:
    path.mkdir()


async def saved(opened: Opened) -> None:
    async with opened() as memory:
        for number in range(40):
            await memory.remember(f"The release of month {number} went out on a Monday, and nobody was surprised.")


async def test_the_preamble_keeps_to_the_tokens_of_config_toml_unless_a_budget_is_given(
    config: Path, opened: Opened
) -> None:
    await saved(opened)
    write(config, "preamble_tokens = 300\n")
    async with opened() as memory:
        short, long = await memory.preamble(), await memory.preamble(Tokens(2_000))
    assert 0 < estimate_text(short) <= 300 < estimate_text(long) <= 2_000


async def test_the_environment_wins_over_config_toml_and_settings_of_the_caller_over_both(
    config: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    await saved(opened)
    write(config, "preamble_tokens = 300\n")
    monkeypatch.setenv("RICORDO_PREAMBLE_TOKENS", "0")
    async with opened() as memory:
        assert await memory.preamble() == ""
    async with opened(settings=Settings.from_environment()) as memory:
        assert estimate_text(await memory.preamble()) > 300


@pytest.mark.req("AS-CONS-06")
async def test_a_root_whose_consolidation_is_off_gets_no_curated_memory(config: Path, opened: Opened) -> None:
    write(config, "consolidation = false\n")
    async with opened() as memory:
        await memory.ingest([said("We decided to deploy only from main.")], session="monday")
    assert curated(config.parent) == ""
    write(config, "")
    async with opened() as memory:
        await memory.ingest([said("We decided to use uv, not conda.")], session="tuesday")
    assert "only from main" in curated(config.parent)


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("max_iters = 3\nmodel = opus\n", DocumentInvalid, "config.toml:2: not valid TOML"),
        ("preamble_tokens = 'few'\n", InvalidSetting, "config.toml:1: preamble_tokens takes a whole number"),
    ],
)
async def test_settings_that_can_not_be_used_are_an_error_with_their_place(
    text: str, error: type[Exception], told: str, config: Path, opened: Opened
) -> None:
    write(config, text)
    with pytest.raises(error, match=told):
        async with opened():
            pass
    assert sorted(names(config.parent)) == ["config.toml", "guard.key"]


async def test_a_config_toml_that_is_no_file_is_an_error_and_nothing_is_made(config: Path, opened: Opened) -> None:
    make_folder(config)
    with pytest.raises(StorageFailed, match="it is no file"):
        async with opened():
            pass
    assert sorted(names(config.parent)) == ["config.toml", "guard.key"]
