"""Check: one thing that was looked at, and what to do about it."""

from dataclasses import dataclass

__all__ = ["Check"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at: whether it is well, how many were found, and what to do if it is not."""

    name: str
    ok: bool
    count: int
    detail: str
