"""States as files of the workspace, one document for each session of an agent, replaced whole.

Secrets are replaced before the first byte is written, as they are in the transcript. A document that can't be read is
moved aside as `<name>.broken-<n>`, and no document is written over it.
"""

from contextlib import suppress
from dataclasses import replace

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, StorageReadOnly, VersionConflict
from ricordo.files import ABSENT, FileStore, Stored
from ricordo.files.broken import kept_aside
from ricordo.guard.permissions import PermissionRule
from ricordo.guard.redact import Redactor
from ricordo.messages.jsontext import record
from ricordo.state.codec import decode, encode
from ricordo.state.contract import AgentState, Standing, Stated
from ricordo.workspace.layout import state_path
from ricordo.workspace.redaction import redacted_message

__all__ = ["FileStates"]


class FileStates:
    """The states in the workspace of `files`."""

    def __init__(self, files: FileStore, redactor: Redactor) -> None:
        """Read and write through `files`, and let `redactor` take secrets out on the way."""
        self._files = files
        self._redactor = redactor

    async def load(self, agent: str, session: str) -> Stated:
        """Return the stored state, an empty one when there is none or it can't be read.

        An unreadable one is set aside. In a root that can't be written to it stays and is named in `set_aside`, and
        saving is refused.
        """
        path = state_path(agent, session)
        empty = Stated(state=AgentState(agent=agent, session=session), version=ABSENT)
        try:
            stored = await self._files.read(path)
        except FileMissing:
            return empty
        try:
            state = await run_sync(lambda: decode(stored.data, agent=agent, session=session))
        except InvalidMessage:
            return replace(empty, set_aside=await self._set_aside(path, stored))
        return Stated(state=state, version=stored.version)

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` durably and return the new version.

        Raises: VersionConflict; InvalidMessage for a value that the document has no form for.
        """
        path = state_path(state.agent, state.session)
        data = await run_sync(lambda: encode(_redacted(state, self._redactor)))
        return await self._files.replace(path, data, expected=expected)

    async def _set_aside(self, path: str, stored: Stored) -> str:
        try:
            name = await kept_aside(self._files, path, stored)
        except StorageReadOnly:
            return path
        with suppress(FileMissing, VersionConflict):
            await self._files.delete(path, expected=stored.version)
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
