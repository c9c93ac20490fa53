"""Instructions: the check of what a person wrote for agents outside of the root."""

from pathlib import Path

from ricordo.audit.check import Check
from ricordo.audit.entry_checks import check_instructions
from ricordo.harness.human import read_agents_file

__all__ = ["inspect_agents_file"]


async def inspect_agents_file(folder: Path) -> list[Check]:
    """Return the check of AGENTS.md in `folder`; none where there is no such file."""
    found = await read_agents_file(folder)
    return [check_instructions(found.source, found.text)] if found else []
