"""Leaving a stream in order, whether its end was reached or not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ricordo.models.contract import ReplyEvent

__all__ = ["closing_events"]


@asynccontextmanager
async def closing_events(events: AsyncIterator[ReplyEvent]) -> AsyncIterator[AsyncIterator[ReplyEvent]]:
    """Hand on `events`, and close them at the end if they can be closed, so that no connection stays open."""
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
