"""What stands beside the window of a chat, told in lines and changed by a person: tasks, plan, todos, rules.

Invariant: what a person lets through for a session says exactly the call that was shown, and nothing wider.
"""

from typing import TYPE_CHECKING

from ricordo.cli.chat_commands import SlashCommand
from ricordo.cli.context import Target
from ricordo.cli.render import bold, pluralize, escape, wrap
from ricordo.cli.task_lines import (
    NO_TASKS_MESSAGE,
    sort_active_first,
    format_task,
    format_task_table,
    format_unreadable,
)
from ricordo.errors import InvalidInput, StorageError, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.agent import HarnessAgent
    from ricordo.guard.permissions import PermissionRule
    from ricordo.tasks import Task
    from ricordo.tools import Approval
    from ricordo.tools.planning import PlanMode

__all__ = [
    "STATE_COMMANDS",
    "permanent_rule",
    "starts_session",
    "format_ended_tasks",
    "has_session_state",
    "run_state_command",
    "format_stopped_tasks",
]

STATE_COMMANDS = frozenset({"permissions", "plan", "tasks", "todos"})
"""The commands of a chat that `run_state_command` carries out."""

_CANCEL_SECONDS = 5.0
_MAX_RULE_CHARS = 300
_EXACT_RULE_TOOLS = frozenset({"shell", "write_file", "edit_file"})
_TODO_BOXES = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}
_TASKS_USAGE = "/tasks stands alone, or takes the ID of a task, or cancel ID"
_PLAN_USAGE = "/plan stands alone, or takes on [TITLE], off, drop or done"
_PERMISSIONS_USAGE = (
    "/permissions stands alone, or takes allow, deny, ask or remove, and a pattern such as shell(git push*)"
)


def starts_session(slash: SlashCommand) -> bool:
    """Tell whether a command changes what stands, so that it may be the first thing of a session."""
    return slash.name in {"permissions", "plan"} and slash.rest.partition(" ")[0] in {"allow", "ask", "deny", "on"}


async def run_state_command(
    agent: "HarnessAgent", slash: SlashCommand, target: Target, *, has_model: bool
) -> list[str]:
    """Carry out one of `STATE_COMMANDS` and return what is said of it. Raises `RicordoError`."""
    act, _, rest = slash.rest.partition(" ")
    rest = rest.strip()
    match slash.name:
        case "tasks":
            return await _tasks_command(agent, act, rest, target)
        case "plan":
            return await _plan_command(agent, act, rest, target, has_model=has_model)
        case "permissions":
            return await _permissions_command(agent, act, rest)
    if act:
        raise InvalidInput(f"/todos stands alone; not with {escape(act)}.")
    return _format_todos(agent)


def permanent_rule(asked: "Approval", rules: "Sequence[PermissionRule]") -> str:
    """Return the pattern of just the call that is asked about, by which it is let through from now on.

    It is empty where none can be written that says it and no other, or where another of `rules` would decide.
    """
    from ricordo.errors import InvalidSetting
    from ricordo.guard import has_secret
    from ricordo.guard.permissions import (
        PermissionQuery,
        PermissionRule,
        ToolPattern,
        decide,
        parse_pattern,
        render_pattern,
    )

    target = asked.target
    # a question that a rule asks is not answered by a permission, and a star stands for anything
    if (
        asked.tool not in _EXACT_RULE_TOOLS
        or asked.act == "call"
        or not target.strip()
        or "*" in target
        or has_secret(target)
    ):
        return ""
    pattern = ToolPattern(tool=asked.tool, argument=target)
    text = render_pattern(pattern)
    rule = PermissionRule(decision="allow", pattern=pattern)
    decides = decide([*rules, rule], PermissionQuery(tool=asked.tool, argument=target, texts=(target,)))
    try:
        is_exact = parse_pattern(text) == pattern and len(text) <= _MAX_RULE_CHARS
    except InvalidSetting:
        return ""
    return text if is_exact and decides is not None and decides.decision == "allow" else ""


