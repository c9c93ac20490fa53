"""Where requests go: each model is reached where its own address says, and what is unclear is not asked at all."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents_at_work import SCOPE, said
from hand_made_roots import begun
from recording_servers import Recording, recording
from ricordo import CompactionConfig, Entry, FlushConfig, HarnessAgent, Memory, MemoryConfig, SubAgent
from ricordo.errors import InvalidSetting, ModelError
from ricordo.models import ChatModel, load_model
from ricordo.runtime import Settings, open_store

pytestmark = pytest.mark.anyio

KEY = "key-of-the-private-server"
PURPOSES = ("flush", "consolidation", "compaction")


@dataclass(frozen=True, kw_only=True)
class Servers:
    """A server of one's own, another one, and one that stands for the public address of the provider."""

    private: Recording
    other: Recording
    public: Recording

    @property
    def asked(self) -> set[str]:
        """Which of them were sent anything."""
        return {name for name in ("private", "other", "public") if getattr(self, name).seen}


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    with recording() as private, recording() as other, recording() as public:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", public.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", public.url)
        yield Servers(private=private, other=other, public=public)


def surroundings(tmp_path: Path, more: Mapping[str, str]) -> Settings:
    held = {"RICORDO_DATA": str(tmp_path / "data"), "RICORDO_CACHE": str(tmp_path / "cache"), "RICORDO_USER": "me"}
    return Settings.load(None, {**held, **more})


async def at_work(root: Path, settings: Settings, model: str | ChatModel = "offline") -> None:
    """Say something, learn from it, make curated memory of it and make the window smaller."""
    described = HarnessAgent.with_recommended_settings(model, memory=root, scope=SCOPE, settings=settings)
    async with described as agent:
        for number in range(6):
            with suppress(ModelError):
                await agent.send(f"Number {number}: we decided that service {number} is deployed from main only.")
        await agent.record([said(f"Remember that team {number} meets on Mondays.") for number in range(30)])
        await agent.flush(seconds=10)
        await agent.consolidate(deep=True)
        await agent.compact()


@pytest.mark.parametrize("purpose", PURPOSES)
async def test_a_model_of_the_agents_provider_is_reached_at_the_agents_address(
    tmp_path: Path, servers: Servers, purpose: str
) -> None:
    given = {"RICORDO_MODEL": "openai-chat:large", "RICORDO_BASE_URL": servers.private.url}
    settings = surroundings(tmp_path, {**given, f"RICORDO_{purpose.upper()}__MODEL": "openai-chat:small"})
    await at_work(tmp_path / ".ricordo", settings)
    assert servers.asked == {"private"}
    assert servers.private.keys == {KEY}
    assert "small" in servers.private.models


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("owner", [None, "vllm:large", "anthropic:large", "offline"])
async def test_a_model_of_which_nobody_said_where_it_is_reached_is_refused_before_anything_is_sent(
    tmp_path: Path, servers: Servers, purpose: str, owner: str | None
) -> None:
    given = {"RICORDO_BASE_URL": servers.private.url, f"RICORDO_{purpose.upper()}__MODEL": "openai-chat:small"}
    with pytest.raises(InvalidSetting, match=f"RICORDO_{purpose.upper()}__BASE_URL"):
        await at_work(
            tmp_path / ".ricordo", surroundings(tmp_path, given | ({"RICORDO_MODEL": owner} if owner else {}))
        )
    assert not servers.asked


@pytest.mark.parametrize("purpose", PURPOSES)
async def test_a_model_with_an_address_of_its_own_is_reached_there_and_nowhere_else(
    tmp_path: Path, servers: Servers, purpose: str
) -> None:
    own = {"MODEL": "openai-chat:small", "BASE_URL": servers.other.url}
    given = {f"RICORDO_{purpose.upper()}__{name}": value for name, value in own.items()}
    given |= {"RICORDO_BASE_URL": servers.private.url, "RICORDO_MODEL": "vllm:large"}
    await at_work(tmp_path / ".ricordo", surroundings(tmp_path, given))
    assert servers.asked == {"other"}


