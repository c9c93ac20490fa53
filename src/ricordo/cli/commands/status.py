"""`ricordo` alone: where memory lives, how much there is, and what to do next."""

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, find, opened, run
from ricordo.cli.finding import Finding, found_by
from ricordo.cli.render import bold, counted, emit, say, shown, size
from ricordo.errors import RootNotTrusted

if TYPE_CHECKING:
    from ricordo.audit.doctor import Check
    from ricordo.index.contract import Freshness

__all__ = ["status"]


@dataclass(frozen=True, kw_only=True)
class _Figures:
    """What a root holds; `curated` counts the entries of MEMORY.md and of its topics, of which there are `topics`."""

    scope: str
    kinds: dict[str, int]
    sessions: int
    messages: int
    curated: int
    topics: int
    inbox: "Check"
    freshness: "Freshness"
    finding: Finding

    @property
    def is_well(self) -> bool:
        """Tell whether neither the index nor the inbox needs to be looked at."""
        return self.freshness.state != "broken" and self.inbox.ok


def status(root: Path | None, user: str | None, project: str | None, as_json: bool) -> None:
    """Print where memory lives and how much there is; where there is none, where it would be created."""
    try:
        target = find(root, user, project)
    except RootNotTrusted as error:
        _tell_untrusted(error, as_json=as_json)
        return
    figures = run(lambda: _figures(target)) if target.exists else None
    weight = _weight(target.root) if figures else 0
    advice = _next(figures)
    if as_json:
        emit(
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
                "embedder": figures.finding.embedder if figures else None,
                "next": list(advice),
            }
        )
        return
    if figures:
        _print_figures(target, figures, weight)
    else:
        say(f"There is no memory here yet. It would be created in {shown(str(target.root))}.")
    say(f"\n{bold('Next')}")
    for line in advice:
        say(f"  {line}")


def _tell_untrusted(error: RootNotTrusted, *, as_json: bool) -> None:
    """Say that nothing of the root is used, and what to do next."""
    path = shlex.quote(error.root)
    advice = [
        f"ricordo trust --show {path}   see what would come into effect",
        f"ricordo trust {path}          let it be used",
    ]
    if as_json:
        emit({"root": error.root, "exists": True, "trusted": False, "why": str(error), "next": list(advice)})
        return
    say(f"{bold('Memory')}    {shown(error.root)}\n{shown(str(error))}\n\n{bold('Next')}")
    for line in advice:
        say(f"  {shown(line)}")


async def _figures(target: Target) -> _Figures:
    from anyio.to_thread import run_sync

    from ricordo.audit.doctor import inspect_inbox
    from ricordo.runtime.assembly import Parts, open_workspace
    from ricordo.workspace.layout import MEMORY
    from ricordo.workspace.ledger import read_curated

    async with opened(target) as memory:
        sessions, entries, scope = await memory.sessions(), await memory.entries(), memory.scope
    async with open_workspace(
        target.root, scope, Parts.standard(settings=target.settings, embedder="none")
    ) as workspace:
        # it is brought up to date for a moment only: who has much to be taken in need not wait for it
        await workspace.place.index.search("", 1)
        curated = await read_curated(workspace.place.files)
        return _Figures(
            scope=str(scope),
            kinds=dict(Counter(entry.kind for entry in entries).most_common()),
            sessions=len(sessions),
            messages=sum(info.messages for info in sessions),
            curated=len(curated),
            topics=len({found.path for found in curated} - {MEMORY}),
            inbox=await inspect_inbox(workspace.inbox),
            freshness=workspace.place.index.freshness(),
            finding=await run_sync(found_by, target.settings),
        )


def _print_figures(target: Target, figures: _Figures, weight: int) -> None:
    kinds = ", ".join(counted(count, shown(kind)) for kind, count in figures.kinds.items())
    entries = counted(sum(figures.kinds.values()), "entry")
    say(f"{bold('Memory')}    {shown(str(target.root))}")
    say(f"{bold('Scope')}     {shown(figures.scope)}")
    say(f"{bold('Entries')}   {entries}{f': {kinds}' if kinds else ''}")
    say(f"{bold('Sessions')}  {counted(figures.sessions, 'session')}, {counted(figures.messages, 'message')}")
    say(f"{bold('Curated')}   {_curated(figures)}")
    say(f"{bold('Inbox')}     {_waiting(figures.inbox)}")
    say(f"{bold('Size')}      {size(weight)}")
    say(f"{bold('Index')}     {shown(str(figures.freshness))}")
    say(f"{bold('Found')}     {shown(figures.finding.told)}")


def _curated(figures: _Figures) -> str:
    topics = f" and {counted(figures.topics, 'topic')}" if figures.topics else ""
    return f"{counted(figures.curated, 'entry')} in MEMORY.md{topics}"


def _waiting(inbox: "Check") -> str:
    if not inbox.ok:
        return shown(inbox.detail)
    return f"{inbox.count:,} {'job waits' if inbox.count == 1 else 'jobs wait'}" if inbox.count else "nothing waits"


def _next(figures: _Figures | None) -> list[str]:
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
    return advice if figures.is_well else [doctor, *advice[:2]]


def _weight(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
