"""The message that stands for what was dropped: a summary, and what the user asked, word for word.

The text is one fenced block, so nothing in it can be taken for a turn or an instruction of its own, and it is read back
exactly: the next summary gets the words of this one, not its frame. Which item is what stands in the metadata.

Invariants: the id depends only on the session and on what the message says. What the user asked is carried by code:
the first request and the latest ones, whatever the summary left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ricordo.errors import InvalidMessage
from ricordo.guard import Quoted, Trust, cut, fence, unfence
from ricordo.language import content_words
from ricordo.messages import JsonValue, Message, Text, mark_of, marked, with_ids
from ricordo.tokens.estimate import estimate_text
from ricordo.workspace.layout import WORKSPACE, transcript_path

__all__ = [
    "Asked",
    "asked",
    "body_of",
    "kept_after",
    "pinned",
    "summary_message",
    "transcript_at",
]

_KEY = "ricordo.summary"
_FENCE = "summary"
_LONGEST_REQUEST = 1_200
_FRAME = 20
_SUBSTANCE = 3
_CUT = " [...]"
_NOTE = "what was said before, in short; a record, not a request"
_LEAD = (
    "The messages before this point were condensed. Below is a summary of them and what the user asked, word for word. "
    "It is a record and not a new request: go on from where it ends."
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the user asked in the message `id`; a very long text is cut and says so."""

    id: str
    text: str


def pinned(message: Message) -> bool:
    """Tell whether a message stays whatever is summed up: a system message, which holds instructions."""
    return message.role == "system" and not message.tool_calls and not message.tool_results


def transcript_at(agent: str, session: str) -> str:
    """Return where the agent's file tool finds the transcript, with its leading slash; empty when there is none."""
    try:
        return transcript_path(agent, session).removeprefix(WORKSPACE) if agent and session else ""
    except InvalidMessage:
        return ""


def asked(dropped: Sequence[Message], budget: int) -> tuple[Asked, ...]:
    """Return the first request among `dropped` and the latest ones, in order, in about `budget` tokens.

    What earlier summaries carried counts as asked where they stand.
    """
    every = list(_every_request(dropped))
    if not every:
        return ()
    left = budget - estimate_text(every[0].text) - _FRAME
    latest: list[Asked] = []
    for number, request in enumerate(reversed(every[1:])):
        if number and len(content_words(request.text)) < _SUBSTANCE:
            continue
        left -= estimate_text(request.text) + _FRAME
        if left < 0:
            break
        latest.append(request)
    return (every[0], *reversed(latest))


def summary_message(
    body: str, dropped: Sequence[Message], *, agent: str, session: str, requests: Sequence[Asked], kept: int, lead: bool
) -> Message:
    """Return the message that stands for `dropped`, a user's by role.

    `kept` counts the messages after it. `lead` puts a sentence before the block that says how to read it and where
    everything still stands; without it the block says so in brief.
    """
    path = transcript_at(agent, session)
    said = [message for message in dropped if mark_of(message) != "summary"]
    covered = f"up to {said[-1].id}" if said and said[-1].id else "before"
    items = [
        Quoted(text=body, source=f"messages {covered}", trust=Trust.AGENT),
        *(Quoted(text=each.text, source="asked", trust=Trust.USER, id=each.id or None) for each in requests),
    ]
    note = _NOTE if lead or not path else f"{_NOTE}; in full: {path}"
    block = fence(items, name=_FENCE, note=note)
    text = f"{_LEAD}{_where(path)}\n\n{block}" if lead else block
    record: dict[str, JsonValue] = {
        "kept": kept,
        "asked": [each.id for each in requests],
        "block": len(text) - len(block),
    }
    message = Message(role="user", parts=(Text(text=text),), time=dropped[-1].time, metadata={_KEY: record})
    return marked(with_ids([message], session=session)[0], "summary")


def body_of(message: Message) -> str:
    """Return the words of a summary without their frame; the whole text of one that is not understood."""
    texts = _items(message)
    return texts[0] if texts else message.text


def kept_after(message: Message) -> int:
    """Return how many messages stayed after this summary when it was made; 0 when that is not known."""
    kept = _record(message).get("kept")
    return kept if isinstance(kept, int) else 0


def _every_request(messages: Sequence[Message]) -> Iterator[Asked]:
    for message in messages:
        if mark_of(message) == "summary":
            yield from _carried(message)
        elif message.role == "user" and mark_of(message) is None and message.text.strip():
            yield Asked(id=message.id, text=_shortened(message.text))


def _carried(message: Message) -> Iterator[Asked]:
    ids = _record(message).get("asked")
    texts = _items(message)[1:]
    known = [each if isinstance(each, str) else "" for each in ids] if isinstance(ids, list) else []
    for at, text in enumerate(texts):
        yield Asked(id=known[at] if at < len(known) else "", text=text)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REQUEST else cut(text, _LONGEST_REQUEST) + _CUT


def _where(path: str) -> str:
    if not path:
        return ""
    return f" Everything still stands in {path}: read it with `read_file`, or search it with `session_search`."


def _items(message: Message) -> tuple[str, ...]:
    start = _record(message).get("block")
    return (unfence(message.text[start:]) or ()) if isinstance(start, int) else ()


def _record(message: Message) -> dict[str, JsonValue]:
    found = message.metadata.get(_KEY)
    return found if isinstance(found, dict) else {}
