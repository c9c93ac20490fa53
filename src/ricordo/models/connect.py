"""Creates the clients of a provider with its key, its base URL, and an HTTP client without idle connections.

Invariant: a vendor's package never retries by itself. No connection outlives its request, so a model can be used from
one event loop after another and needs no closing.
"""

import inspect
import ssl
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import httpx2
from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.resources.responses import AsyncResponses
from openai.types.responses import Response
from pydantic_ai.embeddings import EmbeddingModel, infer_embedding_model
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from ricordo.concurrency import compute, run_in_thread
from ricordo.errors import InvalidSetting, ModelError, ModelNotFound
from ricordo.messages.json_text import loads, require_object
from ricordo.models.adapter import ProviderModel
from ricordo.models.config import ModelSettings
from ricordo.models.contract import RequestBody, captured_requests
from ricordo.models.errors import create_extra_error, create_key_error, find_missing_variable
from ricordo.models.request_settings import choose_caching

__all__ = ["collect_keys", "connect_embedder", "connect_model", "make_lean"]


_OLLAMA_URL = "http://localhost:11434/v1"
_NO_KEY = "api-key-not-set"
_CONNECT_SECONDS = 10.0
_AT_ONCE = 100_000
"""Number of bytes of a request that are parsed in a few milliseconds."""
_MIN_KEY_LENGTH = 12
"""Shorter keys are placeholders for servers without keys, or words that may occur in messages."""


def connect_model(
    name: str, *, base_url: str | None, api_key: str | None, seconds: float, settings: ModelSettings
) -> ProviderModel:
    """Return the adapter for the model of this name; see `load_model` for the errors."""
    providers: list[Provider[Any]] = []
    try:
        model = infer_model(name, lambda kind: _create_provider(providers, kind, base_url, api_key, seconds))
    except ImportError as error:
        raise create_extra_error(name, error) from error
    except UserError as error:
        raise _connection_error(name, error) from error
    return ProviderModel(
        name=name,
        model=model,
        keys=collect_keys(providers, api_key),
        seconds=seconds,
        configured_window=settings.window,
        reply_limit=settings.reply_tokens,
        temperature=settings.temperature,
        thinking=settings.thinking,
        base_url=base_url,
        truncates_silently=name.startswith("ollama:"),
        has_request_preview=all(_accepts_argument(type(provider), "http_client") for provider in providers),
        caching=choose_caching(model),
    )


def connect_embedder(
    name: str, *, base_url: str | None, api_key: str | None, seconds: float
) -> tuple[EmbeddingModel, tuple[str, ...]]:
    """Return pydantic-ai's model for the embedder of this name and its keys; see `load_embedder` for the errors."""
    providers: list[Provider[Any]] = []
    try:
        model = infer_embedding_model(
            name, provider_factory=lambda kind: _create_provider(providers, kind, base_url, api_key, seconds)
        )
    except ImportError as error:
        raise create_extra_error(name, error) from error
    except UserError as error:
        raise _connection_error(name, error) from error
    return model, collect_keys(providers, api_key)


def collect_keys(providers: list[Provider[Any]], api_key: str | None) -> tuple[str, ...]:
    """Return the keys that no error may show: `api_key`, and those that the clients found in the environment."""
    client_keys = (getattr(provider.client, name, None) for provider in providers for name in ("api_key", "auth_token"))
    keys = {key for key in (api_key, *client_keys) if isinstance(key, str) and key != _NO_KEY}
    return tuple(sorted(key for key in keys if len(key) >= _MIN_KEY_LENGTH))


