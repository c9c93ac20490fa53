"""Whether a hit only repeats what a tool printed: then it is trusted as little as that.

An assistant that has read a page may say what stands there, and may save it. Who plants a sentence in a page would
speak by the assistant's mouth, if what it repeats counted as its own.
"""

from collections.abc import Sequence

from ricordo.errors import StorageError
from ricordo.guard import Trust
from ricordo.index.contract import Chunk, Query
from ricordo.language import coverage, repeats_sentence, drop_questions
from ricordo.recall.hits import TOOL_SPEAKER, Hit, SearchSource
from ricordo.workspace.entry import Entry

__all__ = ["is_echo"]

_ECHO_CANDIDATES = 12
_MAX_ECHO_CHARS = 600
_MIN_PRINTED_SHARE = 0.5
"""Which share of a sentence a tool has to have printed, in words of its own, for the sentence to be the tool's."""


async def is_echo(sources: Sequence[SearchSource], hit: Hit) -> bool:
    """Tell whether the hit is an assistant's, and what it says was printed by a tool in its session and by no user.

    Of a file that agents write it is not known from which session a line is: all of them are looked through. A source
    that can't be searched tells of none.
    """
    entry, session = hit.entry, "" if hit.is_in_agent_file else hit.entry.source.session
    is_own = hit.is_in_agent_file or (session and (hit.speaker == "assistant" or entry.by == "agent"))
    if not is_own or hit.trust is not Trust.AGENT:
        return False
    asked = Query(text=entry.content[:_MAX_ECHO_CHARS], session=session or "", sorts=("transcript", "result"))
    printed = False
    for source in (each for each in sources if each.label == hit.source):
        try:
            matches = await source.index.search(asked, _ECHO_CANDIDATES)
        except StorageError:
            continue
        earlier = [each.chunk for each in matches if not _is_said_later(each.chunk, entry)]
        users = [chunk.content for chunk in earlier if chunk.speaker not in {"", "assistant", TOOL_SPEAKER}]
        tools = [chunk.content for chunk in earlier if chunk.speaker == TOOL_SPEAKER or chunk.sort == "result"]
        if any(repeats_sentence(entry.content, drop_questions(text)) for text in users):
            return False
        printed = (
            printed
            or any(repeats_sentence(entry.content, text) for text in tools)
            or _paraphrases_tool(entry.content, tools, users)
        )
    return printed


def _paraphrases_tool(text: str, tools: Sequence[str], users: Sequence[str]) -> bool:
    """Tell whether a text says in other words what tools printed, and is nearer to that than to what users stated."""
    printed = coverage(text, tools)
    return printed >= _MIN_PRINTED_SHARE and printed > coverage(text, users)


def _is_said_later(chunk: Chunk, entry: Entry) -> bool:
    return bool(chunk.time and entry.time and chunk.time > entry.time)
