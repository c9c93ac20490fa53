"""A model that writes the summaries it is told to, and what it writes."""

from collections.abc import AsyncIterator, Mapping, Sequence

from conversation_strategies import said
from ricordo.context import SECTION_NAMES
from ricordo.context.summary_message import build_summary_message
from ricordo.messages import JsonValue, Message, ToolSpec, dumps, with_ids
from ricordo.models import Reply, ReplyEvent, StopReason

__all__ = ["SUMMARY", "Scripted", "both", "earlier", "ids", "noted", "sections", "talk"]

SUMMARY = "## SESSION INTENT\nPort the shop.\n## SUMMARY\nDone.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"


class Scripted:
    """A model that answers what it is told to; requests stand in `asked`."""

    name = "scripted"

    def __init__(self, *answers: str | Exception, window: int | None = 100_000, stop: StopReason = "end") -> None:
        self._answers = answers or (SUMMARY,)
        self._stop = stop
        self.window = window
        self.asked: list[str] = []
        self.schemas: list[Mapping[str, JsonValue] | None] = []

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        self.asked.append("\n".join(message.text for message in messages))
        self.schemas.append(schema)
        found = self._answers[min(len(self.asked), len(self._answers)) - 1]
        if isinstance(found, Exception):
            raise found
        return Reply(message=said(found, role="assistant"), stop=self._stop)

    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        raise NotImplementedError


def talk(count: int, *, words: str = "says something of its own, in a sentence") -> tuple[Message, ...]:
    spoken = [
        said(f"Message number {number} {words}.", role="user" if number % 2 == 0 else "assistant")
        for number in range(count)
    ]
    return tuple(with_ids(spoken, session="s1"))


def sections(intent: str = "None", summary: str = "None", artifacts: str = "None", steps: str = "None") -> str:
    blocks = zip(SECTION_NAMES, (intent, summary, artifacts, steps), strict=True)
    return "\n".join(f"## {name}\n{lines}" for name, lines in blocks)


def both(summary: str, *lessons: dict[str, JsonValue] | str) -> str:
    return dumps({"summary": summary, "lessons": list(lessons)})


def noted(quote: str, content: str = "Something that lasts.") -> dict[str, JsonValue]:
    return {"content": content, "kind": "fact", "quote": quote, "message": ""}


def earlier(text: str) -> Message:
    """A summary of before, as it stands in a window."""
    return build_summary_message(text, talk(2), session="s1", requests=(), kept_count=0, lead=True)


def ids(messages: Sequence[Message]) -> set[str]:
    return {message.id for message in messages}
