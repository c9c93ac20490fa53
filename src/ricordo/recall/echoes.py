"""Whether a hit only repeats what a tool printed: then it is trusted as little as that.

An assistant that has read a page may say what stands there, and may save it. Who plants a sentence in a page would
speak by the assistant's mouth, if what it repeats counted as its own.
"""

from collections.abc import Sequence

from ricordo.errors import StorageError
from ricordo.guard import Trust
from ricordo.index.contract import Query
from ricordo.language import repeats
from ricordo.recall.hits import TOOL, Hit, Source

__all__ = ["is_echo"]

_LOOKED_AT = 12
_LONGEST = 600


async def is_echo(sources: Sequence[Source], hit: Hit) -> bool:
    """Tell whether the hit is an assistant's, and what it says was printed by a tool in its session and by no user.

    A source that can't be searched tells of none.
    """
    entry, session = hit.entry, hit.entry.source.session
    if not session or hit.trust is not Trust.AGENT or (hit.speaker != "assistant" and entry.by != "agent"):
        return False
    asked = Query(text=entry.content[:_LONGEST], session=session, sorts=("transcript", "result"))
    printed = False
    for source in (each for each in sources if each.label == hit.source):
        try:
            matches = await source.index.search(asked, _LOOKED_AT)
        except StorageError:
            continue
        chunks = [match.chunk for match in matches if repeats(entry.content, match.chunk.content)]
        earlier = [chunk for chunk in chunks if not (chunk.time and entry.time and chunk.time > entry.time)]
        if any(chunk.speaker not in {"", "assistant", TOOL} for chunk in earlier):
            return False
        printed = printed or any(chunk.speaker == TOOL or chunk.sort == "result" for chunk in earlier)
    return printed
