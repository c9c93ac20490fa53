"""Plan mode, the file of the plan, and the tools plan_enter, plan_read, plan_write and plan_exit.

Invariants: nothing outside `plans/` is read or written. No two sessions start with the same file, and only a person can
let a session continue another's plan. A person's edit is never overwritten before the model was shown all of it. An
approved plan is not changed without asking. An agent never ends planning that a person started.
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
from ricordo.storage.contract import safe_path
from ricordo.workspace.agent_state import PlanState, WorkState, WorkStateHolder
from ricordo.workspace.documents import create_document
from ricordo.workspace.history.change_sets import ChangeSets, Edit
from ricordo.workspace.layout import WORKSPACE, plan_path

__all__ = ["MAX_PLAN_BYTES", "PlanActor", "PlanMode", "PlanOutcome", "plan_tools"]


MAX_PLAN_BYTES = 100 * 1024
"""Maximum size of a plan, in bytes."""
PlanOutcome: TypeAlias = Literal["ready", "dropped", "done"]
"""How planning ends: the plan is ready to be carried out, is given up, or has been carried out."""
PlanActor: TypeAlias = Literal["user", "agent"]
_PLAN_PATH = lazy_compile(r"plans/[^/]+\.md")
_MAX_SLUG_CHARS = 50
_MAX_TITLE_CHARS = 200
_MAX_ERROR_CHARS = 1_500
"""Characters of a plan in an error: a model sees 2,000 characters of an error, without any traceback."""
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
        session_state: WorkStateHolder,
        files: FileStore,
        changes: ChangeSets,
        *,
        redactor: Redactor,
        clock: Clock,
        approve: ApprovalHandler | None = None,
        session: str = "",
    ) -> None:
        """Plan in the root of `files`, for the session of `session_state`.

        `approve` is asked before the agent changes from planning to acting. A plan without a title is named after
        `session`.
        """
        self._session_state = session_state
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
        """The state of planning; a path that is not the path of a plan is left out."""
        return _safe_plan(self._session_state.work_state)

    async def enter(self, title: str = "", *, by: PlanActor) -> PlanState:
        """Start or continue planning, and create the file of the plan if needed.

        A `title` that is the path of a plan, such as `/plans/x.md`, continues that plan, which only a person may do;
        any other title starts a new file. Without a title the plan in force is continued. While planning, the plan does
        not change; if a person enters it, it belongs to that person from then on. Raises: InvalidSetting for an invalid
        title or `by`; ToolFailed for an agent that names another plan; FileMissing for a path without a plan;
        StorageError, and then plan mode is unchanged.
        """
        _check_one_of(by, get_args(PlanActor), "Who plans")
        _check_text(title, "The title of a plan")
        before = self.plan
        own = before.path and (before.active or title.strip().removeprefix("/") in {"", before.path})
        path = before.path if own else await self._choose_file(title, by)
        await self._ensure_file(path, by)

        def enter_plan(work_state: WorkState) -> WorkState:
            current = _safe_plan(work_state)
            owner: PlanActor = "user" if by == "user" or (current.active and current.author == "user") else "agent"
            new_path = current.path if current.active and current.path else path
            approved = new_path == current.path and (
                current.approved or (not current.active and current.author == "user")
            )
            return replace(work_state, plan=PlanState(active=True, path=new_path, author=owner, approved=approved))

        return (await self._session_state.update_work_state(enter_plan)).plan

    async def text(self, *, as_shown: bool = False) -> str | None:
        """Return the text of the current plan; None if there is none or its file is missing.

        With `as_shown` it counts as shown to the model, which may then overwrite it. Raises: StorageError.
        """
        path = self.plan.path
        if not path:
            return None
        text, version = await self._read_plan(path)
        if as_shown:
            self._shown_versions[path] = version
        return text

    def mark_shown(self, text: str) -> None:
        """Mark exactly this text of the plan, returned by `text`, as shown to the model."""
        last_text, version = self._last
        self._shown_versions[self.plan.path] = version if text == last_text else compute_version(text.encode())

    async def page(self, line: int = 1, character: int = 0) -> str:
        """Return a page of the plan for the model, with how to read on.

        The plan counts as shown once all of it was, in any number of pages. Raises: ToolFailed if there is no plan or
        nothing at this position; StorageError.
        """
        if line < 1 or character < 0:
            raise ToolFailed("Lines count from 1, characters from 0.")
        path = self.plan.path
        if not path:
            raise ToolFailed("There is no plan to read.")
        text, version = await self._read_plan(path)
        if text is None:
            raise self._edited_error(path, text, version)
        page = cut_page(text, line=line, character=character, max_chars=_PAGE_CHARS)
        if page is None:
            raise ToolFailed(f"/{path} has nothing at line {line}, character {character}.")
        self._mark_page_shown(path, version, page)
        return f"[/{path}: {describe_page(page)}]\n{page.text}"

    async def write(self, content: str, *, approved: bool = False) -> str:
        """Replace the whole plan by `content` without secrets, as one change set; return what was done in words.

        A person who approved or started the plan in force is asked again, unless it is already `approved`. Raises:
        InvalidSetting if `content` is not a text; ToolFailed if there is no plan, for more than `MAX_PLAN_BYTES`,
        without approval, and if the file is not what this session last wrote or showed (the error contains a short
        file, which then counts as shown); StorageError. On an error nothing was written.
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
            edit = Edit(path=f"{WORKSPACE}/{path}", expected_hash=version, data=data)
            try:
                change = await self._changes.apply([edit], act="tool", who="agent", why=f"plan_write /{path}")
            except VersionConflict as error:
                raise self._edited_error(path, *await self._read_plan(path)) from error
            self._shown_versions[path] = compute_version(data)
        return f"/{path} was written and has {len(data):,} bytes, as change {change.id}, which can be undone."

    async def exit(self, outcome: PlanOutcome, *, by: PlanActor, approved: bool = False) -> PlanState:
        """End plan mode, or the plan in force, and return the new state.

        `ready` ends plan mode with the plan in force, `dropped` leaves no plan, `done` ends the plan in force; the file
        always stays. Unless it is already `approved`, an agent needs a person's approval to make a plan ready, or to
        drop one that a person asked for; with nobody to ask it can end only what it started itself.

        Raises: InvalidSetting for another `outcome` or `by`; ToolFailed if there is nothing to end, an empty plan can't
        be ready, or it is not approved, and then nothing has changed; StorageError.
        """
        _check_one_of(outcome, get_args(PlanOutcome), "How planning ends")
        _check_one_of(by, get_args(PlanActor), "Who ends it")
        if by == "user":
            return await self._end_plan(outcome, self.plan, by_person=True)
        async with self._write_lock:
            plan = self.plan
            await self._check_outcome(outcome, plan)
            by_person = False
            if not approved and (outcome == "ready" or (plan.active and plan.author == "user")):
                by_person = await self._ask_approval(outcome, plan)
            return await self._end_plan(outcome, plan, by_person=by_person)

    async def _end_plan(self, outcome: PlanOutcome, plan: PlanState, *, by_person: bool) -> PlanState:
        await self._check_outcome(outcome, plan)

        def apply_end(work_state: WorkState) -> WorkState:
            if _safe_plan(work_state) != plan:
                raise ToolFailed("Planning was ended or begun anew meanwhile: nothing was changed.")
            ready = replace(plan, active=False, approved=plan.approved or by_person)
            next_plan = ready if outcome == "ready" else PlanState()
            return replace(work_state, plan=next_plan)

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
        """Return True if a person approved, False if no approval is needed. Raises: ToolFailed if it was denied."""
        if self._approve is None:
            if not _belongs_to_person(plan):
                return False
            action = "began plan mode" if plan.author == "user" else "approved this plan"
            raise ToolFailed(f"A person {action}, and a person ends it: say that the plan is there to be read.")
        act = "carry out" if outcome == "ready" else "drop"
        text = (await self._read_plan(plan.path))[0] if plan.path else ""
        approval = Approval(
            tool="plan_exit", action=act, target=f"/{plan.path}" if plan.path else "", change=text or ""
        )
        if not await self._approve(approval):
            raise ToolFailed("It was not approved: plan mode is still on. Ask what is to be changed in the plan.")
        return True

    async def _ask_change(self, plan: PlanState, text: str) -> None:
        """Ask for approval to change the plan in force, if a person approved or started it."""
        if not _belongs_to_person(plan):
            return
        if self._approve is None:
            raise ToolFailed(
                "A person approved this plan, and there is nobody to ask whether it may be changed: nothing was"
                " written. Say what is to be changed."
            )
        if not await self._approve(Approval(tool="plan_write", action="change", target=f"/{plan.path}", change=text)):
            raise ToolFailed("The change of the plan was not approved: nothing was written. It is in force as it was.")
        if self.plan != plan:
            raise ToolFailed("Planning was ended or begun anew meanwhile: nothing was written.")

    async def _choose_file(self, title: str, by: PlanActor) -> str:
        """Return a new file for a plan with this title, or the file that the title names."""
        requested = title.strip().removeprefix("/")
        if _is_plan(requested):
            if by == "agent":
                raise ToolFailed(_FOREIGN_PLAN_TEXT)
            if await self._files.info(f"{WORKSPACE}/{requested}") is None:
                raise FileMissing(f"There is no plan /{requested}.")
            return requested
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
        """Create the file again if it was removed."""
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
            # A link in place of a plan leads elsewhere.
            return None, ABSENT
        text = self._redactor.clean_bytes(stored.data).decode("utf-8", "replace")
        self._last = (text, stored.version)
        return text, stored.version

    def _edited_error(self, path: str, text: str | None, version: str) -> ToolFailed:
        """Return the error that shows another's change of the file.

        If it shows the whole file, the file may be written next; a long file has to be read first.
        """
        prefix = "the plan was edited by a person meanwhile: "
        if text is not None and (len(text) > _MAX_ERROR_CHARS or _TRACEBACK in text):
            return ToolFailed(
                f"{prefix}nothing was written. Read all of it with plan_read, page by page, then write it again with"
                " what is to stay."
            )
        self._shown_versions[path] = version
        if text is None:
            return ToolFailed(f"The plan was removed by a person meanwhile: writing again makes /{path} anew.")
        return ToolFailed(
            f"{prefix}read it first, then write it again with what is to stay. Nothing was written. /{path} is now:\n"
            f"{text}"
        )

    def _mark_page_shown(self, path: str, version: str, page: Page) -> None:
        """Record the page that was shown; a page beyond the part read so far leaves a gap and does not count."""
        read_version, position = self._read_to.get(path, ("", (1, 0)))
        position = position if read_version == version else (1, 0)
        if (page.start, page.character) > position:
            return
        if page.next_line is None:
            self._shown_versions[path] = version
        else:
            self._read_to[path] = (version, max(position, (page.next_line, page.next_character)))


