"""An agent in a session that is there, for a command that looks at its window or makes it smaller."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ricordo.cli.chat_agent import default_sub_agents
from ricordo.cli.chat_offline import quoting_model
from ricordo.cli.context import Target, load_scope, print_setting_errors
from ricordo.cli.render import print_note
from ricordo.cli.warned import hide_unrecorded_warning
from ricordo.errors import ExtraMissing, ModelError

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.models import ChatModel

__all__ = ["open_session_agent", "find_session_id"]

_OFFLINE = "offline"


@asynccontextmanager
async def open_session_agent(
    target: Target, session: str | None, *, asks: bool = True, learns: bool = False
) -> AsyncIterator["HarnessAgent"]:
    """Open the recommended agent in `session`, a new one when None, with the configured model where there is one.

    One that can't be used is raised as `ModelError` or `ExtraMissing`, and told where nothing is to be asked of it.
    Settings that can't be used are told. The agent is one to look at: nothing is said to it.
    """
    from ricordo.agent import HarnessAgent

    print_setting_errors(target)
    model = _load_model(target, asks=asks)
    described = HarnessAgent.with_recommended_settings(
        model or quoting_model(target),
        workspace=target.root,
        scope=await load_scope(target),
        session=session,
        memory_hooks=learns,
        require_memory=True,
        planning=model is not None,
        sub_agents=default_sub_agents() if model else (),
        settings=replace(target.settings, embedder=None),
    )
    with hide_unrecorded_warning():
        async with described as agent:
            yield agent


async def find_session_id(target: Target, named: str | None) -> str | None:
    """Return the session with this id, or the one whose id begins so; without a name the user's newest, None for none.

    Raises: SessionNotFound.
    """
    from ricordo.runtime.assembly import root_files
    from ricordo.sessions import find_session, list_sessions
    from ricordo.workspace.layout import DEFAULT_AGENT

    files = root_files(target.user_folder)
    if named is not None:
        return (await find_session(files, named, agent=DEFAULT_AGENT)).session
    listed = await list_sessions(files, agent=DEFAULT_AGENT)
    return next((info.session for info in listed if info.user in {"", target.user}), None)


def _load_model(target: Target, *, asks: bool) -> "ChatModel | None":
    from ricordo.runtime.named_model import load_agent_model

    settings = target.settings
    if settings.model is None or settings.model == _OFFLINE:
        return None
    try:
        return load_agent_model(settings.model, settings)
    except (ModelError, ExtraMissing) as error:
        if asks:
            raise
        print_note(f"{error} The sizes are those without a model.")
        return None
