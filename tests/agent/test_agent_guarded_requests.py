"""No request that memory makes for its own work holds a secret that a person wrote by hand into a file of the root."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from agents_at_work import SCOPE, said, settings
from hand_made_roots import begun
from places import place_of
from ricordo import CompactionConfig, FlushConfig, HarnessAgent, Memory, MemoryConfig
from ricordo.curation import ConsolidationConfig
from ricordo.runtime import open_store
from ricordo.testing import RecordedRequest, Say, ScriptedModel
from ricordo.workspace import DEFAULT_AGENT, transcript_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ricordo.messages import JsonValue

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-SECRET")]

TOKEN = "ghp_" + "R4nD0mZq7KpLxWv8TyBn3MsHd9FgJc2Ae5"
LINE = "Our rule for the gondola number {at} is to push it with {token} on Mondays."
NUMBERS = range(50)
PURPOSES = {
    "turn": "You are a helpful assistant.",
    "learn": "You note what is worth remembering",
    "curate": "You keep the long-term memory",
    "sum up": "You condense the first part",
    "close": "the record of a session that has ended",
}
SAID = "I prefer tea over coffee, and our wiki is at wiki.example."
ANSWER = (
    "## Session intent\n- gondola\n\n## Summary\n- They talked about the gondola.\n\n## Artifacts\n\n## Next steps\n"
    "\nTAGS: gondola"
)


def token(at: int) -> str:
    return f"{TOKEN}{at:02}"


def line(at: int) -> str:
    return LINE.format(at=at, token=token(at))


class Recording:
    """An embedder of a provider that keeps what it is sent."""

    model_id = "recording:2"
    dimension = 2

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        self.texts += texts
        return np.array([[1.0, 0.0]] * len(texts), dtype=np.float32).reshape(len(texts), 2)


def write_by_hand(place: Path, shared: Path) -> None:
    """Write a secret of its own into each kind of file, and take one up in a transcript."""
    facts: list[JsonValue] = [{"id": "f1", "content": line(0), "category": "knowledge", "confidence": 1.0}]
    summary: JsonValue = {"workContext": {"summary": line(1), "updatedAt": ""}}
    files = {
        "profile.json": json.dumps({"version": "1.0", "facts": facts, "user": summary}, indent=1),
        "memory/2026-01-02.md": f"# 2026-01-02\n\n- {line(2)}\n",
        "memory/archive/2025-01-02.md": f"# 2025-01-02\n\n- {line(3)}\n",
        "memory/topics/gondola.md": f"---\nname: gondola\ndescription: {line(4)}\ntype: project\n---\n- {line(5)}\n",
        "MEMORY.md": f"# Memory\n\n{line(6)}\n\n- {line(7)}\n",
        "rules/house.md": line(8),
        "sessions/2026-05-13-09h47.md": f"---\nsession: old\n---\n# 2026-05-13\n\n## Summary\n\n{line(9)}\n",
        "plans/next.md": line(10),
        "memories/gondola.md": line(11),
        "notes.md": line(12),
    }
    for folder, added in ((place, 0), (shared, 20)):
        for path, text in files.items():
            file = folder / "workspace" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            for at in reversed(range(13)):
                text = text.replace(token(at), token(at + added))  # noqa: PLW2901
            file.write_text(text, encoding="utf-8")
    (ledger,) = (place / "workspace/memory").glob(f"*{day(place)}*.md")
    ledger.write_text(f"{ledger.read_text(encoding='utf-8')}- {line(40)}\n", encoding="utf-8")


def day(place: Path) -> str:
    return max(path.stem for path in (place / "workspace/memory").glob("*.md"))


def purpose(request: RecordedRequest) -> str:
    asked = "\n".join(message.text for message in request.messages)
    return next((kind for kind, words in PURPOSES.items() if words in asked), asked[:60])


async def test_no_request_of_memory_holds_a_secret_that_stands_in_a_file_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    place = place_of(begun(root, tmp_path / "data"))
    held = replace(settings(root), consolidation=ConsolidationConfig(min_gap=0), flush=FlushConfig())
    model = ScriptedModel(lambda request: Say(ANSWER))
    async with HarnessAgent(model, memory=root, scope=SCOPE, session="s", settings=held) as agent:
        await agent.send("We decided to push the gondola on Mondays.")
        await agent.flush()
    write_by_hand(place, root)
    log = place / transcript_path(DEFAULT_AGENT, "s")
    log.write_text(log.read_text(encoding="utf-8").replace("the gondola on Mondays", line(41)), encoding="utf-8")
    compaction = CompactionConfig(keep_messages=1)
    async with HarnessAgent(
        model,
        memory=MemoryConfig(root=root, closing_summary="sync"),
        scope=SCOPE,
        session="s",
        settings=held,
        compaction=compaction,
    ) as agent:
        await agent.send(f"{SAID} The token is {token(45)}. {'And so on, as people talk of tea. ' * 200}")
        await agent.send("Thank you.")
        await agent.flush()
        await agent.consolidate()
        await agent.consolidate(deep=True)
        await agent.compact(focus=f"what {token(42)} is")
        await agent.summarize()
    assert {purpose(request) for request in model.requests} == {*PURPOSES}
    held_by = {(purpose(request), at) for request in model.requests for at in NUMBERS if token(at) in repr(request)}
    assert held_by == set()
    assert repr(model.requests).count("[secret:github-token:") > len(model.requests)


async def test_no_embedder_of_a_provider_is_sent_one_with_memories_a_profile_or_a_question(tmp_path: Path) -> None:
    root, embedder = tmp_path / ".ricordo", Recording()
    place = place_of(begun(root, tmp_path / "data"))
    async with Memory.open(root, scope=SCOPE, embedder=embedder, settings=settings(root)) as memory:
        await memory.remember("We push the gondola on Mondays.")
    write_by_hand(place, root)
    async with Memory.open(root, scope=SCOPE, embedder=embedder, settings=settings(root)) as memory:
        await memory.ingest([said("I prefer to push the gondola on Mondays, as we said.")], session="s")
        await memory.embed()
        await memory.recall(f"Which gondola is pushed with {token(43)}?")
    async with open_store(f"vector:{tmp_path / 'notes'}", scope=SCOPE, embedder=embedder) as store:
        await store.recall(f"Which gondola is pushed with {token(44)}?")
    assert [at for at in NUMBERS if any(token(at) in text for text in embedder.texts)] == []
    assert "[secret:github-token:" in repr(embedder.texts)