def has_session_state(agent: "HarnessAgent") -> bool:
    """Tell whether anything stands beside the window, so that the session is worth going on with."""
    from ricordo.state import WorkState

    return agent.state.work_state != WorkState()


def format_ended_tasks(tasks: "Sequence[Task]") -> str:
    """Say that these tasks have ended since the last line was typed."""
    from ricordo.tools.task_tools import short_id

    told = [f"task {short_id(task)} ({' '.join(task.title.split())[:60]}) {task.state}" for task in tasks]
    return f"· {escape(', '.join(told))}: /tasks {escape(short_id(tasks[0])) if len(tasks) == 1 else ''}".rstrip()


def format_stopped_tasks(count: int) -> str:
    """Say how many tasks end with the chat."""
    are = "was" if count == 1 else "were"
    return (
        f"{pluralize(count, 'task')} {are} still at work and {are} stopped with the chat: `ricordo tasks` lists them."
    )


async def _tasks_command(agent: "HarnessAgent", act: str, rest: str, target: Target) -> list[str]:
    if not act:
        return await _list_tasks(agent, target)
    if act == "cancel":
        if not rest or " " in rest:
            raise InvalidInput(f"{_TASKS_USAGE}.")
        return await _cancel_task(agent, rest)
    if rest:
        raise InvalidInput(f"{_TASKS_USAGE}; not {escape(act)} {escape(rest)}.")
    return format_task(await agent.tasks.get(act))


async def _list_tasks(agent: "HarnessAgent", target: Target) -> list[str]:
    """Tell the tasks of the session and the dreams of the root; of files that can't be read, that they can't."""
    from datetime import UTC, datetime

    from ricordo.runtime.assembly import root_files
    from ricordo.tasks import list_tasks

    unread: list[str] = []
    try:
        found = await agent.tasks.all()
    except StorageError:
        listed = await list_tasks(root_files(target.user_folder), now=datetime.now(UTC))
        found = tuple(task for task in listed.tasks if task.session in {"", agent.session})
        unread = [target.display_path(path) for path in listed.unreadable]
    if not found and not unread:
        return [wrap(NO_TASKS_MESSAGE)]
    return [*format_task_table(sort_active_first(found)), *format_unreadable(unread)]


async def _cancel_task(agent: "HarnessAgent", task_id: str) -> list[str]:
    from ricordo.tools.task_tools import short_id

    before = await agent.tasks.get(task_id)
    name = f"Task {escape(short_id(before))}"
    if before.has_ended:
        return [f"{name} had ended already: it is {before.state}."]
    after = await agent.tasks.cancel(before.id)
    if not after.has_ended and before.session:
        await agent.tasks.wait(before.id, seconds=_CANCEL_SECONDS)
        after = await agent.tasks.get(before.id)
    if after.state == "cancelled":
        return [f"{name} was cancelled."]
    if after.has_ended:
        return [f"{name} ended before it could be cancelled: it is {after.state}."]
    return [
        f"{name} was asked to stop; the process that runs it has not answered yet: /tasks {escape(short_id(after))}"
    ]


async def _plan_command(agent: "HarnessAgent", act: str, rest: str, target: Target, *, has_model: bool) -> list[str]:
    if act not in {"", "on", "off", "drop", "done"} or (rest and act != "on"):
        raise InvalidInput(f"{_PLAN_USAGE}; not {escape(f'{act} {rest}'.rstrip())}.")
    planning = agent.plan
    if planning is None:
        raise InvalidInput("There is no plan here: nothing of this chat is kept.")
    if act == "on":
        if not has_model:
            raise InvalidInput("Without a model there is nobody to plan: name one with --model.")
        await planning.enter(rest, by="user")
    elif act == "off":
        await _leave_plan_mode(planning)
    elif act == "drop":
        return await _drop_plan(planning, target)
    elif act == "done":
        await planning.exit("done", by="user")
    return await _format_plan(planning, target)


