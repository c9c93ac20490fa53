"""A team's memory beside a project, and clones of it that git carries."""

import subprocess
from pathlib import Path

import anyio

from command_line import ricordo
from ricordo import Memory, Scope
from ricordo.concurrency import Opening

__all__ = ["ROLES", "clone", "commit", "create_clone", "git", "ledger_lines", "member", "open_memory", "pull"]

ROLES = {"ann": "curator", "ben": "writer", "cleo": "reader"}
_IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """Return what git printed; fail if it failed."""
    done = subprocess.run(["git", *_IDENTITY, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def member(user: str | None, team: str = "core", session: str | None = None) -> Scope:
    return Scope(user=user, project="shop", team=team, session=session)


async def create_clone(folder: Path) -> Path:
    """Make a repository with the memory of the team `core` in it, and return it; its members have `ROLES`."""
    await anyio.Path(folder).mkdir(parents=True)
    root = ("--root", folder / ".ricordo", "--user", "ann")
    await _command("team", "create", "core", folder / ".ricordo-team", *root)
    for user, role in ROLES.items():
        await _command("team", "add", user, "--role", role, *root)
    await anyio.to_thread.run_sync(lambda: git(folder, "init", "-q", "-b", "main"))
    await commit(folder)
    return folder


async def _command(*arguments: str | Path) -> None:
    """Run a command beside the event loop; fail if it fails."""
    done = await anyio.to_thread.run_sync(lambda: ricordo(*arguments))
    assert done.code == 0, done


async def commit(folder: Path) -> None:
    await anyio.to_thread.run_sync(lambda: git(folder, "add", "-A"))
    await anyio.to_thread.run_sync(lambda: git(folder, "commit", "-q", "--allow-empty", "-m", "memory"))


async def clone(source: Path, folder: Path, *, trusted: bool = True) -> Path:
    await anyio.to_thread.run_sync(lambda: git(source.parent, "clone", "-q", str(source), str(folder)))
    if trusted:
        await _command("trust", folder / ".ricordo-team")
    return folder


async def pull(folder: Path, source: Path) -> None:
    """Merge what `source` has committed."""
    arguments = ("pull", "-q", "--no-rebase", "--no-edit", str(source), "main")
    await anyio.to_thread.run_sync(lambda: git(folder, *arguments))


def open_memory(folder: Path, user: str | None, team: str = "core") -> Opening[Memory]:
    return Memory.open(folder / ".ricordo", scope=member(user, team))


def ledger_lines(folder: Path) -> list[str]:
    """Return the bullets of the team's ledgers, in their order."""
    ledgers = sorted((folder / ".ricordo-team" / "workspace" / "memory").glob("*.md"))
    return [line for path in ledgers for line in path.read_text(encoding="utf-8").splitlines() if line[:2] == "- "]
