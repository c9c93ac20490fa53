"""Whatever a memory keeps is found by one search: a document of each sort, by a word that only it holds."""

from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from places import place_of
from ricordo import Memory
from ricordo.messages import Message, Text

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.may_block("the check writes the files itself"),
    pytest.mark.req("HE-MEM-01"),
]

DOCUMENTS = {
    "MEMORY.md": "- The larch is curated.\n",
    "memory/topics/trees.md": "---\nname: Trees\ntype: project\n---\n- The rowan has a topic.\n",
    "memory/2026-11-20.md": "# 2026-11-20\n\n- The hazel is in a ledger.\n",
    "memory/archive/2026-08-01.md": "# 2026-08-01\n\n- The cedar is in the archive.\n",
    "sessions/2026-11-21-08h00.md": "# 2026-11-21 08:00\n\nWe talked of the juniper.\n",
    "large_tool_results/s/ls-0123456789ab.txt": "total 4\nspruce.txt\n",
}
WORDS = {
    "larch": "MEMORY.md", "rowan": "trees.md", "hazel": "2026-11-20.md", "cedar": "archive/2026-08-01.md",
    "juniper": "2026-11-21-08h00.md", "spruce": "ls-0123456789ab.txt", "acacia": "talk.log.jsonl",
}  # fmt: skip


async def test_one_search_finds_every_sort_of_document(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        for name, text in DOCUMENTS.items():
            path = place_of(root) / "workspace" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        said = Message(role="user", id="m1", parts=(Text(text="Is the acacia in bloom?"),))
        await memory.ingest([said], session="talk")
        for word, name in WORDS.items():
            assert any(hit.path.endswith(name) for hit in await memory.search(word)), word
        remembered = [word for word in WORDS if await memory.recall(word)]
    assert set(remembered) >= {"larch", "rowan", "hazel", "cedar"}
