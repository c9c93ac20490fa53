"""opencode: what its plugin of Ricordo reports, and the form of the answers.

opencode keeps its sessions in a database, so a transcript is named `PATH#SESSION`, and how far it goes is a time in
milliseconds.
"""

import os
import time

from ricordo.hooks.contract import COMPACTING, PROMPT, STOPPED, HookAnswer, HookEvent, Host
from ricordo.hooks.hosts.claude_code import COMMON_FIELDS, format_json_answer

__all__ = ["HOST"]


def _measure(transcript: str) -> int:
    return int(time.time() * 1_000) if os.path.isfile(transcript.rpartition("#")[0]) else 0


def _format_answer(event: HookEvent, answer: HookAnswer) -> str:
    """Return the text for the summariser as it is, which the plugin adds to its prompt."""
    return answer.instructions if event.kind == COMPACTING else format_json_answer(event, answer)


HOST = Host(
    name="opencode",
    title="opencode",
    events={"chat.message": PROMPT, "session.compacting": COMPACTING, "session.idle": STOPPED},
    fields=COMMON_FIELDS,
    format_answer=_format_answer,
    transcript_format="opencode",
    closing=frozenset({STOPPED}),
    measure=_measure,
    starts_at_prompt=True,
)
"""opencode."""
