"""Gemini CLI: its events, the fields of its JSON, and the form of its answers, which has to be JSON and nothing else.

Two of its events are not used. What is given at SessionStart is gone after a resume, as is the first prompt where there
is no terminal, so a session starts at its first prompt. PreCompress is reported before each turn, summed up or not:
the transcript tells it, in which the summary is a message of its own.
"""

import os
import re
from contextlib import suppress

from ricordo.hooks.contract import ENDED, PROMPT, STOPPED, Host
from ricordo.hooks.hosts.claude_code import COMMON_FIELDS, format_json_answer

__all__ = ["HOST"]


_CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"


_MOST_BYTES = 32_000_000
_SUMMARY = (
    rb'"id"\s*:\s*"([^"]{1,80})"[^{}\n]{0,200}"type"\s*:\s*"user"[^{}\n]{0,80}\{\s*"text"\s*:\s*"<state_snapshot>'
)


def _find_compaction(transcript: str) -> str:
    """Return the id of the last message that is a summary."""
    with suppress(OSError, ValueError), open(transcript, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_BYTES))
        found = re.findall(_SUMMARY, file.read(_MOST_BYTES))
        return found[-1].decode("utf-8", "replace") if found else ""
    return ""


def _clean_text(text: str) -> str:
    """Return a prompt without what other hooks gave at the start, which is put before it where there is no terminal."""
    while text.startswith(_CONTEXT) and _CONTEXT_END in text:
        text = text.partition(_CONTEXT_END)[2].lstrip()
    return text


HOST = Host(
    name="gemini",
    title="Gemini CLI",
    events={"BeforeAgent": PROMPT, "AfterAgent": STOPPED, "SessionEnd": ENDED},
    fields=COMMON_FIELDS,
    format_answer=format_json_answer,
    transcript_format="gemini",
    closing=frozenset({STOPPED, ENDED}),
    clean_text=_clean_text,
    starts_at_prompt=True,
    find_compaction=_find_compaction,
)
"""Gemini CLI."""
