"""What was said in a session, without what was forgotten since: a summary made later must not bring it back.

Tombstones hold no text, so what was forgotten is known again by its digest: in what a model was asked to remember, and
in the lines and sentences of the conversation. Each message that says it, or says it in other words, is left out.
"""

from collections.abc import Iterable, Iterator, Sequence

from anyio.to_thread import run_sync

from ricordo.errors import InvalidMessage
from ricordo.language.sentences import split_sentences
from ricordo.messages import Message
from ricordo.messages.jsontext import loads
from ricordo.stores.place import Place
from ricordo.workspace.layout import transcript_path
from ricordo.workspace.striking import says_any
from ricordo.workspace.tombstones import Tombstones, content_digest, read_tombstones
from ricordo.workspace.transcript import read_log

__all__ = ["still_said"]


async def still_said(place: Place, agent: str, session: str) -> Sequence[Message]:
    """Return the messages of a session that say nothing that was forgotten, oldest first; empty for no session."""
    messages = (await read_log(place.files, transcript_path(agent, session))).messages
    stones = await read_tombstones(place.files)
    if not stones.digests and not stones.messages:
        return messages
    return await run_sync(_unforgotten, messages, stones, session, place.key)


def _unforgotten(messages: Sequence[Message], stones: Tombstones, session: str, key: bytes) -> Sequence[Message]:
    open_ = [message for message in messages if (session, message.id) not in stones.messages]
    said = dict.fromkeys(text for message in open_ for text in _statements(message))
    gone = [text for text in said if content_digest(text, key) in stones.digests]
    return [message for message in open_ if not says_any("\n".join(_texts(message)), gone)] if gone else open_


def _statements(message: Message) -> Iterator[str]:
    """Yield what a message may have stated: what it told to remember, lines, sentences, and what follows a colon."""
    for text in _texts(message):
        yield text
        for line in text.split("\n"):
            sentences = [line[each.start : each.end] for each in split_sentences(line)]
            for part in (line, *sentences):
                yield part
                yield part.partition(":")[2]


def _texts(message: Message) -> Iterable[str]:
    told = [_content(call.arguments) for call in message.tool_calls]
    results = [result.text for result in message.tool_results]
    return [text for text in (message.text, *told, *results) if text.strip()]


def _content(arguments: str) -> str:
    try:
        found = loads(arguments)
    except InvalidMessage:
        return ""
    content = found.get("content") if isinstance(found, dict) else None
    return content if isinstance(content, str) else ""
