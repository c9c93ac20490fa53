"""States as files of the workspace, one document for each session of an agent, replaced whole.

Secrets are replaced before the first byte is written, as they are in the transcript. A document that can't be read is
kept as `<name>.broken-<n>` before another one takes its place. A rule that lets calls through counts only where it was
granted on the user's side, as the workspace can come from somebody else.

Invariant: until that is durable the broken one stays, so that whoever opens the session meanwhile, or after a kill,
finds that its rules are not known, and not that it has none.
"""

import logging
from dataclasses import replace

from ricordo.errors import FileMissing, InvalidMessage, StorageReadOnly
from ricordo.files import ABSENT, FileStore, StoredFile
from ricordo.files.broken import quarantine_document
from ricordo.guard.permissions import PermissionRule
from ricordo.guard.redact import Redactor
from ricordo.messages.jsontext import require_object
from ricordo.state.codec import decode_state, encode_state, salvage_state
from ricordo.state.contract import AgentState, WorkState, StoredState
from ricordo.state.grants import PermissionGrants, render_allow_rules, drop_ungranted_rules
from ricordo.uncut import run_in_thread
from ricordo.workspace.layout import state_path
from ricordo.workspace.redaction import redact_message

__all__ = ["FileStateStore"]

_LOG = logging.getLogger("ricordo.agent")


class FileStateStore:
    """The states in the workspace of `files`."""

    def __init__(self, files: FileStore, redactor: Redactor, grants: PermissionGrants | None = None) -> None:
        """Read and write through `files`, and let `redactor` take secrets out on the way.

        `open_grants` keeps the rules that let calls through; without it none of those is read back.
        """
        self._files = files
        self._redactor = redactor
        self._grants = grants
        self._broken: dict[str, str] = {}
        self._known_grants: dict[str, frozenset[str]] = {}

    async def load(self, agent: str, session: str) -> StoredState:
        """Return the stored state, an empty one when there is none, and of one that can't be read what can.

        An unreadable one is kept under another name, and the next saving takes its place. In a root that can't be
        written to it is named in `set_aside` as it is, and saving is refused.
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

        Raises: VersionConflict; InvalidMessage for a value that the document has no form for.
        """
        path = state_path(state.agent, state.session)
        clean = await run_in_thread(lambda: _redact_state(state, self._redactor))
        data = await run_in_thread(lambda: encode_state(clean))
        allowed, before = render_allow_rules(clean.work_state.permissions), self._known_grants.get(path, frozenset())
        if self._grants:
            await self._grants.change(state.agent, state.session, add=allowed - before)
        # what is granted for a state that then can't be stored is taken back by the next one
        self._known_grants[path] = before | allowed
        version = await self._files.replace(path, data, expected=expected or self._broken.get(path, ABSENT))
        if self._grants:
            await self._grants.change(state.agent, state.session, remove=before - allowed)
        self._known_grants[path] = allowed
        self._broken.pop(path, None)
        return version

    async def _drop_ungranted(self, state: AgentState, path: str) -> AgentState:
        """Return the state without rules that let calls through and were not granted on this machine."""
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
