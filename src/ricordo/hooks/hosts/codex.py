"""Codex: its events, the fields of its JSON, and the form of its answers, which are those of Claude Code."""

from ricordo.hooks.contract import (
    COMPACTED,
    COMPACTING,
    ENDED,
    PROMPT,
    STARTED,
    STOPPED,
    SUB_AGENT_STOPPED,
    Host,
)
from ricordo.hooks.hosts.claude_code import COMMON_FIELDS, format_json_answer

__all__ = ["HOST"]


HOST = Host(
    name="codex",
    title="Codex",
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
    format_answer=format_json_answer,
    transcript_format="codex",
    closing=frozenset({COMPACTED, STOPPED, ENDED}),
)
"""Codex."""
