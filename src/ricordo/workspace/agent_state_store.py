"""Stores of agent states: one document of the workspace for each session, or the memory of the process.

Secrets are redacted before the first byte is written. A document that can't be read is kept as `<name>.broken-<n>`. A
rule that allows calls is valid only if it was granted in the user's data folder, because the workspace may come from
somebody else.

Invariants: a rule is granted before a state with it is stored, and revoked after a state without it is stored. A broken
document stays until its replacement is durable.
"""

import logging
from collections.abc import Collection
from dataclasses import replace

from ricordo.concurrency import run_in_thread
from ricordo.errors import FileMissing, InvalidMessage, StorageReadOnly, VersionConflict
from ricordo.guard.permissions import PermissionRule, render_rule
from ricordo.guard.redact import Redactor
from ricordo.messages.json_text import dumps, loads, require_object, require_text
from ricordo.scope import encode_folder_name
from ricordo.storage import ABSENT, FileStore, StoredFile, compute_version
from ricordo.storage.paths import quarantine_document
from ricordo.workspace.agent_state import AgentState, StoredState, WorkState, decode_state, encode_state, salvage_state
from ricordo.workspace.layout import state_path
from ricordo.workspace.redaction import redact_message

__all__ = ["FileStateStore", "InMemoryStateStore", "PermissionGrants", "drop_ungranted_rules", "render_allow_rules"]


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
            wanted = (lines | {*add}) - {*remove}
            if wanted != lines:
                data = (dumps({"v": 1, "allow": [*sorted(wanted)]}) + "\n").encode()
                await self._files.replace(self._path(agent, session), data, expected=version)

    async def _read(self, agent: str, session: str) -> tuple[frozenset[str], str]:
        try:
            stored = await self._files.read(self._path(agent, session))
        except FileMissing:
            return frozenset(), ABSENT
        try:
            listed = require_object(loads(stored.data), "permissions").get("allow")
            lines = (
                frozenset(require_text(each, "allow") for each in listed) if isinstance(listed, list) else frozenset()
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
            aside = await self._set_aside(path, stored)
            left = await run_in_thread(lambda: salvage_state(stored.data, agent=agent, session=session))
            return StoredState(state=await self._drop_ungranted(left, path), version=ABSENT, set_aside=aside)
        return StoredState(state=await self._drop_ungranted(state, path), version=stored.version)

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` durably and return the new version.

        Raises: VersionConflict; InvalidMessage for a value that the document can't represent.
        """
        path = state_path(state.agent, state.session)
        clean = await run_in_thread(lambda: _redact_state(state, self._redactor))
        data = await run_in_thread(lambda: encode_state(clean))
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


def _redact_state(state: AgentState, redactor: Redactor) -> AgentState:
    return replace(
        state,
        window=tuple(redact_message(message, redactor) for message in state.window),
        work_state=_redact_work_state(state.work_state, redactor),
        extra=require_object(redactor.clean_json({**state.extra}), "extra"),
    )


def _redact_work_state(standing: WorkState, redactor: Redactor) -> WorkState:
    clean = redactor.clean
    todos = (replace(todo, id=clean(todo.id), content=clean(todo.content)) for todo in standing.todos)
    return WorkState(
        plan=replace(standing.plan, path=clean(standing.plan.path)),
        todos=tuple(todos),
        permissions=tuple(_redact_rule(rule, redactor) for rule in standing.permissions),
        delivered=tuple(map(clean, standing.delivered)),
    )


def _redact_rule(rule: PermissionRule, redactor: Redactor) -> PermissionRule:
    clean = redactor.clean
    pattern = replace(rule.pattern, tool=clean(rule.pattern.tool), argument=clean(rule.pattern.argument))
    return replace(rule, pattern=pattern, why=clean(rule.why), source=clean(rule.source))


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
        held = self._documents.get(key)
        if (ABSENT if held is None else compute_version(held)) != expected:
            raise VersionConflict(f"The state of session {state.session} changed since it was read.")
        self._documents[key] = data
        return compute_version(data)
