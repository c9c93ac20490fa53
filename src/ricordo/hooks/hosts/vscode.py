"""The agents of VS Code: their events, the fields of their JSON, and the form of their answers.

They took over the JSON of Claude Code; some versions write its keys in camel case.
"""

from ricordo.hooks.contract import COMPACTING, PROMPT, STARTED, STOPPED, SUB_AGENT_STOPPED, Host
from ricordo.hooks.hosts.claude_code import COMMON_FIELDS, format_json_answer

__all__ = ["HOST"]


HOST = Host(
    name="vscode",
    title="VS Code",
    events={
        "SessionStart": STARTED,
        "UserPromptSubmit": PROMPT,
        "PreCompact": COMPACTING,
        "Stop": STOPPED,
        "SubagentStop": SUB_AGENT_STOPPED,
    },
    fields={
        **COMMON_FIELDS,
        "session": ("session_id", "sessionId"),
        "transcript": ("transcript_path", "transcriptPath"),
    },
    format_answer=format_json_answer,
    transcript_format="copilot",
    closing=frozenset({STOPPED}),
)
"""The agents of VS Code."""
