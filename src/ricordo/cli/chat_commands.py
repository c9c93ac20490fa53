"""What begins with a slash: the chat's own commands, and those of the command line, which are run as they are there.

Invariant: what memory holds is listed, shown and forgotten by one implementation, in a chat and outside of it.
"""

import difflib
import shlex
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ricordo.cli.render import bold, print_line

if TYPE_CHECKING:
    from typer.core import TyperGroup

    from ricordo.cli.context import Target

__all__ = [
    "HELP_LINES",
    "COMMAND_NAMES",
    "SlashCommand",
    "cli_arguments",
    "parse_line",
    "print_help",
    "run_command",
    "unknown_command_message",
]

_MEMORY_ACTIONS = ("list", "show", "search", "forget")
_SESSION_ACTIONS = ("list", "show", "search")
HELP_LINES = (
    ("/memory list", "what is remembered; --id --kind --tag --source --scope --older-than --newer-than --limit"),
    ("/memory show ID", "one memory and what it rests on"),
    ("/memory search QUERY", "search memories, conversations and notes"),
    ("/memory forget ID", "take a memory out, after a question"),
    ("/session list", "the conversations that were kept; also show ID and search QUERY"),
    ("/context", "what fills the window, by section, in tokens"),
    ("/compact [FOCUS]", "make the window smaller now; --dry-run only tells what it would come to"),
    ("/compact --list", "the compactions of this session; --undo [HANDLE] brings the window back"),
    ("/expand HANDLE", "what a compaction took out of the window, as it was said"),
    (
        "/pin [LINE]",
        "keep a message through every compaction: its line in /session show, or your last one; also /unpin",
    ),
    ("/remove LINE", "take a message out of the window; /compact --undo brings it back"),
    ("/edit LINE TEXT", "let a message of the window say something else, which can be undone too"),
    ("/tasks [ID]", "what runs in the background, or all of one task; /tasks cancel ID stops it"),
    (
        "/plan",
        "the plan, and whether the agent plans; /plan on [TITLE] lets it plan before acting; off, done or drop ends it",
    ),
    ("/todos", "what the agent has to do"),
    ("/permissions", "the rules for tool calls; allow, deny, ask or remove PATTERN, such as write_file(src/*)"),
    (
        "/incognito",
        "begin a session that shows nothing of memory and is not kept; /incognito off goes on with this one",
    ),
    ("/clear", "begin with an empty window; the transcript keeps what was said"),
    ("/undo [CHANGE]", "take back the newest write, or the one named"),
    ("/help", "this list"),
    ("/quit", "end the chat, as Ctrl-D does"),
    ("//text", "say a text that begins with a slash"),
    ("Ctrl-C", "stop a reply; what came of it is kept"),
)
COMMAND_NAMES = (
    *(
        "clear",
        "compact",
        "context",
        "edit",
        "exit",
        "expand",
        "help",
        "incognito",
        "memory",
        "permissions",
        "pin",
        "plan",
        "quit",
    ),
    *("remove", "session", "tasks", "todos", "undo", "unpin"),
)


@dataclass(frozen=True, kw_only=True)
class SlashCommand:
    """A command: its name without the slash, in lower case, and the rest of the line."""

    name: str
    rest: str = ""


def parse_line(line: str) -> SlashCommand | str:
    """Return the command in a line, or what is said with it; `//text` says `/text`."""
    text = line.strip()
    if text.startswith("//"):
        return text[1:]
    if not text.startswith("/"):
        return text
    name, _, rest = text[1:].partition(" ")
    return SlashCommand(name=name.lower(), rest=rest.strip())


def cli_arguments(slash: SlashCommand) -> list[str] | None:
    """Return the arguments of the command line's own command; None when it has none for this."""
    words = _split_words(slash.rest)
    if slash.name == "undo":
        return ["undo", *words]
    known = {"memory": _MEMORY_ACTIONS, "session": _SESSION_ACTIONS}.get(slash.name, ())
    act, *rest = words or ["list"]
    if act.startswith("-"):
        act, rest = "list", words
    if act not in known:
        return None
    if act == "search":
        rest = _join_query(rest)
    return ["forget", *rest] if act == "forget" else [slash.name, act, *rest]


def unknown_command_message(slash: SlashCommand) -> str:
    """Return what is said of a command that is none."""
    acts = {"memory": _MEMORY_ACTIONS, "session": _SESSION_ACTIONS}.get(slash.name)
    if acts:
        act = slash.rest.split()[0]
        near = difflib.get_close_matches(act, acts, n=1) or list(acts)
        return f"There is no /{slash.name} {act}; there is {_join_names([f'/{slash.name} {each}' for each in near])}."
    near = difflib.get_close_matches(slash.name, COMMAND_NAMES, n=1)
    hint = f" Did you mean /{near[0]}?" if near else ""
    return f"There is no /{slash.name}.{hint} /help lists the commands; //{slash.name} says it to the agent."


def print_help() -> None:
    """Print every command and key."""
    width = max(len(name) for name, _ in HELP_LINES)
    for name, text in HELP_LINES:
        print_line(f"  {bold(f'{name:<{width}}')}  {text}")


def run_command(group: "TyperGroup", target: "Target", arguments: Sequence[str]) -> int:
    """Run a command of the command line in this thread, on this chat's root, and return its exit code."""
    given = ["--root", str(target.root), "--user", target.user]
    if target.project:
        given += ["--project", target.project]
    with _default_interrupts():
        try:
            group.main([*given, *arguments], prog_name="ricordo", standalone_mode=True)
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else 0
    return 0


def _split_words(text: str) -> list[str]:
    with suppress(ValueError):
        return shlex.split(text)
    return text.split()


def _join_query(words: Sequence[str]) -> list[str]:
    """Return the words up to the first option as one text."""
    end = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    return [*([" ".join(words[:end])] if end else []), *words[end:]]


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@contextmanager
def _default_interrupts() -> Iterator[None]:
    """Let Ctrl-C do what it does to a command: its own loop then ends in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
