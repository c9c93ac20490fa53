"""A ledger of any length costs a prompt no more than a short one does: its beginning is not parsed."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from places import place_of
from ricordo import Entry, Memory
from ricordo.workspace import entry_codec
from ricordo.workspace.entry_codec import render_entry

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def test_of_a_ledger_with_many_thousand_lines_a_prompt_parses_the_last_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        await memory.remember("We use uv.")
    (ledger,) = (place_of(root) / "workspace" / "memory").glob("2*.md")
    walnuts = [f"Walnut {number} is here." for number in range(12_000)]
    lines = [render_entry(Entry(content=text, id=f"01hx{at:022}", time=NOON)) for at, text in enumerate(walnuts)]
    with ledger.open("a", encoding="utf-8") as file:
        file.writelines(lines)
    parsed = 0
    parse = entry_codec._parse_bullet

    def counted(block: str, collected: Mapping[str, str]) -> object:
        nonlocal parsed
        parsed += 1
        return parse(block, collected)

    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        await memory.remember("We deploy only from main.")
        monkeypatch.setattr(entry_codec, "_parse_bullet", counted)
        shown = await memory.preamble()
        assert "We deploy only from main." in shown
        assert "Walnut 11" in shown
        assert 0 < parsed < 4_000
        first = parsed
        await memory.preamble()
        assert parsed == first, "what did not change is not parsed again"
