"""Markdown: one file that people and programs write, read back as entries and shown whole."""

from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hand_made_roots import begun
from ricordo import Entry
from ricordo.guard import parse_fence
from ricordo.messages import Tokens, estimate_text
from ricordo.runtime import open_store
from ricordo.scope import Scope
from ricordo.stores import Forgets, Lists, Store
from ricordo.stores.parsed_files import BulletFile
from ricordo.testing import InMemoryFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-md")]

SHOP = Scope(user="me", project="shop")
LINES = st.sampled_from(
    ["```", "~~~~", "```python", "# Heading", "- by hand", "- by hand #tag ^own", "  more", "prose", "", "---", "````"]
)


async def forget(store: Store, entry_id: str) -> Entry:
    forgets = store.offers(Forgets)
    assert forgets is not None
    return await forgets.forget(entry_id, who="me")


@pytest.mark.req("GO-BK-md", "GO-AT5", "GO-G4-scale")
async def test_entries_are_appended_found_by_their_text_and_shown_whole_up_to_the_budget(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.md"
    async with open_store(f"markdown:{file.parent}", scope=SHOP) as store:
        first = await store.save(Entry(content="We deploy\n# only\n- from main.", tags=("release", "ops"), kind="own"))
        before = file.read_bytes()
        saved = [first, *[await store.save(Entry(content=f"Lesson {number}.")) for number in range(40)]]
        assert file.read_bytes().startswith(before)
    assert file.read_text(encoding="utf-8").count("\n- ") == 41
    async with open_store(f"markdown:{file.parent}", scope=SHOP) as store:
        assert [hit.entry for hit in await store.recall("RELEASE")] == [first]
        assert [hit.entry for hit in await store.recall("main deploy")] == [first]
        assert [hit.entry for hit in await store.recall("lesson", 2)] == [saved[40], saved[39]]
        assert [hit.entry for hit in await store.recall("", 99)] == saved[::-1]
        (whole,) = parse_fence(await store.preamble()) or ()
        assert whole.split("\n")[:4] == ["# Memory", "- We deploy", "  # only", "  - from main."]
        assert whole.split("\n")[4:] == [f"- Lesson {number}." for number in range(40)]
        short = await store.preamble(Tokens(150))
        (end,) = parse_fence(short) or ()
        kept = len(end.split("\n"))
        assert 5 < kept < 40
        assert end.split("\n") == [f"- Lesson {number}." for number in range(40 - kept, 40)]
        assert f"{41 - kept} memories and 1 other line of memory.md did not fit here" in short
        assert estimate_text(short) <= 150
    with file.open("a", encoding="utf-8") as written:
        written.write("".join(f"- Lesson {number} of many, at some length.\n" for number in range(700)))
    async with open_store(f"markdown:{file.parent}", scope=SHOP) as store:
        capped = await store.preamble()
    assert 3_500 < estimate_text(capped) <= 4_000
    assert "Lesson 699" in capped
    assert "did not fit here" in capped


@pytest.mark.req("GO-I5", "GO-AT5", "HE-O-audit-forget")
async def test_what_a_person_writes_is_honoured_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.md"
    begun(file.parent)
    prose = "---\ntitle: ours\n---\nSome prose.\n\n* By hand.\n\n1. A list\r\n"
    file.write_text(
        f"{prose}- Kept. [stars:: 5] ^kept\n- Gone. ^gone\nThe end, no line feed", encoding="utf-8", newline=""
    )
    async with open_store(f"markdown:{file.parent}", scope=SHOP) as store:
        assert [hit.entry.content for hit in await store.recall("")] == ["Gone.", "Kept.", "By hand."]
        by_hand = (await store.recall("by hand"))[0]
        assert (by_hand.entry.by, by_hand.path, by_hand.line_number) == ("hand", "memory.md", 6)
        assert (await forget(store, "gone")).content == "Gone."
        added = await store.save(Entry(content="Added."))
        text = file.read_text(encoding="utf-8").replace("\r\n", "\n")
        assert text.startswith(f"{prose}- Kept. [stars:: 5] ^kept\nThe end, no line feed\n- Added. ".replace("\r", ""))
        assert [hit.entry.extra for hit in await store.recall("kept")] == [(("stars", "5"),)]
        shown = parse_fence(await store.preamble())
        assert shown is not None
        assert "Some prose." in shown[0]
        assert shown[0].endswith("The end, no line feed\n- Added.")
        await forget(store, by_hand.entry.id)
        assert [hit.entry.id for hit in await store.recall("")] == [added.id, "kept"]


@pytest.mark.req("GO-AT5")
async def test_an_edit_by_hand_is_seen_at_once(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.md"
    async with open_store(f"markdown:{file.parent}", scope=SHOP) as store:
        saved = await store.save(Entry(content="The port is 80."))
        file.write_text(file.read_text(encoding="utf-8").replace("80.", "8080."), encoding="utf-8")
        assert [hit.entry.id for hit in await store.recall("8080")] == [saved.id]
        assert "8080" in await store.preamble()


@pytest.mark.req("GO-G4-scale", "GO-AT5")
async def test_the_budget_keeps_what_is_pinned_and_passes_over_what_is_too_long(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.md"
    async with open_store(f"markdown:{file.parent}", scope=SHOP) as store:
        await store.save(Entry(content="Never push on Fridays.", pinned=True))
        for number in range(60):
            await store.save(Entry(content=f"Lesson {number}."))
        await store.save(Entry(content="far too long " * 5_000))
        await store.save(Entry(content="The newest."))
        text = await store.preamble(Tokens(200))
        (shown,) = parse_fence(text) or ()
        assert shown.startswith("- Never push on Fridays.\n- Lesson ")
        assert shown.endswith("- Lesson 59.\n- The newest.")
        assert estimate_text(text) <= 200
        assert await store.preamble(Tokens(1)) == ""


@pytest.mark.req("HE-O-conflict")
async def test_nothing_is_shown_of_what_no_longer_holds(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.md"
    async with open_store(f"markdown:{file.parent}", scope=SHOP) as store:
        old = await store.save(Entry(content="Port 80."))
        await store.save(Entry(content="Retired.", state="retired"))
        new = await store.save(Entry(content="Port 81.", supersedes=old.id))
        assert parse_fence(await store.preamble()) == ("# Memory\n- Port 81.",)
        lists = store.offers(Lists)
        assert lists is not None
        for entry in await lists.entries():
            await forget(store, entry.id)
        assert file.read_text(encoding="utf-8") == "# Memory\n\n"
        assert new.id
        assert await store.preamble() == ""


async def test_the_trust_is_that_of_the_least_trusted_entry_shown(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.md"
    async with open_store(f"markdown:{file.parent}", scope=SHOP) as store:
        await store.save(Entry(content="Said."))
        assert 'trust="user"' in await store.preamble()
        await store.save(Entry(content="Concluded.", by="agent"))
        assert 'trust="agent"' in await store.preamble()


@pytest.mark.req("GO-I1", "GO-AT5")
@given(st.lists(LINES, max_size=8), st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=3))
@settings(max_examples=40)
def test_what_is_saved_is_read_back_whatever_stands_in_the_file(lines: list[str], contents: list[str]) -> None:
    anyio.run(partial(_read_back, "\n".join(lines).encode(), contents))


async def _read_back(before: bytes, contents: list[str]) -> None:
    files = InMemoryFiles()
    if before:
        await files.create("memory.md", before)
    document = BulletFile(files, "memory.md", header=b"# Memory\n\n")
    entries = [Entry(content=content, id=f"given-{number}") for number, content in enumerate(contents)]
    earlier = [one.entry for one in (await document.read_document()).located]
    for entry in entries:
        await document.append(entry)
        # what is taken in as the tail is what the whole says
        assert await document.read_document() == await BulletFile(files, "memory.md").read_document()
    read = [one.entry for one in (await document.read_document()).located]
    assert read == [*earlier, *entries]
    assert (await files.read("memory.md")).data.startswith(before or b"# Memory\n\n")
