"""Cursor: its event at the start of a session. Its other events take no memory, and its transcripts are its own."""

import json

from ricordo.hooks.contract import STARTED, HookAnswer, HookEvent, Host

__all__ = ["HOST"]


def _format_answer(event: HookEvent, answer: HookAnswer) -> str:
    del event
    return json.dumps({"additional_context": answer.context}, ensure_ascii=True) if answer.context else ""


HOST = Host(
    name="cursor",
    title="Cursor",
    events={"sessionStart": STARTED},
    fields={"session": ("conversation_id", "session_id"), "folder": ("workspace_roots",)},
    format_answer=_format_answer,
    transcript_format="",
    closing=frozenset(),
)
"""Cursor."""
