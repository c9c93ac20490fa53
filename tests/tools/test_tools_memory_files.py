"""The memory tool of six commands: it says what Anthropic's documentation says, and harms nothing else."""

from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desks import CONTEXT
from ricordo.agent import Tool
from ricordo.agent.tools import memory_files_tool
from ricordo.agent.tools.memory import memory_search_tool
from ricordo.agent.tools.memory_files import MAX_MEMORY_FILE_BYTES, MAX_MEMORY_FILES
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import ToolFailed
from ricordo.guard import Redactor, parse_fence
from ricordo.runtime import Dependencies, open_workspace
from ricordo.scope import Scope
from ricordo.storage import FileStore
from ricordo.storage.local import LocalFiles
from ricordo.stores import Undoes
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-MEMTOOL")]
KEY = "sk-ant-api03-" + "Zq7" * 31 + "AA"
NOTES = "/memories/notes.md"
HEADER = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"
ROOTS = [
    "/memories", "/memories/", "/memories//", "/memories/.", "/memories/./", "/memories/./.", "/memories/.//./",
    "/memories/%2e", "/memories/%2E/", "/memories/%252e", "/memories/%2f", "/memories/a/..", "/memories/a/../",
    "/memories/..", "/memories/../memories", "/memories/../memories/", "/memories\\", "/memories/\\", "/memories/․",
    "/memories/．", "/memories／", "/memories∕", "/memories/ ", "/memories/\u200b", "/memories\u200b", "/memories/\x00",
    " /memories", "/memories ", "//memories", "/./memories", "/../memories", "memories", "memories/", "./memories",
    "/Memories", "/MEMORIES", "/memories/..\\", "/%6demories", "/memories%2f", "file:///memories", "~/memories", "/",
    "", ".", "..", "/memories/a/%2e%2e", "/memories/a%2f..", "/memories/;/", "/memories?", "/memories#", "/memories/*",
]  # fmt: skip
OTHERS = [
    "/memoriesX/a/notes.md", "/memories.md/a/notes.md", "/memories-a/notes.md", "/Memories/a/notes.md",
    "memories/a/notes.md", "//memories/a/notes.md", "/./memories/a/notes.md", "/workspace/memories/a/notes.md",
    "/memories/../memories/a/notes.md", "/memories/a/../a/notes.md", "/memories/%2e%2e/a/notes.md",
    "/memories/a%2fnotes.md", "/memories/a%252Fnotes.md", "/memories/%2e/a/notes.md", "/memories%2fa/notes.md",
    "/memories/a%5cnotes.md", "/memories\\a\\notes.md", "/memories/a\\notes.md", "/memories/a∕notes.md",
    "/memories/a⁄notes.md", "/memories/a／notes.md", "/memories/․․/a/notes.md", "/memories/．．/a/notes.md",
    "/memories/‥/a/notes.md", "/memories/.../a/notes.md", "/memories/a/notes.md\u200b", "/memories/a/notes.md\x00",
    "/memories/a/notes.md%00", "/memories/a /notes.md", "/memories/a/notes.md ", "/memories/a/notes.md.",
    "/memories/a/.notes.md", "/memories/a/%2enotes.md", "/memories/" + "a" * 300, "/memories" + "/a" * 600,
]  # fmt: skip
PIECES = [
    "memories", "Memories", "memoriesX", "/", "//", "\\", ".", "..", "...", "%2e", "%2e%2e", "%2f", "%252e%252e", "%5c",
    "․․", "．．", "‥", "∕", "／", "⁄", "a", "notes.md", "MEMORY.md", "memory", "guard.key", " ", "\u200d", "\x00", "~",
    "workspace", "node_modules", ".hidden", "C:", "*", "nul",
]  # fmt: skip
PATHS = st.one_of(
    st.sampled_from(ROOTS),
    st.lists(st.sampled_from(PIECES), max_size=7).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=6).map(lambda pieces: f"/memories{''.join(pieces)}"),
    st.text(max_size=12).map(lambda text: f"/memories/{text}"),
)


