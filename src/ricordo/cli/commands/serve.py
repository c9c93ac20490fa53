"""`mcp`, `serve` and `token`: memory for other programs, by the Model Context Protocol and over HTTP."""

import itertools
import os
import signal
import time
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ricordo import __version__
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import escape, print_error, print_json, print_line
from ricordo.cli.target import find_target, load_redactor, load_scope, run_async
from ricordo.errors import ExtraMissing, InvalidInput, InvalidSetting, RicordoError, RootNotFound, install_command
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    import anyio
    from starlette.types import ASGIApp

    from ricordo.cli.target import Target
    from ricordo.hooks.places import Place
    from ricordo.mcp.contract import ServedMemory
    from ricordo.mcp.listening import HttpAddress
    from ricordo.mcp.server import MemoryServer
    from ricordo.messages.types import JsonValue
    from ricordo.server import IssuedToken, Token

__all__ = ["create_token", "list_tokens", "mcp", "revoke_token", "serve"]


_TOKEN_VARIABLE = "RICORDO_MCP_TOKEN"
_MIN_TOKEN_CHARS = 16
_NO_STORE = "none"
_SECONDS_BETWEEN_DRAINS = 2.0
_DRAIN_SECONDS = 10.0
_ROUNDS_BESIDE_ANOTHER = 10
"""After so many rounds it is tried again to answer hooks, since the process that did may have ended."""
_LOCAL_TENANT = "local"
_DataOption = Annotated[
    Path,
    typer.Option(
        "--data", metavar="DIR", help="The folder of the service: its tokens, and every tenant's memories.",
        envvar="RICORDO_SERVICE",
    ),
]  # fmt: skip


def mcp(
    *,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Serve HTTP at this address, and not standard input."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="PATH", help=f"The file with the token that requests need; else {_TOKEN_VARIABLE}."
        ),
    ] = None,
    without_token: Annotated[
        bool, typer.Option("--without-token", help="Serve HTTP to every program of this machine.")
    ] = False,
    remote: Annotated[
        bool, typer.Option("--remote", help="Allow an address that other machines can reach; it needs a token.")
    ] = False,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="A name by which other machines reach it; may be given again."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="The agent whose profile and sessions are meant.")
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", min=200, max=50_000, metavar="TOKENS", help="The size of one result at most.")
    ] = 2_000,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="PATH", help="The folder whose memory is meant; else the one it starts in."),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option("--client", metavar="NAME", help="The program that starts it, as `ricordo status` names it."),
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
) -> None:
    """Serve memory to a coding agent or another host, by the Model Context Protocol.

    It serves one host on standard input and output, and ends when that closes. Whose memory it is, is fixed here: no
    call can name another one.
    """
    _require_extra("mcp", "mcp", "mcp")
    if folder is not None:
        _enter_folder(folder)
    service = _Service(root=root, user=user, project=project, agent=agent, budget=budget, client=client or "")
    if http is None:
        if token_file or without_token or remote or host:
            raise typer.BadParameter("--token-file, --without-token, --remote and --host go with --http.")
        code = run_async(partial(_serve_stdio, service))
    else:
        from ricordo.mcp.listening import check_address

        address = check_address(http, with_token=not without_token, remote=remote, hosts=host or ())
        token = _read_token(token_file, without_token=without_token)
        code = run_async(partial(_serve_http, service, address, token, tuple(host or ())))
    if code:
        raise typer.Exit(128 + code)


