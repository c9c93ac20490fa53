"""`chat`: an agent with memory in the terminal; without a model it quotes what memory holds."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import print_error, print_json, print_note
from ricordo.cli.target import Target, find_target, run_async
from ricordo.errors import SessionNotFound

if TYPE_CHECKING:
    from typer.core import TyperGroup

    from ricordo.cli.agents import ChatOptions
    from ricordo.cli.chat_input import ChatInput
    from ricordo.models import ChatModel
    from ricordo.runtime import Settings

__all__ = ["chat"]


_OFFLINE = "offline"
_THINKING_SWITCHES = {"on": True, "off": False}
_EXIT_USAGE, _EXIT_INTERRUPTED = 2, 130
_Message = Annotated[str | None, typer.Argument(metavar="MESSAGE", show_default=False, help="Say only this, and end.")]
_ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        show_default=False,
        help="The model, such as anthropic:claude-sonnet-5, or offline; else RICORDO_MODEL, else config.toml.",
    ),
]
_Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        metavar="NUMBER",
        show_default=False,
        help="How freely the model words its replies, from 0 up; else model_settings.temperature.",
    ),
]
_Thinking = Annotated[
    str | None,
    typer.Option(
        "--thinking",
        metavar="LEVEL",
        show_default=False,
        help="Whether the model thinks first: on, off, low, medium or high; else model_settings.thinking.",
    ),
]
_StoreAddress = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        show_default=False,
        help="What to remember with, such as jsonl:./notes, none for nothing; else RICORDO_STORE, else config.toml, "
        "else the memory of the root.",
    ),
]
_SessionId = Annotated[
    str | None, typer.Option("--session", metavar="ID", show_default=False, help="Go on with this session.")
]
_NoMemory = Annotated[
    bool, typer.Option("--no-memory", help="Neither show memory nor learn; what is said is still kept.")
]
_Incognito = Annotated[
    bool,
    typer.Option("--incognito", help="Show nothing of memory to the agent and keep nothing, not even what is said."),
]
_Files = Annotated[
    bool, typer.Option("--files", help="Let the agent read files, and write them when you say yes to the change.")
]


def chat(
    context: typer.Context,
    *,
    message: _Message = None,
    model: _ModelName = None,
    temperature: _Temperature = None,
    thinking: _Thinking = None,
    store: _StoreAddress = None,
    session: _SessionId = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest session.")] = False,
    no_memory: _NoMemory = False,
    incognito: _Incognito = False,
    files: _Files = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what the model thinks.")] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Talk to an agent that remembers.

    Without a model it quotes what memory holds, with the source. What is said is kept, and what it teaches is learned.
    In the chat, /help lists the commands. Lines from a pipe are said one after the other.
    """
    from ricordo.cli.agents import ChatOptions
    from ricordo.cli.chat_input import ChatInput
    from ricordo.runtime import Settings

    _check_not_blank(message, as_json=as_json)
    if session is not None and not session.strip():
        raise SessionNotFound(f"No session has the id {session!r}: `ricordo session list` shows the ids.")
    source, target = ChatInput(), find_target(root, user, project)
    _check_options(
        two=bool(session) and resume, json=as_json and message is None, files=files and not source.is_terminal
    )
    if incognito and (session or resume):
        raise typer.BadParameter("An incognito chat is a new one: leave --session and --resume out.")
    overrides = {
        "model_settings.temperature": temperature,
        "model_settings.thinking": _THINKING_SWITCHES.get(thinking or "", thinking),
    }
    settings = Settings.load(target.root, None, {"model": model, "store": store, "user": user, **overrides})
    options = ChatOptions(
        target=target,
        settings=settings,
        model=_connect_model(settings, memory=not (no_memory or incognito)),
        command_group=cast("TyperGroup", context.find_root().command),
        session=_newest_session(target) if resume else session,
        memory=not no_memory,
        incognito=incognito,
        files=files,
        verbose=verbose,
        named_root=root,
    )
    raise typer.Exit(
        _run_chat(options, source)
        if message is None
        else _run_single_message(options, source, message, as_json=as_json)
    )


def _check_not_blank(message: str | None, *, as_json: bool) -> None:
    if message is None or message.strip():
        return
    error_message = "The MESSAGE is blank: say something, or leave it out to chat."
    if as_json:
        raise typer.BadParameter(error_message)
    print_error(error_message)
    raise typer.Exit(_EXIT_USAGE)


def _check_options(*, two: bool, json: bool, files: bool) -> None:
    if two:
        raise typer.BadParameter("--session and --resume each name a session: give one of them.")
    if json:
        raise typer.BadParameter("--json needs a MESSAGE.")
    if files:
        raise typer.BadParameter("--files asks before each change, so it needs a terminal.")


def _connect_model(settings: "Settings", *, memory: bool) -> "ChatModel | None":
    """Return the connected model; print a note and return None without a model."""
    from ricordo.runtime.models import load_agent_model

    if settings.model is not None and settings.model != _OFFLINE:
        return load_agent_model(settings.model, settings)
    if not memory:
        raise typer.BadParameter(
            "Without a model only memory can answer: name a --model, or leave --no-memory and --incognito out."
        )
    print_note("Offline: answers are quoted from memory. --model NAME, RICORDO_MODEL or config.toml names a model.")
    return None


def _newest_session(target: Target) -> str:
    """Return the user's newest session of this root. Raises `SessionNotFound`."""
    from ricordo.cli.agents import find_session_id

    session_id = run_async(lambda: find_session_id(target, None)) if target.exists else None
    if session_id is None:
        raise SessionNotFound(f"There is no session to go on with in {target.root}: leave --resume out to begin one.")
    return session_id


def _run_chat(options: "ChatOptions", source: "ChatInput") -> int:
    from ricordo.cli.chat_loop import Chat
    from ricordo.cli.chat_terminal import MainThreadRunner

    foreground = MainThreadRunner()
    source.enable_editing()
    return foreground.run(Chat(options=options, main_thread=foreground, input=source).run)


def _run_single_message(options: "ChatOptions", source: "ChatInput", message: str, *, as_json: bool) -> int:
    from ricordo.cli.chat_loop import Chat
    from ricordo.cli.chat_terminal import MainThreadRunner

    foreground = MainThreadRunner()
    conversation = Chat(options=options, main_thread=foreground, input=source)
    result, session = foreground.run(lambda: conversation.run_once(message, quiet=as_json))
    if result is None:
        return 128 + foreground.end_signal if foreground.end_signal else _EXIT_INTERRUPTED
    if as_json:
        print_json(
            {
                "session": session,
                "kept": conversation.is_recorded,
                "root": str(options.target.root),
                "reply": result.message.text,
                "ending": result.ending,
                "steps": result.steps,
                "input_tokens": result.usage.input,
                "output_tokens": result.usage.output,
            }
        )
    return conversation.code
