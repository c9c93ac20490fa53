"""An agent keeps its root in order on its own, for as long as it is open."""

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from hand_made_roots import begun
from places import place_of
from ricordo import HarnessAgent, ToolResultEvictionConfig
from ricordo.curation import ConsolidationConfig
from ricordo.curation.config import MaintenanceConfig, RetentionConfig
from ricordo.events import Event
from ricordo.messages import Message, Text, encode_message
from ricordo.runtime import Settings
from ricordo.testing import Say, ScriptedModel
from ricordo.workspace import ledger_path
from ricordo.workspace.session_files import SessionFile, update_session

pytestmark = pytest.mark.anyio

FACT = "We deploy only from main."
BY_HAND = "The retro is on Fridays."


def talking() -> ScriptedModel:
    return ScriptedModel(lambda request: Say(f"Reply {request.number}."))


def indexed(root: Path) -> str:
    """Return all text that the index holds now, without letting it look at the files."""
    with closing(sqlite3.connect(place_of(root) / "memory_index.db")) as index:
        return " ".join(str(text) for row in index.execute("SELECT * FROM chunk") for text in row)


class Ear:
    """Hears what maintenance does."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.maintained = anyio.Event()

    def __call__(self, event: Event) -> None:
        if event.stage in {"expire", "consolidate", "prune", "index", "maintain"}:
            self.heard.append((event.stage, event.status))
        if (event.stage, event.status) == ("maintain", "finished"):
            self.maintained.set()


def agent(
    session: str, root: Path, clock: HandClock, ear: Ear, *, consolidates: bool = True, held: Settings | None = None
) -> HarnessAgent:
    return HarnessAgent(
        talking(), memory=root, scope=SCOPE, session=session, clock=clock, on_event=ear,
        settings=held or settings(root, consolidates=consolidates),
    )  # fmt: skip


def own_threads() -> set[threading.Thread]:
    """Return the running threads without those of the pools, which grow and shrink by load."""
    pools = ("AnyIO worker thread", "ricordo worker")
    return {thread for thread in threading.enumerate() if not thread.name.startswith(pools)}


@pytest.mark.req("AS-MAINT-01", "AS-TRIG-03", "AS-MAINT-02", "AS-MAINT-05", "AS-CONS-06", "HE-C3-eight", "CC-GATES")
async def test_an_open_agent_maintains_its_root_by_itself_and_a_closed_one_leaves_nothing_running(
    tmp_path: Path,
) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    ear = Ear()
    tasks, threads = {task.id for task in anyio.get_running_tasks()}, own_threads()
    async with agent("one", root, clock, ear) as one:
        await one.send(FACT)
        assert await one.flush()
    assert ("maintain", "started") not in ear.heard
    clock.turn(hours=6)
    async with agent("two", root, clock, ear):
        with anyio.fail_after(20):
            await ear.maintained.wait()
    began = ear.heard.index(("maintain", "started"))
    steps = [stage for stage, status in ear.heard[began:] if status == "started"]
    assert steps == ["maintain", "expire", "consolidate", "prune", "index"]
    assert {task.id for task in anyio.get_running_tasks()} <= tasks
    assert own_threads() <= threads


@pytest.mark.req("AS-TRIG-03", "CC-GATES", "AS-MAINT-01", "AS-CONS-06")
@pytest.mark.parametrize(
    ("maintenance", "hours"),
    [
        (MaintenanceConfig(), 6),
        (MaintenanceConfig(interval=timedelta(minutes=90)), 1.5),
    ],
)
async def test_a_root_is_maintained_when_the_interval_has_passed_and_not_before(
    maintenance: MaintenanceConfig, hours: float, tmp_path: Path
) -> None:
    root, clock, ear = tmp_path / ".ricordo", HandClock(), Ear()
    held = replace(settings(root), maintenance=maintenance)

    async def works(session: str) -> None:
        async with agent(session, root, clock, ear, held=held) as one:
            await one.send(FACT)
            assert await one.flush()

    await works("one")
    for number in (2, 3):
        before = ear.heard.count(("maintain", "started"))
        clock.turn(hours=hours, seconds=-1)
        await works(f"s{number}")
        assert ear.heard.count(("maintain", "started")) == before
        clock.turn(seconds=1)
        ear.maintained = anyio.Event()
        async with agent(f"t{number}", root, clock, ear, held=held):
            with anyio.fail_after(20):
                await ear.maintained.wait()
        assert ear.heard.count(("maintain", "started")) == before + 1


@pytest.mark.req("AS-MAINT-05", "AS-MAINT-02", "AS-INDEX-01")
async def test_the_last_step_takes_a_line_added_by_hand_into_the_index(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    ear = Ear()
    async with agent("one", root, clock, ear, consolidates=False) as one:
        await one.send(FACT)
        assert await one.flush()
    ledger = place_of(root) / ledger_path(clock.today())
    ledger.write_text(ledger.read_text(encoding="utf-8") + f"- {BY_HAND}\n", encoding="utf-8")
    others = {
        "MEMORY.md": "The mascot is a wombat.",
        "memory/2024-01-02.md": "The printer is called Quill.",
        "memory/topics/tea.md": "Tea is on shelf nine.",
        "agents/main/sessions/other.log.jsonl": "The tap drips.",
    }
    for path, text in others.items():
        file = place_of(root) / "workspace" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        line = encode_message(Message(role="user", id="m1", parts=(Text(text=text),)))
        file.write_bytes(line if path.endswith("l") else f"- {text}\n".encode())
    async with agent("two", root, clock, ear, consolidates=False):
        assert BY_HAND not in indexed(root)
        clock.turn(hours=6)
    async with agent("three", root, clock, ear, consolidates=False):
        with anyio.fail_after(20):
            await ear.maintained.wait()
    assert [stage for stage, status in ear.heard if status == "started"][-4:] == [
        "maintain",
        "expire",
        "prune",
        "index",
    ]
    found = indexed(root)
    assert [text for text in (BY_HAND, *others.values()) if text not in found] == []


PHASES = ("extract", "save", "index", "scan", "select", "inject", "consolidate", "prune")


@pytest.mark.req("HE-C3-eight", "AS-MAINT-02")
async def test_a_session_and_the_next_one_report_all_eight_phases_of_memory_in_their_order(tmp_path: Path) -> None:
    root, clock, events = tmp_path / ".ricordo", HandClock(), list[Event]()
    ear = Ear()

    def hear(event: Event) -> None:
        ear(event)
        events.append(event)

    def living(session: str) -> HarnessAgent:
        return HarnessAgent(
            talking(), memory=root, scope=SCOPE, session=session, clock=clock, on_event=hear,
            settings=settings(root, consolidates=True),
        )  # fmt: skip

    async with living("one") as one:
        await one.send(f"{FACT} The office is in Trieste.")
        assert await one.flush()
    learned = [event.stage for event in events if event.status == "finished"]
    assert [stage for stage in learned if stage in {"extract", "save", "index"}][:3] == ["extract", "save", "index"]
    clock.turn(hours=6)
    begun = len(events)
    async with living("two") as two:
        await two.send("From which branch do we deploy?")
        with anyio.fail_after(20):
            await ear.maintained.wait()
    later = [event.stage for event in events[begun:] if event.status in {"finished", "skipped"}]
    assert [stage for stage in later if stage in {"scan", "select", "inject"}] == ["scan", "select", "inject"]
    assert [stage for stage in later if stage in {"consolidate", "prune"}] == ["consolidate", "prune"]
    done = {event.stage: event for event in events if event.status == "finished" and event.stage in PHASES}
    assert set(done) == set(PHASES)
    assert done["save"].counts["entries"] >= 1
    assert done["scan"].counts["entries"] >= 1
    assert done["inject"].counts["tokens"] > 0
    assert all(event.seconds is not None for event in done.values())


@pytest.mark.req("HE-C3-eight")
async def test_a_session_that_consolidates_by_itself_reports_each_phase_without_a_cycle_of_maintenance(
    tmp_path: Path,
) -> None:
    root, events = tmp_path / ".ricordo", list[Event]()
    given = settings(root, consolidates=True)
    async with HarnessAgent(
        talking(), memory=root, scope=SCOPE, session="one", on_event=events.append, settings=given
    ) as one:
        await one.send(FACT)
        assert await one.flush()
        assert (await one.consolidate()).kept
    reported = {event.stage for event in events if event.status in {"finished", "skipped"}}
    assert "maintain" not in reported
    assert {*PHASES} <= reported


@pytest.mark.req("AS-MAINT-02", "AS-MAINT-03", "AS-MAINT-04", "AS-BUG-18", "AS-BUG-31")
async def test_the_cycles_of_an_agent_move_what_is_past_the_documented_days_and_go_on_past_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, clock, held = begun(tmp_path / ".ricordo", tmp_path / "data"), HandClock(), settings(tmp_path / ".ricordo")
    workspace = place_of(root) / "workspace"
    texts = {}
    for days in (91, 90):
        texts[days] = workspace / "memory" / f"{clock.today() - timedelta(days=days)}.md"
        texts[days].parent.mkdir(parents=True, exist_ok=True)
        texts[days].write_text(f"# day\n\n- We decided on day {days}. [kind:: decision]\n")
    (workspace / "memory/notes.md").write_text("- By hand.\n")
    files = {}
    for days in (174, 172):
        started = clock.now() - timedelta(days=days)
        path = f"workspace/sessions/{started:%Y-%m-%d-%Hh%M}.md"
        files[days] = place_of(root) / path
        files[days].parent.mkdir(exist_ok=True)
        files[days].write_bytes(
            update_session(b"", path, SessionFile(started=started, session=f"s{days}", summary="Talk."))
        )
    log = workspace / "agents/main/sessions/s174.log.jsonl"
    log.parent.mkdir(parents=True)
    said = Message(role="user", id="m1", parts=(Text(text="Hello."),), time=clock.now() - timedelta(days=174))
    log.write_bytes(encode_message(said))
    held = replace(held, consolidation=ConsolidationConfig(model="offline"))
    before = texts[91].read_bytes()

    async def maintained(name: str, **after: float) -> dict[str, Event]:
        clock.turn(**after)
        ended, done = dict[str, Event](), anyio.Event()

        def hear(event: Event) -> None:
            if event.status != "started":
                ended[event.stage] = event
                if event.stage == "maintain":
                    done.set()

        model = talking()
        given = {"workspace": root, "scope": SCOPE, "session": name, "clock": clock, "settings": held, "on_event": hear}
        async with HarnessAgent(model, **agent_arguments(**given)) as one:
            if after:
                with anyio.fail_after(20):
                    await done.wait()
            else:
                await one.send(FACT)
                assert await one.flush()
                await one.consolidate()
        return ended

    await maintained("first")
    with monkeypatch.context() as patched:
        patched.setattr("ricordo.runtime.maintenance.archive_expired_ledgers", _failing)
        failed = await maintained("failing", hours=6)
    assert (failed["maintain"].status, failed["maintain"].reason) == ("failed", "failed: expire")
    assert texts[91].exists()
    assert failed["prune"].counts["announced"] == 1
    assert failed["index"].status == "finished"
    await maintained("archiving", hours=6)
    archived = workspace / "memory/archive" / texts[91].name
    assert (texts[91].exists(), archived.read_bytes()) == (False, before)
    assert texts[90].exists()
    assert (workspace / "memory/notes.md").exists()
    assert all(path.exists() for path in files.values())
    trashing = await maintained("trashing", days=7)
    assert trashing["prune"].counts["trashed"] == 1
    assert (files[174].exists(), files[172].exists()) == (False, True)
    day = clock.today()
    trashed = place_of(root) / "trash" / f"{day}" / "sessions" / files[174].name
    assert trashed.exists()
    await maintained("still-there", days=30)
    assert trashed.exists()
    deleting = await maintained("deleting", days=1)
    assert deleting["prune"].counts["deleted"] == 1
    assert not trashed.exists()
    assert log.exists()
    evicted = workspace / "kept/s174/shell-0123456789abcdef.txt"
    evicted.parent.mkdir(parents=True)
    evicted.write_text("wide")
    rules = RetentionConfig(rules=("transcripts: delete after 200 days",))
    held = replace(
        held, retention=rules, reductions={"tool_result_eviction": ToolResultEvictionConfig(eviction_path="/kept")}
    )
    assert (await maintained("by-rule", hours=6))["prune"].counts["transcripts"] == 1
    assert not log.exists(), "a rule names it"
    assert not evicted.exists()
    archived.write_bytes(before + b"- We decided to buy skis. [kind:: decision]\n")
    async with HarnessAgent(talking(), memory=root, scope=SCOPE, session="last", clock=clock, settings=held) as one:
        assert one.memory is not None
        found = [(hit.path, hit.entry.content) for hit in await one.memory.recall("buy skis")]
        assert found[0] == (f"workspace/memory/archive/{archived.name}", "We decided to buy skis.")
        assert (await one.consolidate()).read == 0
        assert "skis" not in (workspace / "MEMORY.md").read_text()
        acts = [item.action for item in await one.memory.history()]
    assert {"expire", "announce", "prune", "delete"} <= set(acts)


@pytest.mark.req("AS-MAINT-03", "AS-MAINT-04", "AS-TRIG-03")
async def test_the_cycles_of_an_agent_keep_to_the_days_of_its_settings(tmp_path: Path) -> None:
    root, clock, ear = begun(tmp_path / ".ricordo", tmp_path / "data"), HandClock(), Ear()
    config = MaintenanceConfig(
        interval=timedelta(minutes=20), daily_file_retention_days=10, session_retention_days=20, announce_days=0,
        trash_days=2,
    )  # fmt: skip
    held = replace(settings(root), maintenance=config, consolidation=ConsolidationConfig(model="offline"))
    workspace = place_of(root) / "workspace"
    ledgers = {days: workspace / "memory" / f"{clock.today() - timedelta(days=days)}.md" for days in (11, 10)}
    files = {}
    for days, ledger in ledgers.items():
        ledger.parent.mkdir(parents=True, exist_ok=True)
        ledger.write_text(f"# day\n\n- We decided on day {days}. [kind:: decision]\n")
        started = clock.now() - timedelta(days=2 * days - 1)
        path = f"workspace/sessions/{started:%Y-%m-%d-%Hh%M}.md"
        files[days] = place_of(root) / path
        files[days].parent.mkdir(exist_ok=True)
        files[days].write_bytes(
            update_session(b"", path, SessionFile(started=started, session=f"s{days}", summary="Talk."))
        )
    async with agent("one", root, clock, ear, held=held) as one:
        await one.send(FACT)
        assert await one.flush()
        await one.consolidate()
    for number, days in enumerate((0, 2, 1)):
        clock.turn(days=days, minutes=20)
        ear.maintained = anyio.Event()
        async with agent(f"later{number}", root, clock, ear, held=held):
            with anyio.fail_after(20):
                await ear.maintained.wait()
        if not days:
            assert (ledgers[11].exists(), ledgers[10].exists()) == (False, True)
            assert (workspace / "memory/archive" / ledgers[11].name).exists()
            assert (files[11].exists(), files[10].exists()) == (False, True)
        trashed = [path.name for path in (place_of(root) / "trash").rglob(files[11].name)]
        assert bool(trashed) == (number < 2)


async def _failing(*args: object, **named: object) -> None:
    raise OSError
