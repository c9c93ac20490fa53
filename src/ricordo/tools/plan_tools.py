"""plan_enter, plan_read, plan_write and plan_exit: how an agent plans before it acts."""

from typing import Annotated

from ricordo.tools.contract import Tool, ToolContext
from ricordo.tools.function import tool
from ricordo.tools.planning import PlanOutcome, PlanMode

__all__ = ["plan_tools"]


def plan_tools(planning: PlanMode) -> tuple[Tool, ...]:
    """Return the four tools over the plan of one session."""
    return (_enter_tool(planning), _read_tool(planning), _write_tool(planning), _exit_tool(planning))


def _enter_tool(planning: PlanMode) -> Tool:
    async def plan_enter(
        title: Annotated[str, "what the plan is about; left out, the plan in force is gone on with"] = "",
    ) -> str:
        """Begin to plan: until plan_exit you can read and plan, but change nothing else.

        Use it before work of many steps or of great effect.
        """
        plan = await planning.enter(title, by="agent")
        return (
            f"Plan mode is on, and the plan is /{plan.path}. Look around with what only reads, write the plan with"
            " plan_write, and end with plan_exit."
        )

    return tool(plan_enter, effect="organizes")


def _read_tool(planning: PlanMode) -> Tool:
    async def plan_read(
        offset: Annotated[int, "the first line to show, from 1"] = 1,
        character: Annotated[int, "where in the first line to begin, from 0, for lines too long for one page"] = 0,
    ) -> str:
        """Read the plan, page by page. What a person changed in it has to be read before it can be written again."""
        return await planning.page(offset, character)

    return tool(plan_read, effect="reads")


def _write_tool(planning: PlanMode) -> Tool:
    async def plan_write(context: ToolContext, content: Annotated[str, "the whole plan, as Markdown"]) -> str:
        """Write the plan, in the place of all that stands in its file. A person may be asked first."""
        return await planning.write(content, approved=context.approved)

    return tool(plan_write, effect="organizes")


def _exit_tool(planning: PlanMode) -> Tool:
    async def plan_exit(
        context: ToolContext,
        outcome: Annotated[
            PlanOutcome, "ready: the plan is to be carried out; dropped: it is given up; done: it has been carried out"
        ] = "ready",
    ) -> str:
        """End plan mode, or a plan in force. A person may be asked first."""
        was = planning.plan
        left = await planning.exit(outcome, by="agent", approved=context.approved)
        if left.path:
            return f"Plan mode is off, and the plan /{left.path} is in force: carry it out."
        ended = "Plan mode is off" if was.active else "The plan is over"
        return f"{ended}; no plan stands any more{f', its file stays as /{was.path}' if was.path else ''}."

    return tool(plan_exit, effect="organizes")
