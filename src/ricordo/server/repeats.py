"""Requests that may be sent again: the answer to a key is kept for a day, and given again.

A key is taken before the request is carried out. A request that was cut off in the middle leaves its key without an
answer; the same request is then carried out again, with `is_repeat`, and has to find out what it did.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime

from ricordo.lazy import dataclass
from ricordo.messages.json_text import dumps, loads
from ricordo.server.access import Caller
from ricordo.server.database import Connection, ServiceDatabase
from ricordo.server.problems import Problem

__all__ = ["KeptAnswer", "Repeats"]


_KEPT_SECONDS = 24 * 3600.0
MAX_KEY_CHARS = 200
_AT_PLACE = "WHERE tenant = ? AND user = ? AND key = ?"


@dataclass(frozen=True, kw_only=True)
class KeptAnswer:
    """An answer as it was given the first time."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Repeats:
    """The answers to requests with a key. Every method may raise StorageError."""

    def __init__(self, database: ServiceDatabase, now: Callable[[], datetime]) -> None:
        """Keep the answers in `database`."""
        self._database = database
        self._now = now

    async def begin(self, caller: Caller, key: str, request: bytes) -> KeptAnswer | bool:
        """Return the answer that is kept; else take the key, and return whether it was taken before.

        Raises: Problem if the key was used for another request.
        """
        now, digest, place = self._now().timestamp(), hashlib.sha256(request).hexdigest(), _place(caller, key)

        def take(connection: Connection) -> tuple[str, int | None, str | None, bytes | None] | None:
            connection.execute("DELETE FROM answer WHERE asked < ?", (now - _KEPT_SECONDS,))
            taken = connection.execute(
                "INSERT INTO answer (tenant, user, key, request, asked) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (*place, digest, now),
            )
            if taken.rowcount:
                return None
            row: tuple[str, int | None, str | None, bytes | None] = connection.execute(
                f"SELECT request, status, headers, body FROM answer {_AT_PLACE}", place
            ).fetchone()
            return row

        row = await (await self._database.get()).write(take)
        if row is None:
            return False
        known, status, headers, body = row
        if known != digest:
            raise Problem(
                422,
                "idempotency-key-reused",
                "Idempotency key reused",
                "This Idempotency-Key was used for another request: take a new key for each request.",
            )
        if status is None:
            return True
        given = loads(headers or "{}")
        assert isinstance(given, dict)
        return KeptAnswer(status=status, headers={name: str(value) for name, value in given.items()}, body=body or b"")

    async def finish(self, caller: Caller, key: str, answer: KeptAnswer) -> None:
        """Keep the answer for the key."""
        given = (answer.status, dumps(dict(answer.headers)), answer.body, *_place(caller, key))
        await self._run(f"UPDATE answer SET status = ?, headers = ?, body = ? {_AT_PLACE}", given)

    async def release(self, caller: Caller, key: str) -> None:
        """Give the key back after a request that changed nothing, so that it can be sent again."""
        await self._run(f"DELETE FROM answer {_AT_PLACE} AND status IS NULL", _place(caller, key))

    async def forget_tenant(self, tenant: str) -> None:
        """Forget what was answered to a tenant, since an answer may hold words that were erased."""
        await self._run("DELETE FROM answer WHERE tenant = ?", (tenant,))

    async def _run(self, statement: str, values: tuple[object, ...]) -> None:
        database = await self._database.get()
        await database.write(lambda connection: connection.execute(statement, values).rowcount)


def _place(caller: Caller, key: str) -> tuple[str, str, str]:
    return caller.tenant, caller.user, key
