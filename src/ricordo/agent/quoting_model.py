"""QuotingModel: the offline model with a memory to quote from.

Messages are in the transcript by then, questions too; if a question would be quoted, only memories are searched.

Invariant: a text that asks nothing gets only an entry that says the same or contradicts it, in either direction.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from ricordo.curation.conflicts import replaces, says_the_same
from ricordo.guard import Trust
from ricordo.language import content_words, overlap
from ricordo.models.offline import OfflineModel, ends_with_question, is_question
from ricordo.search.answer import answer_question
from ricordo.search.config import DEFAULT_RECALL
from ricordo.search.contract import MEMORY_DOCUMENT_TYPES, Answer, Hit, Query, SearchSource
from ricordo.stores import Store
from ricordo.workspace.entry import Entry

__all__ = ["QuotingModel", "quote_from_sources", "quote_from_store"]


_DUPLICATE_OVERLAP = 0.7
_SUBJECT_OVERLAP = 0.75
_MIN_WORDS = 2
_MAX_CANDIDATES = 5
_JUST_NOW = timedelta(minutes=1)
_ONE_QUOTE = replace(DEFAULT_RECALL, further=2.0)
"""Nothing fits twice as well as what fits best, so nothing further is quoted."""


class QuotingModel(OfflineModel):
    """The model `offline` with access to the agent's memory; `show` renders an answer as text."""

    def __init__(self, show: Callable[[Answer], str] = lambda found: found.text) -> None:
        """Create the model; it finds nothing before `set_search`."""
        super().__init__(self._quote, keeps=False)
        self._render = show
        self._find: Callable[[str], Awaitable[Answer | None]] | None = None

    def set_search(self, find: Callable[[str], Awaitable[Answer | None]], *, keeps: bool) -> None:
        """Answer with the result of `find` for a text; `keeps` says whether messages are recorded."""
        self._find, self.is_recorded = find, keeps

    async def _quote(self, text: str) -> str:
        answer = await self._find(text) if self._find else None
        return self._render(answer) if answer else ""


async def quote_from_sources(sources: Sequence[SearchSource], text: str, *, now: datetime) -> Answer | None:
    """Return the quote that answers `text`, or None. Raises `StorageError` if no source can be searched."""
    config = DEFAULT_RECALL if is_question(text) else _ONE_QUOTE
    for query in (Query(text=text), Query(text=text, document_types=MEMORY_DOCUMENT_TYPES)):
        answer = await answer_question(sources, query, now=now, config=config)
        if answer.hit is not None and _is_echo(answer.hit.entry, text, now):
            earlier = replace(query, until=answer.hit.entry.time)
            answer = await answer_question(sources, earlier, now=now, config=config)
        if answer.hit is not None and _is_answer(answer.hit, text, now):
            return answer
    return None


async def quote_from_store(store: Store, text: str, *, now: datetime, folder: Path | None = None) -> Answer | None:
    """Return the quote for `text` from a store other than a root: the hit with the most common words, at least half.

    Its path is below `folder`, the folder of the store's files, or as the store reports it. Raises the store's errors.
    """
    words = content_words(text)
    candidates = [hit for query in (text, *words) for hit in await store.recall(Query(text=query), _MAX_CANDIDATES)]
    hits = [hit for hit in candidates if hit.trust is not Trust.EXTERNAL]
    ranked = sorted(hits, key=lambda hit: overlap(set(words), set(content_words(hit.entry.content))), reverse=True)
    for hit in ranked[:1]:
        shared = set(words) & set(content_words(hit.entry.content))
        if 2 * len(shared) >= len(set(words)) and _is_answer(hit, text, now):
            date = f"{hit.entry.time:%Y-%m-%d}" if hit.entry.time else "memory"
            path = str(folder / hit.path) if folder and hit.path else hit.path
            text = f"{hit.entry.content.strip()}\n({date})"
            return Answer(found=True, text=text, hit=replace(hit, path=path), path=path)
    return None


def _is_echo(entry: Entry, text: str, now: datetime) -> bool:
    """Return whether an entry was just extracted from this message, which may precede the reply."""
    is_recent = bool(entry.source.messages) and entry.time is not None and now - entry.time < _JUST_NOW
    return is_recent and entry.content.strip() == text.strip()


def _is_answer(hit: Hit, text: str, now: datetime) -> bool:
    content = hit.entry.content.strip()
    if hit.entry.kind == "message" and (content == text.strip() or ends_with_question(content)):
        return False
    return is_question(text) or _is_same_subject(Entry(content=text, time=now), hit.entry)


def _is_same_subject(statement: Entry, known_entry: Entry) -> bool:
    """Return whether one entry replaces the other, or both are about the same subject with the same numbers."""
    if (
        replaces(statement, known_entry)
        or replaces(known_entry, statement)
        or says_the_same(statement, known_entry, duplicate=_DUPLICATE_OVERLAP)
    ):
        return True
    left, right = (set(content_words(entry.content)) for entry in (statement, known_entry))
    numbers = [{word for word in words if any(map(str.isdigit, word))} for words in (left, right)]
    fewest = min(len(left), len(right))
    return numbers[0] == numbers[1] and fewest >= _MIN_WORDS and overlap(left, right) >= _SUBJECT_OVERLAP