def _safe_plan(work_state: WorkState) -> PlanState:
    """Return the plan, without a path that is not the path of a plan: a person may have edited the state."""
    plan = work_state.plan
    return plan if not plan.path or _is_plan(plan.path) else replace(plan, path="")


def _belongs_to_person(plan: PlanState) -> bool:
    """Return whether a person approved the plan or started it."""
    return plan.approved or plan.author == "user"


def _check_one_of(value: object, choices: tuple[str, ...], subject: str) -> None:
    if value not in choices:
        raise InvalidSetting(f"{subject} is one of {', '.join(choices)}: not {value!r}.")


def _check_text(value: object, subject: str) -> None:
    if not isinstance(value, str):
        raise InvalidSetting(f"{subject} is a text: not {value!r}.")


def _is_plan(path: str) -> bool:
    if not _PLAN_PATH.fullmatch(path):
        return False
    try:
        return safe_path(path) == path
    except PathRefused:
        return False


def _slug(title: str) -> str:
    unaccented = "".join(each for each in unicodedata.normalize("NFKD", title) if not unicodedata.combining(each))
    plain = unicodedata.normalize("NFC", unaccented).casefold()
    return "-".join(re.findall(r"[^\W_]+", plain))[:_MAX_SLUG_CHARS].strip("-")


def _has_no_content(text: str | None) -> bool:
    """Return whether a plan has only its heading."""
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return not lines or (len(lines) == 1 and lines[0].startswith("#"))


def plan_tools(planning: PlanMode) -> tuple[Tool, ...]:
    """Return the four tools for the plan of one session."""
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
        previous = planning.plan
        new_plan = await planning.exit(outcome, by="agent", approved=context.approved)
        if new_plan.path:
            return f"Plan mode is off, and the plan /{new_plan.path} is in force: carry it out."
        status = "Plan mode is off" if previous.active else "The plan is over"
        return f"{status}; no plan stands any more{f', its file stays as /{previous.path}' if previous.path else ''}."

    return tool(plan_exit, effect="organizes")
