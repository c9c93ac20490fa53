"""Plan mode, the file of the plan, and the tools plan_enter, plan_read, plan_write and plan_exit.

Invariants: nothing outside `plans/` is read or written. No two sessions begin with the same file, and only a person
lets a session continue another's plan. A person's edit is never overwritten before the model was shown all of it, an
approved plan is not changed without asking, and an agent never ends what a person began.
"""

import re
import unicodedata
from dataclasses import replace
from itertools import count
from typing import Annotated, Literal, TypeAlias, get_args

import anyio

from ricordo.agent.tools.contract import Approval, ApprovalHandler, Tool, ToolContext
from ricordo.agent.tools.function import tool
from ricordo.agent.tools.paging import Page, cut_page, describe_page
from ricordo.clock import Clock
from ricordo.errors import AlreadyExists, FileMissing, InvalidSetting, PathRefused, ToolFailed, VersionConflict
from ricordo.guard import Redactor
from ricordo.guard.redact import cut
from ricordo.lazy import lazy_compile
from ricordo.storage import ABSENT, FileStore, compute_version
from ricordo.storage.paths import safe_path
from ricordo.workspace.agent_state import PlanState, WorkState, WorkStateHolder
from ricordo.workspace.documents import create_document
from ricordo.workspace.history.change_sets import ChangeSets, Edit
from ricordo.workspace.layout import WORKSPACE, plan_path

__all__ = ["MAX_PLAN_BYTES", "PlanActor", "PlanMode", "PlanOutcome", "plan_tools"]


MAX_PLAN_BYTES = 100 * 1024
"""The largest plan, in bytes."""
PlanOutcome: TypeAlias = Literal["ready", "dropped", "done"]
"""How planning ends: the plan is to be carried out, is given up, or has been carried out."""
PlanActor: TypeAlias = Literal["user", "agent"]
_PLAN_PATH = lazy_compile(r"plans/[^/]+\.md")
_MAX_SLUG_CHARS = 50
_MAX_TITLE_CHARS = 200
_MAX_ERROR_CHARS = 1_500
"""Characters of a plan that a refusal shows: a model is told 2,000 of an error, and no traceback in it."""
_TRACEBACK = "Traceback (most recent call last)"
_PAGE_CHARS = 20_000
_FOREIGN_PLAN_TEXT = (
    "Only a person lets you go on with this plan. Leave the title out to go on with your own, or give the title of a"
    " new one."
)


