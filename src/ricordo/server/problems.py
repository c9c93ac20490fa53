"""Errors as `application/problem+json` (RFC 9457): a type, a title, the status, and a sentence that says what to do."""

import re
from collections.abc import Mapping

from fastapi.responses import JSONResponse

from ricordo.errors import (
    AlreadyExists,
    DuplicateFact,
    InvalidInput,
    LegalHold,
    MembershipRequired,
    MemoryClosed,
    ModelError,
    NotFound,
    PoolExhausted,
    ReasonRequired,
    RicordoError,
    ScopeError,
    StorageBusy,
    StorageFull,
    StorageReadOnly,
    UndoRefused,
    VersionConflict,
)

__all__ = ["Problem", "describe_error", "respond_with_problem"]


_TYPES = "urn:ricordo:problem:"
_STATUSES: tuple[tuple[type[RicordoError], int], ...] = (
    (NotFound, 404),
    (DuplicateFact, 409),
    (InvalidInput, 422),
    (ReasonRequired, 422),
    (MembershipRequired, 403),
    (ScopeError, 403),
    (VersionConflict, 409),
    (AlreadyExists, 409),
    (UndoRefused, 409),
    (LegalHold, 409),
    (StorageBusy, 503),
    (PoolExhausted, 503),
    (MemoryClosed, 503),
    (StorageReadOnly, 503),
    (StorageFull, 507),
    (ModelError, 502),
)
"""The status of each kind of error, the first that fits; any other one is 500."""
_RETRY_SECONDS = 1


class Problem(Exception):
    """What was wrong with a request; `name` is the last part of the type, `detail` says what to do."""

    def __init__(
        self, status: int, name: str, title: str, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        """Store the parts of the answer."""
        super().__init__(detail)
        self.status = status
        self.name = name
        self.title = title
        self.detail = detail
        self.headers = dict(headers or {})


def describe_error(error: RicordoError) -> Problem:
    """Return the problem that tells a caller of an error of the memory.

    Errors of the disk and of a provider don't name files or addresses of the service: its log does.
    """
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    kind = type(error)
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).capitalize()
    is_ours = status >= 500
    detail = (kind.__doc__ or title).partition("\n")[0] if is_ours else str(error)
    headers = {"Retry-After": str(_RETRY_SECONDS)} if status == 503 else None
    return Problem(status, re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower(), title, detail, headers=headers)


def respond_with_problem(problem: Problem) -> JSONResponse:
    """Return the answer to a request that has a problem."""
    body = {
        "type": f"{_TYPES}{problem.name}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    return JSONResponse(body, problem.status, headers=problem.headers, media_type="application/problem+json")
