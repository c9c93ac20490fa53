"""Planning: plan mode and the file of the plan, which a person can read and change while the agent plans.

Whether the agent plans, and where, stands beside the window; the plan itself is a file below `plans/`, which no
compaction touches. Invariants: nothing outside `plans/` is read or written, whatever a state says; no two sessions
begin with the same file; what a person wrote into a plan is never overwritten before the model was shown it; and an
agent never ends by itself what a person began.
"""

import re
import unicodedata
from dataclasses import replace
from itertools import count
from typing import Literal, TypeAlias

import anyio

from ricordo.clock import Clock
from ricordo.errors import AlreadyExists, FileMissing, PathRefused, ToolFailed, VersionConflict
from ricordo.files import ABSENT, FileStore, version_of
from ricordo.files.paths import safe_path
from ricordo.guard import Redactor
from ricordo.state import KeepsStanding, Plan, Standing
from ricordo.tools.contract import Approval, Approve
from ricordo.workspace.changes import ChangeSets, Edit
from ricordo.workspace.documents import create_document
from ricordo.workspace.layout import WORKSPACE, plan_path

__all__ = ["MOST_BYTES", "Outcome", "Planning", "Who"]

MOST_BYTES = 100 * 1024
"""The largest plan, in bytes."""

Outcome: TypeAlias = Literal["ready", "dropped", "done"]
"""How planning ends: the plan is to be carried out, is given up, or has been carried out."""

Who: TypeAlias = Literal["user", "agent"]

_FILE = re.compile(r"plans/[^/]+\.md")
_LONGEST_SLUG = 50
_LONGEST_TITLE = 200
_SHOWN = 20_000


