"""Claude Code: its events, the fields of its JSON, and the form of its answers."""

import json

from ricordo.hooks.contract import (
    COMPACTED,
    COMPACTING,
    ENDED,
    PROMPT,
    STARTED,
    STOPPED,
    SUB_AGENT_STOPPED,
    HookAnswer,
    HookEvent,
    Host,
)

__all__ = ["COMMON_FIELDS", "HOST", "format_json_answer"]


COMMON_FIELDS = {
    "session": ("session_id",),
    "transcript": ("transcript_path",),
    "folder": ("cwd",),
    "source": ("source", "trigger", "reason"),
    "text": ("prompt", "compact_summary"),
    "agent": ("agent_id",),
}
"""The keys of Claude Code's JSON, which other hosts took over."""


def format_json_answer(event: HookEvent, answer: HookAnswer) -> str:
    """Return an answer as the JSON object that Claude Code reads; empty for none."""
    printed: dict[str, object] = {}
    if answer.notice:
        printed["systemMessage"] = answer.notice
    if answer.context and event.kind in {STARTED, PROMPT}:
        printed["hookSpecificOutput"] = {"hookEventName": event.name, "additionalContext": answer.context}
    return json.dumps(printed, ensure_ascii=True) if printed else ""


def _format_answer(event: HookEvent, answer: HookAnswer) -> str:
    """Return the text for the summariser as it is, since Claude Code adds all that this hook prints to its prompt."""
    return answer.instructions if event.kind == COMPACTING else format_json_answer(event, answer)


HOST = Host(
    name="claude-code",
    title="Claude Code",
    events={
        "SessionStart": STARTED,
        "UserPromptSubmit": PROMPT,
        "PreCompact": COMPACTING,
        "PostCompact": COMPACTED,
        "Stop": STOPPED,
        "SubagentStop": SUB_AGENT_STOPPED,
        "SessionEnd": ENDED,
    },
    fields=COMMON_FIELDS,
    format_answer=_format_answer,
    transcript_format="claude-code",
    closing=frozenset({COMPACTED, ENDED}),
)
"""Claude Code."""