def _create_provider(
    created: list[Provider[Any]], kind: str, base_url: str | None, api_key: str | None, seconds: float
) -> Provider[Any]:
    """Create the provider with the arguments that its constructor accepts, and append it to `created`."""
    try:
        build = infer_provider_class(kind)
    except ValueError as error:
        raise ModelNotFound(f"No provider is called {kind!r}: write openai, anthropic, google, ollama …") from error
    accepted = inspect.signature(build.__init__).parameters
    # Redirects are not followed: a key in a custom header would be sent to another host.
    client = httpx2.AsyncClient(
        timeout=httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS)),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        verify=_create_ssl_context(ssl.get_default_verify_paths()),
        event_hooks={"request": [_capture_request]},
    )
    arguments = {"base_url": base_url, "api_key": api_key, "http_client": client}
    provider = _construct_provider(
        build, {key: value for key, value in arguments.items() if key in accepted and value is not None}
    )
    if base_url is not None and "base_url" not in accepted:
        if not hasattr(provider.client, "base_url"):
            raise InvalidSetting(f"The provider {kind} takes no base_url.")
        provider.client.base_url = base_url
    if type(provider.client).__module__.partition(".")[0] == "openai":
        from ricordo.models.connect import make_lean

        make_lean(provider.client)
    if hasattr(provider.client, "max_retries"):
        provider.client.max_retries = 0
    created.append(provider)
    return provider


def _accepts_argument(build: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(build.__init__).parameters


async def _capture_request(request: httpx2.Request) -> None:
    """Raise for a request that is only to be shown, before any of it is sent."""
    captured = captured_requests()
    if captured is None:
        return
    content = await request.aread()
    read = await compute(partial(loads, content), size=len(content), at_once=_AT_ONCE)
    body = require_object(read, "request")
    captured.append(RequestBody(url=str(request.url.copy_with(query=None)), body=body))
    raise httpx2.ConnectError("This request was only to be shown.", request=request)


@cache
def _create_ssl_context(verify_paths: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    """Return the SSL context with the trusted certificates. Loading it takes 20 ms, so it is cached per location."""
    del verify_paths
    return httpx2.create_ssl_context()


def _construct_provider(build: Callable[..., Provider[Any]], arguments: dict[str, Any]) -> Provider[Any]:
    """Create the provider. A provider that requires the URL of a local server gets Ollama's default URL."""
    try:
        return build(**arguments)
    except UserError as error:
        if find_missing_variable(str(error)) != "OLLAMA_BASE_URL":
            raise
    return build(**arguments, base_url=_OLLAMA_URL)


def _connection_error(name: str, error: UserError) -> ModelError:
    text = str(error)
    variable = find_missing_variable(text)
    if variable is not None:
        return create_key_error(name, variable)
    return ModelNotFound(f"{name} can't be reached by this name: {text}")


class _LeanCompletions(AsyncCompletions):
    async def create(self, *, messages: Any, extra_body: Any = None, **options: Any) -> Any:
        """Request a completion as the package does."""
        return await super().create(messages=[], extra_body=_beside(extra_body, messages=messages), **options)


class _LeanResponses(AsyncResponses):
    async def create(self, *, input: Any, extra_body: Any = None, **options: Any) -> Any:  # type: ignore[override]  # noqa: A002 - the wire's name
        """Request a response as the package does."""
        await run_in_thread(_make_types)
        return await super().create(input=[], extra_body=_beside(extra_body, input=input), **options)


class _LeanChat(AsyncChat):
    @property
    def completions(self) -> AsyncCompletions:
        return _LeanCompletions(self._client)


class _LeanOpenAI(AsyncOpenAI):
    @property
    def chat(self) -> AsyncChat:
        return _LeanChat(self)

    @property
    def responses(self) -> AsyncResponses:
        return _LeanResponses(self)


def make_lean(client: object) -> None:
    """Make a client of OpenAI's package send messages unchanged; any other client is not modified."""
    if type(client) is AsyncOpenAI:
        client.__class__ = _LeanOpenAI


@cache
def _make_types() -> None:
    """Make the package create its response types by parsing a response."""
    content_part = {"type": "output_text", "text": "", "annotations": []}
    Response.construct(
        output=[{"type": "message", "content": [content_part]}], tools=[{"type": "function", "name": "look"}]
    )


def _beside(extra_body: Any, **fields: Any) -> dict[str, Any]:
    return {**(extra_body or {}), **fields}
