"""Several processes chat on one root, and even in one session: nothing is lost, and the session stays usable."""

from collections import Counter
from pathlib import Path

import pytest

from agents_at_work import SCOPE, is_valid, settings, spoken, transcript
from piped_processes import start_script
from ricordo import HarnessAgent
from ricordo.messages import pair_calls
from ricordo.testing import Say, ScriptedModel

pytestmark = pytest.mark.anyio

_HERE = Path(__file__).parent
_TURNS = 4


def _chat(root: Path, sessions: dict[str, str]) -> None:
    """Let a process for each name chat in its session, all at once."""
    running = [
        start_script(_HERE / "agent_process.py", root, session, name, _TURNS) for name, session in sessions.items()
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        out, err = process.communicate("\n", timeout=60)
        assert process.returncode == 0, err
        assert out.count("acked") == _TURNS


@pytest.mark.req("AS-TRANS-03", "FC-LOCKED")
@pytest.mark.parametrize("sessions", [{"Ana": "one", "Ben": "two"}, {"Ana": "one", "Ben": "one"}], ids=["two", "one"])
async def test_processes_that_chat_on_one_root_lose_nothing(tmp_path: Path, sessions: dict[str, str]) -> None:
    root = tmp_path / ".ricordo"
    _chat(root, sessions)
    for session in set(sessions.values()):
        logged = await transcript(root, session)
        assert all(count == 1 for count in Counter(message.id for message in logged).values())
        for name in (name for name, own in sessions.items() if own == session):
            texts = [text for role, text in spoken(logged) if role == "user" and f" of {name} " in text]
            assert texts == [
                f"We decided to deploy the service {number} of {name} on Fridays." for number in range(_TURNS)
            ]
        assert len(pair_calls(logged).answered) == _TURNS * list(sessions.values()).count(session)
        model = ScriptedModel([Say("Here.")])
        agent = HarnessAgent(model, memory=root, scope=SCOPE, session=session, settings=settings(root))
        async with agent as one:
            assert str(await one.send("Who is there?")) == "Here."
            assert is_valid(one.window)
            assert await one.drain() == 0
            assert one.memory is not None
            contents = Counter(entry.content for entry in await one.memory.entries())
            assert all(count == 1 for count in contents.values())
            assert [check.name for check in await one.memory.doctor() if not check.ok] == []
    assert len(contents) == len(sessions) * _TURNS


@pytest.mark.req("AS-TRANS-03")
async def test_two_agents_in_one_process_go_on_in_one_session(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"

    def agent() -> HarnessAgent:
        model = ScriptedModel(lambda request: Say(f"Reply {request.number}."))
        return HarnessAgent(model, memory=root, scope=SCOPE, session="s", settings=settings(root))

    async with agent() as one, agent() as other:
        for number in range(3):
            await one.send(f"One {number}.")
            await other.send(f"Other {number}.")
            assert is_valid(one.window)
            assert is_valid(other.window)
    async with agent() as again:
        assert is_valid(again.window)
        assert str(await again.send("Still there?")) == "Reply 1."
    assert len(await transcript(root)) == 14
