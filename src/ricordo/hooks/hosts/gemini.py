"""Gemini CLI: its events, the fields of its JSON, and the form of its answers, which has to be JSON and nothing else.

Two of its events are not used. What is given at SessionStart is gone after a resume, as is the first prompt where there
is no terminal, so a session starts at its first prompt. PreCompress is reported before each turn, summed up or not.
"""

from ricordo.hooks.contract import ENDED, PROMPT, STOPPED, Host
from ricordo.hooks.hosts.claude_code import COMMON_FIELDS, format_json_answer

__all__ = ["HOST"]


_CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"


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
)
"""Gemini CLI."""