def _tool(files: FileStore, root: Path | None = None) -> Tool:
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    return memory_files_tool(files, changes, redactor=Redactor(bytes(32)), root=root)


async def _told(memory: Tool, command: str, **arguments: object) -> str:
    """Return what the model is told; an error begins with `failed: `."""
    try:
        return str(await memory({"command": command, **arguments}, CONTEXT))  # type: ignore[dict-item]
    except ToolFailed as error:
        return f"failed: {error}"


async def _bytes(files: FileStore, path: str = "notes.md") -> bytes:
    return (await files.read(f"workspace/memories/{path}")).data


async def _tree(files: FileStore, prefix: str = "") -> dict[str, bytes]:
    return {info.path: (await files.read(info.path)).data for info in await files.list(prefix)}


async def _beside() -> InMemoryFiles:
    """Return a root with what no command may touch, and a file that may be."""
    files = InMemoryFiles()
    for path in ("guard.key", "MEMORY.md", "workspace/MEMORY.md", "workspace/memory/a.md", "workspace/memoriesX/a.md",
                 "workspace/Memories/a.md", "workspace/a.md", "memories/a.md"):  # fmt: skip
        await files.create(path, b"not for this tool\n")
    await files.create("workspace/memories/a/notes.md", b"mine\n")
    return files


def _outside(tree: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in tree.items() if not path.startswith(("workspace/memories/", "history/"))}


@pytest.mark.req("CC-MEMTOOL", "AS-FS-02")
async def test_the_six_commands_answer_in_the_documented_words() -> None:
    files = InMemoryFiles()
    memory = _tool(files)
    assert await _told(memory, "view", path="/memories") == f"{HEADER.format('/memories')}\n0B\t/memories"
    text = "Hello World\nThis is line two\n"
    created = await _told(memory, "create", path=NOTES, file_text=text)
    assert created == f"File created successfully at: {NOTES}"
    assert await _told(memory, "view", path=NOTES) == (
        f"Here's the content of {NOTES} with line numbers:\n     1\tHello World\n     2\tThis is line two"
    )
    edited = await _told(memory, "str_replace", path=NOTES, old_str="line two", new_str="line 2")
    assert edited == "The memory file has been edited.\n     1\tHello World\n     2\tThis is line 2"
    inserted = await _told(memory, "insert", path=NOTES, insert_line=1, insert_text="Between\n")
    assert inserted == f"The file {NOTES} has been edited."
    assert await _bytes(files) == b"Hello World\nBetween\nThis is line 2\n"
    renamed = await _told(memory, "rename", old_path=NOTES, new_path="/memories/old/final.md")
    assert renamed == f"Successfully renamed {NOTES} to /memories/old/final.md"
    assert await _told(memory, "view", path="/memories") == (
        f"{HEADER.format('/memories')}\n35B\t/memories\n35B\t/memories/old/\n35B\t/memories/old/final.md"
    )
    await _told(memory, "create", path="/memories/old/a/b/c/deep.md", file_text="deep\n")
    assert await _told(memory, "delete", path="/memories/old") == "Successfully deleted /memories/old"
    assert await files.list("workspace") == []


