"""One registry of importers: what is installed joins it, and what lies in folders and archives is found by it."""

import json
import zipfile
from pathlib import Path

import pytest

from importing import json_lines, take
from ricordo import read_history
from ricordo.errors import ExtraMissing
from ricordo.importers import ImportedMemory, ImportSource, find_sources, list_formats, read_items
from ricordo.messages import JsonValue

CHAT: list[JsonValue] = [
    {"role": "user", "content": "We deploy only from main."},
    {"role": "assistant", "content": "Noted."},
]
DIARY = """
from ricordo.importers import ImportedMemory

def recognizes(source):
    return source.filename == "diary.json"

def read(source):
    for record in source.records():
        yield ImportedMemory(text=record.value["keep"], line=record.line, metadata={"page": 7})
"""


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str, *, name: str = "diary") -> None:
    """Install a package that offers an importer, as `pip install` does."""
    (folder / "diary_format.py").write_text(DIARY)
    metadata = folder / "diary_format-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: diary-format\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[ricordo.importers]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(folder)


def test_an_installed_importer_reads_its_format_and_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch, "diary_format")
    source = tmp_path / "diary.json"
    source.write_text('[\n{"keep": "Seeds are in the shed."},\n{"keep": "The gate sticks."}\n]')
    [found] = find_sources(ImportSource(source))
    assert found.form is not None
    assert (found.form.name, found.form.origin) == ("diary", "diary-format")
    assert list(read_items(found.source, found.form)) == [
        ImportedMemory(text="Seeds are in the shed.", line=2, metadata={"page": 7}),
        ImportedMemory(text="The gate sticks.", line=3, metadata={"page": 7}),
    ]


def test_an_installed_importer_takes_the_place_of_a_built_in_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [each.name for each in list_formats()]
    _install(tmp_path, monkeypatch, "diary_format", name="codex")
    assert sorted(each.name for each in list_formats()) == sorted(names)
    assert list_formats()[0].origin == "diary-format"


@pytest.mark.parametrize("value", ["diary_formats", "diary_format:missing"])
def test_an_importer_that_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    _install(tmp_path, monkeypatch, value)
    with pytest.raises(ExtraMissing, match="diary of diary-format"):
        take(tmp_path / "chat.json", json.dumps(CHAT))


def test_a_folder_is_read_with_all_that_lies_in_it_and_a_ring_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "inner" / "node_modules").mkdir(parents=True)
    for path in ("b.jsonl", "inner/a.JSON", "inner/node_modules/left.json", "notes.txt"):
        (tmp_path / path).write_text(json_lines(CHAT))
    (tmp_path / "inner" / "ring").symlink_to(tmp_path)
    assert take(tmp_path).texts == ["We deploy only from main.", "Noted."] * 2


def test_an_archive_is_read_in_place_whatever_its_members_are_called(tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("chats/one.json", json.dumps(CHAT))
        file.writestr("../../two.jsonl", json_lines(CHAT))
        file.writestr("/picture.png", b"\x89PNG")
    before = sorted(tmp_path.rglob("*"))
    steps: list[tuple[int, int]] = []
    found = read_history(archive, on_problem=print, on_progress=lambda done, total: steps.append((done, total)))
    assert len(list(found)) == 4
    assert sorted(tmp_path.rglob("*")) == before
    assert steps == sorted(steps)
    assert steps[-1][0] <= steps[-1][1]


def test_a_broken_file_in_a_folder_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "b.json").write_text(json.dumps(CHAT))
    (tmp_path / "c.json").write_text("")
    found = {each.source.filename: each for each in find_sources(ImportSource(tmp_path))}
    assert found["a.zip"].form is None
    assert "a broken archive" in found["a.zip"].reason
    assert found["b.json"].form is not None
    assert found["c.json"].form is None
    assert len(take(tmp_path).imported) == 2


@pytest.mark.parametrize("indent", [None, 1])
def test_of_a_list_that_was_not_written_to_its_end_everything_before_the_end_is_read(
    tmp_path: Path, indent: int | None
) -> None:
    chat: list[JsonValue] = [{"role": "user", "content": f"This is message {number}."} for number in range(20)]
    taken = take(tmp_path / "chat.json", json.dumps(chat, indent=indent)[:-20])
    assert taken.texts == [f"This is message {number}." for number in range(19)]
    [problem] = taken.problems
    assert "What follows in the file was not read." in problem.reason
    assert problem.line == (1 if indent is None else 1 + 4 * 19 + 1)


def test_a_long_list_is_read_in_pieces_and_its_elements_have_their_lines(tmp_path: Path) -> None:
    # characters of several bytes, and numbers, fall on the borders of the pieces
    texts = [f"{number} " + "größe 猫 " * (number % 900) for number in range(900)]
    content = "[" + ",\n".join(
        json.dumps({"role": "user", "content": each, "n": 7}, ensure_ascii=False) for each in texts
    )
    taken = take(tmp_path / "chat.json", content + "]")
    assert len(content.encode()) > 3 * 1024 * 1024
    assert taken.texts == texts
    assert [each.line for each in taken.imported] == list(range(1, 901))
    assert taken.problems == []
