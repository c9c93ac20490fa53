"""The agent of a chat: how it is made of what was asked for on the command line.

With a model it keeps todos, plans, and can let a sub-agent work in the background; what only quotes memory can do none
of it.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.chat_offline import quoting_model
from ricordo.cli.context import Target, load_scope
from ricordo.errors import InvalidInput

if TYPE_CHECKING:
    from typer.core import TyperGroup

    from ricordo.agent import HarnessAgent
    from ricordo.cli.chat_commands import SlashCommand
    from ricordo.harness.sub_agents import SubAgent
    from ricordo.models import ChatModel
    from ricordo.runtime import Settings
    from ricordo.tools import ApprovalHandler

__all__ = [
    "INCOGNITO_NOTICE",
    "NO_MODEL_MESSAGE",
    "ChatOptions",
    "build_agent",
    "default_sub_agents",
    "apply_incognito",
]

INCOGNITO_NOTICE = "Incognito: nothing of memory is shown to the agent, and nothing of this session is kept."
NO_MODEL_MESSAGE = "Without a model only memory can answer: an incognito chat needs a --model."


_SUB_AGENT_NAME = "general"
_SUB_AGENT_DESCRIPTION = (
    "Does one piece of work on its own, such as reading much to find little, and reports what came of it. It has your "
    "tools but those of memory, past sessions, plans and tasks, and sees nothing of this conversation."
)


@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """What was asked for on the command line; without a `model` memory answers.

    `command_group` are the commands that the chat runs as they are there.
    """

    target: Target
    settings: "Settings"
    model: "ChatModel | None"
    command_group: "TyperGroup"
    session: str | None = None
    memory: bool = True
    incognito: bool = False
    files: bool = False
    verbose: bool = False
    named_root: Path | None = None


async def build_agent(wishes: ChatOptions, approve: "ApprovalHandler | None") -> "HarnessAgent":
    """Return the agent, which is not open yet; `approve` asks the person, None where nobody sits there."""
    from ricordo.agent import HarnessAgent

    acts = wishes.model is not None
    return HarnessAgent.with_recommended_settings(
        wishes.model or quoting_model(wishes.target),
        workspace=wishes.target.root,
        scope=await load_scope(wishes.target),
        session=wishes.session,
        memory_tools=wishes.memory,
        memory_hooks=wishes.memory,
        session_tools=wishes.memory,
        incognito=wishes.incognito,
        require_memory=True,
        file_tools=wishes.files,
        approve=approve,
        planning=acts,
        sub_agents=default_sub_agents() if acts else (),
        settings=wishes.settings,
    )


def apply_incognito(wishes: ChatOptions, slash: "SlashCommand") -> ChatOptions:
    """Return the wishes after `/incognito` or `/incognito off`. Raises: InvalidInput for another word, and offline."""
    if slash.rest not in {"", "on", "off"}:
        raise InvalidInput("/incognito begins a session that nothing is kept of; /incognito off ends it.")
    on = slash.rest != "off"
    if on and wishes.model is None:
        raise InvalidInput(NO_MODEL_MESSAGE)
    return wishes if on == wishes.incognito else replace(wishes, incognito=on, session=None)


def default_sub_agents() -> "tuple[SubAgent, ...]":
    """Return the sub-agents that the agent of a chat with a model can let work."""
    from ricordo.harness.sub_agents import SubAgent

    return (SubAgent(name=_SUB_AGENT_NAME, description=_SUB_AGENT_DESCRIPTION),)
