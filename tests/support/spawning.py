"""Agents with sub-agents: what the user says names what the model does, and what each of both was asked is kept."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from places import place_of
from ricordo import HarnessAgent, RemoteAgent, SubAgent
from ricordo.agent import tool
from ricordo.guard import parse_fence
from ricordo.messages import Message, get_mark
from ricordo.testing import Call, Calls, RecordedRequest, Say, ScriptedModel, ScriptItem

__all__ = ["LONG", "SUMMARY", "Spawning", "reminded", "result_texts", "said_in", "spawn", "summed_up", "tool_names"]

LONG = "Some more words about it, as people use them. " * 20
SUMMARY = "## SESSION INTENT\n- Talk.\n## SUMMARY\n- Talked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"


@tool
def look_up(size: int) -> str:
    """Look something up."""
    return ("a line of what was found\n" * (size // 25 + 1))[:size]


@dataclass
class Spawning:
    """An agent that does to each thing its user says what `orders` name for it, and else only answers.

    `worker` is the model of the sub-agent `researcher`; `asked` are the requests of its parent, and `shared` those of
    sub-agents that have no model of their own.
    """

    root: Path
    worker: ScriptedModel
    orders: Mapping[str, ScriptItem] = field(default_factory=dict)
    asked: list[RecordedRequest] = field(default_factory=list)
    shared: list[RecordedRequest] = field(default_factory=list)

    def agent(self, *sub_agents: SubAgent | RemoteAgent, recommended: bool = False, **options: object) -> HarnessAgent:
        given = {
            "session": "s",
            "tools": [look_up],
            "sub_agents": sub_agents or [self.researcher()],
            "settings": settings(self.root),
            "scope": SCOPE,
        } | options
        make = HarnessAgent.with_recommended_settings if recommended else HarnessAgent
        return make(self.model, **agent_arguments(workspace=self.root, **given))

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel(self._answer)

    def researcher(self, **options: object) -> SubAgent:
        given = {"name": "researcher", "description": "Looks things up.", "model": self.worker} | options
        return SubAgent(**given)  # type: ignore[arg-type]

    def path(self, folder: str, name: str, *, agent: str = "main") -> Path:
        """Return a file of an agent, by default of the first one."""
        return place_of(self.root) / "workspace" / "agents" / agent / folder / name

    def told(self, text: str) -> list[int]:
        """Return which requests of the parent were reminded of this result, counted from 0."""
        return [at for at, request in enumerate(self.asked) if any(text in each for each in reminded(request))]

    def _answer(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return summed_up(request)
        if "spawn" not in tool_names(request):
            self.shared.append(request)
            return Say("Done by the same model.")
        self.asked.append(request)
        last = said_in(request)[-1]
        if last.role == "user" and last.text in self.orders:
            return self.orders[last.text]
        return Say(f"Reply {len(self.asked)}.")


def summed_up(request: RecordedRequest) -> Say:
    """Return a summary, as JSON where that is asked for."""
    return Say(json.dumps({"summary": SUMMARY, "lessons": []}) if request.schema else SUMMARY)


def spawn(*prompts: str, agent: str = "researcher", **arguments: bool) -> Calls:
    """Return calls that give each prompt to a sub-agent."""
    return Calls(*(Call("spawn", {"prompt": prompt, "agent": agent, **arguments}) for prompt in prompts))


def said_in(request: RecordedRequest) -> list[Message]:
    """Return the messages of a request that somebody said."""
    return [each for each in request.messages if each.role != "system" and get_mark(each) is None]


def reminded(request: RecordedRequest) -> tuple[str, ...]:
    """Return what a request was reminded of, item by item."""
    last = request.messages[-1]
    return (parse_fence(last.text) or ()) if get_mark(last) == "reminder" else ()


def result_texts(request: RecordedRequest) -> list[str]:
    return [result.text for message in request.messages for result in message.tool_results]


def tool_names(request: RecordedRequest) -> set[str]:
    return {each.name for each in request.tools}
