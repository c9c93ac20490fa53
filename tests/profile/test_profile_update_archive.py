"""What finds no room in a full profile is found by searching."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conversation_strategies import said
from hand_clock import HandClock
from hand_made_roots import begun
from ricordo import Memory
from ricordo.curation import InMemoryProfileStore, ProfileUpdater
from ricordo.curation.profile.storage import LedgerArchive
from ricordo.guard import Redactor
from ricordo.scope import Scope
from ricordo.storage.local import LocalFiles
from ricordo.workspace import Fact, FactSource
from scripted_summaries import Scripted

pytestmark = pytest.mark.anyio
SCOPE = Scope(user="ana", project="shop")
LABELS = {"scope": "user", "durability": "durable", "authority": "descriptive"}


def fact(content: str, category: str, confidence: float, **further: object) -> dict[str, object]:
    return {"content": content, "category": category, "confidence": confidence, "quote": content, **LABELS, **further}


@pytest.mark.req("DF-B7")
async def test_a_full_profile_takes_what_counts_and_the_rest_can_be_searched(tmp_path: Path) -> None:
    clock = HandClock()
    store = InMemoryProfileStore(clock)
    crowd = [Fact(id=f"fact_{at:08x}", content=f"Has number {at} of a hundred", confidence=1.0) for at in range(100)]
    crowd[0] = replace(crowd[0], confidence=0.1, source=FactSource(thread="manual"))
    crowd[1] = replace(crowd[1], confidence=0.1, pinned=True)
    crowd[2] = replace(crowd[2], content="Owns a zeppelin hangar", confidence=0.5)
    base = await store.load()
    await store.save(replace(base, facts=tuple(crowd)), base=base, by="test")
    said_now = ("I use tabs", "I keep bees")
    model = Scripted(
        json.dumps(
            {
                "user": {},
                "history": {},
                "newFacts": [
                    fact(said_now[0], "correction", 0.7, sourceError="number 9"),
                    fact(said_now[1], "context", 1.0),
                ],
                "factsToRemove": [{"id": crowd[9].id, "reason": "wrong", "scope": "user", "replacementFactIndex": 0}],
            }
        )
    )
    archive = LedgerArchive(files=LocalFiles(begun(tmp_path)), clock=clock, redactor=Redactor(bytes(32)), scope=SCOPE)
    updater = ProfileUpdater(store, model, clock=clock, archive=archive)
    messages = [replace(said(text, role="user"), id=f"m{at}") for at, text in enumerate(said_now)]
    done = await updater.update(messages, thread="s-1")
    assert done is not None
    kept = {each.id: each for each in (await store.load()).facts}
    assert len(kept) == 100
    assert {crowd[0].id, crowd[1].id, *done.added} <= kept.keys()
    assert len(done.added) == 2, "the removal made room for its replacement"
    assert kept[done.added[0]].source_error == "number 9"
    assert crowd[9].id not in kept
    assert done.archived == (crowd[2].id,)
    async with Memory.open(tmp_path, scope=SCOPE) as memory:
        (hit, *_) = await memory.search("zeppelin")
    assert hit.entry.content == "Owns a zeppelin hangar"
