"""What an exception of a provider's package says: status, codes, text, headers.

Read by attributes, not by class, so that no package has to be imported, and that a wrapped exception says as much as
the one inside. Only what the provider answered is read, never the request, which holds the key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["ErrorDetails", "iterate_causes", "read_error_details"]

_MAX_CAUSES = 16
_SIZES = ("n_ctx", "n_prompt_tokens")


@dataclass(frozen=True, kw_only=True)
class ErrorDetails:
    """What one exception says. `names` are those of its classes; `code` and `kind` are the provider's own words."""

    names: frozenset[str]
    text: str
    status: int | None = None
    code: str = ""
    kind: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    retry_after: float | None = None


def iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error`, what caused it, what caused that, and so on; each once."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting and len(seen) < _MAX_CAUSES:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inside = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        before = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        waiting += [*inside, *([before] if before is not None else [])]


def read_error_details(error: BaseException) -> ErrorDetails:
    """Return what `error` itself says, without its causes."""
    body = getattr(error, "body", None)
    if body is None:
        body = getattr(error, "details", None)
    fields = _read_fields(body)
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    asked = getattr(error, "retry_after", None)
    own_code, own_kind = getattr(error, "code", None), getattr(error, "type", None)
    return ErrorDetails(
        names=frozenset(kind.__name__ for kind in type(error).__mro__),
        text=_read_text(error, body, fields),
        status=_read_status(error, fields),
        code=_to_word(getattr(error, "provider_error_code", None))
        or _to_word(own_code)
        or _to_word(fields.get("code")),
        kind=_to_word(getattr(error, "provider_error_type", None))
        or _to_word(own_kind)
        or _to_word(fields.get("type")),
        headers={str(key).lower(): str(value) for key, value in getattr(headers, "items", tuple)()},
        sizes={key: value for key in _SIZES if isinstance(value := fields.get(key), int)},
        retry_after=float(asked) if isinstance(asked, int | float) else None,
    )


def _read_status(error: BaseException, fields: Mapping[str, object]) -> int | None:
    """Return the status that the error was answered with; that of an open stream says nothing about the error."""
    answer = getattr(getattr(error, "response", None), "status_code", None)
    for found in (getattr(error, "status_code", None), answer, getattr(error, "code", None), fields.get("code")):
        if isinstance(found, int) and not isinstance(found, bool) and 400 <= found < 600:
            return found
    return None


def _read_fields(body: object) -> Mapping[str, object]:
    """Return the fields of the error object in `body`, be it wrapped in `error` or not."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return {}
    inside = body.get("error")
    return inside if isinstance(inside, Mapping) else body


def _read_text(error: BaseException, body: object, fields: Mapping[str, object]) -> str:
    said = fields.get("message") or fields.get("error") or fields.get("detail")
    if isinstance(said, str):
        return said
    if isinstance(body, str) and body.strip():
        return body
    own = getattr(error, "message", None)
    return own if isinstance(own, str) and own else str(error)


def _to_word(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
