"""The window of a session, told in lines: what fills it, making it smaller, what that took away, and bringing it back.

Invariant: a chat and the command line say it in the same words.
"""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ricordo.cli.chat_commands import Slash
from ricordo.cli.picture import change_lines, usage_lines
from ricordo.cli.render import counted, shown
from ricordo.errors import InvalidInput, MessageNotFound

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.harness.journal import Compaction
    from ricordo.messages import Message
    from ricordo.runtime.session import Compacted
    from ricordo.runtime.usage import ContextReport

__all__ = ["WINDOW_COMMANDS", "compacted_lines", "expanded_lines", "listed_lines", "obeyed", "undone_lines"]

WINDOW_COMMANDS = frozenset({"clear", "compact", "context", "expand", "pin", "unpin"})
"""The commands of a chat that `obeyed` carries out."""

_SHOWN = 80


async def obeyed(agent: "HarnessAgent", slash: Slash) -> list[str]:
    """Carry out one of `WINDOW_COMMANDS` and return what is said of it. Raises `RicordoError`."""
    match slash.name:
        case "context":
            return await _context(agent)
        case "compact":
            return await _compact(agent, slash.rest)
        case "expand":
            if not slash.rest:
                raise InvalidInput("/expand needs a handle: /compact --list shows them.")
            return expanded_lines(await agent.compactions.expand(slash.rest))
        case "pin" | "unpin":
            return await _pin(agent, slash.rest, on=slash.name == "pin")
    await agent.clear()
    return [f"The window is empty. What was said is kept: /session show {shown(agent.session)}"]


def compacted_lines(done: "Compacted", *, dry_run: bool) -> list[str]:
    """Tell a window's size by section before and after, and what each reduction did."""
    said = [
        f"  {each.act}: {each.reason or each.status}{f' ({each.note})' if each.note else ''}"
        for each in done
        if each.status == "failed" or each.note
    ]
    handles = [each.handle for each in done if each.handle and each.status == "done"]
    if dry_run:
        handles, said = [], [*said, "  This was a dry run: the window is as it was."]
    return [
        *change_lines(done.before, done.after),
        *map(shown, said),
        *(f"  `expand {each}` opens what went, `compact --undo` brings it back." for each in handles),
    ]


def listed_lines(found: Sequence["Compaction"]) -> list[str]:
    """Tell the compactions on record, newest first."""
    if not found:
        return ["No compaction is on record."]
    return [
        f"{each.handle}  {each.at.astimezone():%Y-%m-%d %H:%M}  {each.act}: {counted(each.messages, 'message')}, "
        f"{each.tokens_before:,} tokens before, {each.tokens_after:,} after ({shown(each.reason)})"
        f"{'  (undone)' if each.undone else ''}"
        for each in found
    ]


def undone_lines(made: "Compaction", before: "ContextReport", after: "ContextReport") -> list[str]:
    """Tell that the window is as it was before a compaction."""
    return [
        f"Took back {made.handle}: {counted(made.messages, 'message')} are in the window again.",
        f"{before.tokens:,} tokens in {counted(before.messages, 'message')} before, "
        f"{after.tokens:,} in {after.messages:,} after",
    ]


def expanded_lines(messages: Sequence["Message"]) -> list[str]:
    """Tell what a handle opens, every message whole."""
    from ricordo.tools.expand import as_record

    return shown(as_record(messages)).splitlines() or ["Nothing of it is kept."]


async def _context(agent: "HarnessAgent") -> list[str]:
    """Tell what fills the window, and what waits in the inbox."""
    report = await agent.get_context_usage()
    waiting = await agent.settle(seconds=0)
    return [*usage_lines(report), f"    inbox          {waiting:>9,} {'job waits' if waiting == 1 else 'jobs wait'}"]


async def _compact(agent: "HarnessAgent", rest: str) -> list[str]:
    """Make the window smaller, or tell of it what the options ask for; other words are what to dwell on."""
    words = _words(rest)
    options = {word for word in words if word.startswith("--")}
    focus = " ".join(word for word in words if not word.startswith("--"))
    if unknown := options - {"--dry-run", "--list", "--undo"}:
        raise InvalidInput(f"/compact takes --dry-run, --list, --undo, or what to dwell on; not {sorted(unknown)[0]}.")
    if "--list" in options:
        return listed_lines(await agent.compactions.all())
    if "--undo" in options:
        before = await agent.get_context_usage()
        made = await agent.compactions.undo(focus or None)
        return undone_lines(made, before, await agent.get_context_usage())
    dry_run = "--dry-run" in options
    return compacted_lines(await agent.compact(focus=focus, dry_run=dry_run), dry_run=dry_run)


async def _pin(agent: "HarnessAgent", rest: str, *, on: bool) -> list[str]:
    from ricordo.messages import mark_of

    said = [message.id for message in agent.window if message.role == "user" and mark_of(message) is None]
    named = rest.removeprefix("m:") or (said[-1] if said else "")
    if not named:
        raise MessageNotFound("Nothing that you said is in the window.")
    marked = await (agent.compactions.pin(named) if on else agent.compactions.unpin(named))
    words = " ".join(marked.text.split())
    start = f"{words[:_SHOWN]}{'…' if len(words) > _SHOWN else ''}"
    stays = "stays in the window through every compaction" if on else "goes with a compaction again"
    return [f'"{shown(start)}" {stays}.']


def _words(text: str) -> list[str]:
    with suppress(ValueError):
        return shlex.split(text)
    return text.split()
