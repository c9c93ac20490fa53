"""`--why`: what each signal gave to a hit, what was left out, and the reason."""

from collections.abc import Sequence
from datetime import datetime

from ricordo.cli.context import Target, with_memory
from ricordo.cli.documents import explanation_document
from ricordo.cli.hits import print_explanation
from ricordo.cli.render import print_json

__all__ = ["explain_hits"]


def explain_hits(
    target: Target,
    query: str,
    *,
    as_json: bool,
    limit: int,
    kinds: Sequence[str] = (),
    tags: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    budget: int | None = None,
    session: str = "",
    path: str = "",
    everything: bool = False,
    around: bool = False,
) -> None:
    """Print why hits are hits and others are none; `everything` looks beyond memories."""
    from ricordo.index.contract import ALL_SORTS, MEMORY_SORTS, Query
    from ricordo.tokens import Tokens

    asked = Query(
        text=query, kinds=tuple(kinds), tags=tuple(tags), since=since, until=until, session=session,
        path=path, sorts=ALL_SORTS if everything else MEMORY_SORTS,
    )  # fmt: skip
    room = Tokens(budget) if budget else None
    found = with_memory(
        target, lambda memory: memory.explain(asked, limit=limit, budget=room, around=around or as_json), finds=True
    )
    if as_json:
        print_json({"query": query, **explanation_document(found, target)})
    else:
        print_explanation(found, target)
