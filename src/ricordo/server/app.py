"""The application: who asks, how much they may ask, and what they get when something is wrong.

The order of a request: its size, its token, its tenant's rate, its key if it has one, then the route, within a time.
Whatever goes wrong is a problem (`problems.py`); an error that nobody expected is logged with its request's id, and
says nothing of what it was.
"""

import hashlib
import logging
import math
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from ricordo.clock import Clock, SystemClock
from ricordo.errors import RicordoError
from ricordo.lazy import dataclass
from ricordo.mcp.listening import LOCAL_NAMES
from ricordo.runtime.settings import Settings
from ricordo.runtime.workspace import root_files
from ricordo.server.access import Caller, TokenBook
from ricordo.server.database import ServiceDatabase
from ricordo.server.places import MemoryPlaces
from ricordo.server.problems import Problem, describe_error, respond_with_problem
from ricordo.server.repeats import MAX_KEY_CHARS, KeptAnswer, Repeats
from ricordo.server.routes import router
from ricordo.storage.contract import FileStore

__all__ = ["Service", "ServiceLimits", "create_app"]

_log = logging.getLogger("ricordo.server")
_OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json"})


@dataclass(frozen=True, kw_only=True)
class ServiceLimits:
    """What one request, and one tenant, may use.

    `body_bytes` is the size of a body, `seconds` the time of a request. A tenant may make `requests` at once and
    `requests_per_second` from then on. At most `projects` stay open, with at most `users` memories each.
    """

    body_bytes: int = 4 * 1024 * 1024
    seconds: float = 30.0
    requests: int = 200
    requests_per_second: float = 50.0
    projects: int = 64
    users: int = 32


def create_app(
    folder: Path,
    *,
    version: str = "1",
    limits: ServiceLimits | None = None,
    settings: Settings | None = None,
    open_to: Caller | None = None,
    hosts: Sequence[str] = LOCAL_NAMES,
    clock: Clock | None = None,
) -> "Service":
    """Return the service over the memories below `folder`, which is created if it is missing.

    A request without a token is refused; with `open_to` it is that caller's, which is for one's own machine alone.
    The Host of a request, and the Origin of one that a page in a browser makes, are among `hosts`, so that no foreign
    page reaches the service of a machine. `version` is what it says of itself.
    """
    bounds, now = limits or ServiceLimits(), (clock or SystemClock()).now
    database = ServiceDatabase(folder)
    places = MemoryPlaces(folder, settings=settings, max_projects=bounds.projects, max_users=bounds.users)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await places.close()
            await database.close()

    app = FastAPI(
        title="Ricordo",
        version=version,
        summary="The memory of many users' agents.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"default": {"description": "A problem (RFC 9457).", "content": {"application/problem+json": {}}}},
    )
    repeats = Repeats(database, now)
    app.state.places, app.state.repeats = places, repeats
    app.state.metrics = metrics = _Metrics(places)
    app.include_router(router)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "ok", "version": version}

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> dict[str, str]:
        await database.get()
        return {"status": "ready"}

    @app.get("/metrics", include_in_schema=False)
    async def read_metrics() -> Response:
        return Response(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4")

    return Service(
        app,
        tokens=TokenBook(database, now),
        repeats=repeats,
        rates=_Rates(bounds.requests, bounds.requests_per_second),
        limits=bounds,
        metrics=metrics,
        open_to=open_to,
        hosts=frozenset(hosts),
        places=places,
        database=database,
        locks=root_files(folder),
    )


class _Metrics:
    """What the service counts; labels hold the names of routes and never an id or a tenant."""

    def __init__(self, places: MemoryPlaces) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "ricordo_requests", "Requests by route and status.", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "ricordo_request_seconds", "The time of requests by route.", ("method", "route"), registry=self.registry
        )
        opened = Gauge("ricordo_open_memories", "Memories that are open now.", registry=self.registry)
        opened.set_function(lambda: places.open_count)

    def add(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        name = getattr(route, "path", "none")
        self.requests.labels(scope["method"], name, str(status)).inc()
        self.seconds.labels(scope["method"], name).observe(seconds)


class _Rates:
    """A bucket of requests for each tenant, which fills steadily."""

    def __init__(self, most: int, per_second: float) -> None:
        self._most = float(most)
        self._per_second = per_second
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, tenant: str, now: float) -> float:
        """Take one request of a tenant; return 0, or the seconds until one is left."""
        left, at = self._left.get(tenant, (self._most, now))
        left = min(self._most, left + (now - at) * self._per_second)
        if left < 1:
            self._left[tenant] = left, now
            return (1 - left) / self._per_second
        self._left[tenant] = left - 1, now
        return 0.0


