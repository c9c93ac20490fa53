"""Stores of agent states, one document of the workspace for each session or the memory of the process, and saving.

Secrets are redacted before the first byte is written. A document that can't be read is kept as `<name>.broken-<n>`. A
rule that allows calls is valid only if it was granted in the user's data folder, because the workspace may come from
somebody else. A state that other processes save too is merged with what they stored in the meantime.

Invariants: a version is replaced only by a state that was merged with it. A change of the work state by only one side
is kept. A denial that one side added, or both have, is never lost, and todos are one side's complete list. A rule is
granted before a state with it is stored, and revoked after a state without it is stored. A broken
document stays until its replacement is durable.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from secrets import randbelow
from typing import TypeAlias, TypeVar

import anyio
from anyio.to_thread import run_sync

from ricordo.concurrency import run_in_thread
from ricordo.errors import FileMissing, InvalidMessage, StorageError, StorageReadOnly, VersionConflict
from ricordo.guard.permissions import Decision, PermissionRule, ToolPattern, render_rule
from ricordo.guard.redact import Redactor
from ricordo.messages import JsonValue, Message
from ricordo.messages.codec import encode_message
from ricordo.messages.json_text import dumps, loads, require_object, require_text
from ricordo.scope import encode_folder_name
from ricordo.storage import ABSENT, FileStore, StoredFile, compute_version
from ricordo.storage.contract import quarantine_document
from ricordo.workspace.agent_state import (
    UNKNOWN_RULES,
    AgentState,
    PlanState,
    StateStore,
    StoredState,
    WorkState,
    decode_state,
    encode_state,
    salvage_state,
)
from ricordo.workspace.history.tombstones import ForgottenStatements
from ricordo.workspace.layout import state_path
from ricordo.workspace.redaction import redact_message

__all__ = [
    "FileStateStore",
    "FilteredStateStore",
    "InMemoryStateStore",
    "PermissionGrants",
    "StateSaver",
    "drop_ungranted_rules",
    "merge_states",
    "render_allow_rules",
]


class PermissionGrants:
    """The permission grants for sessions of one root, in `folder` of `files`, which are in the user's data folder."""

    def __init__(self, files: FileStore, folder: str) -> None:
        """Use `folder` of `files`; nothing is read yet."""
        self._files = files
        self._folder = folder

    async def read(self, agent: str, session: str) -> frozenset[str]:
        """Return the lines of the rules granted in a session; none if they can't be read."""
        return (await self._read(agent, session))[0]

    async def change(
        self, agent: str, session: str, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> None:
        """Grant and revoke rules, durably. Raises `StorageError`."""
        if not add and not remove:
            return
        async with self._files.lock("permissions"):
            lines, version = await self._read(agent, session)
            new_lines = (lines | {*add}) - {*remove}
            if new_lines != lines:
                data = (dumps({"v": 1, "allow": [*sorted(new_lines)]}) + "\n").encode()
                await self._files.replace(self._path(agent, session), data, expected=version)

    async def _read(self, agent: str, session: str) -> tuple[frozenset[str], str]:
        try:
            stored = await self._files.read(self._path(agent, session))
        except FileMissing:
            return frozenset(), ABSENT
        try:
            allowed = require_object(loads(stored.data), "permissions").get("allow")
            lines = (
                frozenset(require_text(each, "allow") for each in allowed) if isinstance(allowed, list) else frozenset()
            )
        except InvalidMessage:
            lines = frozenset()
        return lines, stored.version

    def _path(self, agent: str, session: str) -> str:
        return f"{self._folder}/{encode_folder_name(agent)}/{encode_folder_name(session)}.json"


def render_allow_rules(rules: Collection[PermissionRule]) -> frozenset[str]:
    """Return the lines of the rules that allow calls."""
    return frozenset(render_rule(rule) for rule in rules if rule.decision == "allow")


def drop_ungranted_rules(rules: Collection[PermissionRule], granted: Collection[str]) -> tuple[PermissionRule, ...]:
    """Return the rules without allow rules that were not granted."""
    return tuple(rule for rule in rules if rule.decision != "allow" or render_rule(rule) in granted)


_LOG = logging.getLogger("ricordo.agent")
_MAX_ENCODED_WINDOWS = 4
_EncodedWindow: TypeAlias = Mapping[int, tuple[Message, bytes]]
"""The redacted lines of messages, by the identity of each message, which the pair keeps alive."""


class FileStateStore:
    """The states in the workspace of `files`."""

    def __init__(self, files: FileStore, redactor: Redactor, grants: PermissionGrants | None = None) -> None:
        """Read and write through `files`, and redact secrets with `redactor` before writing.

        `grants` stores the granted allow rules; without it none of them is loaded.
        """
        self._files = files
        self._redactor = redactor
        self._grants = grants
        self._broken: dict[str, str] = {}
        self._known_grants: dict[str, frozenset[str]] = {}
        self._encoded_windows: dict[str, _EncodedWindow] = {}
        """The windows saved last, by path."""

    async def load(self, agent: str, session: str) -> StoredState:
        """Return the stored state, an empty one if there is none, or the readable parts of a broken one.

        A broken document is kept under another name, and the next save replaces it. In a read-only root `set_aside` is
        its unchanged path, and saving is refused.
        """
        path = state_path(agent, session)
        self._broken.pop(path, None)
        try:
            stored = await self._files.read(path)
        except FileMissing:
            return StoredState(state=AgentState(agent=agent, session=session), version=ABSENT)
        try:
            state = await run_in_thread(lambda: decode_state(stored.data, agent=agent, session=session))
        except InvalidMessage:
            broken_path = await self._set_aside(path, stored)
            salvaged = await run_in_thread(lambda: salvage_state(stored.data, agent=agent, session=session))
            return StoredState(state=await self._drop_ungranted(salvaged, path), version=ABSENT, set_aside=broken_path)
        return StoredState(state=await self._drop_ungranted(state, path), version=stored.version)

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` durably and return the new version.

        Raises: VersionConflict; InvalidMessage for a value that the document can't represent.
        """
        path = state_path(state.agent, state.session)
        known = self._encoded_windows.pop(path, {})
        lines = await run_in_thread(lambda: _encode_window(state.window, known, self._redactor))
        self._encoded_windows[path] = lines
        if len(self._encoded_windows) > _MAX_ENCODED_WINDOWS:
            del self._encoded_windows[next(iter(self._encoded_windows))]
        clean = _redact_state(state, self._redactor)
        data = await run_in_thread(lambda: encode_state(clean, [lines[id(each)][1] for each in state.window]))
        allowed, before = render_allow_rules(clean.work_state.permissions), self._known_grants.get(path, frozenset())
        if self._grants:
            await self._grants.change(state.agent, state.session, add=allowed - before)
        # if this save fails, the next one revokes what was granted for it
        self._known_grants[path] = before | allowed
        version = await self._files.replace(path, data, expected=expected or self._broken.get(path, ABSENT))
        if self._grants:
            await self._grants.change(state.agent, state.session, remove=before - allowed)
        self._known_grants[path] = allowed
        self._broken.pop(path, None)
        return version

    async def _drop_ungranted(self, state: AgentState, path: str) -> AgentState:
        """Return the state without allow rules that were not granted on this machine."""
        rules = state.work_state.permissions
        allowed = render_allow_rules(rules)
        granted = await self._grants.read(state.agent, state.session) if allowed and self._grants else frozenset()
        self._known_grants[path] = allowed & granted
        if allowed <= granted:
            return state
        _LOG.warning(
            "The state of session %s permits calls that were not permitted on this machine: a person is asked again.",
            state.session,
        )
        return replace(state, work_state=replace(state.work_state, permissions=drop_ungranted_rules(rules, granted)))

    async def _set_aside(self, path: str, stored: StoredFile) -> str:
        try:
            name = await quarantine_document(self._files, path, stored)
        except StorageReadOnly:
            return path
        self._broken[path] = stored.version
        return name


def _encode_window(window: Sequence[Message], known: _EncodedWindow, redactor: Redactor) -> _EncodedWindow:
    """Return the redacted lines of a window. Those of messages in `known` are reused, so a save costs what is new."""
    return {
        id(message): known.get(id(message)) or (message, encode_message(redact_message(message, redactor)).rstrip())
        for message in window
    }


def _redact_state(state: AgentState, redactor: Redactor) -> AgentState:
    """Return the state with secrets redacted in everything but its window."""
    return replace(
        state,
        work_state=_redact_work_state(state.work_state, redactor),
        extra=require_object(redactor.clean_json({**state.extra}), "extra"),
    )


def _redact_work_state(work_state: WorkState, redactor: Redactor) -> WorkState:
    clean = redactor.clean
    todos = (replace(todo, id=clean(todo.id), content=clean(todo.content)) for todo in work_state.todos)
    return WorkState(
        plan=replace(work_state.plan, path=clean(work_state.plan.path)),
        todos=tuple(todos),
        permissions=tuple(_redact_rule(rule, redactor) for rule in work_state.permissions),
        delivered_results=tuple(map(clean, work_state.delivered_results)),
    )


def _redact_rule(rule: PermissionRule, redactor: Redactor) -> PermissionRule:
    clean = redactor.clean
    pattern = replace(rule.pattern, tool=clean(rule.pattern.tool), argument=clean(rule.pattern.argument))
    return replace(rule, pattern=pattern, reason=clean(rule.reason), source=clean(rule.source))


class InMemoryStateStore:
    """The states of this process, as encoded documents; secrets are not redacted."""

    def __init__(self) -> None:
        """Start without any state."""
        self._documents: dict[tuple[str, str], bytes] = {}

    async def load(self, agent: str, session: str) -> StoredState:
        """Return the stored state, or an empty one if there is none."""
        data = self._documents.get((agent, session))
        if data is None:
            return StoredState(state=AgentState(agent=agent, session=session), version=ABSENT)
        return StoredState(state=decode_state(data, agent=agent, session=session), version=compute_version(data))

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` and return the new version.

        Raises: VersionConflict; InvalidMessage for a value that the document can't represent.
        """
        data, key = encode_state(state), (state.agent, state.session)
        stored = self._documents.get(key)
        if (ABSENT if stored is None else compute_version(stored)) != expected:
            raise VersionConflict(f"The state of session {state.session} changed since it was read.")
        self._documents[key] = data
        return compute_version(data)


_T = TypeVar("_T")
_STRICTNESS: Mapping[Decision, int] = {"allow": -1, "ask": 1, "deny": 2}
"""A pattern without a rule has 0: such a call is neither allowed without asking nor denied."""


def merge_states(base: AgentState, ours: AgentState, theirs: AgentState) -> AgentState:
    """Merge `ours`, which developed from `base` here, with `theirs`, which was stored after `base`.

    The window and its fields `last`, `undone` and `ratio` stay ours: each process continues with its own window, and
    the transcript has the messages of both. Turns of both are counted. The result learns if either side learns.
    """
    return replace(
        ours,
        user=ours.user or theirs.user,
        learns=ours.learns or theirs.learns,
        turns=theirs.turns + max(0, ours.turns - base.turns),
        work_state=_merge_work_states(base.work_state, ours.work_state, theirs.work_state),
        extra=_merge_extra(base.extra, ours.extra, theirs.extra),
    )


def _merge_work_states(base: WorkState, ours: WorkState, theirs: WorkState) -> WorkState:
    return WorkState(
        plan=_prefer_changed(base.plan, ours.plan, theirs.plan),
        todos=_prefer_changed(base.todos, ours.todos, theirs.todos),
        permissions=_merge_permissions(base.permissions, ours.permissions, theirs.permissions),
        delivered_results=_merge_delivered(base.delivered_results, ours.delivered_results, theirs.delivered_results),
    )


def _prefer_changed(base: _T, ours: _T, theirs: _T) -> _T:
    return theirs if ours == base else ours


def _merge_permissions(
    base: tuple[PermissionRule, ...], ours: tuple[PermissionRule, ...], theirs: tuple[PermissionRule, ...]
) -> tuple[PermissionRule, ...]:
    if base in (ours, theirs):
        return _prefer_changed(base, ours, theirs)
    base_rules, our_rules, their_rules = _group_by_pattern(base), _group_by_pattern(ours), _group_by_pattern(theirs)
    return tuple(
        rule
        for pattern in dict.fromkeys((*their_rules, *our_rules))
        for rule in _merge_rules(base_rules.get(pattern, ()), our_rules.get(pattern, ()), their_rules.get(pattern, ()))
    )


def _merge_rules(
    base: tuple[PermissionRule, ...], ours: tuple[PermissionRule, ...], theirs: tuple[PermissionRule, ...]
) -> tuple[PermissionRule, ...]:
    """Return the rules of one pattern; if both sides changed them, the stricter ones, or theirs if equally strict."""
    if base in (ours, theirs):
        return _prefer_changed(base, ours, theirs)
    return ours if _strictness(ours) > _strictness(theirs) else theirs


def _strictness(rules: Iterable[PermissionRule]) -> int:
    return max((_STRICTNESS[rule.decision] for rule in rules), default=0)


def _group_by_pattern(rules: Iterable[PermissionRule]) -> dict[ToolPattern, tuple[PermissionRule, ...]]:
    groups: dict[ToolPattern, tuple[PermissionRule, ...]] = {}
    for rule in rules:
        groups[rule.pattern] = (*groups.get(rule.pattern, ()), rule)
    return groups


def _merge_delivered(base: tuple[str, ...], ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """Return theirs, plus what was added here, minus what was removed here."""
    if base in (ours, theirs):
        return _prefer_changed(base, ours, theirs)
    removed = set(base).difference(ours)
    return tuple(
        dict.fromkeys((*(each for each in theirs if each not in removed), *(each for each in ours if each not in base)))
    )


def _merge_extra(
    base: Mapping[str, JsonValue], ours: Mapping[str, JsonValue], theirs: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    changed = {key: value for key, value in ours.items() if key not in base or base[key] != value}
    removed = base.keys() - ours.keys()
    return {key: value for key, value in theirs.items() if key not in removed} | changed


_SECONDS = 5.0
_MIN_TRIES = 3
_MAX_PAUSE_MS = 20
_MAX_DOUBTFUL = 8


class StateSaver:
    """The stored state of one session as far as this process knows it; one save at a time."""

    def __init__(self, states: StateStore, base: AgentState, version: str) -> None:
        """Start with `base`, stored as this `version`, or `ABSENT` if nothing is stored yet."""
        self._states = states
        self._version = version
        self._known = _empty_state(base) if version == ABSENT else base
        self._is_whole = False
        self._doubtful: deque[tuple[AgentState, AgentState]] = deque(maxlen=_MAX_DOUBTFUL)

    def is_up_to_date(self, state: AgentState) -> bool:
        """Return whether exactly this state was the last one saved here."""
        return self._is_whole and state == self._known

    def find_new_messages(self, state: AgentState) -> tuple[Message, ...] | None:
        """Return the messages at the end of `state` that the state saved last lacks; None if it differs in more."""
        known = self._known
        is_extended = state.window[: len(known.window)] == known.window
        rest = replace(state, window=known.window, last=known.last, ratio=known.ratio)
        return state.window[len(known.window) :] if self._is_whole and is_extended and rest == known else None

    async def save(self, state: AgentState) -> AgentState:
        """Save `state` merged with what others saved in the meantime, durably, and return the result.

        On conflicts it retries for about 5 seconds. Raises: VersionConflict after that; StorageError. After an error
        the store may hold `state` nevertheless; the next save then does not treat it as another process's state.
        """
        merged, version, base, others = state, self._version, self._known, self._known
        deadline, tries = anyio.current_time() + _SECONDS, 0
        while True:
            tries += 1
            try:
                version = await self._states.save(merged, expected=version)
            except VersionConflict as error:
                if tries >= _MIN_TRIES and anyio.current_time() >= deadline:
                    raise _contention_error(state, tries) from error
                # another process was faster; a random pause avoids the next collision
                await anyio.sleep(randbelow(min(2 + tries, _MAX_PAUSE_MS)) / 1000)
                stored = await self._states.load(state.agent, state.session)
                (merged, base, others), version = self._merge_stored(base, merged, stored), stored.version
            except StorageError:
                self._doubtful.append((merged, others))
                raise
            else:
                self._version, self._known = version, merged
                self._is_whole = True
                self._doubtful.clear()
                return merged

    def _merge_stored(
        self, base: AgentState, ours: AgentState, stored: StoredState
    ) -> tuple[AgentState, AgentState, AgentState]:
        """Return `ours` merged with the stored state, the base of the next merge, and the part stored by others."""
        theirs = stored.state
        if stored.set_aside:
            _LOG.warning(
                "The state of session %s can't be read and was set aside as %s.", ours.session, stored.set_aside
            )
            salvaged = _add_salvaged(base, theirs)
            return merge_states(base, ours, salvaged), _empty_state(base), salvaged
        if stored.version == ABSENT:
            return ours, theirs, theirs
        for doubtful, others in self._doubtful:
            if _mergeable_part(theirs) == _mergeable_part(doubtful):
                # the save that failed here reached the store, together with the changes of others
                return merge_states(base, ours, others), theirs, others
        # a process that started over, as the state could not be read, counts turns from 0
        return merge_states(base if theirs.turns >= base.turns else _empty_state(base), ours, theirs), theirs, theirs


def _add_salvaged(base: AgentState, salvaged: AgentState) -> AgentState:
    """Return `base` with what another process added to it, as far as it survives in a broken document.

    What is missing in the document may be lost, so it does not count as removed. The rules are known here.
    """
    base_work, salvaged_work = base.work_state, salvaged.work_state
    rules = [rule for rule in salvaged_work.permissions if rule != UNKNOWN_RULES or rule in base_work.permissions]
    patterns = {rule.pattern for rule in rules}
    work_state = WorkState(
        plan=base_work.plan if salvaged_work.plan == PlanState() else salvaged_work.plan,
        todos=salvaged_work.todos or base_work.todos,
        permissions=(*(rule for rule in base_work.permissions if rule.pattern not in patterns), *rules),
        delivered_results=tuple(dict.fromkeys((*base_work.delivered_results, *salvaged_work.delivered_results))),
    )
    return replace(base, work_state=work_state)


def _mergeable_part(state: AgentState) -> AgentState:
    """Return the merged parts of a state; its window is stored redacted, so it would never compare equal."""
    return replace(state, window=(), last="", messages_at_undo=0, ratio=1.0)


def _contention_error(state: AgentState, tries: int) -> VersionConflict:
    return VersionConflict(
        f"Other processes changed the session {state.session} each of the {tries} times that it was to be saved: it is"
        " not saved, and what stands is as it was. Try again."
    )


def _empty_state(state: AgentState) -> AgentState:
    return AgentState(agent=state.agent, session=state.session)


class FilteredStateStore:
    """A state store over `states` that masks forgotten text when saving."""

    def __init__(
        self,
        states: StateStore,
        list_forgotten: Callable[[], Awaitable[Sequence[ForgottenStatements]]],
        find_request: Callable[[Sequence[Message]], int | None],
    ) -> None:
        """Mask what `list_forgotten` recognises, which is called before each save; `find_request` returns the place of
        the newest request, which stays.
        """
        self._states = states
        self._list_forgotten = list_forgotten
        self._find_request = find_request

    async def load(self, agent: str, session: str) -> StoredState:
        """Return the stored state, as `states` does."""
        return await self._states.load(agent, session)

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Store the state with forgotten text masked, and return the new version. Raises `VersionConflict`."""
        forgotten = [each for each in await self._list_forgotten() if each]
        masked = await run_sync(_remove_forgotten, state, forgotten, self._find_request) if forgotten else state
        return await self._states.save(masked, expected=expected)


def _remove_forgotten(
    state: AgentState,
    forgotten: Sequence[ForgottenStatements],
    find_request: Callable[[Sequence[Message]], int | None],
) -> AgentState:
    request_index = find_request(state.window)
    window, todos = [*state.window], [*state.work_state.todos]
    for each in forgotten:
        window = [
            m if index == request_index else each.mask_message(m, state.session) for index, m in enumerate(window)
        ]
        todos = [replace(todo, content=each.mask(todo.content)) for todo in todos]
    return replace(state, window=tuple(window), work_state=replace(state.work_state, todos=tuple(todos)))
