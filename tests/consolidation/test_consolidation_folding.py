"""A list of topics stays within MEMORY.md: what has no room there is listed in a topic that MEMORY.md lists."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.curation import ConsolidationConfig, Consolidator, undo_change
from ricordo.curation.forget import forget
from ricordo.curation.marks import mark_entry
from ricordo.curation.topics import FURTHER_TOPICS
from ricordo.errors import IndexTooLarge
from ricordo.guard import Redactor
from ricordo.testing import InMemoryFiles
from ricordo.workspace import (
    MEMORY_PATH,
    ChangeSets,
    Edit,
    append_entries,
    list_history,
    read_all_entries,
    render_entry,
)
from ricordo.workspace.documents import IndexBounds
from ricordo.workspace.entry_codec import without_field_comment
from ricordo.workspace.layout import TOPICS
from ricordo.workspace.ledger import is_curated

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C1-index", "HE-C1b", "CC-INDEXCAP")]

KEY = b"k" * 32
DAY = date(2026, 11, 21)
LISTED = re.compile(rb"^\d+\. \[[^\n]*\]\((memory/topics/[^)\n]+)\)", re.MULTILINE)


class Root:
    """The files of a root, and what is done to them."""

    def __init__(self, config: ConsolidationConfig | None = None) -> None:
        self.config = config or ConsolidationConfig()
        self.time = datetime(2026, 11, 21, 8, tzinfo=UTC)
        self.files = InMemoryFiles()
        self.ids = MonotonicIds(self, lambda bits: 7)
        self.changes = ChangeSets(self.files, clock=self, ids=self.ids)
        self.consolidator = Consolidator(
            files=self.files, changes=self.changes, redactor=Redactor(KEY), clock=self, key=KEY, config=self.config
        )

    def now(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time

    def today(self) -> date:
        return DAY

    def entry(self, content: str, *, pinned: bool = False) -> Entry:
        return Entry(content=content, kind="fact", id=self.ids.new(), time=self.now(), by="user", pinned=pinned)

    async def save(self, *contents: str) -> list[Entry]:
        entries = [self.entry(content) for content in contents]
        await append_entries(self.files, DAY, entries, Redactor(KEY))
        return entries

    async def topic(self, number: int) -> None:
        front = f'---\nname: "Subject {number}"\ndescription: "what is known"\ntype: "project"\n---\n# S\n\n'
        content = f"The subject {number} has a door of oak in room {number}{chr(97 + number % 26) * 3}."
        text = front + render_entry(self.entry(content))
        await self.files.create(f"{TOPICS}/subject-{number:03}.md", text.encode())

    async def index(self, text: str) -> None:
        await self.files.create(MEMORY_PATH, text.encode())

    async def read(self, path: str = MEMORY_PATH) -> bytes:
        return (await self.files.read(path)).data

    async def list_blocking(self, path: str = MEMORY_PATH) -> list[str]:
        if await self.files.info(path) is None:
            return []
        return [f"workspace/{found.decode()}" for found in LISTED.findall(await self.read(path))]

    async def topics(self) -> list[str]:
        return [info.path for info in await self.files.list(TOPICS)]

    async def consolidate(self) -> None:
        done = await self.consolidator.consolidate(force=True)
        assert not done.skipped.startswith("rejected"), done.skipped

    async def take_back(self, act: str) -> None:
        item = next(
            item for item in await list_history(self.files, self.changes) if item.action == act and not item.is_undone
        )
        await undo_change(self.files, self.changes, item, who="user", config=self.config)


def of_a_person(lines: int) -> str:
    return "## Mine\n\n" + "".join(f"My own line {number}.\n" for number in range(lines))


@pytest.mark.req("HE-C1-index")
async def test_more_topics_than_lines_are_listed_within_the_bounds_each_in_one_of_two_places() -> None:
    root = Root()
    for number in range(230):
        await root.topic(number)
    await root.save("The newest thing is that the harbour froze.")
    await root.consolidate()
    memory = await root.read()
    assert IndexBounds().find_exceeded(memory) is None
    assert b"the harbour froze" in memory
    first, rest = await root.list_blocking(), await root.list_blocking(FURTHER_TOPICS)
    assert FURTHER_TOPICS in first
    assert 50 <= len(first) <= 100
    assert sorted([*first, *rest]) == await root.topics()
    assert f"{TOPICS}/subject-229.md" in first, (
        "the most useful are those that were said last, where nothing else tells"
    )
    assert f"{TOPICS}/subject-000.md" in rest
    before = memory, await root.read(FURTHER_TOPICS)
    await root.save("Another thing is that the harbour thawed again in March.")
    await root.consolidate()
    assert await root.list_blocking() == first
    assert await root.read(FURTHER_TOPICS) == before[1], (
        "a run that changes no topic writes the list of them anew as it was"
    )


async def test_the_list_goes_on_in_one_file_only_as_long_as_it_has_to_and_a_persons_words_in_it_stay() -> None:
    root = Root(ConsolidationConfig(max_lines=20))
    for number in range(30):
        await root.topic(number)
    await root.save("The harbour froze.")
    await root.consolidate()
    assert len(await root.list_blocking()) == 10
    stored = await root.files.read(FURTHER_TOPICS)
    await root.files.replace(FURTHER_TOPICS, stored.data + b"\nMind the gap.\n", expected=stored.version)
    located = await read_all_entries(root.files)
    for number in range(30):
        (mine,) = [one.entry.id for one in located if f"subject {number} has" in one.entry.content]
        await forget(root.files, root.changes, mine, key=KEY, who="user", config=root.config)
        listed = [*await root.list_blocking(), *await root.list_blocking(FURTHER_TOPICS)]
        assert sorted({*listed}) == sorted(await root.topics())
        assert len(await root.list_blocking()) <= 10
    assert b"Mind the gap." in await root.read(FURTHER_TOPICS)


async def test_a_list_that_got_short_again_needs_no_further_file() -> None:
    root = Root(ConsolidationConfig(max_lines=20))
    for number in range(11):
        await root.topic(number)
    await root.save("The harbour froze.")
    await root.consolidate()
    assert FURTHER_TOPICS in await root.list_blocking()
    await root.files.delete(f"{TOPICS}/subject-004.md")
    await root.save("The harbour thawed.")
    await root.consolidate()
    assert FURTHER_TOPICS not in await root.topics()
    assert sorted(await root.list_blocking()) == await root.topics()


async def test_a_persons_lines_that_leave_little_room_leave_the_list_shorter_and_stay() -> None:
    root = Root(ConsolidationConfig(max_lines=30))
    own = of_a_person(16)
    await root.index(f"# Memory\n\n{own}")
    for number in range(40):
        await root.topic(number)
    await root.save("The harbour froze.")
    await root.consolidate()
    memory = await root.read()
    assert own.encode() in memory
    assert memory.count(b"\n") <= 30
    assert sorted([*await root.list_blocking(), *await root.list_blocking(FURTHER_TOPICS)]) == await root.topics()


@pytest.mark.req("HE-C1-index")
async def test_an_undo_that_would_make_it_too_large_moves_what_has_no_room_to_topics() -> None:
    root = Root(ConsolidationConfig(max_lines=20))
    entries = await root.save(*(f"Thing {number} is kept in drawer {number}." for number in range(12)))
    await root.consolidate()
    gone = entries[3].id
    await forget(root.files, root.changes, gone, key=KEY, who="user", config=root.config)
    stored = await root.files.read(MEMORY_PATH)
    text = without_field_comment(stored.data)
    own = of_a_person(20 - text.count(b"\n") - 3).encode()
    more = text + b"\n" + own + stored.data.removeprefix(text)
    text = without_field_comment(more)
    assert text.count(b"\n") == 20
    await root.files.replace(MEMORY_PATH, more, expected=stored.version)
    await root.take_back("forget")
    memory = without_field_comment(await root.read())
    assert memory.count(b"\n") <= 20
    assert memory.endswith(own)
    curated = {one.entry.id for one in await read_all_entries(root.files) if is_curated(one.path)}
    assert curated == {entry.id for entry in entries}, "nothing is lost"
    assert sorted(await root.list_blocking()) == await root.topics()


@pytest.mark.req("HE-C1-index")
async def test_a_pin_that_would_make_it_too_large_is_refused_where_nothing_can_be_moved() -> None:
    root = Root(ConsolidationConfig(max_bytes=2_000))
    own = "- The key is under the stone.\n" + of_a_person(140)
    document = own[:1_998] + "\n"
    await root.index(document)
    (mine, *_) = [one.entry.id for one in await read_all_entries(root.files) if "stone" in one.entry.content]
    with pytest.raises(IndexTooLarge, match=r"2,000, as every prompt.*Shorten what you wrote") as refused:
        await mark_entry(root.files, root.changes, mine, "pin", now=root.now(), who="user", config=root.config)
    assert refused.value.cap == "bytes"
    assert await root.read() == document.encode()
    assert await root.changes.list_changes() == []


@pytest.mark.req("HE-C1-index")
async def test_what_a_change_by_hand_lists_makes_no_file_larger_that_a_person_let_grow() -> None:
    root = Root(ConsolidationConfig(max_lines=20))
    own = of_a_person(40)
    await root.index(f"# Memory\n\n{own}")
    for number in range(15):
        await root.topic(number)
    kept, gone = await root.save("The harbour froze.", "The crane stands still.")
    await root.consolidate()
    before = await root.read()
    assert before.count(b"\n") > 20
    await forget(root.files, root.changes, gone.id, key=KEY, who="user", config=root.config)
    await root.take_back("forget")
    await forget(root.files, root.changes, kept.id, key=KEY, who="user", config=root.config)
    after = await root.read()
    assert after.count(b"\n") <= before.count(b"\n")
    assert own.encode() in after
    assert sorted([*await root.list_blocking(), *await root.list_blocking(FURTHER_TOPICS)]) == await root.topics()


async def test_an_undo_brings_back_a_persons_own_lines_whatever_their_number() -> None:
    root = Root(ConsolidationConfig(max_lines=20))
    before = f"# Memory\n\n{of_a_person(60)}"
    await root.index(before)
    stored = await root.files.read(MEMORY_PATH)
    await root.changes.apply(
        [Edit(path=MEMORY_PATH, expected_hash=stored.version, data=b"# Memory\n")], act="tool", who="agent"
    )
    await root.take_back("tool")
    assert await root.read() == before.encode()


async def test_forgetting_is_never_refused_for_want_of_room() -> None:
    root = Root(ConsolidationConfig(max_lines=20))
    (one,) = await root.save("The harbour froze.")
    await root.index(f"# Memory\n\n{render_entry(one)}\n{of_a_person(60)}")
    await forget(root.files, root.changes, one.id, key=KEY, who="user", config=root.config)
    assert b"harbour" not in await root.read()


async def test_a_run_moves_what_is_ours_out_of_a_file_that_a_person_let_grow_and_leaves_what_is_theirs() -> None:
    root = Root()
    own = of_a_person(150)
    ours = [root.entry(f"Fact {number} of the shop and its shelf.") for number in range(100)]
    await root.index("# Memory\n\n## Facts\n\n" + "".join(map(render_entry, ours)) + f"\n{own}")
    (newest,) = await root.save("The newest thing is that the harbour froze.")
    await root.consolidate()
    memory = await root.read()
    assert IndexBounds().find_exceeded(memory) is None
    assert own.encode() in memory
    assert newest.content.encode() in memory
    curated = {one.entry.id for one in await read_all_entries(root.files)}
    assert curated >= {entry.id for entry in ours}
