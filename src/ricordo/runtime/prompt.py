"""The system prompt of a session, what it shows of memory, and when it is written anew.

A summary opens a new prefix anyway, so the prompt is written with it; else it stays the same bytes.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.errors import EntryNotFound, FileMissing, RicordoError
from ricordo.events import Emitter
from ricordo.files import FileStore
from ricordo.guard import Redactor
from ricordo.harness.human import agents_file, rules
from ricordo.harness.prompt import (
    WORKSPACE_BUDGET,
    closing,
    instructions,
    memory_guidance,
    memory_notice,
    room_left,
    system_prompt,
    without_missing_tools,
)
from ricordo.messages import Message, mark_of
from ricordo.middleware import Request, Response, Step
from ricordo.middleware.inject import Inject
from ricordo.middleware.update import Line, Remembered, remembered
from ricordo.runtime.agent_options import AgentOptions
from ricordo.runtime.agent_store import AgentStore
from ricordo.runtime.assembly import Workspace, files_of
from ricordo.runtime.guard_key import new_key
from ricordo.runtime.opening_context import OpeningContext, first_words
from ricordo.runtime.plain_memory import PlainMemory
from ricordo.runtime.roots import place_root
from ricordo.runtime.shown_profile import ShownProfile
from ricordo.runtime.tool_sets import MEMORY_TOOLS
from ricordo.stores.capabilities import Layers, Lists, NotesUse
from ricordo.stores.place import Place
from ricordo.tokens import Tokens, estimate_text
from ricordo.tools.memory_tools import OPT_IN_TOOLS
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import prompt_lines
from ricordo.workspace.layout import LEDGERS, MEMORY, TOMBSTONES

__all__ = ["Prompt", "Renewal", "prompt_room", "written_in"]

_LOG = logging.getLogger("ricordo.agent")
_UNREADABLE = "What is remembered can't be read at the moment."
_OFF = "Memory can't be opened: nothing is remembered from earlier sessions, and nothing new can be."
_NOTHING_SHOWN = "memory has nothing to show"
_FEW = 10
_ONE_BY_ONE = 4
_SHARE = 4

_ALL = Tokens(1_000_000)
"""More than a preamble ever takes: what changed is looked for in all of it, not only in what fits."""


def prompt_room(wanted: int, window: int | None) -> Tokens:
    """Return what may be put into the prompt beside its base: as much as is `wanted`, yet at most a quarter of a window
    of so many tokens."""
    return Tokens(wanted if window is None else min(wanted, max(1, window // _SHARE)))


@dataclass
class _Listing:
    """How many entries were looked for since memory was `seen` so, and all of them by id once they were read."""

    seen: tuple[object, ...]
    asked: int = 0
    entries: dict[str, Entry] | None = None


class Prompt:
    """Writes the system prompt of a session: what people wrote, then what memory holds, within one budget."""

    def __init__(
        self,
        folder: Path,
        workspace: Workspace | None,
        budget: Tokens | None,
        *,
        clock: Clock,
        most: Tokens = WORKSPACE_BUDGET,
        memory: AgentStore | None = None,
        recalled: int = 0,
        sessions: str = "",
        own: Collection[str] = (),
        profile: ShownProfile | None = None,
        emitter: Emitter | None = None,
        written_in: Sequence[FileStore] = (),
    ) -> None:
        """Read AGENTS.md in `folder` and the rules in the roots `written_in`; without a `budget` no memory is shown.

        What is remembered is that of `memory`, by default of the workspace itself; `recalled` memories at most are
        shown for what a session begins with. `sessions` is where file tools find the store's session files. `own` are
        the names of the program's tools: a tool of its own is not told of as ours is that is called so.
        `profile` is what is known of the user; None where that is not shown. `emitter` hears what memory put in.
        `most` is for all that is put in beside the base prompt; `budget` for memory alone, as far as that leaves room.
        """
        self._redactor = workspace.place.redactor if workspace else Redactor(new_key())
        self._folder = folder
        self._budget = budget
        self._clock = clock
        self._sessions = sessions
        self._own = frozenset(own).intersection(OPT_IN_TOOLS)
        self._most = most.count
        self._profile = profile
        self._memory = memory or (AgentStore.of(workspace) if workspace else None)
        self._store = self._memory.store if self._memory and self._memory.keeps else None
        self._layers = self._store.offers(Layers) if self._store else None
        self._lists = self._store.offers(Lists) if self._store else None
        self._notes = self._store.offers(NotesUse) if self._store else None
        self._plain: PlainMemory | None = None
        if self._store and self._memory and budget and not self._layers:
            self._plain = PlainMemory(self._store, budget, self._memory.folder)
        self._emitter = emitter or Emitter(clock)
        self._opening: OpeningContext | None = None
        if self._store:
            self._opening = OpeningContext(store=self._store, most=recalled, emitter=self._emitter)
        self._written_in = written_in
        self._seen: tuple[object, ...] = ()
        self._listing: _Listing | None = None
        self._now = Remembered()
        self.preamble = ""
        self.written = 0
        self.shown = Remembered()

    async def __call__(self, request: Request) -> str:
        """Return the prompt for a session's first request; `preamble` is the part of it that is memory."""
        agents = await agents_file(self._folder)
        project_rules = await rules(*self._written_in)
        named = [tool.name for tool in request.tools if tool.name not in self._own]
        tools = named if self._store else [name for name in named if name not in MEMORY_TOOLS]
        guidance = memory_guidance(tools, sessions=self._sessions)
        guidance = guidance if estimate_text(guidance) <= self._most else ""
        notice = memory_notice(tools, where=self._where) if self._shows else ""
        room = room_left(self._most, guidance, notice)
        texts = [replace(each, text=self._clean(each.text)) for each in (*filter(None, (agents,)), *project_rules)]
        written = await run_sync(partial(instructions, texts, room))
        self.shown = await self.now()
        opening = first_words(request.window)
        room = room_left(self._most, guidance, written)
        known = await self._profile.block(room) if self._profile and self._profile.is_in_prompt else ""
        held = await self._remembered(room_left(room, known), notice, opening, request.turn.session)
        self._inject(request, known, self._clean(without_missing_tools(held, tools)))
        self.written += 1
        return system_prompt(
            base=request.system,
            written=written,
            guidance=guidance,
            preamble=self.preamble,
            end=closing(request.turn.session, self._clock.today()),
        )

    def _clean(self, text: str) -> str:
        return self._redactor.clean(text)

    def _inject(self, request: Request, *parts: str) -> None:
        """Let these parts of memory be in the prompt, and tell how much that is."""
        self.preamble = "\n\n".join(filter(None, parts))
        if not self._shows and self._profile is None:
            return
        with self._emitter.stage("inject", request.turn.scope) as progress:
            progress.counts["tokens"] = estimate_text(self.preamble)
            progress.skipped = None if self.preamble else _NOTHING_SHOWN

    async def known(self, request: Request) -> str:
        """Return what is known of the user for a message of its own, by what is asked; empty where it has none."""
        if self._profile is None or self._profile.is_in_prompt:
            return ""
        return await self._profile.block(self._most, first_words(request.window))

    async def now(self) -> Remembered:
        """Return what memory and the profile hold now; what was read last where none of it can be read."""
        held = await self._held()
        return replace(held, lines=(*await self._profile.lines(), *held.lines)) if self._profile else held

    async def _held(self) -> Remembered:
        """Return what memory holds now; what was read last where no file changed, or none can be read.

        Of a store that is no root, it is what the preamble shows.
        """
        if self._store is None or self._budget is None:
            return self._now
        try:
            if self._plain:
                self._now = await self._plain.now()
                return self._now
            seen, corrections = await self._versions()
            if seen != self._seen:
                self._now = remembered(await self._store.preamble(_ALL), corrections)
                self._seen = seen
        except RicordoError as error:
            _LOG.debug("Memory can't be read for an update: %s", error)
        return self._now

    async def is_own(self, line: Line, session: str) -> bool:
        """Tell whether the agent saved this itself in `session`, or the profile learned it from what was said there."""
        if self._profile and self._profile.is_own(line, session):
            return True
        try:
            entry = await self._entry(line)
        except RicordoError:
            return False
        return entry is not None and entry.by == "agent" and entry.source.session == session

    async def holds(self, line: Line) -> bool:
        """Tell whether memory still holds a line that the preamble shows no more; also when that can't be read."""
        known = await self._profile.holds(line) if self._profile else None
        if known is not None:
            return known
        try:
            if line.id and self._store:
                entry = await self._entry(line)
                return entry is not None and entry.state == "active"
            # what a store that is no root shows without an id can't be asked for
            return not self._layers or any([line.text in await _curated(place) for place in await self._places()])
        except EntryNotFound:
            return False
        except RicordoError:
            return True

    async def _remembered(self, room: int, notice: str, opening: str, session: str) -> str:
        """Return the preamble as far as there is room, with what memory holds about `opening`; else a notice.

        Memory that can't be read ends no turn, and is not shown as an empty one.
        """
        if self._store is None or self._opening is None or self._budget is None:
            return _OFF if self._budget and self._is_broken and estimate_text(_OFF) <= room else ""
        store = self._store
        try:
            text = await store.preamble(self._budget)
            if estimate_text(text) > room:
                text = await store.preamble(Tokens(room)) if room else ""
                text = text if text and estimate_text(text) <= room else notice
            if text != notice and room:
                most = Tokens(min(self._budget.count, room))
                text = await self._opening.with_preamble(text, most, opening, now=self._clock.now())
            if self._plain:
                await self._plain.showing(text)
            if self._notes and text not in {notice, ""}:
                self._notes.note_prompt(text, session=session)
        except RicordoError as error:
            _LOG.warning("Memory can't be read for the prompt: %s", error)
            text = _UNREADABLE
        return text if estimate_text(text) <= room else ""

    @property
    def _where(self) -> str:
        return self._memory.where if self._memory else ""

    @property
    def _is_broken(self) -> bool:
        return self._memory is not None and self._memory.standing == "broken"

    @property
    def _shows(self) -> bool:
        return self._store is not None and self._budget is not None

    async def _entry(self, line: Line) -> Entry | None:
        """Return the entry that a line shows; None where it has none, or it can't be found."""
        if not line.id or self._store is None:
            return None
        if self._lists:
            return await self._listed(self._lists, line.id)
        found = [hit.entry for hit in await self._store.recall(line.text, _FEW)]
        return next((entry for entry in found if entry.id == line.id), None)

    async def _listed(self, lists: Lists, entry_id: str) -> Entry | None:
        """Return the entry with this id. Raises: EntryNotFound.

        A few are looked for one by one, which reads every file for each; for more, all of memory is read once.
        """
        if self._listing is None or self._listing.seen != self._seen:
            self._listing = _Listing(seen=self._seen)
        listing = self._listing
        listing.asked += 1
        if listing.asked <= _ONE_BY_ONE:
            return await lists.get(entry_id)
        if listing.entries is None:
            listing.entries = {entry.id: entry for entry in await lists.entries()}
        return listing.entries.get(entry_id)

    async def _places(self) -> list[Place]:
        return await self._layers.places() if self._layers else []

    async def _versions(self) -> tuple[tuple[object, ...], str]:
        """Return what tells that memory changed, from names, sizes and times alone, and that of what was forgotten."""
        seen: list[object] = []
        corrections: list[object] = []
        for place in await self._places():
            seen += [await place.files.info(MEMORY), *await place.files.list(LEDGERS)]
            corrections.append(await place.files.info(TOMBSTONES))
        return (*seen, *corrections), repr(corrections)


