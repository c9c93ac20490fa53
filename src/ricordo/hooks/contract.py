"""The values that hosts, hooks and the process that answers them exchange."""

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "COMPACTED",
    "COMPACTING",
    "ENDED",
    "PROMPT",
    "STARTED",
    "STOPPED",
    "SUB_AGENT_STOPPED",
    "HookAnswer",
    "HookEvent",
    "Host",
    "measure_file",
]


STARTED = "session-start"
"""A session starts, is resumed, is cleared or was compacted."""
PROMPT = "prompt"
"""The user has sent a prompt, which the model has not seen yet."""
COMPACTING = "pre-compact"
"""The host is about to sum up the conversation."""
COMPACTED = "post-compact"
"""The host has summed up the conversation."""
STOPPED = "stop"
"""The model has ended its turn."""
SUB_AGENT_STOPPED = "sub-agent-stop"
"""A sub-agent has ended its work."""
ENDED = "session-end"
"""The session has ended."""


class HookEvent(NamedTuple):
    """What a host reports about one of its sessions; a field that it does not send is empty.

    `kind` is one of the constants above, `name` the host's own name of the event. `session` is the host's id of the
    session, `transcript` names its transcript, mostly by a path, `folder` its working directory. `source` says how a
    session started (startup, resume, clear, compact or fork), or who asked for a compaction (manual or auto). `text` is
    the prompt of the user, or the summary that the host wrote. `agent` is the id of a sub-agent.
    """

    kind: str
    host: str
    name: str
    session: str = ""
    transcript: str = ""
    folder: str = ""
    source: str = ""
    text: str = ""
    agent: str = ""


class HookAnswer(NamedTuple):
    """The answer to a host; all fields are empty for no answer.

    `context` is for the model, `instructions` are for the summariser of the host, `notice` is one line for the person.
    `entries` are the ids of the memories in `context`.
    """

    context: str = ""
    instructions: str = ""
    notice: str = ""
    entries: tuple[str, ...] = ()


def measure_file(path: str) -> int:
    """Return how many bytes a transcript has, 0 for one that is not there."""
    try:
        return os.stat(path).st_size if path else 0
    except (OSError, ValueError):
        return 0


def _keep_text(text: str) -> str:
    return text


def _find_no_compaction(transcript: str) -> str:
    del transcript
    return ""


class Host(NamedTuple):
    """A host as data: a further one is a further value in a file of its own, and one line of the registry.

    `name` is its name on the command line, `title` its name for people, `events` the kind of each event by the host's
    name of it. `fields` says for each field of `HookEvent` in which keys of the host's JSON it stands; the first key
    with a text in it counts. `format_answer` returns what the hook prints for an answer that is not empty, given the
    event; an empty text prints nothing. `transcript_format` is the format of its transcripts. After an event of a kind
    in `closing` a session may be over, so that it is time to learn from it.

    `measure` returns how far a transcript goes, a number that grows with it, 0 for none; `clean_text` takes out of a
    prompt what the host put in front of it. With `starts_at_prompt` the host has no event for the start of a session:
    the first prompt, and the first one after a compaction, gets what a session starts with. `find_compaction` returns
    the name of the last compaction that a transcript tells of, empty for none; it is asked where no event tells it.
    """

    name: str
    title: str
    events: "Mapping[str, str]"
    fields: "Mapping[str, tuple[str, ...]]"
    format_answer: "Callable[[HookEvent, HookAnswer], str]"
    transcript_format: str
    closing: frozenset[str]
    measure: "Callable[[str], int]" = measure_file
    clean_text: "Callable[[str], str]" = _keep_text
    starts_at_prompt: bool = False
    find_compaction: "Callable[[str], str]" = _find_no_compaction