def _enter_folder(folder: Path) -> None:
    """Change into a folder. Raises: InvalidInput if it does not exist, or the host names no folder."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise InvalidInput(f"There is no folder {folder}, whose memory could be served.") from error


@dataclass(kw_only=True)
class _Service:
    """The memory of the options, and what its process does for coding agents between the calls."""

    root: Path | None
    user: str | None
    project: str | None
    agent: str | None
    budget: int
    client: str = ""
    target: "Target | None" = None

    async def open_memory(self, *, create: bool) -> "ServedMemory":
        """Open the memory; one that hooks handed something over for is created.

        Raises: RootNotFound without `create`; InvalidInput for a new one in the home folder or above it; InvalidSetting
        if memory is off; what finding and opening a root raise.
        """
        from ricordo.concurrency import run_in_thread
        from ricordo.mcp.contract import ServedMemory
        from ricordo.runtime.memory import Memory
        from ricordo.runtime.workspace import root_files
        from ricordo.workspace.session_search import PastSessions

        target = await run_in_thread(find_target, self.root, self.user, self.project)
        await run_in_thread(self._note_client, target)
        if target.settings.store == _NO_STORE:
            raise InvalidSetting("Memory is off: nothing is stored, and nothing is found. The setting `store` is none.")
        if not (target.exists or create or await run_in_thread(_has_items, _make_place(target))):
            raise RootNotFound
        if not target.exists and self.root is None and target.settings.root is None:
            _check_new_root(target)
        scope = await load_scope(target)
        memory = await Memory.open(
            target.root,
            scope=replace(scope, agent=self.agent) if self.agent else scope,
            settings=target.settings,
            actor=target.user,
        )
        self.target, files = target, root_files(memory.folder)
        return ServedMemory(
            memory=memory,
            files=files,
            shared=None if memory.folder == memory.root else root_files(memory.root),
            redactor=await load_redactor(target),
            sessions=PastSessions(files, user=target.user),
            budget=self.budget,
        )

    def _note_client(self, target: "Target") -> None:
        """Note once in the hook log that a host started this server, so that `ricordo status` can say so."""
        from ricordo.hooks.log import SERVED, HookRun, add_run

        client, self.client = self.client, ""
        if client:
            with suppress(OSError):
                run = HookRun(at=time.time(), host=client, event=SERVED, root=str(target.root))
                add_run(_make_place(target).hooks_folder, run)

    async def work_between_calls(self, served: "ServedMemory") -> None:
        """Answer hooks, and learn from what they handed over, until it is cancelled."""
        import anyio

        from ricordo.concurrency import run_in_thread
        from ricordo.hooks.drainer import drain_spool
        from ricordo.hooks.server import serve_hooks

        assert self.target is not None
        place, config = _make_place(self.target), self.target.settings.hooks
        while True:
            # what failed waits, and is in the hook log; the calls of the client go on
            with suppress(RicordoError, OSError):
                async with serve_hooks(served.memory, place, config=config) as is_serving:
                    for _ in itertools.count() if is_serving else range(_ROUNDS_BESIDE_ANOTHER):
                        if await run_in_thread(_has_items, place):
                            await drain_spool(served.memory, place, seconds=_DRAIN_SECONDS, config=config)
                        await anyio.sleep(_SECONDS_BETWEEN_DRAINS)
            await anyio.sleep(_SECONDS_BETWEEN_DRAINS)


def _make_place(target: "Target") -> "Place":
    from ricordo.hooks.places import make_place

    return make_place(str(target.root), target.user, os.environ)


def _check_new_root(target: "Target") -> None:
    """Raise `InvalidInput` for a root that a host would begin in the home folder or above it, for all that is below."""
    home = Path.home()
    if target.project_folder in {home, *home.parents}:
        raise InvalidInput(
            f"No memory is begun in {target.project_folder} without being asked. Start the host in a project, give "
            "`ricordo mcp` a --folder or a --root, or begin one here: `ricordo remember`."
        )


def _has_items(place: "Place") -> bool:
    """Return whether hooks handed something over that nobody has taken in."""
    from ricordo.hooks.spool import list_items

    return bool(list_items(place))


async def _serve_stdio(service: _Service) -> int:
    from ricordo.mcp.serving import run_server
    from ricordo.mcp.stdio import serve_stdio

    return await run_server(service.open_memory, serve_stdio, version=__version__, work=service.work_between_calls)


async def _serve_http(service: _Service, address: "HttpAddress", token: str | None, hosts: tuple[str, ...]) -> int:
    from ricordo.mcp.http import PATH, create_app
    from ricordo.mcp.listening import bind_address, serve_http
    from ricordo.mcp.serving import run_server

    listener, bound = bind_address(address)

    def serve(server: "MemoryServer", stopping: "anyio.Event") -> Awaitable[None]:
        print_error(f"Serving at http://{bound}{PATH}")
        return serve_http(create_app(server, token=token, hosts=hosts), listener, stopping)

    return await run_server(service.open_memory, serve, version=__version__, work=service.work_between_calls)


def _read_token(token_file: Path | None, *, without_token: bool) -> str | None:
    """Return the token of the file or the environment. Raises: InvalidInput if there has to be one."""
    if without_token:
        return None
    try:
        given = token_file.read_text("utf-8") if token_file else os.environ.get(_TOKEN_VARIABLE, "")
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"The file of the token can't be read: {error}.") from error
    token = given.strip()
    if not token:
        raise InvalidInput(
            f"Serving HTTP needs a token: write one into a file and give --token-file, or set {_TOKEN_VARIABLE}. "
            "With --without-token every program of this machine can read and change the memory."
        )
    if len(token) < _MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(f"The token has {_MIN_TOKEN_CHARS} or more letters, digits and signs, without spaces.")
    return token


def serve(
    *,
    data: _DataOption,
    http: Annotated[
        str, typer.Option("--http", metavar="HOST:PORT", help="The address to listen at.")
    ] = "127.0.0.1:8321",
    without_token: Annotated[
        str | None,
        typer.Option(
            "--without-token",
            metavar="USER",
            show_default=False,
            help="Serve every program of this machine as this user of the tenant `local`.",
        ),
    ] = None,
    remote: Annotated[bool, typer.Option("--remote", help="Allow an address that other machines can reach.")] = False,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="A name by which other machines reach it; may be given again."),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, metavar="N", help="How long a request may take.")
    ] = 30.0,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, metavar="N", help="Requests per second that each tenant may make.")
    ] = 50.0,
) -> None:
    """Serve the memories of many users over HTTP.

    `ricordo token create` makes the token that a client needs. /openapi.json describes the service; /healthz, /readyz
    and /metrics are for those who run it. Put a proxy with TLS before it if other machines reach it.
    """
    _require_extra("serve", "fastapi", "server")
    from ricordo.mcp.listening import LOCAL_NAMES, check_address
    from ricordo.server import Caller, ServiceLimits, create_app

    address = check_address(http, with_token=without_token is None, remote=remote, hosts=host or ())
    open_to = None
    if without_token is not None:
        open_to = Caller(tenant=_LOCAL_TENANT, user=without_token, role="writer")
    limits = ServiceLimits(seconds=seconds, requests_per_second=rate, requests=max(1, round(4 * rate)))
    app = create_app(data, version=__version__, limits=limits, open_to=open_to, hosts=[*LOCAL_NAMES, *(host or ())])
    if code := run_async(partial(_run, app, address)):
        raise typer.Exit(128 + code)


async def _run(app: "ASGIApp", address: "HttpAddress") -> int:
    """Serve until a signal, and return it; requests that are being answered have a second to end."""
    import anyio

    from ricordo.mcp.listening import bind_address, serve_http

    listener, bound = bind_address(address)
    stopping, ending_signal = anyio.Event(), 0

    async def end_at_signal() -> None:
        nonlocal ending_signal
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for each in signals:
                ending_signal = each.value
                stopping.set()
                return

    print_error(f"Serving at http://{bound}/v1")
    async with anyio.create_task_group() as group:
        group.start_soon(end_at_signal)
        await serve_http(app, listener, stopping)
        group.cancel_scope.cancel()
    return ending_signal


def create_token(
    *,
    user: Annotated[str, typer.Argument(metavar="USER", help="The user whose memory the token opens.")],
    data: _DataOption,
    tenant: Annotated[
        str, typer.Option("--tenant", metavar="NAME", help="The tenant whose user it is.")
    ] = _LOCAL_TENANT,
    project: Annotated[
        str | None,
        typer.Option("--project", metavar="NAME", show_default=False, help="The only project that it opens."),
    ] = None,
    role: Annotated[Literal["reader", "writer"], typer.Option("--role", help="What it allows.")] = "writer",
    days: Annotated[
        float | None,
        typer.Option("--days", min=0.001, metavar="N", show_default=False, help="How long it holds; else for good."),
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="What it is for.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Make a token, and print it once: only its digest is kept."""
    from ricordo.server import open_token_book

    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)

    async def issue() -> "IssuedToken":
        async with open_token_book(data) as book:
            return await book.issue(tenant=tenant, user=user, role=role, project=project, expires=expires, note=note)

    issued = run_async(issue)
    if as_json:
        print_json({**_token_document(issued.token), "token": issued.text})
        return
    print_line(issued.text)
    print_error(f"This is the token {issued.token.id}. It can't be shown again: keep it where its client finds it.")


