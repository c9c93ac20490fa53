"""The backlog: what the files tell of what is still to be learned, and that it is never what is not to be."""

from dataclasses import replace
from pathlib import Path

import pytest

from ricordo.extraction.cursor import find_unextracted_sessions
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.storage import ABSENT
from ricordo.storage.local import LocalFiles
from ricordo.workspace import AgentState, FileStateStore, Transcript, state_path, transcript_path

pytestmark = pytest.mark.anyio


@pytest.mark.req("AS-BUG-13", "AS-BUG-14")
async def test_what_is_not_to_be_learned_from_is_no_part_of_the_backlog_nor_is_what_can_not_be_told(
    tmp_path: Path,
) -> None:
    files, redactor = LocalFiles(tmp_path), Redactor(bytes(32))
    states = FileStateStore(files, redactor)
    for session in ("learned", "never", "torn", "aside", "imported"):
        transcript = Transcript(files, transcript_path("main", session), session=session, redactor=redactor)
        await transcript.append([Message(role="user", parts=(Text(text="We deploy only from main."),))])
        if session != "imported":
            state = AgentState(agent="main", session=session, learns=session != "never")
            version = await states.save(state, expected=ABSENT)
        if session in {"torn", "aside"}:
            await files.replace(state_path("main", session), b'{"v":2,"learns":tr', expected=version)
    assert (await states.load("main", "aside")).set_aside
    assert await find_unextracted_sessions(files) == [("main", "imported"), ("main", "learned")]
    stated = await states.load("main", "never")
    await states.save(replace(stated.state, learns=True), expected=stated.version)
    assert ("main", "never") in await find_unextracted_sessions(files)
