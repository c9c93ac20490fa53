"""Plan mode: its file is a person's to read and to change, and only a person lets the agent go on to act."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desks import CONTEXT, Person
from hand_clock import HandClock
from held_standing import HeldStanding
from ricordo.agent import Approval, ToolContext, get_effect
from ricordo.agent.tools import ApprovalHandler
from ricordo.agent.tools.plan_mode import MAX_PLAN_BYTES, PlanMode, plan_tools
from ricordo.clock import MonotonicIds
from ricordo.errors import FileMissing, InvalidSetting, StorageFull, ToolFailed
from ricordo.guard import Redactor
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, PlanState, WorkState

pytestmark = pytest.mark.anyio

PATH = "plans/2026-11-21-release.md"


class Desk:
    """The plan of one session over files that others may share, and its tools as a model calls them."""

    def __init__(
        self,
        approve: ApprovalHandler | None = None,
        *,
        files: InMemoryFiles | None = None,
        keeper: HeldStanding | None = None,
        session: str = "monday",
    ) -> None:
        clock = HandClock()
        self.files = files or InMemoryFiles()
        self.keeper = keeper or HeldStanding()
        self.changes = ChangeSets(self.files, clock=clock, ids=MonotonicIds(clock))
        self.planning = PlanMode(
            self.keeper, self.files, self.changes, redactor=Redactor(bytes(32)), clock=clock, approve=approve,
            session=session,
        )  # fmt: skip
        self._tools = {tool.spec.name: tool for tool in plan_tools(self.planning)}

    async def use(self, name: str, *, context: ToolContext = CONTEXT, **arguments: str | int) -> str:
        try:
            return str(await self._tools[name](arguments, context))
        except ToolFailed as error:
            return f"failed: {error}"

    @property
    def plan(self) -> PlanState:
        return self.keeper.work_state.plan

    async def on_disk(self, path: str = PATH) -> str:
        return (await self.files.read(f"workspace/{path}")).data.decode()

    async def edit(self, text: str, path: str = PATH) -> None:
        """Write the file as a person does, with an editor."""
        stored = await self.files.read(f"workspace/{path}")
        await self.files.replace(f"workspace/{path}", text.encode(), expected=stored.version)

    async def list_blocking(self) -> Sequence[str]:
        return [info.path.removeprefix("workspace/") for info in await self.files.list("workspace")]


async def planned(desk: Desk, text: str = "# Release\n1. Test.\n") -> None:
    """Let the agent plan, up to where the plan is written."""
    assert "Plan mode is on" in await desk.use("plan_enter", title="Release")
    assert "was written" in await desk.use("plan_write", content=text)


@pytest.mark.req("AS-PLAN-01")
async def test_a_plan_is_entered_written_and_in_force_after_a_yes(yes: Person) -> None:
    desk = Desk(yes)
    said = await desk.use("plan_enter", title="Release")
    assert "Plan mode is on, and the plan is /plans/2026-11-21-release.md." in said
    assert desk.plan == PlanState(active=True, path=PATH, author="agent")
    assert await desk.on_disk() == "# Release\n"
    assert "which can be undone" in await desk.use("plan_write", content="# Release\n1. Test.\n")
    assert await desk.planning.text() == await desk.on_disk() == "# Release\n1. Test.\n"
    assert "is in force: carry it out" in await desk.use("plan_exit")
    assert yes.asked == [
        Approval(tool="plan_exit", action="carry out", target=f"/{PATH}", change="# Release\n1. Test.\n")
    ]
    assert desk.plan == PlanState(active=False, path=PATH, author="agent", approved=True)
    assert "no plan stands any more" in await desk.use("plan_exit", outcome="done")
    assert desk.plan == PlanState()
    assert await desk.on_disk() == "# Release\n1. Test.\n", "the file stays"
    assert await desk.planning.text() is None
    assert len(yes.asked) == 1


async def test_a_plan_that_is_refused_is_planned_further(no: Person) -> None:
    desk = Desk(no)
    await planned(desk)
    assert (await desk.use("plan_exit")).startswith("failed: It was not approved: plan mode is still on.")
    assert desk.plan.active


async def test_nobody_is_asked_of_what_a_rule_lets_through(no: Person) -> None:
    desk = Desk(no)
    await planned(desk)
    assert "is in force" in await desk.use("plan_exit", context=replace(CONTEXT, approved=True))
    assert no.asked == []


async def test_with_nobody_to_ask_an_agent_ends_what_it_began_and_nothing_else() -> None:
    own = Desk()
    await planned(own)
    assert "is in force" in await own.use("plan_exit")
    asked_for = Desk()
    await asked_for.planning.enter("Release", by="user")
    await asked_for.use("plan_write", content="# Release\n1. Test.\n")
    for outcome in ("ready", "dropped"):
        said = await asked_for.use("plan_exit", outcome=outcome)
        assert said.startswith("failed: A person began plan mode, and a person ends it")
    assert asked_for.plan == PlanState(active=True, path=PATH, author="user")
    await asked_for.planning.exit("ready", by="user")
    assert asked_for.plan == PlanState(active=False, path=PATH, author="user", approved=True)


@pytest.mark.req("AS-PLAN-01")
async def test_an_agent_does_not_get_out_of_a_persons_plan_mode_by_dropping_or_entering(no: Person) -> None:
    desk = Desk(no)
    await desk.planning.enter("Release", by="user")
    assert "still on" in await desk.use("plan_exit", outcome="dropped")
    await desk.use("plan_enter", title="Another")
    assert "still on" in await desk.use("plan_exit", outcome="dropped")
    assert "still being made" in await desk.use("plan_exit", outcome="done")
    assert desk.plan == PlanState(active=True, path=PATH, author="user")
    assert [asked.action for asked in no.asked] == ["drop", "drop"]


async def test_plan_mode_that_a_person_enters_too_is_that_persons() -> None:
    desk = Desk()
    await planned(desk)
    await desk.planning.enter(by="user")
    assert desk.plan == PlanState(active=True, path=PATH, author="user")
    assert "a person ends it" in await desk.use("plan_exit")


async def test_an_agent_may_drop_its_own_planning_unasked(no: Person) -> None:
    desk = Desk(no)
    await planned(desk)
    said = await desk.use("plan_exit", outcome="dropped")
    assert said == f"Plan mode is off; no plan stands any more, its file stays as /{PATH}."
    assert desk.plan == PlanState()
    assert "1. Test." in await desk.on_disk()
    assert no.asked == []


@pytest.mark.parametrize("text", ["", "  \n\n", "# Release\n", "\n# Another heading"])
async def test_an_empty_plan_is_never_ready(yes: Person, text: str) -> None:
    desk = Desk(yes)
    await desk.use("plan_enter", title="Release")
    await desk.use("plan_write", content=text)
    assert (await desk.use("plan_exit")).startswith("failed: The plan is empty")
    with pytest.raises(ToolFailed, match="is empty"):
        await desk.planning.exit("ready", by="user")
    assert desk.plan.active
    assert yes.asked == []


async def test_what_is_not_there_can_not_be_ended_or_written() -> None:
    desk = Desk()
    assert "Plan mode is not on" in await desk.use("plan_exit")
    assert "There is no plan." in await desk.use("plan_exit", outcome="dropped")
    assert "There is no plan." in await desk.use("plan_exit", outcome="done")
    assert "begin one with plan_enter" in await desk.use("plan_write", content="x")
    assert await desk.list_blocking() == []


async def test_what_a_person_did_meanwhile_is_not_ended_a_second_time() -> None:
    desk = Desk()

    async def drops_it(asked: Approval) -> bool:
        del asked
        await desk.planning.exit("dropped", by="user")
        return True

    held = Desk(drops_it, files=desk.files, keeper=desk.keeper)
    await planned(held)
    assert "meanwhile: nothing was changed" in await held.use("plan_exit")
    assert desk.plan == PlanState()


@pytest.mark.req("AS-STATE-03")
async def test_two_sessions_never_begin_with_the_same_file() -> None:
    one = Desk()
    others = [Desk(files=one.files, session=session) for session in ("monday", "tuesday")]
    for desk in (one, *others):
        await planned(desk, f"{id(desk)}")
    assert [desk.plan.path for desk in (one, *others)] == [
        PATH,
        "plans/2026-11-21-release-2.md",
        "plans/2026-11-21-release-3.md",
    ]
    assert await one.on_disk() == f"{id(one)}"


async def test_only_a_person_lets_a_session_go_on_with_the_plan_of_another() -> None:
    one = Desk()
    await planned(one)
    other = Desk(files=one.files, session="tuesday")
    for title in (f"/{PATH}", PATH, f" {PATH} ", "plans/none.md"):
        said = await other.use("plan_enter", title=title)
        assert said.startswith("failed: Only a person lets you go on with this plan")
    assert (other.plan, await other.list_blocking()) == (PlanState(), [PATH])
    assert (await other.planning.enter(f"/{PATH}", by="user")).path == PATH
    assert await other.on_disk() == "# Release\n1. Test.\n"
    with pytest.raises(FileMissing):
        await Desk().planning.enter("/plans/none.md", by="user")


async def test_an_agent_goes_on_with_its_own_plan_without_a_title_or_by_its_path() -> None:
    desk = Desk()
    await planned(desk)
    for title in ("", f"/{PATH}"):
        await desk.use("plan_exit")
        assert f"the plan is /{PATH}" in await desk.use("plan_enter", title=title)
    assert await desk.list_blocking() == [PATH]


async def test_entering_again_goes_on_with_the_plan_and_a_new_title_begins_another() -> None:
    desk = Desk()
    await planned(desk)
    await desk.use("plan_enter", title="Something else")
    assert desk.plan.path == PATH, "a plan that is being made stays"
    assert await desk.list_blocking() == [PATH]
    await desk.use("plan_exit")
    await desk.use("plan_enter")
    assert desk.plan == PlanState(active=True, path=PATH, author="agent")
    assert await desk.planning.text() == "# Release\n1. Test.\n"
    await desk.use("plan_exit")
    await desk.use("plan_enter", title="Über-Größe & Ночь")
    assert desk.plan.path.startswith("plans/2026-11-21-uber-grosse-")
    assert (await desk.on_disk(desk.plan.path)).startswith("# Über-Größe & Ночь\n")


@pytest.mark.parametrize(
    ("session", "path"),
    [
        ("monday", "plans/2026-11-21-monday.md"),
        ("2026-11-21-08h00-x2", "plans/2026-11-21-08h00-x2.md"),
        ("", "plans/2026-11-21-plan.md"),
    ],
)
async def test_a_plan_without_a_title_is_named_after_its_session(session: str, path: str) -> None:
    desk = Desk(session=session)
    await desk.use("plan_enter")
    assert desk.plan.path == path
    assert await desk.on_disk(path) == "# Plan\n"


async def test_a_persons_edit_is_shown_before_it_can_be_written_over() -> None:
    desk = Desk()
    await planned(desk)
    await desk.edit("# Release\n1. Test.\n2. Ask Nadia.\n")
    said = await desk.use("plan_write", content="# Release\n1. Ship.\n")
    assert said.startswith("failed: the plan was edited by a person meanwhile: read it first")
    assert said.endswith("# Release\n1. Test.\n2. Ask Nadia.\n")
    assert "Ask Nadia" in await desk.on_disk()
    assert "was written" in await desk.use("plan_write", content="# Release\n1. Ship.\n2. Ask Nadia.\n")
    await desk.edit("# Release\nNo.\n")
    assert await desk.planning.text(as_shown=True) == "# Release\nNo.\n"
    assert "was written" in await desk.use("plan_write", content="# Release\nYes.\n"), "its text was shown"
    await desk.edit("# Release\nNever.\n")
    await desk.planning.text()
    assert "edited by a person" in await desk.use("plan_write", content="x"), "it was shown to somebody else"


async def test_two_writes_of_one_reply_do_not_take_each_other_for_a_person() -> None:
    desk = Desk()
    await planned(desk)
    said: list[str] = []

    async def write(content: str) -> None:
        said.append(await desk.use("plan_write", content=content))

    async with anyio.create_task_group() as calls:
        calls.start_soon(write, "# One\n")
        calls.start_soon(write, "# Two\n")
    assert all("was written" in each for each in said)
    assert await desk.on_disk() in {"# One\n", "# Two\n"}


async def test_what_an_agent_writes_while_a_person_is_asked_waits_for_the_answer() -> None:
    answered = anyio.Event()

    async def asks(asked: Approval) -> bool:
        del asked
        await answered.wait()
        return True

    desk = Desk(asks)
    await planned(desk)
    async with anyio.create_task_group() as calls:
        calls.start_soon(lambda: desk.use("plan_exit"))
        await anyio.wait_all_tasks_blocked()
        calls.start_soon(lambda: desk.use("plan_write", content="# Another\n2. Not seen.\n"))
        await anyio.wait_all_tasks_blocked()
        assert "1. Test." in await desk.on_disk()
        assert desk.plan.active
        answered.set()
    assert not desk.plan.active
    assert "Not seen" in await desk.on_disk()


async def test_a_process_that_has_not_seen_the_plan_does_not_write_over_it() -> None:
    before = Desk()
    await planned(before)
    after = Desk(files=before.files, keeper=before.keeper)
    assert "1. Test." in await after.use("plan_write", content="# Mine\n")
    assert await after.on_disk() == "# Release\n1. Test.\n"
    assert "was written" in await after.use("plan_write", content="# Mine\n")


async def test_a_plan_that_a_person_removed_is_made_anew_only_when_that_was_said() -> None:
    desk = Desk()
    await planned(desk)
    await desk.files.delete(f"workspace/{PATH}")
    assert await desk.planning.text() is None
    assert "was removed by a person" in await desk.use("plan_write", content="# Again\n")
    assert await desk.list_blocking() == []
    assert "was written" in await desk.use("plan_write", content="# Again\n")
    await desk.files.delete(f"workspace/{PATH}")
    await desk.use("plan_enter")
    assert await desk.on_disk() == "# Plan\n", "the file is there after entering"


@pytest.mark.req("FC-SECRET")
async def test_a_plan_is_one_reversible_change_and_holds_no_secret() -> None:
    desk = Desk()
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    await desk.use("plan_enter", title=f"Use {secret}")
    await desk.use("plan_write", content=f"1. Use {secret}.\n")
    assert "is so already" in await desk.use("plan_write", content=f"1. Use {secret}.\n")
    assert secret not in await desk.on_disk(desk.plan.path)
    assert "16c7e42" not in desk.plan.path, "a name is made of the title without its secret"
    assert "[secret:" in await desk.on_disk(desk.plan.path)
    written, created = await desk.changes.list_changes()
    assert (written.actor, written.action, len(written.files)) == ("agent", "tool", 1)
    before = await desk.changes.read_content(written.files[0].before)
    assert before is not None
    assert before.startswith(b"# Use [secret:")
    assert secret not in f"{written} {created} {before!r}"


async def test_a_plan_that_is_too_long_is_refused_and_the_longest_is_not() -> None:
    desk = Desk()
    await desk.use("plan_enter", title="Release")
    assert "at most 102,400 bytes, not 102,401" in await desk.use("plan_write", content="x" * (MAX_PLAN_BYTES + 1))
    assert await desk.on_disk() == "# Release\n"
    assert "was written" in await desk.use("plan_write", content="x" * MAX_PLAN_BYTES)
    await desk.edit("y" * MAX_PLAN_BYTES)
    said = await desk.use("plan_write", content="z")
    assert "Read all of it with plan_read" in said
    assert len(said) < 1_000


LONG = "".join(f"{number}. step number {number} of the plan, in some words\n" for number in range(1_200))


@pytest.mark.parametrize("edit", [LONG, "x" * 50_000, "1. See\nTraceback (most recent call last)\n2. Never touch it."])
async def test_a_long_edit_is_written_over_only_when_all_of_its_pages_were_shown(edit: str) -> None:
    desk = Desk()
    await planned(desk)
    edit = f"{edit}\n# Never touch prod"
    await desk.edit(edit)
    refused = "failed: the plan was edited by a person meanwhile: nothing was written. Read all of it with plan_read"
    for _ in range(2):
        assert (await desk.use("plan_write", content="# Mine\n")).startswith(refused)
    pages: list[str] = []
    offset, character = 1, 0
    while offset:
        assert (await desk.use("plan_write", content="# Mine\n")).startswith(refused)
        head, _, text = (await desk.use("plan_read", offset=offset, character=character)).partition("]\n")
        assert head.startswith(f"[/{PATH}: line")
        pages.append(text)
        found = {name: int(number) for name, number in re.findall(r"(offset|character)=(\d+)", head)}
        offset, character = found.get("offset", 0), found.get("character", 0)
    assert "".join(pages) == edit
    assert "was written" in await desk.use("plan_write", content="# Mine\n")


async def test_the_last_page_alone_and_pages_of_two_versions_do_not_count_as_the_whole_plan() -> None:
    desk = Desk()
    await planned(desk)
    await desk.edit(LONG)
    last = LONG.count("\n")
    assert "to the end" in await desk.use("plan_read", offset=last)
    assert "plan_read" in await desk.use("plan_write", content="# Mine\n")
    head = (await desk.use("plan_read")).partition("]")[0]
    after = int(head.rpartition("=")[2])
    await desk.edit(LONG.replace("step number 1 ", "step one "))
    await desk.use("plan_read", offset=after)
    await desk.use("plan_read", offset=last)
    assert "plan_read" in await desk.use("plan_write", content="# Mine\n")
    assert await desk.on_disk() != "# Mine\n"


async def test_what_can_not_be_read_of_a_plan_is_said() -> None:
    desk = Desk()
    assert "There is no plan to read" in await desk.use("plan_read")
    await desk.use("plan_enter", title="Release")
    assert await desk.use("plan_read") == f"[/{PATH}: line 1 of 1, to the end of the file]\n# Release\n"
    assert "nothing at line 9, character 0" in await desk.use("plan_read", offset=9)
    assert "Lines count from 1" in await desk.use("plan_read", offset=0)
    await desk.files.delete(f"workspace/{PATH}")
    assert "was removed by a person" in await desk.use("plan_read")


async def test_what_was_told_of_a_plan_counts_as_shown_as_long_as_it_is_so() -> None:
    desk = Desk()
    await planned(desk)
    await desk.edit("# Release\nNo.\n")
    desk.planning.mark_shown("# Release\nYes.\n")
    assert "edited by a person" in await desk.use("plan_write", content="x")
    await desk.edit("# Release\nNever.\n")
    desk.planning.mark_shown("# Release\nNever.\n")
    assert "was written" in await desk.use("plan_write", content="x")


async def in_force(desk: Desk, by: str = "agent") -> None:
    """Let a plan come into force, begun by the agent or by a person."""
    if by == "user":
        await desk.planning.enter("Release", by="user")
    await planned(desk)
    assert "is in force" in await desk.use("plan_exit")


@pytest.mark.parametrize("by", ["agent", "user"])
async def test_a_plan_that_a_person_approved_is_changed_only_with_that_persons_approval(yes: Person, by: str) -> None:
    desk = Desk(yes)
    await in_force(desk, by)
    yes.asked.clear()
    assert "is so already" in await desk.use("plan_write", content="# Release\n1. Test.\n")
    assert yes.asked == []
    assert "was written" in await desk.use("plan_write", content="# Release\n1. Ship.\n")
    assert yes.asked == [
        Approval(tool="plan_write", action="change", target=f"/{PATH}", change="# Release\n1. Ship.\n")
    ]
    assert "was written" in await desk.use("plan_write", context=replace(CONTEXT, approved=True), content="# R\n2. x")
    assert len(yes.asked) == 1, "a rule lets it through"
    yes.answer = False
    said = await desk.use("plan_write", content="# Release\n1. Delete.\n")
    assert said.startswith("failed: The change of the plan was not approved: nothing was written.")
    assert await desk.on_disk() == "# R\n2. x"
    # the next process, in which nobody can be asked
    after = Desk(files=desk.files, keeper=desk.keeper)
    await after.planning.text(as_shown=True)
    assert "nobody to ask" in await after.use("plan_write", content="# Release\n1. Delete.\n")
    await after.use("plan_enter")
    assert "was written" in await after.use("plan_write", content="# Release\n1. Delete.\n"), "it is planned anew"
    assert "a person ends it" in await after.use("plan_exit"), "and comes into force only with a person"


async def test_a_plan_that_nobody_approved_may_be_changed_by_who_began_it() -> None:
    desk = Desk()
    await in_force(desk)
    assert not desk.plan.approved
    assert "was written" in await desk.use("plan_write", content="# Release\n1. Ship.\n")
    await desk.planning.exit("done", by="user")
    await desk.planning.enter("Release", by="user")
    await desk.use("plan_write", content="# Release\n1. Test.\n")
    await desk.planning.exit("ready", by="user")
    assert "nobody to ask" in await desk.use("plan_write", content="# Release\n1. Ship.\n")


async def test_a_plan_that_ended_while_its_change_was_asked_about_is_not_written() -> None:
    async def ends_it(asked: Approval) -> bool:
        if asked.action == "change":
            await desk.planning.exit("done", by="user")
        return True

    desk = Desk(ends_it)
    await in_force(desk)
    assert "meanwhile: nothing was written" in await desk.use("plan_write", content="# Release\n1. Ship.\n")
    assert await desk.on_disk() == "# Release\n1. Test.\n"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda planning: planning.enter("Release", by="nobody"), "one of user, agent: not 'nobody'"),
        (lambda planning: planning.enter(None, by="user"), "The title of a plan is a text: not None"),
        (lambda planning: planning.exit("nope", by="user"), "one of ready, dropped, done: not 'nope'"),
        (lambda planning: planning.exit("ready", by=5), "one of user, agent: not 5"),
        (lambda planning: planning.write(None), "A plan is a text: not None"),
    ],
)
async def test_what_is_no_outcome_nobody_and_no_text_is_refused_in_words(
    act: Callable[[PlanMode], Awaitable[object]], words: str
) -> None:
    desk = Desk()
    await planned(desk)
    before = desk.plan
    with pytest.raises(InvalidSetting, match=words):
        await act(desk.planning)
    assert (desk.plan, await desk.list_blocking()) == (before, [PATH])


@pytest.mark.req("AS-STATE-03")
async def test_when_it_could_not_be_kept_plan_mode_is_as_it_was(yes: Person) -> None:
    desk = Desk(yes)
    desk.keeper.is_full = True
    with pytest.raises(StorageFull):
        await desk.planning.enter("Release", by="user")
    assert "failed: The disk is full" in await desk.use("plan_enter", title="Release")
    assert desk.plan == PlanState()
    desk.keeper.is_full = False
    await planned(desk)
    desk.keeper.is_full = True
    assert "failed: The disk is full" in await desk.use("plan_exit")
    assert desk.plan.active


OUTSIDE = [
    "MEMORY.md",
    "memory/topics/x.md",
    "../guard.md",
    "plans/../MEMORY.md",
    "plans/a/b.md",
    "/plans/x.md",
    "plans/..md/../x.md",
    "plans/x\\y.md",
    "plans/x\ny.md",
    "plans/x.txt",
]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_a_state_that_names_a_file_elsewhere_reads_and_writes_nothing_there(path: str) -> None:
    keeper = HeldStanding(WorkState(plan=PlanState(active=True, path=path, author="agent")))
    desk = Desk(keeper=keeper)
    await desk.files.create("workspace/MEMORY.md", b"- A fact.\n")
    await desk.files.create("workspace/memory/topics/x.md", b"- Another.\n")
    assert desk.planning.plan == PlanState(active=True, path="", author="agent")
    assert await desk.planning.text() is None
    assert "There is no plan to write" in await desk.use("plan_write", content="mine")
    assert "is empty" in await desk.use("plan_exit")
    await desk.use("plan_enter", title="Release")
    assert desk.plan == PlanState(active=True, path=PATH, author="agent")
    assert sorted(await desk.list_blocking()) == ["MEMORY.md", "memory/topics/x.md", PATH]
    assert await desk.on_disk("MEMORY.md") == "- A fact.\n"


@pytest.mark.req("AS-STATE-03")
@given(st.text(max_size=300))
async def test_any_title_makes_a_file_of_its_own_below_plans(title: str) -> None:
    desk = Desk()
    first = await desk.planning.enter(title, by="user")
    await desk.planning.exit("dropped", by="user")
    second = await desk.planning.enter(title, by="user")
    assert first.path != second.path
    assert sorted(await desk.list_blocking()) == sorted([first.path, second.path])
    assert all(path.startswith("plans/2026-11-21-") and path.endswith(".md") for path in await desk.list_blocking())
    assert desk.planning.plan == second


@pytest.mark.req("AS-PLAN-01")
async def test_the_tools_may_be_called_while_the_agent_only_plans() -> None:
    assert [(tool.spec.name, get_effect(tool)) for tool in plan_tools(Desk().planning)] == [
        ("plan_enter", "organizes"),
        ("plan_read", "reads"),
        ("plan_write", "organizes"),
        ("plan_exit", "organizes"),
    ]
