"""The system prompt of a session: its memory and profile, when it is rebuilt, and what is sent along with it.

The prompt is built once, so that requests share a prefix. A summary starts a new prefix anyway, so the prompt is
rebuilt with it, and after a correction; otherwise its bytes stay the same. Later changes in memory are sent as a
message after the newest one. The update and the profile are marked as memory and never recorded. In the prompt the
profile is the same for every session; only as a separate message is it chosen by a query.

Invariant: an update never comes between a call and its result.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.agent_store import AgentResources, AgentStore
from ricordo.agent.contract import ModelRequest, ModelResponse, StepHandler
from ricordo.agent.memory_context import OpeningContext, StoreWatcher, latest_user_text
from ricordo.agent.session_services import MEMORY_TOOLS
from ricordo.clock import Clock
from ricordo.context.config import WORKSPACE_BUDGET
from ricordo.context.preamble import (
    UPDATE_BUDGET,
    MemoryLine,
    MemorySnapshot,
    Preamble,
    diff_snapshots,
    render_update,
)
from ricordo.context.prompt import (
    MEMORY_FILES,
    Prompt,
    PromptSection,
    compose_prompt,
    drop_missing_tools,
    memory_guidance,
    memory_notice,
    read_agents_file,
    read_rules,
    remaining_tokens,
    render_footer,
    render_instructions,
)
from ricordo.curation.config import InjectionConfig
from ricordo.curation.profile.rendering import list_statements, render_profile
from ricordo.curation.profile.storage import ProfileStore
from ricordo.errors import EntryNotFound, FileMissing, RicordoError
from ricordo.events import Emitter
from ricordo.guard import Redactor, Trust
from ricordo.lazy import dataclass
from ricordo.messages import Message, Text, count_fingerprints, get_mark, with_ids, with_mark
from ricordo.messages.tokens import Tokens, estimate_text
from ricordo.runtime.roots import create_key, scope_folder
from ricordo.runtime.settings import OPT_IN_TOOLS
from ricordo.runtime.workspace import Workspace, root_files
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import FileStore
from ricordo.stores.contract import LayeredMemory, Lists, RecordsUsage, build_preamble
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import render_prompt_lines
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, TOMBSTONES

if TYPE_CHECKING:
    from ricordo.workspace.profile import Profile

__all__ = [
    "ProfileView",
    "PromptBuilder",
    "PromptMiddleware",
    "PromptSource",
    "create_profile_view",
    "is_update",
    "list_rule_files",
    "prompt_budget",
]


_LOG = logging.getLogger("ricordo.agent")
_PROFILE_UNREADABLE = "What is known of the user can't be read at the moment."
_PROFILE_SOURCE = "the profile"


def create_profile_view(resources: AgentResources) -> "ProfileView | None":
    """Return the agent's view of the profile; None if profile or memory is off, or memory is not the root's own."""
    options, workspace, config = resources.options, resources.workspace, resources.parts.settings.injection
    if config is None or not options.remembers or workspace is None or not resources.memory.is_own:
        return None
    return ProfileView(workspace.profiles.open_store(options.scope), config, workspace.memory_root.redactor)


class ProfileView:
    """Renders the profile in `store` according to `config`."""

    def __init__(self, store: ProfileStore, config: InjectionConfig, redactor: Redactor) -> None:
        """Create a view without reading the profile. `redactor` removes secrets that people wrote into it."""
        self._redactor = redactor
        self._store = store
        self._config = config
        self._profile: Profile | None = None
        self._lines: dict[MemoryLine, str] = {}

    @property
    def is_in_prompt(self) -> bool:
        """Whether the profile is in the system prompt rather than in a message."""
        return self._config.placement == "system"

    async def render(self, max_tokens: int, query: str | None = None) -> str:
        """Return the profile in at most `max_tokens` tokens; empty if there is none, a note if it can't be read."""
        try:
            profile = await self._store.load()
        except RicordoError as error:
            _LOG.warning("The profile can't be read for the prompt: %s", error)
            return _PROFILE_UNREADABLE if max_tokens > len(_PROFILE_UNREADABLE) else ""
        render = partial(render_profile, profile, budget=Tokens(max_tokens), query=query, config=self._config)
        return self._redactor.clean((await run_sync(render)).text)

    async def load_lines(self) -> tuple[MemoryLine, ...]:
        """Return the profile line by line; the lines read last if it can't be read."""
        try:
            profile = await self._store.load()
        except RicordoError as error:
            _LOG.debug("The profile can't be read for an update: %s", error)
            return tuple(self._lines)
        if profile != self._profile:
            self._profile = profile
            self._lines = {
                MemoryLine(text=self._redactor.clean(text), source=_PROFILE_SOURCE, trust=Trust.AGENT): thread
                for text, thread in list_statements(profile)
            }
        return tuple(self._lines)

    def was_learned_in(self, line: MemoryLine, session: str) -> bool:
        """Return whether a line is known to have been learned in `session`."""
        return self._lines.get(line) == session

    async def is_in_profile(self, line: MemoryLine) -> bool | None:
        """Return whether the profile still contains a line; None for a line from elsewhere."""
        if line.source != _PROFILE_SOURCE:
            return None
        return any(line.normalized_text == each.normalized_text for each in await self.load_lines())


