"""Documents that are made and edited: one change set each, without secrets, and taken back to the byte."""

import pytest

from ricordo.clock import MonotonicIds, SystemClock
from ricordo.curation import undo_change
from ricordo.errors import AlreadyExists, FileMissing, IndexTooLarge
from ricordo.guard import Redactor
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, list_history
from ricordo.workspace.documents import TextReplacement, create_document, edit_document

pytestmark = pytest.mark.anyio

SECRET = "AKIA" + "Q7ZP4MX2WT6RB3KD"
REDACTOR = Redactor(bytes(32))


@pytest.mark.req("AS-FS-02", "FC-SECRET")
async def test_creating_and_editing_are_change_sets_without_secrets() -> None:
    files = InMemoryFiles()
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    path = await create_document(files, changes, "/plans/a.md", f"- token {SECRET}\n", redactor=REDACTOR, who="agent")
    made = (await files.read(f"workspace/{path}")).data
    assert made.startswith(b"- token [secret:")
    halves = TextReplacement(old="- token", new=f"- {SECRET[:9]}")
    await edit_document(files, changes, path, halves, redactor=REDACTOR, who="agent", why=SECRET)
    joined = TextReplacement(old=f"{SECRET[:9]} ", new=f"{SECRET} ")
    assert await edit_document(files, changes, path, joined, redactor=REDACTOR, who="agent") == 1
    every = [(await files.read(info.path)).data for info in await files.list("")]
    assert not [data for data in every if SECRET.encode() in data]
    items = await list_history(files, changes)
    assert [(item.action, item.actor) for item in items] == [("edit", "agent"), ("edit", "agent"), ("create", "agent")]
    for item in items[:2]:
        await undo_change(files, changes, item, who="user")
    assert (await files.read(f"workspace/{path}")).data == made
    await undo_change(files, changes, items[2], who="user")
    with pytest.raises(FileMissing):
        await files.read(f"workspace/{path}")


@pytest.mark.req("AS-FS-02")
async def test_what_is_there_is_left_alone_and_leaves_no_change() -> None:
    files = InMemoryFiles()
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    await files.create("workspace/plans/a.md", b"mine")
    with pytest.raises(AlreadyExists):
        await create_document(files, changes, "plans/a.md", "theirs", redactor=REDACTOR, who="agent")
    assert (await files.read("workspace/plans/a.md")).data == b"mine"
    assert await changes.list_changes() == []


@pytest.mark.req("AS-FS-02")
async def test_bytes_that_are_no_text_survive_an_edit() -> None:
    files = InMemoryFiles()
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    await files.create("workspace/plans/a.md", b"\xff\xfe one \x80")
    edit = TextReplacement(old="one", new="two")
    await edit_document(files, changes, "plans/a.md", edit, redactor=REDACTOR, who="agent")
    assert (await files.read("workspace/plans/a.md")).data == b"\xff\xfe two \x80"


@pytest.mark.req("HE-C1-index")
async def test_what_would_make_memory_md_too_large_is_refused_and_nothing_is_written() -> None:
    files = InMemoryFiles()
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    with pytest.raises(IndexTooLarge, match=r"300 lines, and may have 200.*memory/topics/NAME\.md"):
        await create_document(files, changes, "MEMORY.md", "- One.\n" * 300, redactor=REDACTOR, who="agent")
    assert await files.info("workspace/MEMORY.md") is None
    await create_document(files, changes, "MEMORY.md", "- One.\n", redactor=REDACTOR, who="agent")
    edit = TextReplacement(old="One", new="One " * 7_000)
    with pytest.raises(IndexTooLarge, match="25,000") as refused:
        await edit_document(files, changes, "MEMORY.md", edit, redactor=REDACTOR, who="agent")
    assert refused.value.cap == "bytes"
    assert (await files.read("workspace/MEMORY.md")).data == b"- One.\n"
