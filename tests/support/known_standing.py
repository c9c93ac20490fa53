"""What has to stand beside a window, as plain values that a test changes itself, and what a reminder says of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ricordo.messages import Message, ToolCall

__all__ = ["Job", "KnownStanding", "holds_plan", "in_short"]

_UNKNOWN = object()
_BOXES = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


@dataclass(kw_only=True)
class Job:
    """A background task, known by its title; `keys` are what was told of it: `ended` or `orphaned`."""

    title: str
    type: str
    born: datetime
    state: str = "running"
    result: str = ""
    error: str = ""
    ended: datetime | None = None
    asked: bool = False
    is_ours: bool = True
    id: str = ""
    keys: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.state == "running"

    @property
    def news(self) -> str:
        """What there is to tell; empty when it was told, or while there is nothing."""
        key = "" if self.is_open else "orphaned" if self.state == "orphaned" else "ended"
        return "" if key in self.keys else key

    def end(self, state: str, at: datetime, *, result: str = "", error: str = "") -> None:
        """Let it end, unless it has."""
        if self.state in {"running", "orphaned"}:
            self.state, self.result, self.error = state, result, error
            self.ended = None if state == "orphaned" else at


@dataclass(kw_only=True)
class KnownStanding:
    """What stands; `files` are the plans by path, and None where one was removed, `rules` are (decision, pattern, why).

    `shown` is what the agent of now was shown of each plan.
    """

    active: bool = False
    path: str = ""
    by: str = "agent"
    approved: bool = False
    files: dict[str, str | None] = field(default_factory=dict)
    todos: list[tuple[str, str]] = field(default_factory=list)
    rules: list[tuple[str, str, str]] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    shown: dict[str, str | None] = field(default_factory=dict)

    @property
    def plan(self) -> str | None:
        """The text of the plan; None where there is none."""
        return self.files.get(self.path)

    @property
    def delivered(self) -> list[str]:
        """What was told, as the state names it, sorted."""
        return sorted(f"{job.id}:orphaned" if key == "orphaned" else job.id for job in self.jobs for key in job.keys)

    def enter(self, new: str, by: str) -> None:
        """Begin to plan; `new` is the path of the plan that a title begins, or of the one that it names."""
        path = self.path if self.path and (self.active or not new) else new
        if self.files.get(path) is None:
            self.files[path] = self.shown[path] = "# Plan\n"
        self.approved = path == self.path and (self.approved or (not self.active and self.by == "user"))
        self.by = "user" if by == "user" or (self.active and self.by == "user") else "agent"
        self.active, self.path = True, path

    def write(self, text: str, *, allowed: bool) -> None:
        """Write over the plan what the agent makes of it, if it was shown what is there.

        It has to be `allowed` where a person let the plan come into force.
        """
        allowed = allowed or self.active or not (self.approved or self.by == "user")
        if self.path and allowed and self.shown.get(self.path, _UNKNOWN) == self.plan:
            self.files[self.path] = text
        if self.path:
            self.shown[self.path] = self.plan

    def exit(self, outcome: str, *, allowed: bool) -> bool:
        """End planning where it can end so, and `allowed` where a person has a say; tell whether it did."""
        bare = not self.plan or len(self.plan.strip().splitlines()) < 2
        fits = {
            "ready": self.active and not bare,
            "dropped": self.active or bool(self.path),
            "done": bool(self.path) and not self.active,
        }[outcome]
        has_say = outcome == "ready" or (self.active and self.by == "user")
        if not fits or (has_say and not allowed):
            return False
        self.active, self.approved = False, outcome == "ready"
        if outcome != "ready":
            self.path, self.by = "", "agent"
        return True

    def rule(self, decision: str, pattern: str, why: str = "") -> None:
        """Put a rule in the place of what was decided for its pattern; `remove` takes that away."""
        self.rules = [each for each in self.rules if each[1] != pattern]
        if decision != "remove":
            self.rules.append((decision, pattern, why))

    def decides(self, call: str, tool: str, *, approved: bool) -> bool:
        """Tell whether a call that acts is let through; `call` is its whole pattern."""
        meant = {
            decision
            for decision, pattern, _ in self.rules
            if pattern in (tool, call) or (pattern.endswith("*)") and call.startswith(pattern[:-2]))
        }
        if self.active or "deny" in meant:
            return False
        return approved or "ask" not in meant

    def waiting(self) -> list[Job]:
        """The jobs of which there is something to tell, in its order."""
        found = [(job.ended or job.born, job.born, at, job) for at, job in enumerate(self.jobs) if job.news]
        return [job for *_, job in sorted(found, key=lambda row: row[:3])]

    def show(self) -> None:
        """Count the plan as shown, which every reminder does where it can be read."""
        if self.plan is not None:
            self.shown[self.path] = self.plan

    def reminded(self, *, held: bool) -> list[str]:
        """Return what a reminder says, in short; `held` tells that the window has the plan."""
        items = []
        if self.active:
            items.append(f"planning /{self.path}")
        elif self.path:
            items.append(f"in force /{self.path}")
        if self.path and self.plan is None:
            items.append(f"/{self.path} is missing or can't be read." + " Write it with plan_write." * self.active)
        if self.plan and not held:
            items.append(self.plan)
        if self.todos:
            done = sum(status == "completed" for _, status in self.todos)
            lines = [f"{_BOXES[status]} {content}" for content, status in self.todos]
            items.append("\n".join([f"{done} of {len(self.todos)} done:", *lines]))
        going = [job for job in self.jobs if job.is_open]
        if going:
            lines = [f"{job.type} {job.title}: {'cancelling' if job.asked else 'running'}" for job in going]
            items.append("tasks\n" + "\n".join(lines))
        items += [job.result or job.error for job in self.waiting()]
        strict = [rule for decision in ("deny", "ask") for rule in self.rules if rule[0] == decision]
        if strict:
            items.append("\n".join(f"{rule} {pattern}{why and f': {why}'}" for rule, pattern, why in strict))
        return items


def in_short(item: str) -> str:
    """Return an item of a reminder without the words that are always the same, and without the ids of tasks."""
    if item.startswith("You are planning."):
        return "planning " + item.split("The plan is the file ")[1].split(":", maxsplit=1)[0]
    if item.startswith("The plan /"):
        return "in force " + item.split()[2]
    lines = item.splitlines()
    if all(line[8:9] == " " and "_" in line.split()[1] for line in lines):
        return "tasks\n" + "\n".join(line[9:] for line in lines)
    return item


def holds_plan(messages: Sequence[Message], plan: str | None) -> bool:
    """Tell whether the last plan that was written in a request is this one, and was taken."""
    calls = [part for each in messages for part in each.parts if isinstance(part, ToolCall)]
    written = [call for call in calls if call.name == "plan_write"]
    if not written or json.loads(written[-1].arguments).get("content") != plan:
        return False
    results = [result for each in messages for result in each.tool_results if result.call_id == written[-1].id]
    return any(not result.is_error for result in results)
