"""Grants: what a person allowed an agent in a session, kept in the user's data folder and not in the root.

The state of a session has all its rules in their order. It is a file of the root, which can come from somebody else. So
a rule that allows calls is used only if it was granted here.

Invariant: a rule is granted before a state with it is stored, and revoked after a state without it is stored.
"""

from collections.abc import Collection

from ricordo.errors import FileMissing, InvalidMessage
from ricordo.files import ABSENT, FileStore
from ricordo.guard.permissions import PermissionRule, render_rule
from ricordo.messages.jsontext import dumps, loads, require_object, require_text
from ricordo.scopes import encode_folder_name

__all__ = ["PermissionGrants", "render_allow_rules", "drop_ungranted_rules"]


class PermissionGrants:
    """The permissions of the sessions of one root, below `folder` of `files`, which are in the user's data folder."""

    def __init__(self, files: FileStore, folder: str) -> None:
        """Read nothing yet."""
        self._files = files
        self._folder = folder

    async def read(self, agent: str, session: str) -> frozenset[str]:
        """Return the lines of the rules that were granted in a session; none if they can't be read."""
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
    """Return the rules without those that allow calls and were not granted."""
    return tuple(rule for rule in rules if rule.decision != "allow" or render_rule(rule) in granted)
