"""Search: an index over the workspace that can be rebuilt from its files, ranked recall, and answers by quotation."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.search.answer import answer_question
    from ricordo.search.config import RecallConfig
    from ricordo.search.contract import MEMORY_SORTS, Chunk, Match, Query
    from ricordo.search.recall import recall_memories, search
    from ricordo.search.results import Hit, SearchSource

__all__ = [
    "MEMORY_SORTS",
    "Chunk",
    "Hit",
    "Match",
    "Query",
    "RecallConfig",
    "SearchSource",
    "answer_question",
    "recall_memories",
    "search",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".answer": "answer_question",
        ".config": "RecallConfig",
        ".contract": "Chunk MEMORY_SORTS Match Query",
        ".recall": "recall_memories search",
        ".results": "Hit SearchSource",
    },
)