def list_tokens(*, data: _DataOption, as_json: JsonOption = False) -> None:
    """List the tokens with whom they speak for."""
    from ricordo.server import open_token_book

    async def read() -> "list[Token]":
        async with open_token_book(data) as book:
            return await book.list_tokens()

    tokens = run_async(read)
    if as_json:
        print_json({"tokens": [_token_document(token) for token in tokens]})
        return
    now = datetime.now(UTC)
    for token in tokens:
        place = f"{escape(token.tenant)}/{escape(token.user)}" + (f", {escape(token.project)}" if token.project else "")
        ends = ""
        if token.expires:
            ends = f", {'expired' if token.expires <= now else 'until'} {token.expires:%Y-%m-%d %H:%M} UTC"
        print_line(f"{token.id}  {place}, {token.role}{ends}{f'  {escape(token.note)}' if token.note else ''}")
    if not tokens:
        print_line("There is no token: `ricordo token create USER` makes one.")


def revoke_token(
    *,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token.")],
    data: _DataOption,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token: from the next request on it opens nothing."""
    from ricordo.server import open_token_book

    async def revoke() -> "Token":
        async with open_token_book(data) as book:
            return await book.revoke(token_id)

    token = run_async(revoke)
    if as_json:
        print_json(_token_document(token))
        return
    print_line(f"Revoked the token {token.id} of {escape(token.tenant)}/{escape(token.user)}.")


def _token_document(token: "Token") -> "dict[str, JsonValue]":
    return {
        "id": token.id,
        "tenant": token.tenant,
        "user": token.user,
        "project": token.project,
        "role": token.role,
        "note": token.note,
        "created": token.created.isoformat(),
        "expires": token.expires.isoformat() if token.expires else None,
    }


def _require_extra(command: str, module: str, extra: str) -> None:
    """Raise `ExtraMissing` if what a command needs is not installed."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"`ricordo {command}` needs the extra `{extra}`. Install it with {install_command(extra)}."
        ) from error
