"""Agents with every reduction on that decide things, turn after turn, and what a model sums up and learns from them."""

import json
import re
from pathlib import Path

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from ricordo import CompactionConfig, HarnessAgent, ToolResultEvictionConfig, TruncateArgsConfig
from ricordo.agent import tool
from ricordo.context import ClearResultsConfig, DedupeReadsConfig
from ricordo.models import ChatModel
from ricordo.testing import RecordedRequest, Say

__all__ = ["BODY", "NOTED", "compacting", "decided", "learned", "look_up", "summed_up"]

BODY = "## SESSION INTENT\n- Build it.\n## SUMMARY\n- It goes on.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
NOTED = "Noted. " + "Hm, let me think about that for another moment, please. " * 12
_LIBRARIES = ("Alembic", "Bottle", "Celery", "Django", "Eliot", "Flask", "Gunicorn", "Hypercorn", "Invoke", "Jinja")
_DECISIONS = re.compile(r"We decided to use (\w+) for module (\d+)\.")


def decided(number: int) -> str:
    """Return what a person says of module `number`."""
    return f"We decided to use {_LIBRARIES[number % 10]} for module {number}."


def learned(text: str, count: int) -> list[int]:
    """Return how often each of the first `count` modules is named in `text`."""
    found = re.findall(r"module (\d+)", text)
    return [found.count(str(number)) for number in range(count)]


def summed_up(request: RecordedRequest, summary: str = BODY) -> Say:
    """Return a summary, and a lesson for each decision that is shown where lessons are asked for."""
    if request.schema is None:
        return Say(summary)
    found = _DECISIONS.findall("\n".join(message.text for message in request.messages))
    lessons = [
        {
            "content": f"Lesson: module {number} is built with {library}.",
            "kind": "decision",
            "quote": f"We decided to use {library} for module {number}.",
            "message": "",
        }
        for library, number in dict.fromkeys(found)
    ]
    return Say(json.dumps({"summary": summary, "lessons": lessons}))


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    return f"{topic}\n" + "a line of what the tool found\n" * 400


def compacting(model: ChatModel, root: Path, **options: object) -> HarnessAgent:
    """Return an agent whose window is summed up from its sixth turn on."""
    given = {
        "session": "s",
        "tools": [look_up],
        "compaction": CompactionConfig(trigger_messages=10, keep_messages=2),
        "tool_result_eviction": ToolResultEvictionConfig(max_result_chars=4_000, preview_chars=1_500),
        "clear_results": ClearResultsConfig(),
        "dedupe_reads": DedupeReadsConfig(),
        "truncate_args": TruncateArgsConfig(),
        "memory_tools": False,
        "settings": settings(root),
    } | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))
