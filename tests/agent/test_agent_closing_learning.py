"""Leaving an agent waits for nothing that learning needs: what was said is learned later, also by another process."""

from pathlib import Path

import anyio
import pytest

from agents_at_work import SCOPE, ledgers, settings
from ricordo import FlushConfig, HarnessAgent, MemoryConfig
from ricordo.agent.session_closing import ClosingMode
from ricordo.extraction import JobWorker
from ricordo.testing import Hang, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

SAID = "We decided to deploy only from main, never from a branch."


class Bench:
    """Agents whose model answers, and never ends a request that is not a turn's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.beside: list[RecordedRequest] = []
        self.closing_seconds = 2.0
        self.answer: ScriptItem = Hang()

    def agent(self, session: str, mode: ClosingMode | None = None, store: str | None = None) -> HarnessAgent:
        flush = FlushConfig(model="offline", closing_seconds=self.closing_seconds)
        return HarnessAgent(
            ScriptedModel(self._played),
            memory=MemoryConfig(root=self.root, store=store, closing_summary=mode, flush=flush),
            scope=SCOPE,
            session=session,
            settings=settings(self.root),
        )

    def _played(self, request: RecordedRequest) -> ScriptItem:
        if request.tools:
            return Say("Good.")
        self.beside.append(request)
        return self.answer


@pytest.mark.req("HE-C8-async", "AS-BUG-14", "DF-B24")
async def test_leaving_waits_for_no_model_and_what_was_said_is_learned_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path / ".ricordo")
    # nothing of the inbox is worked off before the end nor at it, as where all of it would take too long
    monkeypatch.setattr(JobWorker, "serve", lambda _: anyio.sleep_forever())
    bench.closing_seconds = 0.0
    with anyio.fail_after(10):
        async with bench.agent("one", "background") as agent:
            await agent.send(SAID)
    assert bench.beside == []
    assert "deploy only from main" not in ledgers(bench.root)
    monkeypatch.undo()
    bench.closing_seconds = 2.0
    with anyio.fail_after(10):
        async with bench.agent("two", "background") as agent:
            assert await agent.drain() == 0
            assert agent.memory is not None
            assert [entry.content for entry in await agent.memory.entries() if "deploy" in entry.content] != []
    assert "deploy only from main" in ledgers(bench.root)
    # whether the closing summary is waited for is said on its own, and it is by default
    bench.beside.clear()
    bench.answer = Say("They talked.\nTAGS: talk")
    for session, mode, asked in (("three", "background", 0), ("four", "sync", 1), ("five", None, 1)):
        store = f"sessions:{tmp_path / session}"
        async with bench.agent(session, mode, store) as agent:  # type: ignore[arg-type]
            await agent.send(SAID)
        assert len(bench.beside) == asked, session
        bench.beside.clear()