class PlanMode:
    """The plan of one session."""

    def __init__(
        self,
        keeper: WorkStateHolder,
        files: FileStore,
        changes: ChangeSets,
        *,
        redactor: Redactor,
        clock: Clock,
        approve: ApprovalHandler | None = None,
        session: str = "",
    ) -> None:
        """Plan in the root of `files`, for the session that `keeper` holds.

        `approve` is asked before the agent goes on from planning to acting. A plan without a title is named after
        `session`.
        """
        self._session_state = keeper
        self._files = files
        self._changes = changes
        self._redactor = redactor
        self._last: tuple[str | None, str] = (None, ABSENT)
        self._clock = clock
        self._approve = approve
        self._session = session
        self._shown_versions: dict[str, str] = {}
        self._read_to: dict[str, tuple[str, tuple[int, int]]] = {}
        self._write_lock = anyio.Lock()

    @property
    def plan(self) -> PlanState:
        """Where the session stands; a path that is none of a plan is left out."""
        return _safe_plan(self._session_state.work_state)

    async def enter(self, title: str = "", *, by: PlanActor) -> PlanState:
        """Begin to plan, or go on with it; the file of the plan is there then.

        A `title` that is the path of a plan, such as `/plans/x.md`, goes on with that plan, which only a person may do,
        and any other begins a new file. Without one the plan in force is gone on with. While planning, the plan stays
        what it is; one that a person enters is that person's from then on. Raises: InvalidSetting for what is no title
        and for another `by`; ToolFailed for an agent that names another plan; FileMissing for a path where no plan is;
        StorageError, and then plan mode is as it was.
        """
        _check_one_of(by, get_args(PlanActor), "Who plans")
        _check_text(title, "The title of a plan")
        before = self.plan
        own = before.path and (before.active or title.strip().removeprefix("/") in {"", before.path})
        path = before.path if own else await self._choose_file(title, by)
        await self._ensure_file(path, by)

        def enter_plan(standing: WorkState) -> WorkState:
            held = _safe_plan(standing)
            began: PlanActor = "user" if by == "user" or (held.active and held.by == "user") else "agent"
            kept = held.path if held.active and held.path else path
            approved = kept == held.path and (held.approved or (not held.active and held.by == "user"))
            return replace(standing, plan=PlanState(active=True, path=kept, by=began, approved=approved))

        return (await self._session_state.update_work_state(enter_plan)).plan

    async def text(self, *, told: bool = False) -> str | None:
        """Return the text of the plan that is made or in force; None when there is none, or its file is gone.

        With `mark_shown` it counts as shown to the model, which may then write over it. Raises: StorageError.
        """
        path = self.plan.path
        if not path:
            return None
        text, version = await self._read_plan(path)
        if told:
            self._shown_versions[path] = version
        return text

    def mark_shown(self, text: str) -> None:
        """Take it that the model was shown just this text of the plan, which `text` returned."""
        shown, version = self._last
        self._shown_versions[self.plan.path] = version if text == shown else compute_version(text.encode())

    async def page(self, line: int = 1, character: int = 0) -> str:
        """Return a page of the plan, for the model, with where to read on.

        It counts as shown when its last line was, and all before it, in any number of pages. Raises: ToolFailed where
        there is no plan or nothing at this place; StorageError.
        """
        if line < 1 or character < 0:
            raise ToolFailed("Lines count from 1, characters from 0.")
        path = self.plan.path
        if not path:
            raise ToolFailed("There is no plan to read.")
        text, version = await self._read_plan(path)
        if text is None:
            raise self._edited_error(path, text, version)
        found = cut_page(text, line=line, character=character, most=_PAGE_CHARS)
        if found is None:
            raise ToolFailed(f"/{path} has nothing at line {line}, character {character}.")
        self._mark_page_shown(path, version, found)
        return f"[/{path}: {describe_page(found)}]\n{found.text}"

    async def write(self, content: str, *, approved: bool = False) -> str:
        """Replace the whole plan by `content` without its secrets, as one change set; return in words what was done.

        A person who approved the plan in force, or who began it, is asked again, unless it is `approved` already.
        Raises: InvalidSetting for what is no text; ToolFailed where there is no plan, for more than `MAX_PLAN_BYTES`,
        where it is not approved, and when the file is not what this session wrote or showed last; a short one is told
        with that, and counts as shown. StorageError. Nothing was written then.
        """
        _check_text(content, "A plan")
        async with self._write_lock:
            plan = self.plan
            path = plan.path
            if not path:
                raise ToolFailed("There is no plan to write: begin one with plan_enter.")
            data = self._redactor.clean(content).encode("utf-8", "replace")
            if len(data) > MAX_PLAN_BYTES:
                raise ToolFailed(
                    f"A plan has at most {MAX_PLAN_BYTES:,} bytes, not {len(data):,}: say it in fewer words."
                )
            text, version = await self._read_plan(path)
            if self._shown_versions.get(path) != version:
                raise self._edited_error(path, text, version)
            if version == compute_version(data):
                return f"/{path} is so already; nothing was written."
            if not approved and not plan.active:
                await self._ask_change(plan, data.decode())
            edit = Edit(path=f"{WORKSPACE}/{path}", expected=version, data=data)
            try:
                change = await self._changes.apply([edit], act="tool", who="agent", why=f"plan_write /{path}")
            except VersionConflict as error:
                raise self._edited_error(path, *await self._read_plan(path)) from error
            self._shown_versions[path] = compute_version(data)
        return f"/{path} was written and has {len(data):,} bytes, as change {change.id}, which can be undone."

    async def exit(self, outcome: PlanOutcome, *, by: PlanActor, approved: bool = False) -> PlanState:
        """End plan mode, or a plan that is in force, and return what stands then.

        `ready` ends plan mode with the plan in force, `dropped` leaves no plan, `done` ends one that is in force; the
        file always stays. An agent needs a person's approval to make a plan ready, and to drop one that a person asked
        for, unless it is `approved` already; with nobody to ask it can end only what it began itself.

        Raises: InvalidSetting for another `outcome` or `by`; ToolFailed where there is nothing to end so, an empty plan
        can't be ready, or it is not approved, and nothing has changed then; StorageError.
        """
        _check_one_of(outcome, get_args(PlanOutcome), "How planning ends")
        _check_one_of(by, get_args(PlanActor), "Who ends it")
        if by == "user":
            return await self._end_plan(outcome, self.plan, by_person=True)
        async with self._write_lock:
            plan = self.plan
            await self._check_outcome(outcome, plan)
            by_person = False
            if not approved and (outcome == "ready" or (plan.active and plan.by == "user")):
                by_person = await self._ask_approval(outcome, plan)
            return await self._end_plan(outcome, plan, by_person=by_person)

    async def _end_plan(self, outcome: PlanOutcome, plan: PlanState, *, by_person: bool) -> PlanState:
        await self._check_outcome(outcome, plan)

        def apply_end(standing: WorkState) -> WorkState:
            if _safe_plan(standing) != plan:
                raise ToolFailed("Planning was ended or begun anew meanwhile: nothing was changed.")
            ready = replace(plan, active=False, approved=plan.approved or by_person)
            left = ready if outcome == "ready" else PlanState()
            return replace(standing, plan=left)

        return (await self._session_state.update_work_state(apply_end)).plan

    async def _check_outcome(self, outcome: PlanOutcome, plan: PlanState) -> None:
        if outcome == "ready":
            if not plan.active:
                raise ToolFailed("Plan mode is not on, so there is no plan to make ready.")
            if not plan.path or _has_no_content((await self._read_plan(plan.path))[0]):
                raise ToolFailed("The plan is empty: write it with plan_write first.")
        elif not plan.active and not plan.path:
            raise ToolFailed("There is no plan.")
        elif outcome == "done" and plan.active:
            raise ToolFailed("A plan that is still being made can't be done: it is ready, or dropped.")

    async def _ask_approval(self, outcome: PlanOutcome, plan: PlanState) -> bool:
        """Tell whether a person let it; False where nobody has to. Raises: ToolFailed where a person does not."""
        if self._approve is None:
            if not _belongs_to_person(plan):
                return False
            began = "began plan mode" if plan.by == "user" else "approved this plan"
            raise ToolFailed(f"A person {began}, and a person ends it: say that the plan is there to be read.")
        act = "carry out" if outcome == "ready" else "drop"
        text = (await self._read_plan(plan.path))[0] if plan.path else ""
        asked = Approval(tool="plan_exit", act=act, target=f"/{plan.path}" if plan.path else "", change=text or "")
        if not await self._approve(asked):
            raise ToolFailed("It was not approved: plan mode is still on. Ask what is to be changed in the plan.")
        return True

    async def _ask_change(self, plan: PlanState, text: str) -> None:
        """Ask whether a plan in force may be changed, where a person let it come into force."""
        if not _belongs_to_person(plan):
            return
        if self._approve is None:
            raise ToolFailed(
                "A person approved this plan, and there is nobody to ask whether it may be changed: nothing was"
                " written. Say what is to be changed."
            )
        if not await self._approve(Approval(tool="plan_write", act="change", target=f"/{plan.path}", change=text)):
            raise ToolFailed("The change of the plan was not approved: nothing was written. It is in force as it was.")
        if self.plan != plan:
            raise ToolFailed("Planning was ended or begun anew meanwhile: nothing was written.")

    async def _choose_file(self, title: str, by: PlanActor) -> str:
        """Return the file that a plan with this title begins in, or the one that it names."""
        named = title.strip().removeprefix("/")
        if _is_plan(named):
            if by == "agent":
                raise ToolFailed(_FOREIGN_PLAN_TEXT)
            if await self._files.info(f"{WORKSPACE}/{named}") is None:
                raise FileMissing(f"There is no plan /{named}.")
            return named
        line = cut(" ".join(self._redactor.clean(title).split()), _MAX_TITLE_CHARS)
        name = self._file_name(line)
        for number in count(1):
            path = plan_path(name if number == 1 else f"{name}-{number}")
            try:
                await self._create_file(path, line or "Plan", by)
            except AlreadyExists:
                continue
            return path
        raise AssertionError

    async def _ensure_file(self, path: str, by: PlanActor) -> None:
        """Make the file anew where somebody removed it."""
        if await self._files.info(f"{WORKSPACE}/{path}") is None:
            await self._create_file(path, "Plan", by)

    async def _create_file(self, path: str, title: str, by: PlanActor) -> None:
        content = f"# {title}\n"
        await create_document(
            self._files, self._changes, path, content, redactor=self._redactor, who=by, why=f"plan_enter /{path}"
        )
        self._shown_versions[path] = compute_version(self._redactor.clean(content).encode("utf-8", "surrogatepass"))

    def _file_name(self, title: str) -> str:
        day = self._clock.today().isoformat()
        slug = _slug(title) or _slug(self._session) or "plan"
        return slug if slug.startswith(day) else f"{day}-{slug}"

    async def _read_plan(self, path: str) -> tuple[str | None, str]:
        try:
            stored = await self._files.read(f"{WORKSPACE}/{path}")
        except (FileMissing, PathRefused):
            # a link in the place of a plan leads elsewhere
            return None, ABSENT
        text = self._redactor.clean_bytes(stored.data).decode("utf-8", "replace")
        self._last = (text, stored.version)
        return text, stored.version

    def _edited_error(self, path: str, text: str | None, version: str) -> ToolFailed:
        """Return the error that tells what somebody else made of the file.

        After it the file may be written where all of it is told; a long one is to be read first.
        """
        edited = "the plan was edited by a person meanwhile: "
        if text is not None and (len(text) > _MAX_ERROR_CHARS or _TRACEBACK in text):
            return ToolFailed(
                f"{edited}nothing was written. Read all of it with plan_read, page by page, then write it again with"
                " what is to stay."
            )
        self._shown_versions[path] = version
        if text is None:
            return ToolFailed(f"The plan was removed by a person meanwhile: writing again makes /{path} anew.")
        return ToolFailed(
            f"{edited}read it first, then write it again with what is to stay. Nothing was written. /{path} is now:\n"
            f"{text}"
        )

    def _mark_page_shown(self, path: str, version: str, shown: Page) -> None:
        """Take in which page the model was shown; one beyond what it has read so far leaves a gap, and counts for
        nothing."""
        of, reached = self._read_to.get(path, ("", (1, 0)))
        reached = reached if of == version else (1, 0)
        if (shown.start, shown.character) > reached:
            return
        if shown.next_line is None:
            self._shown_versions[path] = version
        else:
            self._read_to[path] = (version, max(reached, (shown.next_line, shown.next_character)))


