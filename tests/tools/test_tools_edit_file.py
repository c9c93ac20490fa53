"""write_file and edit_file: a whole file or none, only where a tool may write, and never without who has to agree."""

import errno
import os
import stat

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desks import Desks, Person
from disks import FailingDisk, StepDisk
from ricordo.agent.tools.file_edits import MAX_WRITE_BYTES, unified_diff
from ricordo.errors import InvalidSetting

pytestmark = pytest.mark.anyio

NOT_A_TOOLS = [
    "/profile.json",
    "/memory/2026-11-21.md",
    "/memory/archive/2026-08-01.md",
    "/memory/long/01abc.md",
    "/memory/topics/deep/a.md",
    "/memory/topics/a.txt",
    "/memory/.tombstones.jsonl",
    "/memory/.consolidation_state",
    "/agents/main/sessions/s1.log.jsonl",
    "/agents/main/state/s1.json",
    "/sessions/index.json",
    "/large_tool_results/s1/a.txt",
    "/rules/a.md",
    "/usage.jsonl",
    "/history/changes/a.json",
    "/memory.md",
    "/plans",
    "/",
]


@pytest.mark.req("AS-FS-02")
async def test_a_write_in_the_workspace_is_one_reversible_change_by_the_agent(desks: Desks) -> None:
    desk = desks()
    for path in ("/plans/next.md", "/plans/deep/er.md", "/memory/topics/deploy.md", "/MEMORY.md"):
        assert "was created with 4 bytes" in await desk.use("write_file", path=path, content="one\n")
        assert "was changed and has 4 bytes now" in await desk.use("write_file", path=path, content="two\n")
        told = await desk.use("edit_file", path=path, old_text="two", new_text="three")
        assert (await desk.root.read(f"workspace{path}")).data == b"three\n"
        newest, before, first = (await desk.changes.list_changes())[:3]
        assert newest.id in told
        assert {(change.actor, change.action) for change in (newest, before, first)} == {("agent", "tool")}
        [changed] = newest.files
        assert (changed.path, changed.before) == (f"workspace{path}", before.files[0].after)
        assert await desk.changes.read_content(changed.before) == b"two\n"
    count = len(await desk.changes.list_changes())
    assert "is so already" in await desk.use("write_file", path="/plans/next.md", content="three\n")
    assert len(await desk.changes.list_changes()) == count


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize("path", NOT_A_TOOLS)
async def test_what_is_not_a_tools_to_write_is_refused_and_stays(desks: Desks, yes: Person, path: str) -> None:
    desk = desks(yes)
    inside = path.strip("/")
    if inside and not inside.startswith("plans"):
        desks.put(f".ricordo/workspace/{inside}", "as it was")
    for told in (
        await desk.use("write_file", path=path, content="mine"),
        await desk.use("edit_file", path=path, old_text="as it was", new_text="mine"),
    ):
        assert told.startswith("failed: ")
        assert "is not a tool's to write" in told
    if path.startswith(("/memory/", "/profile")):
        assert "`remember`" in told
    for info in await desk.root.list():
        assert b"mine" not in (await desk.root.read(info.path)).data
    assert yes.asked == []


@pytest.mark.req("FC-SECRET")
async def test_secrets_never_reach_the_workspace(desks: Desks) -> None:
    desk = desks()
    key = "sk-ant-api03-" + "Zq7" * 31 + "AA"
    told = await desk.use("write_file", path="/plans/a.md", content=f"use {key} here\n")
    written = (await desk.root.read("workspace/plans/a.md")).data.decode()
    assert key not in written + told
    assert written.startswith("use [secret:")


