"""What is typed into a chat: lines of a terminal or a pipe, and what begins with a slash.

Slash commands are the chat's own, and those of the command line, which run as they are there.

Invariants: the history of lines is kept in memory only, as it holds what was said with its secrets. Nothing that was
typed before a question was printed answers it. What memory holds is listed, shown and forgotten by one implementation,
in a chat and outside of it.
"""

import difflib
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

from ricordo.cli.render import bold, dim, escape, print_line
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from types import ModuleType

    from typer.core import TyperGroup

    from ricordo.agent.tools import Approval
    from ricordo.cli.target import Target
    from ricordo.workspace.entry import Entry

__all__ = [
    "COMMAND_NAMES",
    "HELP_LINES",
    "ApprovalAnswer",
    "ChatInput",
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
    arguments: str = ""


def parse_line(line: str) -> SlashCommand | str:
    """Return the command in a line, or its text as a message; `//text` is the message `/text`."""
    text = line.strip()
    if text.startswith("//"):
        return text[1:]
    if not text.startswith("/"):
        return text
    name, _, rest = text[1:].partition(" ")
    return SlashCommand(name=name.lower(), arguments=rest.strip())


def cli_arguments(slash: SlashCommand) -> list[str] | None:
    """Return the arguments of the command line's own command; None when it has none for this."""
    words = _split_words(slash.arguments)
    if slash.name == "undo":
        return ["undo", *words]
    actions = {"memory": _MEMORY_ACTIONS, "session": _SESSION_ACTIONS}.get(slash.name, ())
    act, *rest = words or ["list"]
    if act.startswith("-"):
        act, rest = "list", words
    if act not in actions:
        return None
    if act == "search":
        rest = _join_query(rest)
    return ["forget", *rest] if act == "forget" else [slash.name, act, *rest]


def unknown_command_message(slash: SlashCommand) -> str:
    """Return the error for an unknown command."""
    acts = {"memory": _MEMORY_ACTIONS, "session": _SESSION_ACTIONS}.get(slash.name)
    if acts:
        act = slash.arguments.split()[0]
        names = difflib.get_close_matches(act, acts, n=1) or list(acts)
        return f"There is no /{slash.name} {act}; there is {_join_names([f'/{slash.name} {each}' for each in names])}."
    names = difflib.get_close_matches(slash.name, COMMAND_NAMES, n=1)
    hint = f" Did you mean /{names[0]}?" if names else ""
    return f"There is no /{slash.name}.{hint} /help lists the commands; //{slash.name} says it to the agent."


def print_help() -> None:
    """Print every command and key."""
    width = max(len(name) for name, _ in HELP_LINES)
    for name, text in HELP_LINES:
        print_line(f"  {bold(f'{name:<{width}}')}  {text}")


def run_command(
    group: "TyperGroup", target: "Target", arguments: Sequence[str], *, entries: "Sequence[Entry] | None" = None
) -> int:
    """Run a command of the command line in this thread, on this chat's root, and return its exit code.

    `memory list` lists `entries` if they are given, else the memories of the root.
    """
    global_options = ["--root", str(target.root), "--user", target.user]
    if target.project:
        global_options += ["--project", target.project]
    with _default_interrupts():
        try:
            group.main([*global_options, *arguments], prog_name="ricordo", standalone_mode=True, obj=entries)
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


ApprovalAnswer: TypeAlias = Literal["no", "yes", "always"]
"""What a person says to a question."""
_PROMPT = "> "
_LINE_ENDS = bytes.maketrans(b"\r\0\x04", b"\n\n\n")
"""What ends a line as it is typed: the key for it, and the end of the input, in its two shapes."""
_APPROVAL_ANSWERS: dict[str, ApprovalAnswer] = {"y": "yes", "yes": "yes", "a": "always", "always": "always"}


class ChatInput:
    """Where lines come from; `is_terminal` tells whether a person sits there."""

    def __init__(self) -> None:
        """Look at standard input and output."""
        self.is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._readline: ModuleType | None = None

    def enable_editing(self) -> None:
        """Switch editing and recalling on, for a terminal."""
        if not self.is_terminal:
            return
        if hasattr(sys.stdin, "reconfigure"):
            # what the locale can't decode is decoded later, rather than refused
            sys.stdin.reconfigure(errors="surrogateescape")
        with suppress(ImportError):
            import readline

            readline.set_completer(_complete)
            readline.set_completer_delims(" ")
            readline.parse_and_bind("tab: complete")
            self._readline = readline

    def read_line(self) -> str:
        """Return the next line without its end. Raises `EOFError` after the last."""
        if self.is_terminal:
            return os.fsencode(_input_line(_PROMPT)).decode("utf-8", "replace")
        line = sys.stdin.buffer.readline()
        if not line:
            raise EOFError
        return line.decode("utf-8", "replace").rstrip("\r\n")

    def ask_approval(self, approval: "Approval", *, always: bool) -> ApprovalAnswer:
        """Show a change and ask whether it may be made, with `always` also for good; anything but yes is no.

        What was typed before is dropped, and so is the rest of a line that had been begun.
        """
        actor = f"{escape(approval.agent)} wants to: " if approval.agent else ""
        # a reply that still comes, or what was typed meanwhile, may stand on the line
        print_line(f"\n{bold(f'{actor}{escape(approval.action)} {escape(approval.target)}')}")
        if approval.change:
            print_line(escape(approval.change.rstrip("\n")))
        partial_input = self._discard_typed()
        with self._without_history():
            line = self._read_answer(always=always)
            if partial_input:
                print_line(dim("That line was begun before the question was asked, so it is no answer."))
                line = self._read_answer(always=always)
        answer = _APPROVAL_ANSWERS.get(line, "no")
        return "no" if answer == "always" and not always else answer

    def _read_answer(self, *, always: bool) -> str:
        return _input_line(f"May it? [y/N{'/a' if always else ''}] ").strip().lower()

    def _discard_typed(self) -> bool:
        """Discard typed input that was not read yet, say so, and return whether its last line is unfinished."""
        typed = _read_pending() if self.is_terminal else b""
        if typed.strip():
            print_line(dim("What was typed before this question is dropped."))
        return bool(typed) and not typed.endswith(b"\n")

    @contextmanager
    def _without_history(self) -> Iterator[None]:
        if self._readline is None:
            yield
            return
        self._readline.set_auto_history(False)
        try:
            yield
        finally:
            self._readline.set_auto_history(True)


def _read_pending() -> bytes:
    """Return, and take away, what was typed at the terminal and not read yet, a line that is not ended included."""
    try:
        import termios
    except ImportError:
        return b""
    number, data = sys.stdin.fileno(), b""
    try:
        before = termios.tcgetattr(number)
        keys = [*before[:6], [*before[6]]]
        # as single keys, without waiting for one: a line that is not ended can be read in no other way
        keys[3] &= ~termios.ICANON
        keys[6][termios.VMIN], keys[6][termios.VTIME] = 0, 0
        termios.tcsetattr(number, termios.TCSANOW, keys)
        try:
            while piece := os.read(number, 4096):
                data += piece
        finally:
            termios.tcsetattr(number, termios.TCSANOW, before)
    except (OSError, termios.error):
        # a terminal that is gone
        return data
    return data.translate(_LINE_ENDS)


def _input_line(prompt: str) -> str:
    try:
        return input(prompt)
    except OSError as error:
        # a terminal that is gone
        raise EOFError from error


def _complete(text: str, state: int) -> str | None:
    candidates = [f"/{name} " for name in COMMAND_NAMES if text and f"/{name}".startswith(text)]
    return candidates[state] if state < len(candidates) else None
