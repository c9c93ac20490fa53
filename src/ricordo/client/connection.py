"""One connection to the service: what can be sent again is sent again, and a problem becomes an error.

Each request that changes something has a key of its own, so that one whose answer was lost is carried out once.
"""

import random
import uuid
from collections.abc import Mapping
from typing import Any

import anyio
import httpx2

from ricordo import errors
from ricordo.errors import RicordoError, ServiceError

__all__ = ["ServiceConnection"]


_PROBLEM = "urn:ricordo:problem:"
_AGAIN = frozenset({429, 502, 503, 504})
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 30.0


class ServiceConnection:
    """A connection to the service at a URL, for one project."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        project: str,
        seconds: float,
        tries: int,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        """Connect at the first request."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        base = url.rstrip("/").removesuffix("/v1")
        self._client = httpx2.AsyncClient(base_url=base, headers=headers, timeout=seconds, transport=transport)
        self._project = project
        self._tries = tries

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        version: str | None = None,
    ) -> httpx2.Response:
        """Send a request until it is answered. Raises: the error of its problem; ServiceError."""
        headers = {} if method == "GET" else {"Idempotency-Key": uuid.uuid4().hex}
        if version:
            headers["If-Match"] = version
        given = {name: value for name, value in (params or {}).items() if value is not None}
        for left in reversed(range(self._tries)):
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (self._tries - 1 - left))
            # clients that failed together do not come back together
            pause *= random.uniform(0.5, 1)  # noqa: S311
            try:
                answer = await self._client.request(
                    method, f"/v1{path}", params={"project": self._project, **given}, json=body, headers=headers
                )
            except httpx2.TransportError as error:
                if not left:
                    raise ServiceError(
                        f"The service can't be reached: {type(error).__name__}. Is it running?"
                    ) from error
            else:
                if answer.is_success:
                    return answer
                if not left or answer.status_code not in _AGAIN:
                    raise _read_problem(answer)
                pause = max(pause, min(_LONGEST_PAUSE, _read_wait(answer)))
            await anyio.sleep(pause)
        raise AssertionError


def _read_wait(answer: httpx2.Response) -> float:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else 0.0


def _read_problem(answer: httpx2.Response) -> RicordoError:
    """Return the error that the service had, by the type of its problem; ServiceError for any other one."""
    try:
        problem = answer.json()
        kind, detail = str(problem["type"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"The service answered {answer.status_code}, and no problem that is understood.")
    name = "".join(part.capitalize() for part in kind.removeprefix(_PROBLEM).split("-"))
    known = getattr(errors, name, None) if kind.startswith(_PROBLEM) else None
    if isinstance(known, type) and issubclass(known, RicordoError):
        return known(detail)
    return ServiceError(detail, status=answer.status_code)
