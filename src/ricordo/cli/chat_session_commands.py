"""The slash commands for the state of a session, and for a store other than the root's own.

The state is tasks, plan, todos and permission rules. What a store can't list is shown as the prompt has it, so an empty
answer means an empty store.

Invariant: what a person allows for a session matches exactly the call that was shown, and nothing wider.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from ricordo.cli.chat_input import SlashCommand, cli_arguments
from ricordo.cli.render import bold, dim, escape, format_age, pluralize, wrap
from ricordo.cli.target import Target
from ricordo.cli.task_output import (
    NO_TASKS_MESSAGE,
    format_task,
    format_task_table,
    format_unreadable,
    sort_active_first,
)
from ricordo.errors import EntryNotFound, InvalidInput, StorageError, ToolFailed, Unsupported
from ricordo.stores import Forgets, Lists
from ricordo.stores.contract import build_preamble
from ricordo.stores.erase import remaining

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ricordo.agent import HarnessAgent
    from ricordo.agent.tools import Approval
    from ricordo.agent.tools.plan_mode import PlanMode
    from ricordo.guard.permissions import PermissionRule
    from ricordo.jobs.tasks import Task
    from ricordo.workspace.entry import Entry

__all__ = [
    "NO_UNDO_MESSAGE",
    "STATE_COMMANDS",
    "format_ended_tasks",
    "format_stopped_tasks",
    "has_session_state",
    "load_store_entries",
    "permanent_rule",
    "run_memory_command",
    "run_state_command",
    "starts_session",
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
    """Return whether a command changes the work state, so that a session may begin with it."""
    return slash.name in {"permissions", "plan"} and slash.arguments.partition(" ")[0] in {"allow", "ask", "deny", "on"}


async def run_state_command(
    agent: "HarnessAgent", slash: SlashCommand, target: Target, *, has_model: bool
) -> list[str]:
    """Run one of `STATE_COMMANDS` and return its output. Raises `RicordoError`."""
    act, _, rest = slash.arguments.partition(" ")
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


def permanent_rule(approval: "Approval", rules: "Sequence[PermissionRule]") -> str:
    """Return the pattern that allows exactly this call from now on.

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

    target = approval.target
    # a question that a rule asks is not answered by a permission, and a star stands for anything
    if (
        approval.tool not in _EXACT_RULE_TOOLS
        or approval.action == "call"
        or not target.strip()
        or "*" in target
        or has_secret(target)
    ):
        return ""
    pattern = ToolPattern(tool=approval.tool, argument=target)
    text = render_pattern(pattern)
    rule = PermissionRule(decision="allow", pattern=pattern)
    decides = decide([*rules, rule], PermissionQuery(tool=approval.tool, argument=target, texts=(target,)))
    try:
        is_exact = parse_pattern(text) == pattern and len(text) <= _MAX_RULE_CHARS
    except InvalidSetting:
        return ""
    return text if is_exact and decides is not None and decides.decision == "allow" else ""


def has_session_state(agent: "HarnessAgent") -> bool:
    """Return whether the session has a plan, todos, tasks or rules, so that it is worth resuming."""
    from ricordo.workspace.agent_state import WorkState

    return agent.state.work_state != WorkState()


def format_ended_tasks(tasks: "Sequence[Task]") -> str:
    """Say that these tasks have ended since the last line was typed."""
    from ricordo.agent.tools.tasks import short_id

    descriptions = [f"task {short_id(task)} ({' '.join(task.title.split())[:60]}) {task.state}" for task in tasks]
    return (
        f"· {escape(', '.join(descriptions))}: /tasks {escape(short_id(tasks[0])) if len(tasks) == 1 else ''}".rstrip()
    )


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

    from ricordo.jobs.tasks import list_tasks
    from ricordo.runtime.workspace import root_files

    unreadable_paths: list[str] = []
    try:
        tasks = await agent.tasks.all()
    except StorageError:
        listing = await list_tasks(root_files(target.user_folder), now=datetime.now(UTC))
        tasks = tuple(task for task in listing.tasks if task.session in {"", agent.session})
        unreadable_paths = [target.display_path(path) for path in listing.unreadable]
    if not tasks and not unreadable_paths:
        return [wrap(NO_TASKS_MESSAGE)]
    return [*format_task_table(sort_active_first(tasks)), *format_unreadable(unreadable_paths)]


