"""`ricordo` alone: where memory lives, how much there is, and what to do next."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, find, opened, run
from ricordo.cli.render import bold, counted, emit, say, shown, size

if TYPE_CHECKING:
    from ricordo.index.contract import Freshness
    from ricordo.scopes import Scope

__all__ = ["status"]


@dataclass(frozen=True, kw_only=True)
class _Figures:
    """What a root holds."""

    scope: str
    kinds: dict[str, int]
    sessions: int
    messages: int
    freshness: "Freshness"

    @property
    def index(self) -> str:
        """How far the index follows the files."""
        return f"{self.freshness.state}{f': {self.freshness.reason}' if self.freshness.reason else ''}"


def status(root: Path | None, user: str | None, project: str | None, as_json: bool) -> None:
    """Print where memory lives and how much there is; where there is none, where it would be created."""
    target = find(root, user, project)
    figures = run(lambda: _figures(target)) if target.exists else None
    weight = _weight(target.root) if figures else 0
    advice = _next(figures)
    if as_json:
        emit(
            {
                "root": str(target.root),
                "exists": target.exists,
                "scope": figures.scope if figures else None,
                "entries": dict(figures.kinds) if figures else {},
                "sessions": figures.sessions if figures else 0,
                "messages": figures.messages if figures else 0,
                "bytes": weight,
                "index": figures.index if figures else None,
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


async def _figures(target: Target) -> _Figures:
    async with opened(target) as memory:
        sessions = await memory.sessions()
        return _Figures(
            scope=str(memory.scope),
            kinds=dict(Counter(entry.kind for entry in await memory.entries()).most_common()),
            sessions=len(sessions),
            messages=sum(info.messages for info in sessions),
            freshness=await _freshness(target, memory.scope),
        )


async def _freshness(target: Target, scope: "Scope") -> "Freshness":
    from ricordo.runtime.assembly import Parts, open_workspace

    async with open_workspace(target.root, scope, Parts.standard(settings=target.settings)) as workspace:
        await workspace.place.index.refresh()
        return workspace.place.index.freshness()


def _print_figures(target: Target, figures: _Figures, weight: int) -> None:
    kinds = ", ".join(f"{count:,} {shown(kind)}" for kind, count in figures.kinds.items())
    entries = counted(sum(figures.kinds.values()), "entry", "entries")
    say(f"{bold('Memory')}    {shown(str(target.root))}")
    say(f"{bold('Scope')}     {shown(figures.scope)}")
    say(f"{bold('Entries')}   {entries}{f': {kinds}' if kinds else ''}")
    say(f"{bold('Sessions')}  {counted(figures.sessions, 'session')}, {counted(figures.messages, 'message')}")
    say(f"{bold('Size')}      {size(weight)}")
    say(f"{bold('Index')}     {shown(figures.index)}")


def _next(figures: _Figures | None) -> list[str]:
    if figures is None:
        return [
            "ricordo demo                   see it work, in a folder of its own",
            "ricordo ingest FILE            take in a conversation",
            'ricordo remember "TEXT"        save something yourself',
        ]
    doctor = "ricordo doctor                 see what is wrong"
    if not figures.kinds and not figures.sessions:
        advice = [
            "ricordo ingest FILE            take in a conversation",
            "ricordo ingest --claude-code   take in this project's coding sessions",
            'ricordo remember "TEXT"        save something yourself',
        ]
    else:
        advice = [
            'ricordo ask "QUESTION"         an answer with its source',
            "ricordo memory list            everything that is remembered",
            "ricordo session list           the conversations that were kept"
            if figures.sessions
            else "ricordo ingest FILE            take in a conversation",
        ]
    return [doctor, *advice[:2]] if figures.freshness.state == "broken" else advice


def _weight(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
