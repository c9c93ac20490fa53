"""After many sessions the preamble of every store is as long as it may be at most, and the same each time."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from ricordo import Entry
from ricordo.files.disk import Disk
from ricordo.guard import unfence
from ricordo.runtime.stores import open_store
from ricordo.stores.capabilities import KeepsSessions, SessionNotes
from ricordo.stores.opening import SCHEMES
from ricordo.tokens import Tokens, estimate_text

pytestmark = pytest.mark.anyio

KINDS = ("preamble", "fact", "preference", "decision")
BUDGETS = (Tokens(120), Tokens(1_000), Tokens(4_000))


class QuickDisk(Disk):
    """A disk that does not wait for the medium."""

    def sync(self, descriptor: int) -> None:
        """Do not wait."""

    def sync_folder(self, path: str) -> None:
        """Do not wait."""


def address(scheme: str, folder: Path) -> str:
    if scheme == "fanout":
        return f"fanout:jsonl:{folder / 'one'},json:{folder / 'two'}"
    return f"{scheme}:{folder / scheme}{'?embedder=hashing' if scheme == 'vector' else ''}"


@pytest.mark.req("GO-G4-scale")
@pytest.mark.parametrize("turns", [2, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme not in {"none", "ring", "mock"}])
async def test_after_thirty_sessions_a_preamble_is_within_its_budget_and_the_same_each_time(
    tmp_path: Path, scheme: str, turns: int
) -> None:
    clock, disk, given = HandClock(), QuickDisk(), settings(tmp_path / "r" / ".ricordo")
    place = address(scheme, tmp_path)
    for number in range(30):
        clock.turn(days=1)
        scope = replace(SCOPE, session=f"s{number}")
        async with open_store(place, scope=scope, settings=given, clock=clock, disk=disk) as store:
            for turn in range(turns):
                clock.turn(minutes=5)
                said = f"In session {number}, turn {turn}, the harbour and its ships were talked about at some length."
                await store.save(Entry(content=said, kind=KINDS[turn % 4], by="user", tags=("harbour",)))
            sessions = store.offers(KeepsSessions)
            if sessions:
                told = f"Session {number} was about the harbour. {'It went on for a while. ' * 40}"
                await sessions.close_session(SessionNotes(session=f"s{number}", summary=told, tags=("harbour",)))
    texts: dict[int, set[str]] = {}
    for _ in range(2):
        async with open_store(place, scope=SCOPE, settings=given, clock=clock, disk=disk) as store:
            for budget in BUDGETS:
                for _ in range(2):
                    texts.setdefault(budget.count, set()).add(await store.preamble(budget))
    for most, shown in texts.items():
        (text,) = shown
        assert estimate_text(text) <= most
        assert "harbour" in text or most == BUDGETS[0].count
    if scheme == "markdown":
        (text,) = texts[1_000]
        assert "did not fit here" in text
        assert "session 29" in "".join(unfence(text) or ()).lower()


@pytest.mark.parametrize("scheme", ["ring", "mock"])
async def test_what_lives_in_a_process_keeps_its_budget_too(tmp_path: Path, scheme: str) -> None:
    given = settings(tmp_path / "r" / ".ricordo")
    async with open_store(f"{scheme}:", scope=SCOPE, settings=given) as store:
        for number in range(400):
            await store.save(Entry(content=f"Turn {number} was about the harbour and its ships.", by="user"))
        for budget in BUDGETS:
            text = await store.preamble(budget)
            assert estimate_text(text) <= budget.count
            assert text == await store.preamble(budget)