@pytest.mark.req("AS-FS-02")
async def test_what_can_not_be_done_is_told_in_the_documented_words() -> None:
    files = InMemoryFiles()
    memory = _tool(files)
    await _told(memory, "create", path=NOTES, file_text="one\ntwo one\nthree\n")
    await _told(memory, "create", path="/memories/folder/a.md", file_text="a\n")
    await _told(memory, "create", path="/memories/twice.md", file_text="so and so\n")
    before = await _tree(files, "workspace")
    none = "/memories/none.md"
    missing = f"The path {none} does not exist"
    wrong: list[tuple[str, dict[str, object], str]] = [
        ("view", {"path": none}, f"{missing}. Please provide a valid path."),
        ("create", {"path": NOTES, "file_text": "x"}, f"Error: File {NOTES} already exists"),
        ("create", {"path": "/memories/folder", "file_text": "x"}, "Error: File /memories/folder already exists"),
        ("create", {"path": "/memories", "file_text": "x"}, "Error: File /memories already exists"),
        ("str_replace", {"path": none, "old_str": "a"}, f"Error: {missing}. Please provide a valid path."),
        ("str_replace", {"path": NOTES, "old_str": "four"},
         f"No replacement was performed, old_str `four` did not appear verbatim in {NOTES}."),
        ("str_replace", {"path": NOTES, "old_str": "one"},
         "No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 2."
         " Please ensure it is unique"),
        ("str_replace", {"path": NOTES, "old_str": "e\n"},
         "No replacement was performed. Multiple occurrences of old_str `e\n` in lines: 1, 2, 3."
         " Please ensure it is unique"),
        ("str_replace", {"path": "/memories/twice.md", "old_str": "so"},
         "No replacement was performed. Multiple occurrences of old_str `so` in lines: 1. Please ensure it is unique"),
        ("str_replace", {"path": NOTES, "old_str": ""},
         f"No replacement was performed, old_str `` did not appear verbatim in {NOTES}."),
        ("insert", {"path": none, "insert_line": 0, "insert_text": "x"}, f"Error: {missing}"),
        ("insert", {"path": "/memories/folder", "insert_line": 0, "insert_text": "x"},
         "Error: The path /memories/folder does not exist"),
        ("insert", {"path": NOTES, "insert_line": 4, "insert_text": "x"},
         "Error: Invalid `insert_line` parameter: 4. It should be within the range of lines of the file: [0, 3]"),
        ("insert", {"path": NOTES, "insert_line": -1, "insert_text": "x"},
         "Error: Invalid `insert_line` parameter: -1. It should be within the range of lines of the file: [0, 3]"),
        ("delete", {"path": none}, f"Error: {missing}"),
        ("rename", {"old_path": none, "new_path": "/memories/b.md"}, f"Error: {missing}"),
        ("rename", {"old_path": NOTES, "new_path": "/memories/folder/a.md"},
         "Error: The destination /memories/folder/a.md already exists"),
        ("rename", {"old_path": NOTES, "new_path": "/memories/folder"},
         "Error: The destination /memories/folder already exists"),
        ("rename", {"old_path": NOTES, "new_path": "/memories/"}, "Error: The destination /memories already exists"),
        ("rename", {"old_path": NOTES, "new_path": NOTES}, f"Error: The destination {NOTES} already exists"),
    ]  # fmt: skip
    for command, arguments, told in wrong:
        assert await _told(memory, command, **arguments) == f"failed: {told}"
    assert await _tree(files, "workspace") == before


@pytest.mark.req("AS-BUG-27")
async def test_a_place_that_can_not_be_is_refused_and_nothing_is_written() -> None:
    files = InMemoryFiles()
    memory = _tool(files)
    await _told(memory, "create", path=NOTES, file_text="one\n")
    await _told(memory, "create", path="/memories/folder/a.md", file_text="a\n")
    before = await _tree(files, "workspace")
    for command, arguments, told in (
        ("create", {"path": f"{NOTES}/a.md", "file_text": "x"}, "is a file, not a directory"),
        ("create", {"path": "/memories/NOTES.md", "file_text": "x"}, "already exists"),
        ("create", {"path": "/memories/.hidden.md", "file_text": "x"}, "hidden name"),
        ("create", {"path": f"/memories/{KEY}.md", "file_text": "x"}, "holds a secret"),
        (
            "create",
            {"path": "/memories/big.md", "file_text": "x" * (MAX_MEMORY_FILE_BYTES + 1)},
            "at most 262,144 bytes",
        ),
        (
            "insert",
            {"path": NOTES, "insert_line": 0, "insert_text": "x" * MAX_MEMORY_FILE_BYTES},
            "at most 262,144 bytes",
        ),
        ("rename", {"old_path": "/memories/folder", "new_path": "/memories/folder/b"}, "lies within"),
        ("rename", {"old_path": "/memories/folder", "new_path": f"{NOTES}/b"}, "is a file, not a directory"),
        ("view", {}, "needs `path`"),
        ("create", {"path": NOTES}, "needs `file_text`"),
        ("insert", {"path": NOTES, "insert_text": "x"}, "needs `insert_line`"),
        ("rename", {"old_path": NOTES}, "needs `new_path`"),
        ("clear", {}, "`command` has to be"),
    ):
        refused = await _told(memory, command, **arguments)
        assert refused.startswith("failed: "), (command, arguments)
        assert told in refused
    assert await _tree(files, "workspace") == before