@pytest.mark.req("GO-G26-diff")
async def test_a_write_in_the_working_directory_shows_the_change_and_waits_for_a_yes(desks: Desks, yes: Person) -> None:
    desks.put("src/a.py", "one\ntwo\nthree\n")
    desk = desks(yes)
    assert await desk.use("edit_file", path="src/a.py", old_text="two", new_text="2") == (
        "src/a.py was changed and has 12 bytes now."
    )
    assert await desk.use("write_file", path="new/b.py", content="b") == "new/b.py was created with 1 bytes."
    assert [(asked.tool, asked.action, asked.target, asked.change) for asked in yes.asked] == [
        (
            "edit_file",
            "change",
            "src/a.py",
            "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
        ),
        (
            "write_file",
            "create",
            "new/b.py",
            "--- /dev/null\n+++ b/new/b.py\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n",
        ),
    ]
    assert desk.tree() == {"new/b.py": b"b", "src/a.py": b"one\n2\nthree\n"}
    assert await desk.changes.list_changes() == []


@pytest.mark.req("GO-G26-diff")
async def test_without_a_yes_nothing_is_written_in_the_working_directory(desks: Desks, no: Person) -> None:
    desks.put("a.txt", "one\n")
    for desk, said in ((desks(no), "not approved: nothing was written"), (desks(None), "there is nobody to ask")):
        for told in (
            await desk.use("write_file", path="a.txt", content="two\n"),
            await desk.use("edit_file", path="a.txt", old_text="one", new_text="two"),
            await desk.use("write_file", path="b.txt", content="two\n"),
        ):
            assert told.startswith("failed: ")
            assert said in told
        assert desk.tree() == {"a.txt": b"one\n"}
    assert [asked.target for asked in no.asked] == ["a.txt", "a.txt", "b.txt"]


@pytest.mark.req("AS-FS-02")
async def test_what_changes_while_a_person_thinks_is_not_written_over(desks: Desks) -> None:
    class Slow(Person):
        async def __call__(self, asked: object) -> bool:
            await anyio.to_thread.run_sync(desks.put, "a.txt", "from a person\n")
            return True

    desks.put("a.txt", "one\n")
    told = await desks(Slow(True)).use("edit_file", path="a.txt", old_text="one", new_text="two")
    assert told.startswith("failed: a.txt changed since it was read")
    assert (desks.folder / "a.txt").read_text() == "from a person\n"


async def test_an_executable_file_stays_one_and_a_new_file_is_as_open_as_its_folder(desks: Desks, yes: Person) -> None:
    script = desks.put("run.sh", "echo one\n")
    os.chmod(script, 0o755)
    os.chmod(desks.folder, 0o755)
    desk = desks(yes)
    await desk.use("edit_file", path="run.sh", old_text="one", new_text="two")
    await desk.use("write_file", path="new.txt", content="x")
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert stat.S_IMODE((desks.folder / "new.txt").stat().st_mode) == 0o644


async def test_a_write_that_is_cancelled_half_way_leaves_the_file_executable(desks: Desks, yes: Person) -> None:
    script = desks.put("run.sh", "echo one\n")
    os.chmod(script, 0o755)
    cancelled = anyio.CancelScope()
    loop = anyio.lowlevel.current_token()

    def cancel(_: int) -> None:
        if disk.steps[-1] == "rename":
            anyio.from_thread.run_sync(cancelled.cancel, token=loop)

    disk = StepDisk(cancel)
    with cancelled:
        await desks(yes, disk=disk).use("edit_file", path="run.sh", old_text="one", new_text="two")
    assert cancelled.cancel_called
    assert script.read_text() == "echo two\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755


@pytest.mark.req("AS-FS-02")
async def test_the_text_to_replace_occurs_once_or_all_are_asked_for(desks: Desks, yes: Person) -> None:
    desks.put("a.txt", "one one one\n")
    desk = desks(yes)
    for wrong, said in (("one", "occurs 3 times"), ("two", "does not occur"), ("", "does not occur")):
        told = await desk.use("edit_file", path="a.txt", old_text=wrong, new_text="2")
        assert told.startswith("failed: ")
        assert said in told
    assert yes.asked == []
    await desk.use("edit_file", path="a.txt", old_text="one", new_text="two", all=True)
    assert desk.tree() == {"a.txt": b"two two two\n"}
    assert (await desk.use("edit_file", path="b.txt", old_text="a", new_text="b")) == "failed: There is no file b.txt."


