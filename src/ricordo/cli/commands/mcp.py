"""`mcp`: serve a memory to any host that speaks the Model Context Protocol."""

import itertools
import os
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo import __version__
from ricordo.cli.options import ProjectOption, RootOption, UserOption
from ricordo.cli.render import print_error
from ricordo.cli.target import find_target, load_redactor, load_scope, run_async
from ricordo.errors import ExtraMissing, InvalidInput, InvalidSetting, RicordoError, RootNotFound, install_command
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    import anyio

    from ricordo.cli.target import Target
    from ricordo.hooks.places import Place
    from ricordo.mcp.contract import ServedMemory
    from ricordo.mcp.http import HttpAddress
    from ricordo.mcp.server import MemoryServer

__all__ = ["mcp"]


_TOKEN_VARIABLE = "RICORDO_MCP_TOKEN"
_MIN_TOKEN_CHARS = 16
_NO_STORE = "none"
_SECONDS_BETWEEN_DRAINS = 2.0
_DRAIN_SECONDS = 10.0
_ROUNDS_BESIDE_ANOTHER = 10
"""After so many rounds it is tried again to answer hooks, since the process that did may have ended."""


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
    _require_extra()
    if folder is not None:
        _enter_folder(folder)
    service = _Service(root=root, user=user, project=project, agent=agent, budget=budget, client=client or "")
    if http is None:
        if token_file or without_token or remote or host:
            raise typer.BadParameter("--token-file, --without-token, --remote and --host go with --http.")
        code = run_async(partial(_serve_stdio, service))
    else:
        address = _check_address(http, with_token=not without_token, remote=remote, hosts=host or ())
        token = _read_token(token_file, without_token=without_token)
        code = run_async(partial(_serve_http, service, address, token, tuple(host or ())))
    if code:
        raise typer.Exit(128 + code)


def _require_extra() -> None:
    try:
        import_module("mcp")
    except ModuleNotFoundError as error:
        raise ExtraMissing(f"`ricordo mcp` needs the extra `mcp`. Install it with {install_command('mcp')}.") from error


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
    from ricordo.mcp.http import PATH, bind_address, create_app, serve_http
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


def _check_address(text: str, *, with_token: bool, remote: bool, hosts: "Sequence[str]") -> "HttpAddress":
    """Return the address to listen at. Raises: InvalidInput for one that other machines reach, unless all is given."""
    from ricordo.mcp.http import parse_address

    address = parse_address(text)
    if address.is_local:
        return address
    if not remote:
        raise InvalidInput(
            f"{address} can be reached from other machines: give --remote if that is wanted, or use 127.0.0.1."
        )
    if not with_token:
        raise InvalidInput("An address that other machines can reach needs a token: leave --without-token out.")
    if not hosts:
        raise InvalidInput("Name the hosts in the URLs of the clients with --host, such as --host memory.example.")
    return address