class Planning:
    """The plan of one session."""

    def __init__(
        self,
        keeper: KeepsStanding,
        files: FileStore,
        changes: ChangeSets,
        *,
        redactor: Redactor,
        clock: Clock,
        approve: Approve | None = None,
        session: str = "",
    ) -> None:
        """Plan in the root of `files`, for the session that `keeper` holds.

        `approve` is asked before the agent goes on from planning to acting. A plan without a title is named after
        `session`.
        """
        self._keeper = keeper
        self._files = files
        self._changes = changes
        self._redactor = redactor
        self._clock = clock
        self._approve = approve
        self._session = session
        self._known: dict[str, str] = {}
        self._writing = anyio.Lock()

    @property
    def plan(self) -> Plan:
        """Where the session stands; a path that is none of a plan is left out."""
        return _safe(self._keeper.standing)

    async def enter(self, title: str = "", *, by: Who) -> Plan:
        """Begin to plan, or go on with it; the file of the plan is there then.

        A `title` that is the path of a plan, such as `/plans/x.md`, goes on with that plan, and any other begins a new
        file. Without one the plan in force is gone on with. While planning, the plan stays what it is; one that a
        person enters is that person's from then on. Raises: FileMissing for a path where no plan is; StorageError, and
        then plan mode is as it was.
        """
        before = self.plan
        path = before.path if before.path and (before.active or not title.strip()) else await self._file(title, by)
        await self._ensure(path, by)

        def entered(standing: Standing) -> Standing:
            held = _safe(standing)
            began: Who = "user" if by == "user" or (held.active and held.by == "user") else "agent"
            kept = held.path if held.active and held.path else path
            return replace(standing, plan=Plan(active=True, path=kept, by=began))

        return (await self._keeper.stand(entered)).plan

    async def text(self, *, told: bool = False) -> str | None:
        """Return the text of the plan that is made or in force; None when there is none, or its file is gone.

        With `told` it counts as shown to the model, which may then write over it. Raises: StorageError.
        """
        path = self.plan.path
        if not path:
            return None
        text, version = await self._read(path)
        if told:
            self._known[path] = version
        return text

    async def write(self, content: str) -> str:
        """Replace the whole plan by `content` without its secrets, as one change set; return in words what was done.

        Raises: ToolFailed where there is no plan, for more than `MOST_BYTES`, and when the file is not what this
        session wrote or showed last; its text is told with that, and counts as shown. StorageError.
        """
        async with self._writing:
            path = self.plan.path
            if not path:
                raise ToolFailed("There is no plan to write: begin one with plan_enter.")
            data = self._redactor.clean(content).encode("utf-8", "replace")
            if len(data) > MOST_BYTES:
                raise ToolFailed(f"A plan has at most {MOST_BYTES:,} bytes, not {len(data):,}: say it in fewer words.")
            text, version = await self._read(path)
            if self._known.get(path) != version:
                raise self._edited(path, text, version)
            if version == version_of(data):
                return f"/{path} is so already; nothing was written."
            edit = Edit(path=f"{WORKSPACE}/{path}", expected=version, data=data)
            try:
                change = await self._changes.apply([edit], act="tool", who="agent", why=f"plan_write /{path}")
            except VersionConflict as error:
                raise self._edited(path, *await self._read(path)) from error
            self._known[path] = version_of(data)
        return f"/{path} was written and has {len(data):,} bytes, as change {change.id}, which can be undone."

    async def exit(self, outcome: Outcome, *, by: Who, approved: bool = False) -> Plan:
        """End plan mode, or a plan that is in force, and return what stands then.

        `ready` ends plan mode with the plan in force, `dropped` leaves no plan, `done` ends one that is in force; the
        file always stays. An agent needs a person's approval to make a plan ready, and to drop one that a person asked
        for, unless it is `approved` already; with nobody to ask it can end only what it began itself.

        Raises: ToolFailed where there is nothing to end so, an empty plan can't be ready, or it is not approved, and
        nothing has changed then; StorageError.
        """
        if by == "user":
            return await self._end(outcome, self.plan)
        async with self._writing:
            plan = self.plan
            await self._check(outcome, plan)
            if not approved and (outcome == "ready" or (plan.active and plan.by == "user")):
                await self._ask(outcome, plan)
            return await self._end(outcome, plan)

    async def _end(self, outcome: Outcome, plan: Plan) -> Plan:
        await self._check(outcome, plan)

        def ended(standing: Standing) -> Standing:
            if _safe(standing) != plan:
                raise ToolFailed("Planning was ended or begun anew meanwhile: nothing was changed.")
            left = Plan(path=plan.path, by=plan.by) if outcome == "ready" else Plan()
            return replace(standing, plan=left)

        return (await self._keeper.stand(ended)).plan

    async def _check(self, outcome: Outcome, plan: Plan) -> None:
        if outcome == "ready":
            if not plan.active:
                raise ToolFailed("Plan mode is not on, so there is no plan to make ready.")
            if not plan.path or _is_bare((await self._read(plan.path))[0]):
                raise ToolFailed("The plan is empty: write it with plan_write first.")
        elif not plan.active and not plan.path:
            raise ToolFailed("There is no plan.")
        elif outcome == "done" and plan.active:
            raise ToolFailed("A plan that is still being made can't be done: it is ready, or dropped.")

    async def _ask(self, outcome: Outcome, plan: Plan) -> None:
        if self._approve is None:
            if plan.by == "agent":
                return
            raise ToolFailed("A person began plan mode, and a person ends it: say that the plan is there to be read.")
        act = "carry out" if outcome == "ready" else "drop"
        text = (await self._read(plan.path))[0] if plan.path else ""
        asked = Approval(tool="plan_exit", act=act, target=f"/{plan.path}" if plan.path else "", change=text or "")
        if not await self._approve(asked):
            raise ToolFailed("It was not approved: plan mode is still on. Ask what is to be changed in the plan.")

    async def _file(self, title: str, by: Who) -> str:
        """Return the file that a plan with this title begins in, or the one that it names."""
        named = title.strip().removeprefix("/")
        if _is_plan(named):
            if await self._files.info(f"{WORKSPACE}/{named}") is None:
                raise FileMissing(f"There is no plan /{named}.")
            return named
        line = " ".join(self._redactor.clean(title).split())[:_LONGEST_TITLE]
        name = self._name(line)
        for number in count(1):
            path = plan_path(name if number == 1 else f"{name}-{number}")
            try:
                await self._create(path, line or "Plan", by)
            except AlreadyExists:
                continue
            return path
        raise AssertionError

    async def _ensure(self, path: str, by: Who) -> None:
        """Make the file anew where somebody removed it."""
        if await self._files.info(f"{WORKSPACE}/{path}") is None:
            await self._create(path, "Plan", by)

    async def _create(self, path: str, title: str, by: Who) -> None:
        content = f"# {title}\n"
        await create_document(
            self._files, self._changes, path, content, redactor=self._redactor, who=by, why=f"plan_enter /{path}"
        )
        self._known[path] = version_of(self._redactor.clean(content).encode("utf-8", "surrogatepass"))

    def _name(self, title: str) -> str:
        day = self._clock.today().isoformat()
        slug = _slug(title) or _slug(self._session) or "plan"
        return slug if slug.startswith(day) else f"{day}-{slug}"

    async def _read(self, path: str) -> tuple[str | None, str]:
        try:
            stored = await self._files.read(f"{WORKSPACE}/{path}")
        except (FileMissing, PathRefused):
            # a link in the place of a plan leads elsewhere
            return None, ABSENT
        return stored.data.decode("utf-8", "replace"), stored.version

    def _edited(self, path: str, text: str | None, version: str) -> ToolFailed:
        """Return the error that shows what somebody else made of the file, after which it may be written."""
        self._known[path] = version
        if text is None:
            return ToolFailed(f"The plan was removed by a person meanwhile: writing again makes /{path} anew.")
        more = f"\n[cut: read_file shows all of /{path}]" if len(text) > _SHOWN else ""
        return ToolFailed(
            "the plan was edited by a person meanwhile: read it first, then write it again with what is to stay."
            f" Nothing was written. /{path} is now:\n{text[:_SHOWN]}{more}"
        )


def _safe(standing: Standing) -> Plan:
    """Return the plan, without a path that is none of a plan: a state may have been edited by hand."""
    plan = standing.plan
    return plan if not plan.path or _is_plan(plan.path) else replace(plan, path="")


def _is_plan(path: str) -> bool:
    if not _FILE.fullmatch(path):
        return False
    try:
        return safe_path(path) == path
    except PathRefused:
        return False


def _slug(title: str) -> str:
    bare = "".join(each for each in unicodedata.normalize("NFKD", title) if not unicodedata.combining(each))
    plain = unicodedata.normalize("NFC", bare).casefold()
    return "-".join(re.findall(r"[^\W_]+", plain))[:_LONGEST_SLUG].strip("-")


def _is_bare(text: str | None) -> bool:
    """Tell whether a plan has no more than its heading."""
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return not lines or (len(lines) == 1 and lines[0].startswith("#"))
