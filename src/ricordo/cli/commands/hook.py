"""`hook`: what a coding agent starts at certain moments of a session."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.errors import RootNotTrusted, StorageError
from ricordo.hooks.contract import PROMPT, STARTED, HookAnswer, HookEvent
from ricordo.hooks.entry import run_hook
from ricordo.hooks.places import Place, make_place

if TYPE_CHECKING:
    from ricordo.cli.target import Target
    from ricordo.context.config import HooksConfig
    from ricordo.hooks.drainer import DrainReport

__all__ = ["answer_in_process", "drain_hooks", "hook", "prepare_next_session"]


def hook(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The coding agent, such as claude-code or codex.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Its name of the event, such as SessionStart.")],
) -> None:
    """Answer a coding agent at an event of its session, which it describes as JSON on standard input.

    A coding agent starts this by itself once it is connected. Whatever goes wrong, the exit code is 0 and a line in the
    hook log says why.
    """
    run_hook([host, event], os.environ, answer_in_process)


def answer_in_process(place: Place, event: HookEvent) -> HookAnswer:
    """Open the memory of a place and return its answer; a notice for the person if its root is not trusted.

    Raises: RicordoError, OSError.
    """
    from ricordo.cli.target import locate_target, read_memory
    from ricordo.hooks.answers import answer_event

    # what a command would tell a person is not for the host
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # the process ends soon
    try:
        target = locate_target(Path(place.root), None, None)
    except RootNotTrusted as error:
        if event.kind != STARTED:
            raise
        return HookAnswer(notice=_format_notice(place, error))
    if not target.exists or target.settings.hooks is None:
        return HookAnswer()
    config: HooksConfig = target.settings.hooks
    return read_memory(
        target,
        lambda memory: answer_event(memory, place, event, config=config),
        finds=event.kind == PROMPT,
    )


def drain_hooks(target: "Target", *, seconds: float) -> "DrainReport | None":
    """Learn from what hooks handed over for a root, and return what was done; None if nothing waits.

    The root is created if it is not there. Raises: RicordoError.
    """
    from ricordo.cli.target import open_memory, run_async
    from ricordo.hooks.drainer import drain_spool
    from ricordo.hooks.spool import list_items

    place = make_place(str(target.root), target.user, os.environ)
    if target.is_shared or not list_items(place):
        return None

    async def drain() -> "DrainReport":
        async with open_memory(target) as memory:
            return await drain_spool(memory, place, seconds=seconds, config=target.settings.hooks)

    return run_async(drain)


def prepare_next_session(target: "Target") -> None:
    """Prepare the preamble for the next session of a coding agent, if hooks were ever used here."""
    from ricordo.cli.target import read_memory
    from ricordo.hooks.answers import prepare_preamble

    place = make_place(str(target.root), target.user, os.environ)
    config = target.settings.hooks
    if config is None or target.is_shared or not Path(place.hooks_folder).is_dir():
        return
    with suppress(OSError, StorageError):
        read_memory(target, lambda memory: prepare_preamble(memory, place, config))


def _format_notice(place: Place, error: RootNotTrusted) -> str:
    import shlex

    path = shlex.quote(place.root)
    if "is not trusted" not in str(error):
        return f"Ricordo ignores the memory in {place.root}: {error}"
    return (
        f"Ricordo ignores the memory in {place.root}, which was not made or trusted on this machine. "
        f"`ricordo trust --show {path}` shows what it holds, `ricordo trust {path}` trusts it."
    )
