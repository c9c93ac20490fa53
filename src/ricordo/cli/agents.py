"""The agents of the command line: of a chat, and of a session whose window a command shows or changes.

With a model the agent of a chat keeps todos, plans, and can let a sub-agent work in the background. Without one it
quotes memory with its file and line.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.error_handling import hide_unrecorded_warning
from ricordo.cli.render import print_note
from ricordo.cli.target import Target, load_scope, print_setting_errors
from ricordo.errors import ExtraMissing, InvalidInput, ModelError
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from typer.core import TyperGroup

    from ricordo.agent import HarnessAgent
    from ricordo.agent.options import SubAgent
    from ricordo.agent.tools import ApprovalHandler
    from ricordo.cli.chat_input import SlashCommand
    from ricordo.models import ChatModel
    from ricordo.runtime import Settings
    from ricordo.search.contract import Answer, Hit

__all__ = [
    "INCOGNITO_NOTICE",
    "NO_MODEL_MESSAGE",
    "ChatOptions",
    "apply_incognito",
    "build_agent",
    "default_sub_agents",
    "find_session_id",
    "open_session_agent",
    "quoting_model",
]


_MAX_QUOTE_CHARS = 600


def quoting_model(target: Target) -> "ChatModel":
    """Return the model that quotes the memory of `target`."""
    from ricordo.agent.quoting_model import QuotingModel

    return QuotingModel(partial(_format_answer, target))


def _format_answer(target: Target, answer: "Answer") -> str:
    """Return the passages, what contradicts the first and what it superseded, each with its place."""
    return "\n".join(f"{label}{_format_quote(hit, target)}" for label, hit in answer.quotes)


def _format_quote(hit: "Hit", target: Target) -> str:
    content = hit.entry.content.strip()
    quote = content if len(content) <= _MAX_QUOTE_CHARS else f"{content[: _MAX_QUOTE_CHARS - 1].rstrip()}…"
    date = hit.entry.since or hit.entry.time
    facts = [hit.speaker, f"{date.astimezone():%Y-%m-%d}" if date else "", _format_place(hit, target)]
    return f"{quote}\n— {', '.join(filter(None, facts))}"


def _format_place(hit: "Hit", target: Target) -> str:
    """Return where it stands, as it is found from here; empty for what stands in no file."""
    if not hit.path:
        return ""
    # only what comes from a root says of which, and a store that is none may not tell its folder
    is_source_file = hit.source or Path(hit.path).is_absolute()
    return f"{target.display_path(hit.path, hit.source) if is_source_file else hit.path}:{hit.line_number}"


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


async def build_agent(options: ChatOptions, approve: "ApprovalHandler | None") -> "HarnessAgent":
    """Return the agent, which is not open yet; `approve` asks the person, None where nobody sits there."""
    from ricordo.agent import BuiltinTools, HarnessAgent, MemoryConfig

    has_model = options.model is not None
    return HarnessAgent.with_recommended_settings(
        options.model or quoting_model(options.target),
        scope=await load_scope(options.target),
        memory=MemoryConfig(root=options.target.root, required=True, hooks=options.memory, incognito=options.incognito),
        session=options.session,
        builtin_tools=BuiltinTools(
            memory=options.memory, sessions=options.memory, files=options.files, planning=has_model
        ),
        approve=approve,
        sub_agents=default_sub_agents() if has_model else (),
        settings=options.settings,
    )


def apply_incognito(options: ChatOptions, slash: "SlashCommand") -> ChatOptions:
    """Return the wishes after `/incognito` or `/incognito off`. Raises: InvalidInput for another word, and offline."""
    if slash.arguments not in {"", "on", "off"}:
        raise InvalidInput("/incognito begins a session that nothing is kept of; /incognito off ends it.")
    enabled = slash.arguments != "off"
    if enabled and options.model is None:
        raise InvalidInput(NO_MODEL_MESSAGE)
    return options if enabled == options.incognito else replace(options, incognito=enabled, session=None)


def default_sub_agents() -> "tuple[SubAgent, ...]":
    """Return the sub-agents that the agent of a chat with a model can let work."""
    from ricordo.agent.options import SubAgent

    return (SubAgent(name=_SUB_AGENT_NAME, description=_SUB_AGENT_DESCRIPTION),)


_OFFLINE = "offline"


@asynccontextmanager
async def open_session_agent(
    target: Target, session: str | None, *, with_model: bool = True, with_learning: bool = False
) -> AsyncIterator["HarnessAgent"]:
    """Open the recommended agent in `session`, a new one when None, with the configured model where there is one.

    One that can't be used is raised as `ModelError` or `ExtraMissing`, and told where nothing is to be asked of it.
    Settings that can't be used are told. The agent is one to look at: nothing is said to it.
    """
    from ricordo.agent import BuiltinTools, HarnessAgent, MemoryConfig

    print_setting_errors(target)
    model = _load_model(target, with_model=with_model)
    blueprint = HarnessAgent.with_recommended_settings(
        model or quoting_model(target),
        scope=await load_scope(target),
        memory=MemoryConfig(root=target.root, required=True, hooks=with_learning, keeps_session=True),
        session=session,
        builtin_tools=BuiltinTools(planning=model is not None),
        sub_agents=default_sub_agents() if model else (),
        settings=replace(target.settings, embedder=None),
    )
    with hide_unrecorded_warning():
        async with blueprint as agent:
            yield agent


async def find_session_id(target: Target, requested: str | None) -> str | None:
    """Return the session with this id, or the one whose id begins so; without a name the user's newest, None for none.

    Raises: SessionNotFound.
    """
    from ricordo.runtime.workspace import root_files
    from ricordo.workspace.layout import DEFAULT_AGENT
    from ricordo.workspace.session_search import find_session, list_sessions

    files = root_files(target.user_folder)
    if requested is not None:
        return (await find_session(files, requested, agent=DEFAULT_AGENT)).session
    sessions = await list_sessions(files, agent=DEFAULT_AGENT)
    return next((info.session for info in sessions if info.user in {"", target.user}), None)


def _load_model(target: Target, *, with_model: bool) -> "ChatModel | None":
    from ricordo.runtime.models import load_agent_model

    settings = target.settings
    if settings.model is None or settings.model == _OFFLINE:
        return None
    try:
        return load_agent_model(settings.model, settings)
    except (ModelError, ExtraMissing) as error:
        if with_model:
            raise
        print_note(f"{error} The sizes are those without a model.")
        return None