def _safe_plan(standing: WorkState) -> PlanState:
    """Return the plan, without a path that is none of a plan: a state may have been edited by hand."""
    plan = standing.plan
    return plan if not plan.path or _is_plan(plan.path) else replace(plan, path="")


def _belongs_to_person(plan: PlanState) -> bool:
    """Tell whether a person let it be carried out, or began it."""
    return plan.approved or plan.by == "user"


def _check_one_of(given: object, choices: tuple[str, ...], what: str) -> None:
    if given not in choices:
        raise InvalidSetting(f"{what} is one of {', '.join(choices)}: not {given!r}.")


def _check_text(given: object, what: str) -> None:
    if not isinstance(given, str):
        raise InvalidSetting(f"{what} is a text: not {given!r}.")


def _is_plan(path: str) -> bool:
    if not _PLAN_PATH.fullmatch(path):
        return False
    try:
        return safe_path(path) == path
    except PathRefused:
        return False


def _slug(title: str) -> str:
    bare = "".join(each for each in unicodedata.normalize("NFKD", title) if not unicodedata.combining(each))
    plain = unicodedata.normalize("NFC", bare).casefold()
    return "-".join(re.findall(r"[^\W_]+", plain))[:_MAX_SLUG_CHARS].strip("-")


def _has_no_content(text: str | None) -> bool:
    """Tell whether a plan has no more than its heading."""
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return not lines or (len(lines) == 1 and lines[0].startswith("#"))


