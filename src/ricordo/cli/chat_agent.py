"""The agent of a chat: how it is made of what was asked for on the command line.

With a model it keeps todos, plans, and can let a sub-agent work in the background; what only quotes memory can do none
of it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.chat_offline import offline
from ricordo.cli.context import Target, scope_of

if TYPE_CHECKING:
    from typer.core import TyperGroup

    from ricordo.agent import HarnessAgent
    from ricordo.harness.sub_agents import SubAgent
    from ricordo.models import ChatModel
    from ricordo.runtime import Settings
    from ricordo.tools import Approve

__all__ = ["Wishes", "described", "helpers"]

_GENERAL = "general"
_DESCRIPTION = (
    "Does one piece of work on its own, such as reading much to find little, and reports what came of it. It has your "
    "tools but those of memory, past sessions, plans and tasks, and sees nothing of this conversation."
)


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What was asked for on the command line; without a `model` memory answers.

    `group` are the commands that the chat runs as they are there.
    """

    target: Target
    settings: "Settings"
    model: "ChatModel | None"
    group: "TyperGroup"
    session: str | None = None
    memory: bool = True
    files: bool = False
    verbose: bool = False
    named_root: Path | None = None


async def described(wishes: Wishes, approve: "Approve | None") -> "HarnessAgent":
    """Return the agent, which is not open yet; `approve` asks the person, None where nobody sits there."""
    from ricordo.agent import HarnessAgent

    acts = wishes.model is not None
    return HarnessAgent.recommended(
        wishes.model or offline(wishes.target),
        workspace=wishes.target.root,
        scope=await scope_of(wishes.target),
        session=wishes.session,
        memory_tools=wishes.memory,
        memory_hooks=wishes.memory,
        session_tools=wishes.memory,
        require_memory=True,
        file_tools=wishes.files,
        approve=approve,
        planning=acts,
        sub_agents=helpers() if acts else (),
        settings=wishes.settings,
    )


def helpers() -> "tuple[SubAgent, ...]":
    """Return the sub-agents that the agent of a chat with a model can let work."""
    from ricordo.harness.sub_agents import SubAgent

    return (SubAgent(name=_GENERAL, description=_DESCRIPTION),)
