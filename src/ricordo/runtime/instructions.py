"""Instructions: the check of what a person wrote for agents outside of the root."""

from pathlib import Path

from ricordo.audit.check import Check
from ricordo.audit.entry_checks import check_instructions
from ricordo.harness.human import agents_file

__all__ = ["inspect_instructions"]


async def inspect_instructions(folder: Path) -> list[Check]:
    """Return the check of AGENTS.md in `folder`; none where there is no such file."""
    found = await agents_file(folder)
    return [check_instructions(found.source, found.text)] if found else []
