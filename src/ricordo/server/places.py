"""Whose memory lies where: a root for each tenant and project, below the folder of the service.

`tenants/<tenant>/projects/<project>/` is a root with the users' folders in it. Invariant: a caller's tenant and user
come from the token, never from a request.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from ricordo.errors import MembershipRequired
from ricordo.lazy import dataclass
from ricordo.runtime.memory import Memory
from ricordo.runtime.pool import MemoryPool
from ricordo.runtime.settings import Settings
from ricordo.scope import Scope, owner_part
from ricordo.server.access import Caller

__all__ = ["MemoryPlaces", "project_root"]


def project_root(folder: Path, tenant: str, project: str) -> Path:
    """Return the root of a project of a tenant, below the folder of the service."""
    return folder / "tenants" / owner_part(tenant) / "projects" / owner_part(project)


@dataclass(kw_only=True)
class _OpenProject:
    """The memories of one project that are open, and how many requests use them now."""

    pool: MemoryPool
    users: int = 0


class MemoryPlaces:
    """The open memories of all callers, a bounded number of them. Use it as an async context manager."""

    def __init__(
        self, folder: Path, *, settings: Settings | None = None, max_projects: int = 64, max_users: int = 32
    ) -> None:
        """Open nothing yet. At most `max_projects` projects stay open, each with at most `max_users` memories."""
        self._folder = folder
        self._settings = settings
        self._max_projects = max_projects
        self._max_users = max_users
        # the project that was used last is the last one
        self._projects: dict[tuple[str, str], _OpenProject] = {}
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def memory(self, caller: Caller, project: str) -> AsyncIterator[Memory]:
        """Lend the memory of a caller in a project; both are created at their first use.

        Raises: MembershipRequired for a project that the token does not open; InvalidScope; what a pool raises.
        """
        if caller.project is not None and project != caller.project:
            raise MembershipRequired("This token opens another project.")
        opened = await self._reserve(caller.tenant, project)
        try:
            async with opened.pool.user(caller.user) as memory:
                yield memory
        finally:
            opened.users -= 1

    @property
    def open_count(self) -> int:
        """The number of memories that are open now."""
        return sum(each.pool.open_count for each in self._projects.values())

    async def _reserve(self, tenant: str, project: str) -> _OpenProject:
        scope = Scope(tenant=tenant, project=project)
        key = (tenant, project)
        async with self._lock:
            opened = self._projects.pop(key, None)
            if opened is None:
                await self._close_unused(self._max_projects - 1)
                root = project_root(self._folder, tenant, project)
                pool = MemoryPool(root, scope=scope, settings=self._settings, max_open=self._max_users, trusted=True)
                opened = _OpenProject(pool=pool)
            self._projects[key] = opened
            opened.users += 1
        return opened

    async def _close_unused(self, most: int) -> None:
        """Close the projects that were used least recently until at most `most` are open; those in use stay."""
        for key in [key for key, each in self._projects.items() if not each.users]:
            if len(self._projects) <= most:
                return
            await self._projects.pop(key).pool.close()

    async def close(self) -> None:
        """Close every memory, also one in use."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                projects, self._projects = self._projects, {}
                for each in projects.values():
                    await each.pool.close()
