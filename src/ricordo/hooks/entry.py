"""The process of a hook: it reads what the host sends, answers or hands over, and ends.

It imports next to nothing: what most hooks do needs no memory. Invariants: it ends with the exit code 0 whatever
happens, within seconds, and prints an answer in one piece or nothing.
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ricordo.hooks.contract import (
    COMPACTED,
    COMPACTING,
    ENDED,
    PROMPT,
    STARTED,
    HookAnswer,
    HookEvent,
    Host,
)
from ricordo.hooks.given import GivenMemory, claim_answer, read_session, write_session
from ricordo.hooks.hosts import load_host, read_event
from ricordo.hooks.link import ask_server
from ricordo.hooks.log import HookRun, add_run
from ricordo.hooks.places import HOOKS_FOLDER, Place, find_data_folder, find_place
from ricordo.hooks.prepared import read_prepared
from ricordo.hooks.spool import SpoolItem, add_item
from ricordo.hooks.switches import Switches, read_switches
from ricordo.hooks.worker import start_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    AnswerInProcess = Callable[[Place, HookEvent], HookAnswer]

__all__ = ["answers_directly", "run_hook"]


_MAX_INPUT_BYTES = 32_000_000
_MAX_SUMMARY_CHARACTERS = 200_000
_MAX_SECONDS = 10.0
_CHUNK = 1_000_000
_MAX_NAME_CHARACTERS = 40
_COMMAND_SIGNS = ("/", "!", "#")
_MUST_SURVIVE = (
    "Keep in the summary, word for word where it matters: what the user decided, asked for, corrected or ruled out, "
    "and why; names, numbers, paths and commands that were settled; what is done, what is not, and what comes next. "
    "Memory from earlier sessions, which stands in <memory> blocks, is given again after the compaction: leave it out."
)


class _Run:
    """One run of a hook, filled in while it runs and written to the log at its end."""

    def __init__(self, host: str, event: str, hooks_folder: str) -> None:
        self._begun = time.perf_counter()
        self._host, self._event, self._hooks_folder = host, event, hooks_folder
        self.root = self.session = self.source = self.trouble = ""
        self.given = 0

    def finish(self) -> NoReturn:
        """Write the line of the log and end the process; an error that is on its way is named in the line."""
        error = sys.exc_info()[1]
        line = HookRun(
            at=time.time(),
            host=self._host[:_MAX_NAME_CHARACTERS],
            event=self._event[:_MAX_NAME_CHARACTERS],
            root=self.root,
            session=self.session,
            milliseconds=round(1_000 * (time.perf_counter() - self._begun), 1),
            source=self.source,
            given=self.given,
            trouble=self.trouble or (type(error).__name__ if error else ""),
        )
        with suppress(OSError):
            add_run(self._hooks_folder, line)
        # nothing is open that would have to be closed, and an exit in the usual way could still fail
        os._exit(0)


def answers_directly(arguments: list[str]) -> bool:
    """Return whether these arguments of the command `hook` name a host and an event, and nothing else."""
    return len(arguments) == 2 and not any(each.startswith("-") for each in arguments)


def run_hook(arguments: list[str], environment: "Mapping[str, str]", answer: "AnswerInProcess") -> NoReturn:
    """Run the hook of a host for an event, and end the process with the exit code 0.

    `answer` opens the memory and answers, where nothing else can.
    """
    host_name, event_name = arguments
    data = find_data_folder(environment)
    run = _Run(host_name, event_name, os.path.join(data, HOOKS_FOLDER))
    try:
        _limit_time(run)
        task = _read_task(run, host_name, event_name, environment)
        if task:
            _do_task(run, task, environment, answer)
    finally:
        # whatever went wrong, the host goes on
        run.finish()


class _Task(NamedTuple):
    """What is to be done: an event of a host at a place."""

    host: Host
    event: HookEvent
    place: Place
    switches: Switches


def _read_task(run: _Run, host_name: str, event_name: str, environment: "Mapping[str, str]") -> _Task | None:
    """Return what is to be done; None where nothing is, with the reason in the log."""
    host = load_host(host_name)
    if host is None:
        run.trouble = "unknown host"
        return None
    event = read_event(host, event_name, _read_payload(run))
    if event is None:
        run.trouble = run.trouble or "unknown event"
        return None
    place = find_place(event.folder or os.getcwd(), environment)
    if place is None:
        run.source = "no place"
        return None
    run.root, run.session = place.root, event.session
    return _Task(host=host, event=event, place=place, switches=read_switches(place.data, environment))


def _do_task(run: _Run, task: _Task, environment: "Mapping[str, str]", answer: "AnswerInProcess") -> None:
    kind = task.event.kind
    if kind in {STARTED, PROMPT}:
        _answer(run, task, answer)
    else:
        _hand_over(run, task)
    if task.switches.starts_worker and (kind == STARTED or kind in task.host.closing):
        start_worker(task.place, environment)


def _answer(run: _Run, task: _Task, answer_in_process: "AnswerInProcess") -> None:
    """Print the answer to an event; at a prompt with which a session starts, also the answer to its start."""
    event, place = task.event, task.place
    if not task.switches.is_on or not os.path.isdir(place.root):
        return
    if not claim_answer(place, event):
        run.source = "another hook"
        return
    events = [event] if event.kind == STARTED or not _is_trivial(event.text) else []
    if task.host.starts_at_prompt and _begin_window(place, event, task.host.find_compaction(event.transcript)):
        events.insert(0, event._replace(kind=STARTED, source="startup", text=""))
    answers = [_find_answer(run, place, each, answer_in_process) for each in events]
    answer = HookAnswer(
        context="\n".join(each.context for each in answers if each.context),
        notice=next((each.notice for each in answers if each.notice), ""),
        entries=tuple(entry for each in answers for entry in each.entries),
    )
    run.given = len(answer.entries)
    _print(task.host.format_answer(event, answer))


def _find_answer(run: _Run, place: Place, event: HookEvent, answer_in_process: "AnswerInProcess") -> HookAnswer:
    """Return the answer of the first who can give one: the server, the prepared preamble, or this process."""
    answer, run.source = ask_server(place, event), "server"
    if answer is None and event.kind == STARTED:
        answer, run.source = _read_prepared_answer(place, event), "prepared"
    if answer is None:
        answer, run.source = answer_in_process(place, event), "process"
    return answer


def _begin_window(place: Place, event: HookEvent, compaction: str) -> bool:
    """Return whether the window of a session is without what it starts with, and note that it has it from now on.

    `compaction` is the last one that the transcript tells of. Where nothing can be noted, nothing is given: else each
    prompt would bring it again.
    """
    given = read_session(place, event.host, event.session)
    is_new = compaction != given.compaction
    if not event.session or (given.has_preamble and not is_new):
        return False
    if is_new:
        given = given._replace(compaction=compaction, tokens=0, memories=())
    try:
        write_session(place, given._replace(at=time.time(), has_preamble=True))
    except OSError:
        return False
    return True


def _read_prepared_answer(place: Place, event: HookEvent) -> HookAnswer | None:
    """Return the answer from the prepared preamble; None if there is none, or the session was given something."""
    if event.source in {"resume", "fork"} or not event.session:
        return None
    prepared = read_prepared(place)
    if prepared is None:
        return None
    now = time.time()
    memories = tuple(GivenMemory(id=each, event=event.kind, at=now) for each in prepared.entries)
    with suppress(OSError):
        given = read_session(place, event.host, event.session)
        write_session(place, given._replace(at=now, has_preamble=True, tokens=0, memories=memories))
    return HookAnswer(context=prepared.text, entries=prepared.entries)


def _hand_over(run: _Run, task: _Task) -> None:
    """Put the transcript, as far as it goes, into the spool; where hooks are off, that this part is not to be read."""
    event, place, is_on = task.event, task.place, task.switches.is_on
    if event.kind == COMPACTING and is_on:
        _print(task.host.format_answer(event, HookAnswer(instructions=_MUST_SURVIVE)))
        if task.host.starts_at_prompt:
            _end_window(place, event)
    size = task.host.measure(event.transcript)
    summary = _redact(event.text[:_MAX_SUMMARY_CHARACTERS]) if event.kind == COMPACTED and is_on else ""
    if not (size or summary):
        # a host may write its transcript after a turn: what is there at the end of the session counts
        run.trouble = "no transcript" if event.transcript and event.kind == ENDED else ""
        return
    item = SpoolItem(
        root=place.root,
        user=place.user,
        host=event.host,
        event=event.kind,
        session=event.session,
        transcript=os.path.abspath(event.transcript) if size else "",
        folder=event.folder,
        size=size,
        at=time.time(),
        is_skipped=not is_on,
        summary=summary,
    )
    add_item(place, item)
    run.source = "spool"


def _redact(text: str) -> str:
    """Return a host's summary without its secrets, which no file may hold. Its marks equal those of no root."""
    from ricordo.guard import Redactor

    return Redactor(os.urandom(32)).clean(text)