def plan_tools(planning: PlanMode) -> tuple[Tool, ...]:
    """Return the four tools over the plan of one session."""
    return (_enter_tool(planning), _read_tool(planning), _write_tool(planning), _exit_tool(planning))


def _enter_tool(planning: PlanMode) -> Tool:
    async def plan_enter(
        title: Annotated[str, "what the plan is about; left out, the plan in force is gone on with"] = "",
    ) -> str:
        """Begin to plan: until plan_exit you can read and plan, but change nothing else.

        Use it before work of many steps or of great effect.
        """
        plan = await planning.enter(title, by="agent")
        return (
            f"Plan mode is on, and the plan is /{plan.path}. Look around with what only reads, write the plan with"
            " plan_write, and end with plan_exit."
        )

    return tool(plan_enter, effect="organizes")


def _read_tool(planning: PlanMode) -> Tool:
    async def plan_read(
        offset: Annotated[int, "the first line to show, from 1"] = 1,
        character: Annotated[int, "where in the first line to begin, from 0, for lines too long for one page"] = 0,
    ) -> str:
        """Read the plan, page by page. What a person changed in it has to be read before it can be written again."""
        return await planning.page(offset, character)

    return tool(plan_read, effect="reads")


def _write_tool(planning: PlanMode) -> Tool:
    async def plan_write(context: ToolContext, content: Annotated[str, "the whole plan, as Markdown"]) -> str:
        """Write the plan, in the place of all that stands in its file. A person may be asked first."""
        return await planning.write(content, approved=context.approved)

    return tool(plan_write, effect="organizes")


def _exit_tool(planning: PlanMode) -> Tool:
    async def plan_exit(
        context: ToolContext,
        outcome: Annotated[
            PlanOutcome, "ready: the plan is to be carried out; dropped: it is given up; done: it has been carried out"
        ] = "ready",
    ) -> str:
        """End plan mode, or a plan in force. A person may be asked first."""
        was = planning.plan
        left = await planning.exit(outcome, by="agent", approved=context.approved)
        if left.path:
            return f"Plan mode is off, and the plan /{left.path} is in force: carry it out."
        ended = "Plan mode is off" if was.active else "The plan is over"
        return f"{ended}; no plan stands any more{f', its file stays as /{was.path}' if was.path else ''}."

    return tool(plan_exit, effect="organizes")