async def _leave_plan_mode(planning: "PlanMode") -> None:
    """End plan mode, with the plan in force where one is written."""
    if not planning.plan.active:
        ends = "; /plan done ends the plan in force" if planning.plan.path else ""
        raise InvalidInput(f"Plan mode is not on{ends}.")
    try:
        await planning.exit("ready", by="user")
    except ToolFailed:
        await planning.exit("dropped", by="user")


async def _drop_plan(planning: "PlanMode", target: Target) -> list[str]:
    """Give the plan up, whether it is still made or in force, and say where its file is."""
    from ricordo.workspace.layout import WORKSPACE

    path = planning.plan.path
    await planning.exit("dropped", by="user")
    stays = f"; its file stays: {escape(target.display_path(f'{WORKSPACE}/{path}'))}" if path else ""
    return [f"The plan is dropped, and plan mode is off{stays}"]


async def _format_plan(planning: "PlanMode", target: Target) -> list[str]:
    """Tell whether the agent plans, and its plan."""
    from ricordo.workspace.layout import WORKSPACE

    plan = planning.plan
    if not plan.path:
        return ["Plan mode is on." if plan.active else "Plan mode is off, and there is no plan."]
    file = escape(target.display_path(f"{WORKSPACE}/{plan.path}"))
    by = "you" if plan.by == "user" else "the agent"
    head = f"Plan mode is on, begun by {by}" if plan.active else "Plan mode is off, and a plan is in force"
    text = await planning.text(told=False)
    told = ["  The file is missing."] if text is None else [wrap(text.rstrip(), "  ")]
    return [f"{head}: {bold(file)}", *told]


def _format_todos(agent: "HarnessAgent") -> list[str]:
    todos = agent.todos
    done = sum(todo.status == "completed" for todo in todos)
    if not todos:
        return ["There are no todos: the agent writes them when it has several steps to do."]
    lines = [wrap(todo.content, "      ", first=f"  {_TODO_BOXES[todo.status]} ") for todo in todos]
    return [f"{done:,} of {pluralize(len(todos), 'todo')} done", *lines]


async def _permissions_command(agent: "HarnessAgent", act: str, pattern: str) -> list[str]:
    """Tell the rules, or change one."""
    from ricordo.guard.permissions import render_rule

    held = agent.permissions
    if not act and not pattern:
        return await _list_rules(agent)
    changes = {"allow": held.allow, "deny": held.deny, "ask": held.ask}
    if not pattern or act not in {*changes, "remove"}:
        raise InvalidInput(f"{_PERMISSIONS_USAGE}; not {escape(f'{act} {pattern}'.rstrip())}.")
    if act != "remove":
        before = held.rules
        made = await changes[act](pattern)
        replaced = [rule for rule in before if rule.pattern == made.pattern and rule.decision != made.decision]
        told = [f"From now on in this session: {bold(escape(render_rule(made)))}"]
        return told + [f"It takes the place of: {escape(render_rule(rule))}" for rule in replaced]
    if not await held.remove(pattern):
        raise InvalidInput(f"This session has no rule {escape(pattern)}: /permissions lists them.")
    return [f"Removed {escape(pattern)}."]


async def _list_rules(agent: "HarnessAgent") -> list[str]:
    from ricordo.guard.permissions import render_rule

    entries = await agent.memory.entries() if agent.memory else ()
    rules = [
        *((render_rule(rule), "of your settings") for rule in agent.permissions.configured_rules),
        *((render_rule(rule), f"of this session{_unused_note(agent, rule)}") for rule in agent.permissions.rules),
        *((entry.rule, f"of the memory {entry.id}") for entry in entries if entry.rule is not None and entry.is_rule),
    ]
    if not rules:
        return [wrap("There are no rules. /permissions deny PATTERN makes one, such as write_file(secret/*).")]
    width = max(len(escape(rule)) for rule, _ in rules)
    return [f"  {escape(rule):<{width}}  {source}" for rule, source in rules]


def _unused_note(agent: "HarnessAgent", rule: "PermissionRule") -> str:
    return "; the agent has no tool of that name" if agent.permissions.names_unknown_tool(rule) else ""