def written_in(root: Path, options: AgentOptions, workspace: Workspace | None) -> list[FileStore]:
    """Return the files of the places whose rules are in the prompt, what a project shares first.

    An incognito session opens no workspace, and the rules of its root hold all the same.
    """
    if workspace:
        return [workspace.shared, workspace.place.files] if workspace.shared else [workspace.place.files]
    folders = dict.fromkeys([root, place_root(root, options.scope)]) if options.incognito else ()
    return [files_of(folder) for folder in folders]


async def _curated(place: Place) -> list[str]:
    try:
        return prompt_lines(place.redactor.clean_bytes((await place.files.read(MEMORY)).data))
    except FileMissing:
        return []


class Renewal:
    """Step middleware, inside of all that shortens the window: a request with a new summary gets a new prompt.

    The messages before the summary are another prefix then, so the prompt may show what was remembered meanwhile.
    """

    def __init__(self, inject: Inject, *, base: str, window: Callable[[], Sequence[Message]]) -> None:
        """Let `inject` write the prompt from `base`; `window` returns what the last request began with."""
        self._inject = inject
        self._base = base
        self._window = window

    async def __call__(self, request: Request, step: Step) -> Response:
        """Go on, with a new prompt when there is a new summary."""
        known = _summaries(self._window())
        if any(summary not in known for summary in _summaries(request.window)):
            self._inject.refresh(request.turn.session)
            request = await self._inject.prepared(replace(request, system=self._base))
        return await step(request)


def _summaries(window: Sequence[Message]) -> list[Message]:
    return [message for message in window if mark_of(message) == "summary"]
