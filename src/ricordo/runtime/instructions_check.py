"""The check of AGENTS.md, a file outside of the root that people write for agents."""

from pathlib import Path

from ricordo.context.prompt import read_agents_file
from ricordo.curation.quality_checks import check_instructions
from ricordo.workspace.history.checks import Check

__all__ = ["inspect_agents_file"]


async def inspect_agents_file(folder: Path) -> list[Check]:
    """Check AGENTS.md in `folder`; return no check if there is no such file."""
    found = await read_agents_file(folder)
    return [check_instructions(found.source, found.text)] if found else []
