"""The entry point of the command `ricordo`.

Invariant: Ctrl-C ends it with the code 130 and without a traceback, also while its commands are still being loaded.
"""

import atexit
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ricordo.hooks.contract import HookAnswer, HookEvent
    from ricordo.hooks.places import Place

__all__ = ["run"]


_EXIT_INTERRUPTED = 128 + signal.SIGINT
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def run() -> None:
    """Run the command line of this process."""
    if sys.argv[1:2] == ["hook"]:
        _run_hook(sys.argv[2:])
    before = signal.getsignal(signal.SIGINT)
    # who is to ignore interruptions, such as a job in the background, goes on doing so
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit_at_once)
    # importing makes many objects that stay, so they are rarely searched for garbage, and not at the end
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
    from ricordo.cli.application import app

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        signal.signal(signal.SIGINT, before)
        app(prog_name="ricordo")
    except KeyboardInterrupt:
        sys.exit(_EXIT_INTERRUPTED)


def _run_hook(arguments: list[str]) -> None:
    """Run a hook, which loads next to nothing, and end the process; return if these are no arguments of one."""
    from ricordo.hooks.entry import answers_directly, run_hook

    def answer(place: "Place", event: "HookEvent") -> "HookAnswer":
        from ricordo.cli.target import answer_hook

        return answer_hook(place, event)

    if answers_directly(arguments):
        run_hook(arguments, os.environ, answer)


def _exit_at_once(*args: object) -> None:
    """Exit at once: nothing is open yet."""
    del args
    os._exit(_EXIT_INTERRUPTED)
