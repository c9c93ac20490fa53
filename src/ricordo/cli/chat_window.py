"""What the next request of a chat is made of, and making it smaller, told in lines."""

from typing import TYPE_CHECKING

from ricordo.cli.render import counted, shown

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent

__all__ = ["clear", "compact", "context"]


async def context(agent: "HarnessAgent") -> list[str]:
    """Tell the tokens of the next request by part, and what waits in the inbox."""
    report = await agent.get_context_usage()
    waiting = await agent.settle(seconds=0)
    parts = report.estimate
    rows = [
        ("system", parts.system, ""),
        ("memory", parts.memory, ""),
        ("tools", parts.tools, ""),
        ("messages", parts.messages, f"in {counted(report.messages, 'message')}"),
        ("together", report.tokens, _share(report.tokens, report.limit)),
    ]
    return [
        f"session {shown(report.session)}, model {shown(report.model)}",
        *(f"  {name:<9} {count:>9,} tokens  {text}".rstrip() for name, count, text in rows),
        f"  inbox     {waiting:>9,} {'job waits' if waiting == 1 else 'jobs wait'}",
    ]


async def compact(agent: "HarnessAgent") -> list[str]:
    """Make the window smaller, and tell its size before and after, and what each reduction did."""
    before = await agent.get_context_usage()
    reports = await agent.compact()
    after = await agent.get_context_usage()
    told = [f"  {each.act}: {each.reason or each.status}" for each in reports if each.status == "failed" or each.note]
    return [
        f"{before.tokens:,} tokens in {counted(before.messages, 'message')} before, "
        f"{after.tokens:,} in {after.messages:,} after",
        *map(shown, told),
    ]


async def clear(agent: "HarnessAgent") -> list[str]:
    """Begin with an empty window."""
    await agent.clear()
    return [f"The window is empty. What was said is kept: /session show {shown(agent.session)}"]


def _share(tokens: int, limit: int | None) -> str:
    return f"of {limit:,} ({100 * tokens / limit:.1f} %)" if limit else "of a window that is not known"