@pytest.mark.req("CC-MEMTOOL")
@pytest.mark.parametrize("path", ROOTS)
async def test_the_root_is_never_deleted_nor_renamed_however_it_is_spelled(path: str) -> None:
    files = await _beside()
    before = await _tree(files)
    memory = _tool(files)
    assert (await _told(memory, "delete", path=path)).startswith("failed: ")
    assert (await _told(memory, "rename", old_path=path, new_path="/memories/b")).startswith("failed: ")
    assert await _tree(files) == before


@pytest.mark.req("AS-FS-01", "AS-BUG-27")
@pytest.mark.parametrize("path", OTHERS)
async def test_a_path_that_could_be_read_as_another_is_refused(path: str) -> None:
    files = await _beside()
    before = await _tree(files)
    memory = _tool(files)
    assert (await _told(memory, "view", path=path)).startswith("failed: ")
    assert (await _told(memory, "create", path=path, file_text="x")).startswith("failed: ")
    assert (await _told(memory, "rename", old_path="/memories/a/notes.md", new_path=path)).startswith("failed: ")
    assert await _tree(files) == before


async def test_a_name_in_any_script_is_taken_as_it_is_and_empty_parts_do_not_count() -> None:
    files = await _beside()
    memory = _tool(files)
    for name in ("años.md", "図.md", "100% sure.md", "100%25.md", "a b.md", "notes.txt", "~", "memories"):
        assert "created" in await _told(memory, "create", path=f"/memories/{name}", file_text="x")
        assert await _bytes(files, name) == b"x"
    for spelled in ("/memories/./a//notes.md", "/memories/a/notes.md/"):
        assert (await _told(memory, "view", path=spelled)).endswith("     1\tmine")


@pytest.mark.req("AS-FS-01", "GO-G26-diff")
@given(PATHS, PATHS)
async def test_no_spelling_of_a_path_deletes_the_root_or_reaches_anything_else(path: str, other: str) -> None:
    files = await _beside()
    await files.create("workspace/memories/kept.md", b"kept\n")
    before = await _tree(files)
    memory = _tool(files)
    commands: list[tuple[str, dict[str, object]]] = [
        ("view", {"path": path}),
        ("str_replace", {"path": path, "old_str": "not for", "new_str": "for"}),
        ("insert", {"path": path, "insert_line": 0, "insert_text": "x"}),
        ("create", {"path": path, "file_text": "x\n"}),
        ("rename", {"old_path": path, "new_path": other}),
        ("delete", {"path": other}),
    ]
    for command, arguments in commands:
        told = await _told(memory, command, **arguments)
        assert "not for this tool" not in told
    after = await _tree(files)
    assert _outside(after) == _outside(before)
    # whatever was named, it was one file or folder below the root, and there are two
    assert any(path.startswith("workspace/memories/") for path in after)


