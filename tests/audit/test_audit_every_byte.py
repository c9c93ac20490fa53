"""What was forgotten is shown nowhere, and what was erased is in no byte below the root, after a great many of both."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from agents_at_work import said
from ricordo import Memory, Scope
from ricordo.search import Query

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.req("HE-O-audit-forget", "GO-I10"),
    pytest.mark.may_block("the test reads every file"),
]

ANN = Scope(user="ann", project="shop", session="talk")
_SORTS = ("private", "project", "user", "session", "said")


def contents(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield every file below the root, with what compressed ones hold."""
    for path in sorted(each for each in root.rglob("*") if each.is_file()):
        data = path.read_bytes()
        try:
            yield path, zlib.decompress(data)
        except zlib.error:
            yield path, data


async def keep(memory: Memory, word: str, sort: str) -> str:
    """Save a memory with a word of its own, and return its id."""
    if sort == "said":
        text = f"We decided that the server of crate {word} is in hall 3."
        before = {each.id for each in await memory.entries()}
        await memory.ingest([said(text)], session=f"talk-{word[2:7]}")
        return next(each.id for each in await memory.entries() if each.id not in before and word in each.content)
    saved = await memory.remember(f"The crate {word} is on a shelf.", scope=sort, reason="test")  # type: ignore[arg-type]
    return saved.id


async def told(memory: Memory, word: str) -> str:
    """Return all that a memory shows of a word, to a person and to a model."""
    shown = [await memory.recall(word, limit=20), await memory.entries(), await memory.preamble()]
    shown += [await memory.answer(f"Where is the crate {word}?"), await memory.profile().render()]
    return "\n".join(map(repr, shown)).replace(f"Where is the crate {word}?", "")


async def _forget_and_erase(data: Path, count: int, seed: int) -> None:
    random = Random(seed)
    root = data.parent / ".ricordo"
    async with Memory.open(root, scope=ANN) as memory:
        names = {f"zq{number:05}x": random.choice(_SORTS) for number in range(count)}
        ids = {word: await keep(memory, word, sort) for word, sort in names.items()}
        gone = list[str]()
        for word in random.sample(sorted(names), count):
            entry_id = ids[word]
            if random.random() < 0.3 and names[word] != "session":
                entry_id = (await memory.update(entry_id, content=f"The crate {word} has moved.")).id
            act = random.choice(("forget", "erase", "forget and erase", "erase text"))
            if "forget" in act:
                await memory.forget(entry_id)
                assert word not in await told(memory, word), (word, act, names[word])
            if "erase" in act:
                await memory.erase(text=word) if act == "erase text" else await memory.erase(entry_id)
                gone.append(word)
        await memory.index()
        assert [word for word in gone if word in await told(memory, word)] == []
        found = await memory.search(Query(text="crate"), limit=1_000)
        assert [word for word in gone if word in repr(found)] == []
    files = [*contents(root), *contents(data)]
    assert len(files) > count // 10
    left = [(word, str(path)) for path, held in files for word in gone if word.encode() in held]
    assert left == []


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of what a user has in all projects."""
    monkeypatch.setenv("RICORDO_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


async def test_fifty_forgotten_and_erased_memories_are_in_no_answer_and_no_byte(data: Path) -> None:
    await _forget_and_erase(data, 50, seed=24)


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_a_thousand_forgotten_and_erased_memories_are_in_no_answer_and_no_byte(data: Path) -> None:
    await _forget_and_erase(data, 1_000, seed=1_000)