@dataclass(kw_only=True, eq=False)
class _Sent:
    """What was answered so far; `body` is collected only if it is kept."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)


class Service:
    """The ASGI application: it lets through requests that have a caller, keep the limits, and are no repeats."""

    def __init__(
        self,
        app: FastAPI,
        *,
        tokens: TokenBook,
        repeats: Repeats,
        rates: _Rates,
        limits: ServiceLimits,
        metrics: _Metrics,
        open_to: Caller | None,
        hosts: frozenset[str],
        places: MemoryPlaces,
        database: ServiceDatabase,
        locks: FileStore,
    ) -> None:
        """Use `create_app` instead."""
        self._app = app
        self._tokens = tokens
        self._repeats = repeats
        self._rates = rates
        self._limits = limits
        self._metrics = metrics
        self._open_to = open_to
        self._hosts = hosts
        self._places = places
        self._locks = locks
        self._database = database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent, started = _Sent(), time.perf_counter()

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        request_id = uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        try:
            with anyio.move_on_after(self._limits.seconds) as timeout:
                await self._answer(scope, receive, note)
            if timeout.cancelled_caught and not sent.status:
                await respond_with_problem(_too_slow(self._limits.seconds))(scope, receive, note)
        except Problem as problem:
            await respond_with_problem(problem)(scope, receive, note)
        except RicordoError as error:
            await _respond_with_error(Request(scope), error)(scope, receive, note)
        finally:
            self._metrics.add(scope, sent.status, time.perf_counter() - started)

    async def close(self) -> None:
        """Close all memories; a server does so at the end of its lifespan."""
        await self._places.close()
        await self._database.close()

    def _check_host(self, scope: Scope) -> None:
        """Raises: Problem if the request names another host than this service, or comes from a page of another one."""
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        names = [headers.get("host", ""), urlsplit(origin).netloc or origin]
        if any(name and _without_port(name) not in self._hosts for name in names):
            detail = "This service is not reached by this name: `ricordo serve --host NAME` adds one."
            raise Problem(421, "host-unknown", "Host unknown", detail)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check_host(scope)
        body = await _read_body(scope, receive, self._limits.body_bytes)
        if scope["path"] not in _OPEN_PATHS:
            caller = await self._find_caller(scope)
            if wait := self._rates.take(caller.tenant, time.monotonic()):
                raise _too_many(wait)
            scope["state"]["caller"] = caller
            key = Headers(scope=scope).get("idempotency-key", "")
            if key and scope["method"] not in {"GET", "HEAD"}:
                await self._answer_once(scope, body, send, caller, key)
                return
        await self._app(scope, _replay(body, receive), send)

    async def _find_caller(self, scope: Scope) -> Caller:
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        caller = None
        if kind.lower() == "bearer" and token:
            caller = await self._tokens.find_caller(token.strip())
        elif not kind:
            caller = self._open_to
        if caller is None:
            raise Problem(
                401,
                "token-required",
                "Token required",
                "Send the header `Authorization: Bearer TOKEN`; `ricordo token create` makes one.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return caller

    async def _answer_once(self, scope: Scope, body: bytes, send: Send, caller: Caller, key: str) -> None:
        """Answer a request with a key: give the kept answer again, or carry it out and keep what was answered."""
        if len(key) > MAX_KEY_CHARS:
            raise Problem(422, "idempotency-key-too-long", "Idempotency key too long", "Use at most 200 characters.")
        request = b"\n".join((scope["method"].encode(), scope["raw_path"], scope["query_string"], body))
        # whoever sends the same request meanwhile waits; the lock ends with its process
        async with self._locks.lock(f"request {caller.tenant}/{caller.user}/{key}"):
            kept = await self._repeats.begin(caller, key, request)
            if isinstance(kept, KeptAnswer):
                headers = {**kept.headers, "Idempotency-Replayed": "true"}
                await Response(kept.body, kept.status, headers=headers)(scope, _replay(body, _nothing), send)
                return
            scope["state"]["request_key"] = hashlib.sha256(f"{caller.user}\n{key}".encode()).hexdigest()[:24]
            scope["state"]["is_repeat"] = kept
            sent = _Sent()

            async def collect(message: Message) -> None:
                if message["type"] == "http.response.start":
                    sent.status, sent.headers = message["status"], list(message["headers"])
                elif message["type"] == "http.response.body":
                    sent.body += message.get("body", b"")
                await send(message)

            try:
                await self._app(scope, _replay(body, _nothing), collect)
            finally:
                with anyio.CancelScope(shield=True):
                    if 200 <= sent.status < 300:
                        answer = KeptAnswer(
                            status=sent.status, headers=_kept_headers(sent.headers), body=bytes(sent.body)
                        )
                        await self._repeats.finish(caller, key, answer)
                    elif 400 <= sent.status < 500:
                        await self._repeats.release(caller, key)


async def _read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """Return the body of a request. Raises: Problem if it is too large."""
    length = Headers(scope=scope).get("content-length", "0")
    body = bytearray()
    more = True
    while more:
        if len(body) > most or (length.isdecimal() and int(length) > most):
            raise Problem(413, "body-too-large", "Body too large", f"Send at most {most:,} bytes; give more in parts.")
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "body-cut-off", "Body cut off", "The connection ended before the body did.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if name and port.isdecimal() else host


def _replay(body: bytes, receive: Receive) -> Receive:
    is_given = False

    async def give() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


async def _nothing() -> Message:
    await anyio.sleep_forever()
    raise AssertionError


def _kept_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    kept = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    return {name: value for name, value in kept.items() if name in {"content-type", "etag", "location"}}


def _too_many(wait: float) -> Problem:
    return Problem(
        429,
        "too-many-requests",
        "Too many requests",
        "This tenant has made too many requests: wait, and send fewer at a time.",
        headers={"Retry-After": str(math.ceil(wait))},
    )


def _too_slow(seconds: float) -> Problem:
    return Problem(
        503,
        "request-too-slow",
        "Request too slow",
        f"The request took longer than {seconds:g} s and was stopped: ask for less, or try again.",
        headers={"Retry-After": "1"},
    )


async def _answer_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return respond_with_problem(error)


async def _answer_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RicordoError)
    return _respond_with_error(request, error)


def _respond_with_error(request: Request, error: RicordoError) -> JSONResponse:
    problem = describe_error(error)
    if problem.status >= 500:
        _log.warning("request %s: %s: %s", request.state.request_id, type(error).__name__, error)
    return respond_with_problem(problem)


async def _answer_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    places = [".".join(str(part) for part in each["loc"]) + f": {each['msg']}" for each in error.errors()[:20]]
    return respond_with_problem(Problem(422, "request-invalid", "Request invalid", "; ".join(places)))


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    title = HTTPStatus(error.status_code).phrase.capitalize()
    name = title.lower().replace(" ", "-")
    problem = Problem(
        error.status_code, name, title, f"{title}: /openapi.json describes this service.", headers=error.headers
    )
    return respond_with_problem(problem)


async def _answer_unexpected(request: Request, error: Exception) -> JSONResponse:
    _log.error("request %s failed", request.state.request_id, exc_info=error)
    detail = f"The service made an error. Its log has it under the request {request.state.request_id}."
    return respond_with_problem(Problem(500, "internal-error", "Internal error", detail))


_HANDLERS: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    Problem: _answer_problem,
    RicordoError: _answer_error,
    RequestValidationError: _answer_invalid,
    HTTPException: _answer_http,
    Exception: _answer_unexpected,
}
