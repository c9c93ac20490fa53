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
from ricordo.files import ABSENT, FileStore, Stored
from ricordo.files.broken import kept_aside
from ricordo.guard.permissions import PermissionRule
from ricordo.guard.redact import Redactor
from ricordo.messages.jsontext import record
from ricordo.state.codec import decode, encode, salvaged
from ricordo.state.contract import AgentState, Standing, Stated
from ricordo.state.grants import Grants, granted_lines, without_others
from ricordo.uncut import uncut_in_thread
from ricordo.workspace.layout import state_path
from ricordo.workspace.redaction import redacted_message

__all__ = ["FileStates"]

_LOG = logging.getLogger("ricordo.agent")


class FileStates:
    """The states in the workspace of `files`."""

    def __init__(self, files: FileStore, redactor: Redactor, grants: Grants | None = None) -> None:
        """Read and write through `files`, and let `redactor` take secrets out on the way.

        `grants` keeps the rules that let calls through; without it none of those is read back.
        """
        self._files = files
        self._redactor = redactor
        self._grants = grants
        self._broken: dict[str, str] = {}
        self._granted: dict[str, frozenset[str]] = {}

    async def load(self, agent: str, session: str) -> Stated:
        """Return the stored state, an empty one when there is none, and of one that can't be read what can.

        An unreadable one is kept under another name, and the next saving takes its place. In a root that can't be
        written to it is named in `set_aside` as it is, and saving is refused.
        """
        path = state_path(agent, session)
        self._broken.pop(path, None)
        try:
            stored = await self._files.read(path)
        except FileMissing:
            return Stated(state=AgentState(agent=agent, session=session), version=ABSENT)
        try:
            state = await uncut_in_thread(lambda: decode(stored.data, agent=agent, session=session))
        except InvalidMessage:
            aside = await self._set_aside(path, stored)
            left = await uncut_in_thread(lambda: salvaged(stored.data, agent=agent, session=session))
            return Stated(state=await self._with_granted(left, path), version=ABSENT, set_aside=aside)
        return Stated(state=await self._with_granted(state, path), version=stored.version)

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` durably and return the new version.

        Raises: VersionConflict; InvalidMessage for a value that the document has no form for.
        """
        path = state_path(state.agent, state.session)
        clean = await uncut_in_thread(lambda: _redacted(state, self._redactor))
        data = await uncut_in_thread(lambda: encode(clean))
        allowed, before = granted_lines(clean.standing.permissions), self._granted.get(path, frozenset())
        if self._grants:
            await self._grants.change(state.agent, state.session, add=allowed - before)
        # what is granted for a state that then can't be stored is taken back by the next one
        self._granted[path] = before | allowed
        version = await self._files.replace(path, data, expected=expected or self._broken.get(path, ABSENT))
        if self._grants:
            await self._grants.change(state.agent, state.session, remove=before - allowed)
        self._granted[path] = allowed
        self._broken.pop(path, None)
        return version

    async def _with_granted(self, state: AgentState, path: str) -> AgentState:
        """Return the state without rules that let calls through and were not granted on this machine."""
        rules = state.standing.permissions
        allowed = granted_lines(rules)
        granted = await self._grants.read(state.agent, state.session) if allowed and self._grants else frozenset()
        self._granted[path] = allowed & granted
        if allowed <= granted:
            return state
        _LOG.warning(
            "The state of session %s permits calls that were not permitted on this machine: a person is asked again.",
            state.session,
        )
        return replace(state, standing=replace(state.standing, permissions=without_others(rules, granted)))

    async def _set_aside(self, path: str, stored: Stored) -> str:
        try:
            name = await kept_aside(self._files, path, stored)
        except StorageReadOnly:
            return path
        self._broken[path] = stored.version
        return name


def _redacted(state: AgentState, redactor: Redactor) -> AgentState:
    return replace(
        state,
        window=tuple(redacted_message(message, redactor) for message in state.window),
        standing=_redacted_standing(state.standing, redactor),
        extra=record(redactor.clean_json({**state.extra}), "extra"),
    )


def _redacted_standing(standing: Standing, redactor: Redactor) -> Standing:
    clean = redactor.clean
    todos = (replace(todo, id=clean(todo.id), content=clean(todo.content)) for todo in standing.todos)
    return Standing(
        plan=replace(standing.plan, path=clean(standing.plan.path)),
        todos=tuple(todos),
        permissions=tuple(_redacted_rule(rule, redactor) for rule in standing.permissions),
        delivered=tuple(map(clean, standing.delivered)),
    )


def _redacted_rule(rule: PermissionRule, redactor: Redactor) -> PermissionRule:
    clean = redactor.clean
    pattern = replace(rule.pattern, tool=clean(rule.pattern.tool), argument=clean(rule.pattern.argument))
    return replace(rule, pattern=pattern, why=clean(rule.why), source=clean(rule.source))
