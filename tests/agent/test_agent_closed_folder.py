"""A folder that is closed to an agent stays closed, whichever file tool is called and by whatever name."""

from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from desks import Person
from ricordo import BuiltinTools, HarnessAgent, TurnLimits
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = pytest.mark.anyio

PATHS = ("secret/key", "link/key", "src/key.txt", "./src/../link//key")


@pytest.mark.req("CC-ENFORCE")
async def test_a_denied_path_is_denied_under_the_name_of_a_link_too(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("K3Y\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "src" / "key.txt").symlink_to("../secret/key")
    calls = [
        *(Call("read_file", {"path": path}) for path in PATHS),
        *(Call("write_file", {"path": path, "content": "x\n"}) for path in PATHS),
        Call("edit_file", {"path": "link/key", "old_text": "K3Y", "new_text": "x"}),
        Call("grep_files", {"pattern": "K3Y", "path": "link"}),
        Call("list_files", {"path": "secret"}),
    ]
    person = Person(True)
    async with HarnessAgent(
        ScriptedModel([*calls, Call("write_file", {"path": "src/a", "content": "a\n"}), Say("Done.")]),
        memory=tmp_path / ".ricordo",
        scope=SCOPE,
        builtin_tools=BuiltinTools(files=True, working_directory=tmp_path),
        approve=person,
        permissions=["deny *(secret/*)"],
        limits=TurnLimits(max_iters=40),
        settings=settings(tmp_path / ".ricordo"),
    ) as agent:
        await agent.send("Go.")
        told = [result.text for message in agent.window for result in message.tool_results]
    assert len(told) == len(calls) + 1
    assert all("`deny *(secret/*)` forbids it" in text for text in told[:-1])
    assert [asked.target for asked in person.asked] == ["src/a"]
    assert (tmp_path / "secret" / "key").read_text() == "K3Y\n"