_MEMORY_UNREADABLE = "What is remembered can't be read at the moment."
_MEMORY_OFF = "Memory can't be opened: nothing is remembered from earlier sessions, and nothing new can be."
_EMPTY_MEMORY = "memory has nothing to show"
_MAX_CANDIDATES = 10
_MAX_SINGLE_LOOKUPS = 4
_WINDOW_SHARE = 4
_UNLIMITED = Tokens(1_000_000)
"""More than a preamble ever takes, so that changes are found in all of it, not only in the part that fits."""


def prompt_budget(max_tokens: int, window: int | None) -> Tokens:
    """Return the budget for additions to the base prompt: `max_tokens` tokens, but at most a quarter of `window`."""
    return Tokens(max_tokens if window is None else min(max_tokens, max(1, window // _WINDOW_SHARE)))


@dataclass
class _EntryLookup:
    """The number of lookups since memory had this `fingerprint`, and all entries by id once they were read."""

    fingerprint: tuple[object, ...]
    count: int = 0
    entries: dict[str, Entry] | None = None


class PromptBuilder:
    """Builds the system prompt of a session from people's instructions and from memory, within one budget."""

    def __init__(
        self,
        folder: Path,
        workspace: Workspace | None,
        budget: Tokens | None,
        *,
        clock: Clock,
        max_tokens: Tokens = WORKSPACE_BUDGET,
        memory: AgentStore | None = None,
        max_memories: int = 0,
        sessions_path: str = "",
        own_tools: Collection[str] = (),
        profile: ProfileView | None = None,
        emitter: Emitter | None = None,
        rule_files: Sequence[FileStore] = (),
    ) -> None:
        """Read AGENTS.md in `folder` and the rules in `rule_files`; without a `budget` no memory is shown.

        `memory` is the agent's store, by default that of the workspace; at most `max_memories` memories are shown for
        the start of a session. `sessions_path` is the path of the store's session files for file tools. `own_tools` are
        the names of the program's tools: a tool of the program gets no guidance meant for a built-in tool of the same
        name. `profile` is the user's profile; None if it is not shown. `emitter` gets the size of the memory in the
        prompt. `max_tokens` limits all additions to the base prompt; `budget` limits memory alone, within that.
        """
        self._redactor = workspace.memory_root.redactor if workspace else Redactor(create_key())
        self._folder = folder
        self._budget = budget
        self._clock = clock
        self._session_files = sessions_path
        self._own_tools = frozenset(own_tools).intersection(OPT_IN_TOOLS)
        self._max_tokens = max_tokens.count
        self._profile = profile
        self._memory = memory or (AgentStore.from_root(workspace) if workspace else None)
        self._store = self._memory.store if self._memory and self._memory.is_active else None
        self._layers = self._store.offers(LayeredMemory) if self._store else None
        self._lists = self._store.offers(Lists) if self._store else None
        self._notes = self._store.offers(RecordsUsage) if self._store else None
        self._store_watcher: StoreWatcher | None = None
        if self._store and self._memory and budget and not self._layers:
            self._store_watcher = StoreWatcher(self._store, budget, self._memory.folder)
        self._emitter = emitter or Emitter(clock)
        self._opening: OpeningContext | None = None
        if self._store:
            self._opening = OpeningContext(store=self._store, max_memories=max_memories, emitter=self._emitter)
        self._rule_files = rule_files
        self._fingerprint: tuple[object, ...] = ()
        self._entry_lookup: _EntryLookup | None = None
        self._snapshot = MemorySnapshot()

    async def build(self, request: ModelRequest) -> Prompt:
        """Return the prompt for `request`, whose `system` is the base prompt."""
        agents = await read_agents_file(self._folder)
        project_rules = await read_rules(*self._rule_files)
        tool_names = [tool.name for tool in request.tools if tool.name not in self._own_tools]
        tools = tool_names if self._store else [name for name in tool_names if name not in MEMORY_TOOLS]
        guidance = memory_guidance(tools, sessions=self._session_files)
        guidance = guidance if estimate_text(guidance) <= self._max_tokens else ""
        notice = memory_notice(tools, location=self._store_label) if self._shows_memory else ""
        remaining = remaining_tokens(self._max_tokens, guidance, notice)
        texts = [replace(each, text=self._clean(each.text)) for each in (*filter(None, (agents,)), *project_rules)]
        instructions = await run_sync(partial(render_instructions, texts, remaining))
        snapshot = await self.load_current()
        opening = latest_user_text(request.window)
        remaining = remaining_tokens(self._max_tokens, guidance, instructions)
        profile = await self._profile.render(remaining) if self._profile and self._profile.is_in_prompt else ""
        preamble = await self._render_memory(
            remaining_tokens(remaining, profile), notice, opening, request.turn.session
        )
        memory = "\n\n".join(filter(None, (profile, self._clean(drop_missing_tools(preamble, tools)))))
        self._report_injection(request, memory)
        footer = render_footer(request.turn.session, self._clock.today())
        sections = (
            PromptSection(name="base", text=request.system.strip("\n")),
            PromptSection(name="instructions", text=instructions),
            PromptSection(name="guidance", text=guidance),
            PromptSection(name="memory", text=memory),
            PromptSection(name="session", text=footer, is_stable=False),
        )
        return compose_prompt(sections, snapshot)

    def _clean(self, text: str) -> str:
        return self._redactor.clean(text)

    def _report_injection(self, request: ModelRequest, memory: str) -> None:
        """Report the size of the memory in the prompt."""
        if not self._shows_memory and self._profile is None:
            return
        with self._emitter.stage("inject", request.turn.scope) as progress:
            progress.counts["tokens"] = estimate_text(memory)
            progress.skipped = None if memory else _EMPTY_MEMORY

    async def render_profile(self, request: ModelRequest) -> str:
        """Return the profile for a separate message, chosen by the user's question; empty if it is in the prompt or
        off.
        """
        if self._profile is None or self._profile.is_in_prompt:
            return ""
        return await self._profile.render(self._max_tokens, latest_user_text(request.window))

    async def load_current(self) -> MemorySnapshot:
        """Return the current memory and profile; the state read last if they can't be read."""
        snapshot = await self._load_memory()
        return (
            replace(snapshot, lines=(*await self._profile.load_lines(), *snapshot.lines)) if self._profile else snapshot
        )

    async def _load_memory(self) -> MemorySnapshot:
        """Return the current memory; the state read last if no file changed or none can be read.

        For a store other than a root this is what the preamble shows.
        """
        if self._store is None or self._budget is None:
            return self._snapshot
        try:
            if self._store_watcher:
                self._snapshot = await self._store_watcher.load_snapshot()
                return self._snapshot
            fingerprint, corrections = await self._read_fingerprint()
            if fingerprint != self._fingerprint:
                self._snapshot = MemorySnapshot.from_preamble(
                    await build_preamble(self._store, _UNLIMITED), corrections
                )
                self._fingerprint = fingerprint
        except RicordoError as error:
            _LOG.debug("Memory can't be read for an update: %s", error)
        return self._snapshot

    async def is_own(self, line: MemoryLine, session: str) -> bool:
        """Return whether the agent saved a line itself in `session`, or the profile learned it there."""
        if self._profile and self._profile.was_learned_in(line, session):
            return True
        try:
            entry = await self._find_entry(line)
        except RicordoError:
            return False
        return entry is not None and entry.by == "agent" and entry.source.session == session

    async def is_in_memory(self, line: MemoryLine) -> bool:
        """Return whether memory still holds a line that the preamble no longer shows; True if it can't be read."""
        in_profile = await self._profile.is_in_profile(line) if self._profile else None
        if in_profile is not None:
            return in_profile
        try:
            if line.id and self._store:
                entry = await self._find_entry(line)
                return entry is not None and entry.state == "active"
            # A store other than a root can't be queried for lines without an id.
            return not self._layers or any(
                [line.text in await _read_curated_lines(place) for place in await self._list_places()]
            )
        except EntryNotFound:
            return False
        except RicordoError:
            return True

    async def _render_memory(self, max_tokens: int, notice: str, opening: str, session: str) -> str:
        """Return the preamble that fits into `max_tokens`, with memories about `opening`; else a notice.

        Memory that can't be read ends no turn, and is not shown as an empty one.
        """
        if self._store is None or self._opening is None or self._budget is None:
            return _MEMORY_OFF if self._budget and self._is_broken and estimate_text(_MEMORY_OFF) <= max_tokens else ""
        store = self._store
        try:
            preamble = await build_preamble(store, self._budget)
            if estimate_text(preamble.text) > max_tokens:
                preamble = await build_preamble(store, Tokens(max_tokens)) if max_tokens else Preamble()
                if not preamble.text or estimate_text(preamble.text) > max_tokens:
                    preamble = Preamble(text=notice)
            if preamble.text != notice and max_tokens:
                budget = Tokens(min(self._budget.count, max_tokens))
                preamble = await self._opening.extend_preamble(preamble, budget, opening, now=self._clock.now())
            if self._store_watcher:
                self._store_watcher.mark_shown(preamble)
            self._record_shown(preamble, session)
            text = preamble.text
        except RicordoError as error:
            _LOG.warning("Memory can't be read for the prompt: %s", error)
            text = _MEMORY_UNREADABLE
        return text if estimate_text(text) <= max_tokens else ""

    def _record_shown(self, preamble: Preamble, session: str) -> None:
        """Record that a prompt shows these entries, each in its root."""
        if self._notes is None:
            return
        for place in dict.fromkeys(entry.path for entry in preamble.entries):
            ids = [entry.id for entry in preamble.entries if entry.path == place]
            shown = preamble.shown_texts
            self._notes.record_use("shown", ids, how="prompt", source=place, session=session, shown=shown)

    @property
    def _store_label(self) -> str:
        return self._memory.label if self._memory else ""

    @property
    def _is_broken(self) -> bool:
        return self._memory is not None and self._memory.status == "broken"

    @property
    def _shows_memory(self) -> bool:
        return self._store is not None and self._budget is not None

    async def _find_entry(self, line: MemoryLine) -> Entry | None:
        """Return the entry of a line; None if it has no id or can't be found."""
        if not line.id or self._store is None:
            return None
        if self._lists:
            return await self._look_up_entry(self._lists, line.id)
        entries = [hit.entry for hit in await self._store.recall(line.text, _MAX_CANDIDATES)]
        return next((entry for entry in entries if entry.id == line.id), None)

    async def _look_up_entry(self, lists: Lists, entry_id: str) -> Entry | None:
        """Return the entry with this id. Raises: EntryNotFound.

        The first few are looked up one by one, which reads every file each time; after that all of memory is read once.
        """
        if self._entry_lookup is None or self._entry_lookup.fingerprint != self._fingerprint:
            self._entry_lookup = _EntryLookup(fingerprint=self._fingerprint)
        lookup = self._entry_lookup
        lookup.count += 1
        if lookup.count <= _MAX_SINGLE_LOOKUPS:
            return await lists.get(entry_id)
        if lookup.entries is None:
            lookup.entries = {entry.id: entry for entry in await lists.entries()}
        return lookup.entries.get(entry_id)

    async def _list_places(self) -> list[MemoryRoot]:
        return await self._layers.places() if self._layers else []

    async def _read_fingerprint(self) -> tuple[tuple[object, ...], str]:
        """Return a value that changes with memory, from names, sizes and times alone, and one for forgotten entries."""
        infos: list[object] = []
        corrections: list[object] = []
        for place in await self._list_places():
            infos += [await place.files.info(MEMORY_PATH), *await place.files.list(LEDGERS)]
            corrections.append(await place.files.info(TOMBSTONES))
        return (*infos, *corrections), repr(corrections)


def list_rule_files(resources: AgentResources) -> list[FileStore]:
    """Return the files of the places whose rules are in the prompt, the project's shared ones first.

    An incognito session opens no workspace, but the rules of its root still apply.
    """
    options, root, workspace = resources.options, resources.root, resources.workspace
    if workspace:
        return [workspace.shared, workspace.memory_root.files] if workspace.shared else [workspace.memory_root.files]
    folders = dict.fromkeys([root, scope_folder(root, options.scope)]) if options.memory.incognito else ()
    return [root_files(folder) for folder in folders]


async def _read_curated_lines(place: MemoryRoot) -> list[str]:
    try:
        return render_prompt_lines(place.redactor.clean_bytes((await place.files.read(MEMORY_PATH)).data))
    except FileMissing:
        return []


_UPDATE_KEY = "ricordo.update"
_PROFILE_KEY = "ricordo.profile"


class PromptSource(Protocol):
    """Builds the prompt of a session, and knows the memory that it would show now."""

    async def build(self, request: ModelRequest) -> Prompt:
        """Return the prompt for `request`, whose `system` is the base prompt."""
        ...

    async def render_profile(self, request: ModelRequest) -> str:
        """Return the profile for a separate message; empty if there is none."""
        ...

    async def load_current(self) -> MemorySnapshot:
        """Return the current memory. Called before every request, so cheap if nothing changed."""
        ...

    async def is_own(self, line: MemoryLine, session: str) -> bool:
        """Return whether a line was saved or learned in `session`, which therefore knows it."""
        ...

    async def is_in_memory(self, line: MemoryLine) -> bool:
        """Return whether memory still holds a line that the preamble no longer shows."""
        ...


class PromptMiddleware:
    """Step middleware for the prompt of one session: before the window is shortened, and `complete` after that.

    What is sent along with a prompt, the profile and the updates of memory, belongs to that one `Prompt`. Once there is
    another one, it is dropped and sent anew as far as the new prompt needs it.
    """

    def __init__(
        self,
        source: PromptSource,
        *,
        base: str,
        window: Callable[[], Sequence[Message]] = tuple,
        rebuild: bool = False,
        budget: Tokens = UPDATE_BUDGET,
        location: str = MEMORY_FILES,
    ) -> None:
        """Build the prompt from `source` and the `base` prompt; `window` returns the window of the last request.

        Changes of memory are sent in at most `budget` tokens per update, and `location` names the place of the rest.
        With `rebuild` the prompt is rebuilt instead, as it always is after a correction.
        """
        self._source = source
        self._base = base
        self._window = window
        self._at_once = rebuild
        self._budget = budget
        self._where = location
        self._lock = anyio.Lock()
        self._prompt: Prompt | None = None
        self._completed: Prompt | None = None
        self._profile_id = ""
        self._told_snapshots: dict[str, MemorySnapshot] = {}
        self._own_texts: set[str] = set()

    @property
    def memory(self) -> str:
        """The text of memory in the current prompt; empty before there is one."""
        return self._prompt.memory if self._prompt else ""

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Continue with the session's prompt. Raises as `add_prompt` does."""
        return await step(await self.add_prompt(request))

    async def add_prompt(self, request: ModelRequest) -> ModelRequest:
        """Return `request` with the session's prompt. If building it fails, raise; the next request tries again."""
        prompt = await self._load_prompt(request)
        return replace(request, system=prompt.text, system_end=prompt.volatile_end)

    def invalidate(self) -> None:
        """Build the prompt again with the next request, which starts a new prefix."""
        self._prompt = None

    async def complete(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Continue with the profile and the changes of memory; with another prompt after a summary or a correction."""
        current = await self._source.load_current()
        if self._is_outdated(request, current):
            self.invalidate()
            current = (await self._load_prompt(request)).snapshot
        prompt = await self._load_prompt(request)
        if prompt is not self._completed:
            self._completed, self._profile_id, self._told_snapshots = prompt, "", {}
        request = await self._add_profile(replace(request, system=prompt.text, system_end=prompt.volatile_end))
        update = await self._build_update(request, prompt.snapshot, current)
        return await step(replace(request, window=(*request.window, update)) if update else request)

    def _is_outdated(self, request: ModelRequest, current: MemorySnapshot) -> bool:
        """Return whether there is a new summary, or a change of memory that the prompt itself has to follow."""
        known_summaries = _find_summaries(self._window())
        if self._prompt is None or any(each not in known_summaries for each in _find_summaries(request.window)):
            return True
        snapshot = self._prompt.snapshot
        return current != snapshot and (self._at_once or current.corrections != snapshot.corrections)

    async def _load_prompt(self, request: ModelRequest) -> Prompt:
        async with self._lock:
            if self._prompt is None:
                self._prompt = await self._source.build(replace(request, system=self._base))
            return self._prompt

    async def _add_profile(self, request: ModelRequest) -> ModelRequest:
        """Return the request with the profile's message and without the messages that belong to an earlier prompt."""
        window = tuple(each for each in request.window if not self._is_stale(each))
        if not any(_PROFILE_KEY in each.metadata for each in window):
            text = await self._source.render_profile(request)
            if text:
                message = _memory_message(text, _PROFILE_KEY, window, request.turn.session)
                window, self._profile_id = (*window, message), message.id
        return request if window == request.window else replace(request, window=window)

    def _is_stale(self, message: Message) -> bool:
        """Return whether a message was sent along with an earlier prompt, also if undoing a compaction restored it."""
        if is_update(message):
            return message.id not in self._told_snapshots
        return _PROFILE_KEY in message.metadata and message.id != self._profile_id

    async def _build_update(
        self, request: ModelRequest, prompt_snapshot: MemorySnapshot, current: MemorySnapshot
    ) -> Message | None:
        """Return the update that follows the updates in the window; None if there is nothing new."""
        sent = [self._told_snapshots[message.id] for message in request.window if message.id in self._told_snapshots]
        previous = sent[-1] if sent else prompt_snapshot
        if current == previous:
            return None
        added, missing = diff_snapshots(previous, current)
        session = request.turn.session
        new = [line for line in added if not await self._is_known(line, session)]
        removed = [line for line in missing if not await self._source.is_in_memory(line)]
        if not new and not removed:
            return None
        text = render_update(new, removed, self._budget.count, pointer=self._where)
        update = _memory_message(text, _UPDATE_KEY, request.window, session)
        self._told_snapshots[update.id] = current
        return update

    async def _is_known(self, line: MemoryLine, session: str) -> bool:
        """Return whether the agent saved this line itself, also after consolidation has placed it."""
        if line.normalized_text not in self._own_texts and await self._source.is_own(line, session):
            self._own_texts.add(line.normalized_text)
        return line.normalized_text in self._own_texts


def is_update(message: Message) -> bool:
    """Return whether a message is an update about changes in memory."""
    return message.metadata.get(_UPDATE_KEY) is True


def _memory_message(text: str, key: str, window: Sequence[Message], session: str) -> Message:
    marked = with_mark(Message(role="user", parts=(Text(text=text),)), "memory")
    message = replace(marked, metadata={**marked.metadata, key: True})
    return with_ids([message], session=session, counts=count_fingerprints(window))[0]


def _find_summaries(window: Sequence[Message]) -> list[Message]:
    return [message for message in window if get_mark(message) == "summary"]