async def test_the_conversation_of_a_model_with_an_address_goes_to_no_model_that_is_only_named(
    tmp_path: Path, servers: Servers
) -> None:
    private = load_model("openai-chat:large", base_url=servers.private.url, api_key="k")
    root, settings, config = tmp_path / ".ricordo", surroundings(tmp_path, {}), FlushConfig(model="openai-chat:small")
    with pytest.raises(InvalidSetting, match="load_model"):
        async with HarnessAgent(private, memory=MemoryConfig(root=root, flush=config), scope=SCOPE, settings=settings):
            pass
    helper = SubAgent(name="helper", description="Helps.", model="openai-chat:small")
    with pytest.raises(InvalidSetting, match="load_model"):
        async with HarnessAgent(private, memory=root, scope=SCOPE, settings=settings, sub_agents=[helper]):
            pass
    summary = CompactionConfig(model="openai-chat:small")
    with pytest.raises(InvalidSetting, match="load_model"):
        async with HarnessAgent(private, memory=root, scope=SCOPE, settings=settings, compaction=summary):
            pass
    assert not servers.asked


async def test_an_agent_of_another_provider_is_not_asked_at_an_address_that_was_given_for_another_model(
    tmp_path: Path, servers: Servers
) -> None:
    given = {"RICORDO_MODEL": "vllm:large", "RICORDO_BASE_URL": servers.private.url}
    with pytest.raises(InvalidSetting, match="vllm:large"):
        await at_work(tmp_path / ".ricordo", surroundings(tmp_path, given), "anthropic:large")
    with pytest.raises(InvalidSetting, match="vllm:large"):
        Settings.load(None, given, {"model": "anthropic:large"})
    assert not servers.asked


@pytest.mark.parametrize(
    ("owner", "own", "reached"),
    [(None, False, ""), ("openai-chat:large", False, ""), ("openai:large", False, "private"), (None, True, "other")],
)
async def test_memory_is_embedded_where_the_embedder_is_or_not_at_all(
    tmp_path: Path, servers: Servers, owner: str | None, own: bool, reached: str
) -> None:
    given = {"RICORDO_BASE_URL": servers.private.url, "RICORDO_EMBEDDER": "openai:text-embedding-3-small"}
    given |= {"RICORDO_MODEL": owner} if owner else {}
    given |= {"RICORDO_EMBEDDER_BASE_URL": servers.other.url} if own else {}
    settings = surroundings(tmp_path, given)

    async def embedded() -> None:
        async with Memory.open(tmp_path / ".ricordo", scope=SCOPE, settings=settings) as memory:
            await memory.remember("We deploy only from main.")
            await memory.embed(seconds=10)

    async def stored() -> None:
        address = f"vector:{tmp_path}/notes?embedder=openai:text-embedding-3-small"
        async with open_store(address, scope=SCOPE, settings=settings) as store:
            await store.save(Entry(content="We deploy only from main."))

    for work in (embedded, stored):
        if not reached:
            with pytest.raises(InvalidSetting, match="RICORDO_EMBEDDER_BASE_URL"):
                await work()
        else:
            await work()
    assert servers.asked == ({reached} if reached else set())


@pytest.mark.parametrize("key", ["base_url", "flush.base_url", "compaction.base_url", "embedder_base_url"])
def test_a_file_that_may_come_with_a_folder_says_of_no_model_where_it_is_reached(tmp_path: Path, key: str) -> None:
    root = tmp_path / ".ricordo"
    begun(root)
    (root / "config.toml").write_text(f'{key} = "http://127.0.0.1:9/v1"\n')
    with pytest.raises(InvalidSetting, match="RICORDO_"):
        Settings.load(root, {})


def test_an_address_without_the_name_of_a_model_is_refused() -> None:
    for purpose in PURPOSES:
        with pytest.raises(InvalidSetting, match="model"):
            Settings.load(None, {f"RICORDO_{purpose.upper()}__BASE_URL": "http://127.0.0.1:9/v1"})