async def test_a_file_too_large_for_a_tool_is_not_written(desks: Desks, yes: Person) -> None:
    desk = desks(yes)
    for path in ("a.txt", "/plans/a.md"):
        assert "A tool writes at most" in await desk.use("write_file", path=path, content="x" * (MAX_WRITE_BYTES + 1))
    assert desk.tree() == {}
    large = desks.put("large.log", "x" * (MAX_WRITE_BYTES + 1))
    for name, more in (("write_file", {"content": "short"}), ("edit_file", {"old_text": "x", "new_text": "y"})):
        assert "tools change files of at most" in await desk.use(name, path="large.log", **more)
    assert large.stat().st_size == MAX_WRITE_BYTES + 1
    assert yes.asked == []


@pytest.mark.req("GO-D9")
@pytest.mark.parametrize(("path", "code"), [("a.txt", errno.ENOSPC), ("/plans/a.md", errno.EIO)])
async def test_a_disk_that_fails_at_any_step_leaves_the_old_file_or_the_new_one(
    desks: Desks, yes: Person, path: str, code: int
) -> None:
    old, new = "old line\n" * 50, "a new line\n" * 60
    real = f".ricordo/workspace{path}" if path.startswith("/") else path
    counting = StepDisk(lambda _: None)
    desks.put(real, old)
    await desks(yes, disk=counting).use("write_file", path=path, content=new)
    assert len(counting.steps) > 3
    seen = set()
    for step in range(1, len(counting.steps) + 1):
        desks.put(real, old)
        disk = FailingDisk(step, code, halves=True)
        told = await desks(yes, disk=disk).use("write_file", path=path, content=new)
        content = (desks.folder / real).read_text()
        assert content in {old, new}, (step, disk.steps)
        # once it has its name, a folder that can't be synced does not take the file away again
        assert content == old or not told.startswith("failed: ") or disk.steps[-1] == "sync_folder", (step, disk.steps)
        assert not [name for name in os.listdir((desks.folder / real).parent) if name.startswith(".~")]
        seen.add(content)
        # the next one works, whatever was left behind
        assert not (await desks(yes).use("write_file", path=path, content=f"{new}{step}\n")).startswith("failed: ")
    assert old in seen


_LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d"]), max_size=8).map("".join)


@given(before=st.one_of(st.none(), _LINES), after=_LINES, repeated=st.sampled_from([0, 6_000]))
def test_a_diff_holds_every_line_that_goes_and_every_line_that_comes(
    before: str | None, after: str, repeated: int
) -> None:
    # with many equal lines the linear form is taken
    old, new = ("x\n" * repeated + text for text in (before or "", after))
    diff = unified_diff(None if before is None else old.encode(), new.encode(), "a.txt")
    lines = diff.splitlines(keepends=True)[2:]
    gone = [line[1:] for line in lines if line.startswith("-")]
    come = [line[1:] for line in lines if line.startswith("+")]
    kept = [line[1:] for line in lines if line.startswith(" ")]

    def counted(text: str) -> list[str]:
        return sorted(line if line.endswith("\n") else f"{line}\n" for line in text.splitlines(keepends=True))

    if not repeated:
        assert len(gone) - len(come) == len(counted(old)) - len(counted(new))
    assert set(gone) <= set(counted(old))
    assert set(come) <= set(counted(new))
    assert len(kept) + len(gone) <= len(counted(old))
    changed = counted(old) != counted(new)
    assert not changed or gone or come


def test_a_shell_needs_to_know_its_folder(desks: Desks, yes: Person) -> None:
    with pytest.raises(InvalidSetting, match="folder"):
        desks(yes, folder=None, shell=True)
