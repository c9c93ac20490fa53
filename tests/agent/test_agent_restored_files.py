"""Files that were read before a compaction stand after it as they are on the disk then, and go with an undo."""

from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, is_valid, settings
from ricordo import CompactionConfig, HarnessAgent
from ricordo.messages import Message, get_mark
from ricordo.testing import Call, Say, ScriptedModel, ScriptItem

pytestmark = [pytest.mark.anyio, pytest.mark.may_block("it writes files between turns")]

LONG = "It is all as it should be, and nothing else was found in that file. " * 40


def config(**more: int) -> CompactionConfig:
    return CompactionConfig(trigger_messages=0, trigger_tokens=0, keep_messages=2, model="offline", **more)  # type: ignore[arg-type]


def agent(root: Path, script: list[ScriptItem], **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "file_tools": True, "compaction": config()} | options
    place = {"workspace": root / ".ricordo", "working_directory": root, "scope": SCOPE}
    return HarnessAgent(ScriptedModel(script), **agent_arguments(**place, **given))


def reading(*names: str) -> list[ScriptItem]:
    return [*(Call("read_file", {"path": name}) for name in names), Say(LONG), Say(LONG)]


def restored(window: tuple[Message, ...]) -> list[Message]:
    return [message for message in window if "ricordo.files" in message.metadata]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(f"# the file {name}\nvalue = 1\n")
    return tmp_path


async def work(one: HarnessAgent) -> None:
    await one.send("Read them, and tell me all that you find in them.")
    await one.send("And what do you think of them?")


@pytest.mark.req("AS-COMPACT-10")
async def test_files_that_were_read_last_are_read_anew_after_a_summary_and_go_with_an_undo(root: Path) -> None:
    async with agent(root, [*reading("a.py", "b.py"), *reading("c.py")]) as one:
        await work(one)
        before = one.window
        (root / "b.py").write_text("# the file b\nvalue = 2\n")
        await one.compact()
        summary, files, *rest = one.window
        assert (get_mark(summary), get_mark(files)) == ("summary", "notice")
        assert rest == [*before[-2:]]
        assert files.text.index("the file a") < files.text.index("the file b")
        assert "value = 2" in files.text
        await one.compactions.undo()
        assert one.window == before
        await one.compact()
        await work(one)
        await one.compact()
        (again,) = restored(one.window)
        assert all(again.text.count(f"the file {name}") == 1 for name in "abc"), "what stood restored is read once more"
        assert is_valid(one.window)


@pytest.mark.req("CC-ENFORCE")
async def test_what_a_rule_forbids_what_is_gone_and_what_lies_in_the_workspace_is_not_read_again(root: Path) -> None:
    async with agent(root, reading("a.py", "b.py", "c.py", "/MEMORY.md")) as one:
        await work(one)
        await one.permissions.deny("read_file(a.py)")
        await one.permissions.ask("read_file(b.py)")
        (root / "c.py").unlink()
        await one.compact()
        assert get_mark(one.window[0]) == "summary"
        assert restored(one.window) == []


@pytest.mark.parametrize(
    "options",
    [{"compaction": config(restore_files=0)}, {"compaction": config(restore_tokens=0)}, {"file_tools": False}],
    ids=["no files", "no tokens", "no tools"],
)
async def test_nothing_is_restored_where_it_is_switched_off_or_there_are_no_file_tools(
    root: Path, options: dict[str, object]
) -> None:
    async with agent(root, reading("a.py"), **options) as one:
        await work(one)
        await one.compact()
        assert get_mark(one.window[0]) == "summary"
        assert restored(one.window) == []


async def test_restored_files_stay_within_their_tokens_and_the_window_gets_smaller(root: Path) -> None:
    (root / "a.py").write_text("".join(f"line {number} of the long file\n" for number in range(2_000)))
    async with agent(root, reading("b.py", "a.py"), compaction=config(restore_tokens=600, restore_files=1)) as one:
        await work(one)
        done = await one.compact()
        (files,) = restored(one.window)
    assert "line 0 of the long file" in files.text
    assert "`read_file` shows the rest" in files.text
    assert "the file b" not in files.text
    assert len(files.text) < 4_000
    assert done.after.tokens < done.before.tokens