async def _cancel_task(agent: "HarnessAgent", task_id: str) -> list[str]:
    from ricordo.agent.tools.tasks import short_id

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
        hint = "; /plan done ends the plan in force" if planning.plan.path else ""
        raise InvalidInput(f"Plan mode is not on{hint}.")
    try:
        await planning.exit("ready", by="user")
    except ToolFailed:
        await planning.exit("dropped", by="user")


async def _drop_plan(planning: "PlanMode", target: Target) -> list[str]:
    """Give the plan up, whether it is still made or in force, and say where its file is."""
    from ricordo.workspace.layout import WORKSPACE

    path = planning.plan.path
    await planning.exit("dropped", by="user")
    file_note = f"; its file stays: {escape(target.display_path(f'{WORKSPACE}/{path}'))}" if path else ""
    return [f"The plan is dropped, and plan mode is off{file_note}"]


async def _format_plan(planning: "PlanMode", target: Target) -> list[str]:
    """Return the lines about plan mode and the plan."""
    from ricordo.workspace.layout import WORKSPACE

    plan = planning.plan
    if not plan.path:
        return ["Plan mode is on." if plan.active else "Plan mode is off, and there is no plan."]
    file = escape(target.display_path(f"{WORKSPACE}/{plan.path}"))
    starter = "you" if plan.author == "user" else "the agent"
    head = f"Plan mode is on, begun by {starter}" if plan.active else "Plan mode is off, and a plan is in force"
    text = await planning.text(as_shown=False)
    lines = ["  The file is missing."] if text is None else [wrap(text.rstrip(), "  ")]
    return [f"{head}: {bold(file)}", *lines]


def _format_todos(agent: "HarnessAgent") -> list[str]:
    todos = agent.todos
    completed = sum(todo.status == "completed" for todo in todos)
    if not todos:
        return ["There are no todos: the agent writes them when it has several steps to do."]
    lines = [wrap(todo.content, "      ", first=f"  {_TODO_BOXES[todo.status]} ") for todo in todos]
    return [f"{completed:,} of {pluralize(len(todos), 'todo')} done", *lines]


async def _permissions_command(agent: "HarnessAgent", act: str, pattern: str) -> list[str]:
    """Tell the rules, or change one."""
    from ricordo.guard.permissions import render_rule

    permissions = agent.permissions
    if not act and not pattern:
        return await _list_rules(agent)
    changes = {"allow": permissions.allow, "deny": permissions.deny, "ask": permissions.ask}
    if not pattern or act not in {*changes, "remove"}:
        raise InvalidInput(f"{_PERMISSIONS_USAGE}; not {escape(f'{act} {pattern}'.rstrip())}.")
    if act != "remove":
        before = permissions.rules
        new_rule = await changes[act](pattern)
        replaced = [rule for rule in before if rule.pattern == new_rule.pattern and rule.decision != new_rule.decision]
        lines = [f"From now on in this session: {bold(escape(render_rule(new_rule)))}"]
        return lines + [f"It takes the place of: {escape(render_rule(rule))}" for rule in replaced]
    if not await permissions.remove(pattern):
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


NO_UNDO_MESSAGE = (
    "This chat remembers in another store, which takes nothing back: /memory forget ID takes a memory out of it. "
    "/undo CHANGE takes back a change of the root."
)
"""What `/undo` says: the newest write of the root is none of this chat's memories."""
_MAX_FOUND = 10
_MAX_MEMORY_CHARS = 300
_ROOT_OPTIONS = frozenset({"--as-of", "--project", "--root", "--user"})
_MEMORY_USAGE = (
    "over this store /memory takes list, show ID, search QUERY or forget ID; "
    "only list takes options, of a store that can list its memories"
)


