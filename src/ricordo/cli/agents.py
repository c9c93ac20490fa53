"""An agent in a session that is there, for a command that looks at its window or makes it smaller."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ricordo.cli.chat_agent import helpers
from ricordo.cli.chat_offline import offline
from ricordo.cli.context import Target, scope_of, tell_trouble
from ricordo.cli.render import note
from ricordo.cli.warned import nothing_said
from ricordo.errors import ExtraMissing, ModelError

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.models import ChatModel

__all__ = ["agent_in", "session_in"]

_OFFLINE = "offline"


@asynccontextmanager
async def agent_in(
    target: Target, session: str | None, *, asks: bool = True, learns: bool = False
) -> AsyncIterator["HarnessAgent"]:
    """Open the recommended agent in `session`, a new one when None, with the configured model where there is one.

    One that can't be used is raised as `ModelError` or `ExtraMissing`, and told where nothing is to be asked of it.
    Settings that can't be used are told. The agent is one to look at: nothing is said to it.
    """
    from ricordo.agent import HarnessAgent

    tell_trouble(target)
    model = _configured(target, asks=asks)
    described = HarnessAgent.recommended(
        model or offline(target),
        workspace=target.root,
        scope=await scope_of(target),
        session=session,
        memory_hooks=learns,
        require_memory=True,
        planning=model is not None,
        sub_agents=helpers() if model else (),
        settings=replace(target.settings, embedder=None),
    )
    with nothing_said():
        async with described as agent:
            yield agent


async def session_in(target: Target, named: str | None) -> str | None:
    """Return the session with this id, or the one whose id begins so; without a name the user's newest, None for none.

    Raises: SessionNotFound.
    """
    from ricordo.runtime.assembly import files_of
    from ricordo.sessions import find_session, list_sessions
    from ricordo.workspace.layout import DEFAULT_AGENT

    files = files_of(target.place)
    if named is not None:
        return (await find_session(files, named, agent=DEFAULT_AGENT)).session
    listed = await list_sessions(files, agent=DEFAULT_AGENT)
    return next((info.session for info in listed if info.user in {"", target.user}), None)


def _configured(target: Target, *, asks: bool) -> "ChatModel | None":
    from ricordo.runtime.named_model import load_named

    settings = target.settings
    if settings.model is None or settings.model == _OFFLINE:
        return None
    try:
        return load_named(settings.model, settings)
    except (ModelError, ExtraMissing) as error:
        if asks:
            raise
        note(f"{error} The sizes are those without a model.")
        return None
