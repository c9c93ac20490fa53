"""Search: an index over the workspace that can be rebuilt from its files, ranked recall, and answers by quotation."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.search.answer import answer_question
    from ricordo.search.config import DecayConfig, RecallConfig
    from ricordo.search.contract import (
        MEMORY_DOCUMENT_TYPES,
        Answer,
        Chunk,
        Explanation,
        Hit,
        Match,
        Query,
        Reranker,
        SearchSource,
    )
    from ricordo.search.ranking import fit_budget
    from ricordo.search.recall import attach_neighbours, explain, recall_memories, search
    from ricordo.search.said import add_statements, choose_hits, recall_all

__all__ = [
    "MEMORY_DOCUMENT_TYPES",
    "Answer",
    "Chunk",
    "DecayConfig",
    "Explanation",
    "Hit",
    "Match",
    "Query",
    "RecallConfig",
    "Reranker",
    "SearchSource",
    "add_statements",
    "answer_question",
    "attach_neighbours",
    "choose_hits",
    "explain",
    "fit_budget",
    "recall_all",
    "recall_memories",
    "search",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".answer": "answer_question",
        ".config": "DecayConfig RecallConfig",
        ".contract": "Answer Chunk Explanation Hit MEMORY_DOCUMENT_TYPES Match Query Reranker SearchSource",
        ".ranking": "fit_budget",
        ".recall": "attach_neighbours explain recall_memories search",
        ".said": "add_statements choose_hits recall_all",
    },
)
