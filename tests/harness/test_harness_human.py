"""What people wrote for the agent: read as it stands, cut with a notice, and one bad file hides no other."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from ricordo.context.prompt import InstructionText, read_agents_file, read_rules
from ricordo.errors import StorageFailed, StorageReadOnly
from ricordo.storage import FileInfo
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio


async def with_rules(**named: bytes) -> InMemoryFiles:
    files = InMemoryFiles()
    for name, data in named.items():
        await files.create(f"workspace/rules/{name}.md", data)
    return files


@pytest.mark.req("GO-G22")
async def test_agents_md_of_the_working_directory_is_read(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes("\ufeffUse tabs – always.\r\n".encode())
    assert await read_agents_file(tmp_path) == InstructionText(source="AGENTS.md", text="Use tabs – always.\n")


@pytest.mark.req("GO-G22")
async def test_without_agents_md_nothing_is_said(tmp_path: Path) -> None:
    assert await read_agents_file(tmp_path) is None
    assert await read_agents_file(tmp_path / "missing") is None
    (tmp_path / "file").write_text("x")
    assert await read_agents_file(tmp_path / "file") is None
    (tmp_path / "AGENTS.md").mkdir()
    assert await read_agents_file(tmp_path) is None


@pytest.mark.req("GO-G22")
async def test_an_empty_agents_md_is_like_none(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text(" \n\n")
    assert await read_agents_file(tmp_path) is None


@pytest.mark.parametrize(("target", "shown"), [("CLAUDE.md", True), ("../up/GUIDE.MD", True), ("../up/id_rsa", False)])
async def test_a_link_by_that_name_leads_to_markdown_or_nowhere(tmp_path: Path, target: str, shown: bool) -> None:
    folder, up = tmp_path / "project", tmp_path / "up"
    folder.mkdir()
    up.mkdir()
    (folder / target).write_text("Use tabs.")
    (folder / "AGENTS.md").symlink_to(target)
    found = await read_agents_file(folder)
    assert found is not None
    assert (found.text == "Use tabs.") == shown
    assert ("Use tabs" in found.text) == shown


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
async def test_a_pipe_by_that_name_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    with anyio.fail_after(20):
        assert await read_agents_file(tmp_path) is None


@pytest.mark.req("AS-BUG-22", "HE-RULES", "GO-G22")
async def test_a_file_that_is_too_long_is_cut_at_the_end_of_a_line_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("one\ntwo\nthree\n" * 10)
    found = await read_agents_file(tmp_path, max_bytes=11)
    assert found is not None
    assert found.text == "one\ntwo\n[Cut here: only whole lines of the first 11 bytes are shown.]"
    whole = await read_agents_file(tmp_path, max_bytes=140)
    assert whole is not None
    assert "Cut" not in whole.text


async def test_bytes_that_are_no_utf_8_are_replaced_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"caf\xe9 and more")
    found = await read_agents_file(tmp_path)
    assert found is not None
    assert found.text == "caf\ufffd and more"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="everything can be read here")
async def test_a_file_that_can_not_be_read_says_so_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("secret")
    (tmp_path / "AGENTS.md").chmod(0)
    found = await read_agents_file(tmp_path)
    assert found is not None
    assert "can't be read" in found.text


@pytest.mark.req("GO-G22", "HE-RULES")
async def test_rules_are_the_markdown_files_of_the_folder_sorted_by_name() -> None:
    files = await with_rules(b=b"Rule B.", a=b"Rule A.", empty=b"\n")
    await files.create("workspace/rules/notes.txt", b"no rule")
    await files.create("workspace/rules/old/c.md", b"no rule")
    await files.create("workspace/rules/.hidden.md", b"no rule")
    await files.create("workspace/rules/Z.MD", b"Rule Z.")
    more = {f"rules/more-{number}.md": f"Rule {number}." for number in range(10, 60)}
    for source, text in more.items():
        await files.create(f"workspace/{source}", text.encode())
    found = await read_rules(files)
    assert [(each.source, each.text) for each in found] == [
        ("rules/Z.MD", "Rule Z."),
        ("rules/a.md", "Rule A."),
        ("rules/b.md", "Rule B."),
        *more.items(),
    ]


@pytest.mark.req("HE-RULES")
async def test_a_root_without_rules_has_none() -> None:
    assert await read_rules(InMemoryFiles()) == ()


@pytest.mark.req("AS-BUG-22", "HE-RULES")
async def test_each_rule_is_cut_and_those_past_the_total_are_only_named() -> None:
    files = await with_rules(a=b"12345678\n" * 4, b=b"12345678\n" * 4, c=b"short")
    found = await read_rules(files, max_bytes=20, max_total_bytes=25)
    assert [each.source for each in found] == ["rules/a.md", "rules/b.md", "rules/c.md"]
    assert "of the first 20 bytes" in found[0].text
    assert "of the first 5 bytes" in found[1].text
    assert "Left out" in found[2].text


class Bad(InMemoryFiles):
    """A store in which one file can't be read, or nothing be listed."""

    def __init__(self, bad: str) -> None:
        super().__init__()
        self._bad = bad

    async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
        if path.endswith(self._bad):
            raise StorageFailed("The disk reported an error.")
        return await super().read_from(path, offset, length)

    async def list(self, prefix: str = "") -> list[FileInfo]:
        if not self._bad:
            raise StorageReadOnly("no listing")
        return await super().list(prefix)


@pytest.mark.req("HE-RULES")
async def test_one_bad_rule_does_not_take_the_others_down() -> None:
    files = Bad("b.md")
    for name in ("a", "b", "c"):
        await files.create(f"workspace/rules/{name}.md", f"Rule {name}.".encode())
    found = await read_rules(files)
    assert [each.text for each in found] == [
        "Rule a.",
        "[This file can't be read: The disk reported an error.]",
        "Rule c.",
    ]


@pytest.mark.req("HE-RULES")
async def test_a_folder_that_can_not_be_listed_says_so() -> None:
    (found,) = await read_rules(Bad(""))
    assert "can't be read" in found.text


@pytest.mark.req("HE-RULES")
async def test_rules_are_read_from_a_disk_without_holding_the_loop(tmp_path: Path) -> None:
    (tmp_path / "root" / "workspace" / "rules").mkdir(parents=True)
    (tmp_path / "root" / "workspace" / "rules" / "a.md").write_text("Rule A.")
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    assert [each.text for each in await read_rules(LocalFiles(tmp_path / "root"))] == ["Rule A."]
    assert await read_agents_file(tmp_path) is not None
