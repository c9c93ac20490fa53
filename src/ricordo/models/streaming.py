"""The stream of a reply that came whole: its text as one piece, then its end."""

from collections.abc import Iterator

from ricordo.models.contract import Finished, Reply, ReplyEvent, TextDelta

__all__ = ["streamed"]


def streamed(reply: Reply) -> Iterator[ReplyEvent]:
    """Give the events of a stream that ends with `reply`; one without text has no piece."""
    if reply.message.text:
        yield TextDelta(text=reply.message.text)
    yield Finished(reply=reply)
