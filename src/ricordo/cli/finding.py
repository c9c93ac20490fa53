"""By what memory is found: by words alone, or by the meaning that an embedder gives too."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ricordo.errors import ExtraMissing, InvalidInput, InvalidSetting, ModelError

if TYPE_CHECKING:
    from ricordo.runtime import Settings

__all__ = ["Finding", "found_by"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The id of the embedder, None where there is none; `told` says it in one line, `ok` that it can be used."""

    embedder: str | None
    told: str
    ok: bool = True


def found_by(settings: "Settings") -> Finding:
    """Return by what the settings let memory be found, and what has a say in the order of the best."""
    from ricordo.runtime.rerankers import chosen_reranker

    found = _found_by(settings)
    if settings.reranker in {None, "none"}:
        return found
    try:
        chosen_reranker(settings.reranker)
    except (ExtraMissing, InvalidSetting) as error:
        return replace(found, told=f"{found.told}; {error}", ok=False)
    return replace(found, told=f"{found.told}; the reranker {settings.reranker} has a say in the order of the best")


def _found_by(settings: "Settings") -> Finding:
    from ricordo.runtime.serving import chosen_embedder

    try:
        embedder = chosen_embedder(settings.embedder, settings)
    except (ExtraMissing, InvalidInput, ModelError) as error:
        return Finding(embedder=None, told=f"by words alone: {error}", ok=False)
    if embedder is not None:
        return Finding(embedder=embedder.model_id, told=f"by words and by meaning, with {embedder.model_id}")
    more = "" if settings.embedder is None else "; pip install 'ricordo[embed]' adds meaning"
    return Finding(embedder=None, told=f"by words alone{more}")