@pytest.mark.req("AS-FS-01")
async def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "root"
    files = LocalFiles(root)
    memory = _tool(files, root)
    await _told(memory, "create", path=NOTES, file_text="mine\n")
    (root / "workspace/memory").mkdir()
    (root / "workspace/memory/a.md").write_text("not for this tool\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.md").write_text("not for this tool\n")
    for name, target in (("in", root / "workspace/memory"), ("out", tmp_path / "outside"), ("up", root)):
        (root / "workspace/memories" / name).symlink_to(target)
    (root / "workspace/memories/file.md").symlink_to(root / "workspace/memory/a.md")
    (root / "workspace/memories/hard").mkdir()
    for path in ("in", "in/a.md", "out", "out/a.md", "up", "up/guard.key", "file.md"):
        named = f"/memories/{path}"
        for command, arguments in (
            ("view", {"path": named}),
            ("create", {"path": named, "file_text": "x"}),
            ("create", {"path": f"{named}/new.md", "file_text": "x"}),
            ("str_replace", {"path": named, "old_str": "not", "new_str": "x"}),
            ("insert", {"path": named, "insert_line": 0, "insert_text": "x"}),
            ("delete", {"path": named}),
            ("rename", {"old_path": named, "new_path": "/memories/b.md"}),
            ("rename", {"old_path": NOTES, "new_path": f"{named}/b.md"}),
        ):
            told = await _told(memory, command, **arguments)
            assert told.startswith("failed: "), (command, arguments)
            assert "not for this tool" not in told
    assert await _told(memory, "view", path="/memories") == (
        f"{HEADER.format('/memories')}\n5B\t/memories\n5B\t/memories/notes.md"
    )
    assert (root / "workspace/memory/a.md").read_text() == (tmp_path / "outside/a.md").read_text()
    assert "empty directory" in await _told(memory, "create", path="/memories/hard", file_text="x")
    assert sorted(each.name for each in (tmp_path / "outside").iterdir()) == ["a.md"]
    linked = tmp_path / "linked"
    (linked / "workspace").mkdir(parents=True)
    (linked / "workspace/memories").symlink_to(tmp_path / "outside")
    for command, arguments in (("view", {"path": "/memories"}), ("delete", {"path": "/memories/a.md"})):
        assert (await _told(_tool(LocalFiles(linked), linked), command, **arguments)).startswith("failed: ")


async def test_lines_end_as_they_did() -> None:
    files = InMemoryFiles()
    memory = _tool(files)
    await files.create("workspace/memories/notes.md", b"one\r\ntwo\r\nthree\r\n")
    assert await _told(memory, "view", path=NOTES) == (
        f"Here's the content of {NOTES} with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree"
    )
    await _told(memory, "str_replace", path=NOTES, old_str="one\ntwo", new_str="1\n2\n2b")
    await _told(memory, "insert", path=NOTES, insert_line=4, insert_text="four\nfive")
    await _told(memory, "insert", path=NOTES, insert_line=0, insert_text="zero")
    assert await _bytes(files) == b"zero\r\n1\r\n2\r\n2b\r\nthree\r\nfour\r\nfive\r\n"
    await files.create("workspace/memories/open.md", b"one\ntwo")
    await _told(memory, "insert", path="/memories/open.md", insert_line=2, insert_text="three\r\n")
    assert await _bytes(files, "open.md") == b"one\ntwo\nthree\n"
    await files.create("workspace/memories/odd.md", b"a\xff\r\nb\nc\r\n")
    await _told(memory, "str_replace", path="/memories/odd.md", old_str="b", new_str="B")
    assert await _bytes(files, "odd.md") == b"a\xff\r\nB\nc\r\n"


