"""Built-in stores: where the module of each scheme of Ricordo's own is found, so that none is imported unused."""

from dataclasses import dataclass
from importlib import import_module

from ricordo.errors import ExtraMissing
from ricordo.stores.opening import StoreFactory

__all__ = ["BUILT_IN", "BuiltIn", "imported"]


@dataclass(frozen=True, kw_only=True)
class BuiltIn:
    """Where a backend is found as `module:function`, what it keeps, and the extra that it needs."""

    home: str
    keeps: str
    extra: str = ""


BUILT_IN = {
    "none": BuiltIn(home="nothing:open_nothing", keeps="nothing"),
    "sessions": BuiltIn(
        home="session_files:open_session_files", keeps="a Markdown file for each session, and their index"
    ),
    "markdown": BuiltIn(home="markdown:open_markdown", keeps="one Markdown file"),
    "jsonl": BuiltIn(home="jsonl:open_jsonl", keeps="one file with a JSON document a line"),
    "json": BuiltIn(home="json_document:open_json", keeps="one JSON document"),
    "kv": BuiltIn(home="kv:open_kv", keeps="an embedded key-value database", extra="kv"),
    "fulltext": BuiltIn(home="fulltext:open_fulltext", keeps="a file of entries, and a full-text index"),
    "vector": BuiltIn(home="vector:open_vector", keeps="a file of entries, and their vectors", extra="vector"),
    "folder": BuiltIn(
        home="memory_folder:open_memory_folder", keeps="an existing folder of MEMORY.md and topic files, as it is"
    ),
    "ring": BuiltIn(home="ring:open_ring", keeps="the newest entries, in this process"),
    "mock": BuiltIn(home="mock:open_mock", keeps="a list, in this process"),
    "fanout": BuiltIn(home="fanout:open_fanout", keeps="what it is given, in several stores"),
}


def imported(scheme: str, built_in: BuiltIn) -> StoreFactory:
    """Import a backend and return what opens it. Raises: ExtraMissing where its package is not installed."""
    module, _, function = built_in.home.partition(":")
    try:
        factory: StoreFactory = getattr(import_module(f"ricordo.stores.{module}"), function)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ricordo"):
            raise
        raise ExtraMissing(
            f"The store {scheme} needs {error.name}: pip install 'ricordo[{built_in.extra}]' installs it."
        ) from error
    return factory
