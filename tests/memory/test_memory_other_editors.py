"""Memory files as other editors save them: with a byte order mark, with other ends of lines, in UTF-16."""

import codecs
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hand_made_roots import begun
from ricordo import Memory, Message, Scope
from ricordo.errors import DocumentInvalid
from ricordo.messages import Text

pytestmark = pytest.mark.anyio
SCOPE = Scope(user="me", project="shop")
FIRST, SECOND = "The printer is in room 4.", "The lamp is on the desk."
TEXT = f"- {FIRST}\n- {SECOND}\n"
SAVED = {
    "a mark": codecs.BOM_UTF8 + TEXT.encode(),
    "a mark and a heading": codecs.BOM_UTF8 + f"# Memory\n\n{TEXT}".encode(),
    "a mark and front matter": codecs.BOM_UTF8 + f"---\nname: x\n---\n{TEXT}".encode(),
    "carriage returns": f"# Memory\n\n{TEXT}".replace("\n", "\r").encode(),
    "both": codecs.BOM_UTF8 + TEXT.replace("\n", "\r\n").encode(),
    "UTF-16": codecs.BOM_UTF16_LE + f"# Memory\n\n{TEXT}".encode("utf-16-le"),
    "UTF-16, big end first": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
}
FILES = ("MEMORY.md", "memory/today.md")


def put(root: Path, path: str, data: bytes) -> Path:
    today = datetime.now(UTC).astimezone().date().isoformat()
    file = root / "workspace" / path.replace("today", today)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("saved", SAVED)
async def test_every_entry_of_a_file_is_in_view_however_an_editor_saved_it(
    tmp_path: Path, saved: str, path: str
) -> None:
    root = begun(tmp_path / ".ricordo")
    put(root, path, SAVED[saved])
    async with Memory.open(root, scope=SCOPE) as memory:
        assert sorted(entry.content for entry in await memory.entries()) == [SECOND, FIRST]
        assert [hit.entry.content for hit in await memory.recall("printer room", limit=1)] == [FIRST]
        if path == "MEMORY.md":
            preamble = await memory.preamble()
            assert FIRST in preamble
            assert SECOND in preamble
        # what is appended behind it is read as well
        await memory.remember("The kettle is in the kitchen.")
        assert {entry.content for entry in await memory.entries()} == {FIRST, SECOND, "The kettle is in the kitchen."}
        [kettle] = await memory.recall("kettle kitchen", limit=1)
        assert kettle.entry.content == "The kettle is in the kitchen."


@pytest.mark.req("HE-O-audit-forget", "FC-UNDO")
@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("saved", [name for name in SAVED if "UTF" not in name])
async def test_an_entry_of_such_a_file_is_forgotten_and_comes_back_to_the_byte(
    tmp_path: Path, saved: str, path: str
) -> None:
    root = begun(tmp_path / ".ricordo")
    file = put(root, path, SAVED[saved])
    async with Memory.open(root, scope=SCOPE) as memory:
        first = next(entry for entry in await memory.entries() if entry.content == FIRST)
        await memory.forget(first.id)
        assert [entry.content for entry in await memory.entries()] == [SECOND]
        await memory.undo()
        assert file.read_bytes() == SAVED[saved]


@pytest.mark.req("FC-DOCTOR")
@pytest.mark.parametrize("path", FILES)
async def test_a_change_of_a_file_in_utf_16_is_refused_and_doctor_says_why(tmp_path: Path, path: str) -> None:
    root = begun(tmp_path / ".ricordo")
    file = put(root, path, SAVED["UTF-16"])
    async with Memory.open(root, scope=SCOPE) as memory:
        first = next(entry for entry in await memory.entries() if entry.content == FIRST)
        with pytest.raises(DocumentInvalid, match="save it as UTF-8"):
            await memory.forget(first.id)
        assert file.read_bytes() == SAVED["UTF-16"]
        [encoding] = [check for check in await memory.doctor() if check.name == "encoding" and not check.ok]
        assert file.name in encoding.detail
        file.write_bytes(f"# Memory\n\n{TEXT}".encode())
        first = next(entry for entry in await memory.entries() if entry.content == FIRST)
        await memory.forget(first.id)
        assert [entry.content for entry in await memory.entries()] == [SECOND]


@pytest.mark.req("DF-C52")
async def test_a_user_whose_id_is_in_lower_case_has_a_profile_of_their_own(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    for user, work in (("mira", "I work as a nurse in Oslo."), ("Mira", "I work as a baker in Rome.")):
        async with Memory.open(root, scope=Scope(user=user, project="shop")) as memory:
            await memory.ingest([Message(role="user", name=user, parts=(Text(text=work),))], session=f"s-{user}")
    for user, town in (("mira", "Oslo"), ("Mira", "Rome")):
        async with Memory.open(root, scope=Scope(user=user, project="shop")) as memory:
            assert [fact.content.rpartition(" ")[2] for fact in (await memory.profile().show()).facts] == [f"{town}."]