@given(
    st.lists(st.sampled_from(["a", "b", "aa", ""]), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.integers(0, 5),
    st.integers(0, 8),
    st.integers(1, 4),
)
async def test_an_edit_changes_what_it_names_and_no_other_byte(
    lines: list[str], ending: str, closed: bool, at: int, start: int, length: int
) -> None:
    text = "\n".join(lines) + ("\n" if closed and lines else "")
    files = InMemoryFiles()
    memory = _tool(files)
    await files.create("workspace/memories/notes.md", text.replace("\n", ending).encode())
    old = text[start : start + length]
    starts = [place for place in range(len(text)) if old and text.startswith(old, place)]
    told = await _told(memory, "str_replace", path=NOTES, old_str=old, new_str="X\nY")
    assert told.startswith("failed: ") == (len(starts) != 1)
    ends = ending if "\n" in text else "\n"
    if len(starts) == 1:
        text = text[: starts[0]] + "X\nY" + text[starts[0] + len(old) :]
    assert (await _bytes(files)).replace(ends.encode(), b"\n") == text.encode()
    kept = text.removesuffix("\n").split("\n") if text else []
    told = await _told(memory, "insert", path=NOTES, insert_line=at, insert_text="Z")
    assert told.startswith("failed: ") == (at > len(kept))
    if at <= len(kept):
        # the last line is closed only where something comes after it
        tail = "\n" if text.endswith("\n") or at == len(kept) else ""
        text = "\n".join([*kept[:at], "Z", *kept[at:]]) + tail
    assert (await _bytes(files)).replace(ends.encode(), b"\n") == text.encode()


async def test_a_long_text_is_viewed_in_parts_to_its_end() -> None:
    files = InMemoryFiles()
    memory = _tool(files)
    lines = [f"entry {number} {'x' * 90}" for number in range(400)] + ["long " * 8_000, "end"]
    await files.create("workspace/memories/notes.md", "\n".join(lines).encode())
    seen: list[str] = []
    span: list[int] | None = None
    while True:
        told = await _told(memory, "view", path=NOTES, view_range=span)
        assert len(told) <= 16_500 or span == [401, 401]
        *shown, last = told.split("\n")[1:]
        notes = [line for line in (*shown, last) if line.startswith("[")]
        seen += [line.split("\t", 1)[1] for line in (*shown, last) if not line.startswith("[")]
        if any("longer" in note for note in notes):
            whole = await _told(memory, "view", path=NOTES, view_range=[401, 401])
            seen[-1] = whole.split("\t", 1)[1]
        if not any("Go on" in note for note in notes):
            break
        span = [int(part) for part in notes[-1].partition("view_range [")[2].rstrip(".]").split(", ")]
    assert seen == lines
    for wrong in ([0, 3], [5, 4], [403, -1], [1], [1, 2, 3], [-1, -1]):
        assert "Invalid `view_range`" in await _told(memory, "view", path=NOTES, view_range=wrong)
    assert (await _told(memory, "view", path=NOTES, view_range=[402, -1])).endswith("   402\tend")
    await files.create("workspace/memories/picture.png", b"\x89PNG\r\n\x1a\n" + bytes(64))
    assert "is not a text" in await _told(memory, "view", path="/memories/picture.png")
    await files.create("workspace/memories/lines.md", b"\n" * 1_000_000)
    assert await _told(memory, "view", path="/memories/lines.md") == (
        "failed: File /memories/lines.md exceeds maximum line limit of 999,999 lines."
    )


async def test_a_folder_is_shown_two_levels_deep_without_what_is_hidden() -> None:
    files = InMemoryFiles()
    memory = _tool(files)
    for path, size in (
        ("b.md", 100), ("a/one.md", 1024), ("a/two/three.md", 1536), ("a/two/four/five.md", 1024 * 1024),
        (".git/config", 9), ("a/.hidden", 9), ("node_modules/x/y.md", 9),
    ):  # fmt: skip
        await files.create(f"workspace/memories/{path}", b"x" * size)
    assert (await _told(memory, "view", path="/memories/")).splitlines() == [
        HEADER.format("/memories"),
        "1M\t/memories",
        "1M\t/memories/a/",
        "1K\t/memories/a/one.md",
        "1M\t/memories/a/two/",
        "100B\t/memories/b.md",
    ]
    assert (await _told(memory, "view", path="/memories/a/two")).splitlines()[1:] == [
        "1M\t/memories/a/two",
        "1M\t/memories/a/two/four/",
        "1M\t/memories/a/two/four/five.md",
        "1.5K\t/memories/a/two/three.md",
    ]


@pytest.mark.req("FC-SECRET")
async def test_no_secret_is_written() -> None:
    files = InMemoryFiles()
    memory = _tool(files)
    created = await _told(memory, "create", path=NOTES, file_text=f"key: {KEY}\nend\n")
    assert created.endswith("with marks in the place of secrets")
    await _told(memory, "insert", path=NOTES, insert_line=0, insert_text=KEY)
    await _told(memory, "str_replace", path=NOTES, old_str="end", new_str=f"end {KEY}")
    assert (await _bytes(files)).count(b"[secret:") == 3
    assert not any(KEY.encode() in data for data in (await _tree(files)).values())


async def test_there_are_only_so_many_files() -> None:
    files = InMemoryFiles()
    for number in range(MAX_MEMORY_FILES):
        await files.create(f"workspace/memories/{number}.md", b"x")
    memory = _tool(files)
    assert "1000 files already" in await _told(memory, "create", path=NOTES, file_text="x")
    await _told(memory, "delete", path="/memories/7.md")
    assert "created" in await _told(memory, "create", path=NOTES, file_text="x")
    assert "more are not listed" in await _told(memory, "view", path="/memories")


@pytest.mark.req("AS-FS-02")
async def test_changes_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")
    one, other = _tool(files, tmp_path / "root"), _tool(LocalFiles(tmp_path / "root"), tmp_path / "root")
    told: list[str] = []

    async def tell(memory: Tool, command: str, **arguments: object) -> None:
        told.append(await _told(memory, command, **arguments))

    async with anyio.create_task_group() as group:
        for name, memory in (("a", one), ("b", other)):
            group.start_soon(partial(tell, memory, "create", path=NOTES, file_text=f"{name}\n"))
    assert sorted(each.startswith("failed: ") for each in told) == [False, True]
    told.clear()
    async with anyio.create_task_group() as group:
        for at, memory in enumerate([one, other] * 3):
            group.start_soon(partial(tell, memory, "insert", path=NOTES, insert_line=0, insert_text=f"line {at}"))
    assert [each for each in told if each.startswith("failed: ")] == []
    assert sorted((await _bytes(files)).decode().splitlines()[:-1]) == [f"line {at}" for at in range(6)]


@pytest.mark.req("CC-MEMTOOL", "FC-UNDO")
async def test_each_command_is_one_change_that_can_be_undone_and_notes_are_found(tmp_path: Path) -> None:
    root = tmp_path / "root"
    scope = Scope(user="me", project="shop")
    async with open_workspace(root, scope, Dependencies.create()) as workspace:
        place = workspace.memory_root
        undoes = workspace.store.offers(Undoes)
        assert undoes
        memory = memory_files_tool(place.files, place.changes, redactor=place.redactor, root=root)
        await _told(memory, "create", path="/memories/fruit/pears.md", file_text="Pears ship on Friday.\n")
        await _told(memory, "create", path="/memories/fruit/plums.md", file_text="Plums don't.\n")
        search = memory_search_tool(workspace.store)
        assert parse_fence(str(await search({"query": "pears"}, CONTEXT))) == ("Pears ship on Friday.",)
        started = await _tree(place.files, "workspace/memories")
        for command, arguments in (
            ("create", {"path": NOTES, "file_text": "x\n"}),
            ("str_replace", {"path": "/memories/fruit/pears.md", "old_str": "Friday", "new_str": "Monday"}),
            ("insert", {"path": "/memories/fruit/pears.md", "insert_line": 1, "insert_text": "By train."}),
            ("delete", {"path": "/memories/fruit"}),
            ("rename", {"old_path": "/memories/fruit", "new_path": "/memories/food/fruit"}),
        ):
            count = len(await undoes.history())
            assert not (await _told(memory, command, **arguments)).startswith("failed: ")
            newest = (await undoes.history())[0]
            assert len(await undoes.history()) == count + 1
            assert await _tree(place.files, "workspace/memories") != started
            await undoes.undo(newest.id, who="user")
            assert await _tree(place.files, "workspace/memories") == started, command
        for spelled in ROOTS:
            assert (await _told(memory, "delete", path=spelled)).startswith("failed: ")
        assert await _tree(place.files, "workspace/memories") == started
        viewed = memory_files_tool(place.files, None, redactor=place.redactor, root=root)
        assert "Pears" in await _told(viewed, "view", path="/memories/fruit/pears.md")
        assert "only be viewed" in await _told(viewed, "delete", path="/memories/fruit")
