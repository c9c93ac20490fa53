"""Sub-agents: what they have from their parent, what they have only where it is asked for, and what holds for them."""

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from agents_at_work import SCOPE, ledgers, settings, system
from desks import Person
from hand_made_roots import begun
from places import place_of
from ricordo import CompactionConfig, Memory, RemoteAgent, SubAgent, ToolResultEvictionConfig
from ricordo.agent import tool
from ricordo.context import SlidingWindow
from ricordo.errors import InvalidSetting, ModelNotFound
from ricordo.jobs import ReportProgress, TaskProgress
from ricordo.messages import get_mark
from ricordo.testing import Call, Calls, Hold, RecordedRequest, Say, ScriptedModel, ScriptItem
from spawning import Spawning, result_texts, spawn, summed_up, tool_names

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-G26-subagent")]

WIDE, STEPS = 9_000, 4
COMPACTION = CompactionConfig(trigger_messages=6, trigger_tokens=0, keep_messages=2)
EVICTION = ToolResultEvictionConfig(max_result_chars=4_000, preview_chars=500)
MEMORY_TOOLS = {"remember", "recall", "memory_get"}
KEPT = "We deploy only from main."
DECIDED = "We decided to use {} for module 3."


class Working:
    """The script of a sub-agent that looks up something wide, then small things, and at last reads the wide one."""

    def __init__(self) -> None:
        self.asked: list[RecordedRequest] = []
        self.path = ""

    def __call__(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return summed_up(request)
        self.asked.append(request)
        done = len(self.asked)
        found = [word for text in result_texts(request) for word in text.split() if "large_tool_results" in word]
        self.path = self.path or "".join(found[:1]).strip("`.,:;()[]")
        if done <= STEPS:
            return Call("look_up", {"size": WIDE if done == 1 else 900}, f"c{done}")
        if done == STEPS + 1 and self.path:
            return Call("read_file", {"path": self.path, "limit": 5})
        return Say("It was looked up.")

    @property
    def compacted(self) -> bool:
        """Whether its conversation was summed up, and stayed small by that; else it grew with each request."""
        sizes = [len([each for each in request.messages if each.role != "system"]) for request in self.asked]
        summed = any(get_mark(message) == "summary" for request in self.asked for message in request.messages)
        assert (max(sizes) <= 7) if summed else (sizes == [*range(1, 2 * len(sizes), 2)])
        return summed

    @property
    def evicted(self) -> bool:
        """Whether its wide result left the window, and could be read all the same; else it stayed whole."""
        assert any(len(text) == WIDE for text in result_texts(self.asked[1])) is not bool(self.path)
        assert not self.path or "a line of what was found" in result_texts(self.asked[-1])[-1]
        return bool(self.path)


async def works(root: Path, own: dict[str, object], **options: object) -> Working:
    """Let a sub-agent with `own` settings work for a parent with `options`, and return what it went through."""
    working = Working()
    bench = Spawning(root, ScriptedModel(working), {"Go.": spawn("Look it up.")})
    async with bench.agent(bench.researcher(max_iters=20, reductions=own), **options) as one:  # type: ignore[arg-type]
        await one.send("Go.")
        await one.tasks.wait()
        newest = (await one.tasks.all())[0]
    assert (newest.error, newest.result) == ("", "It was looked up.")
    return working


ON: dict[str, object] = {"compaction": COMPACTION, "tool_result_eviction": EVICTION}
OFF: dict[str, object] = dict.fromkeys(ON)


@pytest.mark.req("AS-BUG-30")
@pytest.mark.parametrize(
    ("parent", "own", "compacted", "evicted"),
    [
        (ON, {}, True, True),
        (OFF, {}, False, False),
        (ON, OFF, False, False),
        (OFF, ON, True, True),
        (ON, {"compaction": None}, False, True),
        (ON | {"recommended": True}, {}, True, True),
        (ON | {"recommended": True}, OFF, False, False),
    ],
    ids=["on", "off", "own off", "own on", "one off", "recommended", "recommended, own off"],
)
async def test_a_sub_agent_has_the_reductions_of_its_parent_off_included_unless_it_has_its_own(
    tmp_path: Path, parent: dict[str, object], own: dict[str, object], compacted: bool, evicted: bool
) -> None:
    root = tmp_path / "root"
    begun(root, tmp_path / "data")
    if parent == OFF:
        (root / "config.toml").write_text("compaction = true\ntool_result_eviction = true\ntruncate_args = true\n")
    working = await works(root, own, settings=None, **parent)
    assert (working.compacted, working.evicted) == (compacted, evicted)


@pytest.mark.req("AS-BUG-30")
async def test_what_is_recommended_for_a_sub_agent_follows_the_window_of_its_own_model(tmp_path: Path) -> None:
    root, asked = tmp_path / "root", list[RecordedRequest]()

    def answered(request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return summed_up(request)
        asked.append(request)
        return Call("look_up", {"size": 4_000}, f"c{len(asked)}") if len(asked) < 9 else Say("Done.")

    bench = Spawning(root, ScriptedModel(answered, window=12_000), {"Go.": spawn("Look it up.")})
    async with bench.agent(recommended=True) as one:
        await one.send("Go.")
        await one.tasks.wait()
        assert [task.result for task in await one.tasks.all()] == ["Done."]
    whole = [sum(len(text) == 4_000 for text in result_texts(request)) for request in asked]
    assert whole[1] == 1
    assert max(whole) < 8, "a parent whose window is not known would have kept all of them"


@pytest.mark.req("AS-BUG-30")
async def test_strategies_of_a_parent_are_its_sub_agents_too_until_one_has_a_reduction_of_its_own(
    tmp_path: Path,
) -> None:
    sliding = [SlidingWindow(keep_messages=3)]
    slid = await works(tmp_path / "slid", {}, strategies=sliding)
    assert max(len(request.messages) for request in slid.asked) == 6
    assert not any(get_mark(message) == "summary" for request in slid.asked for message in request.messages)
    assert (await works(tmp_path / "own", {"compaction": COMPACTION}, strategies=sliding)).compacted


async def elsewhere(prompt: str, report: ReportProgress) -> str:
    report(TaskProgress(done=1, text="under way"))
    return f"Done elsewhere: {prompt}"


async def offered(root: Path, owns: list[dict[str, object]], **options: object) -> list[tuple[set[str], str, str]]:
    """Return what sub-agents with these settings are offered: tools, a system prompt, and what `recall` returns."""
    workers = [ScriptedModel([Call("recall", {"query": "deploy main"}), Say("Done.")]) for _ in owns]
    bench = Spawning(root, workers[0])
    names = [f"sub{number}" for number in range(len(owns))]
    bench.orders = {"Go.": Calls(*(Call("spawn", {"prompt": "From where?", "agent": name}) for name in names))}
    found = [
        bench.researcher(name=name, model=worker, **own) for name, worker, own in zip(names, workers, owns, strict=True)
    ]
    async with bench.agent(*found, **options) as one:  # type: ignore[arg-type]
        await one.send("Go.")
        await one.tasks.wait()
    requests = [worker.requests for worker in workers]
    return [(tool_names(first), system(first), result_texts(second)[0]) for first, second in requests]


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    """A root whose memory holds something."""
    async with Memory.open(tmp_path / "root", scope=SCOPE, settings=settings(tmp_path / "root")) as memory:
        await memory.remember(KEPT)
    return tmp_path / "root"


@pytest.mark.req("GO-G26-subagent", "GO-AT9", "AS-BUG-30")
async def test_a_sub_agent_has_neither_recall_nor_remember_until_it_is_given_one_by_name(root: Path) -> None:
    default, named, other = await offered(root, [{}, {"tools": ("recall", "look_up")}, {"tools": ("remember",)}])
    assert default[0] == {"look_up", "expand"}
    assert KEPT not in default[1]
    assert "There is no tool 'recall'" in default[2]
    assert named[0] == {"recall", "look_up", "expand"}
    assert KEPT not in named[1]
    assert KEPT in named[2]
    assert other[0] == {"remember", "expand"}


@pytest.mark.req("AS-BUG-30")
async def test_memory_that_is_off_in_a_parent_is_off_in_its_sub_agents_unless_they_ask_for_it(root: Path) -> None:
    owns: list[dict[str, object]] = [{}, {"tools": ("recall",)}, {"memory_tools": True}]
    found = await offered(root, [*owns, {"memory_tools": True, "tools": ()}], memory_tools=False, memory_hooks=False)
    shown = [(tools & MEMORY_TOOLS, KEPT in prompt, KEPT in result) for tools, prompt, result in found]
    assert shown == [(set(), False, False), ({"recall"}, False, True), *[(MEMORY_TOOLS, True, True)] * 2]


@pytest.mark.req("AS-BUG-30")
async def test_a_sub_agent_has_the_tools_of_its_parent_but_those_of_one_session_or_those_that_are_named(
    tmp_path: Path,
) -> None:
    options: dict[str, object] = {"planning": True, "tool_result_eviction": EVICTION}
    owns: list[dict[str, object]] = [{}, {"tools": ()}, {"tools": ("session_list",)}]
    every, none, named = [tools for tools, _, _ in await offered(tmp_path / "root", owns, **options)]
    assert every == {"look_up", "expand", "read_file", "grep_files"}
    assert none == {"expand", "read_file", "grep_files"}
    assert named == {"session_list", "expand", "read_file", "grep_files"}
    every, _, named = [tools for tools, _, _ in await offered(tmp_path / "off", owns, session_tools=False)]
    assert every == {"look_up", "expand"}
    assert named == {"session_list", "expand"}


async def learned(bench: Spawning, **options: object) -> str:
    """Return what the ledgers hold when all was learned that there is to learn, and the inbox was lost."""
    async with bench.agent(**options) as one:  # type: ignore[arg-type]
        await one.send(DECIDED.format("Alembic"))
        await one.send("Go.")
        await one.tasks.wait()
        await one.send("And?")
        assert await one.drain() == 0
    before = ledgers(bench.root)
    for path in place_of(bench.root).glob("queue.db*"):
        path.write_bytes(b"this is no database\n" * 500)
    async with bench.agent(**options) as one:  # type: ignore[arg-type]
        assert await one.drain() == 0
    assert ledgers(bench.root) == before
    return before


@pytest.mark.req("AS-BUG-30")
async def test_what_a_sub_agent_says_and_reads_is_not_learned_even_when_the_inbox_was_lost(tmp_path: Path) -> None:
    def bench(name: str) -> Spawning:
        worker = ScriptedModel([Call("look_up", {"size": 50}), Say(DECIDED.format("Celery"))])
        return Spawning(tmp_path / name, worker, {"Go.": spawn(DECIDED.format("Bottle"))})

    found = await learned(bench("plain"))
    assert "Alembic" in found
    assert "Bottle" not in found
    assert "Celery" not in found
    asking = bench("asking")
    found = await learned(asking, sub_agents=[asking.researcher(memory_hooks=True)])
    assert "Alembic" in found
    assert "Bottle" in found


async def test_what_a_sub_agent_can_not_be_given_is_refused_when_its_parent_is_opened(tmp_path: Path) -> None:
    bench = Spawning(tmp_path / "root", ScriptedModel([]))

    async def refused(*sub_agents: SubAgent | RemoteAgent) -> str:
        with pytest.raises(InvalidSetting) as raised:
            async with bench.agent(*sub_agents):
                pass
        return str(raised.value)

    told = await refused(bench.researcher(tools=("look_up", "lookup", "browse")))
    assert "browse, lookup." in told
    assert all(name in told for name in ("look_up", "recall", "session_search"))
    assert "Two sub-agents are called researcher" in await refused(bench.researcher(), bench.researcher())
    assert "as its parent is" in await refused(bench.researcher(name="main"))
    with pytest.raises(ModelNotFound):
        async with bench.agent(bench.researcher(model="nobody:nothing")):
            pass


@pytest.mark.parametrize(
    "describe",
    [
        lambda: SubAgent(name="two words", description="Does it."),
        lambda: SubAgent(name="a", description=" "),
        lambda: SubAgent(name="a", description="Does it.", seconds=0),
        lambda: SubAgent(name="a", description="Does it.", max_iters=0),
        lambda: SubAgent(name="a", description="Does it.", tools="recall"),  # type: ignore[arg-type]
        lambda: SubAgent(name="a", description="Does it.", tools=(5,)),  # type: ignore[arg-type]
        lambda: SubAgent(name="a", description="Does it.", tools=5),  # type: ignore[arg-type]
        lambda: SubAgent(name=None, description="Does it."),  # type: ignore[arg-type]
        lambda: SubAgent(name="a", description=None),  # type: ignore[arg-type]
        lambda: SubAgent(name="a", description="Does it.", reductions={"compaction": "x"}),  # type: ignore[typeddict-item]
        lambda: SubAgent(name="a", description="Does it.", reductions={"clear_results": EVICTION}),  # type: ignore[typeddict-item]
        lambda: SubAgent(name="a", description="Does it.", seconds="x"),  # type: ignore[arg-type]
        lambda: SubAgent(name="a", description="Does it.", seconds=float("nan")),
        lambda: SubAgent(name="a", description="Does it.", max_iters=1.5),  # type: ignore[arg-type]
        lambda: SubAgent(name="a", description="Does it.", max_iters="x"),  # type: ignore[arg-type]
        lambda: RemoteAgent(name="a", description="Does it.", ask=None),  # type: ignore[arg-type]
        lambda: RemoteAgent(name="", description="Does it.", ask=elsewhere),
        lambda: RemoteAgent(name="a", description="Does it.", ask=elsewhere, seconds=-1),
    ],
)
def test_what_describes_no_sub_agent_is_refused_at_once(describe: Callable[[], object]) -> None:
    with pytest.raises(InvalidSetting):
        describe()


@pytest.mark.req("AS-BUG-30")
async def test_a_sub_agent_without_a_model_of_its_own_asks_its_parents_with_its_own_instructions(
    tmp_path: Path,
) -> None:
    bench = Spawning(tmp_path / "root", ScriptedModel([]), {"Go.": spawn("Are you there?")})
    async with bench.agent(bench.researcher(model=None, instructions="I research."), instructions="I lead.") as one:
        await one.send("Go.")
        await one.tasks.wait()
        assert [task.result for task in await one.tasks.all()] == ["Done by the same model."]
    assert system(bench.shared[0]).startswith("I research.")
    assert "I lead." not in system(bench.shared[0])
    assert [message.text for message in bench.shared[0].messages[1:]] == ["Are you there?"]


class Acting:
    """A parent's tool that acts, and who called it."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    @property
    def tool(self) -> object:
        async def deploy(branch: str) -> str:
            """Deploy a branch."""
            self.ran.append(branch)
            return f"deployed {branch}"

        return tool(deploy)


def deploying(*branches: str) -> ScriptedModel:
    """Return the model of a sub-agent that deploys these, one after the other; each request waits for its release."""
    calls: list[ScriptItem] = [Hold(Call("deploy", {"branch": branch}, f"d{branch}")) for branch in branches]
    return ScriptedModel([*calls, Say("Done.")])


async def released(worker: ScriptedModel) -> None:
    """Let the next request of a model go, and return when the one after it waits."""
    await worker.wait_for_held()
    worker.release()
    while worker.held_count:
        await anyio.lowlevel.checkpoint()
    await worker.wait_for_held()


@pytest.mark.req("AS-PLAN-01", "CC-ENFORCE")
async def test_rules_and_plan_mode_of_a_parent_hold_in_its_sub_agents_as_they_stand_at_each_call(
    tmp_path: Path,
) -> None:
    acting, worker = Acting(), deploying("v1", "v2", "v3", "v4")
    bench = Spawning(tmp_path / "root", worker, {"Go.": spawn("Deploy it.")})
    async with bench.agent(
        planning=True, tools=[acting.tool], permissions=["deny deploy(v1)"], approve=Person(answer=True)
    ) as one:
        await one.send("Go.")

        await released(worker)
        await one.permissions.deny("deploy(v2)", why="It is broken.")
        await released(worker)
        assert one.plan is not None
        await one.plan.enter("Release", by="user")
        await released(worker)
        await one.plan.exit("dropped", by="user")
        worker.release()
        await one.tasks.wait()
    denied, broken, planning, deployed = [result_texts(request)[-1] for request in worker.requests[1:]]
    assert "the rule `deny deploy(v1)` forbids it" in denied
    assert "It is broken." in broken
    assert "plan mode is on" in planning
    assert deployed == "deployed v4"
    assert acting.ran == ["v4"]


@pytest.mark.req("AS-PLAN-01")
async def test_a_sub_agent_is_told_that_its_parent_is_only_planning(tmp_path: Path) -> None:
    worker = ScriptedModel([Say("Done."), Say("Done.")])
    bench = Spawning(tmp_path / "root", worker, {"Go.": spawn("Look.")})
    async with bench.agent(planning=True) as one:
        assert one.plan is not None
        await one.plan.enter("Release", by="user")
        await one.send("Go.")
        await one.tasks.wait()
        await one.plan.exit("dropped", by="user")
        await one.send("Go.")
        await one.tasks.wait()
    first, second = (request.messages[-1].text for request in worker.requests)
    assert first.startswith("Look.\n\n[The agent that asks is only planning")
    assert second == "Look."
