"""A session in memory whose flush asks a scripted model, and what such a model answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hand_clock import HandClock
from ricordo import Entry, FlushConfig
from ricordo.clock import MonotonicIds
from ricordo.extraction import Flusher, FlushResult, extract
from ricordo.extraction.contract import SectionFactory
from ricordo.extraction.extractors import ModelExtractor, RuleExtractor
from ricordo.guard import Redactor
from ricordo.messages import JsonValue, Message, Text, dumps
from ricordo.models import ChatModel
from ricordo.storage import FileStore
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Transcript, read_all_entries, transcript_path

__all__ = ["KEY", "REDACTOR", "NotingDesk", "lessons", "note", "said"]

KEY = bytes(32)
REDACTOR = Redactor(KEY)


def said(text: str, *, by: str = "user") -> Message:
    return Message(role="user" if by == "user" else "assistant", parts=(Text(text=text),))


def note(content: str, quote: str, **others: JsonValue) -> dict[str, JsonValue]:
    """Return one note as a model gives it."""
    given: dict[str, JsonValue] = {"kind": "fact", "confidence": 0.8, "message": "", "since": None, "until": None}
    return {"content": content, "quote": quote, "tags": [], "corrects": False, **given, **others}


def lessons(*notes: dict[str, JsonValue], **parts: JsonValue) -> str:
    """Return an answer with these notes, and with the parts of other sections."""
    return dumps({"lessons": list(notes), **parts})


@dataclass
class NotingDesk:
    """Sessions of the agent `main`, and a flusher that asks `model`; without one it goes by the rules."""

    model: ChatModel | None = None
    config: FlushConfig = field(default_factory=FlushConfig)
    files: FileStore = field(default_factory=InMemoryFiles)
    clock: HandClock = field(default_factory=HandClock)
    sections: Sequence[SectionFactory] = ()

    @property
    def flusher(self) -> Flusher:
        rules = RuleExtractor(rules=extract, sections=self.sections)
        model = self.model and ModelExtractor(
            model=self.model, config=self.config, rules=rules, files=self.files, clock=self.clock
        )
        return Flusher(
            files=self.files, redactor=REDACTOR, key=KEY, clock=self.clock, ids=MonotonicIds(self.clock),
            model=model or None, sections=self.sections,
        )  # fmt: skip

    async def say(self, *messages: Message | str, session: str = "s") -> list[str]:
        """Record what was said, by the user where nothing else is told, and return the ids of all of the session."""
        transcript = Transcript(self.files, transcript_path("main", session), session=session, redactor=REDACTOR)
        spoken = [said(each) if isinstance(each, str) else each for each in messages]
        return [message.id for message in (await transcript.append(spoken)).messages]

    async def flush(self, session: str = "s", *, by_rules: bool = False) -> FlushResult:
        """Flush until nothing is left."""
        done = part = await self.flusher.flush("main", session, by_rules=by_rules)
        while part.has_more:
            part = await self.flusher.flush("main", session, by_rules=by_rules)
            done = done.combine(part)
        return done

    async def entries(self) -> list[Entry]:
        return [located.entry for located in await read_all_entries(self.files)]

    async def contents(self) -> list[str]:
        return [entry.content for entry in await self.entries()]
