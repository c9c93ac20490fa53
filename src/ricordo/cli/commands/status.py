"""`ricordo` alone: where memory lives, how much there is, and what to do next."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, find, with_memory
from ricordo.cli.render import bold, counted, emit, say, shown, size

if TYPE_CHECKING:
    from ricordo.audit.doctor import Check
    from ricordo.memory import Memory

__all__ = ["status"]


@dataclass(frozen=True, kw_only=True)
class _Figures:
    """What a root holds."""

    scope: str
    kinds: dict[str, int]
    sessions: int
    messages: int
    checks: "list[Check]"

    @property
    def index(self) -> str:
        return next((check.detail for check in self.checks if check.name == "index"), "there is no index")

    @property
    def broken(self) -> list[str]:
        return [check.name for check in self.checks if not check.ok]


def status(root: Path | None, user: str | None, project: str | None, as_json: bool) -> None:
    """Print where memory lives and how much there is; where there is none, where it would be created."""
    target = find(root, user, project)
    figures = with_memory(target, _figures) if target.exists else None
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
                "failing_checks": list(figures.broken) if figures else [],
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


async def _figures(memory: "Memory") -> _Figures:
    sessions = await memory.sessions()
    return _Figures(
        scope=str(memory.scope),
        kinds=dict(Counter(entry.kind for entry in await memory.entries()).most_common()),
        sessions=len(sessions),
        messages=sum(info.messages for info in sessions),
        checks=await memory.doctor(),
    )


def _print_figures(target: Target, figures: _Figures, weight: int) -> None:
    kinds = ", ".join(f"{count:,} {shown(kind)}" for kind, count in figures.kinds.items())
    entries = counted(sum(figures.kinds.values()), "entry", "entries")
    say(f"{bold('Memory')}    {shown(str(target.root))}")
    say(f"{bold('Scope')}     {shown(figures.scope)}")
    say(f"{bold('Entries')}   {entries}{f': {kinds}' if kinds else ''}")
    say(f"{bold('Sessions')}  {counted(figures.sessions, 'session')}, {counted(figures.messages, 'message')}")
    say(f"{bold('Size')}      {size(weight)}; {figures.index}")
    if figures.broken:
        say(f"{bold('Problems')}  {', '.join(figures.broken)}: see `ricordo doctor`")


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
    return [doctor, *advice[:2]] if figures.broken else advice


def _weight(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
