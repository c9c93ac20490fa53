"""Who may ask: tokens that carry a tenant, a user and a role. The database holds only their digests.

A token is `rcd_<id>_<secret>` with 256 random bits, so a plain SHA-256 of it can't be searched. An unknown, an expired
and a revoked token get the same answer.
"""

import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from ricordo.clock import Clock, SystemClock
from ricordo.errors import InvalidInput, NotFound
from ricordo.lazy import dataclass
from ricordo.scope import Scope
from ricordo.server.database import ServiceDatabase

__all__ = ["Caller", "IssuedToken", "Role", "Token", "TokenBook", "open_token_book"]


Role = Literal["reader", "writer"]
"""What a token allows: a reader changes nothing."""
_PREFIX = "rcd"
_ID_BYTES = 6
_SECRET_BYTES = 32
_Row = tuple[str, str, str, str, str, str | None, str, float, float | None]
_COLUMNS = "id, digest, tenant, user, role, project, note, created, expires"


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who makes a request: a user of a tenant. With a `project` all other projects are closed."""

    tenant: str
    user: str
    role: Role
    project: str | None = None


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token as it is kept, without its text; `digest` is the SHA-256 of the text in hex digits."""

    id: str
    digest: str
    tenant: str
    user: str
    role: Role
    created: datetime
    project: str | None = None
    note: str = ""
    expires: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class IssuedToken:
    """A new token with its text, which is not kept."""

    token: Token
    text: str


class TokenBook:
    """The tokens of a service. Every method may raise StorageError."""

    def __init__(self, database: ServiceDatabase, now: Callable[[], datetime]) -> None:
        """Keep the tokens in `database`; `now` tells which have expired."""
        self._database = database
        self._now = now

    async def issue(
        self,
        *,
        tenant: str,
        user: str,
        role: Role = "writer",
        project: str | None = None,
        expires: datetime | None = None,
        note: str = "",
    ) -> IssuedToken:
        """Add a token and return it with its text. Raises: InvalidInput; InvalidScope."""
        now = self._now()
        if role not in get_args(Role):
            raise InvalidInput(f"The role of a token is {' or '.join(get_args(Role))}, not {role!r}.")
        if expires is not None and expires <= now:
            raise InvalidInput("The token would have expired already: give a later time.")
        Scope(tenant=tenant, user=user, project=project)
        name = secrets.token_hex(_ID_BYTES)
        text = f"{_PREFIX}_{name}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        token = Token(
            id=name, digest=_digest(text), tenant=tenant, user=user, role=role, project=project, note=note,
            created=now, expires=expires,
        )  # fmt: skip
        row = (
            name, token.digest, tenant, user, role, project, note, now.timestamp(), expires and expires.timestamp(),
        )  # fmt: skip
        statement = f"INSERT INTO token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        database = await self._database.get()
        await database.write(lambda connection: connection.execute(statement, row).rowcount)
        return IssuedToken(token=token, text=text)

    async def revoke(self, token_id: str) -> Token:
        """Remove a token and return it; from then on it opens nothing. Raises: NotFound."""
        statement = f"DELETE FROM token WHERE id = ? RETURNING {_COLUMNS}"
        database = await self._database.get()
        row = await database.write(lambda connection: connection.execute(statement, (token_id,)).fetchone())
        if row is None:
            raise NotFound(f"No token has the id {token_id!r}: `ricordo token list` shows the ids.")
        return _read_token(row)

    async def list_tokens(self) -> list[Token]:
        """Return all tokens, also those that have expired, the newest first."""
        statement = f"SELECT {_COLUMNS} FROM token ORDER BY created DESC, id DESC"
        rows = await (await self._database.get()).read(lambda connection: connection.execute(statement).fetchall())
        return [_read_token(row) for row in rows]

    async def find_caller(self, text: str) -> Caller | None:
        """Return whom the token `text` speaks for; None if it is unknown, has expired or was revoked."""
        prefix, _, rest = text.partition("_")
        name, _, secret = rest.partition("_")
        if prefix != _PREFIX or not secret:
            return None
        statement = f"SELECT {_COLUMNS} FROM token WHERE id = ?"
        database = await self._database.get()
        row = await database.read(lambda connection: connection.execute(statement, (name,)).fetchone())
        if row is None:
            return None
        token = _read_token(row)
        is_over = token.expires is not None and token.expires <= self._now()
        if is_over or not hmac.compare_digest(_digest(text), token.digest):
            return None
        return Caller(tenant=token.tenant, user=token.user, role=token.role, project=token.project)


@asynccontextmanager
async def open_token_book(folder: Path, clock: Clock | None = None) -> AsyncIterator[TokenBook]:
    """Lend the tokens of the service in `folder`, which is created if it is missing. Raises: StorageError."""
    database = ServiceDatabase(folder)
    try:
        yield TokenBook(database, (clock or SystemClock()).now)
    finally:
        await database.close()


def _read_token(row: _Row) -> Token:
    name, digest, tenant, user, role, project, note, created, expires = row
    return Token(
        id=name,
        digest=digest,
        tenant=tenant,
        user=user,
        role="writer" if role == "writer" else "reader",
        project=project,
        note=note,
        created=datetime.fromtimestamp(created, UTC),
        expires=None if expires is None else datetime.fromtimestamp(expires, UTC),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
