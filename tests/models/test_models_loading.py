"""A model is made from its name; nothing heavy is loaded before, and what is missing is said with its remedy."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ricordo.errors import (
    ExtraMissing,
    InvalidSetting,
    ModelKeyMissing,
    ModelNotFound,
    ModelOverflow,
    ModelRateLimited,
    ModelTimeout,
    ReplyInvalid,
)
from ricordo.models import RetryConfig, load_embedder, load_model
from ricordo.testing import Fail, Garbage, Hang, LoopbackServer, overflow, rate_limit_error

HEAVY = {"anthropic", "httpx2", "numpy", "openai", "pydantic", "pydantic_ai"}
NOW = RetryConfig(first_delay=0.0)
_PACKAGES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "openrouter": "OPENROUTER_API_KEY"}


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_model("openai:x", api_key="k")
    load_embedder("openai:x", api_key="k")


def test_importing_the_room_loads_no_package_of_a_vendor(tmp_path: Path) -> None:
    target = tmp_path / "modules.json"
    code = (
        "import json, sys, ricordo.models.embedders, ricordo.models.provider\n"
        f"open({str(target)!r}, 'w').write(json.dumps(sorted(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(json.loads(target.read_text(encoding="utf-8"))) & HEAVY == set()


def test_without_the_extra_the_command_that_installs_it_is_named() -> None:
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from ricordo.errors import ExtraMissing\n"
        "from ricordo.models.embedders import load_embedder\n"
        "from ricordo.models.provider import load_model\n"
        "for load in (load_model, load_embedder):\n"
        "    try: load('openai:gpt-5')\n"
        "    except ExtraMissing as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.count("pip install '.[models]'") == 2


@pytest.mark.parametrize("name", ["gpt-5", "nobody:gpt-5", "", ":"])
def test_a_name_that_names_nobody_is_refused(name: str) -> None:
    with pytest.raises(ModelNotFound):
        load_model(name)
    with pytest.raises(ModelNotFound):
        load_embedder(name)


@pytest.mark.parametrize(("provider", "variable"), _PACKAGES.items())
def test_a_missing_key_is_told_with_the_command_that_sets_it(provider: str, variable: str) -> None:
    with pytest.raises(ModelKeyMissing, match=f"export {variable}=\\.\\.\\."):
        load_model(f"{provider}:some/model")


def test_a_package_of_a_provider_that_is_not_installed_is_named() -> None:
    with pytest.raises(ExtraMissing, match=r"pip install 'pydantic-ai-slim\[groq\]'"):
        load_model("groq:x", api_key="k")


@pytest.mark.parametrize("name", ["ollama:llama3", "openai-chat:x", "vllm:x"])
def test_a_local_server_needs_no_key(name: str) -> None:
    assert load_model(name, base_url="http://127.0.0.1:9/v1").name == name


def test_ollama_is_found_at_its_own_address() -> None:
    assert load_model("ollama:llama3").window is None


def test_the_window_is_that_of_the_tables_unless_it_is_given() -> None:
    assert load_model("openai:gpt-4o", api_key="k").window == 128_000
    assert load_model("openai:gpt-4o", api_key="k", window=9_000).window == 9_000
    assert load_model("openai-chat:nobody-knows", api_key="k").window is None


@pytest.mark.parametrize("wrong", [{"timeout": 0.0}, {"timeout": -1.0}, {"window": 0}])
def test_a_limit_of_nothing_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidSetting):
        load_model("openai:x", api_key="k", **wrong)  # type: ignore[arg-type]


def test_a_key_is_not_shown_by_the_model_that_holds_it() -> None:
    assert "sk-secret" not in repr(load_model("openai:gpt-4o", api_key="sk-secret"))


@pytest.mark.anyio
async def test_each_text_has_its_row_of_length_one_whatever_the_batches() -> None:
    texts = ["tea", "", "coffee", "tea", "water"]
    with LoopbackServer(dimension=16) as server:
        url = server.url + "/v1"
        many = load_embedder("openai:text-embedding-3-small", base_url=url, api_key="k", batch=2)
        assert many.dimension == 0
        rows = await many.embed(texts)
        whole = await load_embedder("openai:text-embedding-3-small", base_url=url, api_key="k").embed(texts)
        assert len(server.requests) == 4
    assert rows.shape == (5, 16)
    assert rows.dtype == np.float32
    assert (many.dimension, many.model_id) == (16, "openai:text-embedding-3-small")
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    assert np.array_equal(rows, whole)
    assert np.array_equal(rows[0], rows[3])
    assert not np.array_equal(rows[0], rows[2])


@pytest.mark.anyio
async def test_no_texts_are_no_rows_and_no_request() -> None:
    with LoopbackServer() as server:
        embedder = load_embedder("openai:x", base_url=server.url + "/v1", api_key="k")
        assert (await embedder.embed([])).shape == (0, 0)
        assert server.requests == ()


@pytest.mark.anyio
async def test_an_embedder_asks_again_what_may_pass() -> None:
    with LoopbackServer(embeddings=[rate_limit_error(0.0), Fail(503, "Later.")]) as server:
        embedder = load_embedder("openai:x", base_url=server.url + "/v1", api_key="k", retry=NOW)
        assert (await embedder.embed(["tea"])).shape == (1, 64)
        assert len(server.requests) == 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("item", "error"),
    [
        (rate_limit_error(3_600.0), ModelRateLimited),
        (overflow("openai-chat"), ModelOverflow),
        (Garbage(), ReplyInvalid),
        (
            Garbage(b'{"data": [], "model": "x", "object": "list", "usage": {"prompt_tokens": 1, "total_tokens": 1}}'),
            ReplyInvalid,
        ),
        (Hang(), ModelTimeout),
    ],
    ids=["429", "overflow", "garbage", "empty", "hang"],
)
async def test_a_failure_of_an_embedder_is_one_of_our_errors(
    item: Fail | Garbage | Hang, error: type[Exception]
) -> None:
    with LoopbackServer(embeddings=[item]) as server, pytest.raises(error):
        await load_embedder(
            "openai:x", base_url=server.url + "/v1", api_key="k", retry=RetryConfig(attempts=1), timeout=0.5
        ).embed(["tea"])
