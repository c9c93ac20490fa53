"""What a start costs: of the largest memory no more enters the prompt than of a small one, and nothing unrelated."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from agents_at_work import SCOPE, ledgers, settings, system
from hand_made_roots import begun
from places import place_of
from ricordo import HarnessAgent, Memory
from ricordo.curation import InjectionConfig
from ricordo.messages import estimate_text
from ricordo.runtime import Settings
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C1")]

SAVED, LEARNED = "We deploy only from the heron branch.", "oolong over any coffee"
WALNUTS = "The walnut harvester is rented from Okonkwo each October, for the whole orchard."
QUESTION = "From whom do we rent the walnut harvester?"
BUDGET = 1_500
LONG_WORDS = [f"{name}{'abcdefghij' * 6}" for name in ("Quartz", "Basalt", "Gneiss", "Marble", "Schist", "Chert")]


def given(root: Path) -> Settings:
    return replace(settings(root), preamble_tokens=BUDGET, injection=None)


def bullets(name: str, count: int, length: int, *, start: int = 0) -> Iterator[str]:
    words = itertools.cycle(LONG_WORDS)
    for number in range(start, start + count):
        text = f"{name} {number} " + " ".join(itertools.islice(words, length))
        yield f"- {text} [kind:: fact] [at:: 2025-03-01T08:00:00.000Z] [by:: flush] [from:: old#m1] ^{number:026d}\n"


def filled(root: Path, *, ledgers: int, topics: int, lines: int) -> int:
    """Write a memory as its files hold it, with one topic on the question, and return how many bytes it has."""
    memory = place_of(begun(root, root.parent / "data")) / "workspace" / "memory"
    (memory / "topics").mkdir(parents=True)
    for number in range(ledgers):
        day = date(2025, 3, 1) + timedelta(days=number)
        text = "".join(bullets("Lump", 100, 60, start=100 * number))
        (memory / f"{day}.md").write_text(f"# {day}\n\n{text}", encoding="utf-8")
    listed = ["- [Machines](memory/topics/machines.md): what is rented"]
    (memory / "topics" / "machines.md").write_text(
        f"---\nname: Machines\ndescription: what is rented\ntype: reference\n---\n\n- {WALNUTS}\n", encoding="utf-8"
    )
    for number in range(topics):
        text = "".join(bullets("Slab", 100, 60, start=1_000_000 + 100 * number))
        head = f"---\nname: Slabs {number}\ndescription: slabs\ntype: reference\n---\n\n"
        (memory / "topics" / f"slabs-{number}.md").write_text(head + text, encoding="utf-8")
        listed.append(f"- [Slabs {number}](memory/topics/slabs-{number}.md): slabs")
    listed += [f"- Rule {number} of the quarry holds on every day of the year." for number in range(lines)]
    (place_of(root) / "workspace" / "MEMORY.md").write_text("# Memory\n\n" + "\n".join(listed) + "\n", encoding="utf-8")
    return sum(path.stat().st_size for path in root.rglob("*.md"))


async def started(root: Path, opening: str = QUESTION) -> tuple[int, str]:
    """Return the tokens of memory in the prompt of a session that begins so, and that prompt."""
    model = ScriptedModel([Say("From Okonkwo.")])
    async with HarnessAgent(model, memory=root, scope=SCOPE, session="s", settings=given(root)) as agent:
        await agent.send(opening)
        usage = await agent.get_context_usage()
    (request,) = model.requests
    return usage.memory, system(request)


@pytest.mark.req("HE-C1", "HE-A1", "AS-BUG-22")
async def test_a_memory_of_ten_megabytes_takes_no_more_of_the_prompt_than_one_of_two_kilobytes(tmp_path: Path) -> None:
    small, large = tmp_path / "small" / ".ricordo", tmp_path / "large" / ".ricordo"
    assert 1_000 < filled(small, ledgers=0, topics=0, lines=30) < 3_000
    assert filled(large, ledgers=24, topics=4, lines=400) > 10_000_000
    little, short = await started(small)
    much, long = await started(large)
    assert 0 < little <= BUDGET
    assert 0 < much <= BUDGET
    filled(tmp_path / "middle" / ".ricordo", ledgers=0, topics=0, lines=400)
    asked_nothing, _ = await started(tmp_path / "middle" / ".ricordo", "Hello.")
    assert BUDGET // 2 < asked_nothing <= BUDGET
    assert estimate_text(long) - estimate_text(short) <= BUDGET - little, "nothing else has grown with it"
    for prompt in (short, long):
        assert WALNUTS in prompt, "what has to do with the question is loaded"
        assert "memory/topics/machines.md" in prompt
        assert not any(unrelated in prompt for unrelated in ("Lump", "Slab ", *LONG_WORDS))


async def test_a_profile_that_grew_takes_no_more_of_the_prompt_than_its_budget(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    on = replace(given(root), injection=InjectionConfig(max_injection_tokens=400))
    taken = list[int]()
    for _ in range(2):
        async with Memory.open(root, scope=SCOPE, settings=on) as memory:
            for number, name in enumerate(LONG_WORDS * 6 * len(taken)):
                await memory.profile().add_fact(f"Owns quarry {number} of {name}, and all that lies in it.")
        async with HarnessAgent(ScriptedModel([Say("Hello.")]), memory=root, scope=SCOPE, settings=on) as agent:
            await agent.send("Hello, what do I own?")
            taken.append((await agent.get_context_usage()).memory)
    assert 300 < taken[1] - taken[0] <= 400


async def prompt(root: Path, opening: str, *, consolidates: bool = False) -> str:
    """Return the system prompt of a new session that begins with `opening`."""
    model = ScriptedModel([Say("So it is.")])
    on = replace(given(root), consolidation=settings(root, consolidates=consolidates).consolidation)
    async with HarnessAgent(model, memory=root, scope=SCOPE, settings=on) as agent:
        await agent.send(opening)
    return system(model.requests[0])


@pytest.mark.req("AS-LEDGER-03")
async def test_what_was_learned_is_searched_for_and_what_was_saved_is_shown_at_once_within_its_budget(
    tmp_path: Path,
) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Call("remember", {"content": SAVED, "kind": "decision"}), Say("Kept.")])
    async with HarnessAgent(model, memory=root, scope=SCOPE, session="one", settings=given(root)) as agent:
        await agent.send(f"I prefer {LEARNED}.")
        assert await agent.flush()
    assert LEARNED in ledgers(root)
    assert not (place_of(root) / "workspace" / "MEMORY.md").exists()
    asked = await prompt(root, "Do I prefer oolong or coffee?")
    assert "oolong" not in asked
    assert SAVED in asked
    assert '<memory-item source="memory/' in asked, "it has a section of its own"
    async with Memory.open(root, scope=SCOPE, settings=given(root)) as memory:
        assert "oolong" not in await memory.preamble()
        assert (await memory.recall("oolong or coffee"))[0].entry.content.endswith(f"{LEARNED}.")
        newest = [
            await memory.remember(f"Shelf {number} holds jar {number} of plum jam, {'sealed ' * 120}")
            for number in range(14)
        ]
        crowded = await memory.preamble()
        assert estimate_text(crowded) <= BUDGET
        assert newest[-1].content.strip() in crowded
        assert newest[0].content.strip() not in crowded, "what is newest comes first where there is no room for all"
        for entry in newest:
            await memory.forget(entry.id)
    on = replace(settings(root, consolidates=True), injection=None)
    async with HarnessAgent(ScriptedModel([]), memory=root, scope=SCOPE, settings=on) as agent:
        assert (await agent.consolidate()).kept
    placed = await prompt(root, "Do I prefer oolong or coffee?", consolidates=True)
    assert placed.count(SAVED) == 1
    assert '<memory-item source="memory/' not in placed
    assert LEARNED in placed, "consolidation has placed it in curated memory"
