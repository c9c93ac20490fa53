"""`ricordo` alone: where memory lives, how much there is, and what to do next."""

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, find_target, open_memory, run_async
from ricordo.cli.finding import SearchMode, describe_search_mode
from ricordo.cli.render import bold, pluralize, print_json, print_line, escape, format_size
from ricordo.errors import RootNotTrusted

if TYPE_CHECKING:
    from ricordo.audit.doctor import Check
    from ricordo.index.contract import Freshness

__all__ = ["status"]


@dataclass(frozen=True, kw_only=True)
class _RootSummary:
    """What a root holds; `curated` counts the entries of MEMORY.md and of its topics, of which there are `topics`."""

    scope: str
    kinds: dict[str, int]
    sessions: int
    messages: int
    curated: int
    topics: int
    inbox: "Check"
    freshness: "Freshness"
    search_mode: SearchMode

    @property
    def is_healthy(self) -> bool:
        """Tell whether neither the index nor the inbox needs to be looked at."""
        return self.freshness.state != "broken" and self.inbox.ok


def status(root: Path | None, user: str | None, project: str | None, as_json: bool) -> None:
    """Print where memory lives and how much there is; where there is none, where it would be created."""
    try:
        target = find_target(root, user, project)
    except RootNotTrusted as error:
        _print_untrusted(error, as_json=as_json)
        return
    figures = run_async(lambda: _load_summary(target)) if target.exists else None
    weight = _total_bytes(target.root) if figures else 0
    advice = _next_steps(figures)
    if as_json:
        print_json(
            {
                "root": str(target.root),
                "exists": target.exists,
                "trusted": True,
                "scope": figures.scope if figures else None,
                "entries": dict(figures.kinds) if figures else {},
                "sessions": figures.sessions if figures else 0,
                "messages": figures.messages if figures else 0,
                "curated": figures.curated if figures else 0,
                "topics": figures.topics if figures else 0,
                "waiting": figures.inbox.count if figures else 0,
                "bytes": weight,
                "index": str(figures.freshness) if figures else None,
                "embedder": figures.search_mode.embedder if figures else None,
                "next": list(advice),
            }
        )
        return
    if figures:
        _print_summary(target, figures, weight)
    else:
        print_line(f"There is no memory here yet. It would be created in {escape(str(target.root))}.")
    print_line(f"\n{bold('Next')}")
    for line in advice:
        print_line(f"  {line}")


def _print_untrusted(error: RootNotTrusted, *, as_json: bool) -> None:
    """Say that nothing of the root is used, and what to do next."""
    path = shlex.quote(error.root)
    advice = [
        f"ricordo trust --show {path}   see what would come into effect",
        f"ricordo trust {path}          let it be used",
    ]
    if as_json:
        print_json({"root": error.root, "exists": True, "trusted": False, "why": str(error), "next": list(advice)})
        return
    print_line(f"{bold('Memory')}    {escape(error.root)}\n{escape(str(error))}\n\n{bold('Next')}")
    for line in advice:
        print_line(f"  {escape(line)}")


async def _load_summary(target: Target) -> _RootSummary:
    from anyio.to_thread import run_sync

    from ricordo.audit.doctor import check_inbox
    from ricordo.runtime.assembly import Dependencies, open_workspace
    from ricordo.workspace.layout import MEMORY_PATH
    from ricordo.workspace.ledger import read_curated_entries

    async with open_memory(target) as memory:
        sessions, entries, scope = await memory.sessions(), await memory.entries(), memory.scope
    async with open_workspace(
        target.root, scope, Dependencies.create(settings=target.settings, embedder="none")
    ) as workspace:
        # it is brought up to date for a moment only: who has much to be taken in need not wait for it
        await workspace.memory_root.index.search("", 1)
        curated = await read_curated_entries(workspace.memory_root.files)
        return _RootSummary(
            scope=str(scope),
            kinds=dict(Counter(entry.kind for entry in entries).most_common()),
            sessions=len(sessions),
            messages=sum(info.messages for info in sessions),
            curated=len(curated),
            topics=len({found.path for found in curated} - {MEMORY_PATH}),
            inbox=await check_inbox(workspace.inbox),
            freshness=workspace.memory_root.index.freshness(),
            search_mode=await run_sync(describe_search_mode, target.settings),
        )


def _print_summary(target: Target, figures: _RootSummary, weight: int) -> None:
    kinds = ", ".join(pluralize(count, escape(kind)) for kind, count in figures.kinds.items())
    entries = pluralize(sum(figures.kinds.values()), "entry")
    print_line(f"{bold('Memory')}    {escape(str(target.root))}")
    print_line(f"{bold('Scope')}     {escape(figures.scope)}")
    print_line(f"{bold('Entries')}   {entries}{f': {kinds}' if kinds else ''}")
    print_line(
        f"{bold('Sessions')}  {pluralize(figures.sessions, 'session')}, {pluralize(figures.messages, 'message')}"
    )
    print_line(f"{bold('Curated')}   {_format_curated(figures)}")
    print_line(f"{bold('Inbox')}     {_format_inbox(figures.inbox)}")
    print_line(f"{bold('Size')}      {format_size(weight)}")
    print_line(f"{bold('Index')}     {escape(str(figures.freshness))}")
    print_line(f"{bold('Found')}     {escape(figures.search_mode.description)}")


def _format_curated(figures: _RootSummary) -> str:
    topics = f" and {pluralize(figures.topics, 'topic')}" if figures.topics else ""
    return f"{pluralize(figures.curated, 'entry')} in MEMORY.md{topics}"


def _format_inbox(inbox: "Check") -> str:
    if not inbox.ok:
        return escape(inbox.detail)
    return f"{inbox.count:,} {'job waits' if inbox.count == 1 else 'jobs wait'}" if inbox.count else "nothing waits"


def _next_steps(figures: _RootSummary | None) -> list[str]:
    talk = "ricordo chat                   talk to an agent that remembers"
    ingest = "ricordo ingest FILE            take in a conversation"
    if figures is None:
        return ["ricordo demo                   see it work, in a folder of its own", ingest, talk]
    if not figures.kinds and not figures.sessions:
        advice = [
            ingest,
            "ricordo ingest --claude-code   take in this project's coding sessions",
            talk,
        ]
    else:
        advice = [
            'ricordo ask "QUESTION"         an answer with its source',
            talk,
            "ricordo memory list            everything that is remembered" if figures.sessions else ingest,
        ]
    doctor = "ricordo doctor                 see what is wrong"
    return advice if figures.is_healthy else [doctor, *advice[:2]]


def _total_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