async def load_store_entries(agent: "HarnessAgent", slash: SlashCommand) -> "Sequence[Entry] | None":
    """Return the entries of the store of `agent` if `slash` lists them; None for another command or store.

    Raises `InvalidInput` for an option that only the root's own memory has, and the errors of the store.
    """
    lister, arguments = agent.store.offers(Lists), cli_arguments(slash) or []
    if lister is None or arguments[:2] != ["memory", "list"]:
        return None
    refused = _ROOT_OPTIONS.intersection(word.partition("=")[0] for word in arguments)
    if refused:
        raise InvalidInput(f"The list of this store takes no {min(refused)}: only the root's own memory does.")
    return await lister.entries()


async def run_memory_command(
    agent: "HarnessAgent", slash: SlashCommand, approve: "Callable[[Approval], Awaitable[bool]] | None"
) -> list[str]:
    """Run `/memory` on the store of `agent` and return its output; `approve` is asked before a memory is forgotten.

    It lists only a store that can't list its entries itself: the command line's own command lists every other one.
    Raises `RicordoError`.
    """
    act, _, rest = slash.arguments.partition(" ")
    match act, rest.strip():
        case (("" | "list"), ""):
            items = (await build_preamble(agent.store)).items
            return [wrap(item.text) for item in items] or ["Nothing is remembered."]
        case "search", query if query:
            hits = await agent.store.recall(query, _MAX_FOUND)
            return [line for hit in hits for line in _format_memory(hit.entry)] or ["Nothing found."]
        case "show", wanted if wanted:
            entry = await _find_memory(agent, wanted)
            return [*_format_memory(entry)[:1], wrap(entry.content, "  ")]
        case "forget", wanted if wanted:
            return [await _forget_memory(agent, wanted, approve)]
    raise InvalidInput(f"{_MEMORY_USAGE}.")


async def _find_memory(agent: "HarnessAgent", requested_id: str) -> "Entry":
    from ricordo.workspace.ledger import resolve_id

    lister = agent.store.offers(Lists)
    if lister is None:
        raise Unsupported("This store can't list its memories, so none can be named.")
    entries = {entry.id: entry for entry in await lister.entries()}
    try:
        with suppress(EntryNotFound):
            return entries[resolve_id([*entries], requested_id)]
        # the store knows whether it was forgotten
        return await lister.get(requested_id)
    except EntryNotFound as error:
        raise EntryNotFound(str(error).replace("`ricordo memory list`", "`/memory list`")) from error


async def _forget_memory(
    agent: "HarnessAgent", requested_id: str, approve: "Callable[[Approval], Awaitable[bool]] | None"
) -> str:
    from ricordo.agent.tools import Approval

    entry, forgetter = await _find_memory(agent, requested_id), agent.store.offers(Forgets)
    if forgetter is None:
        raise Unsupported("This store can't forget.")
    change = f"- {entry.content}\n"
    if approve and not await approve(Approval(tool="forget", action="forget", target=entry.id, change=change)):
        return "Nothing was forgotten."
    try:
        forgotten = await forgetter.forget(entry.id, who="user")
    except EntryNotFound:
        return "It was forgotten already."
    lines = [f"Forgot {escape(forgotten.id)}."]
    for item in await remaining(agent.store, forgotten):
        lines += [wrap(f"Still said, or nearly: {item.text}", "  "), dim(f"    /memory forget {escape(item.id)}")]
    return "\n".join(lines)


def _format_memory(entry: "Entry") -> list[str]:
    tags = "".join(f" #{tag}" for tag in entry.tags)
    source = f"{entry.by} {entry.source.session or ''}".rstrip()
    scope = str(entry.scope) if entry.scope else "-"
    facts = [bold(escape(entry.id)), escape(entry.kind), format_age(entry.time), escape(source), dim(escape(scope))]
    text = (
        entry.content
        if len(entry.content) <= _MAX_MEMORY_CHARS
        else f"{entry.content[: _MAX_MEMORY_CHARS - 1].rstrip()}…"
    )
    return ["  ".join(filter(None, facts)), wrap(f"{text}{tags}", "  ")]