def _is_trivial(text: str) -> bool:
    """Return whether a prompt is empty, or a command to the host."""
    stripped = text.strip()
    return not stripped or stripped.startswith(_COMMAND_SIGNS)


def _end_window(place: Place, event: HookEvent) -> None:
    """Note that the window of a session begins anew, so that the next prompt brings what a session starts with."""
    with suppress(OSError):
        given = read_session(place, event.host, event.session)
        write_session(place, given._replace(at=time.time(), has_preamble=False, tokens=0, memories=()))


def _read_payload(run: _Run) -> object:
    """Return the JSON of the host, read to its end so that the host can write all of it; None if it is none."""
    if os.isatty(0):
        return None
    chunks: list[bytes] = []
    size = 0
    while chunk := os.read(0, _CHUNK):
        size += len(chunk)
        if size <= _MAX_INPUT_BYTES:
            chunks.append(chunk)
    if size > _MAX_INPUT_BYTES:
        run.trouble = "more input than a hook reads"
        return None
    try:
        return json.loads(b"".join(chunks))
    except (ValueError, RecursionError):
        run.trouble = "input that is no JSON"
        return None


def _print(text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(1, data) :]


def _limit_time(run: _Run) -> None:
    """End the process after some seconds, wherever it is: a host never waits for a slow disk."""
    if not hasattr(signal, "setitimer"):
        return

    def end(*_: object) -> None:
        # writing the log can wait for the same disk
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        run.trouble = "not done in time"
        run.finish()

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, _MAX_SECONDS)
